"""`Parameter`, the interface of the room, and the register of its kinds."""

import dataclasses
import math
from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from deepbore.errors import PointError, SpaceError
from deepbore.space.condition import Condition, When, as_when, conditions_of, plain
from deepbore.space.parameters.moves import any_other, likelier_back, near_or_any, next_level, reflected
from deepbore.space.parameters.readings import Reading, along, reached, scaled
from deepbore.space.parameters.scale import Scale

FEW_LEVELS = 32  # numbers with at most this many levels are told to a network level by level
MANY_LEVELS = 500  # of numbers with at least so many the next level is too near, and any other is anywhere
NOTHING = ("", "none", "null", "nan")  # how a missing value is written
KINDS: dict[str, Any] = {}  # `kind` -> class, filled as the classes are defined


class Parameter(ABC):
    """One dimension of a search space: its native values, and how a point holds them.

    A point holds one float64 number for each parameter, between 0 and `upper`. A subclass says how many levels it has,
    and how native values are encoded, decoded and read. All else has a default, which holds for two sorts:

    - continuous (`levels` is None): the column holds a place in [0, 1];
    - with levels: the column holds the level's index, 0 ... levels - 1, unless `to_level`, `from_level` and `upper` say
      otherwise.

    Methods on tensors work entry by entry, on any shape and on the device of their input.

    A subclass is a frozen dataclass with a field `when`, and with a `kind`, the name under which `to_dict` writes it
    and `SearchSpace.from_dict` finds it. Nothing else needs to know of it.

    Attributes:
        when: the condition under which it is active, or several that must all hold; None for always.
        kind: the name of the type in plain data.
    """

    when: When | None = None
    kind: ClassVar[str]

    def __init_subclass__(cls, **settings: Any) -> None:
        super().__init_subclass__(**settings)
        if "kind" not in vars(cls):
            return
        known = KINDS.get(cls.kind, cls)
        if (known.__module__, known.__qualname__) != (cls.__module__, cls.__qualname__):
            raise SpaceError(f"the kind of a parameter must be its own, but {cls.kind!r} is {known.__qualname__}'s.")
        KINDS[cls.kind] = cls  # the same once more where a notebook's cell runs again

    def __post_init__(self) -> None:
        object.__setattr__(self, "when", as_when(self.when))

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """All of `when`: the conditions that must hold for it to be active; none for always."""
        return conditions_of(self.when)

    # --- native values -----------------------------------------------------------------------------------------------

    @property
    @abstractmethod
    def levels(self) -> int | None:
        """How many values it can take, at least 2; None if continuous."""

    @abstractmethod
    def encode(self, values: Sequence[Any]) -> Tensor:
        """Native values (n; a list, an array, a column of a data frame) -> column of a point (n, float64).

        Raises:
            PointError: for a value outside.
        """

    @abstractmethod
    def decode(self, column: Tensor) -> list[Any]:
        """Column of a point (n) -> native values (n); the nearest one where the number lies between two."""

    @abstractmethod
    def read(self, text: str) -> Any:
        """The native value that is written as `text`; `encode` checks its range. Raises PointError if there is none."""

    def identity(self, column: Tensor) -> Sequence[float] | np.ndarray:
        """Numbers (n) that are equal for two entries exactly if these decode to equal values.

        A space asks it of continuous parameters only, and tells the others apart by their levels.
        """
        found: list[float] = self.decode(column) if self.is_continuous else self.to_level(column).tolist()
        return found

    # --- what it is --------------------------------------------------------------------------------------------------

    @property
    def is_continuous(self) -> bool:
        """Whether every number between two of its values is a value, too."""
        return self.levels is None

    @property
    def is_ordered(self) -> bool:
        """Whether its values have an order, so that some are nearer to each other than others."""
        return True

    @property
    def scale(self) -> Scale | None:
        """The line that its values stand on; None if they are choices rather than numbers."""
        return None

    @property
    def is_numeric(self) -> bool:
        """Whether its values are numbers of a scale; else its column holds the index of a choice."""
        return self.scale is not None

    @property
    def has_many_levels(self) -> bool:
        """Whether it has levels, but so many along a scale that a search moves as on a continuum."""
        return self.is_numeric and self.levels is not None and self.levels >= MANY_LEVELS

    @property
    def upper(self) -> float:
        """The greatest entry of its column; the least is 0."""
        return 1.0 if self.levels is None else self.levels - 1.0

    def ticks(self, most: int) -> list[Any]:
        """Up to about `most` native values to name on an axis, in their order."""
        if self.levels is not None:
            return self.decode(self.from_level(torch.arange(0, self.levels, math.ceil(self.levels / most)).double()))
        if self.scale is not None:
            return self.scale.ticks(most)
        return self.decode(torch.linspace(0, self.upper, most, dtype=torch.float64))

    # --- columns of points -------------------------------------------------------------------------------------------

    def to_level(self, column: Tensor) -> Tensor:
        """Column of a point -> nearest level's index; unchanged for a continuous parameter."""
        return column if self.levels is None else column.round().clamp(0, self.levels - 1)

    def from_level(self, level: Tensor) -> Tensor:
        """Level's index -> column of a point; unchanged for a continuous parameter."""
        return level

    def from_uniform(self, u: Tensor) -> Tensor:
        """Uniform numbers in [0, 1] -> column of a point, each level equally likely."""
        return u if self.levels is None else self.from_level((u * self.levels).floor().clamp(0, self.levels - 1))

    def moved(self, column: Tensor, u: Tensor, v: Tensor, steps: Tensor) -> Tensor:
        """Column of a point -> the same moved to a near or another value.

        A continuous parameter takes the step, reflected at 0 and 1. What has levels goes to another; half of the time
        to the next one, if they have an order, and else to any, or, of numbers of many levels, by the step.

        Args:
            column: entries of points.
            u: uniform numbers in [0, 1], one for each entry.
            v: more of them.
            steps: random steps for places in [0, 1], one for each entry; most are small.
        """
        if self.levels is None:
            return reflected(column + steps)
        level = self.to_level(column)
        if self.has_many_levels:
            landed = self.to_level(reflected(column + steps))
            near = (landed == level) | ((u - 0.5).abs() > 0.25)  # u chooses the way, v goes with the step
            return self.from_level(torch.where(near, next_level(level, self.levels, u), landed))
        if self.is_ordered:
            return self.from_level(near_or_any(level, self.levels, u, v))
        return self.from_level(any_other(level, self.levels, u))

    def likelier_back(self, column: Tensor, moved: Tensor) -> Tensor:
        """Logarithm of how much likelier `moved` goes back than it went, for each entry; 0 where moves are symmetric.

        Those of numbers of many levels are taken for it, as those of continuous ones are along their scale.

        Args:
            column: entries of points.
            moved: where `moved` took them.
        """
        if self.levels is None or self.levels < 2 or not self.is_ordered or self.has_many_levels:
            return torch.zeros_like(column)
        return likelier_back(self.to_level(column), self.to_level(moved), self.levels)

    @property
    def alike(self) -> Hashable:
        """What its work on columns depends on: neighbouring parameters with an equal one share calls.

        That is the methods of this section. The parameter itself, unless a subclass knows of less.
        """
        return self

    # --- what networks and kernels see -------------------------------------------------------------------------------

    def features(self) -> list[Reading]:
        """What a network reads off its column, numbers in [-1, 1].

        One number for a continuous parameter and for numbers of many levels; else a thermometer code, one bit
        `level >= k` for each k = 1 ... levels - 1, so that a step between two neighbours is one bit to weigh.
        """
        if self.levels is None or (self.is_numeric and self.levels > FEW_LEVELS):
            return [Reading(scaled)]
        place = self.from_level(torch.arange(self.levels, dtype=torch.float64))
        return [Reading(reached, threshold) for threshold in ((place[:-1] + place[1:]) / 2).tolist()]

    def coordinates(self) -> list[Reading]:
        """What a kernel measures distances in: numbers that span a length of 1 over all its values."""
        return [Reading(along, self.upper)]

    # --- plain data --------------------------------------------------------------------------------------------------

    def settings(self) -> dict[str, Any]:
        """Its declaration, as `SearchSpace.from_dict` takes it, without the condition."""
        assert dataclasses.is_dataclass(self)
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self) if field.name != "when"}

    def to_dict(self) -> dict[str, Any]:
        """Its declaration as plain JSON data."""
        declared = {"type": self.kind, **self.settings()}
        return declared if self.when is None else {**declared, "when": plain(self.when)}


def number(text: str) -> float:
    """The number that is written as `text`. Raises PointError if there is none."""
    try:
        return float(text)
    except ValueError:
        raise PointError(f"a value must be a number, but got {text!r}.") from None
