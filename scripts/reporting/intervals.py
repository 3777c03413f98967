"""Intervals of what was measured on several problems or seeds, and the rule by which one method is ahead.

There are two, chosen by how often they hold the truth on residuals as ratios of regret have them
(`scripts/interval_coverage.py`): of 95 %, Student's t holds the mean in 85 to 91 of a hundred cases, bootstraps in 76
to 93, for few problems have most of a mean. So `Typical` has the interval of Wilcoxon's signed-rank test, which holds
what it is of in 94 to 96, and decides; and where a mean has an interval it is Student's t of 99.5 %, which holds it in
94 to 96. Of fewer than six there is neither: by chance alone five of five are won with p = .06.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

Array = NDArray[np.float64]
CONFIDENCE = 0.995  # of Student's t
ALPHA = 0.05  # of the signed-rank test, two-sided
FEWEST = 6  # that have an interval
LEVEL = math.log(1.25)  # a ratio between .8 and 1.25 is as good as 1
RULE = (
    "By the 95 % interval of Wilcoxon's signed-rank test over the log ratios of problems: *ahead* where it is below 0, "
    f"*behind* where it is above, *level* where it holds 0 and all ratios in it are between {math.exp(-LEVEL):.1f} and "
    f"{math.exp(LEVEL)}, *undecided* where it is wider, and with fewer than {FEWEST} problems."
)


@dataclass(frozen=True)
class Typical:
    """What is typical of values: their pseudo-median (Hodges & Lehmann 1963), and its interval.

    The interval has every shift of the values that the signed-rank test does not reject.

    Attributes:
        middle: the median of the means of all pairs of values, each with itself, too.
        low, high: the ends; infinite for fewer than six values.
    """

    middle: float
    low: float
    high: float

    @classmethod
    def of(cls, values: ArrayLike) -> "Typical":
        """Of independent values (n), n >= 1."""
        x = np.asarray(values, dtype=float)
        rows, columns = np.triu_indices(len(x))
        pairs = np.sort((x[rows] + x[columns]) / 2)
        outside = _outside(len(x))
        ends = (pairs[outside - 1], pairs[-outside]) if outside else (-math.inf, math.inf)
        return cls(float(np.median(pairs)), float(ends[0]), float(ends[1]))

    @property
    def sign(self) -> int:
        """Of the values, -1 or 1; 0 where the interval holds 0."""
        return int(self.low > 0) - int(self.high < 0)

    @property
    def verdict(self) -> str:
        """What `RULE` says where the values are log ratios."""
        if self.sign:
            return "ahead" if self.sign < 0 else "behind"
        return "level" if self.low >= -LEVEL and self.high <= LEVEL else "undecided"


@cache
def _outside(n: int) -> int:
    """How many of the sorted means of pairs of n values are outside the interval, at either end."""
    chances = np.zeros(n * (n + 1) // 2 + 1)  # of each sum of the ranks of positive values
    chances[0] = 1
    for rank in range(1, n + 1):
        moved = np.concatenate([np.zeros(rank), chances[:-rank]])
        chances = (chances + moved) / 2
    return int((np.cumsum(chances) <= ALPHA / 2).sum())


def needed(values: ArrayLike) -> float:
    """How many values the signed-rank test would need to tell their sign with a power of .8, by their mean and spread.

    That of the t-test for a normal distribution, by .955, what Wilcoxon's test has of its efficiency there; infinite
    where their mean is 0.
    """
    x = np.asarray(values, dtype=float)
    if not x.mean():
        return math.inf
    z = stats.norm.ppf(1 - ALPHA / 2) + stats.norm.ppf(0.8)
    return max(math.ceil((z * x.std(ddof=1) / x.mean()) ** 2 / 0.955), FEWEST)


@dataclass(frozen=True)
class Estimate:
    """A mean, and how sure it is.

    Attributes:
        mean: of the problems, or of whatever is independent.
        error: its standard error; infinite where there is only one to tell.
        freedom: degrees of freedom of the error, those of n problems n - 1.
    """

    mean: float
    error: float
    freedom: int

    @property
    def interval(self) -> tuple[float, float]:
        """The interval of the mean; all numbers where there are too few for one."""
        if self.freedom < FEWEST - 1:
            return -math.inf, math.inf
        half = float(stats.t.ppf((1 + CONFIDENCE) / 2, self.freedom)) * self.error
        return self.mean - half, self.mean + half


def means(values: Array, clusters: Sequence[str]) -> list[Estimate]:
    """Column means of `values` (problems x columns), each with the error over clusters of problems.

    Instances of one function resemble one another, so they count as one cluster; a cluster may be a single problem.
    """
    names, number = np.unique(np.asarray(clusters), return_inverse=True)
    mean, n = values.mean(0), len(names)
    if n == 1:
        return [Estimate(float(each), math.inf, 0) for each in mean]
    deviations = np.zeros((n, values.shape[1]))
    np.add.at(deviations, number, values - mean)
    errors = np.sqrt(n / (n - 1) * (deviations**2).sum(0)) / len(values)
    return [Estimate(float(each), float(error), n - 1) for each, error in zip(mean, errors, strict=True)]


def mean(values: ArrayLike) -> Estimate:
    """The mean of independent values (n), n >= 1."""
    x = np.asarray(values, dtype=float)
    (found,) = means(x[:, None], [str(place) for place in range(len(x))])
    return found


def sign_test(won: int, lost: int) -> float:
    """p of so many wins and losses if both are as likely; ties are left out."""
    return float(stats.binomtest(won, won + lost).pvalue) if won + lost else 1.0
