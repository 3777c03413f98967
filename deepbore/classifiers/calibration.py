"""Maps from scores to calibrated logits, as tensors of two rows; one without columns says that there is nothing to map.

A map that is flat or falls would take the ranking away: scores from which it comes say nothing of the labels.
"""

from collections.abc import Callable

import numpy as np
import torch
from scipy.optimize import minimize
from scipy.special import expit
from torch import Tensor

from deepbore.classifiers.link import Link
from deepbore.classifiers.trees import library

MOST_CERTAIN = -600.0  # a logit whose probability a double still tells from 0
NO_MAP = torch.empty(2, 0, dtype=torch.float64)


def fit_platt(scores: np.ndarray, z: np.ndarray, weight: np.ndarray) -> Tensor:
    """Slope and intercept of the logit, one below the other (2 x 1), by weighted cross-entropy.

    The targets are Platt's, what a uniform prior on each class leaves of 1 and 0: (N+ + 1) / (N+ + 2) and 1 / (N- + 2).
    Graded labels count in part for both classes. On labels 0 and 1 it is scikit-learn's sigmoid.

    Args:
        scores: n.
        z: labels in [0, 1], n.
        weight: n.

    References:
        Platt, Probabilistic outputs for support vector machines, 1999.
    """
    positive, negative = weight @ z, weight @ (1 - z)
    target = z * (positive + 1) / (positive + 2) + (1 - z) / (negative + 2)
    centre, scale = scores.mean(), max(scores.std(), 1e-12)
    design = np.stack([(scores - centre) / scale, np.ones_like(scores)], axis=-1)
    share = weight / weight.sum()

    def loss(theta: np.ndarray) -> tuple[float, np.ndarray]:
        logit = design @ theta
        gradient = design.T @ (share * (expit(logit) - target))
        return share @ (np.logaddexp(0, logit) - target * logit), gradient

    slope, intercept = minimize(loss, np.zeros(2), jac=True, method="BFGS", options={"gtol": 1e-9}).x
    if slope <= 0:
        return NO_MAP
    return torch.tensor([[slope / scale], [intercept - slope * centre / scale]], dtype=torch.float64)


def platt_logit(line: Tensor, scores: Tensor) -> Tensor:
    """Slope * score + intercept."""
    slope, intercept = line.to(scores)
    logit: Tensor = slope * scores + intercept
    return logit


def fit_isotonic(scores: np.ndarray, z: np.ndarray, weight: np.ndarray) -> Tensor:
    """Scores and probabilities of the corners of a rising, piecewise linear function (2 x k).

    No probability is surer than the data make it: it stays within 1 / (N + 2) of 0 and 1, so that its logit is finite.

    Args:
        scores: n.
        z: labels in [0, 1], n.
        weight: n.

    References:
        Zadrozny & Elkan, Transforming classifier scores into accurate multiclass probability estimates, 2002.
    """
    least = 1 / (weight.sum() + 2)
    isotonic = library("sklearn.isotonic", "isotonic calibration").IsotonicRegression(y_min=least, y_max=1 - least)
    isotonic.fit(scores, z, sample_weight=weight)
    corners = torch.from_numpy(np.stack([isotonic.X_thresholds_, isotonic.y_thresholds_]))
    return corners if corners[1, -1] > corners[1, 0] else NO_MAP


def isotonic_logit(corners: Tensor, scores: Tensor) -> Tensor:
    """The logit of the probability between two corners; beyond the last one it stays the same."""
    at, probability = corners.to(scores.device)
    wanted = scores.detach().double()  # two corners may be closer than single precision tells
    right = torch.searchsorted(at, wanted).clamp(1, len(at) - 1)
    share = ((wanted - at[right - 1]) / (at[right] - at[right - 1])).clamp(0, 1)
    return torch.lerp(probability[right - 1], probability[right], share).logit().to(scores)


def score_of_logit(logit: Tensor, link: Link) -> Tensor:
    """The score of the same probability under a link, from a logit of any shape."""
    if link is Link.LOGIT:
        return logit
    if link is Link.IDENTITY:
        return logit.sigmoid()
    smaller = (-logit.abs()).double().clamp(min=MOST_CERTAIN).sigmoid()  # of both classes, which keeps all its digits
    probit: Tensor = -logit.sign() * torch.special.ndtri(smaller)
    return probit.to(logit)


Fit = Callable[[np.ndarray, np.ndarray, np.ndarray], Tensor]
METHODS: dict[str, tuple[Fit, Callable[[Tensor, Tensor], Tensor]]] = {
    "platt": (fit_platt, platt_logit),
    "isotonic": (fit_isotonic, isotonic_logit),
}
