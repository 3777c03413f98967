"""Bounds and columns of numbers: what `Real` and `Integer` share."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from deepbore.errors import PointError, SpaceError


def checked_bounds(low: Any, high: Any, log: Any) -> tuple[float, float, bool]:
    """Bounds and the flag of a log scale, as Python's own.

    Raises:
        SpaceError: unless low < high are finite numbers, > 0 if `log`, and log is True or False.
    """
    low, high, log = (value.item() if isinstance(value, np.generic) else value for value in (low, high, log))
    if not isinstance(log, bool):
        raise SpaceError(f"log must be True or False, but got log={log!r}.")
    for bound in (low, high):
        if isinstance(bound, bool) or not isinstance(bound, (int, float)) or not _is_finite(bound):
            raise SpaceError(f"bounds must be finite numbers, but got {bound!r}. In YAML write 1.0e-5, not 1e-5.")
    if not low < high:
        raise SpaceError(
            f"low < high must hold, but got low={low}, high={high}. Swap them, or leave out a fixed parameter."
        )
    if log and low <= 0:
        raise SpaceError(f"a log scale needs low > 0, but got low={low}. Raise low, or set log=False.")
    return low, high, log


def _is_finite(bound: float) -> bool:
    try:
        return math.isfinite(bound)
    except OverflowError:  # a whole number beyond all floats
        return False


def numbers(values: Sequence[Any], low: float, high: float) -> np.ndarray:
    """Values (n) as a new float64 array.

    Raises:
        PointError: unless they are numbers in [low, high].
    """
    try:
        column = np.array(values, dtype=np.float64)  # a copy: a data frame's own is read-only
    except (TypeError, ValueError, OverflowError):
        raise PointError(f"values must be numbers in [{low}, {high}], but got {list(values)[:3]!r}.") from None
    if column.ndim != 1:
        raise PointError(f"each row needs one number, but got an array of {' x '.join(map(str, column.shape))}.")
    outside = ~((column >= low) & (column <= high))
    if outside.any():
        raise PointError(f"values must lie in [{low}, {high}], but got {column[outside][0]}.")
    return column
