"""Random moves along the column of one parameter, entry by entry."""

import torch
from torch import Tensor

SMALLEST_STEP, LARGEST_STEP = 1e-3, 0.5  # along a numeric parameter, in [0, 1]


def random_steps(v: Tensor, z: Tensor) -> Tensor:
    """Gaussian steps whose scale is log-uniform between 1e-3 and 0.5, from uniform and standard normal numbers."""
    return SMALLEST_STEP * (LARGEST_STEP / SMALLEST_STEP) ** v * z


def reflected(entries: Tensor) -> Tensor:
    """Entries beyond 0 and 1 thrown back into [0, 1]."""
    return 1 - (entries % 2 - 1).abs()


def any_other(level: Tensor, count: int, u: Tensor) -> Tensor:
    """Any other of `count` levels, each equally likely.

    Args:
        level: where to start, indices 0 ... count - 1.
        count: how many levels there are, at least 2.
        u: uniform numbers that choose.
    """
    other = (u * (count - 1)).floor().clamp(max=count - 2)
    return other + (other >= level)


def next_level(level: Tensor, count: int, u: Tensor) -> Tensor:
    """The next level up or down, which is the only one next to the first or the last.

    Args:
        level: where to start, indices 0 ... count - 1.
        count: how many levels there are, at least 2.
        u: uniform numbers that choose.
    """
    up_or_down = torch.where(u < 0.5, -1.0, 1.0)
    outside = (level + up_or_down < 0) | (level + up_or_down >= count)
    return torch.where(outside, level - up_or_down, level + up_or_down)


def near_or_any(level: Tensor, count: int, u: Tensor, v: Tensor) -> Tensor:
    """Half of the time the next level up or down, else any other; see `any_other`.

    Args:
        level: where to start, indices 0 ... count - 1.
        count: how many levels there are, at least 2.
        u: uniform numbers that choose the level.
        v: uniform numbers that choose between the next level and any.
    """
    return torch.where(v < 0.5, next_level(level, count, u), any_other(level, count, u))


def likelier_back(level: Tensor, moved: Tensor, count: int) -> Tensor:
    """How much likelier `near_or_any` moves back: log q(moved -> level) - log q(level -> moved).

    The first and the last level have one next level, all others two, so that moves from an end are likelier than back.

    Args:
        level: where a move starts, indices 0 ... count - 1.
        moved: where it ends.
        count: how many levels there are, at least 2.
    """

    def chance(start: Tensor) -> Tensor:
        next_ones = torch.where((start == 0) | (start == count - 1), 1.0, 2.0)
        return 0.5 * ((level - moved).abs() == 1) / next_ones + 0.5 / (count - 1)

    return (chance(moved) / chance(level)).log()
