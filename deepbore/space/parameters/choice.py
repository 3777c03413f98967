"""`Ordinal` and `Categorical`: one of several choices, with or without an order."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from deepbore.errors import PointError, SpaceError
from deepbore.space.condition import When
from deepbore.space.parameters.base import NOTHING, Parameter, Reading, chosen, equal, number
from deepbore.space.parameters.scale import SLACK, as_scalar

Scalar = str | int | float | bool | None
_BOOLEANS = (bool, np.bool_)


@dataclass(frozen=True, eq=False)
class _Choice(Parameter):
    """A parameter with a list of choices; a point holds the index of one."""

    choices: Sequence[Scalar]
    when: When | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "choices", _checked(self.choices))
        if len(self.choices) < 2:
            raise SpaceError(f"a parameter needs at least two choices, but got {list(self.choices)}.")
        if len(self._level_of) < len(self.choices):
            raise SpaceError(f"choices must differ from each other, but got {_some(self.choices)}.")

    def __eq__(self, other: object) -> bool:  # by keys: to Python, True is 1
        if not isinstance(other, _Choice) or type(other) is not type(self):
            return NotImplemented
        return list(self._level_of) == list(other._level_of) and self.when == other.when

    def __hash__(self) -> int:
        return hash(tuple(self._level_of))

    @property
    def levels(self) -> int:
        return len(self.choices)

    @cached_property
    def _level_of(self) -> dict[tuple[bool, Scalar], int]:
        """Level of each choice; True and 1 are different choices."""
        return {_key(choice): level for level, choice in enumerate(self.choices)}

    @cached_property
    def _level_among(self) -> dict[bool, dict[Scalar, int]]:
        """Levels of the boolean choices (True) and of all others (False): one look-up if a column has one sort only."""
        return {
            sort: {choice: level for (is_bool, choice), level in self._level_of.items() if is_bool is sort}
            for sort in (True, False)
        }

    def encode(self, values: Sequence[Any]) -> Tensor:
        natives = values.tolist() if hasattr(values, "tolist") else values  # no NumPy scalars
        try:
            levels = list(map(self._look_up(natives), natives))
        except (KeyError, TypeError):
            levels = [self._level(value) for value in natives]
        return torch.from_numpy(np.array(levels, dtype=np.float64))

    def _look_up(self, values: Sequence[Any]) -> Callable[[Any], int]:
        """The fastest function that gives the level of each of these values."""
        if not self._looks_like_a_boolean:
            return self._level_among[False].__getitem__
        sorts = {issubclass(kind, _BOOLEANS) for kind in set(map(type, values))}
        return self._level_among[sorts == {True}].__getitem__ if len(sorts) == 1 else self._level

    @cached_property
    def _looks_like_a_boolean(self) -> bool:
        """Whether a choice equals True or False in Python, so that booleans and numbers must be kept apart."""
        return any(isinstance(choice, (bool, int, float)) and choice in (0, 1) for choice in self.choices)

    def _level(self, value: Any) -> int:
        """The level of one value, which may be a zero-dimensional array."""
        try:
            native = value.item() if hasattr(value, "item") else value
            missing = None in self.choices and is_missing(native)  # a data frame writes None as NaN
            key = _key(None if missing else native)
            return self._level_of[key] if key in self._level_of else self._level_of[_key(self._near(native))]
        except (KeyError, TypeError, ValueError, RuntimeError):
            raise PointError(f"values must be among {_some(self.choices)}, but got {value!r}.") from None

    def _near(self, value: Any) -> Scalar:
        """The choice that a floating-point number is, but for the rounding of another format. Raises ValueError."""
        (near,) = [each for each in self.choices if _is_near(value, each)]
        return near

    def read(self, text: str) -> Scalar:
        alike = [choice for choice in self.choices if str(choice) == text]
        if not alike or not text:  # an empty cell may also be None
            alike += [choice for choice in self.choices if choice not in alike and _is_written(choice, text)]
        if not alike and (found := _as_float(text)) is not None:
            alike = [choice for choice in self.choices if _is_near(found, choice)]
        if not alike:
            raise PointError(f"a value must be among {_some(self.choices)}, but got {text!r}.")
        if len(alike) > 1:
            raise PointError(f"a value must tell choices apart, but {text!r} may be any of {alike}.")
        return alike[0]

    def decode(self, column: Tensor) -> list[Scalar]:
        return list(map(self.choices.__getitem__, self.to_level(column).long().tolist()))

    def settings(self) -> dict[str, Any]:
        return {"choices": list(self.choices)}


@dataclass(frozen=True, eq=False)
class Ordinal(_Choice):
    """One of several choices in a meaningful order, such as `[16, 64, 1024]` or `["small", "large"]`.

    Args:
        choices: at least two different strings, finite numbers, booleans or None, in order.
        when: the condition under which it is active, or several: a `Condition`, a dict {parent: values}, or a list.

    Raises:
        SpaceError: for fewer than two choices, equal ones, or choices that JSON can't represent.

    Example:
        >>> Ordinal([1, 2, 4]).encode([4, 1])
        tensor([2., 0.], dtype=torch.float64)
    """

    kind = "ordinal"


@dataclass(frozen=True, eq=False)
class Categorical(_Choice):
    """One of several choices without an order, such as `["relu", "tanh"]`.

    A network sees it one-hot; for a kernel any two choices have a distance of 1.

    Args:
        choices: at least two different strings, finite numbers, booleans or None.
        when: the condition under which it is active, or several: a `Condition`, a dict {parent: values}, or a list.

    Raises:
        SpaceError: for fewer than two choices, equal ones, or choices that JSON can't represent.

    Example:
        >>> Categorical(["relu", "tanh"]).decode(torch.tensor([1.0]))
        ['tanh']
    """

    kind = "categorical"

    @property
    def is_ordered(self) -> bool:
        return False

    def features(self) -> list[Reading]:
        return [Reading(equal, float(level)) for level in range(self.levels)]

    def coordinates(self) -> list[Reading]:
        return [Reading(chosen, float(level)) for level in range(self.levels)]


def _key(value: Any) -> tuple[bool, Any]:
    return isinstance(value, _BOOLEANS), value


def _some(choices: Sequence[Scalar]) -> str:
    """The first choices, for a message."""
    return str(list(choices)) if len(choices) <= 20 else f"{str(list(choices[:20]))[:-1]}, ...]"


def _checked(choices: Any) -> tuple[Scalar, ...]:
    """Choices as a tuple of Python scalars that JSON keeps unchanged."""
    if isinstance(choices, (str, bytes, set, frozenset)) or not hasattr(choices, "__iter__"):
        raise SpaceError(f'choices must be a list, as in ["relu", "tanh"], but got {choices!r}.')
    natives = tuple(as_scalar(choice) for choice in choices)
    for choice in natives:
        finite = not isinstance(choice, float) or math.isfinite(choice)
        if not isinstance(choice, Scalar) or not finite:
            raise SpaceError(
                f"choices must be strings, finite numbers, booleans or None, which a journal gives back as they were, "
                f"but got {choice!r}. Give each choice a name, and look up in the objective what it stands for."
            )
    return natives


def _is_written(choice: Scalar, text: str) -> bool:
    """Whether a text is another spelling of a choice: 1e-3 for 0.001, true for True, empty for None."""
    word = text.strip().lower()
    if choice is None:
        return word in NOTHING
    if isinstance(choice, (bool, str)):
        return isinstance(choice, bool) and word == str(choice).lower()
    try:
        return number(word) == choice
    except PointError:
        return False


def _is_near(value: Any, choice: Scalar) -> bool:
    """Whether a floating-point number is a choice, but for the rounding of another format."""
    if not isinstance(choice, (int, float)) or isinstance(choice, bool):
        return False
    return isinstance(value, float) and math.isclose(value, choice, rel_tol=SLACK)


def _as_float(text: str) -> float | None:
    try:
        return number(text)
    except PointError:
        return None


def is_missing(value: Any) -> bool:
    """Whether a value marks a missing one in a data frame: NaN, or pandas' NA."""
    return type(value).__name__ == "NAType" or (isinstance(value, float) and math.isnan(value))
