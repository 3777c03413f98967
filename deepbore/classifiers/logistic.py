"""Bayesian logistic regression by expectation maximisation on a lower bound of the evidence."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

ALPHA_RANGE = (1e-2, 1e1)  # prior precision: logits vary by 0.3 to 10 before any data
TINY = 1e-9


@dataclass(frozen=True)
class LogisticData:
    """Rows to learn from.

    Attributes:
        phi: features, n x h.
        z: labels in [0, 1], n.
        weight: weights, n: a weight of 2 counts a row twice.
    """

    phi: Tensor
    z: Tensor
    weight: Tensor

    def reduced(self) -> "LogisticData":
        """The same rows in min(n, h) features: in another orthonormal basis, all others are 0."""
        n, h = self.phi.shape
        if n >= h:
            return self
        triangular = torch.linalg.qr(self.phi.mT, mode="r").R
        return LogisticData(triangular.mT, self.z, self.weight)


@dataclass(frozen=True)
class Moments:
    """The Gaussian q(w) under given xi and alpha, and how high it lifts the bound.

    Attributes:
        mean: weights, h.
        factor: L with covariance (L L^T)^-1, h x h.
        variance: variance of each row's logit, n.
        bound: lower bound of the log evidence.
    """

    mean: Tensor
    factor: Tensor
    variance: Tensor
    bound: float


@dataclass(frozen=True)
class Maximum:
    """Where the bound is greatest.

    Attributes:
        xi: where the rows' bounds touch, n.
        alpha: prior precision of the weights.
        bound: lower bound of the log evidence.
    """

    xi: Tensor
    alpha: Tensor
    bound: float


def curvature(xi: Tensor) -> Tensor:
    """tanh(xi / 2) / (2 xi): of Jaakkola and Jordan's bound, and the mean of a Polya-Gamma variable; 1/4 at 0."""
    return torch.tanh(xi / 2) / (2 * xi)


def moments(data: LogisticData, xi: Tensor, alpha: Tensor) -> Moments:
    """The E step: q(w) for z ~ Bernoulli(sigmoid(phi w)), w ~ N(0, 1 / alpha), each row's bound touching at +-xi.

        log sigmoid(f)^z sigmoid(-f)^(1 - z) >= (z - 1/2) f - log(2 cosh(xi / 2)) - curvature(xi) (f^2 - xi^2) / 2

    (Jaakkola and Jordan, 2000; Bishop 2006, eq. 10.156 to 10.159.) Its right side is quadratic in f for graded labels,
    too, and a row's weight multiplies it.

    Args:
        data: the rows.
        xi: where the bounds touch, n, positive.
        alpha: prior precision of the weights.
    """
    phi, weight = data.phi, data.weight
    omega = weight * curvature(xi)
    precision = phi.mT @ (phi * omega[:, None]) + alpha * torch.eye(phi.shape[1]).to(phi)
    factor = torch.linalg.cholesky(precision)
    pull = phi.mT @ (weight * (data.z - 0.5))
    mean = torch.cholesky_solve(pull[:, None], factor).squeeze(-1)
    variance = torch.linalg.solve_triangular(factor, phi.mT, upper=False).square().sum(0)
    touching = (omega * xi.square() - weight * (xi + 2 * torch.log1p((-xi).exp()))).sum() / 2
    volume = len(mean) * alpha.log() / 2 - factor.diagonal().log().sum()
    return Moments(mean, factor, variance, float(mean @ pull / 2 + volume + touching))


def maximise_bound(data: LogisticData, xi: Tensor, alpha: Tensor, rounds: int, tolerance: float = 1e-2) -> Maximum:
    """Raises the bound over xi and alpha from where they are.

    The M step is xi^2 = E[f^2] and alpha = sqrt(alpha alpha'), alpha' = effective weights / |mean|^2 being MacKay's
    (Bishop 2006, eq. 3.92): half of his step, in logarithm. It maximises a minorant of the bound in 1 / alpha (Wipf and
    Nagarajan, 2007), so it never lowers the bound, and unlike EM's own alpha = h / E|w|^2 it is not slowed down by
    weights that the data say nothing about.

    Args:
        data: the rows.
        xi: where the bounds touch at first, n.
        alpha: prior precision at first.
        rounds: of E and M steps, at most.
        tolerance: stop when the bound rises by less.
    """
    data, reached = data.reduced(), -math.inf
    for _ in range(rounds):
        q = moments(data, xi, alpha)
        risen, reached = q.bound - reached, q.bound
        if risen < tolerance:
            break
        effective = (data.weight * curvature(xi) * q.variance).sum()
        alpha = (alpha * effective / (q.mean.square().sum() + TINY)).sqrt().clamp(*ALPHA_RANGE)
        xi = ((data.phi @ q.mean).square() + q.variance).sqrt().clamp(min=TINY)
    return Maximum(xi, alpha, reached)
