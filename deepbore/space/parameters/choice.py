"""`Ordinal` and `Categorical`: one of several choices."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from deepbore.errors import PointError, SpaceError
from deepbore.space.parameters.base import NOTHING, Condition, Parameter, number

Scalar = str | int | float | bool | None


@dataclass(frozen=True)
class _Choice(Parameter):
    """What ordinal and categorical parameters share: a list of choices, a level's index in points."""

    choices: Sequence[Scalar]
    when: Condition | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "choices", tuple(self.choices))
        if len(self.choices) < 2:
            raise SpaceError(f"a parameter needs at least two choices, but got {list(self.choices)}.")
        if len(self._index) < len(self.choices):
            raise SpaceError(f"choices must differ from each other, but got {list(self.choices)}.")

    @property
    def _index(self) -> dict[Any, int]:
        return {(isinstance(choice, bool), choice): level for level, choice in enumerate(self.choices)}

    @property
    def levels(self) -> int:
        return len(self.choices)

    @property
    def upper(self) -> float:
        return float(self.levels - 1)

    def encode(self, values: Sequence[Any]) -> Tensor:
        index = self._index
        try:
            levels = [index[isinstance(value, (bool, np.bool_)), value] for value in values]
        except (KeyError, TypeError):
            odd = next(v for v in values if v not in self.choices)
            raise PointError(f"values must be among {list(self.choices)[:20]}, but got {odd!r}.") from None
        return torch.tensor(levels, dtype=torch.float64)

    def read(self, text: str) -> Scalar:
        alike = [choice for choice in self.choices if str(choice) == text]
        alike = alike or [choice for choice in self.choices if _is_written(choice, text)]
        if not alike:
            raise PointError(f"a value must be among {list(self.choices)[:20]}, but got {text!r}.")
        if len(alike) > 1:
            raise PointError(f"a value must tell choices apart, but {text!r} may be any of {alike}.")
        return alike[0]

    def decode(self, column: Tensor) -> list[Scalar]:
        return [self.choices[int(level)] for level in self.to_level(column).tolist()]

    def from_uniform(self, u: Tensor) -> Tensor:
        return (u * self.levels).floor().clamp(0, self.levels - 1)

    def to_level(self, column: Tensor) -> Tensor:
        return column.round().clamp(0, self.levels - 1)

    def from_level(self, level: Tensor) -> Tensor:
        return level

    def settings(self) -> dict[str, Any]:
        return {"choices": list(self.choices)}


@dataclass(frozen=True)
class Ordinal(_Choice):
    """One of several choices in a meaningful order, such as `[16, 64, 1024]` or `["small", "large"]`.

    Args:
        choices: at least two different strings, numbers, booleans or None, in order.
        when: the condition under which it is active.

    Raises:
        SpaceError: for fewer than two choices, or equal ones.

    Example:
        >>> Ordinal([1, 2, 4]).encode([4, 1])
        tensor([2., 0.], dtype=torch.float64)
    """

    kind = "ordinal"


@dataclass(frozen=True)
class Categorical(_Choice):
    """One of several choices without an order, such as `["relu", "tanh"]`.

    Args:
        choices: at least two different strings, numbers, booleans or None.
        when: the condition under which it is active.

    Raises:
        SpaceError: for fewer than two choices, or equal ones.

    Example:
        >>> Categorical(["relu", "tanh"]).decode(torch.tensor([1.0]))
        ['tanh']
    """

    kind = "categorical"

    @property
    def is_ordered(self) -> bool:
        return False


def _is_written(choice: Scalar, text: str) -> bool:
    """Whether a text is another way to write a choice: 1e-3 for 0.001, true for True, nothing for None."""
    word = text.strip().lower()
    if choice is None:
        return word in NOTHING
    if isinstance(choice, (bool, str)):
        return isinstance(choice, bool) and word == str(choice).lower()
    try:
        return number(word) == choice
    except PointError:
        return False
