"""From values to regrets: what is subtracted, and below what all regrets count the same."""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reporting.facts import COCO, CONSTRAINED, Fact, suite_of
from reporting.rows import Run

FLOOR = 1e-8  # COCO's final target
DIGITS = 12  # significant ones that scripts/benchmark.py keeps of values, but where the optimum is 0
FEW = 6  # it kept where no optimum was known, as that of bbob-constrained
COCO_TARGETS = np.geomspace(1e2, 1e-8, 51)
DESIGN = 10  # evaluations of random search after which the easiest relative target is due


@dataclass(frozen=True)
class Scale:
    """How values of one problem become regrets.

    Attributes:
        best: what is subtracted: the optimum, or the best value that any run saw.
        floor: smaller regrets are set to this, > 0.
        worst: the largest regret in any run; it stands for that of a run which has not seen a value yet.
        targets: regrets to be reached, from easy to hard.
    """

    best: float
    floor: float
    worst: float
    targets: NDArray[np.float64]

    def regret(self, value: float | None) -> float:
        """The regret of a value, >= the floor."""
        return self.worst if value is None else max(value - self.best, self.floor)

    def reached(self, regrets: Sequence[float]) -> NDArray[np.float64]:
        """The share of the targets that each regret reaches."""
        harder = np.searchsorted(self.targets[::-1], regrets)  # than what is reached
        return 1 - harder / len(self.targets)


def scales(runs: Iterable[Run], facts: dict[str, Fact]) -> dict[str, Scale]:
    """The scale of each problem, from all runs on it: whatever their method, workers and length."""
    of: dict[str, list[Run]] = defaultdict(list)
    for run in runs:
        of[run.problem].append(run)
    return {problem: _scale(of[problem], facts[problem].optimum) for problem in of}


def rounded(value: float) -> float:
    """A value as the rows hold it."""
    return float(f"{value:.{DIGITS}g}")


def _scale(runs: list[Run], optimum: float | None) -> Scale:
    values = [value for run in runs for _, value in (*run.best, *run.recommended)] or [0.0]
    best = min(values) if optimum is None else rounded(optimum)
    suite = suite_of(runs[0].problem)
    resolved = _last_digit(best, FEW if optimum is None or suite == CONSTRAINED else DIGITS)
    floor = max(FLOOR, resolved)
    if optimum is None or suite in ("tables", "tables-single"):
        positive = [value - best for value in values if value > best]
        floor = max(min(positive, default=FLOOR) / 10, resolved)
    worst = max(max(values) - best, floor)
    if suite in COCO:
        return Scale(best, floor, worst, COCO_TARGETS)
    plain = Scale(best, floor, worst, np.empty(0))
    start = max(_start(runs, plain), floor * 1.001)
    return Scale(best, floor, worst, np.geomspace(start, floor, 51))


def _start(runs: list[Run], scale: Scale) -> float:
    """The median regret after the design: of random search, or of all methods where it did not run."""
    ran = [run for run in runs if run.method == "random"] or runs
    return float(np.median([scale.regret(run.at(min(DESIGN, run.n))) for run in ran]))


def _last_digit(value: float, digits: int) -> float:
    """What the last of so many digits in the rows is worth beside a value: finer differences from it are rounding."""
    return 0.0 if value == 0 else 10.0 ** (math.floor(math.log10(abs(value))) - digits + 1)
