"""`Ordinal` and `Categorical`: one of several choices, with or without an order."""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from pathlib import PurePath
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from deepbore.errors import PointError, SpaceError
from deepbore.space.condition import When
from deepbore.space.parameters.base import NOTHING, UNSET, Parameter, Reading, chosen, equal, number
from deepbore.space.parameters.descriptors import Descriptors, descriptors_of
from deepbore.space.parameters.priors import (
    UNIFORM,
    WEAK,
    Belief,
    Normal,
    Prior,
    TruncatedNormal,
    Weighted,
    as_normal,
    checked_spread,
    favouring,
    is_weights,
    normal_of_levels,
    weights_of,
)
from deepbore.space.parameters.scale import SLACK, as_scalar
from deepbore.text import is_writable

Scalar = str | int | float | bool | None
_BOOLEANS = (bool, np.bool_)
LONGEST_NAME = 60  # of a choice that is named by its repr
MANY, BITS = 4096, 256  # levels without an order that models see one-hot; of more of them, random bits
MIXING = (-7046029254386353131, -4658895280553007687, -7723592293110705685)  # splitmix64's odd numbers, with a sign
UNKNOWN = "unknown"  # in plain data: of the object that a name stands for there is no more than its kind


@dataclass(frozen=True, eq=False, repr=False)
class _Choice(Parameter):
    """A parameter with a list of choices; a point holds the index of one.

    Journals, tables and axes have the *name* of a choice: the choice itself if JSON can carry it. Configurations have
    the choice itself, of whatever type.

    Attributes:
        names: one for each choice.
        are_known: whether the choices, and their features, are at hand; a journal keeps only the names of some.
    """

    choices: Sequence[Any] | Mapping[str, Any]
    when: When | None = None
    default: Any = field(default=UNSET, kw_only=True, compare=False)
    prior: Any = field(default=None, kw_only=True, compare=False)

    names: ClassVar[tuple[Scalar, ...]] = ()
    are_known: ClassVar[bool] = True
    _given: ClassVar[tuple[Any, ...]] = ()  # as it was declared, what is unknown included

    def __post_init__(self) -> None:
        super().__post_init__()
        names, choices = _checked(self.choices)
        is_known = not any(isinstance(choice, Unknown) for choice in choices)
        object.__setattr__(self, "names", names)
        object.__setattr__(self, "choices", choices if is_known else names)
        object.__setattr__(self, "are_known", is_known)
        object.__setattr__(self, "_given", choices)
        if broken := [name for name in names if isinstance(name, str) and not is_writable(name)]:
            raise SpaceError(
                f"choices must be whole characters, but {broken[0]!r:.100} has half of one, as file names do that are "
                f'not UTF-8. Name it: {type(self).__name__}({{"one": {broken[0]!r:.100}, ...}}).'
            )
        if len(names) < 2:
            raise SpaceError(f"a parameter needs at least two choices, but got {list(names)}.")
        if len(self._level_of) < len(names):
            raise SpaceError(
                f"choices must differ from each other, but got {_some(names)}. Name them: "
                f'{type(self).__name__}({{"one": ..., "other": ...}}).'
            )
        for level, choice in enumerate(self.choices):
            if isinstance(choice, Scalar) and self._level_of.get(_key(choice), level) != level:
                raise SpaceError(f"the choice {choice!r} must not be the name of another one, but got {_some(names)}.")
        object.__setattr__(self, "prior", self._checked_prior(self.prior))

    def _checked_prior(self, given: Any) -> Prior:
        """What is said of the best choice, with the name of a centre. Raises SpaceError for what can't be said."""
        if given is None or (isinstance(given, str) and given == UNIFORM):
            return given
        is_named = isinstance(given, Mapping) and given.keys() == set(self.names)
        prior = given if is_named or is_weights(given) else as_normal(given)
        if not isinstance(prior, Normal):
            return weights_of(prior, self.names)
        if not self.is_ordered:
            raise SpaceError(f"choices without an order have weights, as in prior=[.7, .2, .1], but got {prior!r}.")
        try:
            return Normal(self.plain(prior.centre), checked_spread(prior.spread))
        except PointError as error:
            raise SpaceError(f"the centre of a prior must be one of the choices: {error}") from None

    @cached_property
    def belief(self) -> Belief | None:
        if isinstance(self.prior, tuple):
            return Weighted(self.prior)
        if isinstance(self.prior, Normal):
            return normal_of_levels(self._level(self.prior.centre), self.prior.spread, self.levels)
        if self.prior == UNIFORM or self.default is UNSET:
            return None
        level = self._level(self.default)
        return TruncatedNormal((level + 0.5) / self.levels, WEAK) if self.is_ordered else favouring(level, self.levels)

    def __eq__(self, other: object) -> bool:  # by keys: to Python, True is 1
        if not isinstance(other, _Choice) or type(other) is not type(self):
            return NotImplemented
        return list(self._level_of) == list(other._level_of) and self.when == other.when

    def __hash__(self) -> int:
        return hash(tuple(self._level_of))

    def _declared(self, name: str) -> Any:
        if name != "choices":
            return super()._declared(name)
        return dict(zip(self.names, self.choices, strict=True)) if not self.is_plain else list(self.names)

    @property
    def levels(self) -> int:
        return len(self.names)

    @cached_property
    def is_plain(self) -> bool:
        return all(choice is name for choice, name in zip(self.choices, self.names, strict=True))

    @cached_property
    def _level_of(self) -> dict[tuple[bool, Scalar], int]:
        """Level of the name of each choice; True and 1 are different choices."""
        return {_key(name): level for level, name in enumerate(self.names)}

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
        return any(isinstance(name, (bool, int, float)) and name in (0, 1) for name in self.names)

    def _level(self, value: Any) -> int:
        """The level of one value, which may be a name, a choice, or a zero-dimensional array."""
        try:
            native = as_scalar(value)
            missing = None in self.names and is_missing(native)  # a data frame writes None as NaN
            key = _key(None if missing else native)
            return self._level_of[key] if key in self._level_of else self._level_of[_key(self._near(native))]
        except (KeyError, TypeError, ValueError, RuntimeError):
            if (level := self._level_of_object(value)) is not None:
                return level
            raise PointError(f"values must be among {_some(self.names)}, but got {value!r:.200}.") from None

    def _level_of_object(self, value: Any) -> int | None:
        """The level of a choice that is another value than its name; None if it is none."""
        if not self.is_plain:
            for same in (_is_same, _is_equal):
                for level, choice in enumerate(self.choices):
                    if same(choice, value):
                        return level
        return None

    def _near(self, value: Any) -> Scalar:
        """The choice that a floating-point number is, but for the rounding of another format. Raises ValueError."""
        (near,) = [each for each in self.names if _is_near(value, each)]
        return near

    def read(self, text: str) -> Scalar:
        """The name with this text."""
        alike = [name for name in self.names if str(name) == text]
        if not alike or not text:  # an empty cell may also be None
            alike += [name for name in self.names if name not in alike and _is_written(name, text)]
        if not alike and (found := _as_float(text)) is not None:
            alike = [name for name in self.names if _is_near(found, name)]
        if not alike:
            raise PointError(f"a value must be among {_some(self.names)}, but got {text!r}.")
        if len(alike) > 1:
            raise PointError(f"a value must tell choices apart, but {text!r} may be any of {alike}.")
        return alike[0]

    def decode(self, column: Tensor) -> list[Any]:
        return list(map(self._choice_at, self.to_level(column).long().tolist()))

    def decode_plain(self, column: Tensor) -> list[Scalar]:
        return list(map(self.names.__getitem__, self.to_level(column).long().tolist()))

    def native(self, plain: Any) -> Any:
        return self._choice_at(self._level(plain))

    def plain(self, value: Any) -> Any:
        return self.names[self._level(value)]

    def _choice_at(self, level: int) -> Any:
        """A choice; a copy of what a program may well change."""
        choice = self.choices[level]  # type: ignore[index]  # a tuple now
        return deepcopy(choice) if isinstance(choice, (list, dict, set)) else choice

    def settings(self) -> dict[str, Any]:
        """The choices, by name where a name is not the choice itself: as JSON carries them, or their kind."""
        listed = list(self.names)
        if all(each is name for each, name in zip(self._given, listed, strict=True)):
            return {"choices": listed}
        return {"choices": {name: _as_json(each) for name, each in zip(listed, self._given, strict=True)}}


