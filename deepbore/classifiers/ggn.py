"""Gaussian posteriors over the weights of a linearised network, N(theta_MAP, Sigma_GGN), from factors of its Jacobian.

The derivative of the output in layer l's weights is the outer product of two short vectors, a_l(x) and g_l(x) (see
`StackedMLP.jacobian_factors`), so inner products of whole Jacobians, all that the function-space form needs
(BOGGN section 7.5), cost no more than a forward pass:

    J(x) J(x')^T = sum over l of (a_l(x) . a_l(x')) (g_l(x) . g_l(x'))

The prior is N(0, I / delta); Lambda holds each row's weight times pi (1 - pi), the GGN of the Bernoulli likelihood.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property

import torch
from torch import Tensor

from deepbore.classifiers.link import Link
from deepbore.classifiers.posterior import GaussianPosterior

Factors = Sequence[tuple[Tensor, Tensor]]  # for each layer a (n x i) and g (n x o)
Weights = list[Tensor]  # for each layer i x o, after any leading dimensions


class GGNPosterior(ABC):
    """The posterior of the weights' deviation from the MAP estimate, Sigma = (J^T Lambda J + delta I)^-1 or near it.

    Args:
        factors: of the n training rows.
        curvature: the diagonal of Lambda, n, positive.
        delta: prior precision.

    Attributes:
        log_determinant: log det(Sigma^-1 / delta).
        effective: number of parameters that the data determine (MacKay, 1992): tr(I - delta Sigma).
    """

    log_determinant: Tensor
    effective: Tensor

    def __init__(self, factors: Factors, curvature: Tensor, delta: float):
        self.factors = [(a.double(), g.double()) for a, g in factors]
        self.curvature, self.delta = curvature.double(), delta
        self.prepare()

    @abstractmethod
    def prepare(self) -> None:
        """Computes what predictions need."""

    @abstractmethod
    def variance(self, factors: Factors) -> Tensor:
        """J(x) Sigma J(x)^T for n points (n), with gradients in their factors."""

    @abstractmethod
    def covariance(self, factors: Factors) -> Tensor:
        """J(x) Sigma J(x')^T for all pairs of n points (n x n), with gradients in their factors."""

    @abstractmethod
    def sample(self, count: int, generator: torch.Generator) -> Weights:
        """Deviations from the MAP estimate, for each layer count x i x o."""

    def _normal(self, count: int, generator: torch.Generator) -> Weights:
        shapes = [(count, a.shape[1], g.shape[1]) for a, g in self.factors]
        device = self.curvature.device
        return [torch.randn(shape, generator=generator, dtype=torch.float64).to(device) for shape in shapes]


class LinearisedPosterior(GaussianPosterior):
    """The logit of a linearised network, f(x) ~ N(f(x; theta_MAP), J(x) Sigma J(x)^T), in closed form.

    Its members are samples of the weights: the same functions for all points, for the whole of an iteration. Deviations
    and members are worked out only when they are asked for.

    Args:
        mean: the network's logit, n.
        factors: of its Jacobian.
        weights: the posterior of the weights.
        samples: of the weights' deviation.
        link: what the scores are.
    """

    def __init__(self, mean: Tensor, factors: Factors, weights: GGNPosterior, samples: Weights, link: Link):
        self._mean, self.factors, self.weights, self.samples, self.link = mean, factors, weights, samples, link

    @cached_property
    def std(self) -> Tensor:  # type: ignore[override]  # computed once
        return self.weights.variance(self.factors).clamp(min=1e-12).sqrt().to(self.mean)

    @cached_property
    def members(self) -> Tensor:  # type: ignore[override]  # computed once
        return self.mean + linear_outputs(self.factors, self.samples).to(self.mean)

    def covariance(self) -> Tensor:
        return self.weights.covariance(self.factors).to(self.mean)


class FunctionSpace(GGNPosterior):
    """The whole Sigma through the n x n matrix of inner products, for n < P (BOGGN section 7.5)."""

    def prepare(self) -> None:
        self.root = self.curvature.sqrt()
        kernel = inner_products(self.factors, self.factors)
        scaled = self.root[:, None] * kernel * self.root / self.delta
        identity = torch.eye(len(scaled), dtype=scaled.dtype, device=scaled.device)
        self.cholesky = torch.linalg.cholesky(identity + scaled)
        self.inverse = torch.linalg.solve_triangular(self.cholesky, identity, upper=False)
        self.log_determinant = 2 * self.cholesky.diagonal().log().sum()
        self.effective = len(scaled) - self.inverse.square().sum()

    def variance(self, factors: Factors) -> Tensor:
        prior = torch.stack([a.square().sum(-1) * g.square().sum(-1) for a, g in factors]).sum(0).double() / self.delta
        covariance = inner_products(factors, self.factors) * self.root / self.delta
        explained: Tensor = (covariance @ self.inverse.mT).square().sum(-1)
        return prior - explained

    def covariance(self, factors: Factors) -> Tensor:
        explained = inner_products(factors, self.factors) * self.root / self.delta @ self.inverse.mT
        return inner_products(factors, factors) / self.delta - explained @ explained.mT

    def sample(self, count: int, generator: torch.Generator) -> Weights:
        """Matheron's rule: a draw from the prior, corrected by what it gets wrong about the data."""
        prior = [draw / self.delta**0.5 for draw in self._normal(count, generator)]
        noise = torch.randn(count, len(self.root), generator=generator, dtype=torch.float64).to(self.root)
        wrong = self.root * linear_outputs(self.factors, prior) + noise
        correction = (wrong @ self.inverse.mT @ self.inverse) * self.root / self.delta  # count x n
        return [
            draw - torch.einsum("sn,ni,no->sio", correction, a, g)
            for draw, (a, g) in zip(prior, self.factors, strict=True)
        ]


class WeightSpace(GGNPosterior):
    """The whole Sigma, P x P, for n >= P."""

    def prepare(self) -> None:
        jacobian = flat_jacobian(self.factors)
        identity = torch.eye(jacobian.shape[1], dtype=jacobian.dtype, device=jacobian.device)
        precision = jacobian.mT @ (self.curvature[:, None] * jacobian) + self.delta * identity
        cholesky = torch.linalg.cholesky(precision)
        self.inverse = torch.linalg.solve_triangular(cholesky, identity, upper=False)
        self.log_determinant = 2 * cholesky.diagonal().div(self.delta**0.5).log().sum()
        self.effective = len(identity) - self.delta * self.inverse.square().sum()

    def variance(self, factors: Factors) -> Tensor:
        variance: Tensor = (flat_jacobian(factors) @ self.inverse.mT).square().sum(-1)
        return variance

    def covariance(self, factors: Factors) -> Tensor:
        roots = flat_jacobian(factors) @ self.inverse.mT
        return roots @ roots.mT

    def sample(self, count: int, generator: torch.Generator) -> Weights:
        normal = self._normal(count, generator)
        flat = torch.cat([draw.flatten(1) for draw in normal], dim=-1) @ self.inverse
        parts = flat.split([draw[0].numel() for draw in normal], dim=-1)
        return [part.reshape(draw.shape) for part, draw in zip(parts, normal, strict=True)]


class Kronecker(GGNPosterior):
    """Layer by layer, A (x) G with A the mean of a a^T and G the sum of Lambda g g^T (KFAC; Martens & Grosse, 2015)."""

    def prepare(self) -> None:
        self.bases, self.precisions = [], []
        for a, g in self.factors:
            a_values, a_basis = torch.linalg.eigh(a.mT @ a / max(len(a), 1))
            g_values, g_basis = torch.linalg.eigh(g.mT @ (self.curvature[:, None] * g))
            self.bases.append((a_basis, g_basis))
            self.precisions.append(a_values.clamp(min=0)[:, None] * g_values.clamp(min=0) + self.delta)
        self.log_determinant = sum_of([(p / self.delta).log() for p in self.precisions])
        self.effective = sum_of([1 - self.delta / p for p in self.precisions])

    def variance(self, factors: Factors) -> Tensor:
        return diagonal_variance(self._rotated(factors), self.precisions)

    def covariance(self, factors: Factors) -> Tensor:
        return diagonal_covariance(self._rotated(factors), self.precisions)

    def _rotated(self, factors: Factors) -> Factors:
        return [
            (a.double() @ a_basis, g.double() @ g_basis)
            for (a, g), (a_basis, g_basis) in zip(factors, self.bases, strict=True)
        ]

    def sample(self, count: int, generator: torch.Generator) -> Weights:
        return [
            a_basis @ (draw * precision.rsqrt()) @ g_basis.mT
            for draw, (a_basis, g_basis), precision in zip(
                self._normal(count, generator), self.bases, self.precisions, strict=True
            )
        ]


class Diagonal(GGNPosterior):
    """Every weight on its own: the diagonal of the GGN."""

    def prepare(self) -> None:
        self.precisions = [a.square().mT @ (self.curvature[:, None] * g.square()) + self.delta for a, g in self.factors]
        self.log_determinant = sum_of([(p / self.delta).log() for p in self.precisions])
        self.effective = sum_of([1 - self.delta / p for p in self.precisions])

    def variance(self, factors: Factors) -> Tensor:
        return diagonal_variance(factors, self.precisions)

    def covariance(self, factors: Factors) -> Tensor:
        return diagonal_covariance(factors, self.precisions)

    def sample(self, count: int, generator: torch.Generator) -> Weights:
        normal = self._normal(count, generator)
        return [draw * precision.rsqrt() for draw, precision in zip(normal, self.precisions, strict=True)]


# --- formulas --------------------------------------------------------------------------------------------------------


def inner_products(left: Factors, right: Factors) -> Tensor:
    """All inner products of Jacobians, n x m."""
    products = [(a.double() @ b.mT) * (g.double() @ h.mT) for (a, g), (b, h) in zip(left, right, strict=True)]
    return torch.stack(products).sum(0)


def flat_jacobian(factors: Factors) -> Tensor:
    """The derivative of the output in all P weights, n x P."""
    return torch.cat([(a[:, :, None] * g[:, None, :]).flatten(1) for a, g in factors], dim=-1).double()


def linear_outputs(factors: Factors, weights: Weights) -> Tensor:
    """J(x) theta for several theta: factors of n points, weights s x i x o -> s x n."""
    outputs = [((a.double() @ w) * g.double()).sum(-1) for (a, g), w in zip(factors, weights, strict=True)]
    return torch.stack(outputs).sum(0)


def diagonal_variance(factors: Factors, precisions: Weights) -> Tensor:
    """The variance of the outputs (n) if every weight has a precision of its own (i x o for each layer)."""
    variances = [
        ((a.double().square() @ precision.reciprocal()) * g.double().square()).sum(-1)
        for (a, g), precision in zip(factors, precisions, strict=True)
    ]
    return torch.stack(variances).sum(0)


def diagonal_covariance(factors: Factors, precisions: Weights) -> Tensor:
    """The covariance of the outputs (n x n) if every weight has a precision of its own (i x o for each layer)."""
    scales = torch.cat([precision.rsqrt().flatten() for precision in precisions])
    roots = flat_jacobian(factors) * scales
    return roots @ roots.mT


def sum_of(parts: Sequence[Tensor]) -> Tensor:
    """The sum of all entries of all parts."""
    return torch.stack([part.sum() for part in parts]).sum()
