#!/usr/bin/env python
"""BORE, BORE++ and GP-UCB where the theory holds (Oliveira et al. 2022, section 7 and appendix D.1).

    python scripts/theory_assessment.py docs/theory.png [--trials 10] [--steps 3000]

The class probability pi* is a random function of the RKHS of an RBF kernel (eq. D.1, 5 terms, norm 1), the objective
is f = tau - Phi^-1(pi*) for Gaussian noise of variance 0.01 and tau = 0 (eq. D.3), and the domain is 100 uniform points
of [0, 1]. All methods start at the same random point and may return to a point. What they maximise:

- BORE: pi_t of `KernelPLS` with the paper's fixed length scale and lambda (eq. 13).
- BORE++: pi_t + beta_t sigma_t with beta_t of Theorem 1 (eq. 20), `beta(delta, norm)` of its posterior.
- GP-UCB: the same kernel on the values, with the bound of Durand et al. 2018 (Theorem 1) and the norm of f (eq. D.5).

The Gram matrix behind the norm of f has no full rank in floating point: what norm GP-UCB is told, and so how long it
explores, hangs on the cut-off of small eigenvalues. Here it is the least that double precision allows.

Prints a table of the final regrets, and draws their curves with 95% confidence intervals over the trials. Each step of
each method takes about 10 ms: 15 minutes with the defaults.
"""

import argparse
import math
import os
import warnings
from dataclasses import dataclass, replace
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import torch
from lightning.pytorch import Callback, LightningModule, Trainer
from matplotlib.figure import Figure
from torch import Tensor

from deepbore import KernelPLS, Real, SearchSpace
from deepbore.data.observations import Observations
from deepbore.labels import LabelledBatch, LabelledObservations, Labelling, Labels
from deepbore.loop.lightning import listening, new_trainer, run

TERMS, POINTS, LENGTH_SCALE = 5, 100, 0.1
NOISE, DELTA = 0.1, 0.1  # standard deviation, sigma_epsilon; 1 - DELTA is the confidence
LAMBDA = {"BORE": 0.025, "BORE++": 0.025, "GP-UCB": NOISE**2}  # tables D.1 and D.2
COLOURS = {"BORE": "#d9822b", "BORE++": "#1a7f5a", "GP-UCB": "#1f3b73"}
SPACE = SearchSpace({"x": Real(0, 1)})
NORMAL = torch.distributions.Normal(0.0, 1.0)


def kernel(x: Tensor, y: Tensor) -> Tensor:
    """RBF kernel of points on the line: n and m -> n x m."""
    return (-0.5 * ((x[:, None] - y) / LENGTH_SCALE) ** 2).exp()


@dataclass(frozen=True)
class Task:
    """One random objective on its domain.

    Attributes:
        x: the domain (n).
        f: the objective there, to minimise (n).
        norm: of f in the RKHS.
    """

    x: Tensor
    f: Tensor
    norm: float

    @classmethod
    def drawn(cls, generator: torch.Generator) -> "Task":
        """pi* = sum_i a_i k(., x_i) of norm 1 (eq. D.1, D.2), and what follows from it."""
        centres, a = torch.rand(2, TERMS, dtype=torch.float64, generator=generator)
        a = a / (a @ kernel(centres, centres) @ a).sqrt()
        x = torch.rand(POINTS, dtype=torch.float64, generator=generator)
        f = -NOISE * NORMAL.icdf(kernel(x, centres) @ a)
        inverse = torch.linalg.pinv(kernel(x, x), hermitian=True)  # as exact as double precision allows
        return cls(x, f, math.sqrt(float(f @ inverse @ f)))


class Scores(Labelling):
    """What each method learns from a value y: [y <= 0], by the fixed threshold 0, for classifiers, -y for GP-UCB."""

    def __init__(self, method: str):
        self.method = method

    def __call__(self, observations: Observations) -> Labels:
        """Labels that do not depend on the other values, so there is always something to learn."""
        values = observations.values
        z = -values if self.method == "GP-UCB" else (values <= 0).to(values)
        return Labels(z, torch.ones_like(z[:, 0]), separable=True)


class Merged(LabelledObservations):
    """Repeated points as one row each, with the mean label and their number as weight: the same fit, cheaper."""

    def labelled(self) -> LabelledBatch:
        """All distinct points with their labels as of now."""
        batch = super().labelled()
        points, row = batch.points.unique(dim=0, return_inverse=True)
        count = torch.bincount(row).to(batch.z)
        z = torch.zeros(len(points), 1).to(batch.z).index_add(0, row, batch.z) / count[:, None]
        return replace(batch, points=points, z=z, weight=count)


