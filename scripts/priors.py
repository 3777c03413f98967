#!/usr/bin/env python
"""What a prior of the best configuration is worth, and what a wrong one costs.

    python scripts/priors.py docs/results/priors.jsonl             # resumable: what the file holds is not run again
    python scripts/priors.py docs/results/priors.jsonl --show      # the tables only

Four functions and six training tasks for development, 60 evaluations each.

none     no prior
right    every parameter has one that holds: its centre is drawn around the best known value with the spread it says, a
         tenth of the range; of a choice the best known one has seven tenths of the weight, the others share the rest
wrong    the same at the end of the range that is farther from the best known value; of a choice another one has it
default  the centres of `right` as `default=` alone, which are evaluated first, and believed a little
far      the centres of `wrong` as `default=` alone

The best known configuration is the best of the other seeds' runs without a prior. `beta` is the number of trials after
which the prior counts once. A regret below a thousandth of the median one after ten evaluations without a prior counts
as that.
"""

import dataclasses
import math
import os
import random
from functools import cache
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import torch

import deepbore
import deepbore.strategies.base as strategies
from deepbore.data.trial import sign_of
from deepbore.problems import Levy, Problem
from deepbore.problems.suites import problem
from deepbore.space import Params, SearchSpace
from harness.measuring import Row, complete, grid, of_one_file, rows

FUNCTIONS = ("branin", "hartmann6", "rosenbrock4", "levy4")
TASKS = (
    "training/svm-digits",
    "networks/optimizers-digits",
    "networks/losses-rare",
    "networks/norms-spirals",
    "networks/descent-moons",
    "networks/athletes",
)
BELIEFS = ("right", "wrong", "default", "far")
CHOSEN, BETAS = 10.0, (3.0, 10.0, 30.0)
TRIALS, SPREAD, SHARE = 60, 0.1, 0.7
SWEPT, HALF = 0.4, 0.4  # shares of the seeds
SEEDS = {**dict.fromkeys(FUNCTIONS, 5), **dict.fromkeys(TASKS, 2)}
KEPT: list[Path] = []  # the file of the results


@cache
def made(name: str) -> Problem:
    """A problem, made once."""
    return Levy(4, 1) if name == "levy4" else problem(name)


def value(of: Problem, params: Params) -> float:
    """The value of a configuration, to minimise; NaN where it can't be trained."""
    try:
        return sign_of(of.direction) * float(of(params))
    except Exception:  # whatever scikit-learn says of settings that do not go together
        return math.nan


def wanted(
    of: tuple[str, ...], beliefs: tuple[str, ...], betas: tuple[float, ...] = (), share: float = 1.0
) -> list[Row]:
    """The rows of some problems, of a share of their seeds."""
    choices = {"beta": betas} if betas else {}
    return [
        row
        for name in of
        for row in grid(problem=[name], belief=beliefs, **choices, seed=range(math.ceil(share * SEEDS[name])))
    ]


def measure(problem: str, belief: str, seed: int, beta: float = CHOSEN) -> Row:
    """The values of one run in the order of evaluation, and its best configuration."""
    of = made(problem)
    space = of.space if belief == "none" else believing(of.space, belief, best_known(problem, seed), seed)
    strategies.BETA = beta
    study = deepbore.Study(space, seed=seed)
    for _ in range(TRIALS):
        (trial,) = study.ask()
        study.tell(trial, value(of, trial.params))
    shown = [None if trial.value is None else float(f"{trial.value:.8g}") for trial in study.trials]
    return {"values": shown, "best": study.space.points.plain(study.best_params)}


def best_known(problem: str, seed: int) -> Params:
    """The best configuration of the other seeds' runs without a prior."""
    others = [
        row for row in rows(KEPT[0]) if row["problem"] == problem and row["belief"] == "none" and row["seed"] != seed
    ]
    return min(others, key=lambda row: min(each for each in row["values"] if each is not None))["best"]


def believing(space: SearchSpace, belief: str, best: Params, seed: int) -> SearchSpace:
    """The space with priors or defaults around a configuration, or far from it."""
    stream = random.Random(seed)
    told = {}
    for name, parameter in space.parameters.items():
        column = parameter.encode([best[name]]) if name in best else torch.tensor([0.5 * parameter.upper])
        place, upper = float(parameter.to_uniform(column.double())[0]), parameter.levels or 0
        if parameter.is_ordered:
            near = min(max(stream.gauss(place, SPREAD), 0.0), 1.0)
            told[name] = at_place(parameter, near if belief in ("right", "default") else float(place < 0.5), belief)
        else:
            level = int(place * upper)
            other = (level + stream.randrange(1, upper)) % upper
            told[name] = at_level(parameter, level if belief in ("right", "default") else other, belief)
    return SearchSpace(told, constraints=space.constraints)


