"""`Link`: the map from a classifier's scores to probabilities."""

import math
from enum import StrEnum

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid, softplus

SHARPNESS = 20.0  # of the softplus for estimated labels: below 0 the density falls by a factor of e per 1 / 20
TAIL = -20.0  # below this, log softplus(t) equals t to all digits


class Link(StrEnum):
    """The map from a score s to a probability: the identity, sigmoid(s), or Phi(s).

    | link | models |
    |---|---|
    | `IDENTITY` | fits of the labels by least squares |
    | `LOGIT` | fits by cross-entropy |
    | `PROBIT` | Gaussian process classifiers |
    """

    IDENTITY = "identity"
    LOGIT = "logit"
    PROBIT = "probit"

    def probability(self, score: Tensor) -> Tensor:
        """Scores of any shape -> probabilities, for display, not for maximisation.

        Estimated labels are clipped to [0, 1] here only (Oliveira et al. 2022, eq. 20): a clipped score has no
        gradient.
        """
        if self is Link.IDENTITY:
            return score.clamp(0, 1)
        return score.sigmoid() if self is Link.LOGIT else torch.special.ndtr(score)

    def log_probability(self, score: Tensor) -> Tensor:
        """Scores of any shape -> log density, up to a constant, from which batches are sampled.

        The density is the class probability of the scores, or the bound on it (Oliveira et al. 2022, eq. 23). For
        estimated labels a softplus replaces the clipping at 0 of eq. 20, which has no gradient.
        """
        if self is Link.IDENTITY:
            return log_softplus(SHARPNESS * score)
        return logsigmoid(score) if self is Link.LOGIT else torch.special.log_ndtr(score)

    def expected_score(self, mean: Tensor, std: Tensor) -> Tensor:
        """The score whose probability is the expected probability of a score s ~ N(mean, std^2).

        IDENTITY: the mean. PROBIT: mean / sqrt(1 + std^2), exact. LOGIT: mean / sqrt(1 + pi std^2 / 8), the probit
        approximation (MacKay, 1992; Bishop 2006, eq. 4.153).
        """
        if self is Link.IDENTITY:
            return mean
        return mean / (1 + (math.pi / 8 if self is Link.LOGIT else 1.0) * std.square()).sqrt()

    def score_of_mean(self, scores: Tensor, dim: int) -> Tensor:
        """The logit of the mean probability of scores along a dimension, or the mean label.

        Computed in logarithms, it keeps values and gradients where a probability is 0 or 1 in floating point. The links
        are symmetric: log(1 - p(s)) = log p(-s).
        """
        if self is Link.IDENTITY:
            return scores.mean(dim)
        return self.log_probability(scores).logsumexp(dim) - self.log_probability(-scores).logsumexp(dim)


def log_softplus(t: Tensor) -> Tensor:
    """log(log(1 + e^t)), stable for all t."""
    return torch.where(t > TAIL, softplus(t.clamp(min=TAIL)).log(), t)