class Player(Callback):
    """Chooses and observes a point at the end of each epoch: a step of the bandit."""

    def __init__(self, method: str, task: Task, observations: Observations, generator: torch.Generator):
        self.method, self.task, self.observations, self.generator = method, task, observations, generator
        self.regret: list[float] = []
        self.observe(int(torch.randint(POINTS, (1,), generator=generator)))

    def observe(self, row: int) -> None:
        """Evaluates a point of the domain with noise."""
        noise = NOISE * torch.randn((), dtype=torch.float64, generator=self.generator)
        self.observations.add({"x": [float(self.task.x[row])]}, [float(self.task.f[row] + noise)])
        self.regret.append(float(self.task.f[row] - self.task.f.min()))

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        """One step; ties, such as BORE's while no label is 1, are broken at random."""
        assert isinstance(pl_module, KernelPLS)
        value = self.value(pl_module)
        best = (value == value.max()).nonzero().squeeze(-1)
        self.observe(int(best[torch.randint(len(best), (1,), generator=self.generator)]))

    @torch.no_grad()
    def value(self, classifier: KernelPLS) -> Tensor:
        """What the method maximises over the domain (n)."""
        posterior = classifier.posterior(self.task.x[:, None])
        if self.method == "BORE":
            return posterior.mean
        if self.method == "BORE++":
            return posterior.mean + posterior.beta(DELTA, norm=1.0) * posterior.std
        kappa = self.task.norm + NOISE * posterior.beta(DELTA, norm=0.0)  # lambda = NOISE^2
        return posterior.mean + kappa * posterior.std


def play(method: str, seed: int, steps: int) -> np.ndarray:
    """Instant regrets of one trial (steps)."""
    task = Task.drawn(torch.Generator().manual_seed(seed))
    observations = Observations(SPACE)
    player = Player(method, task, observations, torch.Generator().manual_seed(1000 + seed))
    classifier = KernelPLS("rbf", LENGTH_SCALE, LAMBDA[method], rows=POINTS, iterations=1)
    trainer = new_trainer()
    with listening(trainer, player):
        run(trainer, classifier, Merged(observations, Scores(method)), steps - 1)
    return np.array(player.regret)


def report(regrets: dict[str, np.ndarray]) -> None:
    """Prints means and standard errors over the trials of the final regrets."""
    steps = next(iter(regrets.values())).shape[1]
    print(f"{'after ' + str(steps):12s} {'cumulative':>16s} {'last tenth, a step':>22s} {'simple':>20s}")
    for method, r in regrets.items():
        finals = r.sum(1), r[:, -(steps // 10) :].mean(1), r.min(1)
        cells = [f"{v.mean():10.4f} +- {v.std(ddof=1) / math.sqrt(len(v)):.4f}" for v in finals]
        print(f"{method:12s}" + "  ".join(cells))


def draw(regrets: dict[str, np.ndarray], path: Path) -> None:
    """Simple, average and cumulative regret against the steps."""
    figure = Figure(figsize=(10, 3), layout="constrained")
    panels = figure.subplots(1, 3)
    for method, r in regrets.items():
        t = np.arange(1, r.shape[1] + 1)
        for axes, curves in zip(panels, (np.minimum.accumulate(r, 1), r.cumsum(1) / t, r.cumsum(1)), strict=True):
            mean, half = curves.mean(0), 1.96 * curves.std(0, ddof=1) / math.sqrt(len(curves))
            axes.fill_between(t, mean - half, mean + half, color=COLOURS[method], alpha=0.15, lw=0)
            axes.plot(t, mean, color=COLOURS[method], label=method, lw=1.6)
    for axes, title in zip(panels, ("simple regret", "average regret a step", "cumulative regret"), strict=True):
        axes.set_title(title, fontsize=9)
        axes.tick_params(labelsize=7)
        axes.spines[["top", "right"]].set_visible(False)
    panels[0].set_xscale("log")
    panels[0].legend(frameon=False, fontsize=8)
    figure.supxlabel("evaluations", fontsize=9)
    figure.savefig(path, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("picture", type=Path)
    parser.add_argument("--trials", type=int, default=10)
    parser.add_argument("--steps", type=int, default=3000)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore", module="torchmetrics")  # of trials whose first labels are all alike
    regrets = {
        method: np.stack([play(method, seed, arguments.steps) for seed in range(arguments.trials)]) for method in LAMBDA
    }
    report(regrets)
    draw(regrets, arguments.picture)


if __name__ == "__main__":
    main()
