"""`Real` and `Integer`: numbers between two bounds, on a linear or a log scale, or in steps."""

import math
from abc import abstractmethod
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from deepbore.errors import PointError, SpaceError
from deepbore.space.condition import When
from deepbore.space.parameters.base import UNSET, Parameter, number
from deepbore.space.parameters.priors import (
    UNIFORM,
    WEAK,
    Belief,
    Normal,
    Prior,
    TruncatedNormal,
    normal_in,
    normal_of_levels,
    prior_of_number,
)
from deepbore.space.parameters.scale import (
    SINGLE,
    SLACK,
    Scale,
    as_column,
    as_scalar,
    checked_number,
    checked_step,
    decimals_of,
    levels_at,
    round_decimals,
    round_significant,
    values_at,
)

DIGITS = 12  # decimal digits of a native real number
AS_TEXT = f"{{:.{DIGITS - 1}e}}".format  # a number as a text of that many digits
SMALLEST_REAL, LARGEST_REAL = 1e-290, 1e300  # between these float64 holds twelve digits, and sums do not overflow
FEWEST_VALUES = 10**6  # values of twelve digits that a real parameter needs between its bounds
FEW_ROWS = 64  # values that are rounded faster one by one than as an array
LARGEST_INTEGER, LARGEST_LOG_INTEGER = 5 * 10**14, 10**13  # up to these float64 in [0, 1] separates all integers


class Number(Parameter):
    """A number between two bounds on a scale, or one of low, low + step, ..., high.

    A subclass is a dataclass with these fields; it defines the levels, and the encoding of numbers without a step.
    """

    low: float
    high: float
    log: bool
    step: float | None
    prior: Prior

    def __new__(cls, *args: Any, **settings: Any) -> Self:
        refuse_more_positions(cls.__name__, args)
        return super().__new__(cls, *args, **settings)

    @property
    def upper(self) -> float:
        return 1.0

    def encode(self, values: Sequence[Any]) -> Tensor:
        if self.step is not None:
            return self.from_level(torch.from_numpy(levels_at(values, self.low, self.high, self.step)))
        return self._encoded(values)

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

    @cached_property
    def belief(self) -> Belief | None:
        if isinstance(self.prior, Normal):
            return self._belief_of(self.prior)
        if self.prior == UNIFORM or self.default is UNSET:
            return None
        return TruncatedNormal(float(self.to_uniform(self.encode([self.default]))[0]), WEAK)

    def _belief_of(self, prior: Normal) -> Belief:
        assert self.scale is not None
        if self.step is None or self.levels is None:
            return normal_in(self._cells_scale, prior)
        return normal_of_levels((prior.centre - self.low) / self.step, prior.spread / self.step, self.levels)

    # --- without a step ----------------------------------------------------------------------------------------------

    @property
    def _cells_scale(self) -> Scale:
        """The scale on which uniform numbers are places."""
        assert self.scale is not None
        return self.scale

    @abstractmethod
    def _encoded(self, values: Sequence[Any]) -> Tensor:
        """`encode` without a step."""

    @abstractmethod
    def _level_at(self, column: Tensor) -> Tensor:
        """`to_level` without a step."""

    @abstractmethod
    def _of_level(self, level: Tensor) -> Tensor:
        """`from_level` without a step."""


