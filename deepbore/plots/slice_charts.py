"""`slices` and `pairs`: the classifier along one parameter, and over two, cut at the best configuration."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from deepbore.errors import SettingError
from deepbore.plots.chart import Axis, Band, Chart, Heat, Layer, Line, Points, Rule
from deepbore.plots.importance_chart import importances
from deepbore.plots.on_matplotlib import message, panels
from deepbore.plots.predictions import (
    MANY,
    Units,
    band,
    centre,
    grid,
    has_columns,
    has_deviation,
    mean_labels,
    name_of_pi,
    nothing_learned,
    probability,
    shown_rows,
    spread,
    units_of,
    values_of,
)
from deepbore.plots.sources import names_of_values, record_of
from deepbore.plots.style import (
    BAD,
    BEST,
    FAILED,
    GOOD,
    GREY,
    STAR,
    ParameterAxis,
    ValueAxis,
    number,
    on_axis,
    shortened,
)

if TYPE_CHECKING:
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
    rows = rows[study.space.points.active(points[rows])[:, column]]
    heights = labels if units.translation is None else values_of(study, objective)
    rows = rows[torch.from_numpy(np.isfinite(heights))[rows]]
    at = on_axis(list(study.space.parameters.values())[column], points[rows, column])
    return Heights(rows.numpy(), at, heights[rows.numpy()], labels[rows.numpy()] > 0)


def _moved(study: "Study", start: Tensor, columns: list[int], entries: Tensor) -> Tensor:
    """Points with these entries (m x k) in k columns, the others as in a configuration (d): m x d."""
    points = start.repeat(len(entries), 1)
    points[:, columns] = entries
    return study.space.points.without_fixed.points.snap(points)


# --- slices: the chart -----------------------------------------------------------------------------------------------


def slice_chart(shown: Slice, units: Units, best: str = "best configuration") -> Chart:
    """The prediction with its band, or with arms where values have no order, and the trials; outliers at the edge."""
    title = f"{units.name} along each parameter, the others at the {best}"
    x, y = Axis(shown.axis.name, shown.axis), Axis(units.name, units.axis)
    if (found := shown.prediction) is None:
        return Chart(title, [], x, y, remark="inactive in every trial", height=230, has_legend=False)
    trials, clip = shown.trials, units.axis.clip
    middle, low, high = clip(found.middle), clip(found.low), clip(found.high)
    said = [
        f"{shortened(number(value), 30)}: {at:.5g}\n{least:.5g} to {most:.5g}"
        for value, at, least, most in zip(found.natives, found.middle, found.low, found.high, strict=True)
    ]
    layers: list[Layer] = [
        Points(trials.at, clip(trials.heights), colour=BAD, size=5, opacity=0.7, trials=trials.rows),
        Rule(x=found.best, colour=BEST),
    ]
    if shown.is_ordered:
        line = Line(found.x, middle, colour=GOOD, is_marked=not shown.is_continuous, said=said)
        layers += [Band(found.x, low, high, colour=GOOD, opacity=0.18), line]
    else:
        layers.append(Points(found.x, middle, colour=GOOD, size=9, symbols="diamond", arms=(low, high), said=said))
    return Chart(title, layers, x, y, height=230, has_legend=False)


def slice_charts(
    study: "Study",
    parameters: Sequence[str] | None = None,
    objective: int | None = None,
    units: Units | None = None,
    fine: int = FINE,
    most: int = MANY,
) -> list[Chart]:
    """A `slice_chart` for each parameter.

    Args:
        study: with a trained classifier.
        parameters: names; None for the 12 most important.
        objective: of several, the one whose values are shown; None for pi of all together.
        units: what is shown; None for predicted values, where pi can be translated.
        fine: values of a continuous parameter.
        most: trials.
    """
    units = units or units_of(study, objective)
    names = chosen(study, parameters, SLICES)
    best = "best configuration"
    if objective is not None and study.observations.k > 1:
        best = f"configuration with the best {names_of_values(record_of(study))[0]}"
    return [slice_chart(Slice.of(study, name, units, fine, most, objective), units, best) for name in names]


def slices(
    study: "Study",
    *,
    parameters: Sequence[str] | None = None,
    objective: int | None = None,
    figure: "Figure | None" = None,
) -> "Figure":
    """Predicted values along each parameter, the others at the best configuration, with the values of the trials.

    The band is one standard deviation of the score, where the classifier gives one. A parameter that the best
    configuration doesn't have is shown around the best trial that has it. Where a prediction can't be translated to
    values, as with several objectives together, the picture shows pi and the labels.

    Args:
        study: with a trained classifier; see `Study.fit`.
        parameters: names, one panel each; None for the 12 most important.
        objective: of several, the place of the one that is shown; None for pi of all together.
        figure: where to draw; None for a new one.

    Raises:
        SettingError: for an unknown parameter or objective, or if the classifier is not trained.
        MissingPackage: without matplotlib.
    """
    if reason := nothing_learned(study):
        return message(figure, reason)
    if objective is not None and not (0 <= objective < study.observations.k and has_columns(study)):
        raise SettingError(
            f"objective must be the place of one of {study.observations.k} that the classifier learns apart, but got "
            f"{objective!r}. Give None for all together."
        )
    return panels(slice_charts(study, parameters, objective), figure)


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
            each.reshape(len(xs), len(ys)).T for each in (found, *space.points.active(points)[:, columns].numpy().T)
        )
        rows = shown_rows(study, most)
        is_good = torch.from_numpy(mean_labels(study))[rows] > 0
        best, pending = study.observations.centres.best_rows(1).cpu(), study.observations.columns.pending_rows.cpu()
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
    active = study.space.points.active(points)[:, columns]
    shown = active.any(-1)
    parameters = list(study.space.parameters.values())
    places = np.array([on_axis(parameters[column], points[shown, column]) for column in columns])
    return Trials(rows[shown].numpy(), np.where(active[shown].T.numpy(), places, np.nan))


# --- pairs: the chart ------------------------------------------------------------------------------------------------


def pair_chart(shown: Pair, units: Units, *, less_is_better: bool = False, colour: str = GOOD) -> Chart:
    """The prediction as colours, with the trials; on the frame those that have one of the two parameters only."""
    title = f"{units.name} over two parameters, the others at the best configuration"
    x, y = (Axis(each.name, each) for each in shown.axes)
    if not shown.is_together:
        return Chart(title, [], x, y, remark="no trial has both", height=300, has_legend=False)
    either, partly = shown.has.any(0), shown.has.any(0) != shown.has.all(0)
    across, up = ([shortened(number(native), 30) for native in natives] for natives in shown.natives)
    cells = [
        [f"{one}, {other}: {value:.5g}" for one, value in zip(across, row, strict=True)]
        for other, row in zip(up, shown.table, strict=True)
    ]
    table = np.where(either, shown.table, np.nan)
    heat = Heat(*shown.places, table, units.axis, less_is_better, cells, partly, name=units.name, colour=colour)
    marks = [
        _marks(shown, shown.bad, GREY, 5, "ring"),
        _marks(shown, shown.good, BEST, 5, "circle"),
        _marks(shown, shown.best, STAR, 14, "star"),
        _marks(shown, shown.pending, FAILED, 13, "ring"),
    ]
    return Chart(title, [heat, *marks], x, y, height=300, has_legend=False)


def _marks(shown: Pair, trials: Trials, colour: str, size: float, symbol: str) -> Points:
    edges = np.array([[axis.low] for axis in shown.axes])
    at = np.where(np.isnan(trials.at), edges, trials.at)
    return Points(at[0], at[1], colour=colour, size=size, symbols=symbol, trials=trials.rows)


def pair_charts(
    study: "Study",
    parameters: Sequence[str] | None = None,
    units: Units | None = None,
    coarse: int = COARSE,
    most: int = MANY,
) -> list[Chart]:
    """A `pair_chart` for each pair of parameters.

    Args:
        study: with a trained classifier.
        parameters: names, of which every pair is shown; None for the 4 most important.
        units: what is shown; None for predicted values, where pi can be translated.
        coarse: values of a continuous parameter.
        most: trials.
    """
    names = chosen(study, parameters, PAIRED)
    if len(names) < 2:
        raise SettingError(f"pairs need at least two parameters, but got {names}. Use slices.")
    units = units or units_of(study)
    least = units.translation is not None and study.observations.direction == "minimize"
    both = combinations(names, 2)
    return [pair_chart(Pair.of(study, *pair, units, coarse, most), units, less_is_better=least) for pair in both]


def pairs(study: "Study", *, parameters: Sequence[str] | None = None, figure: "Figure | None" = None) -> "Figure":
    """Predicted values over pairs of parameters, the others at the best configuration, with the trials.

    Good trials are filled, the best is a star, pending ones have a large ring. Where one of the two parameters is
    inactive, the colours are hatched; trials that have only the other lie on the frame. Where a prediction can't be
    translated to values, as with several objectives, the picture shows pi.

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
    return panels(pair_charts(study, parameters), figure, columns=3, size=(3.6, 2.8))


def deviation_units(table: np.ndarray) -> Units:
    """What a picture of the score's standard deviation shows."""
    return Units("standard deviation of the score", ValueAxis(0.0, max(float(np.nanmax(table)), 1e-12)))
