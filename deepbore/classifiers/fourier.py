"""Random Fourier features: a stationary kernel as a finite set of cosines (Rahimi and Recht, 2007)."""

import math
from typing import Literal

import torch
from torch import Tensor, nn

from deepbore.classifiers.last_layer import fit_last_layer

LENGTH_SCALES = (0.3, 0.6, 1.2, 2.4, 4.8)


class FourierFeatures(nn.Module):
    """Features whose inner products approximate a stationary kernel: phi_r(x) = sqrt(2 / R) cos(w_r x / l + b_r).

    The frequencies follow the kernel's spectrum: for "matern" (5/2) a Student t distribution with 5 degrees of freedom,
    for "rbf" a normal distribution.

    Args:
        features: e, the size of x.
        count: R.
        generator: stream of the frequencies.
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
        """Takes the length scale of LENGTH_SCALES under which the labels have the greatest evidence.

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
