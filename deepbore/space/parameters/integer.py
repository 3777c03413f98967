"""`Integer`: a whole number on a linear or a log scale."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from deepbore.errors import PointError, SpaceError
from deepbore.space.condition import Condition
from deepbore.space.parameters.base import Parameter, number
from deepbore.space.parameters.bounds import checked_bounds, numbers
from deepbore.space.parameters.scale import Scale

LARGEST, LARGEST_LOG = 5 * 10**14, 10**13  # up to which a float64 in [0, 1] tells all whole numbers apart


@dataclass(frozen=True)
class Integer(Parameter):
    """A whole number in [low, high], both included, on a linear or a log scale.

    Args:
        low: least value, within +-5e14; >= 1 if `log`.
        high: greatest value, > low, within +-5e14; <= 1e13 if `log`.
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
    log: bool = field(default=False, kw_only=True)
    when: Condition | None = field(default=None, kw_only=True)
    kind = "integer"

    def __post_init__(self) -> None:
        super().__post_init__()
        low, high, log = checked_bounds(self.low, self.high, self.log)
        if int(low) != low or int(high) != high:
            raise SpaceError(f"an integer parameter needs whole bounds, but got {low} and {high}. Use Real.")
        largest = LARGEST_LOG if log else LARGEST
        if max(-low, high) > largest:
            raise SpaceError(
                f"an integer parameter{' on a log scale' * log} needs bounds within +-{largest:,}, beyond which points "
                f"can't tell whole numbers apart, but got low={low}, high={high}. Search the difference from low, or "
                "use Real."
            )
        for name, value in {"low": int(low), "high": int(high), "log": log}.items():
            object.__setattr__(self, name, value)

    @property
    def levels(self) -> int:
        return self.high - self.low + 1

    @property
    def upper(self) -> float:
        return 1.0

    @cached_property
    def scale(self) -> Scale:
        return Scale(self.low, self.high, self.log, whole=True)

    def ticks(self, most: int) -> list[int]:
        if self.levels <= most:
            return list(range(self.low, self.high + 1))
        return [int(tick) for tick in self.scale.ticks(most)]

    def encode(self, values: Sequence[Any]) -> Tensor:
        column = numbers(values, self.low, self.high)
        if (column != np.rint(column)).any():
            raise PointError(f"values must be whole numbers, but got {column[column != np.rint(column)][0]}.")
        return self.from_level(torch.from_numpy(column - self.low))

    def read(self, text: str) -> float:
        return number(text)

    def decode(self, column: Tensor) -> list[int]:
        natives: list[int] = (self.to_level(column.double()).long() + self.low).tolist()
        return natives

    def from_uniform(self, u: Tensor) -> Tensor:
        wide = Scale(self.low - 0.5, self.high + 0.5, self.log).value(u)  # the end levels get a whole share
        return self.from_level(wide.round().clamp(self.low, self.high) - self.low)

    def to_level(self, column: Tensor) -> Tensor:
        return self.scale.value(column).round().clamp(self.low, self.high) - self.low

    def from_level(self, level: Tensor) -> Tensor:
        return self.scale.place(level + self.low)
