"""`Parameter`, the interface of one dimension of a space, with the encodings and random moves of its column."""

import dataclasses
import math
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from types import FunctionType
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor

from deepbore.errors import DeprecatedUse, PointError, SpaceError
from deepbore.names import meant
from deepbore.space.condition import Condition, When, as_plain_data, as_when, conditions_of
from deepbore.space.parameters.descriptors import Descriptors
from deepbore.space.parameters.priors import Belief, plain_prior
from deepbore.space.parameters.scale import Scale

FEW_LEVELS = 32  # numbers with at most this many levels get a thermometer code
MANY_LEVELS = 500  # numbers with at least this many levels are moved as continuous ones
FINE_LEVELS = 10_000  # numbers with at least this many levels follow gradients, too
SMALLEST_STEP, LARGEST_STEP = 1e-3, 0.5  # standard deviations of steps along a numeric parameter, in [0, 1]
NOTHING = ("", "none", "null", "nan")  # texts of a missing value
KINDS: dict[str, Any] = {}  # `kind` -> class, filled as the classes are defined


class _Unset(Enum):
    """The type of `UNSET`."""

    UNSET = "unset"

    def __repr__(self) -> str:
        return "UNSET"


UNSET: Any = _Unset.UNSET  # of a default that is not given; None may be one


@dataclass(frozen=True)
class Reading:
    """One feature or coordinate of a parameter: `read(column, at)`.

    Args:
        read: entries of the column (n x k) and k constants -> n x k numbers in the entries' dtype, each from its own
            entry and constant alone; differentiable where the feature has a slope. A plain function of a module, so
            that it can be pickled; readings with the same function are computed in one call.
        at: the constant.

    Example:
        >>> import torch
        >>> Reading(reached, at=0.5).read(torch.tensor([0.2, 0.7]), torch.tensor(0.5))
        tensor([0., 1.])
    """

    read: Callable[[Tensor, Tensor], Tensor]
    at: float = 0.0


