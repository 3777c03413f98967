"""`slices` and `pairs`: the classifier along one parameter, and over two, cut at the best configuration."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from deepbore.errors import SettingError
from deepbore.plots.importance_chart import importances
from deepbore.plots.on_matplotlib import clear, dress, greens, greys, message, new_figure, note, root_scale, thin_spines
from deepbore.plots.on_plotly import Chart, line, parameter_axis, points, remark, text, value_axis
from deepbore.plots.predictions import (
    MANY,
    Units,
    band,
    centre,
    grid,
    has_deviation,
    mean_labels,
    name_of_pi,
    nothing_learned,
    probability,
    shown_rows,
    spread,
    values_of,
)
from deepbore.plots.style import (
    BAD,
    BEST,
    FAILED,
    GOOD,
    GREENS,
    GREY,
    PALE,
    STAR,
    UNIT,
    ParameterAxis,
    ValueAxis,
    number,
    on_axis,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from deepbore.study import Study

SLICES, PAIRED = 12, 4  # parameters that have a slice; that are paired
FINE, COARSE, LEVELS = 201, 61, 40  # entries of a grid: along a line, along a side, of a parameter with levels


def chosen(study: "Study", parameters: Sequence[str] | None, most: int) -> list[str]:
    """The named parameters, or the most important ones.

    Raises:
        SettingError: for an unknown name, or none.
    """
    if parameters is None:
        return list(importances(study))[:most] if len(study.space) > 1 else study.space.names
    if not parameters:
        raise SettingError(f"parameters must be some of {study.space.names}, but got none. Give None for the default.")
    if unknown := [name for name in parameters if name not in study.space.names]:
        raise SettingError(f"parameters must be among {study.space.names}, but got {unknown}.")
    return list(parameters)


# --- slices: what is drawn -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Prediction:
    """What the classifier predicts along one parameter.

    Attributes:
        best: where the configuration stands that the others are taken from.
        natives: values of the parameter (m).
        x: where they stand (m).
        middle: pi there, in some units (m).
        low: at one standard deviation of the score, the lower end; `middle`, if the classifier has none (m).
        high: the upper end (m).
    """

    best: float
    natives: Sequence[Any]
    x: np.ndarray
    middle: np.ndarray
    low: np.ndarray
    high: np.ndarray


@dataclass(frozen=True)
class Heights:
    """Trials along one parameter.

    Attributes:
        rows: their numbers (r).
        at: where they stand (r).
        heights: their labels, or their values, as the units are (r).
        good: which have a label above 0 (r).
    """

    rows: np.ndarray
    at: np.ndarray
    heights: np.ndarray
    good: np.ndarray


@dataclass(frozen=True)
class Slice:
    """The classifier along one parameter, the others as in the best configuration that has it, and the trials.

    Attributes:
        axis: of the parameter.
        is_ordered: whether the values have an order, so that a line may join them.
        is_continuous: whether there are values between any two.
        prediction: None for a parameter that is inactive in every trial with a value.
        trials: those that have the parameter.
    """

    axis: ParameterAxis
    is_ordered: bool
    is_continuous: bool
    prediction: Prediction | None
    trials: Heights

    @classmethod
    def of(
        cls,
        study: "Study",
        name: str,
        units: Units | None = None,
        fine: int = FINE,
        most: int = MANY,
        objective: int | None = None,
    ) -> "Slice":
        """The slice of a study along a parameter.

        Args:
            study: with a trained classifier.
            name: of the parameter.
            units: what is shown; None for pi.
            fine: values of a continuous parameter.
            most: trials.
            objective: of several, the one whose labels and values are shown; None for the mean label.
        """
        column, parameter = study.space.names.index(name), study.space.parameters[name]
        units = units or Units(name_of_pi(study))
        return cls(
            ParameterAxis.of(study.space, name),
            parameter.is_ordered,
            parameter.levels is None,
            _prediction(study, column, units, fine, objective),
            _trials_along(study, column, units, most, objective),
        )


def _prediction(study: "Study", column: int, units: Units, fine: int, objective: int | None) -> Prediction | None:
    parameter, start = list(study.space.parameters.values())[column], centre(study, [column])
    if start is None:
        return None
    entries = grid(parameter, fine if parameter.levels is None else LEVELS)
    points = _moved(study, start, [column], entries[:, None])
    middle = units(probability(study, points, objective))
    ends = band(study, points, objective) if has_deviation(study, objective) else None
    one, other = (middle, middle) if ends is None else map(units, ends)
    best, x = float(on_axis(parameter, start[[column]])[0]), on_axis(parameter, entries)
    return Prediction(best, parameter.decode(entries), x, middle, np.minimum(one, other), np.maximum(one, other))


def _trials_along(study: "Study", column: int, units: Units, most: int, objective: int | None) -> Heights:
    rows, points, labels = shown_rows(study, most), study.observations.points.cpu(), mean_labels(study, objective)
    rows = rows[study.space.active(points[rows])[:, column]]
    heights = labels if units.translation is None else values_of(study, objective)
    rows = rows[torch.from_numpy(np.isfinite(heights))[rows]]
    at = on_axis(list(study.space.parameters.values())[column], points[rows, column])
    return Heights(rows.numpy(), at, heights[rows.numpy()], labels[rows.numpy()] > 0)


def _moved(study: "Study", start: Tensor, columns: list[int], entries: Tensor) -> Tensor:
    """Points with these entries (m x k) in k columns, the others as in a configuration (d): m x d."""
    points = start.repeat(len(entries), 1)
    points[:, columns] = entries
    return study.space.without_fixed.snap(points)


# --- slices: as a picture --------------------------------------------------------------------------------------------


def slices(study: "Study", *, parameters: Sequence[str] | None = None, figure: "Figure | None" = None) -> "Figure":
    """pi along each parameter, the others at the best configuration, with the labels of the trials.

    The band is one standard deviation of the score, where the classifier gives one. A parameter that
    the best configuration doesn't have is shown around the best trial that has it.

    Args:
        study: with a trained classifier; see `Study.fit`.
        parameters: names, one panel each; None for the 12 most important.
        figure: where to draw; None for a new one.

    Raises:
        SettingError: for an unknown parameter, or if the classifier is not trained.
        MissingPackage: without matplotlib.
    """
    if reason := nothing_learned(study):
        return message(figure, reason)
    names = chosen(study, parameters, SLICES)
    columns = min(4, len(names))
    rows = math.ceil(len(names) / columns)
    figure = figure or new_figure(max(2.6 * columns, 4.5), 2.4 * rows)
    panels = figure.subplots(rows, columns, sharey=True, squeeze=False).ravel()
    for axes, name in zip(panels, names, strict=False):
        shown = Slice.of(study, name)
        draw_slice(axes, shown)
        if shown.prediction is not None:
            axes.axvline(shown.prediction.best, color=BEST, lw=1.0, ls=":", zorder=1)
    for axes in panels[len(names) :]:
        axes.set_axis_off()
    figure.supylabel(name_of_pi(study), fontsize=10)
    return figure


def draw_slice(axes: "Axes", shown: Slice) -> None:
    """One panel of `slices`: pi and its band as a line, or as bars where values have no order."""
    dress(axes, "x", shown.axis)
    axes.set_ylim(UNIT.low, UNIT.high)
    thin_spines(axes)
    if (found := shown.prediction) is None:
        note(axes, "inactive in every trial")
        return
    x, middle, low, high = found.x, found.middle, found.low, found.high
    if shown.is_ordered:
        axes.fill_between(x, low, high, color=GOOD, alpha=0.2, lw=0)
        axes.plot(x, middle, color=GOOD, lw=1.6, marker="" if shown.is_continuous else "o", ms=2.5, zorder=3)
    else:
        width = min(6.0, 60 / len(x))
        axes.vlines(x, low, high, color=GOOD, alpha=0.3, lw=width)
        axes.scatter(x, middle, color=GOOD, marker="_", s=20 * width, zorder=3)
    trials = shown.trials
    colours = np.where(trials.good, BEST, GREY)
    axes.scatter(trials.at, trials.heights, s=11, c=colours, alpha=0.55, lw=0, zorder=2, clip_on=False)


# --- slices: on the page ---------------------------------------------------------------------------------------------


def slice_chart(shown: Slice, values: ValueAxis) -> Chart:
    """The same chart for the page, with an axis of values, at whose ends outliers lie."""
    layout = {
        "xaxis": parameter_axis(shown.axis, nticks=5),
        "yaxis": {**value_axis(values, ""), "nticks": 6},
        "margin": {"l": 46, "r": 10, "t": 8, "b": 40},
        "showlegend": False,
    }
    if (found := shown.prediction) is None:
        return Chart([], {**layout, "annotations": [remark("inactive in every trial")]}, 230)
    x, y, rows = shown.trials.at, values.clip(shown.trials.heights), shown.trials.rows.tolist()
    trials = points(x.tolist(), y.tolist(), BAD, 5, trials=rows, marker={"opacity": 0.7}, cliponaxis=False)
    mark = {"type": "line", "x0": found.best, "x1": found.best, "yref": "paper", "y0": 0, "y1": 1}
    layout["shapes"] = [{**mark, "line": {"color": BEST, "dash": "dot", "width": 1.4}}]
    draw = _line if shown.is_ordered else _bars
    said = {"hovertext": _under_the_pointer(found), "hoverinfo": "text"}
    return Chart([trials, *draw(shown, found, values, said)], layout, 230)


def _under_the_pointer(found: Prediction) -> list[str]:
    return [
        f"{text(number(value), 30)}: <b>{middle:.5g}</b><br>{low:.5g} to {high:.5g}"
        for value, middle, low, high in zip(found.natives, found.middle, found.low, found.high, strict=True)
    ]


def _line(shown: Slice, found: Prediction, values: ValueAxis, said: dict[str, Any]) -> list[dict[str, Any]]:
    """The band, and the prediction as a line."""
    x = found.x.tolist()
    middle, low, high = (values.clip(each).tolist() for each in (found.middle, found.low, found.high))
    around = line([*x, *x[::-1]], [*low, *high[::-1]], GOOD, 0, fill="toself", fillcolor="rgba(26,127,90,.18)")
    mode = "lines" if shown.is_continuous else "lines+markers"
    return [around, line(x, middle, GOOD, 2, mode=mode, marker={"color": GOOD, "size": 4}, **said)]


def _bars(_: Slice, found: Prediction, values: ValueAxis, said: dict[str, Any]) -> list[dict[str, Any]]:
    """Predictions of values without an order, with error bars."""
    middle, low, high = (values.clip(each) for each in (found.middle, found.low, found.high))
    arms = {"type": "data", "symmetric": False, "color": GOOD, "thickness": 1.4, "width": 5,
            "array": (high - middle).tolist(), "arrayminus": (middle - low).tolist()}  # fmt: skip
    marker = {"symbol": "diamond"}
    return [points(found.x.tolist(), middle.tolist(), GOOD, 9, marker=marker, error_y=arms, **said)]


# --- pairs: what is drawn --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Trials:
    """Trials in a plane.

    Attributes:
        rows: their numbers (r).
        at: where they stand on both axes (2 x r); NaN where they do not have the parameter.
    """

    rows: np.ndarray
    at: np.ndarray


@dataclass(frozen=True)
class Pair:
    """The classifier over two parameters, the others as in the best configuration that has both, and the trials.

    Attributes:
        axes: of the two parameters.
        is_together: whether a trial has both.
        natives: values of each (m and l).
        places: where they stand (m and l).
        table: what the classifier predicts, a row for each value of the second parameter (l x m).
        has: whether each of the two is active there (2 x l x m).
        bad: finished trials of class 0.
        good: finished trials of class 1.
        best: the best trials.
        pending: the pending trials.
    """

    axes: tuple[ParameterAxis, ParameterAxis]
    is_together: bool
    natives: tuple[list[Any], list[Any]]
    places: tuple[np.ndarray, np.ndarray]
    table: np.ndarray
    has: np.ndarray
    bad: Trials
    good: Trials
    best: Trials
    pending: Trials

    @classmethod
    def of(
        cls,
        study: "Study",
        across: str,
        up: str,
        units: Units | None = None,
        coarse: int = COARSE,
        most: int = MANY,
        *,
        deviation: bool = False,
    ) -> "Pair":
        """The plane of two parameters of a study.

        Args:
            study: with a trained classifier.
            across: name of the first parameter.
            up: name of the second.
            units: what is shown; None for pi.
            coarse: values of a continuous parameter.
            most: trials.
            deviation: whether the score's standard deviation is shown instead.
        """
        space, columns = study.space, [study.space.names.index(name) for name in (across, up)]
        both = [space.parameters[name] for name in (across, up)]
        xs, ys = (grid(each, coarse if each.levels is None else LEVELS) for each in both)
        start = centre(study, columns)
        middle = centre(study) if start is None else start
        assert middle is not None  # a trained classifier has seen a value
        points = _moved(study, middle, columns, torch.cartesian_prod(xs, ys))
        found = spread(study, points) if deviation else (units or Units(""))(probability(study, points))
        table, *has = (
            each.reshape(len(xs), len(ys)).T for each in (found, *space.active(points)[:, columns].numpy().T)
        )
        rows = shown_rows(study, most)
        is_good = torch.from_numpy(mean_labels(study))[rows] > 0
        best, pending = study.observations.best_rows(1).cpu(), study.observations.pending_rows.cpu()
        best = best[torch.isin(best, rows)]  # not of an earlier task
        return cls(
            (ParameterAxis.of(space, across), ParameterAxis.of(space, up)),
            start is not None,
            (both[0].decode(xs), both[1].decode(ys)),
            (on_axis(both[0], xs), on_axis(both[1], ys)),
            table,
            np.array(has),
            *(_trials_over(study, each, columns) for each in (rows[~is_good], rows[is_good], best, pending)),
        )


def _trials_over(study: "Study", rows: Tensor, columns: Sequence[int]) -> Trials:
    """The trials in these rows that have one of the two parameters, or both."""
    points = study.observations.points.cpu()[rows]
    active = study.space.active(points)[:, columns]
    shown = active.any(-1)
    parameters = list(study.space.parameters.values())
    places = np.array([on_axis(parameters[column], points[shown, column]) for column in columns])
    return Trials(rows[shown].numpy(), np.where(active[shown].T.numpy(), places, np.nan))


# --- pairs: as a picture ---------------------------------------------------------------------------------------------


def pairs(study: "Study", *, parameters: Sequence[str] | None = None, figure: "Figure | None" = None) -> "Figure":
    """pi over pairs of parameters, the others at the best configuration, with the trials.

    Where one of the two is inactive, pi is hatched; trials that have only the other lie on the frame.

    Args:
        study: with a trained classifier; see `Study.fit`. It needs two parameters.
        parameters: names, of which every pair is shown; None for the 4 most important.
        figure: where to draw; None for a new one.

    Raises:
        SettingError: for an unknown parameter, fewer than two, or if the classifier is not trained.
        MissingPackage: without matplotlib.
    """
    if reason := nothing_learned(study):
        return message(figure, reason)
    names = chosen(study, parameters, PAIRED)
    if len(names) < 2:
        raise SettingError(f"pairs need at least two parameters, but got {names}. Use slices.")
    both = list(combinations(names, 2))
    columns = min(3, len(both))
    rows = math.ceil(len(both) / columns)
    figure = figure or new_figure(3.1 * columns + 0.8, 2.8 * rows + 0.2)
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    drawn = [draw_pair(axes, Pair.of(study, *pair)) for axes, pair in zip(panels, both, strict=False)]
    for axes in panels[len(both) :]:
        axes.set_axis_off()
    colour_bar(figure, name_of_pi(study), drawn[0], panels)
    return figure


def draw_pair(axes: "Axes", shown: Pair, *, deviation: bool = False) -> Any:
    """One panel of `pairs`; with the colours of a standard deviation, or of pi. Returns what a colour bar explains."""
    look = {"cmap": greys(), "vmin": 0} if deviation else {"cmap": greens(), "norm": root_scale()}
    both, either = shown.has.all(0), shown.has.any(0)
    axes.set_facecolor(PALE)
    mesh = axes.pcolormesh(*shown.places, np.ma.masked_array(shown.table, ~either), shading="nearest", **look)
    if not both.all():
        lacking = np.ma.masked_array(shown.table, both)
        axes.pcolor(*shown.places, lacking, shading="nearest", hatch="///", cmap=clear(), edgecolors=GREY, linewidth=0)
    dress(axes, "x", shown.axes[0])
    dress(axes, "y", shown.axes[1])
    _draw_trials(axes, shown)
    return mesh


def _draw_trials(axes: "Axes", shown: Pair) -> None:
    """Trials of class 1 filled, of class 0 hollow, the best a star, the pending red rings; on the frame those that
    have one of the parameters only."""
    looks: list[tuple[Trials, dict[str, Any]]] = [
        (shown.bad, {"s": 10, "facecolor": "white", "edgecolor": GREY, "lw": 0.7}),
        (shown.good, {"s": 9, "color": BEST, "lw": 0}),
        (shown.best, {"s": 55, "marker": "*", "facecolor": STAR, "edgecolor": "black", "lw": 0.5}),
        (shown.pending, {"s": 60, "facecolor": "none", "edgecolor": FAILED, "lw": 1.4}),
    ]
    edges = np.array([[axes.get_xlim()[0]], [axes.get_ylim()[0]]])
    for order, (trials, look) in enumerate(looks):
        axes.scatter(*np.where(np.isnan(trials.at), edges, trials.at), **look, zorder=3 + order, clip_on=False)


def colour_bar(figure: "Figure", name: str, drawn: Any, beside: Any) -> None:
    """The bar of pi, beside one axes or several."""
    bar = figure.colorbar(drawn, ax=beside, aspect=30)
    bar.set_ticks([0, 0.05, 0.2, 0.5, 1.0], labels=["0", "0.05", "0.2", "0.5", "1"])
    bar.set_label(name)


# --- pairs: on the page ----------------------------------------------------------------------------------------------


def pair_chart(shown: Pair, values: ValueAxis, *, less_is_better: bool) -> Chart:
    """The same chart for the page: the better the greener, where both parameters are active."""
    layout = {
        "xaxis": parameter_axis(shown.axes[0], nticks=5),
        "yaxis": parameter_axis(shown.axes[1], nticks=6),
        "margin": {"l": 60, "r": 10, "t": 8, "b": 40},
        "showlegend": False,
    }
    if not shown.is_together:
        return Chart([], {**layout, "annotations": [remark("no trial has both")]}, 300)
    finished = np.concatenate([shown.bad.at, shown.good.at], axis=1)
    rows = np.concatenate([shown.bad.rows, shown.good.rows])
    trials = _marks(rows, finished, "rgba(31,59,115,.55)", 5, line={"color": "#fff", "width": 0.5})
    star = {"symbol": "star", "line": {"color": "#222", "width": 0.8}}
    best = _marks(shown.best.rows, shown.best.at, STAR, 14, **star)
    return Chart([_heat(shown, values, less_is_better), trials, best], layout, 300)


def _heat(shown: Pair, values: ValueAxis, less_is_better: bool) -> dict[str, Any]:
    table = np.where(shown.has.all(0), shown.table, np.nan)
    low, high = (math.log10(values.low), math.log10(values.high)) if values.log else (values.low, values.high)
    stops = [(1 - stop, colour) for stop, colour in zip((0, 0.6, 1), GREENS, strict=True)]
    if not less_is_better:
        stops = list(zip((0, 0.6, 1), GREENS, strict=True))
    across, up = ([text(number(native), 30) for native in natives] for natives in shown.natives)
    return {
        "type": "heatmap",
        "x": shown.places[0].tolist(),
        "y": shown.places[1].tolist(),
        "z": (np.log10(table) if values.log else table).tolist(),
        "zmin": low,
        "zmax": high,
        "colorscale": sorted(stops),
        "showscale": False,
        "hovertext": [[f"{x}, {y}: <b>{value:.5g}</b>" for x, value in zip(across, row, strict=True)]
                      for y, row in zip(up, table, strict=True)],
        "hoverinfo": "text",
        "hoverongaps": False,
    }  # fmt: skip


def _marks(rows: np.ndarray, at: np.ndarray, colour: str, size: float, **marker: Any) -> dict[str, Any]:
    """The trials that have both parameters."""
    both = np.isfinite(at).all(0)
    x, y = at[:, both].tolist()
    return points(x, y, colour, size, trials=rows[both].tolist(), marker=marker, cliponaxis=False)
