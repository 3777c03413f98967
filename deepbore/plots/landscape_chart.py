"""`landscape`: all that there is to see of a run in one or two dimensions (BORE figures 1 and 8)."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from deepbore.data.trial import Trial
from deepbore.errors import SettingError
from deepbore.labels import Labels
from deepbore.plots.chart import Axis, Chart, Layer, Level, Line, Points, Rule
from deepbore.plots.on_matplotlib import draw, legend, message, new_figure
from deepbore.plots.predictions import (
    Units,
    grid,
    has_deviation,
    is_good,
    labels_of,
    name_of_pi,
    nothing_learned,
    shown_rows,
    tau_of,
    thresholds_of,
    values_of,
)
from deepbore.plots.slice_charts import COARSE, FINE, LEVELS, Pair, Slice, deviation_units, pair_chart, slice_chart
from deepbore.plots.sources import require_study
from deepbore.plots.style import BEST, FAILED, GOOD, GREY, TAU, ParameterAxis, ValueAxis, on_axis
from deepbore.worker.objective import Objective, evaluate

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from deepbore.study import Study

DEVIATION = "#9a95bd"  # the colour of a large standard deviation


def landscape(study: "Study", *, objective: Objective | None = None, figure: "Figure | None" = None) -> "Figure":
    """The classifier over a whole space of one or two parameters, with the trials and what is asked next.

    In one dimension, as in figure 8 of BORE (Tiao et al. 2021): above the values with tau, and beside them their
    distribution, whose share gamma tau cuts off; below pi and the labels. In two, pi and, where the classifier gives
    one, the standard deviation of the score as colours. Pending trials are where the study looks next.

    Args:
        study: of a space with one or two parameters, with a trained classifier; see `Study.fit`.
        objective: the function behind it, drawn if known: as a curve, or in two dimensions where it equals tau. Where
            it fails nothing is drawn; where there are budgets it is given the largest.
        figure: where to draw; None for a new one.

    Raises:
        SettingError: for more parameters, or if the classifier is not trained.
        MissingPackage: without matplotlib.
    """
    charts = landscape_charts(study, objective=objective)
    if len(study.space) == 1:
        return _line(charts, figure or new_figure(7.2, 4.8))
    if charts[0].remark:
        return message(figure, charts[0].remark)
    figure = figure or new_figure(9.8 if len(charts) > 1 else 5.2, 4.0)
    panes = figure.subplots(1, len(charts), gridspec_kw={"wspace": 0.06}, squeeze=False)[0]
    for axes, chart in zip(panes, charts, strict=True):
        draw(chart, axes)
    legend(panes[0], loc="lower left", bbox_to_anchor=(0, 1), borderaxespad=0, fontsize=8)
    return figure


def landscape_charts(study: "Study", *, objective: Objective | None = None) -> list[Chart]:
    """`landscape` as records: of one parameter values, pi, and shares of the values; of two pi, and perhaps its
    deviation."""
    require_study(study)
    d = len(study.space)
    if d > 2:
        raise SettingError(f"a landscape has one or two parameters, but the space has {d}. Use slices or pairs.")
    return _charts_of_one(study, objective) if d == 1 else _charts_of_two(study, objective)


# --- one dimension ---------------------------------------------------------------------------------------------------


def _line(charts: Sequence[Chart], figure: "Figure") -> "Figure":
    spec = figure.add_gridspec(2, 2, width_ratios=[4, 1.2], height_ratios=[2.2, 1])
    values, corner = figure.add_subplot(spec[0, 0]), figure.add_subplot(spec[1, 1])
    pi, shares = figure.add_subplot(spec[1, 0], sharex=values), figure.add_subplot(spec[0, 1], sharey=values)
    for axes, chart in zip((values, pi, shares), charts, strict=True):
        draw(chart, axes)
    values.tick_params(labelbottom=False)
    shares.tick_params(labelleft=False)
    values.set_xlabel("")
    shares.set_ylabel("")
    corner.set_axis_off()
    corner.legend(*values.get_legend_handles_labels(), frameon=False, fontsize=8, loc="center")
    return figure


def _charts_of_one(study: "Study", objective: Objective | None) -> list[Chart]:
    (name,) = study.space.names
    labels, across, next_ones = labels_of(study), ParameterAxis.of(study.space, name), list(_next(study))
    curve = [] if objective is None else [_function(study, objective)]
    marks, tau = _marks(study, labels), _tau(labels)
    heights = np.concatenate([*(layer.y for layer in curve), *(layer.y for layer in marks), [rule.y for rule in tau]])
    up = Axis("value", ValueAxis.of(heights))
    failed = _failed(study, up.scale)
    values = Chart("values", [*curve, *next_ones, *marks, *failed, *tau], Axis(across.name, across), up)
    if reason := nothing_learned(study):
        learned = Chart("the classifier", [], Axis(across.name, across), remark=reason)
    else:
        learned = slice_chart(Slice.of(study, name), Units(name_of_pi(study)))
        learned = replace(learned, layers=[*learned.layers, *next_ones])
    return [values, learned, _shares(study, tau, up)]


def _function(study: "Study", objective: Objective) -> Line:
    (parameter,) = study.space.parameters.values()
    column = grid(parameter, FINE)
    curve = _values(objective, study, column[:, None])
    return Line(on_axis(parameter, column), curve, colour=GREY, width=1.5, name="objective")


def _marks(study: "Study", labels: Labels) -> list[Points]:
    """Crosses, the latest with a ring."""
    x, y, rows = _places(study)
    good = is_good(study, labels)[rows]
    layers = [
        Points(x[which], y[which], 7, "x", colour=colour, name=name, trials=rows[which])
        for which, colour, name in ((good, GOOD, "good"), (~good & ~np.isnan(y), GREY, "not good"))
    ]
    return [*layers, Points(x[-1:], y[-1:], 14, "ring", colour="#444444", name="latest")] if len(rows) else layers


def _failed(study: "Study", scale: object) -> list[Points]:
    """Failures, at the lower edge."""
    x, y, rows = _places(study)
    lost = np.isnan(y)
    if not lost.any():
        return []
    low = scale.low if isinstance(scale, ValueAxis) else 0.0
    at = np.full(int(lost.sum()), low)
    return [Points(x[lost], at, 7, "up", colour=FAILED, name="failed", trials=rows[lost])]


def _places(study: "Study") -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of the trials that are shown where they stand, their values, and their rows (m each)."""
    (parameter,) = study.space.parameters.values()
    rows = shown_rows(study)
    x = on_axis(parameter, study.observations.points.cpu()[rows, 0])
    return x, values_of(study)[rows.numpy()], rows.numpy()


