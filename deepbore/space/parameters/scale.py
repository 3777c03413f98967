"""Numbers of a parameter: the scale they lie on, steps between them, and decimal rounding."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import torch
from torch import Tensor

from deepbore.errors import PointError, SpaceError

FINEST = 1e-9  # of the largest number: finer steps are lost in the digits of float64
SLACK = 1e-6  # of a step or a range: tolerance of a number beside its level, or beyond a bound
SINGLE = 2.0**-24  # relative rounding of single precision, by which values may have come
TIMES = (np.datetime64, np.timedelta64)
NO_NUMBERS = (bool, np.bool_, str, bytes, complex, np.complexfloating, *TIMES)  # which NumPy would make numbers
POWERS = np.array([float(f"1e{k}") for k in range(23)])  # all powers of ten that float64 holds exactly

Array = np.ndarray


@dataclass(frozen=True)
class Scale:
    """Axis of native values from low to high, linear or logarithmic.

    Args:
        low: least value.
        high: greatest value, > low.
        log: whether equal factors, rather than equal differences, are equal distances; needs low > 0.
        whole: whether only whole numbers are values.

    Example:
        >>> import torch
        >>> Scale(-5, 10).place(torch.tensor([-5.0, 2.5, 10.0])).tolist()
        [0.0, 0.5, 1.0]
    """

    low: float
    high: float
    log: bool = False
    whole: bool = False

    def place(self, values: Tensor) -> Tensor:
        """Values in [low, high] -> places in [0, 1]."""
        low, high = self.low, self.high
        if self.log:
            values, low, high = values.log(), math.log(low), math.log(high)
        return ((values - low) / (high - low)).clamp(0, 1)

    def value(self, places: Tensor) -> Tensor:
        """Places in [0, 1] -> values in [low, high]."""
        if not self.log:
            return self.low + places * (self.high - self.low)
        return (math.log(self.low) + places * (math.log(self.high) - math.log(self.low))).exp()

    def ticks(self, most: int) -> list[float]:
        """Two to `most` round values in [low, high] as labels of an axis, ascending.

        Example:
            >>> Scale(1e-5, 1e-1, log=True).ticks(5), Scale(0, 3).ticks(5)
            ([1e-05, 0.0001, 0.001, 0.01, 0.1], [0.0, 1.0, 2.0, 3.0])
        """
        found = self._powers(most) if self.log else []
        found = found if len(found) > 1 else self._multiples(most)
        return found if len(found) > 1 else [self.low, self.high]

    def _powers(self, most: int) -> list[float]:
        """1, 2 and 5 times powers of ten, or 1 and 3 times, or only the powers, or every other, ... of them."""
        exponents = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
        for factors in ((1, 2, 5), (1, 3), (1,)):
            found = [float(f"{f}e{k}") for k in exponents for f in factors if self._contains(float(f"{f}e{k}"))]
            if len(found) <= most:
                return found
        return found[:: math.ceil(len(found) / most)]

    def _multiples(self, most: int) -> list[float]:
        """Multiples of the smallest of the steps 1, 2, 2.5 and 5 times a power of ten that gives at most `most`."""
        power = math.floor(math.log10((self.high - self.low) / most))
        steps = [float(f"{f}e{power + k}") for k in (0, 1, 2) for f in (1, 2, 2.5, 5)]
        for width in [width for width in steps if not self.whole or width == round(width)]:
            first, last = math.ceil(self.low / width), math.floor(self.high / width)
            if last - first < most:
                found = [float(f"{k * width:.12g}") for k in range(first, last + 1)]
                return [value for value in found if self._contains(value)]
        return []

    def _contains(self, value: float) -> bool:
        return self.low <= value <= self.high and (not self.whole or value == round(value))


# --- numbers as given ------------------------------------------------------------------------------------------------


def checked_number(given: Any, what: str) -> float:
    """A finite number as a Python number; takes scalars of NumPy and torch, and arrays of one number.

    Raises:
        SpaceError: for anything else.
    """
    number = as_scalar(given)
    if isinstance(number, bool) or not isinstance(number, (int, float)) or not _is_finite(number):
        must = "bounds must be finite numbers" if what == "bounds" else f"{what} must be a finite number"
        raise SpaceError(f"{must}, but got {given!r}. In YAML write 1.0e-5, not 1e-5.")
    return number


def as_scalar(value: Any) -> Any:
    """A scalar of NumPy or torch, or an array of one number, as a Python scalar; anything else unchanged."""
    try:
        return value.item() if hasattr(value, "item") else value
    except (ValueError, RuntimeError):  # an array of several numbers
        return value


def without_gradients(values: Any) -> Any:
    """Tensors of torch, alone or in lists, as arrays of NumPy, which has no bfloat16; anything else unchanged."""
    if isinstance(values, Tensor):
        tensor = values.detach().cpu()
        return (tensor.float() if tensor.dtype == torch.bfloat16 else tensor).numpy()
    if isinstance(values, (list, tuple)) and any(isinstance(each, (Tensor, list, tuple)) for each in values):
        return [without_gradients(each) for each in values]
    return values


def _is_finite(bound: float) -> bool:
    try:
        return math.isfinite(bound)
    except OverflowError:  # an integer too large for a float
        return False


def as_column(values: Sequence[Any], low: float, high: float) -> np.ndarray:
    """Values (n) as a new float64 array; the bounds are for the message. Raises PointError where one is no number."""
    values = without_gradients(values)
    try:
        kind = getattr(getattr(values, "dtype", None), "kind", "O")
        if kind in "bcmMSU" or (kind == "O" and any(issubclass(each, NO_NUMBERS) for each in set(map(type, values)))):
            raise TypeError
        column = np.array(values, dtype=np.float64)  # a copy: a data frame's own is read-only
    except (TypeError, ValueError, OverflowError):
        raise PointError(f"values must be numbers in [{low}, {high}], but got {list(values)[:3]!r}.") from None
    if column.ndim != 1:
        raise PointError(f"each row needs one number, but got an array of {' x '.join(map(str, column.shape))}.")
    return column


# --- steps -----------------------------------------------------------------------------------------------------------


def checked_step(given: Any, low: float, high: float, log: bool, finest: float = FINEST) -> float:
    """A step as a Python number.

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
    """low + level * step (n), in the decimals of low and step: 0.3, not 0.30000000000000004."""
    return round_decimals(low + levels * step, decimals_in(low, step))


