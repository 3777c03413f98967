"""Random moves of points, parameter by parameter."""

from collections.abc import Sequence

import torch
from torch import Tensor

from deepbore.space.parameters import Categorical, Parameter

SMALLEST_STEP, LARGEST_STEP = 1e-3, 0.5  # along a numeric parameter, in [0, 1]


def moved(parameters: Sequence[Parameter], points: Tensor, generator: torch.Generator) -> Tensor:
    """Every parameter of every point moved to a near or another value (n x d).

    Real parameters take a Gaussian step whose scale is log-uniform between 1e-3 and 0.5, reflected at 0 and 1; what has
    levels goes to another level, see `other_level`.

    Args:
        parameters: d, in the order of the columns.
        points: n x d.
        generator: stream of random numbers.
    """
    u, v = (torch.rand(points.shape, dtype=torch.float64, generator=generator) for _ in range(2))
    scale = SMALLEST_STEP * (LARGEST_STEP / SMALLEST_STEP) ** v
    stepped = points + scale * torch.randn(points.shape, dtype=torch.float64, generator=generator)
    result = reflected(stepped)
    for column, parameter in enumerate(parameters):
        if parameter.levels is not None:
            result[:, column] = other_level(parameter, points[:, column], u[:, column], v[:, column])
    return result


def other_level(parameter: Parameter, place: Tensor, u: Tensor, v: Tensor) -> Tensor:
    """Another level of a parameter: half of the time the next one up or down, where levels have an order.

    Args:
        parameter: one with levels.
        place: its column in the points, n.
        u: uniform numbers that choose the level, n.
        v: uniform numbers that choose between any level and the next one, n.
    """
    count, level = parameter.levels or 1, parameter.to_level(place)
    other = (u * (count - 1)).floor().clamp(max=count - 2)
    other = other + (other >= level)
    if not isinstance(parameter, Categorical):
        step = torch.where(u < 0.5, -1.0, 1.0)
        outside = (level + step < 0) | (level + step >= count)
        other = torch.where(v < 0.5, torch.where(outside, level - step, level + step), other)
    return parameter.from_level(other)


def reflected(points: Tensor) -> Tensor:
    """Entries beyond 0 and 1 thrown back into [0, 1]."""
    return 1 - (points % 2 - 1).abs()
