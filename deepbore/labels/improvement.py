"""`ImprovementLabels`: positives weighted by their improvement, as in LFBO."""

import numpy as np
import torch
from torch import Tensor

from deepbore.labels.gamma import Gamma
from deepbore.labels.threshold import ThresholdFamily


def improvement_labels(values: Tensor, tau: float, ranked: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Soft labels and weights that give LFBO's loss for expected improvement (Song et al. 2022, eq. 9).

    That loss counts each observation once as a negative, and once as a positive with weight
    u = (tau - y)_+ / mean of it over the positives. One soft label u / (1 + u) of weight 1 + u is the same. The loss is
    least at E[u | x] / (1 + E[u | x]), which ranks points exactly by expected improvement over tau.

    Args:
        values: n; NaN counts as no improvement.
        tau: the threshold.
        ranked: the values that set the scale, the least first, if not all: no gain is greater than that of the least.

    Returns:
        z and weight, each n.
    """
    gain = torch.nan_to_num(tau - values, nan=0.0).clamp(min=0)
    trusted = gain if ranked is None else (tau - ranked).clamp(min=0)
    if not bool((trusted > 0).any()):
        u = (values <= tau).to(values)
    else:
        greatest = trusted.max()  # in units of it no sum overflows
        u = gain.clamp(max=greatest) / greatest / (trusted[trusted > 0] / greatest).mean()
    return u / (1 + u), 1 + u


class ImprovementLabels(ThresholdFamily):
    """Threshold labels with positives weighted by their improvement (LFBO; see `improvement_labels`).

    Args:
        gamma: proportion of good observations, in (0, 1), or a schedule.
    """

    def __init__(self, gamma: Gamma = 1 / 3):
        super().__init__(gamma)

    def label(self, values: Tensor, ranked: np.ndarray, tau: float) -> tuple[Tensor, Tensor]:
        return improvement_labels(values, tau, torch.from_numpy(ranked).to(values))
