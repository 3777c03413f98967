#!/usr/bin/env python
"""What earlier tasks save: leave one out over tables and over training runs of one family, and a task of no use.

    python scripts/transfer.py docs/results/transfer.jsonl             # resumable: what the file holds is not run again
    python scripts/transfer.py docs/results/transfer.jsonl --show      # the table only

Each problem in turn is the present task, and the others of its group are earlier ones, of 100 random rows each.

scratch      no earlier tasks
transfer     `study.add(columns, values, task=name)` for each other problem of the group
warm start   the 5 best of the earlier configurations, tasks taking turns, by `study.enqueue`: half the design
unrelated    one earlier task of 100 rows whose values were permuted at random
"""

import argparse
import os
import time
from functools import cache
from itertools import product
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import torch

import deepbore
from deepbore.data.trial import sign_of
from deepbore.problems import HPOLib, NASBench201, Problem, TrainingRun
from deepbore.problems.benchmarks.training import runs
from deepbore.space import Params
from harness.measuring import Row, complete, rows

LOGISTIC = {name: f"logistic-{name}" for name in ("cancer", "wine", "iris")}
GROUPS: dict[str, list[str]] = {
    "NASBench201": list(NASBench201.names),
    "HPOLib": list(HPOLib.names),
    "logistic regression": list(LOGISTIC),
}
METHODS = ("scratch", "transfer", "warm start", "unrelated")
TRIALS, ROWS, ENQUEUED, SEEDS = 50, 100, 5, 5
made: dict[tuple[str, str], Problem] = {}


def task(group: str, name: str) -> Problem:
    """A problem of a group, made once."""
    if (group, name) not in made:
        if group == "logistic regression":  # one family, one metric, several data sets; logistic-cancer is shipped
            runs.RUNS.setdefault(LOGISTIC[name], runs.TrainingTask(runs.LOGISTIC, name, "log loss"))
            made[group, name] = TrainingRun(LOGISTIC[name])
        else:
            made[group, name] = (NASBench201 if group == "NASBench201" else HPOLib)(name)
    return made[group, name]


def value(of: Problem, params: Params) -> float:
    """The value of a configuration; NaN where it can't be trained."""
    try:
        return float(of(params))
    except Exception:  # whatever scikit-learn says of settings that do not go together
        return float("nan")


@cache
def earlier(group: str, name: str, seed: int) -> tuple[list[Params], np.ndarray]:
    """Random configurations of a task, and their values."""
    of = task(group, name)
    points = of.space.points.sample(ROWS, torch.Generator().manual_seed(1000 * seed + sum(map(ord, name))))
    params = of.space.decode(points)
    return params, np.array([value(of, each) for each in params])


def add(study: deepbore.Study, name: str, params: list[Params], values: np.ndarray) -> None:
    """Adds results of a task to a study."""
    study.add({each: [row.get(each) for row in params] for each in study.space.names}, values, task=name)


def run(group: str, problem: str, method: str, seed: int) -> Row:
    """What a row says of one run: its values in the order of evaluation."""
    of, others = task(group, problem), [other for other in GROUPS[group] if other != problem]
    study = deepbore.Study(of.space, direction=of.direction, seed=seed)
    if method == "transfer":
        for other in others:
            add(study, other, *earlier(group, other, seed))
    elif method == "unrelated":
        known, values = earlier(group, others[seed % len(others)], seed)
        add(study, "unrelated", known, np.random.default_rng(seed).permutation(values))
    elif method == "warm start":
        for params in best_in_turns(of, [earlier(group, other, seed) for other in others]):
            study.enqueue(params)
    values, started = [], time.process_time()
    for _ in range(TRIALS):
        (trial,) = study.ask()
        values.append(value(of, trial.params))
        study.tell(trial, values[-1])
    shown = [None if np.isnan(each) else round(each, 8) for each in values]
    seconds = round((time.process_time() - started) / TRIALS, 3)
    return {"values": shown, "seconds": seconds}


def best_in_turns(of: Problem, tables: list[tuple[list[Params], np.ndarray]]) -> list[Params]:
    """The best configurations of several tasks, the best of each first, all different."""
    orders = [np.argsort(sign_of(of.direction) * values) for _, values in tables]  # NaN last
    dealt = [known[order[place]] for place in range(ROWS) for (known, _), order in zip(tables, orders, strict=True)]
    found: list[Params] = []
    for params in dealt:
        if params not in found and len(found) < ENQUEUED:
            found.append(params)
    return found


# --- what came out ---------------------------------------------------------------------------------------------------


def best_so_far(row: Row, sign: float) -> np.ndarray:
    """The best value after each evaluation, to minimise."""
    values = [np.inf if each is None else sign * each for each in row["values"]]
    return np.minimum.accumulate(values)


def reached(curve: np.ndarray, goal: float) -> int:
    """Evaluations until the goal; one more than there were where it was missed."""
    hits = np.nonzero(curve <= goal)[0]
    return int(hits[0]) + 1 if len(hits) else len(curve) + 1


def show(kept: list[Row]) -> None:
    """Evaluations to the median value of 50 from scratch (median, quartiles), and how many runs are ahead or behind."""
    print(
        "| group | method | runs | evaluations to the goal | ahead of / behind scratch at 20, at 50 | s a suggestion |"
    )
    print("|---|---|---|---|---|---|")
    for group, method in product(GROUPS, dict.fromkeys([*METHODS, *(row["method"] for row in kept)])):
        mine = [row for row in kept if row["group"] == group and row["method"] == method]
        counts, better = [], {20: [0, 0], 50: [0, 0]}
        for row in mine:
            sign = sign_of(task(group, row["problem"]).direction)
            base = {
                each["seed"]: best_so_far(each, sign)
                for each in kept
                if each["group"] == group and each["problem"] == row["problem"] and each["method"] == "scratch"
            }
            curve = best_so_far(row, sign)
            counts.append(reached(curve, float(np.median([each[-1] for each in base.values()]))))
            for at, sides in better.items():
                if row["seed"] in base:
                    sides[0] += bool(curve[at - 1] < base[row["seed"]][at - 1])
                    sides[1] += bool(curve[at - 1] > base[row["seed"]][at - 1])
        if mine:
            low, middle, high = np.quantile(counts, [0.25, 0.5, 0.75])
            sides = ", ".join(f"{a} / {b}" for a, b in better.values())
            evaluations, seconds = f"{middle:.0f} ({low:.0f} to {high:.0f})", np.mean([row["seconds"] for row in mine])
            print(f"| {group} | {method} | {len(mine)} | {evaluations} | {sides} | {seconds:.2f} |")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--show", action="store_true")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--groups", nargs="*", default=list(GROUPS))
    parser.add_argument("--methods", nargs="*", default=list(METHODS))
    args = parser.parse_args()
    wanted = [
        {"group": group, "problem": name, "method": method, "seed": seed}
        for seed, group, method in product(range(args.seeds), args.groups, args.methods)
        for name in GROUPS[group]
    ]
    show(rows(args.out) if args.show else complete(args.out, wanted, run))
