"""`landscape`: all that there is to see of a run in one or two dimensions (BORE figures 1 and 8)."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from deepbore.data.outcome import Status
from deepbore.data.trial import Trial
from deepbore.errors import SettingError
from deepbore.labels import Labels
from deepbore.plots.on_matplotlib import draw, dress, legend, message, new_figure, note, thin_spines
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
from deepbore.plots.style import BEST, FAILED, GOOD, GREY, TAU, ParameterAxis, on_axis
from deepbore.worker.objective import Objective, evaluate

if TYPE_CHECKING:
    from matplotlib.axes import Axes
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
    require_study(study)
    d = len(study.space)
    if d > 2:
        raise SettingError(f"a landscape has one or two parameters, but the space has {d}. Use slices or pairs.")
    return _line(study, objective, figure) if d == 1 else _plane(study, objective, figure)


# --- one dimension ---------------------------------------------------------------------------------------------------


def _line(study: "Study", objective: Objective | None, figure: "Figure | None") -> "Figure":
    figure = figure or new_figure(7.2, 4.8)
    spec = figure.add_gridspec(2, 2, width_ratios=[4, 1.2], height_ratios=[2.2, 1])
    values, corner = figure.add_subplot(spec[0, 0]), figure.add_subplot(spec[1, 1])
    pi, shares = figure.add_subplot(spec[1, 0], sharex=values), figure.add_subplot(spec[0, 1], sharey=values)
    labels = labels_of(study)
    if objective is not None:
        _draw_function(values, study, objective)
    _draw_values(values, study, labels)
    _draw_shares(shares, study, labels)
    _draw_classifier(pi, study)
    _mark_next([values, pi], study)
    values.tick_params(labelbottom=False)
    values.set(xlabel="", ylabel="value")
    corner.set_axis_off()
    corner.legend(*values.get_legend_handles_labels(), frameon=False, fontsize=8, loc="center")
    return figure


def _draw_function(axes: "Axes", study: "Study", objective: Objective) -> None:
    (parameter,) = study.space.parameters.values()
    column = grid(parameter, FINE)
    curve = _values(objective, study, column[:, None])
    axes.plot(on_axis(parameter, column), curve, color=GREY, lw=1.2, label="objective", zorder=1)


def _draw_values(axes: "Axes", study: "Study", labels: Labels) -> None:
    """Crosses, the latest with a ring, tau, failures at the lower edge, and what is asked next."""
    (parameter,) = study.space.parameters.values()
    observations = study.observations
    rows = shown_rows(study)
    x, y = on_axis(parameter, observations.points.cpu()[rows, 0]), values_of(study)[rows.numpy()]
    good, tau = is_good(study, labels)[rows.numpy()], tau_of(labels)
    for which, colour, name in ((good, GOOD, "good"), (~good & ~np.isnan(y), GREY, "not good")):
        axes.scatter(x[which], y[which], color=colour, marker="x", s=32, lw=1.6, label=name, zorder=3)
    if len(rows):
        axes.scatter(x[-1:], y[-1:], s=110, facecolor="none", edgecolor="#444444", lw=1.0, label="latest", zorder=3)
    failed = x[np.isnan(y)]
    if len(failed):
        axes.vlines(failed, 0, 0.04, color=FAILED, lw=1.5, transform=axes.get_xaxis_transform(), label="failed")
    if not math.isnan(tau):
        axes.axhline(tau, color=TAU, lw=1.2, ls="--", label="tau")
    thin_spines(axes)


def _draw_shares(axes: "Axes", study: "Study", labels: Labels) -> None:
    """How many of the values are at least so good, and where tau cuts off the share gamma of them."""
    observations = study.observations
    ranked, family = observations.replicates.sorted_values, thresholds_of(study.state.recipe.labels)
    axes.tick_params(labelleft=False, labelsize=8)
    axes.set(xlim=(0, 1.03), xlabel="share of values", xticks=[0, 0.5, 1])
    thin_spines(axes)
    if len(ranked):
        share = np.arange(1, len(ranked) + 1) / len(ranked)
        axes.step([0, *share], observations.columns.to_user(ranked[[0, *range(len(ranked))]]), color=BEST, lw=1.2)
    if len(ranked) and family is not None:
        axes.axhline(tau_of(labels), color=TAU, lw=1.2, ls="--")
        axes.axvline(family.proportion(len(ranked)), color=TAU, lw=0.8, ls=":")


def _draw_classifier(axes: "Axes", study: "Study") -> None:
    (name,) = study.space.names
    reason = nothing_learned(study)
    if reason is None:
        draw(slice_chart(Slice.of(study, name), Units(name_of_pi(study))), axes)
        return
    dress(axes, "x", ParameterAxis.of(study.space, name))
    axes.set_yticks([])
    thin_spines(axes)
    note(axes, reason)


def _mark_next(panes: Sequence["Axes"], study: "Study") -> None:
    """Upright lines where pending trials are."""
    (parameter,) = study.space.parameters.values()
    pending = study.observations.points.cpu()[(study.observations.status == Status.PENDING).cpu()]
    for number, x in enumerate(on_axis(parameter, pending[:, 0])):
        for axes in panes:
            axes.axvline(x, color=GOOD, lw=1.8, label="next" if number == 0 else None, zorder=2)


# --- two dimensions --------------------------------------------------------------------------------------------------


def _plane(study: "Study", objective: Objective | None, figure: "Figure | None") -> "Figure":
    if reason := nothing_learned(study):
        return message(figure, reason)
    both, (across, up) = has_deviation(study), study.space.names
    figure = figure or new_figure(9.8 if both else 5.2, 4.0)
    panels = figure.subplots(1, 2 if both else 1, gridspec_kw={"wspace": 0.06}, squeeze=False)[0]
    draw(pair_chart(Pair.of(study, across, up), Units(name_of_pi(study))), panels[0])
    if both:
        shown = Pair.of(study, across, up, deviation=True)
        draw(pair_chart(shown, deviation_units(shown.table), colour=DEVIATION), panels[1])
        panels[1].set_ylabel("")
    tau = tau_of(labels_of(study))
    if objective is not None and not math.isnan(tau) and all(p.is_numeric for p in study.space.parameters.values()):
        _draw_boundary(panels[0], study, objective, tau)
    return figure


def _draw_boundary(axes: "Axes", study: "Study", objective: Objective, tau: float) -> None:
    """Where the objective equals tau: the border that the classifier should learn."""
    p, q = study.space.parameters.values()
    xs, ys = (grid(each, COARSE if each.levels is None else LEVELS) for each in (p, q))
    points = study.space.points.without_fixed.points.snap(torch.cartesian_prod(xs, ys))
    values = _values(objective, study, points).reshape(len(xs), len(ys)).T
    drawn = axes.contour(
        on_axis(p, xs), on_axis(q, ys), values, levels=[tau], colors=TAU, linewidths=1.3, linestyles="--"
    )
    if np.size(drawn.get_paths()[0].vertices):  # the region may be smaller than the grid's step
        axes.plot([], [], color=TAU, lw=1.3, ls="--", label="objective = tau")
        legend(axes, loc="lower left", bbox_to_anchor=(0, 1), borderaxespad=0, fontsize=8)


def _values(objective: Objective, study: "Study", points: Tensor) -> np.ndarray:
    """The first value of an objective at points (n x d), NaN where it fails (n)."""
    budget = study.observations.budget
    most = None if budget is None else budget.rungs[-1]
    outcomes = [
        evaluate(objective, Trial(id=row, params=params, budget=most))
        for row, params in enumerate(study.space.decode(points), len(study.observations))
    ]
    return np.array([math.nan if outcome.has_failed else outcome.values[0] for outcome in outcomes])
