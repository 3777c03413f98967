"""Expected improvement over the best label."""

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from deepbore.acquisition.base import Acquisition
from deepbore.classifiers.link import Link
from deepbore.classifiers.posterior import MomentFormula, OfMoments, Posterior
from deepbore.compute.arrays import Array, as_tensor, module_of, native, special_of

FAR = -1 + 1e-12  # u Phi(u) / phi(u), from where on its distance from -1 is lost and h'(u) / h(u) is -u
HIGH = 5.0  # u from where on h is computed directly: Phi / phi overflows beyond 37
CERTAIN = 1e-9  # least standard deviation: a certain point is ranked by its mean


class LogExpectedImprovement(Acquisition):
    """`log E[max(z - z*, 0)]` under the classifier's Gaussian: improvement over the best label `z*` (`Labels.best`).

    For classifiers that fit the labels by least squares. A label graded by value is linear in the value up to tau, and
    the Gaussian extends this line beyond `z*`. On such labels it is therefore the expected improvement over the best
    value of a Gaussian process that sees values up to tau as they are and worse values saturated (see docs/theory.md).
    Unlike the labels' mean, the Gaussian is not truncated at the best value. On labels by one threshold, where all good
    rows have the best label 1, it only measures how far the score may exceed 1.

    The logarithm has gradients where the improvement itself is 0 in floating point (Ament et al., Unexpected
    improvements to expected improvement for Bayesian optimization, 2023). `z*` is 1 for labels whose best row has the
    grade 1, but not for every labelling: `ImprovementLabels` stay below 1.

    If the posterior has scenarios of the labels without noise (`KernelPLS(noisy=True)`), it is averaged over these, as
    noisy expected improvement (Letham et al., Constrained Bayesian optimization with noisy experiments, 2019).

    It is the default of `KernelPLS`, and of your own classifiers that are `Classifier.distance_aware`.
    """

    links = frozenset({Link.IDENTITY})
    needs = frozenset({"std"})
    is_logarithm = True

    def __call__(self, posterior: Posterior, best: Tensor | float) -> Tensor:
        scenarios = posterior.noiseless
        if scenarios is not None:
            each = log_improvement(scenarios.mean.double() - scenarios.shift, scenarios.std[:, None], best)
            return each.logsumexp(-1) - math.log(each.shape[-1])
        return posterior.of_moments(improvement_over(best))

    def formula(self, best: Tensor | float) -> MomentFormula | None:
        is_own = type(self).__call__ is LogExpectedImprovement.__call__  # rather than a subclass's
        return improvement_over(best) if is_own else None


def log_improvement(mean: Tensor, std: Tensor, best: Tensor | float) -> Tensor:
    """log E[max(z - best, 0)] of normal z; in double precision, with gradients in mean and std."""
    mean, std = torch.broadcast_tensors(mean.double(), std.double())
    value: Tensor = OfMoments.apply(mean, std, improvement_over(best))
    return value


def improvement_over(best: Tensor | float) -> MomentFormula:
    """log s + log h(u) with u = (m - best) / s.

    With q = h'(u) / h(u) its derivatives are q / s in m and (1 - q u) / s in s.

    Args:
        best: a scalar.
    """

    def formula(mean: Array, std: Array) -> tuple[Array, Array, Array]:
        incumbent = native(best) if isinstance(best, Tensor) else best
        s = std.clip(CERTAIN)
        u = (mean - incumbent) / s
        value, q = log_h_and_slope(u)
        return value + module_of(s).log(s), q / s, (1 - q * u) / s * (std >= CERTAIN)

    return formula


def log_h(u: Tensor) -> Tensor:
    """log(phi(u) + u Phi(u)), phi and Phi the standard normal density and distribution function; stable for all u."""
    value: Tensor = LogH.apply(u)
    return value


class LogH(torch.autograd.Function):
    """`log_h` as a function of torch."""

    @staticmethod
    def forward(ctx: Any, u: Tensor) -> Tensor:
        value, ctx.q = log_h_and_slope(native(u))
        return as_tensor(value)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, derivative: Tensor) -> Tensor:
        return as_tensor(native(derivative) * ctx.q)


def log_h_and_slope(u: Array) -> tuple[Array, Array]:
    """log h(u) with h(u) = phi(u) + u Phi(u), and its derivative Phi(u) / h(u)."""
    xp, special = module_of(u), special_of(u)
    low = u.clip(None, HIGH)
    mills = special.erfcx(low * -math.sqrt(0.5)) * math.sqrt(math.pi / 2)  # Phi / phi, where both may be 0
    rest = (low * mills).clip(FAR)
    value = low * low * -0.5 - math.log(2 * math.pi) / 2 + xp.log1p(rest)
    slope = xp.where(rest > FAR, mills / (1 + rest), -low)
    is_high = u > HIGH
    if xp is np and not is_high.any():  # an accelerator would have to be waited for
        return value, slope
    high = u.clip(HIGH)
    h = xp.exp(high * high * -0.5) * (1 / math.sqrt(2 * math.pi)) + high * special.ndtr(high)
    return xp.where(is_high, xp.log(h), value), xp.where(is_high, special.ndtr(high) / h, slope)
