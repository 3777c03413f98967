"""The posterior of probabilistic least squares, and samples of the labels without noise."""

import math
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from scipy.linalg import blas
from torch import Tensor
from torch.autograd.function import once_differentiable

from deepbore.classifiers.kernel.kernels import Kernel, LearnedKernel
from deepbore.classifiers.link import Link
from deepbore.classifiers.posterior import GaussianPosterior, MomentFormula, Noiseless
from deepbore.compute.arrays import Array, as_tensor, is_native, module_of, native, scalar

JITTER = 1e-10
SCENARIOS = 32  # samples of the labels without noise
LEAST = 1e-12  # variance
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
        into: the matrix of the coordinates, if they are linear in the points (d x c); else None.
    """

    def __init__(self, model: KernelModel, x: Tensor, into: Tensor | None = None):
        self.model, self.x, self.into, self.link = model, x, into, Link.IDENTITY
        self._lowered_by: Tensor | float = 0.0

    @cached_property
    def _k(self) -> Tensor:
        """k_t(x), n x rows."""
        return self.model.kernel(self.x, self.model.x)

    @property
    def mean(self) -> Tensor:
        """pi_t (n)."""
        return self._k @ self.model.coefficients - self._lowered_by

    def of_moments(self, formula: MomentFormula) -> Tensor:
        if not self._is_by_hand:
            return super().of_moments(formula)
        value: Tensor = OfKernelMoments.apply(self.x, self._lowered_by, self.model, formula)
        return value

    def gradient(self, formula: MomentFormula) -> Tensor | None:
        """The gradients of a formula of the moments in the points (n x d); None where only torch finds them."""
        if self.into is None or not self._is_by_hand or self.noiseless is not None:
            return None
        assert isinstance(self._lowered_by, float)
        _, by_x = kernel_moments(native(self.x), self._lowered_by, self.model, formula, slopes=True)
        assert by_x is not None
        return torch.from_numpy(by_x @ native(self.into).T)

    @property
    def _is_by_hand(self) -> bool:
        """Whether NumPy computes, with derivatives by hand."""
        return isinstance(self.model.kernel, LearnedKernel) and is_native(self.x)

    @cached_property
    def std(self) -> Tensor:
        """sigma_t of Theorem 1 (n)."""
        return deviation(self._k, self.model.root, self.model.kernel.amplitude, LEAST)

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
        lowered._lowered_by, lowered.into = self._lowered_by + by, None
        return lowered

    @property
    def scale(self) -> Tensor:
        return self.model.kernel.amplitude

    @property
    def noiseless(self) -> Noiseless | None:
        known = self.model.noiseless
        if known is None:
            return None
        std = deviation(self._k, known.root, self.model.kernel.amplitude, 1e-18)
        return Noiseless(self._k @ known.coefficients, std, known.shift)


def deviation(k: Tensor, root: Tensor, amplitude: Tensor, least: float) -> Tensor:
    """sqrt(amplitude - |R k|^2) of each row k (m x n), with gradients in k: m.

    Args:
        k: m x n.
        root: R, lower triangular, n x n.
        amplitude: a scalar.
        least: the least variance.
    """
    std: Tensor = Deviation.apply(k, root, scalar(amplitude), least)
    return std


class Deviation(torch.autograd.Function):
    """`deviation` as a function of torch."""

    @staticmethod
    def forward(ctx: Any, k: Tensor, root: Tensor, amplitude: float | Tensor, least: float) -> Tensor:
        std, ctx.pull_back = deviation_by_hand(native(k), native(root), amplitude, least)
        return as_tensor(std)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, derivative: Tensor) -> tuple[Tensor, None, None, None]:
        return as_tensor(ctx.pull_back(native(derivative))), None, None, None


class OfKernelMoments(torch.autograd.Function):
    """`kernel_moments` as a function of torch: value and gradient at once."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, lowered_by: Tensor | float, model: KernelModel, formula: MomentFormula) -> Tensor:
        by = lowered_by if isinstance(lowered_by, float) else native(lowered_by)
        value, ctx.gradient = kernel_moments(native(x), by, model, formula, ctx.needs_input_grad[0])
        return torch.from_numpy(value)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, derivative: Tensor) -> tuple[Tensor, None, None, None]:
        return derivative[:, None] * torch.from_numpy(ctx.gradient), None, None, None


def kernel_moments(
    x: np.ndarray, lowered_by: np.ndarray | float, model: KernelModel, formula: MomentFormula, slopes: bool
) -> tuple[np.ndarray, np.ndarray | None]:
    """A formula of the moments at points on the CPU (n), and its gradient (n x c), None unless `slopes`.

    Args:
        x: the points as coordinates, n x c.
        lowered_by: what the mean is reduced by.
        model: the fitted model, with a `LearnedKernel`.
        formula: of means and standard deviations.
        slopes: whether the gradient is wanted.
    """
    kernel, rows, coefficients = model.kernel, native(model.x), native(model.coefficients)
    assert isinstance(kernel, LearnedKernel)
    k, pull_back = kernel.with_pull_back(x, rows) if slopes else (kernel.by_hand(x, rows), None)
    std, std_pull_back = deviation_by_hand(k, native(model.root), float(kernel.amplitude), LEAST)
    value, by_mean, by_std = formula(k @ coefficients - lowered_by, std)
    return value, pull_back and pull_back(by_mean[:, None] * coefficients + std_pull_back(by_std))


def deviation_by_hand(k: Array, root: Array, amplitude: Array, least: float) -> tuple[Array, Callable[[Array], Array]]:
    """`deviation`, and a function from a derivative in it to that in k: d std / dk = -R^T R k / std."""
    explained = times_transposed(k, root)
    variance = amplitude - module_of(k).einsum("ij,ij->i", explained, explained)
    std = variance.clip(least) ** 0.5
    return std, lambda by: (-by / std * (variance >= least))[:, None] * (explained @ root)


def times_transposed(k: Array, root: Array) -> Array:
    """k R^T for a lower triangular R (m x n and n x n), which half of the arithmetic is enough for."""
    if module_of(k) is np and len(k):
        return blas.dtrmm(1.0, root.T, k.T, side=0, lower=0, trans_a=1).T
    return k @ root.T


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

    def to(self, device: torch.device) -> "NoiselessRows":
        """The same on a device."""
        return NoiselessRows(self.root.to(device), self.coefficients.to(device), self.shift.to(device))


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