@dataclass(frozen=True, eq=False, repr=False)
class Ordinal(_Choice):
    """One of several choices in a meaningful order, such as `[16, 64, 1024]` or `["small", "large"]`.

    Args:
        choices: at least two, in order: as of `Categorical`.
        when: the condition under which it is active, or several: a `Condition`, a dict {parent: values}, or a list.
        default: the choice that is tried first; see `SearchSpace.default`. Without a prior it is a weak one.
        prior: what is believed of the best choice: weights, in the order of the choices or by name; `Normal(centre,
            spread)` with one of the choices and a number of places; or "uniform" for nothing beside a default.

    Raises:
        SpaceError: for fewer than two choices, equal ones, or choices that can't be told apart by name.

    Example:
        >>> Ordinal([1, 2, 4]).encode([4, 1])
        tensor([2., 0.], dtype=torch.float64)
    """

    kind = "ordinal"


@dataclass(frozen=True, eq=False, repr=False)
class Categorical(_Choice):
    """One of several choices without an order, such as `["relu", "tanh"]`.

    A network sees it one-hot; for a kernel any two choices have a distance of 1. Of more than 4096 choices both see 256
    random bits of each, half of which differ between any two, so that the cost does not grow with them. With `features`
    all models see beside it what the choices are like: descriptors of ligands, embeddings, fingerprints. A kernel
    learns from the outcomes how much they matter, and candidates move to similar choices first. See `LevelFeatures` for
    what is made of them.

    Choices may be any objects: estimators, lists, members of an enum, paths, classes, functions. The objective gets the
    object; conditions, journals, tables and pictures have its name, and where a choice is given either will do. Give
    names by a dict, `{"svc": SVC(), "64-64": [64, 64]}`; those in a list are named by what they say of themselves.
    An object is not copied, but for lists, dicts and sets: clone an estimator before you fit it.

    Args:
        choices: at least two, different: strings, finite numbers, booleans, None, or any objects; or name -> choice.
        when: the condition under which it is active, or several: a `Condition`, a dict {parent: values}, or a list.
        default: the choice that is tried first; see `SearchSpace.default`. Without a prior it is a weak one.
        prior: what is believed of the best choice: weights, in the order of the choices or by name, or "uniform" for
            nothing beside a default.
        features: what the choices are like, finite numbers: K x f in the order of the choices; name -> f numbers; a
            data frame with the names as its index; or a file, a .npy with K x f numbers or a .csv with names in its
            first column and a first line. A journal keeps their checksum.

    Raises:
        SpaceError: for fewer than two choices, equal ones, or choices that can't be told apart by name; for features
            that are missing, no finite numbers, or the same for all choices.

    Example:
        >>> Categorical(["relu", "tanh"]).decode(torch.tensor([1.0]))
        ['tanh']
        >>> Categorical(["DMF", "MeOH", "toluene"], features={"DMF": [36.7], "MeOH": [32.7], "toluene": [2.4]})
        Categorical(['DMF', 'MeOH', 'toluene'], features=<1 features of 3 levels>)
        >>> layers = Categorical({"one": [64], "two": [64, 64]})
        >>> layers.decode(torch.tensor([1.0])), layers.encode(["two", [64]])
        ([[64, 64]], tensor([1., 0.], dtype=torch.float64))
    """

    features: Any = field(default=None, kw_only=True)

    kind = "categorical"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.features is not None:
            found = descriptors_of(self.features, self.names)
            object.__setattr__(self, "features", found)
            object.__setattr__(self, "are_known", self.are_known and found.are_known)

    def __eq__(self, other: object) -> bool:
        same = super().__eq__(other)
        if same is NotImplemented:  # which is neither true nor false from Python 3.14 on
            return NotImplemented
        return same and self.features == getattr(other, "features", None)

    __hash__ = _Choice.__hash__

    @property
    def is_ordered(self) -> bool:
        return False

    @property
    def descriptors(self) -> Descriptors | None:
        found: Descriptors | None = self.features
        return found

    @property
    def _nearest(self) -> Tensor | None:
        return None if self.features is None else self.features.nearest

    def moved(self, column: Tensor, u: Tensor, v: Tensor, steps: Tensor) -> Tensor:
        """With probability 1/2 one of the levels most like it; else, or without features, any other one."""
        other = super().moved(column, u, v, steps)
        if self._nearest is None:
            return other
        nearest = self._nearest.to(column.device)
        level, which = self.to_level(column).long(), (u * nearest.shape[1]).long().clamp(max=nearest.shape[1] - 1)
        return torch.where(v < 0.5, nearest[level, which].to(column), other)

    def likelier_back(self, column: Tensor, moved: Tensor) -> Tensor:
        if self._nearest is None:
            return super().likelier_back(column, moved)
        start, end = self.to_level(column).long(), self.to_level(moved).long()
        nearest = self._nearest.to(column.device)

        def probability(start: Tensor, end: Tensor) -> Tensor:
            is_near = (nearest[start] == end[..., None]).any(-1).to(column)
            return 0.5 * is_near / nearest.shape[1] + 0.5 / (self.levels - 1)

        return (probability(end, start) / probability(start, end)).log()

    def settings(self) -> dict[str, Any]:
        checksum = {} if self.features is None else {"features": {"checksum": self.features.checksum}}
        return {**super().settings(), **checksum}

    def readings(self) -> list[Reading]:
        if self.levels > MANY:
            return [Reading(bit_of, float(number)) for number in range(BITS)]
        return [Reading(equal, float(level)) for level in range(self.levels)]

    def coordinates(self) -> list[Reading]:
        if self.levels > MANY:
            return [Reading(scaled_bit_of, float(number)) for number in range(BITS)]
        return [Reading(chosen, float(level)) for level in range(self.levels)]


