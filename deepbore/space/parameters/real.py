"""`Real`: a number on a linear or a log scale."""

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from deepbore.errors import SpaceError
from deepbore.space.condition import When
from deepbore.space.parameters.bounds import checked_bounds, numbers
from deepbore.space.parameters.grid import checked_step, values_at
from deepbore.space.parameters.numeric import Number
from deepbore.space.parameters.rounding import decimals_of, round_decimals, round_significant
from deepbore.space.parameters.scale import Scale

DIGITS = 12  # decimal digits that a native real number keeps
AS_TEXT = f"{{:.{DIGITS - 1}e}}".format  # with so many digits
SMALLEST, LARGEST = 1e-290, 1e300  # numbers between which float64 has twelve digits, and sums have room
FEWEST = 10**6  # values of twelve digits between the bounds
FEW = 64  # values that are rounded one by one more quickly than as an array


@dataclass(frozen=True)
class Real(Number):
    """A real number in [low, high], on a linear or a log scale, or one of low, low + step, ..., high.

    Native values keep 12 decimal digits (of the value on a log scale, of the range on a linear one), so that
    encoding and decoding such a value gives it back exactly.

    Args:
        low: least value, finite; > 0 if `log`.
        high: greatest value, finite, > low.
        log: search its logarithm.
        step: distance of neighbouring values, where only some are wanted; high must be low plus a multiple of it. It
            does not go with `log`: equal steps and equal factors are two things.
        when: the condition under which it is active, or several: a `Condition`, a dict {parent: values}, or a list.

    Raises:
        SpaceError: for bounds that break these rules, or that leave less than a million values of 12 digits between
            them.

    Example:
        >>> Real(1e-5, 1e-1, log=True).decode(torch.tensor([0.0, 0.5, 1.0]))
        [1e-05, 0.001, 0.1]
        >>> Real(0, 1, step=0.05).decode(torch.tensor([0.0, 0.31, 1.0]))
        [0.0, 0.3, 1.0]
    """

    low: float
    high: float
    log: bool = field(default=False, kw_only=True)
    step: float | None = field(default=None, kw_only=True)
    when: When | None = field(default=None, kw_only=True)
    kind = "real"

    def __post_init__(self) -> None:
        super().__post_init__()
        low, high, log = checked_bounds(self.low, self.high, self.log)
        step = None if self.step is None else checked_step(self.step, low, high, log)
        for name, value in {"low": low, "high": high, "log": log, "step": step}.items():
            object.__setattr__(self, name, value)
        self._check_room()

    def _check_room(self) -> None:
        """Raises SpaceError unless twelve digits tell many values apart."""
        bounds = f"but got low={self.low}, high={self.high}"
        if max(abs(self.low), abs(self.high)) > LARGEST:
            raise SpaceError(f"bounds must lie within +-{LARGEST:g}, {bounds}. Search a multiple, or use log=True.")
        if self.step is not None:
            return
        if (self.low if self.log else self.high - self.low) < SMALLEST:
            what = "low" if self.log else "high - low"
            raise SpaceError(f"{what} >= {SMALLEST:g} must hold, {bounds}. Search a multiple of the number.")
        decimals = DIGITS - 1 - math.floor(math.log10(self.high)) if self.log else self._decimals
        if (self.high - self.low) * 10.0**decimals < FEWEST:
            raise SpaceError(
                f"a real parameter needs {FEWEST:,} values between its bounds, {bounds}, which agree in too many of "
                "their digits. Search the difference from low, or use Ordinal with the values."
            )

    @cached_property
    def levels(self) -> int | None:  # asked often, and it never changes
        return None if self.step is None else round((self.high - self.low) / self.step) + 1

    @cached_property
    def scale(self) -> Scale:
        return Scale(float(self.low), float(self.high), self.log)

    @cached_property
    def _decimals(self) -> int:
        return decimals_of(self.low, self.high, DIGITS)

    @property
    def alike(self) -> Hashable:
        return Real if type(self) is Real and self.step is None else self  # a place in [0, 1], whatever the bounds

    def _place(self, values: Sequence[Any]) -> Tensor:
        return self.scale.place(torch.from_numpy(numbers(values, self.low, self.high)))

    def decode(self, column: Tensor) -> list[float]:
        natives = self.identity(column)
        return natives if isinstance(natives, list) else natives.tolist()

    def _level_at(self, column: Tensor) -> Tensor:
        return column

    def _of_level(self, level: Tensor) -> Tensor:
        return level

    def identity(self, column: Tensor) -> list[float] | np.ndarray:
        if self.step is not None:
            levels = self.to_level(column.detach().cpu().double()).numpy()
            return values_at(self.low, self.step, levels).clip(self.low, self.high)
        low, high, decimals = self.scale.low, self.scale.high, self._decimals
        natives = self.scale.value(column.detach().cpu().double())
        if len(natives) >= FEW:
            array = natives.numpy()
            return (round_significant(array, DIGITS) if self.log else round_decimals(array, decimals)).clip(low, high)
        if self.log:
            return [min(max(float(AS_TEXT(native)), low), high) for native in natives.tolist()]
        return [min(max(round(native, decimals), low), high) for native in natives.tolist()]
