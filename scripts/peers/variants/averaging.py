"""A variant that averages expected improvement over settings of the kernel where one alone explains too little.

docs/ablation.md has what came of it ("Averaging over settings").
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

import deepbore as db
from deepbore.classifiers.kernel.posterior import KernelModel, KernelPosterior
from deepbore.classifiers.posterior import Posterior
from deepbore.labels.datamodule import LabelledBatch

ROUGH = 0.05  # the share of the labels' variance from which on lambda counts as large
CHAINS, STEPS = 8, 3  # Markov chains of settings, and their steps in each iteration of the run
TINY = 1e-9  # a slice so short is where the chain is, up to rounding


def elliptical_slice(
    start: np.ndarray, log_likelihood: Callable[[np.ndarray], float], steps: int, generator: torch.Generator
) -> np.ndarray:
    """Where a Markov chain is after some steps, whose stationary density is N(x; 0, I) times the likelihood (d).

    Each step draws from the prior, and goes somewhere on the ellipse through there and where it is: a slice of the
    ellipse is drawn from until the likelihood is high enough, and shrinks towards where the chain is.

    Args:
        start: d.
        log_likelihood: x (d) -> its logarithm, up to a constant; -inf where x is impossible.
        steps: of the chain.
        generator: on the CPU.

    References:
        Murray, Adams & MacKay, Elliptical slice sampling, AISTATS 2010 (figure 2).
    """

    def uniform() -> float:
        return float(torch.rand((), dtype=torch.float64, generator=generator))

    x, height = start, log_likelihood(start)
    for _ in range(steps):
        other = torch.randn(len(start), dtype=torch.float64, generator=generator).numpy()
        level = height + math.log(1 - uniform())
        angle = 2 * math.pi * uniform()
        low, high = angle - 2 * math.pi, angle
        while True:
            there = x * math.cos(angle) + other * math.sin(angle)
            height = log_likelihood(there)
            if height >= level or high - low < TINY:
                break
            low, high = (angle, high) if angle < 0 else (low, angle)
            angle = low + (high - low) * uniform()
        x = there
    return x


class AveragedSettings(db.KernelPLS):
    """The most likely settings, and eight more that Markov chains draw from their posterior, where lambda is large.

    Each chain goes on from one iteration to the next. Where the kernel explains the labels there is one setting alone.

    References:
        Snoek, Larochelle & Adams, Practical Bayesian optimization of machine learning algorithms, 2012 (section 3.2).
    """

    def __init__(self) -> None:
        super().__init__()
        self.chains = list[np.ndarray]()
        self.models = list[KernelModel]()

    @property
    def is_rough(self) -> bool:
        return bool(self.theta[-1].exp() > ROUGH * self._data[:, 0].var(correction=0))

    @torch.no_grad()
    def learn(self, batch: LabelledBatch) -> dict[str, Any]:
        logged = super().learn(batch)
        most_likely = self.theta.numpy().copy()
        self.chains = [self.moved(start) for start in self.chains or [most_likely] * CHAINS] if self.is_rough else []
        self.models = []
        for theta in (*self.chains, most_likely):  # so that the last is what it was
            self.theta.copy_(torch.from_numpy(theta))
            self._remember(self._x, self._data)
            self.models.append(super().posterior(batch.points[:0]).model)
        return logged

    def moved(self, start: np.ndarray) -> np.ndarray:
        """Where a chain is some steps on from a setting (d + 2)."""
        mean, spread = self._prior.T
        return mean + spread * elliptical_slice((start - mean) / spread, self.log_likelihood, STEPS, self.generator)

    def log_likelihood(self, scores: np.ndarray) -> float:
        """The log marginal likelihood of settings, which are given in deviations of the prior from its mean."""
        theta = self._prior[:, 0] + self._prior[:, 1] * scores
        low, high = np.array(self._bounds).T
        if (theta < low).any() or (theta > high).any():
            return -math.inf
        factor, failed = torch.linalg.cholesky_ex(self._covariance(torch.from_numpy(theta)))
        if bool(failed):
            return -math.inf
        whitened = torch.linalg.solve_triangular(factor, self._data[:, :1], upper=False)
        return -float(whitened.square().sum() / 2 + factor.diagonal().log().sum())

    def posterior(self, points: Tensor) -> "AveragedPosterior | KernelPosterior":
        alone = super().posterior(points)
        return (
            AveragedPosterior(alone, [KernelPosterior(model, alone.x) for model in self.models])
            if self.chains
            else alone
        )


class AveragedPosterior(KernelPosterior):
    """A mixture in equal shares, with its mean and deviation.

    Args:
        alone: with the most likely settings.
        parts: with all, those included.
    """

    of_moments = Posterior.of_moments  # by mean and std below

    def __init__(self, alone: KernelPosterior, parts: list[KernelPosterior]):
        super().__init__(alone.model, alone.x)
        self.parts = parts

    @property
    def mean(self) -> Tensor:
        return self._means.mean(0)

    @property
    def std(self) -> Tensor:
        variance = torch.stack([part.std.square() for part in self.parts]).mean(0)
        return (variance + self._means.var(0, correction=0)).sqrt()

    @property
    def _means(self) -> Tensor:
        return torch.stack([part.mean for part in self.parts])


class AveragedImprovement(db.LogExpectedImprovement):
    """The logarithm of the mean expected improvement with all settings."""

    def __call__(self, posterior: KernelPosterior, best: Tensor | float) -> Tensor:
        if not isinstance(posterior, AveragedPosterior):
            return super().__call__(posterior, best)
        each = torch.stack([super(AveragedImprovement, self).__call__(part, best) for part in posterior.parts])
        return each.logsumexp(0) - math.log(len(each))


VARIANTS: dict[str, Callable[[], dict[str, object]]] = {
    "deepbore:averaged-settings": lambda: {"classifier": AveragedSettings(), "acquisition": AveragedImprovement()},
}
