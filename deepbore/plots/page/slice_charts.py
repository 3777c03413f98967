"""The classifier along one parameter, and over two, in the user's units."""

from collections.abc import Callable, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from deepbore.plots.page.charts import Chart, axis_of, clipped, note, number, text, texts
from deepbore.plots.predictions import band, centre, grid, has_deviation, labels_of, probability, shown_rows, values_of
from deepbore.plots.scales import short
from deepbore.plots.style import BAD, BEST, GOOD, STAR
from deepbore.plots.translation import Translation
from deepbore.plots.value_axis import ValueAxis
from deepbore.space import SearchSpace
from deepbore.space.parameters import Parameter

if TYPE_CHECKING:
    from deepbore.study import Study

FINE, COARSE, LEVELS, TRIALS, TICKS = 101, 25, 40, 400, 5
UNIT = ValueAxis(-0.04, 1.04, False, False)  # of labels
BAND = "rgba(26,127,90,.18)"
Meaning = Callable[[np.ndarray], np.ndarray]  # from pi to what is shown


def slice_charts(
    study: "Study", names: Sequence[str], translation: Translation | None, shown: ValueAxis | None
) -> list[Chart]:
    """A chart for each of the parameters.

    Args:
        study: with a trained classifier.
        names: of the parameters.
        translation: from pi to values; None to show pi.
        shown: the axis of values.
    """
    axis = UNIT if translation is None or shown is None else shown
    return [_slice(study, name, translation, axis) for name in names]


def pair_charts(
    study: "Study", names: Sequence[str], translation: Translation | None, shown: ValueAxis | None
) -> list[Chart]:
    """A chart for each pair of the parameters; the arguments are those of `slice_charts`."""
    axis = UNIT if translation is None or shown is None else shown
    return [_pair(study, *pair, translation, axis) for pair in combinations(names, 2)]


def _slice(study: "Study", name: str, translation: Translation | None, axis: ValueAxis) -> Chart:
    column = study.space.names.index(name)
    parameter = study.space.parameters[name]
    layout = {
        "xaxis": {**_axis(study.space, name), "nticks": 5},
        "yaxis": {**axis_of(axis, ""), "title": {"text": ""}, "nticks": 6},
        "margin": {"l": 46, "r": 10, "t": 8, "b": 40},
        "showlegend": False,
    }
    start = centre(study, [column])
    if start is None:
        return Chart([], {**layout, "annotations": [note("inactive in every trial")]}, 230)
    entries = grid(parameter, FINE if parameter.levels is None else LEVELS)
    points = start.repeat(len(entries), 1)
    points[:, column] = entries
    traces = [*_trials_along(study, column, translation, axis), *_line(study, points, column, translation, axis)]
    if parameter.is_numeric:
        at = where(parameter, start[[column]])[0]
        mark = {"type": "line", "x0": at, "x1": at, "yref": "paper", "y0": 0, "y1": 1}
        layout["shapes"] = [{**mark, "line": {"color": BEST, "dash": "dot", "width": 1.4}}]
    return Chart(traces, layout, 230)


def _line(
    study: "Study", points: Tensor, column: int, translation: Translation | None, axis: ValueAxis
) -> list[dict[str, Any]]:
    """What the classifier says at points (n x d), and its band."""
    parameter = list(study.space.parameters.values())[column]
    snapped = study.space.without_fixed.snap(points)
    x, mean = where(parameter, points[:, column]), _as_values(translation)
    middle = mean(probability(study, snapped))
    low, high = (mean(each) for each in band(study, snapped)) if has_deviation(study) else (middle, middle)
    lines = [f"{text(number(v), 30)}: <b>{m:.5g}</b><br>{min(a, b):.5g} to {max(a, b):.5g}"
             for v, m, a, b in zip(x, middle, low, high, strict=True)]  # fmt: skip
    drawn, bottom, top = (np.array(clipped(each.tolist(), axis)) for each in (middle, low, high))
    said = {"type": "scatter", "x": x, "y": drawn.tolist(), "hovertext": lines, "hoverinfo": "text"}
    if not parameter.is_ordered:
        arms = {"type": "data", "symmetric": False, "color": GOOD, "thickness": 1.4, "width": 5,
                "array": (np.maximum(bottom, top) - drawn).tolist(),
                "arrayminus": (drawn - np.minimum(bottom, top)).tolist()}  # fmt: skip
        return [{**said, "mode": "markers", "marker": {"color": GOOD, "size": 9, "symbol": "diamond"}, "error_y": arms}]
    around = {"type": "scatter", "mode": "lines", "x": [*x, *x[::-1]], "y": [*bottom.tolist(), *top.tolist()[::-1]],
              "fill": "toself", "fillcolor": BAND, "line": {"width": 0}, "hoverinfo": "skip"}  # fmt: skip
    mode = "lines" if parameter.levels is None else "lines+markers"
    return [around, {**said, "mode": mode, "line": {"color": GOOD, "width": 2}, "marker": {"color": GOOD, "size": 4}}]


def _trials_along(
    study: "Study", column: int, translation: Translation | None, axis: ValueAxis
) -> list[dict[str, Any]]:
    """The trials that have the parameter, at their values; at their labels where pi is shown."""
    rows = shown_rows(study, TRIALS)
    points = study.observations.points.cpu()[rows]
    rows = rows[study.space.active(points)[:, column]]
    heights = labels_of(study).z.mean(-1).cpu().double().numpy() if translation is None else values_of(study)
    kept = [row for row in rows.tolist() if np.isfinite(heights[row])]
    parameter = list(study.space.parameters.values())[column]
    return [
        {
            "type": "scatter",
            "mode": "markers",
            "x": where(parameter, study.observations.points.cpu()[kept, column]),
            "y": clipped([float(heights[row]) for row in kept], axis),
            "trials": kept,
            "marker": {"color": BAD, "size": 5, "opacity": 0.7},
            "cliponaxis": False,
        }
    ]


