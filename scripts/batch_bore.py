#!/usr/bin/env python
"""Batch BORE in batches of ten (Oliveira et al. 2022, figures 1 and E.1): curves for a picture, and their ends.

    python scripts/batch_bore.py functions docs/batch_functions.png
    python scripts/batch_bore.py rosenbrock docs/batch_rosenbrock.png

- functions: simple regret of batch BORE with the settings of appendix D.2 (a network of 2 x 32 units, one threshold
  at gamma 1/4, SVGD on the class probability), of deepbore's defaults, and of random search.
- rosenbrock: cumulative regret of batch BORE and BORE++ with appendix E's classifier (300 random Fourier features by
  expectation maximisation, second-order SVGD; BORE++ with beta_t = 3) in 3, 4 and 5 dimensions, from values with noise
  of variance 1e-4.

SVGD is deepbore's, which starts from draws and so needs 100 steps (see `SVGDCandidates`). Bands are 95% confidence
intervals over the seeds.
"""

import argparse
import math
import multiprocessing
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import torch
from matplotlib.figure import Figure

import deepbore as db
from deepbore import problems
from deepbore.acquisition import Acquisition
from deepbore.classifiers import Classifier

Q, N_INITIAL, NOISE = 10, 10, 1e-2
Settings = dict[str, object]
ELU = {"hartmann 3", "camel"}  # where the paper's network has ELU in the place of ReLU

PROBLEMS: dict[str, dict[str, Callable[[], problems.Problem]]] = {
    "functions": {
        "branin": problems.Branin,
        "camel": problems.SixHumpCamel,
        "hartmann 3": lambda: problems.Hartmann(3),
        "hartmann 6": lambda: problems.Hartmann(6),
    },
    "rosenbrock": {f"rosenbrock {d}": lambda d=d: problems.Rosenbrock(d) for d in (3, 4, 5)},
}


def by_network(problem: str) -> Settings:
    """Batch BORE with appendix D.2's network."""
    activation = "elu" if problem in ELU else "relu"
    network = db.MLPClassifier(hidden=(32, 32), activation=activation, training=db.Training(learning_rate=1e-3))
    return by_svgd(network, db.ClassProbability())


def by_fourier(acquisition: Acquisition) -> Settings:
    """Batch BORE or BORE++ with appendix E's classifier."""
    return by_svgd(db.FourierLogistic(300), acquisition, optimizer="lbfgs")


def by_svgd(classifier: Classifier, acquisition: Acquisition, optimizer: str = "adadelta") -> Settings:
    """SVGD on an acquisition, and labels by one threshold."""
    labels, candidates = db.ThresholdLabels(1 / 4), db.SVGDCandidates(optimizer=optimizer)
    return {"classifier": classifier, "acquisition": acquisition, "labels": labels, "candidates": candidates}


METHODS: dict[str, dict[str, Callable[[str], Settings]]] = {
    "functions": {"deepbore": lambda _: {}, "batch BORE": by_network},
    "rosenbrock": {
        "batch BORE++": lambda _: by_fourier(db.UpperConfidenceBound(3)),
        "batch BORE": lambda _: by_fourier(db.ClassProbability()),
    },
}
COLOURS = {"deepbore": "#1a7f5a", "batch BORE": "#d9822b", "batch BORE++": "#1f3b73", "random": "#9aa0a6"}


@dataclass(frozen=True)
class Job:
    """One run."""

    figure: str
    problem: str
    method: str
    seed: int
    iterations: int


def regrets(job: Job) -> np.ndarray:
    """Regret of every evaluation of a run, before noise."""
    torch.set_num_threads(1)
    problem = PROBLEMS[job.figure][job.problem]()
    count = N_INITIAL + Q * job.iterations
    if job.method == "random":
        points = problem.space.sample(count, torch.Generator().manual_seed(job.seed))
        return problem.regret([problem(params) for params in problem.space.decode(points)])
    settings = METHODS[job.figure][job.method](job.problem)
    noise = np.random.default_rng(job.seed).normal(scale=NOISE if job.figure == "rosenbrock" else 0.0, size=count)
    study = db.Study(problem.space, seed=job.seed, n_initial=N_INITIAL, **settings)  # type: ignore[arg-type]  # by name
    values: list[float] = []
    for _ in range(job.iterations + 1):
        for trial in study.ask(Q):
            values.append(problem(trial.params))
            study.tell(trial, values[-1] + noise[len(values) - 1])
    return problem.regret(values)


def draw(curves: dict[str, dict[str, np.ndarray]], cumulative: bool, path: Path) -> None:
    """A panel for each problem, a line for each method; curves[problem][method] is seeds x evaluations."""
    figure = Figure(figsize=(2.9 * len(curves), 2.9), layout="constrained")
    panels = figure.subplots(1, len(curves), squeeze=False)[0]
    for axes, (problem, methods) in zip(panels, curves.items(), strict=True):
        for method, r in methods.items():
            t = np.arange(1, r.shape[1] + 1)
            mean, half = r.mean(0), 1.96 * r.std(0, ddof=1) / math.sqrt(len(r))
            low = mean - half if cumulative else np.maximum(mean - half, mean / 10)
            axes.fill_between(t, low, mean + half, color=COLOURS[method], alpha=0.15, lw=0)
            axes.plot(t, mean, color=COLOURS[method], label=method, lw=1.6)
        axes.set_title(problem, fontsize=9)
        axes.set_yscale("linear" if cumulative else "log")
        axes.tick_params(labelsize=7)
        axes.spines[["top", "right"]].set_visible(False)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=len(labels), frameon=False, fontsize=8)
    figure.supxlabel("evaluations", fontsize=9)
    figure.supylabel("cumulative regret" if cumulative else "simple regret", fontsize=9)
    figure.savefig(path, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("figure", choices=PROBLEMS)
    parser.add_argument("picture", type=Path)
    parser.add_argument("--iterations", type=int, default=200, help="batches after the initial one")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    arguments = parser.parse_args()
    cumulative = arguments.figure == "rosenbrock"
    methods = [*METHODS[arguments.figure], *([] if cumulative else ["random"])]
    curves: dict[str, dict[str, np.ndarray]] = {}
    with multiprocessing.get_context("spawn").Pool(arguments.processes) as pool:
        for problem in PROBLEMS[arguments.figure]:
            for method in methods:
                seeds = range(arguments.seeds)
                jobs = [Job(arguments.figure, problem, method, seed, arguments.iterations) for seed in seeds]
                r = np.stack(pool.map(regrets, jobs, chunksize=1))
                r = r.cumsum(1) if cumulative else np.minimum.accumulate(r, 1)
                curves.setdefault(problem, {})[method] = r
                ends = " ".join(f"{end:.3g}" for end in r[:, -1])
                print(f"{problem:12s} {method:13s} {r[:, -1].mean():.3g} [{ends}]", flush=True)
    draw(curves, cumulative, arguments.picture)


if __name__ == "__main__":
    main()
