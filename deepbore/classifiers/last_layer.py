"""Bayesian linear regression on the last hidden layer, its precisions by evidence."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

ALPHA_RANGE, BETA_RANGE = (1e-6, 1e6), (1e-2, 1e7)


@dataclass(frozen=True)
class LastLayer:
    """The posterior of m linear layers.

    Attributes:
        mean: weights, m x h.
        root: R with covariance R R^T, m x h x h.
        noise: standard deviation of the labels' noise, m.
        evidence: log marginal likelihood of the labels, m.
    """

    mean: Tensor
    root: Tensor
    noise: Tensor
    evidence: Tensor


def fit_last_layer(phi: Tensor, z: Tensor, weight: Tensor, rounds: int = 10) -> LastLayer:
    """Bayesian linear regression z ~ N(phi w, 1 / beta), w ~ N(0, 1 / alpha), with alpha and beta by evidence.

    MacKay's fixed point (Bishop 2006, eq. 3.91 to 3.95), in the eigenbasis of the Gram matrix, for m members at once.
    It is the last-layer Laplace approximation under squared error, where the GGN is exact.

    Args:
        phi: hidden features, m x n x h.
        z: labels, n.
        weight: weights, n: a weight of 2 counts a row twice.
        rounds: fixed-point iterations.
    """
    phi, z, weight = phi.double(), z.double(), weight.double()
    n = weight.sum()
    weighted = phi * weight[:, None]
    eigenvalues, basis = torch.linalg.eigh(weighted.mT @ phi)  # m x h, m x h x h
    eigenvalues = eigenvalues.clamp(min=0)
    projected = (basis.mT @ (weighted.mT @ z)[..., None]).squeeze(-1)  # m x h
    power = (weight * z * z).sum()
    alpha = torch.ones(len(phi), 1, dtype=torch.float64, device=phi.device)
    beta = 100 * alpha
    for _ in range(rounds):
        mean = beta * projected / (alpha + beta * eigenvalues)  # eq. 3.53
        effective = (beta * eigenvalues / (alpha + beta * eigenvalues)).sum(-1, keepdim=True)  # eq. 3.91
        squares = power - (2 * mean * projected - eigenvalues * mean.square()).sum(-1, keepdim=True)
        alpha = (effective / mean.square().sum(-1, keepdim=True)).clamp(*ALPHA_RANGE)  # eq. 3.92
        beta = ((n - effective).clamp(min=1) / squares.clamp(min=1e-12)).clamp(*BETA_RANGE)  # eq. 3.95
    precision = alpha + beta * eigenvalues
    coefficients = beta * projected / precision
    squares = power - (2 * coefficients * projected - eigenvalues * coefficients.square()).sum(-1, keepdim=True)
    evidence = (  # eq. 3.86
        alpha.log().expand_as(precision).sum(-1, keepdim=True)
        + n * beta.log()
        - beta * squares
        - alpha * coefficients.square().sum(-1, keepdim=True)
        - precision.log().sum(-1, keepdim=True)
        - n * math.log(2 * math.pi)
    ) / 2
    mean = (basis @ coefficients[..., None]).squeeze(-1)
    root = basis * precision.rsqrt()[:, None, :]
    return LastLayer(mean, root, beta.rsqrt().squeeze(-1), evidence.squeeze(-1))