class Parameter(ABC):
    """One dimension of a search space: its native values, and their numbers in a point.

    A point holds one float64 number for each parameter, between 0 and `upper`. A subclass defines the number of levels
    and how native values are encoded, decoded and read. All other methods have defaults for two sorts of parameters:

    - continuous (`levels` is None): the column holds a number in [0, 1];
    - with levels: the column holds the level's index, 0 ... levels - 1, unless `to_level`, `from_level` and `upper` are
      overridden.

    Methods on tensors work entry by entry, on any shape and on the device of their input.

    A subclass is a frozen dataclass with a field `when` and a `kind`, the name that `to_dict` writes and
    `SearchSpace.from_dict` looks up. It is registered when it is defined; no other file has to be changed.

    Attributes:
        when: the condition under which it is active, or several that must all hold; None for always active.
        default: the value that is tried first; UNSET for none.
        prior: what is believed of the best value, as declared; None for no more than the default says.
        kind: name of the type in plain data.
    """

    when: When | None = None
    default: Any = UNSET
    prior: Any = None
    kind: ClassVar[str]

    def __init_subclass__(cls, **settings: Any) -> None:
        super().__init_subclass__(**settings)
        if isinstance(former := vars(cls).get("features"), FunctionType):
            warnings.warn(f"{cls.__name__}.features is now {cls.__name__}.readings.", DeprecatedUse, stacklevel=2)
            cls.readings = former  # type: ignore[method-assign]
        if "kind" not in vars(cls):
            return
        known = KINDS.get(cls.kind, cls)
        if (known.__module__, known.__qualname__) != (cls.__module__, cls.__qualname__):
            raise SpaceError(f"the kind of a parameter must be its own, but {cls.kind!r} is {known.__qualname__}'s.")
        KINDS[cls.kind] = cls  # replaces an equal definition when a notebook's cell runs again

    def __new__(cls, *args: Any, **settings: Any) -> Self:  # noqa: ARG004  # `__init__` takes them
        if dataclasses.is_dataclass(cls) and (unknown := settings.keys() - cls.__dataclass_fields__.keys()):
            known = list(cls.__dataclass_fields__)
            raise SpaceError(f"{cls.__name__} takes {', '.join(known)}, but got {meant(min(unknown), known)}")
        return super().__new__(cls)

    def __post_init__(self) -> None:
        object.__setattr__(self, "when", as_when(self.when))

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """All conditions in `when`, which must hold for it to be active; empty if it is always active."""
        return conditions_of(self.when)

    def __repr__(self) -> str:
        """As it may be declared, without settings that are left out."""
        assert dataclasses.is_dataclass(self)
        both = [(each, self._declared(each.name)) for each in dataclasses.fields(self)]
        shown = [
            f"{value!r}" if each.default is dataclasses.MISSING else f"{each.name}={value!r}"
            for each, value in both
            if value is not each.default
        ]
        return f"{type(self).__name__}({', '.join(shown)})"

    def _declared(self, name: str) -> Any:
        """A setting as it may be declared."""
        return getattr(self, name)

    def __getstate__(self) -> dict[str, Any]:
        """All but what is cached: equal parameters are equal as bytes, used or not."""
        cls = type(self)
        return {k: each for k, each in vars(self).items() if not isinstance(getattr(cls, k, None), cached_property)}

    # --- native values -----------------------------------------------------------------------------------------------

    @property
    @abstractmethod
    def levels(self) -> int | None:
        """Number of values, at least 2; None if continuous."""

    @abstractmethod
    def encode(self, values: Sequence[Any]) -> Tensor:
        """Native values (n; a list, an array, a column of a data frame) -> column of a point (n, float64).

        Raises:
            PointError: for a value outside the parameter.
        """

    @abstractmethod
    def decode(self, column: Tensor) -> list[Any]:
        """Column of a point (n) -> native values (n), rounded to the nearest one."""

    @abstractmethod
    def read(self, text: str) -> Any:
        """The native value with this text; `encode` checks its range. Raises PointError if there is none."""

    def decode_plain(self, column: Tensor) -> list[Any]:
        """Column of a point (n) -> values as journals, tables and axes have them (n): names of choices."""
        return self.decode(column)

    @property
    def is_plain(self) -> bool:
        """Whether journals and tables have its values themselves, and not only names of them."""
        return True

    def plain(self, value: Any) -> Any:
        """A native value as journals and tables have it."""
        return value

    def native(self, plain: Any) -> Any:
        """The native value that `plain` gives back."""
        return plain

    def identity(self, column: Tensor) -> Sequence[float] | np.ndarray:
        """Numbers (n) that are equal for two entries exactly if these decode to equal values.

        A space uses it for continuous parameters only; other values are identified by their levels.
        """
        found: list[float] = self.decode(column) if self.is_continuous else self.to_level(column).tolist()
        return found

    # --- properties --------------------------------------------------------------------------------------------------

    @property
    def is_continuous(self) -> bool:
        """Whether every number between two of its values is also a value."""
        return self.levels is None

    @property
    def is_ordered(self) -> bool:
        """Whether its values have an order, so that some are nearer to each other."""
        return True

    @property
    def is_library(self) -> bool:
        """Whether it has so many described levels that a proposal scores all of them, a few at a time."""
        return False

    @property
    def scale(self) -> Scale | None:
        """Scale of numeric values; None if the values are choices."""
        return None

    @property
    def is_numeric(self) -> bool:
        """Whether its values are numbers on a scale rather than choices."""
        return self.scale is not None

    @property
    def has_many_levels(self) -> bool:
        """Whether it has so many levels along a scale that a search moves as on a continuous one."""
        return self.is_numeric and self.levels is not None and self.levels >= MANY_LEVELS

    @property
    def climbs(self) -> bool:
        """Whether gradients move it: it is continuous, or so fine that steps from level to level lead nowhere."""
        return self.is_continuous or (self.is_numeric and (self.levels or 0) >= FINE_LEVELS)

    @property
    def upper(self) -> float:
        """Greatest entry of its column; the least is 0."""
        return 1.0 if self.levels is None else self.levels - 1.0

    def ticks(self, most: int) -> list[Any]:
        """Up to about `most` native values as labels of an axis, in their order."""
        if self.levels is not None:
            level = torch.arange(0, self.levels, math.ceil(self.levels / most)).double()
            return self.decode_plain(self.from_level(level))
        if self.scale is not None:
            return self.scale.ticks(most)
        return self.decode(torch.linspace(0, self.upper, most, dtype=torch.float64))

    # --- columns of points -------------------------------------------------------------------------------------------

    def to_level(self, column: Tensor) -> Tensor:
        """Column of a point -> index of the nearest level; unchanged for a continuous parameter."""
        return column if self.levels is None else column.round().clamp(0, self.levels - 1)

    def from_level(self, level: Tensor) -> Tensor:
        """Index of a level -> column of a point; unchanged for a continuous parameter."""
        return level

    def from_uniform(self, u: Tensor) -> Tensor:
        """Uniform numbers in [0, 1] -> column of a point, each level equally likely."""
        return u if self.levels is None else self.from_level((u * self.levels).floor().clamp(0, self.levels - 1))

    def moved(self, column: Tensor, u: Tensor, v: Tensor, steps: Tensor) -> Tensor:
        """Column of a point -> random neighbours of its entries.

        - Continuous: the step is added, and reflected at 0 and 1.
        - Many levels on a scale: with probability 1/2, and where the step is too small, the next level; else the level
          nearest to the step.
        - Ordered levels: with probability 1/2 the next level, else any other.
        - Unordered levels: any other level.

        Args:
            column: entries of points.
            u: uniform numbers in [0, 1], one for each entry.
            v: uniform numbers in [0, 1], one for each entry, independent of u.
            steps: random steps along [0, 1], one for each entry, see `random_steps`.
        """
        if self.levels is None:
            return reflected(column + steps)
        level = self.to_level(column)
        if self.has_many_levels:
            landed = self.to_level(reflected(column + steps))
            near = (landed == level) | ((u - 0.5).abs() > 0.25)  # by u, as the step's scale depends on v
            return self.from_level(torch.where(near, next_level(level, self.levels, u), landed))
        if self.is_ordered:
            return self.from_level(near_or_any(level, self.levels, u, v))
        return self.from_level(any_other(level, self.levels, u))

    def likelier_back(self, column: Tensor, moved: Tensor) -> Tensor:
        """Log ratio of the probabilities of the reverse and the forward move, for each entry.

        It is 0 for symmetric moves. Moves of continuous parameters, and of numbers with many levels, count as
        symmetric.

        Args:
            column: entries of points before `moved`.
            moved: entries after it.
        """
        if self.levels is None or self.levels < 2 or not self.is_ordered or self.has_many_levels:
            return torch.zeros_like(column)
        return log_move_ratio(self.to_level(column), self.to_level(moved), self.levels)

    # --- what is believed of the best value -------------------------------------------------------------------------

    @property
    def belief(self) -> Belief | None:
        """The distribution of the number from which `from_uniform` makes the best entry; None if it is uniform."""
        return None

    @property
    def cells(self) -> Tensor:
        """Ends of the uniform numbers from which `from_uniform` makes each level (levels + 1, from 0 to 1)."""
        assert self.levels is not None
        return torch.linspace(0, 1, self.levels + 1, dtype=torch.float64)

    def to_uniform(self, column: Tensor) -> Tensor:
        """Column of a point -> numbers from which `from_uniform` makes the entries; with a slope if it climbs."""
        if self.levels is None:
            return column
        level = column / self.upper * (self.levels - 1) if self.climbs else self.to_level(column)
        return (level + 0.5) / self.levels

    def log_prior(self, column: Tensor) -> Tensor:
        """Column of a point -> log density of its entries as the best ones, relative to that of `from_uniform`.

        Of a level it is the mean over its cell, so that the mean density of random entries is 1 for every parameter.
        """
        belief = self.belief
        if belief is None:
            return torch.zeros_like(column)
        if self.levels is None or self.climbs:
            return belief.log_density(self.to_uniform(column))
        return self._log_prior_of_levels.to(column)[self.to_level(column).long()]

    @cached_property
    def _log_prior_of_levels(self) -> Tensor:
        assert self.belief is not None
        return self.belief.log_mean_density(self.cells[:-1], self.cells[1:])

    # --- columns that are processed together -------------------------------------------------------------------------

    @property
    def alike(self) -> Hashable:
        """Key of all that the methods on columns of points depend on; the parameter itself by default.

        Neighbouring parameters with equal keys are processed together in one call.
        """
        return self

    # --- inputs of models --------------------------------------------------------------------------------------------

    def readings(self) -> list[Reading]:
        """Inputs of a network, each in [-1, 1].

        One number for a continuous parameter and for numbers with more than 32 levels; else a thermometer code, one bit
        `level >= k` for each k = 1 ... levels - 1, so that two neighbouring levels differ in one bit.
        """
        if self.levels is None or (self.is_numeric and self.levels > FEW_LEVELS):
            return [Reading(scaled)]
        place = self.from_level(torch.arange(self.levels, dtype=torch.float64))
        return [Reading(reached, threshold) for threshold in ((place[:-1] + place[1:]) / 2).tolist()]

    features = readings  # the former name

    def coordinates(self) -> list[Reading]:
        """Inputs of a kernel: coordinates in which the values span a length of 1."""
        return [Reading(along, self.upper)]

    @property
    def descriptors(self) -> Descriptors | None:
        """What its levels are like, further inputs of all models; None if nothing is said of them."""
        return None

    # --- plain data --------------------------------------------------------------------------------------------------

    def settings(self) -> dict[str, Any]:
        """Declaration as `SearchSpace.from_dict` takes it, without type, condition, default and prior."""
        assert dataclasses.is_dataclass(self)
        named = [field.name for field in dataclasses.fields(self) if field.name not in ("when", "default", "prior")]
        return {name: getattr(self, name) for name in named}

    def to_dict(self) -> dict[str, Any]:
        """Declaration as plain JSON data."""
        declared = {"type": self.kind, **self.settings()}
        if self.default is not UNSET:
            declared["default"] = self.plain(self.decode(self.encode([self.default]))[0])
        if self.prior is not None:
            declared["prior"] = plain_prior(self.prior)
        return declared if self.when is None else {**declared, "when": as_plain_data(self.when)}


