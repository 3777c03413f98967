"""`Reading`: one number that a network or a kernel reads off a parameter's column."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True)
class Reading:
    """One feature or coordinate of a parameter: `read(column, at)`.

    Args:
        read: entries of the column (n x k) and k constants -> n x k numbers in the entries' dtype, each from its own
            entry and constant alone; differentiable where the feature has a slope. A plain function of a module, so
            that it can be pickled; readings with the same function are computed in one call.
        at: the constant.

    Example:
        >>> import torch
        >>> Reading(reached, at=0.5).read(torch.tensor([0.2, 0.7]), torch.tensor(0.5))
        tensor([0., 1.])
    """

    read: Callable[[Tensor, Tensor], Tensor]
    at: float = 0.0


def scaled(column: Tensor, at: Tensor) -> Tensor:  # noqa: ARG001  # as the others take it
    """Entries of [0, 1] in [-1, 1]; `at` is not asked."""
    return 2 * column - 1


def reached(column: Tensor, at: Tensor) -> Tensor:
    """1 where the entry lies above `at`: a bit of a thermometer code."""
    return (column > at).to(column)


def equal(column: Tensor, at: Tensor) -> Tensor:
    """1 where the entry is the level `at`: a bit of a one-hot code."""
    return ((column - at).abs() < 0.5).to(column)


def along(column: Tensor, at: Tensor) -> Tensor:
    """Entries of [0, `at`] in [0, 1]."""
    return column / at.to(column)


def chosen(column: Tensor, at: Tensor) -> Tensor:
    """1 / sqrt(2) where the entry is the level `at`, so that any two levels are a distance of 1 apart."""
    return (column.round() == at).to(column) * math.sqrt(0.5)