def _pair(study: "Study", across: str, up: str, translation: Translation | None, axis: ValueAxis) -> Chart:
    space = study.space
    i, j = space.names.index(across), space.names.index(up)
    p, q = space.parameters[across], space.parameters[up]
    layout = {
        "xaxis": {**_axis(space, across), "nticks": 5},
        "yaxis": {**_axis(space, up), "nticks": 6},
        "margin": {"l": 60, "r": 10, "t": 8, "b": 40},
        "showlegend": False,
    }
    start = centre(study, [i, j])
    if start is None:
        return Chart([], {**layout, "annotations": [note("no trial has both")]}, 300)
    xs, ys = (grid(each, COARSE if each.levels is None else LEVELS) for each in (p, q))
    points = start.repeat(len(xs) * len(ys), 1)
    points[:, [i, j]] = torch.cartesian_prod(xs, ys)
    snapped = space.without_fixed.snap(points)
    found = _as_values(translation)(probability(study, snapped))
    has_both = space.active(snapped)[:, [i, j]].all(-1).numpy()
    table = np.where(has_both, found, np.nan).reshape(len(xs), len(ys)).T
    less_is_better = translation is not None and study.observations.direction == "minimize"
    heat = _heat(where(p, xs), where(q, ys), table, axis, less_is_better)
    return Chart([heat, *_trials_over(study, [i, j])], layout, 300)


def _heat(xs: list[Any], ys: list[Any], table: np.ndarray, axis: ValueAxis, less_is_better: bool) -> dict[str, Any]:
    """Values at each x and y (table: a row for each y), the better the greener."""
    white_to_green = [[0, "#ffffff"], [0.6, "#b9dccd"], [1, GOOD]]
    green_to_white = [[0, GOOD], [0.4, "#b9dccd"], [1, "#ffffff"]]
    return {
        "type": "heatmap",
        "x": xs,
        "y": ys,
        "z": (np.log10(table) if axis.log else table).tolist(),
        "customdata": table.tolist(),
        "zmin": float(np.log10(axis.low)) if axis.log else axis.low,
        "zmax": float(np.log10(axis.high)) if axis.log else axis.high,
        "colorscale": green_to_white if less_is_better else white_to_green,
        "showscale": False,
        "hovertemplate": "%{x}, %{y}: <b>%{customdata:.5g}</b><extra></extra>",
        "hoverongaps": False,
    }


def _trials_over(study: "Study", columns: list[int]) -> list[dict[str, Any]]:
    """The trials that have both parameters, and the best of them as a star."""
    rows = shown_rows(study, TRIALS)
    points = study.observations.points.cpu()
    kept = rows[study.space.active(points[rows])[:, columns].all(-1)].tolist()
    best = [row for row in study.observations.best_rows(1).cpu().tolist() if row in set(kept)]
    parameters = [list(study.space.parameters.values())[column] for column in columns]
    looks = [
        (kept, {"color": "rgba(31,59,115,.55)", "size": 5, "line": {"color": "#fff", "width": 0.5}}),
        (best, {"color": STAR, "size": 14, "symbol": "star", "line": {"color": "#222", "width": 0.8}}),
    ]
    traces = []
    for which, marker in looks:
        x, y = (where(p, points[which, column]) for p, column in zip(parameters, columns, strict=True))
        traces.append({"type": "scatter", "mode": "markers", "x": x, "y": y, "trials": which, "marker": marker,
                       "cliponaxis": False})  # fmt: skip
    return traces


def where(parameter: Parameter, column: Tensor) -> list[Any]:
    """Where a column of points stands on the parameter's axis: numbers as they are, choices by a label."""
    if parameter.is_numeric:
        return [float(value) for value in parameter.decode(column)]
    labels = _labels(parameter)
    return [labels[round(level)] for level in parameter.to_level(column).tolist()]


def _labels(parameter: Parameter) -> list[str]:
    """The choices as short texts that differ."""
    choices = parameter.decode(torch.arange(parameter.levels or 1, dtype=torch.float64))
    return texts([number(choice) for choice in choices], 18)


def _axis(space: SearchSpace, name: str) -> dict[str, Any]:
    """The layout of a parameter's axis."""
    parameter, place = space.parameters[name], space.names.index(name)
    title = {"title": {"text": texts(space.names, 30)[place], "standoff": 6}}
    scale = parameter.scale
    if scale is None:
        labels = _labels(parameter)
        return {**title, "type": "category", "categoryarray": labels, "range": [-0.5, len(labels) - 0.5]}
    low, high = (np.log10(scale.low), np.log10(scale.high)) if scale.log else (scale.low, scale.high)
    margin = 0.03 * (high - low)
    limits = {"range": [float(low - margin), float(high + margin)]}
    if not scale.log:
        return {**title, "type": "linear", **limits}
    shown = parameter.ticks(TICKS)  # plotly's own say 10, 9, 8 within a decade
    return {**title, "type": "log", **limits, "tickvals": shown, "ticktext": [short(value) for value in shown]}


def _as_values(translation: Translation | None) -> Meaning:
    return (lambda pi: pi) if translation is None else translation
