"""`LocalAxes`: coordinates around the best row: along the parameters, in principal axes, or along the steepest ways."""

import math

import torch
from torch import Tensor, nn

FLOOR = 0.03  # the least length of an axis by the greatest


class LocalAxes(nn.Module):
    """Coordinates u around the best row: x = x_best + A u.

    Args:
        centre: the best row, d.
        axes: A, d x d, a column for each axis.
        into: the transpose of its inverse, d x d.
    """

    owner: Tensor
    centre: Tensor
    axes: Tensor
    _into: Tensor

    def __init__(self, centre: Tensor, axes: Tensor, into: Tensor):
        super().__init__()
        self.register_buffer("owner", torch.arange(len(centre), device=centre.device))
        self.register_buffer("centre", centre)
        self.register_buffer("axes", axes)
        self.register_buffer("_into", into)

    def forward(self, points: Tensor) -> Tensor:
        """Points (n x d) -> u (n x d)."""
        u: Tensor = (points - self.centre) @ self._into
        return u

    def points(self, u: Tensor) -> Tensor:
        """u (n x d) -> points (n x d), which may lie outside the space."""
        return self.centre + u @ self.axes.mT

    @classmethod
    def of_parameters(cls, good: Tensor) -> "LocalAxes":
        """The axes of the parameters, a deviation of the good rows long.

        Args:
            good: points of the k best rows, best first, k x d.
        """
        variance = weighed_covariance(good).diagonal()
        return cls._along(good[0], variance, torch.eye(len(variance), dtype=good.dtype, device=good.device))

    @classmethod
    def principal(cls, good: Tensor) -> "LocalAxes":
        """The principal axes of the good rows, in which these spread alike in all directions.

            A = V diag(s),    V diag(s)^2 V^T = (1 - a) C + a diag(C)

        Their covariance C is shrunk towards its diagonal by a = (d + 1) / (k + d + 1). What depends on a sum of
        parameters, or on one a thousand times as much as on another, is so brought into a form that a kernel with one
        length scale for each coordinate knows.

        Args:
            good: points of the k best rows, best first, k x d.
        """
        k, d = good.shape
        covariance = weighed_covariance(good)
        shrunk = torch.lerp(covariance, covariance.diagonal().diag(), (d + 1) / (k + d + 1))
        return cls._along(good[0], *torch.linalg.eigh(shrunk))

    def turned(self, steepness: Tensor) -> "LocalAxes":
        """The same coordinates, turned into the eigenvectors of what is known of the steepness, the steepest first.

        Where one direction is a thousand times as steep as another, few good rows say how long a valley is, but not to
        a thousandth where it points, and gradients do. The eigenvectors are an active subspace of all d directions
        (Constantine, Dow & Wang, Active subspace methods in theory and practice, 2014, section 2).

        Args:
            steepness: the sum of g g^T over gradients g in points, d x d.
        """
        turn = torch.linalg.eigh(self.axes.mT @ steepness.to(self.axes) @ self.axes).eigenvectors.flip(-1)
        return LocalAxes(self.centre, self.axes @ turn, self._into @ turn)

    @classmethod
    def _along(cls, centre: Tensor, variance: Tensor, directions: Tensor) -> "LocalAxes":
        """Axes a deviation long, or nearly as long as the longest one, in orthonormal directions, a column for each."""
        deviation = variance.clamp(min=0).sqrt()
        deviation = deviation.clamp(min=max(FLOOR * float(deviation.max()), torch.finfo(deviation.dtype).tiny))
        return cls(centre, directions * deviation, directions / deviation)


def weighed_covariance(good: Tensor) -> Tensor:
    """The covariance (d x d) of the k best rows (k x d, best first), weighed by log(k + 1/2) - log i.

    So CMA-ES weighs them (Hansen, The CMA evolution strategy: a tutorial, 2016, eq. 49).
    """
    k = len(good)
    weight = math.log(k + 0.5) - torch.arange(1, k + 1, dtype=good.dtype, device=good.device).log()
    weight = weight / weight.sum()
    off = good - weight @ good
    return (weight[:, None] * off).mT @ off
