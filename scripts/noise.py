#!/usr/bin/env python
"""What it is worth to tell the noise of values, and to evaluate `study.recommended` again.

    python scripts/noise.py docs/results/noise.jsonl           # resumable: what the file holds is not run again
    python scripts/noise.py docs/results/noise.jsonl --show    # the table only

not told            values with noise
told                values with noise, and its standard deviation: `Outcome(value, noise=sd)`
told, again         the same; from the 20th on each third evaluation is of `study.recommended`
not told, again     as that, without the standard deviation

The noise is normal: "even", with the same standard deviation everywhere, or "uneven", with one drawn log-uniformly for
each evaluation, between a tenth of it and three times as much, as of means over one fold or many. A row has the regret
of `study.recommended`, without noise, after 50 and 100 evaluations.
"""

import os
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

import deepbore
from deepbore import Outcome, Study
from deepbore.problems import Branin, Hartmann, Problem
from harness.measuring import Row, grid, measure_or_show

PROBLEMS: dict[str, tuple[Problem, float]] = {"branin": (Branin(), 10.0), "hartmann6": (Hartmann(6), 0.3)}
METHODS = {"not told": (False, False), "told": (True, False), "told, again": (True, True)}
METHODS["not told, again"] = (False, True)
KINDS, AT, SEEDS, DESIGN = ("even", "uneven"), (50, 100), range(5), 20
WANTED = grid(seed=SEEDS, method=METHODS, kind=KINDS, problem=PROBLEMS)


def run(problem: str, kind: str, method: str, seed: int) -> Row:
    """What a row says of one run."""
    function, scale = PROBLEMS[problem]
    is_told, again = METHODS[method]
    rng, regrets, started = np.random.default_rng(seed), [], time.process_time()
    study = Study(function.space, seed=seed)
    for n in range(1, max(AT) + 1):
        if again and n % 3 == 0 and n > DESIGN:
            study.enqueue(study.recommended.params)
        (trial,) = study.ask()
        sd = scale * (1.0 if kind == "even" else 10 ** rng.uniform(-1, np.log10(3)))
        value = function(trial.params) + sd * rng.standard_normal()
        study.tell(trial, Outcome(value, noise=sd if is_told else None))
        if n in AT:
            regrets.append(float(f"{function(study.recommended.params) - function.optimum:.4g}"))
    seconds = round(time.process_time() - started, 2)
    return {"regrets": regrets, "seconds": seconds, "version": f"deepbore {deepbore.__version__}"}


def show(kept: list[Row]) -> None:
    """The median regret after 50 and 100 evaluations, with the quartiles of the latter."""
    columns = [(name, kind) for name in PROBLEMS for kind in KINDS]
    print("| | " + " | ".join(", ".join(column) for column in columns) + " |")
    print("|---|" + "---|" * len(columns))
    for method in METHODS:
        cells = []
        for name, kind in columns:
            key = (name, kind, method)
            mine = [row["regrets"] for row in kept if (row["problem"], row["kind"], row["method"]) == key]
            found = np.array(mine).reshape(-1, len(AT))
            if not len(found):
                cells.append("")
                continue
            (early, late), (low, high) = np.median(found, axis=0), np.quantile(found[:, 1], (0.25, 0.75))
            cells.append(f"{early:.2g}, {late:.2g} ({low:.2g} to {high:.2g}; {len(found)})")
        print(f"| {method} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    measure_or_show(__doc__, WANTED, run, show)
