"""`parallel_coordinates`: every trial as a line through its parameters."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from torch import Tensor

from deepbore.plots.predictions import shown_rows, values_of
from deepbore.plots.scales import short, tick_labels
from deepbore.plots.slice_plot import chosen
from deepbore.plots.style import (
    FAILED,
    INFEASIBLE,
    figure_of,
    good_to_bad,
    new_axes,
    nothing_on,
    plain_names,
    require_study,
)
from deepbore.plots.value_axis import LARGEST, usual_range
from deepbore.space.parameters import Scale

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from deepbore.study import Study

MOST, LINES = 12, 500
INACTIVE = -0.12  # where a line passes the axis of a parameter that its trial does not have
GROUND = {"facecolor": "white", "alpha": 0.75, "edgecolor": "none", "pad": 0.6}  # of text that lines pass
SPREAD = 0.018  # lines through the same choice lie up to so far apart


def parallel_coordinates(
    study: "Study", *, parameters: Sequence[str] | None = None, axes: "Axes | None" = None
) -> "Figure":
    """Each trial as a line through its parameters and its (first) value, coloured by the value, the best on top.

    Numbers stand on their own (log) scale. Lines of a trial that does not have a parameter pass below its axis, failed
    trials are red and end before the value, those that violate a constraint are pink, below all others. Beyond 500
    trials the best of them and others evenly are shown.

    Args:
        study: with trials.
        parameters: names, in order; None for all of them, or the 12 most important of more.
        axes: where to draw; None for a new figure.

    Raises:
        SettingError: for an unknown parameter.
        MissingPackage: without matplotlib.
    """
    require_study(study)
    names = _names(study, parameters)
    rows = shown_rows(study, LINES)
    if not len(rows):
        return nothing_on(axes, "No trial is finished yet.")
    axes = axes or new_axes(max(1.15 * (len(names) + 1), 5.0) + 0.6, 4.0)
    heights, values = _heights(study, names, rows), values_of(study)[rows.numpy()]
    failed, feasible = np.isnan(values), study.observations.feasible.cpu().numpy()[rows.numpy()]
    axes.plot(np.arange(len(names)), heights[failed].T, color=FAILED, lw=0.8, ls=":", alpha=0.6)
    if not failed.all():
        _draw_values(axes, study, heights[~failed], values[~failed], feasible[~failed])
    _draw_axes(axes, study, names)
    return figure_of(axes)


def _names(study: "Study", parameters: Sequence[str] | None) -> list[str]:
    if parameters is None and (len(study.space) <= MOST or not study.classifier.ready):
        return study.space.names[:MOST]
    return chosen(study, parameters, MOST)


def _heights(study: "Study", names: Sequence[str], rows: Tensor) -> np.ndarray:
    """Where each trial crosses each parameter's axis, 0 to 1, or below it where it is inactive (n x k)."""
    space = study.space
    points = study.observations.points.cpu()[rows]
    heights = (points / space.without_fixed.bounds[1]).numpy()
    apart = np.random.default_rng(0).uniform(-SPREAD, SPREAD, heights.shape)
    choices = np.array([not p.is_numeric for p in space.parameters.values()])
    heights = np.where(space.active(points).numpy(), heights + choices * apart, INACTIVE + apart)
    return heights[:, [space.names.index(name) for name in names]]


def _draw_values(axes: "Axes", study: "Study", heights: np.ndarray, values: np.ndarray, feasible: np.ndarray) -> None:
    """Lines through the parameters to the value's axis, infeasible ones and the worst first; outliers end at its end.

    The axis is that of feasible values, if there are any.
    """
    from matplotlib.collections import LineCollection
    from matplotlib.colors import to_rgba

    values = values.clip(-LARGEST, LARGEST)
    to_user = study.observations.to_user  # changes the sign, so it leads back, too
    best, most = usual_range(to_user(values[feasible] if feasible.any() else values))
    low, high = sorted([to_user(best), to_user(most)])
    height = np.clip((values - low) / (high - low), 0, 1) if low < high else np.full(len(values), 0.5)
    good = height if study.observations.direction == "maximize" else 1 - height
    across = np.arange(heights.shape[1] + 1)
    order = np.lexsort((good, feasible))
    lines = [np.column_stack([across, [*heights[row], height[row]]]) for row in order]
    colours = np.where(feasible[order][:, None], good_to_bad()(good[order]), to_rgba(INFEASIBLE))
    alpha = float(np.clip(40 / len(values), 0.25, 0.8))
    widths = 0.6 + 1.2 * (good * feasible)[order]
    axes.add_collection(LineCollection(lines, colors=colours, linewidths=widths, alpha=alpha))
    shown = Scale(low, high).ticks(5) if low < high else [low]
    heights_of_ticks = [(tick - low) / (high - low) if low < high else 0.5 for tick in shown]
    name = "value" if study.observations.k == 1 else "value 0"
    _draw_axis(axes, float(across[-1]), name, heights_of_ticks, [short(tick) for tick in shown])


def _draw_axes(axes: "Axes", study: "Study", names: Sequence[str]) -> None:
    """The parameters' own axes, in place of the rectangular ones."""
    space = study.space
    for place, (name, label) in enumerate(zip(names, plain_names(names, 16), strict=True)):
        parameter = space.parameters[name]
        shown = parameter.ticks(6)
        heights = (parameter.encode(shown) / parameter.upper).tolist()
        _draw_axis(axes, place, label, heights, tick_labels(shown))
    conditional = [place for place, name in enumerate(names) if space.parameters[name].when is not None]
    if conditional:
        axes.text(conditional[0] - 0.05, INACTIVE, "inactive", ha="right", va="center", fontsize=7.5, bbox=GROUND)
    axes.set(xlim=(-0.4, len(names) + 0.2), ylim=(INACTIVE - 0.05 if conditional else -0.03, 1.05))
    axes.set_axis_off()


def _draw_axis(axes: "Axes", x: float, name: str, heights: Sequence[float], labels: Sequence[str]) -> None:
    """One upright axis: a line, its name above, ticks to the left on a white ground, so that lines may pass."""
    axes.vlines(x, 0, 1, color="#444444", lw=0.9, zorder=3)
    axes.text(x, 1.06, name, ha="center", va="bottom", fontsize=9)
    for height, label in zip(heights, labels, strict=True):
        axes.plot([x - 0.03, x], [height, height], color="#444444", lw=0.9, zorder=3)
        axes.text(x - 0.05, height, label, ha="right", va="center", fontsize=7.5, bbox=GROUND, zorder=4)
