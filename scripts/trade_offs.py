"""Several objectives: hypervolumes of deepbore and its peers on the same problems; a row of JSON for each run.

    python scripts/trade_offs.py --output docs/results/trade_offs.jsonl --seeds 2
    python scripts/trade_offs.py --output docs/results/trade_offs.jsonl --show

A row has the hypervolume after 25, 50, 100 and 200 evaluations, above the reference point that it names, and the
seconds of processor time that the method took, evaluations included (they are next to nothing, but for digits). A run
that is in the file is not run again.
"""

import argparse
import time
import warnings
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.stats import rankdata

import deepbore
from deepbore.data.array_ranking import hypervolume
from deepbore.problems.benchmarks.trade_offs import DTLZ2, WFG, ZDT, CocoBiobjective, DigitsTradeOff
from harness import held_out
from harness.measuring import Row, complete, grid, longest
from peers.by_objectives import METHODS

MARKS = (25, 50, 100, 200)
RANKED = ("deepbore", "mbore-xgb-domrank", "optuna-tpe", "optuna-nsga2", "random")  # those with runs on every problem
PROBLEMS: dict[str, Callable[[], Any]] = {
    "zdt1": lambda: ZDT(1),
    "zdt2": lambda: ZDT(2),
    "zdt3": lambda: ZDT(3),
    "dtlz2-2": lambda: DTLZ2(2),
    "dtlz2-3": lambda: DTLZ2(3),
    "dtlz2-5": lambda: DTLZ2(5, 7),
    **{f"wfg{n}": lambda n=n: WFG(n) for n in (1, 2, 4, 5, 9)},
    "wfg4-3": lambda: WFG(4, 3),
    **{f"biobj-f{n:02d}": lambda n=n: CocoBiobjective(n) for n in (1, 12, 20, 28, 35, 46)},
    "digits": lambda: DigitsTradeOff(epochs=5),
}
HELD_OUT = {f"biobj-f{n:02d}": lambda n=n: CocoBiobjective(n) for n in range(4, 56, 9)}  # for 0.4: run once


def run(problem: str, method: str, seed: int, trials: int) -> Row:
    """What a row says of one run."""
    solved = (PROBLEMS | HELD_OUT)[problem]()
    start, values, found = time.process_time(), [], {}
    for value in METHODS[method](solved, seed):
        values.append(value)
        if len(values) in MARKS:
            found[len(values)] = hypervolume(np.array(values), solved.reference)
        if len(values) == trials:
            break
    seconds = round(time.process_time() - start, 2)
    return {"seconds": seconds, "reference": list(solved.reference), "hypervolume": found}


def show(path: Path) -> None:
    """Tables of the problems, and of those that are held out."""
    by = defaultdict(list)
    for row in longest(path, "trials", "problem", "method", "seed"):
        by[row["problem"], row["method"]].append(row)
    show_table(by, list(PROBLEMS))
    print("\nHeld out, and looked at once:\n")
    show_table(by, list(HELD_OUT))


def show_table(by: dict[tuple[str, str], list[Row]], names: list[str]) -> None:
    """Medians of the hypervolumes over the seeds, as shares of the greatest of the problem; average ranks."""
    problems = [name for name in names if any(problem == name for problem, _ in by)]
    methods = [method for method in METHODS if any((name, method) in by for name in problems)]
    print("| problem (seeds) | " + " | ".join(methods) + " |")
    print("|---" * (1 + len(methods)) + "|")
    for name in problems:
        best = max(np.nanmax(volumes(rows)) for (problem, _), rows in by.items() if problem == name)
        cells = [cell(by[name, method], best) for method in methods]
        seeds = sorted({len(by[name, method]) for method in methods} - {0})
        print(f"| {name} ({' or '.join(map(str, seeds))}) | " + " | ".join(cells) + " |")
    ranked = ranks(by, problems)
    made = ~np.isnan(ranked).any(0)
    print(f"\nAverage ranks after {', '.join(map(str, np.array(MARKS)[made]))} evaluations:\n")
    for method, found in zip(RANKED, ranked[:, made], strict=True):
        print(f"{method}: " + ", ".join(f"{rank:.2f}" for rank in found))


def ranks(by: dict[tuple[str, str], list[Row]], problems: list[str]) -> np.ndarray:
    """Average ranks of the RANKED at the marks: over the seeds that all of them have, then over problems."""
    of_problems = []
    for name in problems:
        of_seeds = [{row["seed"]: volumes([row])[0] for row in by[name, method]} for method in RANKED]
        seeds = sorted(set.intersection(*map(set, of_seeds)))
        if seeds:
            found = np.array([[each[seed] for each in of_seeds] for seed in seeds])  # seeds x methods x marks
            of_problems.append(np.nanmean(rankdata(-found, axis=1), axis=0))  # NaN where one of them was shorter
    with warnings.catch_warnings(action="ignore"):  # where no run is so long
        return np.nanmean(of_problems, axis=0) if of_problems else np.full((len(RANKED), len(MARKS)), np.nan)


def volumes(rows: list[Row]) -> np.ndarray:
    """The hypervolumes of runs at the marks, NaN where a run was shorter."""
    return np.array([[row["hypervolume"].get(str(n), np.nan) for n in MARKS] for row in rows])


def cell(rows: list[Row], best: float) -> str:
    """The medians of a method on a problem, and its seconds; empty where there are no runs."""
    if not rows:
        return ""
    found = volumes(rows)
    medians = [np.nanmedian(at) for at in found[:, ~np.isnan(found).all(0)].T]
    shares = ", ".join(f"{median / best:.3f}".replace("0.", ".") for median in medians)
    return f"{shares} ({np.median([row['seconds'] for row in rows]):.0f} s)"


def main() -> None:
    """Runs what is missing."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--problems", default=",".join(PROBLEMS))
    parser.add_argument("--methods", default=",".join(RANKED), help=", ".join(METHODS))
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--show", action="store_true")
    given = parser.parse_args()
    if given.show:
        show(given.output)
        return
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    problems, methods = given.problems.split(","), given.methods.split(",")
    held_out.register(problems, deepbore.__version__)
    wanted = grid(seed=range(given.seeds), problem=problems, method=methods, trials=[given.trials])
    complete(given.output, wanted, run, length="trials")


if __name__ == "__main__":
    main()
