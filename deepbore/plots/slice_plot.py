"""`slices`: the classifier along one parameter at a time, cut at the best configuration."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from torch import Tensor

from deepbore.errors import SettingError
from deepbore.plots.permutation_importance import importances
from deepbore.plots.predictions import (
    band,
    centre,
    grid,
    has_deviation,
    labels_of,
    name_of_pi,
    nothing_learned,
    probability,
    shown_rows,
)
from deepbore.plots.scales import dress, on_axis
from deepbore.plots.style import (
    BEST,
    GOOD,
    GREY,
    message,
    new_figure,
    note,
    thin_spines,
)
from deepbore.space.parameters import Parameter

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from deepbore.study import Study

SLICES, COLUMNS = 12, 4
FINE, LEVELS = 201, 40  # entries of a grid: along a line, of a parameter with levels


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
    columns = min(COLUMNS, len(names))
    rows = math.ceil(len(names) / columns)
    figure = figure or new_figure(max(2.6 * columns, 4.5), 2.4 * rows)
    panels = figure.subplots(rows, columns, sharey=True, squeeze=False).ravel()
    for axes, name in zip(panels, names, strict=False):
        draw_slice(axes, study, name)
        _mark_best(axes, study, name)
    for axes in panels[len(names) :]:
        axes.set_axis_off()
    figure.supylabel(name_of_pi(study), fontsize=10)
    return figure


def draw_slice(axes: "Axes", study: "Study", name: str) -> None:
    """One panel of `slices`."""
    column = study.space.names.index(name)
    parameter = study.space.parameters[name]
    dress(axes, "x", name, study.space)
    axes.set_ylim(-0.06, 1.06)
    thin_spines(axes)
    start = centre(study, [column])
    if start is None:
        note(axes, "inactive in every trial")
        return
    values = grid(parameter, FINE if parameter.levels is None else LEVELS)
    points = start.repeat(len(values), 1)
    points[:, column] = values
    _draw_pi(axes, study, study.space.without_fixed.snap(points), parameter, on_axis(parameter, values))
    _draw_labels(axes, study, column)


def _mark_best(axes: "Axes", study: "Study", name: str) -> None:
    """A dotted line at the configuration that the slices have in common."""
    column = study.space.names.index(name)
    start = centre(study, [column])
    if start is not None:
        axes.axvline(on_axis(study.space.parameters[name], start[[column]])[0], color=BEST, lw=1.0, ls=":", zorder=1)


def _draw_pi(axes: "Axes", study: "Study", points: Tensor, parameter: Parameter, x: np.ndarray) -> None:
    """pi and its band as a line, or as bars where nothing lies between two values."""
    pi = probability(study, points)
    low, high = band(study, points) if has_deviation(study) else (pi, pi)
    if not parameter.is_ordered:
        width = min(6.0, 60 / len(x))
        axes.vlines(x, low, high, color=GOOD, alpha=0.3, lw=width)
        axes.scatter(x, pi, color=GOOD, marker="_", s=20 * width, zorder=3)
        return
    axes.fill_between(x, low, high, color=GOOD, alpha=0.2, lw=0)
    axes.plot(x, pi, color=GOOD, lw=1.6, marker="" if parameter.levels is None else "o", ms=2.5, zorder=3)


def _draw_labels(axes: "Axes", study: "Study", column: int) -> None:
    """The label of each trial in which the parameter is active, over its value."""
    rows = shown_rows(study)
    points = study.observations.points.cpu()[rows]
    active = study.space.active(points)[:, column]
    z = labels_of(study).z.mean(-1).cpu()[rows][active].numpy()
    x = on_axis(list(study.space.parameters.values())[column], points[active, column])
    colours = np.where(z > 0, BEST, GREY)
    axes.scatter(x, z, s=11, c=colours, alpha=0.55, lw=0, zorder=2, clip_on=False)