def bit_of(column: Tensor, at: Tensor) -> Tensor:
    """The bit of number `at` of a level's code, 0 or 1: the same for the same level everywhere (splitmix64)."""
    mixed = column.detach().round().long() * MIXING[0] + (at.long() + 1) * MIXING[1]
    mixed = (mixed ^ (mixed >> 30)) * MIXING[1]
    mixed = (mixed ^ (mixed >> 27)) * MIXING[2]
    return ((mixed >> 31) & 1).to(column)


def scaled_bit_of(column: Tensor, at: Tensor) -> Tensor:
    """`bit_of`, so scaled that two levels, which differ in half of their bits, are about a distance of 1 apart."""
    return bit_of(column, at) * math.sqrt(2 / BITS)


def _key(value: Any) -> tuple[bool, Any]:
    return isinstance(value, _BOOLEANS), value


def _some(choices: Sequence[Scalar]) -> str:
    """The first choices, for a message."""
    return str(list(choices)) if len(choices) <= 20 else f"{str(list(choices[:20]))[:-1]}, ...]"


@dataclass(frozen=True)
class Unknown:
    """In place of an object of which a journal keeps only the name."""

    kind: str


def _checked(given: Any) -> tuple[tuple[Scalar, ...], tuple[Any, ...]]:
    """Names that JSON keeps unchanged, and the choices."""
    if isinstance(given, Mapping):
        if wrong := [name for name in given if not (isinstance(name, str) and name)]:
            raise SpaceError(f'choices are named by texts, as in {{"svc": SVC(), ...}}, but got {wrong[0]!r:.100}.')
        return tuple(given), tuple(map(_from_json, given.values()))
    if isinstance(given, (str, bytes, set, frozenset)) or not hasattr(given, "__iter__"):
        raise SpaceError(f'choices must be a list, as in ["relu", "tanh"], but got {given!r:.100}.')
    choices = tuple(as_scalar(choice) for choice in given)
    for choice in choices:
        if isinstance(choice, float) and not math.isfinite(choice):
            raise SpaceError(
                f'choices must be finite numbers, but got {choice!r}. Name it: {{"{choice}": {choice!r}}}.'
            )
    names = tuple(map(_name_of, choices))
    if any(name is not choice for name, choice in zip(names, choices, strict=True)):
        names = tuple(map(str, names))  # keys of a declaration
    return names, choices


