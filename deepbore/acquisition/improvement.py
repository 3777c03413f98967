"""Expected improvement over the best label."""

import math

import torch
from torch import Tensor

from deepbore.acquisition.base import Acquisition
from deepbore.classifiers.link import Link
from deepbore.classifiers.posterior import Posterior

CERTAIN = 1e-9  # the least standard deviation: a certain point is ranked by its mean


class LogExpectedImprovement(Acquisition):
    """log E[max(z - z*, 0)] under the classifier's Gaussian: improvement over the best label z* (`Labels.best`).

    For heads that fit the labels by least squares. A label graded by value is linear in the value below tau, so that
    z > z* is a value below the best one, and this is expected improvement on what the labels keep of the values: all
    of the good ones, of the bad little more than their order. Its logarithm keeps gradients where the improvement
    itself is 0 in floating point (Ament et al., Unexpected improvements to expected improvement for Bayesian
    optimization, 2023).

    It is the default of heads whose deviation grows away from the data (`Classifier.distance_aware`), such as
    `KernelPLS`. The best label is 1 for labels whose best row has the grade 1, but not for every labelling.
    """

    links = frozenset({Link.IDENTITY})
    needs = frozenset({"std"})

    def __call__(self, posterior: Posterior, best: Tensor | float) -> Tensor:
        mean, std = posterior.mean.double(), posterior.std.double().clamp(min=CERTAIN)
        return std.log() + log_h((mean - best) / std)

    def log_density(self, posterior: Posterior, best: Tensor | float) -> Tensor:
        return self(posterior, best)


def log_h(u: Tensor) -> Tensor:
    """log(phi(u) + u Phi(u)), phi and Phi the standard normal density and distribution function; stable for all u."""
    density = -u * u / 2 - math.log(2 * math.pi) / 2
    above = u.clamp(min=-1)
    direct = ((-above * above / 2).exp() / math.sqrt(2 * math.pi) + above * torch.special.ndtr(above)).log()
    below = u.clamp(max=-1)  # Phi(u) / phi(u) by the scaled error function, where Phi itself loses its digits
    mills = math.sqrt(math.pi / 2) * torch.special.erfcx(-below / math.sqrt(2))
    tail = density + torch.log1p((below * mills).clamp(min=-1 + 1e-12))
    return torch.where(u > -1, direct, tail)
