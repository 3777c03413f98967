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
    log = plain(log)
    if not isinstance(log, bool):
        raise SpaceError(f"log must be True or False, but got log={log!r}.")
    low, high = (checked_number(bound, "bounds") for bound in (low, high))
    if not low < high:
        raise SpaceError(
            f"low < high must hold, but got low={low}, high={high}. Swap them, or leave out a fixed parameter."
        )
    if log and low <= 0:
        raise SpaceError(f"a log scale needs low > 0, but got low={low}. Raise low, or set log=False.")
    return low, high, log


def checked_number(given: Any, what: str) -> float:
    """A finite number as one of Python's own; numbers of NumPy and torch, and arrays of one, are welcome.

    Raises:
        SpaceError: for anything else.
    """
    number = plain(given)
    if isinstance(number, bool) or not isinstance(number, (int, float)) or not _is_finite(number):
        must = "bounds must be finite numbers" if what == "bounds" else f"{what} must be a finite number"
        raise SpaceError(f"{must}, but got {given!r}. In YAML write 1.0e-5, not 1e-5.")
    return number


def plain(value: Any) -> Any:
    """A scalar of NumPy or torch, or an array of one number, as Python's own; anything else as it is."""
    try:
        return value.item() if hasattr(value, "item") else value
    except (ValueError, RuntimeError):  # an array of several numbers
        return value


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
    column = as_column(values, low, high)
    outside = ~((column >= low) & (column <= high))
    if outside.any():
        raise PointError(f"values must lie in [{low}, {high}], but got {column[outside][0]}.")
    return column


def as_column(values: Sequence[Any], low: float, high: float) -> np.ndarray:
    """Values (n) as a new float64 array; the bounds are for the message. Raises PointError where one is no number."""
    try:
        if getattr(getattr(values, "dtype", None), "kind", "f") in "cmM":  # complex, dates: NumPy would make numbers
            raise TypeError
        column = np.array(values, dtype=np.float64)  # a copy: a data frame's own is read-only
    except (TypeError, ValueError, OverflowError):
        raise PointError(f"values must be numbers in [{low}, {high}], but got {list(values)[:3]!r}.") from None
    if column.ndim != 1:
        raise PointError(f"each row needs one number, but got an array of {' x '.join(map(str, column.shape))}.")
    return column


def refuse_more_positions(name: str, given: Sequence[Any]) -> None:
    """Raises SpaceError for a third argument without a keyword, which could be a step, or a log scale, or a condition.

    Args:
        name: of the type.
        given: the arguments without a keyword.
    """
    if len(given) > 2:
        low, high, third = given[0], given[1], given[2]
        raise SpaceError(
            f"{name} takes low and high, and all else by keyword, but got {third!r} as its third argument. Give "
            f"{name}({low}, {high}, step={third!r}) for a step, log=True for a log scale, when=... for a condition."
        )