def _name_of(choice: Any) -> Scalar:
    """The choice itself where JSON can carry it; else what it says of itself, the same in every process."""
    if isinstance(choice, Enum):
        return choice.name
    if isinstance(choice, Scalar):
        return choice
    if isinstance(choice, PurePath):
        return str(choice)
    if isinstance(getattr(choice, "__name__", None), str):  # a class, or a function
        return str(choice.__name__)
    said = repr(choice)
    is_short = len(said) <= LONGEST_NAME and said.isprintable() and " at 0x" not in said
    return said if is_short else type(choice).__name__


def _as_json(choice: Any) -> Any:
    """An object as JSON gives it back; or its kind, where that would be another object."""
    try:
        if json.loads(json.dumps(choice, allow_nan=False)) == choice and not isinstance(choice, Enum):
            return choice
    except (TypeError, ValueError, RecursionError):
        pass
    named = getattr(choice, "__name__", None)
    return {UNKNOWN: choice.kind if isinstance(choice, Unknown) else named or type(choice).__name__}


def _from_json(plain: Any) -> Any:
    """The object of `_as_json`; of another one no more than that it is unknown."""
    if isinstance(plain, Mapping) and set(plain) == {UNKNOWN} and isinstance(plain[UNKNOWN], str):
        return Unknown(plain[UNKNOWN])
    return plain


def _is_same(choice: Any, value: Any) -> bool:
    return choice is value


def _is_equal(choice: Any, value: Any) -> bool:
    """Whether two objects of a type are equal; arrays, which have no single answer, are not."""
    try:
        return type(choice) is type(value) and bool(choice == value)
    except Exception:  # whatever a comparison raises
        return False


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