def _tau(labels: Labels) -> list[Rule]:
    tau = tau_of(labels)
    return [] if math.isnan(tau) else [Rule(y=tau, colour=TAU, dash="dash", name="tau")]


def _next(study: "Study") -> Iterator[Rule]:
    """Upright lines where pending trials are."""
    (parameter,) = study.space.parameters.values()
    pending = study.observations.points.cpu()[study.observations.pending.cpu()]
    for place, x in enumerate(on_axis(parameter, pending[:, 0]).tolist()):
        yield Rule(x=x, colour=GOOD, dash="", name="" if place else "next")


def _shares(study: "Study", tau: Sequence[Rule], up: Axis) -> Chart:
    """How many of the values are at least so good, and where tau cuts off the share gamma of them."""
    ranked, family = study.observations.replicates.sorted_values, thresholds_of(study.state.recipe.labels)
    layers: list[Layer] = []
    if n := len(ranked):
        heights = study.observations.columns.to_user(ranked[[*range(n), n - 1]])
        layers.append(Line(np.arange(n + 1) / n, heights, colour=BEST, width=1.5, steps=True))
        if family is not None:
            layers += [replace(rule, name="") for rule in tau]
            layers.append(Rule(x=float(family.proportion(n)), colour=TAU))
    return Chart("shares of the values", layers, Axis("share of values", ValueAxis(0.0, 1.03)), up, has_legend=False)


# --- two dimensions --------------------------------------------------------------------------------------------------


def _charts_of_two(study: "Study", objective: Objective | None) -> list[Chart]:
    if reason := nothing_learned(study):
        return [Chart("the classifier", [], remark=reason)]
    across, up = study.space.names
    learned, tau = pair_chart(Pair.of(study, across, up), Units(name_of_pi(study))), tau_of(labels_of(study))
    if objective is not None and not math.isnan(tau) and all(p.is_numeric for p in study.space.parameters.values()):
        learned = replace(learned, layers=[*learned.layers, _border(study, objective, tau)])
    if not has_deviation(study):
        return [learned]
    shown = Pair.of(study, across, up, deviation=True)
    spread = pair_chart(shown, deviation_units(shown.table), colour=DEVIATION)
    return [learned, replace(spread, y=replace(spread.y, title=""))]


def _border(study: "Study", objective: Objective, tau: float) -> Level:
    """Where the objective equals tau: the border that the classifier should learn."""
    p, q = study.space.parameters.values()
    xs, ys = (grid(each, COARSE if each.levels is None else LEVELS) for each in (p, q))
    points = study.space.points.without_fixed.points.snap(torch.cartesian_prod(xs, ys))
    values = _values(objective, study, points).reshape(len(xs), len(ys)).T
    return Level(on_axis(p, xs), on_axis(q, ys), values, tau, colour=TAU, name="objective = tau")


def _values(objective: Objective, study: "Study", points: Tensor) -> np.ndarray:
    """The first value of an objective at points (n x d), NaN where it fails (n)."""
    budget = study.observations.budget
    most = None if budget is None else budget.rungs[-1]
    outcomes = [
        evaluate(objective, Trial(id=row, params=params, budget=most))
        for row, params in enumerate(study.space.decode(points), len(study.observations))
    ]
    return np.array([math.nan if outcome.has_failed else outcome.values[0] for outcome in outcomes])
