"""`Integer`: a whole number on a linear or a log scale."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from deepbore.errors import PointError, SpaceError
from deepbore.space.condition import When
from deepbore.space.parameters.bounds import checked_bounds, numbers
from deepbore.space.parameters.grid import checked_step
from deepbore.space.parameters.numeric import Number
from deepbore.space.parameters.scale import Scale

LARGEST, LARGEST_LOG = 5 * 10**14, 10**13  # up to which a float64 in [0, 1] tells all whole numbers apart


@dataclass(frozen=True)
class Integer(Number):
    """A whole number in [low, high], both included, on a linear or a log scale, or one of low, low + step, ..., high.

    Args:
        low: least value, within +-5e14; >= 1 if `log`.
        high: greatest value, > low, within +-5e14; <= 1e13 if `log`.
        log: search its logarithm.
        step: distance of neighbouring values, a whole number; high must be low plus a multiple of it. It does not go
            with `log`: equal steps and equal factors are two things.
        when: the condition under which it is active, or several: a `Condition`, a dict {parent: values}, or a list.

    Raises:
        SpaceError: for bounds that break these rules.

    Example:
        >>> Integer(16, 512, log=True).decode(torch.tensor([0.0, 0.4, 1.0]))
        [16, 64, 512]
        >>> Integer(16, 512, step=16).decode(torch.tensor([0.0, 0.1, 1.0]))
        [16, 64, 512]
    """

    low: int
    high: int
    log: bool = field(default=False, kw_only=True)
    step: int | None = field(default=None, kw_only=True)
    when: When | None = field(default=None, kw_only=True)
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
        step = None if self.step is None else checked_step(self.step, low, high, log, finest=0)
        if step is not None and int(step) != step:
            raise SpaceError(f"an integer parameter needs a whole step, but got step={step}. Use Real.")
        step = None if step in (None, 1) else int(step)
        for name, value in {"low": int(low), "high": int(high), "log": log, "step": step}.items():
            object.__setattr__(self, name, value)

    @property
    def levels(self) -> int:
        return (self.high - self.low) // (self.step or 1) + 1

    @cached_property
    def scale(self) -> Scale:
        return Scale(self.low, self.high, self.log, whole=True)

    def ticks(self, most: int) -> list[int]:
        if self.levels <= most:
            return list(range(self.low, self.high + 1, self.step or 1))
        if self.step is not None:
            return super().ticks(most)
        return [int(tick) for tick in self.scale.ticks(most)]

    def _place(self, values: Sequence[Any]) -> Tensor:
        column = numbers(values, self.low, self.high)
        if (column != np.rint(column)).any():
            raise PointError(f"values must be whole numbers, but got {column[column != np.rint(column)][0]}.")
        return self.from_level(torch.from_numpy(column - self.low))

    def decode(self, column: Tensor) -> list[int]:
        natives: list[int] = (self.to_level(column.double()).long() * (self.step or 1) + self.low).tolist()
        return natives

    def from_uniform(self, u: Tensor) -> Tensor:
        if self.step is not None:
            return super().from_uniform(u)
        wide = Scale(self.low - 0.5, self.high + 0.5, self.log).value(u)  # the end levels get a whole share
        return self.from_level(wide.round().clamp(self.low, self.high) - self.low)

    def _level_at(self, column: Tensor) -> Tensor:
        return self.scale.value(column).round().clamp(self.low, self.high) - self.low

    def _of_level(self, level: Tensor) -> Tensor:
        return self.scale.place(level + self.low)
