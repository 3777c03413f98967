"""`ImprovementLabels`: positives weighted by their improvement, as in LFBO."""

import numpy as np
import torch
from torch import Tensor

from deepbore.labels.gamma import Gamma
from deepbore.labels.threshold import ThresholdFamily


def improvement_labels(values: Tensor, tau: float) -> tuple[Tensor, Tensor]:
    """Soft labels and weights that give LFBO's loss for expected improvement (Song et al. 2022, eq. 9).

    That loss counts each observation once as a negative, and once as a positive with weight
    u = (tau - y)_+ / mean of it over the positives. One soft label u / (1 + u) of weight 1 + u is the same. The loss is
    least at E[u | x] / (1 + E[u | x]), which ranks points exactly by expected improvement over tau.

    Args:
        values: n; NaN counts as no improvement.
        tau: the threshold.

    Returns:
        z and weight, each n.
    """
    gain = torch.nan_to_num(tau - values, nan=0.0).clamp(min=0)
    u = gain / gain[gain > 0].mean() if bool((gain > 0).any()) else (values <= tau).to(values)
    return u / (1 + u), 1 + u


class ImprovementLabels(ThresholdFamily):
    """Threshold labels with positives weighted by their improvement (LFBO; see `improvement_labels`).

    Args:
        gamma: proportion of good observations, in (0, 1), or a schedule.
    """

    def __init__(self, gamma: Gamma = 1 / 3):
        super().__init__(gamma)

    def label(self, values: Tensor, ranked: np.ndarray, tau: float) -> tuple[Tensor, Tensor]:
        return improvement_labels(values, tau)
