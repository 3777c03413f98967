"""`Chart`: a picture as numbers with names, units and a title, which plotly and matplotlib draw. It imports neither."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from deepbore.plots.style import ParameterAxis, ValueAxis


@dataclass(frozen=True)
class Axis:
    """An axis of a chart.

    Attributes:
        title: the measure, and its unit.
        scale: of values or of a parameter; None for one that the numbers give.
        ticks: names at the places 0, 1, ...; empty for numbers.
        form: "percent", "whole" or "".
        from_zero: whether it begins at 0.
        is_reversed: whether it runs from the top to the bottom.
        is_hidden: whether nothing of it is shown; `Texts` say what is where.
    """

    title: str = ""
    scale: ValueAxis | ParameterAxis | None = None
    ticks: Sequence[str] = ()
    form: str = ""
    from_zero: bool = False
    is_reversed: bool = False
    is_hidden: bool = False


@dataclass(frozen=True, kw_only=True)
class Layer:
    """A part of a chart, of one colour.

    Attributes:
        colour: as #rrggbb.
        name: in the legend; empty for none.
        trials: the number of each point's trial, which the page shows under the pointer; None for points of no trial.
        said: lines of text about each point, under the pointer; empty for none.
        opacity: in [0, 1].
    """

    colour: str = "#000000"
    name: str = ""
    trials: np.ndarray | None = None
    said: Sequence[str] = ()
    opacity: float = 1.0


@dataclass(frozen=True)
class Points(Layer):
    """Marks at (x, y), n each.

    Attributes:
        x: n.
        y: n.
        size: in pixels, of all, or of each.
        symbols: "circle", "ring", "x", "thin x", "dash", "star", "diamond", "up" or "down": of all, or of each.
        arms: the lower and the upper end of an upright line through each; None for none.
    """

    x: np.ndarray
    y: np.ndarray
    size: float | np.ndarray = 6.0
    symbols: str | Sequence[str] = "circle"
    arms: tuple[np.ndarray, np.ndarray] | None = None


@dataclass(frozen=True)
class Line(Layer):
    """A line through (x, y), n each, with a gap at NaN.

    Attributes:
        x: n.
        y: n.
        width: in pixels.
        dash: "", "dash" or "dot".
        steps: whether it keeps each height until the next x.
        is_marked: whether its points are marked.
    """

    x: np.ndarray
    y: np.ndarray
    width: float = 2.0
    dash: str = ""
    steps: bool = False
    is_marked: bool = False


@dataclass(frozen=True)
class Band(Layer):
    """The ground between two lines: x, low and high, n each."""

    x: np.ndarray
    low: np.ndarray
    high: np.ndarray


@dataclass(frozen=True)
class Bars(Layer):
    """Bars that lie: from `base`, so long as `length`, at the places y, n each; with text at their ends, if any."""

    base: np.ndarray
    length: np.ndarray
    y: np.ndarray
    ends: Sequence[str] = ()


@dataclass(frozen=True)
class Heat(Layer):
    """A table of colours over places of two axes, white to `colour`; `name` is the measure.

    Attributes:
        x: m places.
        y: l places.
        table: l x m; NaN where there is none.
        values: axis of the table's values.
        less_is_better: whether the lowest values are the greenest.
        cells: text under the pointer, l x m.
        partly: where the value is of one parameter alone, since the other is inactive (l x m).
    """

    x: np.ndarray
    y: np.ndarray
    table: np.ndarray
    values: ValueAxis
    less_is_better: bool = False
    cells: Sequence[Sequence[str]] = ()
    partly: np.ndarray | None = None


@dataclass(frozen=True)
class Level(Layer):
    """Where a table over places of two axes has a value.

    Attributes:
        x: m places.
        y: l places.
        table: l x m; NaN where there is none.
        value: on the line.
    """

    x: np.ndarray
    y: np.ndarray
    table: np.ndarray
    value: float


@dataclass(frozen=True)
class Texts(Layer):
    """Words at (x, y), n each.

    Attributes:
        x: n.
        y: n.
        words: n.
        is_head: whether they stand above their places, in bold; else to the left of them.
    """

    x: np.ndarray
    y: np.ndarray
    words: Sequence[str]
    is_head: bool = False


@dataclass(frozen=True)
class Rule(Layer):
    """A straight line over the whole chart: upright at x, or level at y."""

    x: float | None = None
    y: float | None = None
    dash: str = "dot"


@dataclass(frozen=True)
class Chart:
    """A picture as numbers.

    Attributes:
        title: what it measures.
        layers: the lowest first.
        x: the axis across.
        y: the axis up.
        remark: why there is nothing to see; empty where there is.
        height: in pixels.
        switches: axes whose scale a reader may change between logarithmic and linear: "", "x", "y" or "xy".
        has_legend: whether names of layers are shown.
        turns: in a window of fewer pixels the page turns it: x runs down, y to the right.
    """

    title: str
    layers: Sequence[Layer]
    x: Axis = field(default_factory=Axis)
    y: Axis = field(default_factory=Axis)
    remark: str = ""
    height: int = 340
    switches: str = ""
    has_legend: bool = True
    turns: int = 0

    def layer(self, name: str) -> Any:
        """The first layer of a name. Raises KeyError for an unknown one."""
        for each in self.layers:
            if each.name == name:
                return each
        raise KeyError(f"{name!r} is none of the layers {[each.name for each in self.layers if each.name]}.")