def number(text: str) -> float:
    """The number with this text. Raises PointError if there is none."""
    try:
        return float(text)
    except ValueError:
        raise PointError(f"a value must be a number, but got {text!r}.") from None


# --- encodings of a column -------------------------------------------------------------------------------------------


def scaled(column: Tensor, at: Tensor) -> Tensor:  # noqa: ARG001  # the signature of `Reading.read`
    """Entries of [0, 1] in [-1, 1]; `at` is ignored."""
    return 2 * column - 1


def reached(column: Tensor, at: Tensor) -> Tensor:
    """1 where the entry lies above `at`: a bit of a thermometer code."""
    return (column > at).to(column)


def equal(column: Tensor, at: Tensor) -> Tensor:
    """1 where the entry is the level `at`: a bit of a one-hot code."""
    return ((column - at).abs() < 0.5).to(column)


def along(column: Tensor, at: Tensor) -> Tensor:
    """Entries of [0, `at`] in [0, 1]."""
    return column / at.to(column)


def chosen(column: Tensor, at: Tensor) -> Tensor:
    """1 / sqrt(2) where the entry is the level `at`, so that any two levels are a distance of 1 apart."""
    return (column.round() == at).to(column) * math.sqrt(0.5)


# --- random moves along a column -------------------------------------------------------------------------------------


