#!/usr/bin/env python
"""Runs where evaluations crash, in a region or by chance: deepbore, Optuna's TPE and random search.

    python scripts/failures.py docs/results/failures.jsonl            # goes on where it stopped
    python scripts/failures.py docs/results/failures.jsonl --show     # the table only

How evaluations crash, anew for each seed:

    region     in 30 % of the space: a half space of encoded points, {u: w.u > t}, in a random direction w; of w and -w
               it is the one that spares the best point
    cliff      in a half space with the best point in it: t is w.u of that, less .15 of the deviation of w.u, so the
               best value to be had is at the edge
    chance     one evaluation in ten, wherever it is

In encoded points a real parameter spans 1 and one of k levels k - 1. A crash is an exception, as in a training run that
ends out of memory: a failed trial to deepbore, one that `catch` lets pass to Optuna. `deepbore, all bad` is deepbore
with `KernelPLS(crashes=False)`, to which each failure is bad, wherever it is. A row says of each run how many of 100
evaluations crashed, how many of the last 50, and the least regret of the others after 25, 50 and 100. In the table that
of a cliff is counted from the best value that any run with the same seed has found.
"""

import math
import os
import statistics
import warnings
from collections.abc import Callable

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import torch

from deepbore import KernelPLS, Study
from deepbore.problems import Problem
from deepbore.problems.suites import problem as problem_of
from deepbore.space import Params
from harness.measuring import Row, grid, measure_or_show
from reporting.intervals import Typical

COCO = ["bbob/f08/i04/d05", "bbob/f10/i04/d05", "bbob/f15/i04/d05", "bbob/f20/i04/d05"]
MIXED = ["bbob-mixint/f08/i04/d05", "bbob-mixint/f15/i04/d05"]
PROBLEMS = ["branin", "hartmann3", "hartmann6", "hpolib/protein_structure", *COCO, *MIXED]
SEEDS, TRIALS, SHOWN = 5, 100, (25, 50, 100)
SHARE, CHANCE, BEFORE = 0.3, 0.1, 0.15  # of the space; of the evaluations; in deviations of w.u
POOL = 20_000  # points that the region is laid out on
LEAST = 1e-8  # regret that counts


class CrashError(RuntimeError):
    """What an evaluation raises that crashes."""


class Crashing:
    """A problem some of whose evaluations raise; keeps the regret of each call, NaN for a crash."""

    def __init__(self, problem: Problem, how: str, seed: int):
        self.problem, self.how, self.regrets = problem, how, list[float]()
        self.chance = np.random.default_rng(seed)
        generator = torch.Generator().manual_seed(1000 + seed)
        pool = problem.space.points.sample(POOL, generator)
        regrets = problem.regret([problem(params) for params in problem.space.decode(pool)])
        best = pool[int(np.argmin(regrets))]
        self.w = torch.randn(pool.shape[1], dtype=pool.dtype, generator=generator)
        if how == "cliff":
            self.w = self.w if best @ self.w > (pool @ self.w).median() else -self.w
            self.t = best @ self.w - BEFORE * (pool @ self.w).std()
        else:
            self.w = -self.w if best @ self.w > (pool @ self.w).quantile(1 - SHARE) else self.w
            self.t = (pool @ self.w).quantile(1 - SHARE)

    def __call__(self, params: Params) -> float:
        (point,) = self.problem.space.encode([params])
        crashed = self.chance.random() < CHANCE if self.how == "chance" else bool(point @ self.w > self.t)
        value = self.problem(params)
        self.regrets.append(math.nan if crashed else float(self.problem.regret(value)))
        if crashed:
            raise CrashError
        return value


def by_deepbore(crashing: Crashing, trials: int, seed: int, crashes: bool = True) -> None:
    """The defaults."""
    space, direction = crashing.problem.space, crashing.problem.direction
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # one for each failure
        Study(space, direction=direction, seed=seed, classifier=KernelPLS(crashes=crashes)).optimize(crashing, trials)


def all_bad(crashing: Crashing, trials: int, seed: int) -> None:
    """deepbore, to which each failure is bad."""
    by_deepbore(crashing, trials, seed, crashes=False)


