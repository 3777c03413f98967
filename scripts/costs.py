#!/usr/bin/env python
"""What knowing the costs of evaluations is worth where what they cost in all is limited.

    python scripts/costs.py docs/results/costs.jsonl             # resumable: what the file holds is not run again
    python scripts/costs.py docs/results/costs.jsonl --show      # the table only

On tasks of the suite `ground` an evaluation costs its processor seconds; good configurations are often the dear ones.
On functions it costs the exponential of a linear function of the configuration, which has nothing to do with the value
and differs by a factor of up to thirty; its direction is drawn for each seed. A run may spend sixty times what a random
configuration costs on average. Both runs of a pair have the same limit, and begin with the same design.

knowing    `Study(cost_limit=...)`, told the costs: gains are weighed by what they are expected to cost
unknowing  the same study without costs, ended by the same limit

The table has the regret of `knowing` by that of `unknowing` when half and when all is spent, regret being the distance
from the best value of any run of the task; its interval is that of the signed-rank test over tasks.
"""

import math
import os
import time
from functools import cache

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

import deepbore
from deepbore.data.trial import sign_of
from deepbore.problems import Levy, Problem
from deepbore.problems.suites import problem as named, suite
from deepbore.space import Params
from harness.measuring import Row, grid, measure_or_show
from reporting.intervals import Typical

METHODS = ("unknowing", "knowing")
HALVES = ("functions", "development")
LENGTH, SAMPLES, SEEDS = 60, 30, {"functions": 6, "development": 1}
DEAREST = 30.0  # times the cheapest, on functions
SHARES = (0.5, 1.0)  # of the limit
LEAST = 1e-3  # of the median regret after the first improvements: the least that counts
FUNCTIONS = ("branin", "hartmann6", "rosenbrock4", "levy4", "levy6", "camel")
TASKS = {**dict.fromkeys(FUNCTIONS, "functions"), **dict.fromkeys(suite("ground", half="development"), "development")}


def made(task: str) -> Problem:
    """A problem by its name."""
    return Levy(int(task[4:]), 1) if task.startswith("levy") else named(task)


def evaluated(of: Problem, params: Params, direction: np.ndarray | None) -> tuple[float, float]:
    """The value of a configuration, to minimise, and its cost; NaN where it can't be trained.

    Args:
        of: the problem.
        params: the configuration.
        direction: in which log costs rise; None for processor seconds.
    """
    began = time.process_time()
    try:
        value = sign_of(of.direction) * float(of(params))
    except Exception:  # whatever the packages say of settings that do not go together
        value = math.nan
    if direction is not None:
        return value, float(np.exp(of.space.encode([params]).numpy()[0] @ direction))
    return value, time.process_time() - began


def direction_of(of: Problem, seed: int) -> np.ndarray:
    """A random direction in which log costs rise by `DEAREST` at most."""
    drawn = np.random.default_rng(seed).normal(size=len(of.space))
    return drawn * math.log(DEAREST) / np.abs(drawn).sum()


@cache
def limit(task: str, seed: int) -> float:
    """Sixty times the mean cost of random configurations."""
    of = made(task)
    direction = direction_of(of, seed) if task in FUNCTIONS else None
    params = of.space.decode(of.space.points.sobol(SAMPLES, seed=0))
    evaluated(of, params[0], direction)  # imports
    return LENGTH * float(np.mean([evaluated(of, each, direction)[1] for each in params]))


def measure(task: str, seed: int, method: str) -> Row:
    """The best value when so much was spent, as pairs, each where the value changes."""
    of, spent, best = made(task), 0.0, math.inf
    most = limit(task, seed if task in FUNCTIONS else 0)
    direction = direction_of(of, seed) if task in FUNCTIONS else None
    study = deepbore.Study(of.space, seed=seed, **({"cost_limit": most} if method == "knowing" else {}))
    course: list[tuple[float, float]] = []
    while spent < most:
        trial = study.ask_one()
        value, cost = evaluated(of, trial.params, direction)
        spent += cost
        if value < best and spent <= most:
            best = value
            course.append((float(f"{spent:.6g}"), float(f"{best:.8g}")))
        study.tell(trial, sign_of(of.direction) * value, cost=cost if method == "knowing" else None)
    return {"limit": float(f"{most:.6g}"), "n": len(study.trials), "course": course}


# --- what came out ---------------------------------------------------------------------------------------------------


def at(row: Row, share: float) -> float:
    """The best value when a share of the limit was spent."""
    known = [value for spent, value in row["course"] if spent <= share * row["limit"]]
    return known[-1] if known else math.inf


def log_ratios(kept: list[Row], half: str, share: float) -> dict[str, list[float]]:
    """Of each task, by seed: the logarithm of the regret of knowing by that of not knowing."""
    found: dict[str, list[float]] = {}
    for task in (each for each, of in TASKS.items() if of == half):
        rows = {(row["method"], row["seed"]): row for row in kept if row["task"] == task}
        best = min((at(row, 1.0) for row in rows.values()), default=math.nan)
        if task in FUNCTIONS:
            best = sign_of(made(task).direction) * float(made(task).optimum)
        early = [row["course"][min(2, len(row["course"]) - 1)][1] - best for row in rows.values()]
        for seed in {seed for _, seed in rows}:
            pair = [rows.get((method, seed)) for method in reversed(METHODS)]
            if None not in pair:
                one, other = (max(at(row, share) - best, LEAST * float(np.median(early)), 1e-12) for row in pair)
                found.setdefault(task, []).append(math.log(one / other))
    return found


def show(kept: list[Row]) -> None:
    """The table of both halves."""
    print("| tasks | spent | ratio of regret | pairs won : lost | evaluations |")
    print("|---|---|---|---|---|")
    for half in HALVES:
        for share in SHARES:
            found = log_ratios(kept, half, share)
            each = [one for ratios in found.values() for one in ratios]
            if len(found) < 2:
                continue
            ratio = Typical.of([float(np.mean(ratios)) for ratios in found.values()])
            middle, low, high = (math.exp(each) for each in (ratio.middle, ratio.low, ratio.high))
            shown = f"{middle:.2f} [{low:.2f}, {high:.2f}]"
            n = [float(np.median([r["n"] for r in kept if r["method"] == m and r["task"] in found])) for m in METHODS]
            print(
                f"| {len(found)} of {half} | {share:.0%} | {shown} | "
                f"{sum(one < 0 for one in each)} : {sum(one > 0 for one in each)} | {n[1]:g} beside {n[0]:g} |"
            )


if __name__ == "__main__":
    wanted = [row for task, half in TASKS.items() for row in grid(task=[task], seed=range(SEEDS[half]), method=METHODS)]
    measure_or_show(__doc__, wanted, measure, show)
