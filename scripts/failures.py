#!/usr/bin/env python
"""Counts the evaluations that are lost where 30 % of the space crashes: deepbore, Optuna's TPE and random search.

    python scripts/failures.py docs/results/failures.jsonl            # goes on where it stopped
    python scripts/failures.py docs/results/failures.jsonl --show     # the table only

The crashing region is a half space of encoded points, {u: w.u > t}, in which a real parameter spans 1 and one of k
levels k - 1; it has a random direction w for each seed, and t is such that 30 % crash; of w and -w it is the one that
spares the best point. A crash is an exception, as in a training run that ends out of memory: a failed trial to
deepbore, one that `catch` lets pass to Optuna. A row says of each run how many of 100 evaluations crashed, how many of
the last 50, and the least regret of the others.
"""

import os
import statistics
import warnings
from collections.abc import Callable

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import torch

from deepbore import Study
from deepbore.problems import Problem
from deepbore.problems.suites import problem as problem_of
from deepbore.space import Params
from harness.measuring import Row, grid, measure_or_show

PROBLEMS = ["branin", "hartmann3", "hartmann6", "hpolib/protein_structure"]
SEEDS, TRIALS = 5, 100
SHARE = 0.3
POOL = 20_000  # points that the region is laid out on


class CrashError(RuntimeError):
    """What an evaluation in the crashing region raises."""


class Crashing:
    """A problem that raises in a half space of encoded points; keeps the regret of each call, NaN for a crash."""

    def __init__(self, problem: Problem, seed: int):
        self.problem, self.regrets = problem, list[float]()
        generator = torch.Generator().manual_seed(1000 + seed)
        pool = problem.space.sample(POOL, generator)
        regrets = problem.regret([problem(params) for params in problem.space.decode(pool)])
        best = pool[int(np.argmin(regrets))]
        self.w = torch.randn(pool.shape[1], dtype=pool.dtype, generator=generator)
        if best @ self.w > (pool @ self.w).quantile(1 - SHARE):
            self.w = -self.w
        self.t = (pool @ self.w).quantile(1 - SHARE)

    def __call__(self, params: Params) -> float:
        (point,) = self.problem.space.encode([params])
        crashed = bool(point @ self.w > self.t)
        value = self.problem(params)
        self.regrets.append(np.nan if crashed else float(self.problem.regret(value)))
        if crashed:
            raise CrashError
        return value


def by_deepbore(crashing: Crashing, trials: int, seed: int) -> None:
    """The defaults."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # one for each failure
        Study(crashing.problem.space, direction=crashing.problem.direction, seed=seed).optimize(crashing, trials)


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
    points = crashing.problem.space.sample(trials, torch.Generator().manual_seed(seed))
    for params in crashing.problem.space.decode(points):
        try:
            crashing(params)
        except CrashError:
            continue


METHODS: dict[str, Callable[[Crashing, int, int], None]] = {
    "deepbore": by_deepbore,
    "Optuna TPE": by_tpe,
    "random": by_chance,
}


WANTED = grid(problem=PROBLEMS, method=list(METHODS), seed=range(SEEDS), trials=[TRIALS])


def run(problem: str, method: str, seed: int, trials: int) -> Row:
    """How many evaluations crash, and how good the best of the others is."""
    torch.set_num_threads(1)
    crashing = Crashing(problem_of(problem), seed)
    METHODS[method](crashing, trials, seed)
    crashed = np.isnan(crashing.regrets)
    late = int(crashed[trials // 2 :].sum())
    return {"crashed": int(crashed.sum()), "late": late, "regret": float(f"{np.nanmin(crashing.regrets):.4g}")}


def show(kept: list[Row]) -> None:
    print(f"| problem | method | crashed of {TRIALS}, mean | every seed | of the last half, median | regret, median |")
    print("|---|---|---|---|---|---|")
    for problem in PROBLEMS:
        for method in METHODS:
            mine = [row for row in kept if (row["problem"], row["method"]) == (problem, method)]
            if not mine:
                continue
            crashed = [row["crashed"] for row in mine]
            late, regret = (statistics.median(row[name] for row in mine) for name in ("late", "regret"))
            every = " ".join(map(str, crashed))
            print(f"| {problem} | {method} | {statistics.mean(crashed):.1f} | {every} | {late:g} | {regret:.2g} |")


if __name__ == "__main__":
    measure_or_show(__doc__, WANTED, run, show)
