"""Labels graded by value or by rank: the share of *all* thresholds that a value reaches."""

import math

import numpy as np
import torch
from torch import Tensor

from deepbore.data.suspicion import TAIL
from deepbore.labels.grade import graded_by_value
from deepbore.labels.threshold import Gamma, ThresholdFamily
from deepbore.validation import within


class ValueGradedLabels(ThresholdFamily):
    """The share of thresholds that a value reaches: spread evenly over the values up to tau, thinning out beyond.

    With `tail=0` there are none beyond tau: z = clip((tau - y) / (tau - y_min), 0, 1). See `graded_by_value`.

    Args:
        gamma: proportion of values that count as good, in (0, 1), or a schedule.
        tail: thresholds beyond tau as a share of those up to it, in [0, 100]. A label is tail / (1 + tail) at tau.

    Raises:
        SettingError: for a number outside its range.
    """

    def __init__(self, gamma: Gamma = 0.5, tail: float = TAIL):
        super().__init__(gamma)
        within(0, 100, tail=tail)
        self.tail = tail

    def label(self, values: Tensor, ranked: np.ndarray, tau: float) -> tuple[Tensor, Tensor]:
        best = float(ranked[0])
        if tau == best:  # all good values are tied: one threshold, between them and the rest
            return (values <= tau).to(values), torch.ones_like(values, dtype=torch.float)
        return graded_by_value(values, best, tau, self.tail), torch.ones_like(values, dtype=torch.float)


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
        return 1 - rank / k, torch.ones_like(values, dtype=torch.float)