@dataclass(frozen=True, repr=False)
class Real(Number):
    """A real number in [low, high], on a linear or a log scale, or one of low, low + step, ..., high.

    Native values keep 12 decimal digits (of the value on a log scale, of the range on a linear one), so that
    encoding and decoding such a value gives it back exactly.

    Args:
        low: least value, finite; > 0 if `log`.
        high: greatest value, finite, > low.
        log: search its logarithm.
        step: distance of neighbouring values, > 0; high must be low plus a multiple of it. Not together with `log`.
        when: the condition under which it is active, or several: a `Condition`, a dict {parent: values}, or a list.
        default: the value that is tried first; see `SearchSpace.default`. Without a prior it is a weak one.
        prior: what is believed of the best value: `Normal(centre, spread)`, or "uniform" for nothing beside a default;
            see `SearchSpace.log_prior`.

    Raises:
        SpaceError: for bounds that break these rules, or with fewer than a million values of 12 digits between them.

    Example:
        >>> Real(1e-5, 1e-1, log=True).decode(torch.tensor([0.0, 0.5, 1.0]))
        [1e-05, 0.001, 0.1]
        >>> Real(0, 1, step=0.05).decode(torch.tensor([0.0, 0.31, 1.0]))
        [0.0, 0.3, 1.0]
    """

    low: float
    high: float
    log: bool = field(default=False, kw_only=True)
    step: float | None = field(default=None, kw_only=True)
    when: When | None = field(default=None, kw_only=True)
    default: Any = field(default=UNSET, kw_only=True, compare=False)
    prior: Prior = field(default=None, kw_only=True, compare=False)
    kind = "real"

    def __post_init__(self) -> None:
        super().__post_init__()
        low, high, log = checked_bounds(self.low, self.high, self.log)
        step = None if self.step is None else checked_step(self.step, low, high, log)
        prior = prior_of_number(self.prior, low, high, log)
        for name, value in {"low": low, "high": high, "log": log, "step": step, "prior": prior}.items():
            object.__setattr__(self, name, value)
        self._check_resolution()

    def _check_resolution(self) -> None:
        """Raises SpaceError unless there are many values of twelve digits between the bounds."""
        bounds = f"but got low={self.low}, high={self.high}"
        if max(abs(self.low), abs(self.high)) > LARGEST_REAL:
            raise SpaceError(
                f"bounds must lie within +-{LARGEST_REAL:g}, {bounds}. Search a multiple, or use log=True."
            )
        if self.step is not None:
            return
        if (self.low if self.log else self.high - self.low) < SMALLEST_REAL:
            what = "low" if self.log else "high - low"
            raise SpaceError(f"{what} >= {SMALLEST_REAL:g} must hold, {bounds}. Search a multiple of the number.")
        decimals = DIGITS - 1 - math.floor(math.log10(self.high)) if self.log else self._decimals
        if (self.high - self.low) * 10.0**decimals < FEWEST_VALUES:
            raise SpaceError(
                f"a real parameter needs {FEWEST_VALUES:,} values between its bounds, {bounds}, which agree in "
                "too many of their digits. Search the difference from low, or use Ordinal with the values."
            )

    @cached_property
    def levels(self) -> int | None:  # cached: it is used often
        return None if self.step is None else round((self.high - self.low) / self.step) + 1

    @cached_property
    def scale(self) -> Scale:
        return Scale(float(self.low), float(self.high), self.log)

    @cached_property
    def _decimals(self) -> int:
        return decimals_of(self.low, self.high, DIGITS)

    @property
    def alike(self) -> Hashable:
        return Real if type(self) is Real and self.step is None else self  # in [0, 1] for all bounds

    def _encoded(self, values: Sequence[Any]) -> Tensor:
        low, high = self.low, self.high
        if self.log:
            return self.scale.place(torch.from_numpy(numbers(values, low, high, relative=SLACK)))
        return self.scale.place(torch.from_numpy(numbers(values, low, high, SLACK * (high - low))))

    def decode(self, column: Tensor) -> list[float]:
        natives = self.identity(column)
        return natives if isinstance(natives, list) else natives.tolist()

    def _level_at(self, column: Tensor) -> Tensor:
        return column

    def _of_level(self, level: Tensor) -> Tensor:
        return level

    def identity(self, column: Tensor) -> list[float] | np.ndarray:
        if self.step is not None:
            levels = self.to_level(column.detach().cpu().double()).numpy()
            return values_at(self.low, self.step, levels).clip(self.low, self.high)
        low, high, decimals = self.scale.low, self.scale.high, self._decimals
        natives = self.scale.value(column.detach().cpu().double())
        if len(natives) >= FEW_ROWS:
            array = natives.numpy()
            return (round_significant(array, DIGITS) if self.log else round_decimals(array, decimals)).clip(low, high)
        if self.log:
            return [min(max(float(AS_TEXT(native)), low), high) for native in natives.tolist()]
        return [min(max(round(native, decimals), low), high) for native in natives.tolist()]


