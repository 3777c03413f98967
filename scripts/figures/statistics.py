"""Curves of runs, and the paired test of a claim."""

import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from reporting.intervals import Typical, needed
from reporting.rows import Run

Array = NDArray[np.float64]


def best_so_far(run: Run, n: int) -> Array:
    """The value of the best configuration after each of n evaluations; NaN while there was none."""
    curve = np.full(n, math.nan)
    for begin, value in run.best:
        curve[begin - 1 :] = value
    return curve


def regret_of(run: Run, n: int, optimum: float) -> Array:
    """The simple (immediate) regret after each of n evaluations, >= 0."""
    return np.maximum(best_so_far(run, n) - optimum, 0.0)


def cumulative_regret_of(run: Run, n: int, optimum: float) -> Array:
    """The sum of the regrets of the first evaluations, by round, each value repeated for the round's evaluations."""
    sums = np.cumsum(run.rounds)
    evaluations = np.minimum(np.arange(1, len(sums) + 1) * run.workers, run.n)
    return np.repeat(sums - evaluations * optimum, run.workers)[:n]


@dataclass(frozen=True)
class Paired:
    """Two methods on the same seeds; the lower is the better.

    Attributes:
        difference: first - second, as is typical of the seeds, with the interval of Wilcoxon's signed-rank test.
        p: of that test, two-sided; 1 where all are tied.
        needed: seeds that would tell, by the mean and spread of the differences, with a power of .8.
        won, tied, lost: seeds.
    """

    difference: Typical
    p: float
    needed: float
    won: int
    tied: int
    lost: int

    @property
    def seeds(self) -> int:
        return self.won + self.tied + self.lost


def paired(first: Mapping[int, float], second: Mapping[int, float]) -> Paired | None:
    """The comparison on the seeds that both have; None for fewer than two.

    Args:
        first, second: seed -> what is to be small.
    """
    seeds = sorted(first.keys() & second.keys())
    if len(seeds) < 2:
        return None
    difference = np.array([first[seed] - second[seed] for seed in seeds])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of few seeds and of ties
        p = float(stats.wilcoxon(difference).pvalue) if difference.any() else 1.0
    won, lost = int((difference < 0).sum()), int((difference > 0).sum())
    return Paired(Typical.of(difference), p, needed(difference), won, len(seeds) - won - lost, lost)
