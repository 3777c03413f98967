#!/usr/bin/env python
"""What one wrong value, and runs that diverge by chance, cost.

    python scripts/wrong_values.py docs/results/wrong_values.jsonl           # resumable
    python scripts/wrong_values.py docs/results/wrong_values.jsonl --show    # the table only

none                all values are true
-10, -1e6           trial 5 has the optimum minus so many times the range of the first ten values
just below          trial 5 has the optimum minus a hundredth of that range
at 1, at 20         as -10, of trial 1 or trial 20
diverged .15, .30   this share of the trials has the optimum plus 30 times that range, at random
three times .30     as that, plus 3 times that range
failed .15, .30     this share has failed, at random: what cannot be less, since as many evaluations are lost

A row has the regret of the true trials after 40 evaluations, and the trials that were suspicious at the end.

Of two problems with more to them the last five columns are measured, on five seeds: "within" is under a constraint
that is told (the second parameter within the lower .6 of its range), where runs that diverge meet it or not as others
do; "front" has a second objective, the mean squared distance from .9 of all ranges, and its regret is the hypervolume
that is missing to that of the best run.
"""

import os
import time
import warnings

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

import deepbore
from deepbore import Outcome, Study
from deepbore.data.array_ranking import hypervolume
from deepbore.evaluators.base import SuspiciousValue
from deepbore.problems import Ackley, Branin, Hartmann, HPOLib, Levy, NASBench201, Problem, Rosenbrock
from harness.measuring import Row, grid, measure_or_show

PROBLEMS: dict[str, Problem] = {
    "branin": Branin(),
    "hartmann3": Hartmann(3),
    "rosenbrock4": Rosenbrock(4),
    "levy4": Levy(4),
    "hartmann6": Hartmann(6),
    "ackley5": Ackley(5),
    "parkinsons": HPOLib("parkinsons_telemonitoring"),
    "cifar10": NASBench201("cifar10"),
}
WRONG = {"-10": 5, "-1e6": 5, "just below": 5, "at 1": 1, "at 20": 20}  # the trial
LUCK = {  # the share of trials, and the multiple of the range
    "diverged .15": (0.15, 30.0),
    "diverged .30": (0.3, 30.0),
    "three times .30": (0.3, 3.0),
    "failed .15": (0.15, np.nan),
    "failed .30": (0.3, np.nan),
}
FLOOR = 1e-6  # of the range: smaller regrets count as equal
DESIGN, N, SEEDS = 10, 40, range(10)
WITHIN = {f"{name} within": PROBLEMS[name] for name in ("branin", "hartmann3", "hartmann6")}
FRONTS = {f"{name} front": PROBLEMS[name] for name in ("branin", "hartmann3", "hartmann6")}
LIMIT, PLACE = 0.6, 0.9  # in units of the range
FLOOR_OF_FRONTS = 1e-3  # of the volume between the best values and the reference
WANTED = grid(seed=SEEDS, method=["none", *WRONG, *LUCK], problem=PROBLEMS)
WANTED += grid(seed=range(5), method=["none", *LUCK], problem=[*WITHIN, *FRONTS])


def run(problem: str, method: str, seed: int) -> Row:
    """What a row says of one run."""
    function, rng, started = (PROBLEMS | WITHIN | FRONTS)[problem], np.random.default_rng(seed), time.process_time()
    sign = 1.0 if function.directions[0] == "minimize" else -1.0
    design = function.space.decode(function.space.points.sobol(DESIGN, seed=seed))
    extent = max(sign * (function(params) - function.optimum) for params in design)
    told = {"-10": -10 * extent, "-1e6": -1e6 * extent, "just below": -0.01 * extent}
    directions = [*function.directions, *(["minimize"] if problem in FRONTS else [])]
    study, regrets, front = Study(function.space, seed=seed, directions=directions), [], []
    for n in range(N):
        (trial,) = study.ask()
        at = function.space.encode([trial.params])[0]
        excess, apart = float(at[1]) - LIMIT, float((at - PLACE).square().mean())
        share, multiple = LUCK.get(method, (0.0, 0.0))
        value = function(trial.params)
        if rng.random() < share:
            value = function.optimum + sign * multiple * extent
        elif n == WRONG.get(method):
            value = function.optimum + sign * told.get(method, told["-10"])
        elif problem not in WITHIN or excess <= 0:
            regrets.append(sign * (value - function.optimum))
            front.append((regrets[-1] / extent, apart))
        if problem in WITHIN:
            study.tell(trial, Outcome(value, constraints=[excess]) if np.isfinite(value) else value)
        else:
            study.tell(trial, (value, apart) if problem in FRONTS else value)
    found = min(regrets, default=np.inf)
    return {
        "regret": float(f"{found:.4g}"),
        "share": float(f"{found / extent:.4g}"),
        **({"volume": round(hypervolume(np.array(front), [1.0, 1.0]), 5)} if problem in FRONTS else {}),
        "suspicious": [trial.id for trial in study.suspicious],
        "seconds": round(time.process_time() - started, 2),
        "version": f"deepbore {deepbore.__version__}",
    }


def show(kept: list[Row]) -> None:
    """The geometric mean, over seeds, of the regret as a multiple of that without wrong values."""
    share = {(row["problem"], row["method"], row["seed"]): max(row["share"], FLOOR) for row in kept}
    for problem in FRONTS:
        volumes = {
            key: row["volume"] for row in kept if (key := (row["problem"], row["method"], row["seed"]))[0] == problem
        }
        most = max(volumes.values(), default=0.0)
        share |= {key: max(most - volume, FLOOR_OF_FRONTS) for key, volume in volumes.items()}
    methods = [method for method in ("none", *WRONG, *LUCK) if any(row["method"] == method for row in kept)]
    print("| | " + " | ".join(methods) + " |")
    print("|---|" + "---|" * len(methods))
    for problem in (*PROBLEMS, *WITHIN, *FRONTS):
        cells = []
        for method in methods:
            ratios = [
                found / share[problem, "none", seed]
                for (name, other, seed), found in share.items()
                if (name, other) == (problem, method) and (problem, "none", seed) in share
            ]
            cells.append(f"{np.exp(np.log(ratios).mean()):.2g} ({len(ratios)})" if ratios else "")
        print(f"| {problem} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    warnings.simplefilter("ignore", SuspiciousValue)
    measure_or_show(__doc__, WANTED, run, show)