def decimals_in(*numbers: float) -> int:
    """Number of decimals needed to write all the numbers."""
    return max(0, *(-int(Decimal(repr(number)).as_tuple().exponent) for number in numbers))


def levels_at(values: Any, low: float, high: float, step: float) -> np.ndarray:
    """The levels of values (n).

    Raises:
        PointError: unless each is one of low, low + step, ..., high.
    """
    column = as_column(values, low, high)
    count = (column - low) / step
    levels: np.ndarray = np.rint(count)
    slack = np.clip(SINGLE * np.abs(column) / step, SLACK, 0.25)
    wrong = ~(np.abs(count - levels) <= slack) | (levels < 0) | (levels > round((high - low) / step))
    if wrong.any():
        raise PointError(f"values must be among {low}, {low} + {step}, ..., {high}, but got {column[wrong][0]}.")
    return levels


# --- rounding --------------------------------------------------------------------------------------------------------


def round_decimals(values: Array, decimals: int) -> Array:
    """`[round(value, decimals) for value in values]` (n)."""
    return _scaled_and_back(values, np.intp(decimals), lambda value: round(value, decimals), 0.0, 2.0**52)


def round_significant(values: Array, digits: int) -> Array:
    """`[float(f"{value:.{digits - 1}e}") for value in values]` (n) of positive numbers."""
    as_text = f"{{:.{digits - 1}e}}".format
    decimals = digits - 1 - np.floor(np.log10(values)).astype(np.intp)
    return _scaled_and_back(values, decimals, lambda value: float(as_text(value)), 10.0 ** (digits - 1), 10.0**digits)


def _scaled_and_back(
    values: Array, decimals: np.intp | Array, exactly: Callable[[float], float], least: float, most: float
) -> Array:
    """Values rounded to decimals (n), digit for digit as Python's own `round` and `format` do it for one number.

    Python rounds the exact binary value to the nearest decimal number, and that to the nearest float. Scaling by a
    power of ten, `rint` and scaling back gives the same as long as the power is exact (10^22 at most), the scaled
    number stays below 2^53, and its fraction is not so near one half that the error of the scaling, half a unit in the
    last place, could have turned it. The few values near one half are rounded by Python.

    Args:
        values: n numbers.
        decimals: one for all values, or n.
        exactly: Python's rounding of one number, for values that may be wrong.
        least: magnitude of the scaled whole number below which `exactly` is used.
        most: magnitude above which `exactly` is used.
    """
    power = POWERS[np.minimum(np.abs(decimals), len(POWERS) - 1)]
    with np.errstate(over="ignore"):  # in the branch that is not taken
        scaled = np.where(decimals >= 0, values * power, values / power)
    whole = np.rint(scaled)
    rounded: Array = np.where(decimals >= 0, whole / power, whole * power)
    near_half = np.abs(np.abs(scaled - whole) - 0.5) <= np.spacing(np.abs(scaled))
    outside = (np.abs(whole) < least) | (np.abs(whole) > most) | (np.abs(decimals) >= len(POWERS))
    unsure = near_half | outside | ~np.isfinite(scaled)
    rounded[unsure] = [exactly(value) for value in values[unsure].tolist()]
    return rounded


def decimals_of(low: float, high: float, digits: int) -> int:
    """Number of decimals that gives [low, high] `digits` digits of its range, and each number at most 15 digits."""
    widest = max(abs(low), abs(high))
    return min(digits - math.ceil(math.log10(high - low)), 15 - math.ceil(math.log10(widest)))
