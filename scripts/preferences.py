#!/usr/bin/env python
"""How far comparisons lead: 50 comparisons of pairs by a hidden utility, minus a test function, which nobody states.

    python scripts/preferences.py docs/results/preferences.jsonl           # resumable
    python scripts/preferences.py docs/results/preferences.jsonl --show    # the table only

pairs          two new trials are asked for and compared with each other: 100 trials
with the best  one new trial is asked for and compared with the best by utility so far: 51 trials
two and best   two new trials are compared, and the preferred one with the best so far: 52 trials
random pairs   the same as pairs, with random configurations
random, best   the same as with the best, with random configurations: the best of 51
values         51 trials of the default, which is told values: what cannot be reached

A row has the regret of the best by utility after 10, 20, ..., 50 comparisons, and of `study.recommended` at the end.
"""

import os
import time
from collections.abc import Callable, Iterator

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import torch

import deepbore
from deepbore import Study, Trial
from deepbore.problems import Branin, Hartmann, Problem
from harness.measuring import Row, grid, measure_or_show

PROBLEMS: dict[str, Callable[[], Problem]] = {
    "branin": Branin,
    "hartmann3": lambda: Hartmann(3),
    "hartmann6": lambda: Hartmann(6),
}
COMPARISONS, AT, SEEDS = 50, (10, 20, 30, 40, 50), range(5)


class Person:
    """Prefers what has the smaller value; counts how often it was asked."""

    def __init__(self, problem: Problem, study: Study):
        self.problem, self.study, self.n = problem, study, 0

    def compare(self, one: Trial, other: Trial) -> Trial:
        """Tells the study, and gives the preferred one."""
        self.n += 1
        better, worse = (one, other) if self.problem(one.params) <= self.problem(other.params) else (other, one)
        self.study.prefer(better, worse)
        return better


def pairs(person: Person) -> Iterator[None]:
    while True:
        person.compare(*person.study.ask(2))
        yield


def with_the_best(person: Person) -> Iterator[None]:
    person.compare(*person.study.ask(2))
    yield
    while True:
        person.compare(*person.study.ask(), person.study.best_trial)
        yield


def two_and_best(person: Person) -> Iterator[None]:
    person.compare(*person.study.ask(2))
    yield
    while True:
        winner = person.compare(*person.study.ask(2))
        yield
        person.compare(winner, person.study.best_trial)
        yield


WAYS = {"pairs": pairs, "with the best": with_the_best, "two and best": two_and_best}
METHODS = {  # the way of comparing, and whether configurations are random
    "pairs": ("pairs", False),
    "with the best": ("with the best", False),
    "two and best": ("two and best", False),
    "random pairs": ("pairs", True),
    "random, best": ("with the best", True),
}
WANTED = grid(seed=SEEDS, problem=PROBLEMS, method=[*METHODS, "values"])


def run(problem: str, method: str, seed: int) -> Row:
    """What a row says of one run."""
    function, started = PROBLEMS[problem](), time.process_time()
    found = told(function, seed) if method == "values" else compared(function, method, seed)
    seconds = round(time.process_time() - started, 2)
    return {**found, "seconds": seconds, "version": f"deepbore {deepbore.__version__}"}


def compared(problem: Problem, method: str, seed: int) -> Row:
    way, is_random = METHODS[method]
    study = Study(problem.space, seed=seed, preferences=True)
    person = Person(problem, study)
    if is_random:
        study = _with_random(study, seed)
    regrets = []
    for _ in WAYS[way](person):
        if person.n in AT:
            regrets.append(regret(problem, study.best_trial))
        if person.n == COMPARISONS:
            break
    recommended = study.best_trial if is_random else study.recommended
    return {"regrets": regrets, "recommended": regret(problem, recommended)}


def _with_random(study: Study, seed: int) -> Study:
    """The study with all that it will ask for enqueued: uniform configurations, where its own design is Sobol's."""
    points = study.space.points.sample(2 * COMPARISONS + 2, torch.Generator().manual_seed(seed))
    for params in study.space.decode(points):
        study.enqueue(params)
    return study


def told(problem: Problem, seed: int) -> Row:
    study, regrets = Study(problem.space, seed=seed), []
    for n in range(COMPARISONS + 1):
        (trial,) = study.ask()
        study.tell(trial, problem(trial.params))
        if n in AT:
            regrets.append(regret(problem, study.best_trial))
    return {"regrets": regrets, "recommended": regret(problem, study.recommended)}


def regret(problem: Problem, trial: Trial | None) -> float:
    assert trial is not None
    return float(f"{problem(trial.params) - problem.optimum:.4g}")


def show(kept: list[Row]) -> None:
    print("| regret, median (quartiles) | " + " | ".join(PROBLEMS) + " |")
    print("|---|" + "---|" * len(PROBLEMS))
    for method in [*METHODS, "values"]:
        for what, get in (("best", lambda row: row["regrets"][-1]), ("recommended", lambda row: row["recommended"])):
            cells = []
            for problem in PROBLEMS:
                found = [get(row) for row in kept if (row["problem"], row["method"]) == (problem, method)]
                low, middle, high = np.quantile(found, [0.25, 0.5, 0.75]) if found else [np.nan] * 3
                cells.append(f"{middle:.3g} ({low:.2g} to {high:.2g})")
            print(f"| {method}, {what} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    measure_or_show(__doc__, WANTED, run, show)
