"""`Number`: what real and whole numbers have in common."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, Self

import torch
from torch import Tensor

from deepbore.space.parameters.base import Parameter, number
from deepbore.space.parameters.bounds import refuse_more_positions
from deepbore.space.parameters.grid import levels_at


class Number(Parameter):
    """A number between two bounds on a scale, or one of low, low + step, ..., high.

    A subclass is a dataclass with these fields, and says how numbers without a step are encoded, and their levels.
    """

    low: float
    high: float
    log: bool
    step: float | None

    def __new__(cls, *args: Any, **settings: Any) -> Self:  # noqa: ARG004  # for __init__
        refuse_more_positions(cls.__name__, args)
        return super().__new__(cls)

    @property
    def upper(self) -> float:
        return 1.0

    def encode(self, values: Sequence[Any]) -> Tensor:
        if self.step is not None:
            return self.from_level(torch.from_numpy(levels_at(values, self.low, self.high, self.step)))
        return self._place(values)

    def read(self, text: str) -> float:
        return number(text)

    def to_level(self, column: Tensor) -> Tensor:
        if self.step is None or self.levels is None:
            return self._level_at(column)
        return (column * (self.levels - 1)).round().clamp(0, self.levels - 1)

    def from_level(self, level: Tensor) -> Tensor:
        if self.step is None or self.levels is None:
            return self._of_level(level)
        return level / (self.levels - 1)

    def settings(self) -> dict[str, Any]:
        return {name: value for name, value in super().settings().items() if name != "step" or value is not None}

    # --- without a step ----------------------------------------------------------------------------------------------

    @abstractmethod
    def _place(self, values: Sequence[Any]) -> Tensor:
        """Native values (n) -> column of a point (n), as `encode`."""

    @abstractmethod
    def _level_at(self, column: Tensor) -> Tensor:
        """As `to_level`."""

    @abstractmethod
    def _of_level(self, level: Tensor) -> Tensor:
        """As `from_level`."""
