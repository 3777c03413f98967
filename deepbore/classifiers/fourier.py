"""Random Fourier features: a stationary kernel as a finite set of cosines (Rahimi and Recht, 2007)."""

import math

import torch
from torch import Tensor, nn


class FourierFeatures(nn.Module):
    """Features whose inner products approximate a Matern-5/2 kernel: phi_r(x) = sqrt(2 / R) cos(w_r x / l + b_r).

    The frequencies follow the kernel's spectrum, a Student t distribution with 5 degrees of freedom.

    Args:
        features: e, the size of x.
        count: R.
        generator: stream of the frequencies.
    """

    frequencies: Tensor
    phases: Tensor
    length_scale: Tensor

    def __init__(self, features: int, count: int, generator: torch.Generator):
        super().__init__()
        normal = torch.randn(features, count, generator=generator)
        chi_square = torch.randn(5, count, generator=generator).square().sum(0)
        self.register_buffer("frequencies", normal * (5 / chi_square).sqrt())
        self.register_buffer("phases", 2 * math.pi * torch.rand(count, generator=generator))
        self.register_buffer("length_scale", torch.tensor(1.0))

    def forward(self, x: Tensor) -> Tensor:
        """x (n x e) -> features (n x R)."""
        angles = x @ (self.frequencies / self.length_scale) + self.phases
        return math.sqrt(2 / len(self.phases)) * angles.cos()
