"""The posterior of probabilistic least squares, and samples of the labels without noise."""

import math
from copy import copy
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from deepbore.classifiers.kernel.kernels import Kernel
from deepbore.classifiers.link import Link
from deepbore.classifiers.posterior import GaussianPosterior, Noiseless

JITTER = 1e-10
SCENARIOS = 32  # samples of the labels without noise
STEADY = 1e-6  # the largest jitter of their covariance, in units of the amplitude


@dataclass(frozen=True)
class KernelModel:
    """The fitted quantities that the posterior is computed from.

    Attributes:
        kernel: k, with its length scales and amplitude.
        x: rows as coordinates, n x c.
        root: R with R^T R = (K_t + lambda I)^-1, n x n.
        coefficients: (K_t + lambda I)^-1 z_t, n.
        regularisation: lambda, a scalar.
        information: log det(I + K_t / lambda) / 2, a scalar.
        noiseless: samples of the labels without noise; None if values are not noisy.
    """

    kernel: Kernel
    x: Tensor
    root: Tensor
    coefficients: Tensor
    regularisation: Tensor
    information: Tensor
    noiseless: "NoiselessRows | None" = None


class KernelPosterior(GaussianPosterior):
    """pi_t and sigma_t of probabilistic least squares at n points; the variance is computed only on demand.

    Args:
        model: the fitted model.
        x: the points as coordinates, n x c.
    """

    def __init__(self, model: KernelModel, x: Tensor):
        self.model, self.x = model, x
        self._k = model.kernel(x, model.x)
        super().__init__(self._k @ model.coefficients, None, Link.IDENTITY)

    @cached_property
    def std(self) -> Tensor:
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
        pi lies in the RKHS of a kernel that was fixed beforehand, as were lambda and the meaning of the labels. With a
        learned kernel, or thresholds that depend on the data, nothing is guaranteed.

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

    def lowered(self, by: Tensor) -> "KernelPosterior":
        """The same posterior with its mean reduced by `by` (n)."""
        lowered = copy(self)
        lowered._mean = self._mean - by
        return lowered

    @property
    def scale(self) -> Tensor:
        return self.model.kernel.amplitude

    @property
    def noiseless(self) -> Noiseless | None:
        known = self.model.noiseless
        if known is None:
            return None
        variance = self.model.kernel.amplitude - (self._k @ known.root.mT).square().sum(-1)
        return Noiseless(self._k @ known.coefficients, variance.clamp(min=1e-18).sqrt(), known.shift)


@dataclass(frozen=True)
class NoiselessRows:
    """Scenarios: labels of the rows without noise, sampled from the posterior.

    Attributes:
        root: R with R^T R = K_t^-1, n x n.
        coefficients: K_t^-1 f_j of s scenarios f_j, n x s.
        shift: the best label of each scenario minus the best observed label, s.
    """

    root: Tensor
    coefficients: Tensor
    shift: Tensor


def noiseless_scenarios(
    covariance: Tensor, root: Tensor, z: Tensor, regularisation: float, may_be_best: Tensor
) -> NoiselessRows:
    """Scenarios of n rows, sampled with a fixed seed: the same rows give the same scenarios.

    Args:
        covariance: K_t, n x n.
        root: R with R^T R = (K_t + lambda I)^-1, n x n.
        z: labels, n.
        regularisation: lambda.
        may_be_best: which rows may be the incumbent (n booleans, at least one).
    """
    explained = covariance @ root.mT
    values, vectors = torch.linalg.eigh(covariance - explained @ explained.mT)
    stream = torch.Generator().manual_seed(0)
    half = torch.randn(len(z), SCENARIOS // 2, dtype=torch.float64, generator=stream).to(covariance)
    spread = values.clamp(min=0).sqrt()[:, None] * (vectors.mT @ torch.cat([half, -half], -1))
    drawn = (explained @ (root @ z))[:, None] + vectors @ spread
    steady = min(regularisation, STEADY * float(covariance[0, 0])) + JITTER
    identity = torch.eye(len(z), dtype=z.dtype, device=z.device)
    factor = torch.linalg.cholesky(covariance + steady * identity)
    inverse_root = torch.linalg.solve_triangular(factor, identity, upper=False)
    coefficients = inverse_root.mT @ (inverse_root @ drawn)
    best = (covariance @ coefficients)[may_be_best].max(0).values
    return NoiselessRows(inverse_root, coefficients, best - z[may_be_best].max())
