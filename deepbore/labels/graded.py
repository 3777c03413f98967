"""Labels graded by value or by rank: the share of *all* thresholds up to tau that a value reaches."""

import math

import numpy as np
import torch
from torch import Tensor

from deepbore.labels.gamma import Gamma
from deepbore.labels.threshold import ThresholdFamily


def graded_by_value(values: Tensor, best: float, tau: float) -> Tensor:
    """u = clip((tau - y) / (tau - y_min), 0, 1), the mean of the labels [y <= t] over t in (y_min, tau).

    So E[u | x] is the integral of P(y <= t | x) over t, divided by tau - y_min: expected improvement over tau, up to
    scale, with nothing assumed about densities.

    Args:
        values: n; NaN gives 0.
        best: y_min.
        tau: the threshold, > best.
    """
    return torch.nan_to_num((tau - values) / (tau - best), nan=0.0).clamp(0, 1)


class ValueGradedLabels(ThresholdFamily):
    """z = clip((tau - y) / (tau - y_min), 0, 1): thresholds spread evenly over the values (see `graded_by_value`).

    Args:
        gamma: proportion of values below the largest threshold, in (0, 1), or a schedule.
    """

    def __init__(self, gamma: Gamma = 0.5):
        super().__init__(gamma)

    def label(self, values: Tensor, ranked: np.ndarray, tau: float) -> tuple[Tensor, Tensor]:
        best = float(ranked[0])
        if tau == best:  # the good ones are all tied: one threshold, between them and the rest
            return (values <= tau).to(values), torch.ones_like(values)
        return graded_by_value(values, best, tau), torch.ones_like(values)


class RankGradedLabels(ThresholdFamily):
    """z = 1 - rank(y) / k for the k values up to tau, 0 above: thresholds spread evenly over the ranks.

    The rank counts the values that are better, so the best has z = 1 and ties have equal labels. Outliers and
    monotone transformations of the values change nothing.

    Args:
        gamma: proportion of values below the largest threshold, in (0, 1), or a schedule.
    """

    def __init__(self, gamma: Gamma = 0.5):
        super().__init__(gamma)

    def label(self, values: Tensor, ranked: np.ndarray, tau: float) -> tuple[Tensor, Tensor]:
        k = int(np.searchsorted(ranked, tau, side="right"))
        good = torch.from_numpy(ranked[:k]).to(values)
        rank = torch.searchsorted(good, torch.nan_to_num(values, nan=math.inf))
        return 1 - rank / k, torch.ones_like(values)
