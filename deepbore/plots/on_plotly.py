"""What the charts of the page share: plotly.js figures as plain data, text with its HTML escaped, and axes."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

from deepbore.plots.style import BAD, ParameterAxis, ValueAxis, number, short_names, shortened

LETTERS = 60  # of a text that comes up under the pointer
DECADES = 6  # ticks of a logarithmic axis, at most
CHOICE = 18  # characters of a choice at a tick


@dataclass(frozen=True)
class Chart:
    """A figure as plotly.js takes it.

    Attributes:
        data: its traces. One with "trials", a number for each of its points, shows these under the pointer.
        layout: its axes and more; the page adds fonts and margins.
        height: in pixels.
        turns: in a window of fewer pixels it is turned: x runs down, y to the right.
        log: axes whose scale the reader may switch, such as "y".
    """

    data: Sequence[Mapping[str, Any]]
    layout: Mapping[str, Any] = field(default_factory=dict)
    height: int = 340
    turns: int = 0
    log: str = ""


# --- text ------------------------------------------------------------------------------------------------------------


def text(value: Any, most: int = LETTERS) -> str:
    """A user's text as one line for plotly, which reads some HTML."""
    return escape(shortened(value, most), quote=False)


def texts(values: Sequence[Any], most: int) -> list[str]:
    """Several texts, all different."""
    return [escape(name, quote=False) for name in short_names(values, most)]


def remark(words: str) -> dict[str, Any]:
    """Words in the middle of an empty chart."""
    return {"text": words, "showarrow": False, "xref": "paper", "yref": "paper", "x": 0.5, "y": 0.5}


# --- axes ------------------------------------------------------------------------------------------------------------


def titled(words: str, **settings: Any) -> dict[str, Any]:
    """An axis with a title."""
    return {"title": {"text": words}, **settings}


def value_axis(shown: ValueAxis | None, title: str) -> dict[str, Any]:
    """The layout of an axis of values; if it has a title, that says whether outliers lie at its edge."""
    if shown is None:
        return titled(title)
    title += " (outliers at the edge)" if title and shown.cut else ""
    if not shown.log:
        return titled(title, type="linear", range=[shown.low, shown.high])
    decades = math.log10(shown.high / shown.low)
    powers = {"dtick": math.ceil(decades / DECADES)} if decades > 2 else {}  # plotly's own say 2 and 5 between them
    return titled(title, type="log", range=[math.log10(shown.low), math.log10(shown.high)], **powers)


def parameter_axis(shown: ParameterAxis, **settings: Any) -> dict[str, Any]:
    """The layout of a parameter's axis."""
    title = {"text": text(shown.name), "standoff": 6}
    ends = [math.log10(shown.low), math.log10(shown.high)] if shown.log else [shown.low, shown.high]
    axis = {"title": title, "type": "log" if shown.log else "linear", "range": ends, **settings}
    if shown.is_numeric and not shown.log:
        return axis
    labels = [number(tick) for tick in shown.ticks]  # plotly's own say 10, 9, 8 within a decade
    named = {"tickvals": shown.places.tolist(), "ticktext": texts(labels, CHOICE)}
    return {**axis, **named, "ticklabeloverflow": "allow"}  # else labels that are too long are left out


# --- traces ----------------------------------------------------------------------------------------------------------


def points(x: Sequence[float], y: Sequence[float], colour: str, size: float, **more: Any) -> dict[str, Any]:
    """Markers; `marker` in `more` adds to their look."""
    marker = {"color": colour, "size": size, **more.pop("marker", {})}
    return {"type": "scatter", "mode": "markers", "x": list(x), "y": list(y), "marker": marker, **more}


def line(
    x: Sequence[float | None], y: Sequence[float | None], colour: str, width: float, **more: Any
) -> dict[str, Any]:
    """A line that the pointer passes; `line` in `more` adds to its look."""
    look = {"color": colour, "width": width, **more.pop("line", {})}
    return {"type": "scatter", "mode": "lines", "x": list(x), "y": list(y), "line": look, "hoverinfo": "skip", **more}


def diagonal(low: float, high: float) -> dict[str, Any]:
    """A pale line on which both axes agree."""
    return line([low, high], [low, high], BAD, 1.2, line={"dash": "dash"}, showlegend=False)
