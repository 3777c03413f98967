"""What probabilistic least squares knows of the scores at n points, with one setting of its kernel or several."""

import math
from dataclasses import dataclass
from functools import cached_property

from torch import Tensor

from deepbore.classifiers.kernels import ScaledKernel
from deepbore.classifiers.link import Link
from deepbore.classifiers.posterior import GaussianPosterior, MixturePosterior


@dataclass(frozen=True)
class KernelModel:
    """What the posterior of probabilistic least squares is computed from.

    Attributes:
        kernel: k, with its length scales and amplitude.
        x: rows as coordinates, n x c.
        root: R with R^T R = (K_t + lambda I)^-1, n x n.
        coefficients: (K_t + lambda I)^-1 z_t, n.
        regularisation: lambda, a scalar.
        information: log det(I + K_t / lambda) / 2, a scalar.
    """

    kernel: ScaledKernel
    x: Tensor
    root: Tensor
    coefficients: Tensor
    regularisation: Tensor
    information: Tensor


class KernelPosterior(GaussianPosterior):
    """pi_t and sigma_t of probabilistic least squares at n points; the mean alone costs no variance.

    Args:
        model: what was fitted.
        x: the points as coordinates, n x c.
    """

    def __init__(self, model: KernelModel, x: Tensor):
        self.model, self.x = model, x
        self._k = model.kernel(x, model.x)
        super().__init__(self._k @ model.coefficients, None, Link.IDENTITY)

    @cached_property
    def std(self) -> Tensor:  # computed once, and only if it is asked for
        """sigma_t of Theorem 1 (n)."""
        variance = self.model.kernel.amplitude - self._explained.square().sum(-1)
        return variance.clamp(min=1e-12).sqrt()

    def covariance(self) -> Tensor:
        """k(x, x') - k_t(x)^T (K_t + lambda I)^-1 k_t(x'), the joint form of Theorem 1's sigma_t^2 (n x n)."""
        covariance: Tensor = self.model.kernel(self.x, self.x) - self._explained @ self._explained.mT
        return covariance

    def beta(self, delta: float, norm: float) -> Tensor:
        """beta_t(delta) of Theorem 1: with probability 1 - delta, |pi - pi_t| <= beta_t sigma_t everywhere.

        beta_t = b + (sqrt(2 (log det(I + K_t / lambda) / 2 - log delta) / lambda)), under the theorem's assumptions:
        pi lies in the RKHS of a kernel that was fixed beforehand, as were lambda and what the labels mean. A learned
        kernel, and thresholds that move with the data, keep none of that promise.

        Args:
            delta: in (0, 1).
            norm: b, a bound on the RKHS norm of pi.

        Returns:
            A scalar.
        """
        return norm + (2 / self.model.regularisation * (self.model.information - math.log(delta))).sqrt()

    @cached_property
    def _explained(self) -> Tensor:
        return self._k @ self.model.root.mT

    @property
    def scale(self) -> Tensor:
        return self.model.kernel.amplitude


class AveragedPosterior(MixturePosterior):
    """Several settings of the kernel, the most likely first, that count equally.

    Args:
        parts: with each of them, at the same points.
    """

    def __init__(self, parts: list[KernelPosterior]):
        super().__init__(parts)
        self.most_likely = parts[0]

    def beta(self, delta: float, norm: float) -> Tensor:
        """beta_t(delta) of Theorem 1 with the most likely settings: see `KernelPosterior.beta`."""
        return self.most_likely.beta(delta, norm)
