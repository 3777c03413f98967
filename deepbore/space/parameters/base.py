"""`Parameter`, the interface of the room, and `Condition`."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from deepbore.errors import PointError, SpaceError

NOTHING = ("", "none", "null", "nan")  # how a missing value is written


@dataclass(frozen=True)
class Condition:
    """The parameter that carries this condition is active only where `parent` has one of `values`.

    Args:
        parent: name of a parameter with levels (integer, ordinal or categorical).
        values: one value of the parent, or a list of them.

    Example:
        >>> Condition("optimizer", "sgd").values
        ('sgd',)
    """

    parent: str
    values: Any

    def __post_init__(self) -> None:
        several = isinstance(self.values, (list, tuple, set, frozenset))
        object.__setattr__(self, "values", tuple(self.values) if several else (self.values,))
        if not self.values:
            raise SpaceError(f"a condition needs a value of its parent, but {self.parent!r} got none.")


class Parameter(ABC):
    """One dimension of a search space. `levels` is None for a continuous one."""

    when: Condition | None
    kind: str

    @property
    @abstractmethod
    def levels(self) -> int | None:
        """How many values it can take; None if continuous."""

    @property
    def is_continuous(self) -> bool:
        """Whether every number between two of its values is a value, too."""
        return self.levels is None

    @property
    def is_ordered(self) -> bool:
        """Whether its values have an order, so that some are nearer to each other than others."""
        return True

    @property
    def upper(self) -> float:
        """The greatest entry of its column in a point; the least is 0."""
        return 1.0

    @abstractmethod
    def encode(self, values: Sequence[Any]) -> Tensor:
        """Native values (n) -> column of a point (n, float64). Raises PointError for a value outside."""

    @abstractmethod
    def decode(self, column: Tensor) -> list[Any]:
        """Column of a point (n) -> native values (n); the nearest one where the number lies between two."""

    @abstractmethod
    def read(self, text: str) -> Any:
        """The native value that is written as `text`; `encode` checks its range. Raises PointError if there is none."""

    @abstractmethod
    def from_uniform(self, u: Tensor) -> Tensor:
        """Uniform numbers in [0, 1] (n) -> column of a point (n), each level equally likely."""

    @abstractmethod
    def to_level(self, column: Tensor) -> Tensor:
        """Column of a point (n) -> nearest level's index (n); unchanged for a continuous parameter."""

    @abstractmethod
    def from_level(self, level: Tensor) -> Tensor:
        """Level's index (n) -> column of a point (n); unchanged for a continuous parameter."""

    @abstractmethod
    def settings(self) -> dict[str, Any]:
        """Its declaration, as `SearchSpace.from_dict` takes it, without the condition."""

    def to_dict(self) -> dict[str, Any]:
        """Its declaration as plain JSON data."""
        declared = {"type": self.kind, **self.settings()}
        return declared if self.when is None else {**declared, "when": {self.when.parent: list(self.when.values)}}


def number(text: str) -> float:
    """The number that is written as `text`. Raises PointError if there is none."""
    try:
        return float(text)
    except ValueError:
        raise PointError(f"a value must be a number, but got {text!r}.") from None
