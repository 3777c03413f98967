"""A parameter: an angle, whose two ends are the same."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from deepbore.errors import PointError
from deepbore.space import Condition, Parameter
from deepbore.space.parameters import Reading


def cosine(column: Tensor, at: Tensor) -> Tensor:
    """Entries of [0, 1] -> `at` times the cosine of the angle."""
    return at.to(column) * (2 * math.pi * column).cos()


def sine(column: Tensor, at: Tensor) -> Tensor:
    """Entries of [0, 1] -> `at` times the sine of the angle."""
    return at.to(column) * (2 * math.pi * column).sin()


@dataclass(frozen=True)
class Angle(Parameter):
    """An angle in degrees, 0 <= angle < 360."""

    when: Condition | None = field(default=None, kw_only=True)
    kind = "angle"

    @property
    def levels(self) -> None:  # continuous
        return None

    def encode(self, values: Sequence[Any]) -> Tensor:
        for value in values:
            if not isinstance(value, (int, float)) or not 0 <= value < 360:
                raise PointError(f"0 <= angle < 360 must hold, but got {value!r}.")
        return torch.tensor(values, dtype=torch.float64) / 360

    def decode(self, column: Tensor) -> list[float]:
        return [round(360 * entry, 9) % 360 for entry in column.tolist()]

    def read(self, text: str) -> float:
        try:
            return float(text)
        except ValueError:
            raise PointError(f"an angle must be a number, but got {text!r}.") from None

    def moved(self, column: Tensor, u: Tensor, v: Tensor, steps: Tensor) -> Tensor:
        return (column + steps) % 1.0  # round the circle, where other parameters are reflected

    def readings(self) -> list[Reading]:
        return [Reading(cosine, 1.0), Reading(sine, 1.0)]

    def coordinates(self) -> list[Reading]:
        return [Reading(cosine, 0.5), Reading(sine, 0.5)]  # opposite angles are 1 apart
