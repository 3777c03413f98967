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

import argparse
import json
import os
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

import deepbore
from deepbore import Outcome, Study
from deepbore.problems import Branin, Hartmann, Problem

PROBLEMS: dict[str, tuple[Problem, float]] = {"branin": (Branin(), 10.0), "hartmann6": (Hartmann(6), 0.3)}
METHODS = {"not told": (False, False), "told": (True, False), "told, again": (True, True)}
METHODS["not told, again"] = (False, True)
KINDS, AT, SEEDS, DESIGN = ("even", "uneven"), (50, 100), range(5), 20


def run(name: str, kind: str, method: str, seed: int) -> list[float]:
    """The regrets of one run."""
    problem, scale = PROBLEMS[name]
    is_told, again = METHODS[method]
    rng, regrets = np.random.default_rng(seed), []
    study = Study(problem.space, seed=seed)
    for n in range(1, max(AT) + 1):
        if again and n % 3 == 0 and n > DESIGN:
            study.enqueue(study.recommended.params)
        (trial,) = study.ask()
        sd = scale * (1.0 if kind == "even" else 10 ** rng.uniform(-1, np.log10(3)))
        value = problem(trial.params) + sd * rng.standard_normal()
        study.tell(trial, Outcome(value, noise=sd if is_told else None))
        if n in AT:
            regrets.append(float(f"{problem(study.recommended.params) - problem.optimum:.4g}"))
    return regrets


def rows() -> Iterator[tuple[str, str, str, int]]:
    return ((name, kind, method, seed) for seed in SEEDS for method in METHODS for kind in KINDS for name in PROBLEMS)


def show(kept: list[dict[str, Any]]) -> None:
    """The median regret after 50 and 100 evaluations, with the quartiles of the latter."""
    columns = [(name, kind) for name in PROBLEMS for kind in KINDS]
    print("| | " + " | ".join(", ".join(column) for column in columns) + " |")
    print("|---|" + "---|" * len(columns))
    for method in METHODS:
        cells = []
        for name, kind in columns:
            wanted = {"problem": name, "kind": kind, "method": method}
            found = np.array([row["regrets"] for row in kept if wanted.items() <= row.items()]).reshape(-1, len(AT))
            if not len(found):
                cells.append("")
                continue
            (early, late), (low, high) = np.median(found, axis=0), np.quantile(found[:, 1], (0.25, 0.75))
            cells.append(f"{early:.2g}, {late:.2g} ({low:.2g} to {high:.2g}; {len(found)})")
        print(f"| {method} | " + " | ".join(cells) + " |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--show", action="store_true", help="the table only")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    file: Path = arguments.file
    kept = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
    done = {(row["problem"], row["kind"], row["method"], row["seed"]) for row in kept}
    for name, kind, method, seed in [] if arguments.show else rows():
        if (name, kind, method, seed) in done:
            continue
        started = time.process_time()
        row = {"problem": name, "kind": kind, "method": method, "seed": seed, "regrets": run(name, kind, method, seed)}
        row |= {"seconds": round(time.process_time() - started, 2), "version": f"deepbore {deepbore.__version__}"}
        kept.append(row)
        with file.open("a") as out:
            out.write(json.dumps(row) + "\n")
    show(kept)


if __name__ == "__main__":
    main()