@dataclass(frozen=True, repr=False)
class Integer(Number):
    """A whole number in [low, high], both included, on a linear or a log scale, or one of low, low + step, ..., high.

    Args:
        low: least value, within +-5e14; >= 1 if `log`.
        high: greatest value, > low, within +-5e14; <= 1e13 if `log`.
        log: search its logarithm.
        step: distance of neighbouring values, a whole number >= 1; high must be low plus a multiple of it. Not together
            with `log`.
        when: the condition under which it is active, or several: a `Condition`, a dict {parent: values}, or a list.
        default: the value that is tried first; see `SearchSpace.default`. Without a prior it is a weak one.
        prior: what is believed of the best value: `Normal(centre, spread)`, or "uniform" for nothing beside a default;
            see `SearchSpace.log_prior`.

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
    default: Any = field(default=UNSET, kw_only=True, compare=False)
    prior: Prior = field(default=None, kw_only=True, compare=False)
    kind = "integer"

    def __post_init__(self) -> None:
        super().__post_init__()
        low, high, log = checked_bounds(self.low, self.high, self.log)
        if int(low) != low or int(high) != high:
            raise SpaceError(f"an integer parameter needs whole bounds, but got {low} and {high}. Use Real.")
        largest = LARGEST_LOG_INTEGER if log else LARGEST_INTEGER
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
        prior = prior_of_number(self.prior, low, high, log)
        for name, value in {"low": int(low), "high": int(high), "log": log, "step": step, "prior": prior}.items():
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

    def _encoded(self, values: Sequence[Any]) -> Tensor:
        column = numbers(values, self.low, self.high, SLACK, relative=0.0)
        whole = np.rint(column)
        if (wrong := np.abs(column - whole) > SLACK).any():
            raise PointError(f"values must be whole numbers, but got {column[wrong][0]}.")
        return self.from_level(torch.from_numpy(whole - self.low))

    def decode(self, column: Tensor) -> list[int]:
        natives: list[int] = (self.to_level(column.double()).long() * (self.step or 1) + self.low).tolist()
        return natives

    def from_uniform(self, u: Tensor) -> Tensor:
        if self.step is not None:
            return super().from_uniform(u)
        wide = self._cells_scale.value(u)
        return self.from_level(wide.round().clamp(self.low, self.high) - self.low)

    @cached_property
    def _cells_scale(self) -> Scale:
        return Scale(self.low - 0.5, self.high + 0.5, self.log)  # wider, so that the end levels are as likely

    @property
    def cells(self) -> Tensor:
        if self.step is not None:
            return super().cells
        ends = torch.arange(self.low, self.high + 2, dtype=torch.float64) - 0.5
        return self._cells_scale.place(ends)

    def to_uniform(self, column: Tensor) -> Tensor:
        if self.step is not None:
            return super().to_uniform(column)
        value = self.scale.value(column) if self.climbs else self.to_level(column) + self.low
        return self._cells_scale.place(value)

    def _level_at(self, column: Tensor) -> Tensor:
        return self.scale.value(column).round().clamp(self.low, self.high) - self.low

    def _of_level(self, level: Tensor) -> Tensor:
        return self.scale.place(level + self.low)


# --- checks ----------------------------------------------------------------------------------------------------------


def checked_bounds(low: Any, high: Any, log: Any) -> tuple[float, float, bool]:
    """Bounds and the flag of a log scale as Python values.

    Raises:
        SpaceError: unless low < high are finite numbers, > 0 if `log`, and log is True or False.
    """
    log = as_scalar(log)
    if not isinstance(log, bool):
        raise SpaceError(f"log must be True or False, but got log={log!r}.")
    low, high = (checked_number(bound, "bounds") for bound in (low, high))
    if not low < high:
        raise SpaceError(
            f"low < high must hold, but got low={low}, high={high}. Swap them, or leave out a fixed parameter."
        )
    if log and low <= 0:
        raise SpaceError(f"a log scale needs low > 0, but got low={low}. Raise low, or set log=False.")
    return low, high, log


def numbers(values: Sequence[Any], low: float, high: float, slack: float = 0.0, relative: float = SINGLE) -> np.ndarray:
    """Values (n) as a new float64 array; one beyond a bound by rounding alone is that bound.

    Args:
        values: n numbers.
        low: least value.
        high: greatest value.
        slack: how far beyond a bound rounding may take a value.
        relative: the same as a share of the bound.

    Raises:
        PointError: unless they are numbers in [low, high].
    """
    column = as_column(values, low, high)
    below, above = (max(slack, relative * abs(bound)) for bound in (low, high))
    outside = ~((column >= low - below) & (column <= high + above))
    if outside.any():
        raise PointError(f"values must lie in [{low}, {high}], but got {column[outside][0]}.")
    return column.clip(low, high)


def refuse_more_positions(name: str, given: Sequence[Any]) -> None:
    """Raises SpaceError for a third positional argument, which could be meant as step, log or when.

    Args:
        name: name of the type.
        given: the positional arguments.
    """
    if len(given) > 2:
        low, high, third = given[0], given[1], given[2]
        raise SpaceError(
            f"{name} takes low and high, and all else by keyword, but got {third!r} as its third argument. Give "
            f"{name}({low}, {high}, step={third!r}) for a step, log=True for a log scale, when=... for a condition."
        )
