"""Decimal rounding of whole arrays, digit for digit as Python's own `round` and `format` do it for one number.

Python rounds the exact binary value to the nearest decimal number, and that to the nearest float. Scaling by a power of
ten, `rint` and scaling back does the same as long as the power is exact (10^22 at most), the scaled number stays below
2^53, and its fraction is not so near one half that the error of the scaling, half a unit in the last place, could have
turned it. The few that are so near are rounded by Python.
"""

import math
from collections.abc import Callable

import numpy as np

POWERS = np.array([float(f"1e{k}") for k in range(23)])  # all that float64 holds exactly

Array = np.ndarray


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
    """Rounds to decimals; one by one what may be wrong, or where the whole number is not in [least, most]."""
    power = POWERS[np.minimum(np.abs(decimals), len(POWERS) - 1)]
    with np.errstate(over="ignore"):  # where it is divided
        scaled = np.where(decimals >= 0, values * power, values / power)
    whole = np.rint(scaled)
    rounded: Array = np.where(decimals >= 0, whole / power, whole * power)
    near_half = np.abs(np.abs(scaled - whole) - 0.5) <= np.spacing(np.abs(scaled))
    outside = (np.abs(whole) < least) | (np.abs(whole) > most) | (np.abs(decimals) >= len(POWERS))
    unsure = near_half | outside | ~np.isfinite(scaled)
    rounded[unsure] = [exactly(value) for value in values[unsure].tolist()]
    return rounded


def decimals_of(low: float, high: float, digits: int) -> int:
    """How many decimals give numbers in [low, high] `digits` digits of the range, and at most 15 of their own."""
    widest = max(abs(low), abs(high))
    return min(digits - math.ceil(math.log10(high - low)), 15 - math.ceil(math.log10(widest)))
