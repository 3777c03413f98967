"""Expected improvement over the best label."""

import math

import torch
from torch import Tensor

from deepbore.acquisition.base import Acquisition
from deepbore.classifiers.link import Link
from deepbore.classifiers.posterior import Posterior

CERTAIN = 1e-9  # least standard deviation: a certain point is ranked by its mean


class LogExpectedImprovement(Acquisition):
    """log E[max(z - z*, 0)] under the classifier's Gaussian: improvement over the best label z* (`Labels.best`).

    For classifiers that fit the labels by least squares. A label graded by value is linear in the value up to tau, and
    the Gaussian extends this line beyond z*. On such labels it is therefore the expected improvement over the best
    value of a Gaussian process that sees values up to tau as they are and worse values saturated (see docs/theory.md).
    Unlike the labels' mean, the Gaussian is not truncated at the best value. On labels by one threshold, where all good
    rows have the best label 1, it only measures how far the score may exceed 1.

    The logarithm has gradients where the improvement itself is 0 in floating point (Ament et al., Unexpected
    improvements to expected improvement for Bayesian optimization, 2023). z* is 1 for labels whose best row has the
    grade 1, but not for every labelling: `ImprovementLabels` stay below 1.

    If the posterior has scenarios of the labels without noise (`KernelPLS(noisy=True)`), it is averaged over these, as
    noisy expected improvement (Letham et al., Constrained Bayesian optimization with noisy experiments, 2019).

    It is the default of `KernelPLS`, and of your own classifiers that are `Classifier.distance_aware`.
    """

    links = frozenset({Link.IDENTITY})
    needs = frozenset({"std"})

    def __call__(self, posterior: Posterior, best: Tensor | float) -> Tensor:
        scenarios = posterior.noiseless
        if scenarios is not None:
            each = log_improvement(scenarios.mean.double() - scenarios.shift, scenarios.std[:, None], best)
            return each.logsumexp(-1) - math.log(each.shape[-1])
        return log_improvement(posterior.mean, posterior.std, best)

    def log_density(self, posterior: Posterior, best: Tensor | float) -> Tensor:
        return self(posterior, best)


def log_improvement(mean: Tensor, std: Tensor, best: Tensor | float) -> Tensor:
    """log E[max(z - best, 0)] of normal z; in double precision."""
    std = std.double().clamp(min=CERTAIN)
    return std.log() + log_h((mean.double() - best) / std)


def log_h(u: Tensor) -> Tensor:
    """log(phi(u) + u Phi(u)), phi and Phi the standard normal density and distribution function; stable for all u."""
    density = -u * u / 2 - math.log(2 * math.pi) / 2
    above = torch.where(u > -1, u, -1.0)  # not `clamp`, whose gradient at the bound itself is none of either branch
    direct = ((-above * above / 2).exp() / math.sqrt(2 * math.pi) + above * torch.special.ndtr(above)).log()
    below = torch.where(
        u > -1, -1.0, u
    )  # Phi(u) / phi(u) by the scaled error function, where Phi itself loses its digits
    mills = math.sqrt(math.pi / 2) * torch.special.erfcx(-below / math.sqrt(2))
    tail = density + torch.log1p((below * mills).clamp(min=-1 + 1e-12))
    return torch.where(u > -1, direct, tail)
