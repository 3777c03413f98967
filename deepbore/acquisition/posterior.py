"""Acquisitions of a classifier's posterior: expected probability, and single samples."""

import math

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from deepbore.acquisition.base import Acquisition
from deepbore.classifiers.base import Classifier
from deepbore.errors import SettingError


class ExpectedProbability(Acquisition):
    """E[pi(x)] under the posterior of the score, on the scale of logits, where it keeps gradients (BOGGN eq. 3.1).

    For scores that estimate labels the expectation is the mean. For logits f ~ N(m, s^2) the logit of the expected
    sigmoid is about m / sqrt(1 + pi s^2 / 8) (probit approximation), or comes from the classifier's samples
    (BOGGN eq. 7.6).

    Args:
        by: "probit" or "samples".

    Raises:
        SettingError: for another way.
    """

    def __init__(self, by: str = "probit"):
        if by not in ("probit", "samples"):
            raise SettingError(f'by must be "probit" or "samples", but got by={by!r}.')
        self.by = by

    def __call__(self, classifier: Classifier, points: Tensor) -> Tensor:
        if self.by == "samples":
            scores = classifier.scores(points)
            return scores.mean(0) if classifier.estimates_labels else logit_of_mean(scores)
        mean, std = classifier.gaussian(points)
        return mean if classifier.estimates_labels else mean / (1 + math.pi / 8 * std.square()).sqrt()


class PosteriorSample(Acquisition):
    """The score of one member or posterior sample: maximised, it is Thompson sampling.

    Args:
        member: which one, counted from 0, modulo their number.
    """

    def __init__(self, member: int = 0):
        self.member = member

    def __call__(self, classifier: Classifier, points: Tensor) -> Tensor:
        scores = classifier.scores(points)
        return scores[self.member % len(scores)]


def logit_of_mean(logits: Tensor) -> Tensor:
    """logit(mean(sigmoid(f))) over the members (m x n -> n), without leaving the scale of logarithms."""
    return torch.logsumexp(logsigmoid(logits), dim=0) - torch.logsumexp(logsigmoid(-logits), dim=0)
