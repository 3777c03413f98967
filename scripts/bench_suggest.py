#!/usr/bin/env python
"""What a suggestion (relabel, train, propose) costs, on one thread: against a bare loop, and against n.

    python scripts/bench_suggest.py [--rounds 15] [--heads KernelPLS RandomForest ...] [--many 1000000]

1. Lightning's share: `Study.ask` with one 2 x 32 network (100 steps of batch 64) and random candidates, beside the same
   steps and candidates in a bare torch loop.
2. The cost of classifiers at n = 100 and at many observations, in the same process.

Problems: nine ordinals of six levels, and twenty real numbers. Medians in milliseconds.
"""

import argparse
import gc
import os
import statistics
import time
from collections.abc import Callable

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import torch
from torch import nn

import deepbore as db
from deepbore import MLPClassifier, Ordinal, RandomSearch, Real, SearchSpace, Study

SPACES = {
    "d = 9 table": SearchSpace({f"x{i}": Ordinal(list(range(6))) for i in range(9)}),
    "d = 20 continuous": SearchSpace({f"x{i}": Real(0, 1) for i in range(20)}),
}
CLASSIFIERS = {
    "KernelPLS": db.KernelPLS,  # the default
    "DeepPLS": db.DeepPLS,
    "MLPClassifier": db.MLPClassifier,
    "DeepEnsemble": db.DeepEnsemble,
    "HyperDeepEnsemble": db.HyperDeepEnsemble,
    "MCDropout": db.MCDropout,
    "LaplaceGGN": db.LaplaceGGN,
    "FourierLogistic": db.FourierLogistic,
    "GPClassifier": db.GPClassifier,
    "RandomForest": db.RandomForest,
    "RelativeRatio": db.RelativeRatio,
    "XGBoost": db.XGBoost,
    "Calibrated": lambda: db.Calibrated(db.MLPClassifier()),
}


def median_ms(call: Callable[[], object], rounds: int) -> float:
    """Median wall time of a call, after two to warm up."""
    times = []
    for _ in range(rounds + 2):
        started = time.perf_counter()
        call()
        times.append(1e3 * (time.perf_counter() - started))
    return statistics.median(times[2:])


def study_with(space: SearchSpace, n: int, **settings: object) -> Study:
    """A study that knows n random results of a bowl."""
    points = space.sample(n, torch.Generator().manual_seed(0))
    columns = {name: parameter.decode(points[:, i]) for i, (name, parameter) in enumerate(space.parameters.items())}
    study = Study(space, seed=0, **settings)
    study.add(columns, (points / space.bounds[1] - 0.4).square().sum(1).numpy())
    return study


def suggest_and_tell(study: Study) -> None:
    """One suggestion, told at once."""
    (trial,) = study.ask()
    study.tell(trial, sum(np.asarray(list(trial.params.values()), dtype=float) ** 2))


def bare_suggestion(space: SearchSpace, n: int) -> Callable[[], object]:
    """The same work without deepbore's loop: 100 steps of Adam by autograd, then the best of 2000 random points."""
    generator = torch.Generator().manual_seed(0)
    features = space.features
    x = features(space.sample(n, generator)).float()
    z = (torch.arange(n) < n / 3).float()[:, None]
    net = nn.Sequential(nn.Linear(features.size, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 1))
    adam = torch.optim.Adam(net.parameters(), lr=1e-3, fused=True)

    def suggest() -> torch.Tensor:
        for rows in torch.randint(n, (100, 64), generator=generator):
            loss = nn.functional.binary_cross_entropy_with_logits(net(x[rows]), z[rows])
            adam.zero_grad(set_to_none=True)
            loss.backward()
            adam.step()
        candidates = space.sample(2000, generator)
        with torch.no_grad():
            return candidates[net(features(candidates).float()).argmax()]

    return suggest


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--heads", nargs="+", choices=CLASSIFIERS, default=["KernelPLS", "DeepPLS", "DeepEnsemble"])
    parser.add_argument("--many", type=int, default=1_000_000, help="observations, beside 100")
    arguments = parser.parse_args()
    rounds, many_rows = arguments.rounds, arguments.many
    torch.set_num_threads(1)
    print("1. Lightning's share: one 2 x 32 network, 100 steps, 2000 random candidates, n = 100")
    for name, space in SPACES.items():
        bare = median_ms(bare_suggestion(space, 100), rounds)
        study = study_with(
            space,
            100,
            classifier=MLPClassifier(),
            labels=db.ThresholdLabels(1 / 3),
            acquisition=db.ClassProbability(),
            candidates=RandomSearch(),
        )
        ours = median_ms(lambda study=study: suggest_and_tell(study), rounds)
        print(f"   {name:18s} bare {bare:6.1f} ms, ask + tell {ours:6.1f} ms: {ours / bare:.2f} times")
    print(f"2. A suggestion at n = 100 and n = {many_rows:,}, and times the bare loop of part 1 at n = 100")
    for name, space in SPACES.items():
        bare = median_ms(bare_suggestion(space, 100), rounds)
        for label in arguments.heads:
            studies = [study_with(space, n, classifier=CLASSIFIERS[label]()) for n in (100, many_rows)]
            few, many = [median_ms(lambda study=study: suggest_and_tell(study), rounds) for study in studies]
            del studies
            gc.collect()  # a study is a cycle, and a large one would stay for long
            ratios = f"{many / few:.2f} times; {few / bare:.2f} bare"
            print(f"   {name:18s} {label:20s} {few:6.1f} ms, {many:6.1f} ms: {ratios}")


if __name__ == "__main__":
    main()
