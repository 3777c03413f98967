"""What all charts share: colours, short names, numbers as text, and axes. Imports neither torch nor a renderer."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from deepbore.text import visible

if TYPE_CHECKING:
    from torch import Tensor

    from deepbore.space import SearchSpace
    from deepbore.space.parameters import Parameter, Scale

# --- colours ---------------------------------------------------------------------------------------------------------

GOOD, BAD, BEST, TAU, FAILED = "#1a7f5a", "#b8bcc2", "#1f3b73", "#d9822b", "#c0392b"
GREY = "#8a9099"  # what is not good, on white
INFEASIBLE = "#d08a9a"  # values that violate a constraint
EARLIER = "#9ab0c9"  # values of an earlier task
RUNNING = "#2f8fb3"  # trials that have no outcome yet
RUNGS = ("#c9ced4", "#a3bcd0", "#6fa5c4", "#3f8fa6", "#2a8a7f", GOOD)  # of budgets, from the lowest to the top
PALE, STAR = "#f3f5f6", "#f2b705"  # where parameters are inactive; the best configuration
GREENS = ("#ffffff", "#b9dccd", GOOD)  # pi, from 0 to 1


# --- text ------------------------------------------------------------------------------------------------------------


def shortened(text: Any, most: int) -> str:
    """Text as one line of at most so many characters: its beginning, or the end of a dotted name, where names differ.

    Example:
        >>> shortened("model.init_args.lr", 12), shortened("a choice of many words", 12)
        ('…nit_args.lr', 'a choice of…')
    """
    line = visible(" ".join(str(text).split()))
    if len(line) <= most:
        return line
    return f"…{line[1 - most :]}" if "." in line and " " not in line else f"{line[: most - 1].rstrip()}…"


def short_names(texts: Sequence[Any], most: int) -> list[str]:
    """Texts, each `shortened`; equal results are numbered.

    Example:
        >>> short_names(["a choice of this", "a choice of that", "none"], 12)
        ['a choice of… (0)', 'a choice of… (1)', 'none']
    """
    names = [shortened(text, most) for text in texts]
    times = Counter(names)
    return [name if times[name] == 1 else f"{name} ({k})" for k, name in enumerate(names)]


def number(value: Any, digits: int = 6) -> str:
    """A native value as text, numbers in so many digits.

    Example:
        >>> number(1e-05), number(0.001), number(1234567.0), number("adam")
        ('1e-5', '0.001', '1.23457e6', 'adam')
    """
    if not isinstance(value, float):
        return str(value)
    fraction, _, exponent = f"{value:.{digits - 1}e}".partition("e")
    if value and math.isfinite(value) and not -4 < int(exponent) < digits:
        return f"{float(fraction):g}e{int(exponent)}"
    return f"{value:.{digits}g}"


# --- the axis of values ----------------------------------------------------------------------------------------------

SPREAD = 50.0  # greatest over least of the middle nine in ten from which a log scale shows more
CROWDED = 3.0  # how many times as long the whole axis may be as that of nine in ten values
BEYOND = 0.3  # how much of the length of nine in ten values a cut axis shows beyond them
MARGIN = 0.05
LARGEST = 1e300  # up to which differences are numbers


@dataclass(frozen=True)
class ValueAxis:
    """The axis of objective values: logarithmic where they spread over magnitudes, cut where outliers would flatten
    the others.

    Attributes:
        low: the lower end.
        high: the upper end, > low.
        log: whether the scale is logarithmic.
        cut: whether some values lie outside.
    """

    low: float
    high: float
    log: bool = False
    cut: bool = False

    @classmethod
    def of(cls, values: np.ndarray, sign: float = 1.0, margin: float = MARGIN) -> "ValueAxis | None":
        """The axis of some values; None without a finite one.

        Args:
            values: n, in the user's sign; NaN and infinite ones are ignored.
            sign: 1 where they are minimised, -1 where they are maximised: the best one is always inside.
            margin: room at both ends, as a share of the length; equal values have some in any case.

        Example:
            >>> ValueAxis.of(np.array([1.0, 2.0, 3.0, 2.0, 2.5, 1.5, 1.2, 1.1, 2.2, 1e9])).cut
            True
            >>> ValueAxis.of(np.geomspace(1e-6, 1.0, 20)).log
            True
        """
        finite = np.asarray(values, dtype=float)
        finite = finite[np.isfinite(finite)].clip(-LARGEST, LARGEST)
        if not len(finite):
            return None
        log = bool(finite.min() > 0) and _ratio(finite) > SPREAD
        shown = np.log10(finite) if log else finite
        best, most = _usual_range(sign * shown)
        worst = float((sign * shown).max())
        most = min(most + BEYOND * (most - best), worst)
        cut = most < worst
        ends = sorted([sign * best, sign * most])
        length = ends[1] - ends[0]
        room = margin * length if length else (0.05 if log else MARGIN * max(abs(ends[0]), 1e-12))
        low, high = ends[0] - room, ends[1] + room
        return cls(10.0**low, 10.0**high, True, cut) if log else cls(low, high, False, cut)

    def reaching(self, value: float) -> "ValueAxis":
        """The axis that shows a value, too: as it is if that is inside, or a logarithmic one has no room for it."""
        if self.low < value < self.high or (self.log and value <= 0):
            return self
        room = 0.03 * (self.high - self.low)
        ends = (value / 1.2, value * 1.2) if self.log else (value - room, value + room)
        return replace(self, low=min(self.low, ends[0]), high=max(self.high, ends[1]))

    def clip(self, values: np.ndarray) -> np.ndarray:
        """Values with those outside at the ends."""
        return np.asarray(np.clip(values, self.low, self.high))

    def place(self, values: np.ndarray) -> np.ndarray:
        """Where values stand: 0 at the lower end, 1 at the upper, those outside at the ends."""
        low, high, inside = self.low, self.high, self.clip(values)
        if self.log:
            low, high, inside = math.log(low), math.log(high), np.log(inside)
        return np.clip((inside - low) / (high - low), 0, 1)


UNIT = ValueAxis(-0.06, 1.06)  # of labels and of pi


def _usual_range(values: np.ndarray) -> tuple[float, float]:
    """The least value (to minimise), and the 90 % quantile if the greater ones would squeeze the others, or the
    greatest."""
    best, worst = float(values.min()), float(values.max())
    most = float(np.quantile(values, 0.9, method="lower"))  # one of the values: nothing between it and an outlier
    return (best, most) if worst - best > CROWDED * (most - best) > 0 else (best, worst)


def _ratio(positive: np.ndarray) -> float:
    low, high = np.quantile(positive, 0.05, method="higher"), np.quantile(positive, 0.95, method="lower")
    return float(high / low)


# --- the axis of a parameter -----------------------------------------------------------------------------------------

FURTHEST = 307.0  # power of ten that float64 still has
TICKS = 5
NAME = 24  # characters of a parameter's name


@dataclass(frozen=True)
class ParameterAxis:
    """The axis of a parameter: numbers on their own scale, choices at their index.

    Attributes:
        name: short, and unlike those of the other parameters.
        low: the lower end, a little below the lower bound.
        high: the upper end.
        log: whether the scale is logarithmic.
        ticks: native values to name, ascending.
        places: where the ticks stand.
        is_numeric: whether values are numbers, not choices.
    """

    name: str
    low: float
    high: float
    log: bool
    ticks: Sequence[Any]
    places: np.ndarray
    is_numeric: bool = True

    @classmethod
    def of(cls, space: "SearchSpace", name: str) -> "ParameterAxis":
        """The axis of a parameter of a space."""
        parameter = space.parameters[name]
        scale = parameter.scale
        low, high = (-0.5, parameter.upper + 0.5) if scale is None else _widened(scale)
        ticks = parameter.ticks(TICKS if parameter.is_numeric else 2 * TICKS)
        label = short_names(space.names, NAME)[space.names.index(name)]
        log = scale is not None and scale.log
        return cls(label, low, high, log, ticks, on_axis(parameter, parameter.encode(ticks)), parameter.is_numeric)


def on_axis(parameter: "Parameter", column: "Tensor") -> np.ndarray:
    """Where a column of points stands on the parameter's axis (n): numbers as they are, choices at their index."""
    where = parameter.decode(column) if parameter.is_numeric else parameter.to_level(column).tolist()
    return np.array(where, dtype=float)


def _widened(scale: "Scale") -> tuple[float, float]:
    """The bounds with a margin of one in fifty, along the scale."""
    low, high = scale.low, scale.high
    if scale.log:
        start, end = math.log10(low), math.log10(high)
        margin = 0.02 * (end - start)
        return 10 ** max(start - margin, -FURTHEST), 10 ** min(end + margin, FURTHEST)
    return low - 0.02 * (high - low), high + 0.02 * (high - low)
