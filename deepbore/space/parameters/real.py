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
from deepbore.space.condition import Condition
from deepbore.space.parameters.base import Parameter, number
from deepbore.space.parameters.bounds import checked_bounds, numbers
from deepbore.space.parameters.rounding import decimals_of, round_decimals, round_significant
from deepbore.space.parameters.scale import Scale

DIGITS = 12  # decimal digits that a native real number keeps
AS_TEXT = f"{{:.{DIGITS - 1}e}}".format  # with so many digits
SMALLEST, LARGEST = 1e-290, 1e300  # numbers between which float64 has twelve digits, and sums have room
FEWEST = 10**6  # values of twelve digits between the bounds
FEW = 64  # values that are rounded one by one more quickly than as an array


@dataclass(frozen=True)
class Real(Parameter):
    """A real number in [low, high], on a linear or a log scale.

    Native values keep 12 decimal digits (of the value on a log scale, of the range on a linear one), so that
    encoding and decoding such a value gives it back exactly.

    Args:
        low: least value, finite; > 0 if `log`.
        high: greatest value, finite, > low.
        log: search its logarithm.
        when: the condition under which it is active.

    Raises:
        SpaceError: for bounds that break these rules, or that leave less than a million values of 12 digits between
            them.

    Example:
        >>> Real(1e-5, 1e-1, log=True).decode(torch.tensor([0.0, 0.5, 1.0]))
        [1e-05, 0.001, 0.1]
    """

    low: float
    high: float
    log: bool = field(default=False, kw_only=True)
    when: Condition | None = field(default=None, kw_only=True)
    kind = "real"

    def __post_init__(self) -> None:
        super().__post_init__()
        low, high, log = checked_bounds(self.low, self.high, self.log)
        for name, value in {"low": low, "high": high, "log": log}.items():
            object.__setattr__(self, name, value)
        self._check_room()

    def _check_room(self) -> None:
        """Raises SpaceError unless twelve digits tell many values apart."""
        bounds = f"but got low={self.low}, high={self.high}"
        if max(abs(self.low), abs(self.high)) > LARGEST:
            raise SpaceError(f"bounds must lie within +-{LARGEST:g}, {bounds}. Search a multiple, or use log=True.")
        if (self.low if self.log else self.high - self.low) < SMALLEST:
            what = "low" if self.log else "high - low"
            raise SpaceError(f"{what} >= {SMALLEST:g} must hold, {bounds}. Search a multiple of the number.")
        decimals = DIGITS - 1 - math.floor(math.log10(self.high)) if self.log else self._decimals
        if (self.high - self.low) * 10.0**decimals < FEWEST:
            raise SpaceError(
                f"a real parameter needs {FEWEST:,} values between its bounds, {bounds}, which agree in too many of "
                "their digits. Search the difference from low, or use Ordinal with the values."
            )

    @property
    def levels(self) -> None:
        return None

    @cached_property
    def scale(self) -> Scale:
        return Scale(float(self.low), float(self.high), self.log)

    @cached_property
    def _decimals(self) -> int:
        return decimals_of(self.low, self.high, DIGITS)

    @property
    def alike(self) -> Hashable:
        return Real if type(self) is Real else self  # its column is a place in [0, 1], whatever the bounds

    def encode(self, values: Sequence[Any]) -> Tensor:
        return self.scale.place(torch.from_numpy(numbers(values, self.low, self.high)))

    def read(self, text: str) -> float:
        return number(text)

    def decode(self, column: Tensor) -> list[float]:
        natives = self.identity(column)
        return natives if isinstance(natives, list) else natives.tolist()

    def identity(self, column: Tensor) -> list[float] | np.ndarray:
        low, high, decimals = self.scale.low, self.scale.high, self._decimals
        natives = self.scale.value(column.detach().cpu().double())
        if len(natives) >= FEW:
            array = natives.numpy()
            return (round_significant(array, DIGITS) if self.log else round_decimals(array, decimals)).clip(low, high)
        if self.log:
            return [min(max(float(AS_TEXT(native)), low), high) for native in natives.tolist()]
        return [min(max(round(native, decimals), low), high) for native in natives.tolist()]