def random_steps(v: Tensor, z: Tensor) -> Tensor:
    """Gaussian steps whose scale is log-uniform between 1e-3 and 0.5, from uniform and standard normal numbers."""
    return SMALLEST_STEP * (LARGEST_STEP / SMALLEST_STEP) ** v * z


def reflected(entries: Tensor) -> Tensor:
    """Entries beyond 0 and 1 reflected into [0, 1]."""
    return 1 - (entries % 2 - 1).abs()


def any_other(level: Tensor, count: int, u: Tensor) -> Tensor:
    """Another level for each entry, all equally likely.

    Args:
        level: indices 0 ... count - 1.
        count: number of levels, at least 2.
        u: uniform numbers that choose the level.
    """
    other = (u * (count - 1)).floor().clamp(max=count - 2)
    return other + (other >= level)


def next_level(level: Tensor, count: int, u: Tensor) -> Tensor:
    """The next level up or down, equally likely; the first and the last level have only one neighbour.

    Args:
        level: indices 0 ... count - 1.
        count: number of levels, at least 2.
        u: uniform numbers that choose the direction.
    """
    up_or_down = torch.where(u < 0.5, -1.0, 1.0)
    outside = (level + up_or_down < 0) | (level + up_or_down >= count)
    return torch.where(outside, level - up_or_down, level + up_or_down)


def near_or_any(level: Tensor, count: int, u: Tensor, v: Tensor) -> Tensor:
    """With probability 1/2 the `next_level`, else `any_other`.

    Args:
        level: indices 0 ... count - 1.
        count: number of levels, at least 2.
        u: uniform numbers that choose the level.
        v: uniform numbers that choose between the two moves.
    """
    return torch.where(v < 0.5, next_level(level, count, u), any_other(level, count, u))


def log_move_ratio(level: Tensor, moved: Tensor, count: int) -> Tensor:
    """log q(moved -> level) - log q(level -> moved), where q is the probability of a move by `near_or_any`.

    The first and the last level have one neighbour, all others two, so moves next to an end are not symmetric.

    Args:
        level: levels before the move, indices 0 ... count - 1.
        moved: levels after it.
        count: number of levels, at least 2.
    """

    def probability(start: Tensor) -> Tensor:
        neighbours = torch.where((start == 0) | (start == count - 1), 1.0, 2.0)
        return 0.5 * ((level - moved).abs() == 1) / neighbours + 0.5 / (count - 1)

    return (probability(moved) / probability(level)).log()
