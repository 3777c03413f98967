"""Posteriors over the weights of the built-in networks, N(theta_MAP, Sigma_GGN), from factors of the Jacobian.

The prior is N(0, I / delta). Lambda is diagonal: each row's weight times pi (1 - pi), the generalised Gauss-Newton
matrix of the Bernoulli likelihood. A row of weight 2 counts as two rows, in every structure.
"""

from abc import abstractmethod
from collections.abc import Sequence

import torch
from torch import Tensor

from deepbore.classifiers.linearised import (
    Factors,
    WeightPosterior,
    Weights,
    flat_jacobian,
    inner_products,
    linear_outputs,
)

FLATTEST = 1e-6  # the least curvature: where the network is certain, pi (1 - pi) is 0 in floating point


class GGNPosterior(WeightPosterior):
    """Sigma = (J^T Lambda J + delta I)^-1, or what a structure makes of it.

    Args:
        factors: of the n training rows.
        logit: the network's output for them, n.
        weight: of the rows, n.
        delta: prior precision, a scalar.
    """

    def __init__(self, factors: Factors, logit: Tensor, weight: Tensor, delta: Tensor):
        self.factors = [(a.double(), g.double()) for a, g in factors]
        self.weight, self.delta, p = weight.double(), delta.double(), logit.double().sigmoid()
        self.curvature = (self.weight * p * (1 - p)).clamp(min=FLATTEST)  # the diagonal of Lambda
        self.prepare()

    @abstractmethod
    def prepare(self) -> None:
        """Computes what predictions need."""

    def _normal(self, count: int, generator: torch.Generator) -> Weights:
        return [self._randn(generator, count, a.shape[1], g.shape[1]) for a, g in self.factors]

    def _randn(self, generator: torch.Generator, *shape: int) -> Tensor:
        drawn = torch.randn(shape, generator=generator, dtype=torch.float64, device=generator.device)
        return drawn.to(self.curvature.device)


class FunctionSpace(GGNPosterior):
    """The whole Sigma through the n x n matrix of inner products, for n < P (BOGGN section 7.5)."""

    def prepare(self) -> None:
        self.root = self.curvature.sqrt()
        kernel = inner_products(self.factors, self.factors)
        scaled = self.root[:, None] * kernel * self.root / self.delta
        identity = torch.eye(len(scaled)).to(scaled)
        self.cholesky = torch.linalg.cholesky(identity + scaled)
        self.inverse = torch.linalg.solve_triangular(self.cholesky, identity, upper=False)
        self.log_determinant = 2 * self.cholesky.diagonal().log().sum()
        self.effective = len(scaled) - self.inverse.square().sum()
        self.whitening = (self.root / self.delta)[:, None] * self.inverse.mT

    def variance(self, factors: Factors) -> Tensor:
        prior = torch.stack([a.square().sum(-1) * g.square().sum(-1) for a, g in factors]).sum(0) / self.delta
        variance: Tensor = prior - self._explained(factors).square().sum(-1)
        return variance

    def covariance(self, factors: Factors) -> Tensor:
        explained = self._explained(factors)
        covariance: Tensor = inner_products(factors, factors) / self.delta - explained @ explained.mT
        return covariance

    def _explained(self, factors: Factors) -> Tensor:
        explained: Tensor = inner_products(factors, self.factors) @ self.whitening
        return explained

    def sample(self, count: int, generator: torch.Generator) -> Weights:
        """Matheron's rule: a draw from the prior, corrected by what it gets wrong about the data."""
        prior = [draw / self.delta**0.5 for draw in self._normal(count, generator)]
        noise = self._randn(generator, count, len(self.root))
        wrong = self.root * linear_outputs(self.factors, prior) + noise
        correction = (wrong @ self.inverse.mT @ self.inverse) * self.root / self.delta  # count x n
        return [
            draw - torch.einsum("sn,ni,no->sio", correction, a, g)
            for draw, (a, g) in zip(prior, self.factors, strict=True)
        ]


class WeightSpace(GGNPosterior):
    """The whole Sigma as a P x P matrix, for P <= n."""

    def prepare(self) -> None:
        jacobian = flat_jacobian(self.factors)
        identity = torch.eye(jacobian.shape[1]).to(jacobian)
        precision = jacobian.mT @ (self.curvature[:, None] * jacobian) + self.delta * identity
        cholesky = torch.linalg.cholesky(precision)
        self.inverse = torch.linalg.solve_triangular(cholesky, identity, upper=False)
        self.log_determinant = 2 * cholesky.diagonal().div(self.delta**0.5).log().sum()
        self.effective = len(identity) - self.delta * self.inverse.square().sum()

    def variance(self, factors: Factors) -> Tensor:
        variance: Tensor = (flat_jacobian(factors) @ self.inverse.mT).square().sum(-1)
        return variance

    def covariance(self, factors: Factors) -> Tensor:
        roots: Tensor = flat_jacobian(factors) @ self.inverse.mT
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
        share = self.weight / self.weight.sum().clamp(min=FLATTEST)
        for a, g in self.factors:
            a_values, a_basis = torch.linalg.eigh(a.mT @ (share[:, None] * a))
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
        return [(a @ a_basis, g @ g_basis) for (a, g), (a_basis, g_basis) in zip(factors, self.bases, strict=True)]

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


def structured(structure: str, factors: Factors) -> type[GGNPosterior]:
    """The posterior of this structure that costs the least for Jacobians like these."""
    if structure in ("kron", "diag"):
        return {"kron": Kronecker, "diag": Diagonal}[structure]
    parameters = sum(a.shape[1] * g.shape[1] for a, g in factors)
    return FunctionSpace if len(factors[0][0]) < parameters else WeightSpace


def diagonal_variance(factors: Factors, precisions: Weights) -> Tensor:
    """The variance of the outputs (n) if every weight has a precision of its own (i x o for each layer)."""
    variances = [
        ((a.square() @ precision.reciprocal()) * g.square()).sum(-1)
        for (a, g), precision in zip(factors, precisions, strict=True)
    ]
    return torch.stack(variances).sum(0)


def diagonal_covariance(factors: Factors, precisions: Weights) -> Tensor:
    """The covariance of the outputs (n x n) if every weight has a precision of its own (i x o for each layer)."""
    roots = flat_jacobian(factors) * torch.cat([precision.rsqrt().flatten() for precision in precisions])
    return roots @ roots.mT


def sum_of(parts: Sequence[Tensor]) -> Tensor:
    """The sum of all entries of all parts."""
    return torch.stack([part.sum() for part in parts]).sum()
