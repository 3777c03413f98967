#!/usr/bin/env python
"""What a suggestion (relabel, train, propose) costs, on one thread: against a bare loop, and against n.

    python scripts/bench_suggest.py docs/results/suggest.jsonl            # what is not there yet
    python scripts/bench_suggest.py docs/results/suggest.jsonl --show     # the table only

A row has the medians in milliseconds of `Study.ask` and `tell` with one head at several numbers of observations, and
that of a bare torch loop, all taken in turns: 100 steps of batch 64 on a 2 x 32 network, and the best of 2000 random
points. The table has them in units of that loop's, so that rows of machines and days that differ compare. `one network`
is the same steps and points by a study, so it shows what deepbore and Lightning add. Spaces: nine ordinals of six
levels, and twenty real numbers.
"""

import gc
import os
import statistics
from collections.abc import Callable
from functools import partial

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import torch
from torch import nn

import deepbore as db
from deepbore import Ordinal, RandomSearch, Real, SearchSpace, Study
from deepbore.classifiers import Classifier
from harness.measuring import Row, grid, in_turns, measure_or_show

NUMBERS = (50, 100, 180, 1000, 1_000_000)  # of observations; up to 200 of them the default has its rival
ROUNDS = 9
BARE = "the bare loop"
SPACES = {
    "nine ordinals": SearchSpace({f"x{i}": Ordinal(list(range(6))) for i in range(9)}),
    "twenty reals": SearchSpace({f"x{i}": Real(0, 1) for i in range(20)}),
}
HEADS: dict[str, Callable[[], Classifier]] = {
    "KernelPLS": db.KernelPLS,  # the default
    "KernelPLS without its rival": lambda: db.KernelPLS(additive=False),
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


def settings(head: str) -> dict[str, object]:
    """Those of a study with a head; of `one network`, all that it takes to do what the bare loop does."""
    if head in HEADS:
        return {"classifier": HEADS[head]()}
    labels, acquisition = db.ThresholdLabels(1 / 3), db.ClassProbability()
    classifier, candidates = db.MLPClassifier(), RandomSearch()
    return {"classifier": classifier, "labels": labels, "acquisition": acquisition, "candidates": candidates}


METHODS = ["one network", *HEADS]
WANTED = grid(space=list(SPACES), head=METHODS)


def study_with(space: SearchSpace, n: int, **settings: object) -> Study:
    """A study that knows n random results of a bowl."""
    points = space.points.sample(
        n, torch.Generator().manual_seed(1)
    )  # the study draws from seed 0, and wants new points
    columns = {name: parameter.decode(points[:, i]) for i, (name, parameter) in enumerate(space.parameters.items())}
    study = Study(space, seed=0, **settings)
    study.add(columns, (points / space.points.bounds[1] - 0.4).square().sum(1).numpy())
    return study


def suggest_and_tell(study: Study, q: int = 1) -> None:
    """One suggestion of q points, told at once."""
    for trial in study.ask(q):
        study.tell(trial, sum(np.asarray(list(trial.params.values()), dtype=float) ** 2))


def bare_suggestion(space: SearchSpace, n: int) -> Callable[[], object]:
    """The same work without deepbore's loop: 100 steps of Adam by autograd, then the best of 2000 random points."""
    generator = torch.Generator().manual_seed(0)
    features = space.points.features
    x = features(space.points.sample(n, generator)).float()
    z = (torch.arange(n) < n / 3).float()[:, None]
    net = nn.Sequential(nn.Linear(features.size, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 1))
    adam = torch.optim.Adam(net.parameters(), lr=1e-3, fused=True)

    def suggest() -> torch.Tensor:
        for drawn in torch.randint(n, (100, 64), generator=generator):
            loss = nn.functional.binary_cross_entropy_with_logits(net(x[drawn]), z[drawn])
            adam.zero_grad(set_to_none=True)
            loss.backward()
            adam.step()
        candidates = space.points.sample(2000, generator)
        with torch.no_grad():
            return candidates[net(features(candidates).float()).argmax()]

    return suggest


def measured(space: str, head: str) -> Row:
    """Milliseconds by the number of observations, and of the bare loop."""
    torch.set_num_threads(1)
    studies = [study_with(SPACES[space], n, **settings(head)) for n in NUMBERS]
    calls: dict[str, Callable[[], object]] = {
        str(n): partial(suggest_and_tell, study) for n, study in zip(NUMBERS, studies, strict=True)
    }
    found = in_turns({**calls, BARE: bare_suggestion(SPACES[space], 100)}, ROUNDS, warm_up=2)
    del studies, calls
    gc.collect()  # a study is a cycle, and a large one would stay for long
    return {"ms": {name: round(1e3 * seconds, 1) for name, seconds in found.items()}}


def show(kept: list[Row]) -> None:
    times = {(row["space"], row["head"]): row["ms"] for row in kept}
    numbers = [str(n) for n in NUMBERS]
    columns = [f"{space}, n = {f'{int(n):,}'.replace(',', ' ')}" for space in SPACES for n in numbers]
    print(f"| | {' | '.join(columns)} |")
    print("|---|" + "---|" * len(columns))
    for head in METHODS:
        of_all = [times.get((space, head), {}) for space in SPACES]
        if not any(of_all):
            continue
        units = [f"{ms[n] / ms[BARE]:.2f}" if n in ms else "" for ms in of_all for n in numbers]
        print(f"| {head} | {' | '.join(units)} |")
    bare = sorted(ms[BARE] for ms in times.values())
    print(f"{BARE}: {bare[0]:.0f} to {bare[-1]:.0f} ms, median {statistics.median(bare):.0f}")


if __name__ == "__main__":
    measure_or_show(__doc__, WANTED, measured, show)
