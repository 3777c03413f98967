"""plotly's pen: a `Chart` as a figure of plotly.js, which is plain data, with text whose HTML is escaped."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

import numpy as np

from deepbore.plots.chart import Axis, Band, Bars, Chart, Heat, Layer, Level, Line, Points, Rule, Texts
from deepbore.plots.style import GOOD, GREENS, ParameterAxis, ValueAxis, number, short_names, shortened

LETTERS = 60  # of a text that comes up under the pointer
DECADES = 6  # ticks of a logarithmic axis, at most
CHOICE = 18  # characters of a choice at a tick


@dataclass(frozen=True)
class Drawing:
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


def points(
    x: Sequence[float], y: Sequence[float], colour: str, size: float | Sequence[float], **more: Any
) -> dict[str, Any]:
    """Markers; `marker` in `more` adds to their look."""
    marker = {"color": colour, "size": size, **more.pop("marker", {})}
    return {"type": "scatter", "mode": "markers", "x": list(x), "y": list(y), "marker": marker, **more}


def line(
    x: Sequence[float | None], y: Sequence[float | None], colour: str, width: float, **more: Any
) -> dict[str, Any]:
    """A line that the pointer passes; `line` in `more` adds to its look."""
    look = {"color": colour, "width": width, **more.pop("line", {})}
    return {"type": "scatter", "mode": "lines", "x": list(x), "y": list(y), "line": look, "hoverinfo": "skip", **more}


# --- a chart ---------------------------------------------------------------------------------------------------------

SYMBOLS = {
    "circle": "circle", "ring": "circle-open", "x": "x", "thin x": "x-thin-open", "dash": "line-ew-open",
    "star": "star", "diamond": "diamond", "up": "triangle-up", "down": "triangle-down",
}  # fmt: skip
BARE = {"l": 10, "r": 10, "t": 4, "b": 10}  # of a chart whose axes are hidden
MARGINS = {"l": 60, "r": 10, "t": 8, "b": 40}  # of a small chart without a legend


def drawing(chart: Chart) -> Drawing:
    """A chart, drawn."""
    layout: dict[str, Any] = {"xaxis": _axis(chart.x), "yaxis": _axis(chart.y), "hovermode": "closest"}
    if not chart.has_legend:
        layout |= {"showlegend": False, "margin": BARE if chart.x.is_hidden else MARGINS}
    if any(isinstance(layer, Bars) for layer in chart.layers):
        layout |= {"barmode": "overlay", "bargap": 0.27}
    if rules := [layer for layer in chart.layers if isinstance(layer, Rule)]:
        layout["shapes"] = [_shape(rule) for rule in rules]
    words = [each for layer in chart.layers if isinstance(layer, Texts) for each in _words(layer)]
    if words or chart.remark:
        layout["annotations"] = [*words, *([remark(chart.remark)] if chart.remark else [])]
    traces = [TRACES[type(layer)](layer) for layer in chart.layers if type(layer) in TRACES]
    return Drawing([trace for trace in traces if trace["x"]], layout, chart.height, chart.turns, chart.switches)


def for_plotly(chart: Chart) -> dict[str, Any]:
    """A chart as `plotly.graph_objects.Figure` takes it: the numbers of trials stand under the pointer."""
    drawn = drawing(chart)
    data = []
    for trace in drawn.data:
        known = {name: value for name, value in trace.items() if name not in ("trials", "more")}
        if "trials" in trace:
            more = trace.get("more") or [""] * len(trace["trials"])
            lines = [f"trial {row}" + (f"<br>{each}" if each else "")
                     for row, each in zip(trace["trials"], more, strict=True)]  # fmt: skip
            known |= {"hovertext": lines, "hoverinfo": "text"}
        data.append(known)
    return {"data": data, "layout": {"title": {"text": text(chart.title, 80)}, "height": chart.height, **drawn.layout}}


def _axis(axis: Axis) -> dict[str, Any]:
    title = text(axis.title, 60)
    if axis.is_hidden and isinstance(axis.scale, ValueAxis):
        return {"visible": False, "fixedrange": True, "range": [axis.scale.low, axis.scale.high]}
    if isinstance(axis.scale, ParameterAxis):
        return parameter_axis(axis.scale, nticks=6)
    if axis.scale is not None:
        return value_axis(axis.scale, title)
    more: dict[str, Any] = {"rangemode": "tozero"} if axis.from_zero else {}
    more |= {"tickformat": ".0%"} if axis.form == "percent" else {}
    if axis.ticks:
        ends = [-0.5, len(axis.ticks) - 0.5]
        names = {"tickvals": list(range(len(axis.ticks))), "ticktext": texts(axis.ticks, 30)}
        more |= {"range": ends[::-1] if axis.is_reversed else ends, "fixedrange": True, "automargin": True, **names}
    return titled(title, **more)


def _shape(rule: Rule) -> dict[str, Any]:
    look = {"type": "line", "line": {"color": rule.colour, "dash": rule.dash, "width": 1.4}}
    if rule.x is not None:
        return {**look, "x0": rule.x, "x1": rule.x, "yref": "paper", "y0": 0, "y1": 1}
    return {**look, "y0": rule.y, "y1": rule.y, "xref": "paper", "x0": 0, "x1": 1}


def _words(layer: Texts) -> list[dict[str, Any]]:
    head = {"showarrow": False, "yanchor": "bottom", "font": {"size": 11}}
    ground = {"xanchor": "right", "xshift": -4, "bgcolor": "rgba(255,255,255,.75)", "font": {"size": 10}}
    look, tag = (head, "<b>{}</b>") if layer.is_head else ({"showarrow": False, **ground}, "{}")
    named = zip(layer.x.tolist(), layer.y.tolist(), layer.words, strict=True)
    return [{**look, "x": x, "y": y, "text": tag.format(escape(words, quote=False))} for x, y, words in named]


def _of(layer: Layer) -> dict[str, Any]:
    """What all traces of layers have: the name, and what comes up under the pointer."""
    said = [escape(each, quote=False).replace("\n", "<br>") for each in layer.said]
    found: dict[str, Any] = {"name": text(layer.name)} if layer.name else {"showlegend": False}
    if layer.trials is not None:
        return {**found, "trials": layer.trials.tolist(), **({"more": said} if said else {})}
    return {**found, "hovertext": said, "hoverinfo": "text"} if said else {**found, "hoverinfo": "skip"}


def _points(layer: Points) -> dict[str, Any]:
    symbols = layer.symbols
    marker: dict[str, Any] = {
        "symbol": SYMBOLS[symbols] if isinstance(symbols, str) else [SYMBOLS[each] for each in symbols],
        "opacity": layer.opacity,
    }
    if symbols in ("ring", "star"):
        marker["line"] = {"width": 2 if symbols == "ring" else 0.8, **({"color": "#222"} if symbols == "star" else {})}
    arms: dict[str, Any] = {}
    if layer.arms is not None:
        up, down = (layer.arms[1] - layer.y).tolist(), (layer.y - layer.arms[0]).tolist()
        arms = {"error_y": {"type": "data", "symmetric": False, "color": layer.colour, "thickness": 1.4, "width": 5,
                            "array": up, "arrayminus": down}}  # fmt: skip
    x, y = layer.x.tolist(), layer.y.tolist()
    size = layer.size.tolist() if isinstance(layer.size, np.ndarray) else layer.size
    return points(x, y, layer.colour, size, marker=marker, cliponaxis=False, **arms, **_of(layer))


def _line(layer: Line) -> dict[str, Any]:
    look = {"shape": "hv"} if layer.steps else {}
    look |= {"dash": layer.dash} if layer.dash else {}
    marks: dict[str, Any] = {}
    if layer.is_marked or layer.trials is not None:  # a line alone has no points for the pointer
        size = 5 if layer.is_marked else 2
        marks = {"mode": "lines+markers", "marker": {"color": layer.colour, "size": size}}
    is_gap = np.isnan(layer.y)
    x, y = ([None if gap else each for gap, each in zip(is_gap, part.tolist(), strict=True)]
            for part in (layer.x, layer.y))  # fmt: skip
    return line(x, y, layer.colour, layer.width, line=look, opacity=layer.opacity, **marks, **_of(layer))


def _band(layer: Band) -> dict[str, Any]:
    x, y = np.concatenate([layer.x, layer.x[::-1]]), np.concatenate([layer.low, layer.high[::-1]])
    red, green, blue = (int(layer.colour[k : k + 2], 16) for k in (1, 3, 5))
    ground = f"rgba({red},{green},{blue},{layer.opacity:g})"
    return line(x.tolist(), y.tolist(), layer.colour, 0, fill="toself", fillcolor=ground, **_of(layer))


def _bars(layer: Bars) -> dict[str, Any]:
    return {
        "type": "bar",
        "orientation": "h",
        "base": layer.base.tolist(),
        "x": layer.length.tolist(),
        "y": layer.y.tolist(),
        "textposition": "none",
        "marker": {"color": layer.colour, "opacity": layer.opacity, "line": {"color": layer.colour, "width": 1}},
        **_of(layer),  # the edge: of what is short there would be nothing else
    }


def _heat(layer: Heat) -> dict[str, Any]:
    values, table = layer.values, layer.table if layer.partly is None else np.where(layer.partly, np.nan, layer.table)
    ends = (math.log10(values.low), math.log10(values.high)) if values.log else (values.low, values.high)
    colours = dict(zip((0, 0.6, 1), GREENS, strict=True)) if layer.colour == GOOD else {0: "#ffffff", 1: layer.colour}
    stops = [(1 - stop if layer.less_is_better else stop, colour) for stop, colour in colours.items()]
    return {
        "type": "heatmap",
        "x": layer.x.tolist(),
        "y": layer.y.tolist(),
        "z": (np.log10(table) if values.log else table).tolist(),
        "zmin": ends[0],
        "zmax": ends[1],
        "colorscale": sorted(stops),
        "showscale": False,
        "hovertext": [[text(each, 90) for each in row] for row in layer.cells],
        "hoverinfo": "text",
        "hoverongaps": False,
    }


def _level(layer: Level) -> dict[str, Any]:
    return {
        "type": "contour",
        "x": layer.x.tolist(),
        "y": layer.y.tolist(),
        "z": layer.table.tolist(),
        "contours": {"start": layer.value, "end": layer.value, "size": 1, "coloring": "none"},
        "line": {"color": layer.colour, "dash": "dash", "width": 1.6},
        "showscale": False,
        **_of(layer),
    }


TRACES: dict[type, Callable[[Any], dict[str, Any]]] = {
    Points: _points, Line: _line, Band: _band, Bars: _bars, Heat: _heat, Level: _level,
}  # fmt: skip
