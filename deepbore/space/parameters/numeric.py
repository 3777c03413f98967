"""`Real` and `Integer`: numbers on a linear or a log scale."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from deepbore.errors import PointError, SpaceError
from deepbore.space.parameters.base import Condition, Parameter, number

DIGITS = 12  # decimal digits that a native real number keeps


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
        SpaceError: for bounds that break these rules.

    Example:
        >>> Real(1e-5, 1e-1, log=True).decode(torch.tensor([0.0, 0.5, 1.0]))
        [1e-05, 0.001, 0.1]
    """

    low: float
    high: float
    log: bool = False
    when: Condition | None = None
    kind = "real"

    def __post_init__(self) -> None:
        _check_range(self.low, self.high, self.log)

    @property
    def levels(self) -> None:
        return None

    def encode(self, values: Sequence[Any]) -> Tensor:
        return _scaled(torch.from_numpy(_numbers(values, self.low, self.high)), self.low, self.high, self.log)

    def read(self, text: str) -> float:
        return number(text)

    def decode(self, column: Tensor) -> list[float]:
        natives = _unscaled(column.double(), self.low, self.high, self.log).tolist()
        return [min(max(self._rounded(native), self.low), self.high) for native in natives]

    def _rounded(self, native: float) -> float:
        if self.log:
            return float(f"{native:.{DIGITS - 1}e}")
        widest = max(abs(self.low), abs(self.high))
        decimals = min(DIGITS - math.ceil(math.log10(self.high - self.low)), 15 - math.ceil(math.log10(widest)))
        return round(native, decimals)

    def from_uniform(self, u: Tensor) -> Tensor:
        return u

    def to_level(self, column: Tensor) -> Tensor:
        return column

    def from_level(self, level: Tensor) -> Tensor:
        return level

    def settings(self) -> dict[str, Any]:
        return {"low": self.low, "high": self.high, "log": self.log}


@dataclass(frozen=True)
class Integer(Parameter):
    """A whole number in [low, high], both included, on a linear or a log scale.

    Args:
        low: least value; >= 1 if `log`.
        high: greatest value, > low.
        log: search its logarithm.
        when: the condition under which it is active.

    Raises:
        SpaceError: for bounds that break these rules.

    Example:
        >>> Integer(16, 512, log=True).decode(torch.tensor([0.0, 0.4, 1.0]))
        [16, 64, 512]
    """

    low: int
    high: int
    log: bool = False
    when: Condition | None = None
    kind = "integer"

    def __post_init__(self) -> None:
        _check_range(self.low, self.high, self.log)
        if int(self.low) != self.low or int(self.high) != self.high:
            raise SpaceError(f"an integer parameter needs whole bounds, but got {self.low} and {self.high}. Use Real.")

    @property
    def levels(self) -> int:
        return int(self.high) - int(self.low) + 1

    def encode(self, values: Sequence[Any]) -> Tensor:
        column = _numbers(values, self.low, self.high)
        if (column != np.rint(column)).any():
            raise PointError(f"values must be whole numbers, but got {column[column != np.rint(column)][0]}.")
        return self.from_level(torch.from_numpy(column - self.low))

    def read(self, text: str) -> float:
        return number(text)

    def decode(self, column: Tensor) -> list[int]:
        return [int(self.low) + int(level) for level in self.to_level(column.double()).tolist()]

    def from_uniform(self, u: Tensor) -> Tensor:
        wide = _unscaled(u, self.low - 0.5, self.high + 0.5, self.log)  # the end levels get a whole share
        return self.from_level(wide.round().clamp(self.low, self.high) - self.low)

    def to_level(self, column: Tensor) -> Tensor:
        return _unscaled(column, self.low, self.high, self.log).round().clamp(self.low, self.high) - self.low

    def from_level(self, level: Tensor) -> Tensor:
        return _scaled(level + self.low, self.low, self.high, self.log)

    def settings(self) -> dict[str, Any]:
        return {"low": self.low, "high": self.high, "log": self.log}


def _check_range(low: float, high: float, log: bool) -> None:
    for bound in (low, high):
        if isinstance(bound, bool) or not isinstance(bound, (int, float)) or not math.isfinite(bound):
            raise SpaceError(f"bounds must be finite numbers, but got {bound!r}. In YAML write 1.0e-5, not 1e-5.")
    if not low < high:
        raise SpaceError(
            f"low < high must hold, but got low={low}, high={high}. Swap them, or leave out a fixed parameter."
        )
    if log and low <= 0:
        raise SpaceError(f"a log scale needs low > 0, but got low={low}. Raise low, or set log=False.")


def _numbers(values: Sequence[Any], low: float, high: float) -> np.ndarray:
    """Values as float64, checked to be numbers in [low, high]."""
    try:
        column = np.array(values, dtype=np.float64)  # a copy: a data frame's own is read-only
    except (TypeError, ValueError):
        raise PointError(f"values must be numbers in [{low}, {high}], but got {list(values)[:3]!r}.") from None
    outside = ~((column >= low) & (column <= high))
    if outside.any():
        raise PointError(f"values must lie in [{low}, {high}], but got {column[outside][0]}.")
    return column


def _scaled(column: Tensor, low: float, high: float, log: bool) -> Tensor:
    """[low, high] -> [0, 1]."""
    if log:
        column, low, high = column.log(), math.log(low), math.log(high)
    return ((column - low) / (high - low)).clamp(0, 1)


def _unscaled(column: Tensor, low: float, high: float, log: bool) -> Tensor:
    """[0, 1] -> [low, high]."""
    if not log:
        return low + column * (high - low)
    return (math.log(low) + column * (math.log(high) - math.log(low))).exp()
