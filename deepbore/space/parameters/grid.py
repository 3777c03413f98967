"""Steps: numbers low, low + step, ..., high."""

from decimal import Decimal
from typing import Any

import numpy as np

from deepbore.errors import PointError, SpaceError
from deepbore.space.parameters.bounds import as_column, checked_number
from deepbore.space.parameters.rounding import round_decimals

FINEST = 1e-9  # of the largest number: finer steps would drown in the digits of float64
SLACK = 1e-6  # of a step, by which a number may lie beside it


def checked_step(given: Any, low: float, high: float, log: bool, finest: float = FINEST) -> float:
    """A step as a number of Python's own.

    Raises:
        SpaceError: unless it is a finite number > 0 that leads from low to high, on a linear scale.
    """
    step = checked_number(given, "step")
    if log:
        raise SpaceError(
            f"a log scale has no equal steps, but got log=True and step={step}. Leave one of them out, or give the "
            "values to Ordinal, as in [16, 32, 64]."
        )
    if step <= 0:
        raise SpaceError(f"step > 0 must hold, but got step={step}.")
    if step < finest * max(abs(low), abs(high)):
        raise SpaceError(f"step must be at least {finest:g} of the bounds, but got step={step}. Leave it out.")
    count = (high - low) / step
    if round(count) < 1 or abs(count - round(count)) > SLACK:
        below, above = (value_at(low, step, int(count) + more) for more in (0, 1))
        way_out = f"high={above:g}" if below <= low else f"high={below:g} or high={above:g}"
        raise SpaceError(
            f"high must be low plus a multiple of step, but got low={low}, high={high}, step={step}. Give {way_out}."
        )
    return step


def value_at(low: float, step: float, level: int) -> float:
    """The value of one level."""
    return float(values_at(low, step, np.array([float(level)]))[0])


def values_at(low: float, step: float, levels: np.ndarray) -> np.ndarray:
    """low + level step, as it is written: 0.3, not 0.30000000000000004 (n)."""
    return round_decimals(low + levels * step, decimals_in(low, step))


def decimals_in(*numbers: float) -> int:
    """How many decimals it takes to write all the numbers."""
    return max(0, *(-int(Decimal(repr(number)).as_tuple().exponent) for number in numbers))


def levels_at(values: Any, low: float, high: float, step: float) -> np.ndarray:
    """The levels of values (n).

    Raises:
        PointError: unless each is one of low, low + step, ..., high.
    """
    column = as_column(values, low, high)
    count = (column - low) / step
    levels: np.ndarray = np.rint(count)
    wrong = ~(np.abs(count - levels) <= SLACK) | (levels < 0) | (levels > round((high - low) / step))
    if wrong.any():
        raise PointError(f"values must be among {low}, {low} + {step}, ..., {high}, but got {column[wrong][0]}.")
    return levels
