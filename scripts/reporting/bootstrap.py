"""Means over problems, with intervals from problems drawn with replacement."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
DRAWS = 2000
SEED = 0  # the same report from the same rows


@dataclass(frozen=True)
class Estimate:
    """A mean and its draws.

    Attributes:
        mean: over the problems.
        draws: the means of `DRAWS` samples of the problems; all alike where there is only one to draw from.
    """

    mean: float
    draws: Array

    @property
    def interval(self) -> tuple[float, float]:
        """The middle 95 % of the draws."""
        low, high = np.quantile(self.draws, [0.025, 0.975])
        return float(low), float(high)


def means(values: Array, clusters: Sequence[str]) -> list[Estimate]:
    """Column means of `values` (problems x columns), with draws of whole clusters of problems.

    Instances of one function resemble one another, so they are drawn together; a cluster may be a single problem.
    """
    names, number = np.unique(np.asarray(clusters), return_inverse=True)
    sums = np.zeros((len(names), values.shape[1]))
    np.add.at(sums, number, values)
    sizes = np.bincount(number).astype(float)
    times = _times_drawn(len(names))
    draws = (times @ sums) / (times @ sizes)[:, None]
    return [Estimate(float(mean), draw) for mean, draw in zip(values.mean(0), draws.T, strict=True)]


def average(estimates: Sequence[Estimate]) -> Estimate:
    """The mean of independent estimates, each counting the same, as of suites.

    Draws of different suites come from the same stream; they are shuffled apart.
    """
    stream = np.random.default_rng(SEED)
    draws = np.mean([stream.permutation(estimate.draws) for estimate in estimates], axis=0)
    return Estimate(float(np.mean([estimate.mean for estimate in estimates])), draws)


@cache
def _times_drawn(clusters: int) -> Array:
    """How often each cluster is in each sample: draws x clusters."""
    stream = np.random.default_rng(SEED)
    return stream.multinomial(clusters, np.full(clusters, 1 / clusters), size=DRAWS).astype(float)
