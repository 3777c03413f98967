"""What can be tuned: `Real`, `Integer`, `Ordinal` and `Categorical` parameters, each perhaps under a `Condition`.

A parameter lives in two worlds. *Native* values are what the objective sees (`1e-3`, `"relu"`). In a *point* each
parameter is one float64 number: numeric parameters their place in [0, 1] (after the log), the others their level's index.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from deepbore.errors import PointError, SpaceError

Scalar = str | int | float | bool | None
FEW_LEVELS = 32  # integers with at most this many levels are told to a network level by level
DIGITS = 12  # decimal digits that a native real number keeps


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

    @abstractmethod
    def encode(self, values: Sequence[Any]) -> Tensor:
        """Native values (n) -> column of a point (n, float64). Raises PointError for a value outside."""

    @abstractmethod
    def decode(self, column: Tensor) -> list[Any]:
        """Column of a point (n) -> native values (n); the nearest one where the number lies between two."""

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

    @staticmethod
    def from_dict(name: str, declared: Mapping[str, Any]) -> "Parameter":
        """The parameter that `to_dict` describes (or the same written by hand in YAML).

        Raises:
            SpaceError: for an unknown type, a setting that is missing or one that the type does not have.
        """
        settings = dict(declared)
        kinds = {cls.kind: cls for cls in (Real, Integer, Ordinal, Categorical)}
        kind = settings.pop("type", None)
        if kind not in kinds:
            raise SpaceError(f"parameter {name!r}: type must be one of {sorted(kinds)}, but got {kind!r}.")
        when = settings.pop("when", None)
        if isinstance(when, Mapping):
            if len(when) != 1:
                raise SpaceError(f"parameter {name!r}: when must name one parent, as {{parent: [values]}}, not {when!r}.")
            when = Condition(*next(iter(when.items())))
        try:
            return kinds[kind](**settings, when=when)
        except TypeError as error:
            raise SpaceError(f"parameter {name!r} of type {kind!r} can't be made from {settings}: {error}.") from None
        except SpaceError as error:
            raise SpaceError(f"parameter {name!r}: {error}") from None


def _check_range(low: float, high: float, log: bool) -> None:
    for bound in (low, high):
        if isinstance(bound, bool) or not isinstance(bound, (int, float)) or not math.isfinite(bound):
            raise SpaceError(f"bounds must be finite numbers, but got {bound!r}. In YAML write 1.0e-5, not 1e-5.")
    if not low < high:
        raise SpaceError(f"low < high must hold, but got low={low}, high={high}. Swap them, or leave out a fixed parameter.")
    if log and low <= 0:
        raise SpaceError(f"a log scale needs low > 0, but got low={low}. Raise low, or set log=False.")


def _numbers(values: Sequence[Any], low: float, high: float) -> np.ndarray:
    """Values as float64, checked to be numbers in [low, high]."""
    try:
        column = np.asarray(values, dtype=np.float64)
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

    def encode(self, values: Sequence[Any]) -> Tensor:
        index = self._index
        try:
            levels = [index[isinstance(value, (bool, np.bool_)), value] for value in values]
        except (KeyError, TypeError):
            odd = next(v for v in values if v not in self.choices)
            raise PointError(f"values must be among {list(self.choices)[:20]}, but got {odd!r}.") from None
        return torch.tensor(levels, dtype=torch.float64)

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