def at_place(parameter: deepbore.space.Parameter, place: float, belief: str) -> deepbore.space.Parameter:
    """A parameter with a prior or a default around a place in [0, 1]."""
    (centre,) = parameter.decode(parameter.from_uniform(torch.tensor([place], dtype=torch.float64)))
    if belief in ("default", "far"):
        return dataclasses.replace(parameter, default=centre)
    scale = parameter.scale
    if scale is None:
        spread = SPREAD * parameter.levels
    else:
        spread = (scale.high / scale.low) ** SPREAD if scale.log else SPREAD * (scale.high - scale.low)
    return dataclasses.replace(parameter, prior=deepbore.Normal(centre, spread))


def at_level(parameter: deepbore.space.Parameter, level: int, belief: str) -> deepbore.space.Parameter:
    """A choice with a prior or a default of one level."""
    if belief in ("default", "far"):
        return dataclasses.replace(parameter, default=parameter.choices[level])
    rest = (1 - SHARE) / (parameter.levels - 1)
    return dataclasses.replace(parameter, prior=[SHARE if k == level else rest for k in range(parameter.levels)])


# --- what came out ---------------------------------------------------------------------------------------------------


def curve(row: Row) -> np.ndarray:
    """The best value after each evaluation."""
    return np.minimum.accumulate([np.inf if each is None else each for each in row["values"]])


def show(kept: list[Row]) -> None:
    """Both tables: one of beta by some of the seeds, one of all problems with the chosen one."""
    print("Which beta: over the functions' first seeds")
    print("| beta | right: at least as good after 20 as without after 60 | wrong: regret after 60 by that without |")
    print("|---|---|---|")
    for beta in BETAS:
        some = [row for row in kept if row["problem"] in FUNCTIONS]
        some = [row for row in some if row["seed"] < math.ceil(SWEPT * SEEDS[row["problem"]])]
        pairs = {belief: compared(some, belief, beta) for belief in ("right", "wrong")}
        print(f"| {beta:g} | {shared(pairs['right'])} | {ratio(pairs['wrong'])} |")
    print()
    print(
        "| problem | seeds | right: 20 against 60 | right: regret after 60 | wrong: regret after 60 | default | far |"
    )
    print("|---|---|---|---|---|---|---|")
    for name in (*FUNCTIONS, *TASKS, "functions", "tasks"):
        group = {"functions": FUNCTIONS, "tasks": TASKS}.get(name, (name,))
        some = [row for row in kept if row["problem"] in group]
        found = {belief: compared(some, belief, CHOSEN) for belief in BELIEFS}
        if found["right"]:
            cells = [shared(found["right"]), *(ratio(found[belief]) for belief in BELIEFS)]
            print(f"| {name} | {len(found['right'])} | {' | '.join(cells)} |")


def compared(kept: list[Row], belief: str, beta: float) -> list[tuple[float, float, float]]:
    """Of each problem and seed: regret without a prior after 60; with it after 20, and after 60."""
    found = []
    for base in (row for row in kept if row["belief"] == "none"):
        same = [row for row in kept if row["problem"] == base["problem"]]
        best = min(curve(row)[-1] for row in same)
        if made(base["problem"]).optimum is not None:
            best = sign_of(made(base["problem"]).direction) * made(base["problem"]).optimum
        least = 1e-3 * float(np.median([curve(row)[9] for row in same if row["belief"] == "none"]) - best)
        for row in same:
            if (row["belief"], row.get("beta"), row["seed"]) == (belief, beta, base["seed"]):
                regret = [curve(base)[-1] - best, curve(row)[19] - best, curve(row)[-1] - best]
                found.append(tuple(max(each, least) for each in regret))
    return found


def shared(pairs: list[tuple[float, float, float]]) -> str:
    """In how many of the pairs 20 evaluations with a prior are as good as 60 without."""
    return f"{sum(early <= without for without, early, _ in pairs)} of {len(pairs)}"


def ratio(pairs: list[tuple[float, float, float]]) -> str:
    """The geometric mean of the ratio of regrets after 60, with its standard error as a factor."""
    logs = np.log([late / without for without, _, late in pairs])
    if not len(logs):
        return ""
    error = np.exp(logs.std(ddof=1) / math.sqrt(len(logs))) if len(logs) > 1 else math.nan
    return f"{np.exp(logs.mean()):.2f} (*/ {error:.2f})"


def main() -> None:
    """Measures what is missing and shows all, or shows only."""
    given = of_one_file(__doc__).parse_args()
    path = given.file
    KEPT.append(path)
    if not given.show:
        for of in (FUNCTIONS, TASKS):
            complete(path, wanted(of, ("none",)), measure)  # what others are compared with, and know the best by
            complete(path, wanted(of, ("right", "wrong"), (CHOSEN,)), measure)
        complete(path, wanted(FUNCTIONS, ("right", "wrong"), BETAS, SWEPT), measure)
        complete(path, wanted((*FUNCTIONS, *TASKS), ("default", "far"), (CHOSEN,), HALF), measure)
    show(rows(path))


if __name__ == "__main__":
    main()
