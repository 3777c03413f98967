"""Expected improvement over the best label."""

import math

import torch
from torch import Tensor

from deepbore.acquisition.base import Acquisition
from deepbore.classifiers.base import Classifier

CERTAIN = 1e-9  # the least standard deviation: a point estimate is ranked by its mean


class LogExpectedImprovement(Acquisition):
    """log E[max(z - 1, 0)] under the classifier's Gaussian: improvement over the best label, which is 1.

    For heads that fit the labels by least squares. A label graded by value is linear in the value below tau, so that
    z > 1 is a value below the best one, and this is expected improvement on what the labels keep of the values: all of
    the good ones, none of the bad. Its logarithm keeps gradients where the improvement itself is 0 in floating point
    (Ament et al., Unexpected improvements to expected improvement for Bayesian optimization, 2023).
    """

    def __call__(self, classifier: Classifier, points: Tensor) -> Tensor:
        mean, std = (moment.double() for moment in classifier.gaussian(points))
        std = std.clamp(min=CERTAIN)
        return std.log() + log_h((mean - 1) / std)

    def log_density(self, classifier: Classifier, points: Tensor) -> Tensor:
        return self(classifier, points)


def log_h(u: Tensor) -> Tensor:
    """log(phi(u) + u Phi(u)), phi and Phi the standard normal density and distribution function; stable for all u."""
    density = -u * u / 2 - math.log(2 * math.pi) / 2
    above = u.clamp(min=-1)
    direct = ((-above * above / 2).exp() / math.sqrt(2 * math.pi) + above * torch.special.ndtr(above)).log()
    below = u.clamp(max=-1)  # Phi(u) / phi(u) by the scaled error function, where Phi itself loses its digits
    mills = math.sqrt(math.pi / 2) * torch.special.erfcx(-below / math.sqrt(2))
    tail = density + torch.log1p((below * mills).clamp(min=-1 + 1e-12))
    return torch.where(u > -1, direct, tail)
