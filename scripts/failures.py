#!/usr/bin/env python
"""Counts the evaluations that are lost where 30 % of the space crashes: deepbore, Optuna's TPE and random search.

    python scripts/failures.py --problems branin hartmann3 hartmann6 hpolib/protein_structure --seeds 5

The crashing region is a half space of the unit cube, {u: w.u > t}, with a random direction w for each seed and t such
that 30 % crash; of w and -w it is the one that spares the best point. A crash is an exception, as in a training run
that ends out of memory: a failed trial to deepbore, one that `catch` lets pass to Optuna. Printed for each method: how
many of 100 evaluations crashed (mean, and every seed), how many of the last 50, and the regret of the others.
"""

import argparse
import multiprocessing
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
from harness.job import Job

SHARE = 0.3
POOL = 20_000  # points that the region is laid out on


class CrashError(RuntimeError):
    """What an evaluation in the crashing region raises."""


class Crashing:
    """A problem that raises in a half space of the unit cube; keeps the regret of each call, NaN for a crash."""

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


def run(job: Job) -> list[float]:
    """The regret of each evaluation, NaN where it crashed."""
    torch.set_num_threads(1)
    crashing = Crashing(problem_of(job.problem), job.seed)
    METHODS[job.method](crashing, job.trials, job.seed)
    return crashing.regrets


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", nargs="+", default=["branin"], help="by name")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    arguments = parser.parse_args()
    print(f"| problem | method | crashed of {arguments.trials} | every seed | of the last half | regret |")
    print("|---|---|---|---|---|---|")
    with multiprocessing.get_context("spawn").Pool(arguments.processes) as pool:
        for problem in arguments.problems:
            for method in METHODS:
                jobs = [Job(problem, method, seed, arguments.trials) for seed in range(arguments.seeds)]
                regrets = np.array(pool.map(run, jobs, chunksize=1))
                crashed = np.isnan(regrets).sum(1)
                late = np.isnan(regrets[:, regrets.shape[1] // 2 :]).sum(1)
                print(
                    f"| {problem} | {method} | {statistics.mean(crashed.tolist()):.1f} | {' '.join(map(str, crashed))} "
                    f"| {statistics.mean(late.tolist()):.1f} | {np.nanmin(regrets, axis=1).mean():.2g} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
