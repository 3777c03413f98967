"""`Link`: what a classifier's scores are, and the probability that they stand for."""

import math
from enum import StrEnum

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid, softplus

SHARPNESS = 20.0  # of the smooth floor under estimated labels: below 0 their density falls by e each 1 / 20
TAIL = -20.0  # below this, log softplus(t) is t to all digits


class Link(StrEnum):
    """From a score s to a probability: the score itself, sigmoid(s), or Phi(s).

    `IDENTITY` is for heads that fit the labels by least squares, `LOGIT` for cross-entropy, `PROBIT` for Gaussian
    process classifiers.
    """

    IDENTITY = "identity"
    LOGIT = "logit"
    PROBIT = "probit"

    def probability(self, score: Tensor) -> Tensor:
        """Scores of any shape -> probabilities, for showing, not for maximising.

        Estimated labels are clipped to [0, 1] here and only here (Oliveira et al. 2022, eq. 20): a clipped score has no
        gradient.
        """
        if self is Link.IDENTITY:
            return score.clamp(0, 1)
        return score.sigmoid() if self is Link.LOGIT else torch.special.ndtr(score)

    def log_probability(self, score: Tensor) -> Tensor:
        """Scores of any shape -> logarithm of a density to sample batches from, up to a constant.

        The density is the class probability, or the bound on it, that the scores stand for (Oliveira et al. 2022,
        eq. 23); of an estimated label a softplus in place of the clipping to 0 of eq. 20, which has no gradient.
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
        """The logit of the mean probability of scores along a dimension, or their mean label.

        It never leaves the scale of logarithms, so it keeps values and gradients where a probability is 0 or 1 in
        floating point. The links are symmetric: log(1 - p(s)) = log p(-s).
        """
        if self is Link.IDENTITY:
            return scores.mean(dim)
        return self.log_probability(scores).logsumexp(dim) - self.log_probability(-scores).logsumexp(dim)


def log_softplus(t: Tensor) -> Tensor:
    """log(log(1 + e^t)), stable for all t."""
    return torch.where(t > TAIL, softplus(t.clamp(min=TAIL)).log(), t)