def by_tpe(crashing: Crashing, trials: int, seed: int) -> None:
    """Optuna's default sampler; ordinals and categories are its categorical parameters."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)

    def objective(trial: optuna.Trial) -> float:
        params = {}
        for name, p in crashing.problem.space.parameters.items():
            if p.kind == "real":
                params[name] = trial.suggest_float(name, p.low, p.high, log=p.log)
            elif p.kind == "integer":
                params[name] = trial.suggest_int(name, p.low, p.high, log=p.log)
            else:
                params[name] = trial.suggest_categorical(name, p.choices)
        return crashing(params)

    sampler = optuna.samplers.TPESampler(seed=seed)
    study = optuna.create_study(sampler=sampler, direction=crashing.problem.direction)
    study.optimize(objective, n_trials=trials, catch=(CrashError,))


def by_chance(crashing: Crashing, trials: int, seed: int) -> None:
    """Random search."""
    points = crashing.problem.space.points.sample(trials, torch.Generator().manual_seed(seed))
    for params in crashing.problem.space.decode(points):
        try:
            crashing(params)
        except CrashError:
            continue


METHODS: dict[str, Callable[[Crashing, int, int], None]] = {
    "deepbore": by_deepbore,
    "deepbore, all bad": all_bad,
    "Optuna TPE": by_tpe,
    "random": by_chance,
}
HOW = ("region", "cliff", "chance")
WANTED = grid(how=HOW, problem=PROBLEMS, seed=range(SEEDS), method=list(METHODS), trials=[TRIALS])


def run(how: str, problem: str, seed: int, method: str, trials: int) -> Row:
    """How many evaluations crash, and how good the best of the others is."""
    torch.set_num_threads(1)
    crashing = Crashing(problem_of(problem), how, seed)
    METHODS[method](crashing, trials, seed)
    crashed = np.isnan(crashing.regrets)
    best = np.fmin.accumulate(crashing.regrets)
    late = int(crashed[trials // 2 :].sum())
    return {
        "crashed": int(crashed.sum()),
        "late": late,
        "regret": [float(f"{best[min(n, trials) - 1]:.6g}") for n in SHOWN],
    }


Regrets = dict[tuple[str, int], list[float]]  # of each problem and seed, after 25, 50 and 100 evaluations


def regrets(kept: list[Row], how: str) -> dict[str, Regrets]:
    """By method, none below a tenth of the problem's least above 0; on a cliff from the best value of any run on."""
    mine = [row for row in kept if row["how"] == how]
    best = dict[tuple[str, int], float]()
    for row in mine:
        key = row["problem"], row["seed"]
        best[key] = min(best.get(key, math.inf), *row["regret"]) if how == "cliff" else 0.0
    found: dict[str, Regrets] = {method: {} for method in METHODS}
    for row in mine:
        key = row["problem"], row["seed"]
        found[row["method"]][key] = [each - best[key] for each in row["regret"]]
    for problem in PROBLEMS:
        some = [each for method in found.values() for key in method if key[0] == problem for each in method[key]]
        least = max(LEAST, min((each for each in some if each > 0), default=0.0) / 10)
        for method in found.values():
            method |= {key: [max(each, least) for each in method[key]] for key in method if key[0] == problem}
    return found


def compared(mine: Regrets, other: Regrets, after: int) -> str:
    """What is typical of problems: the ratio of the regrets with the same seed, with its interval."""
    both = mine.keys() & other.keys()
    problems = sorted({problem for problem, _ in both})
    if not problems:
        return "–"
    logs = [
        statistics.mean(math.log(mine[key][after] / other[key][after]) for key in both if key[0] == problem)
        for problem in problems
    ]
    ratio = Typical.of(logs)
    return f"{math.exp(ratio.middle):.2g} [{math.exp(ratio.low):.2g}, {math.exp(ratio.high):.2g}]"


def show(kept: list[Row]) -> None:
    after = " | ".join(f"@{n}" for n in SHOWN)
    print(f"| crashes | method | of {TRIALS}, mean | of the last half, median | deepbore's regret by its {after} |")
    print("|---|---|---|---|---|---|---|")
    for how in HOW:
        found = regrets(kept, how)
        for method in METHODS:
            mine = [row for row in kept if (row["how"], row["method"]) == (how, method)]
            if not mine:
                continue
            crashed = statistics.mean(row["crashed"] for row in mine)
            late = statistics.median(row["late"] for row in mine)
            ratios = [compared(found["deepbore"], found[method], after) for after in range(len(SHOWN))]
            shown = " | ".join([""] * len(SHOWN) if method == "deepbore" else ratios)
            print(f"| {how} | {method} | {crashed:.1f} | {late:g} | {shown} |")


if __name__ == "__main__":
    measure_or_show(__doc__, WANTED, run, show)
