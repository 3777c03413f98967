#!/usr/bin/env python
"""Which model knows best which offspring of an evolution strategy is good: what `Evolution` screens draws by.

An evolution strategy (`deepbore.strategies.cma_es`) begins in the middle of a problem of the suite `thousands`. Each
model learns ranks of its first n trials, of all or of the best 200 and the newest 200 alone, and scores the next 120. A
row of JSON: problem, model, rows, n, seed, the rank correlation with the outcomes within a generation, which is what
screening needs, the mean over the generations, and CPU seconds.

    python scripts/screening.py docs/results/screening.jsonl
    python scripts/screening.py docs/results/screening.jsonl --show
"""

import argparse
import time
import warnings
from collections import defaultdict
from functools import cache, partial
from pathlib import Path

import numpy as np
import torch
from scipy.stats import spearmanr

import deepbore as db
from deepbore.classifiers import Classifier
from deepbore.classifiers.networks.network import Training
from deepbore.labels import LabelledBatch
from deepbore.problems import suites
from deepbore.strategies.cma_es import CMAES
from deepbore.strategies.evolution import shares
from harness.measuring import Row, complete, grid, rows
from peers.variants.deep_kernel import DeepKernel

NEXT = 120
SIGMA = 0.2
SOME = 200  # best, and newest
EPOCHS = 10  # of networks, of 120 steps
PROBLEMS = ("levy20", "rastrigin20-straight", "f17-40", "f20-80", "pushing", "lasso-simple")
TRAINING = Training(steps=120, batch_size=128, learning_rate=2e-3)
MODELS = {
    "KernelPLS": db.KernelPLS,
    "DeepPLS": partial(db.DeepPLS, (128, 128), "silu", training=TRAINING),
    "DeepEnsemble": partial(db.DeepEnsemble, (128, 128), "silu", members=3, training=TRAINING),
    "DeepKernel": partial(DeepKernel, training=TRAINING),
}


@cache
def evolved(problem_name: str, seed: int, n: int) -> tuple[torch.Tensor, torch.Tensor, int]:
    """Points and values of the first n trials of an evolution strategy, and how many make a generation."""
    problem = suites.problem(f"thousands/{problem_name}")
    sign = -1.0 if problem.direction == "maximize" else 1.0
    search = CMAES(torch.full((len(problem.space),), 0.5, dtype=torch.float64), SIGMA)
    generator = torch.Generator().manual_seed(seed)
    points, values = [], []
    while sum(map(len, points)) < n:
        drawn = search.offspring(search.size, generator)
        found = torch.tensor([sign * float(problem(each)) for each in problem.space.decode(drawn)], dtype=torch.float64)
        search.adapt(drawn, found)
        points.append(drawn)
        values.append(found)
    return torch.cat(points)[:n], torch.cat(values)[:n], search.size


def within(scores: np.ndarray, values: np.ndarray, size: int) -> float:
    """The rank correlation of scores and values within a generation, the mean over all."""
    starts = range(0, len(values) - size + 1, size)
    return float(np.nanmean([spearmanr(scores[i : i + size], -values[i : i + size])[0] for i in starts]))


def learned(model: Classifier, batch: LabelledBatch) -> None:
    """Trains a model on a batch: a network for some epochs, a kernel once."""
    for _ in range(1 if model.closed_form else EPOCHS):
        model.fit(batch)


def run(problem: str, model: str, of: str, n: int, seed: int) -> Row:
    """What a row says."""
    points, values, size = evolved(problem, seed, n + NEXT)
    chosen = torch.arange(n) if of == "all" else torch.cat([values[:n].argsort()[:SOME], torch.arange(n - SOME, n)])
    chosen = chosen.unique()
    batch = LabelledBatch(points[chosen], shares(values[chosen]).float()[:, None], torch.ones(len(chosen)))
    classifier = MODELS[model]()
    classifier.generator = torch.Generator().manual_seed(seed)
    classifier.bind(suites.problem(f"thousands/{problem}").space)
    start = time.process_time()
    learned(classifier, batch)
    with torch.no_grad():
        scores = classifier.posterior(points[n:]).mean.double().numpy()
    cpu = round(time.process_time() - start, 2)
    return {"within": round(within(scores, values[n:].numpy(), size), 3), "cpu": cpu}


def show(path: Path) -> None:
    """A table: the correlation of each model by problem, the mean over seeds, and the median of CPU seconds."""
    found: dict[tuple[int, str, str], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    cpu: dict[tuple[int, str, str], list[float]] = defaultdict(list)
    for row in rows(path):
        key = row["n"], row["of"], row["model"]
        found[key][row["problem"]].append(row["within"])
        cpu[key].append(row["cpu"])
    print("| trials | learned | model | " + " | ".join(PROBLEMS) + " | mean | CPU s |")
    print("|---" * (len(PROBLEMS) + 5) + "|")
    for (n, of, model), by in sorted(found.items()):
        means = [float(np.mean(by[problem])) if by[problem] else float("nan") for problem in PROBLEMS]
        cells = [f"{each:.2f}" for each in [*means, float(np.mean(means))]]
        print(f"| {n} | {of} | {model} | " + " | ".join(cells) + f" | {np.median(cpu[n, of, model]):.1f} |")


def main() -> None:
    """Runs what is missing."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--show", action="store_true")
    given = parser.parse_args()
    if given.show:
        show(given.file)
        return
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    wanted = grid(seed=range(given.seeds), n=(500, 1000), problem=PROBLEMS, model=tuple(MODELS), of=("all", "some"))
    complete(given.file, wanted, run)


if __name__ == "__main__":
    main()
