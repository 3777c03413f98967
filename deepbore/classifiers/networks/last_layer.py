"""Bayesian linear regression on the last hidden layer, and random Fourier features beside it."""

import math
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

ALPHA_RANGE, BETA_RANGE = (1e-6, 1e6), (1e-2, 1e7)


@dataclass(frozen=True)
class LastLayer:
    """The Gaussian posteriors of the weights of m linear layers.

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

    MacKay's fixed-point iteration (Bishop 2006, eq. 3.91 to 3.95), in the eigenbasis of the Gram matrix, for m members
    at once. It is the last-layer Laplace approximation under squared error, for which the GGN is exact.

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


LENGTH_SCALES = (0.3, 0.6, 1.2, 2.4, 4.8)


class FourierFeatures(nn.Module):
    """Random features whose inner products approximate a stationary kernel (Rahimi and Recht, 2007).

        phi_r(x) = sqrt(2 / R) cos(w_r x / l + b_r)

    The frequencies w follow the kernel's spectrum: for "matern" (5/2) a Student t distribution with 5 degrees of
    freedom, for "rbf" a normal distribution.

    Args:
        features: e, the size of x.
        count: R.
        generator: random numbers for the frequencies.
        spectrum: "matern" or "rbf".
    """

    frequencies: Tensor
    phases: Tensor
    length_scale: Tensor

    def __init__(
        self, features: int, count: int, generator: torch.Generator, spectrum: Literal["matern", "rbf"] = "matern"
    ):
        super().__init__()
        frequencies = torch.randn(features, count, generator=generator)
        if spectrum == "matern":
            chi_square = torch.randn(5, count, generator=generator).square().sum(0)
            frequencies = frequencies * (5 / chi_square).sqrt()
        self.register_buffer("frequencies", frequencies)
        self.register_buffer("phases", 2 * math.pi * torch.rand(count, generator=generator))
        self.register_buffer("length_scale", torch.tensor(1.0))

    def forward(self, x: Tensor) -> Tensor:
        """x (n x e) -> features (n x R)."""
        angles = x @ (self.frequencies / self.length_scale) + self.phases
        return math.sqrt(2 / max(len(self.phases), 1)) * angles.cos()

    @torch.no_grad()
    def choose_length_scale(self, x: Tensor, z: Tensor, weight: Tensor) -> None:
        """Sets the length scale to the one of LENGTH_SCALES with the greatest evidence of the labels.

        Args:
            x: features, n x e.
            z: labels, n.
            weight: weights, n.
        """
        evidence = {}
        for length_scale in LENGTH_SCALES:
            self.length_scale.fill_(length_scale)
            phi = torch.cat([self(x), torch.ones_like(x[:, :1])], dim=-1)
            evidence[length_scale] = float(fit_last_layer(phi[None], z, weight).evidence[0])
        self.length_scale.fill_(max(evidence, key=lambda length_scale: evidence[length_scale]))
