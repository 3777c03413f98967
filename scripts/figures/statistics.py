"""Curves of runs, means over seeds with 95 % intervals, and the paired test of a claim."""

import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

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
class Interval:
    """A mean and its 95 % interval by Student's t; without width where there is one value, or all are alike."""

    mean: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Array) -> "Interval":
        """Of independent values (n), n >= 1."""
        mean = float(np.mean(values))
        half = 0.0
        if len(values) > 1:
            half = float(stats.t.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / math.sqrt(len(values)))
        return cls(mean, mean - half, mean + half)


@dataclass(frozen=True)
class Paired:
    """Two methods on the same seeds; the lower is the better.

    Attributes:
        difference: first - second: mean and interval, of the paired t-test.
        p: of Wilcoxon's signed-rank test, two-sided; 1 where all are tied.
        won, tied, lost: seeds.
    """

    difference: Interval
    p: float
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
    return Paired(Interval.of(difference), p, won, len(seeds) - won - lost, lost)
