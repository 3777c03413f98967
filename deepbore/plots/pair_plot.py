"""`pairs`: the classifier over two parameters at a time, cut at the best configuration."""

import math
from collections.abc import Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from deepbore.errors import SettingError
from deepbore.plots.predictions import (
    centre,
    grid,
    labels_of,
    name_of_pi,
    nothing_learned,
    probability,
    shown_rows,
    spread,
)
from deepbore.plots.scales import dress, on_axis
from deepbore.plots.slice_plot import LEVELS, chosen
from deepbore.plots.style import (
    BEST,
    FAILED,
    GREY,
    PALE,
    STAR,
    clear,
    greens,
    greys,
    message,
    new_figure,
    root_scale,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from deepbore.study import Study

PAIRED, COLUMNS = 4, 3
COARSE = 61  # entries of a grid along a side


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
    columns = min(COLUMNS, len(both))
    rows = math.ceil(len(both) / columns)
    figure = figure or new_figure(3.1 * columns + 0.8, 2.8 * rows + 0.2)
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    drawn = [draw_pair(axes, study, *pair) for axes, pair in zip(panels, both, strict=False)]
    for axes in panels[len(both) :]:
        axes.set_axis_off()
    colour_bar(figure, study, drawn[0], panels)
    return figure


def draw_pair(axes: "Axes", study: "Study", across: str, up: str, *, deviation: bool = False) -> Any:
    """One panel of `pairs`, or the score's standard deviation in place of pi; returns what a colour bar explains."""
    space = study.space
    i, j = space.names.index(across), space.names.index(up)
    p, q = space.parameters[across], space.parameters[up]
    xs, ys = (grid(each, COARSE if each.levels is None else LEVELS) for each in (p, q))
    points = _plane(study, [i, j], torch.cartesian_prod(xs, ys))
    shown = spread(study, points) if deviation else probability(study, points)
    has_i, has_j = space.active(points)[:, [i, j]].numpy().T
    place = (on_axis(p, xs), on_axis(q, ys))
    look = {"cmap": greys(), "vmin": 0} if deviation else {"cmap": greens(), "norm": root_scale()}
    axes.set_facecolor(PALE)
    mesh = axes.pcolormesh(*place, _table(shown, has_i | has_j, xs), shading="nearest", **look)
    if not (has_i & has_j).all():
        lacking = _table(shown, ~(has_i & has_j), xs)
        axes.pcolor(*place, lacking, shading="nearest", hatch="///", cmap=clear(), edgecolors=GREY, linewidth=0)
    dress(axes, "x", across, study.space)
    dress(axes, "y", up, study.space)
    _draw_trials(axes, study, i, j)
    return mesh


def _table(values: np.ndarray, known: np.ndarray, xs: Tensor) -> np.ma.MaskedArray:
    """Values of a grid's points as rows of a picture, those that are unknown left out."""
    return np.ma.masked_array(values, ~known).reshape(len(xs), -1).T


def _plane(study: "Study", columns: list[int], entries: Tensor) -> Tensor:
    """Points with these entries (n x 2) in two columns, the others as in the best configuration with both (n x d)."""
    start = centre(study, columns)
    start = centre(study) if start is None else start
    assert start is not None  # a trained classifier has seen a value
    points = start.repeat(len(entries), 1)
    points[:, columns] = entries
    return study.space.without_fixed.snap(points)


def _draw_trials(axes: "Axes", study: "Study", i: int, j: int) -> None:
    """Trials of class 1 filled, of class 0 hollow, the best a star, the pending red rings.

    A trial that has one of the parameters only lies on the frame.
    """
    observations = study.observations
    rows = shown_rows(study)
    good = labels_of(study).z.mean(-1).cpu()[rows] > 0
    pending = observations.pending_rows.cpu()
    looks: list[tuple[Tensor, dict[str, Any]]] = [
        (rows[~good], {"s": 10, "facecolor": "white", "edgecolor": GREY, "lw": 0.7}),
        (rows[good], {"s": 9, "color": BEST, "lw": 0}),
        (observations.best_rows(1).cpu(), {"s": 55, "marker": "*", "facecolor": STAR, "edgecolor": "black", "lw": 0.5}),
        (pending, {"s": 60, "facecolor": "none", "edgecolor": FAILED, "lw": 1.4}),
    ]
    for order, (which, look) in enumerate(looks):
        axes.scatter(*_projected(axes, study, which, [i, j]), **look, zorder=3 + order, clip_on=False)


def _projected(axes: "Axes", study: "Study", rows: Tensor, columns: Sequence[int]) -> list[np.ndarray]:
    """x and y of the trials in these rows that have one of the parameters, or both."""
    points = study.observations.points.cpu()[rows]
    active = study.space.active(points)[:, columns]
    shown = active.any(-1)
    parameters = list(study.space.parameters.values())
    edges = [axes.get_xlim()[0], axes.get_ylim()[0]]
    natives = [on_axis(parameters[column], points[shown, column]) for column in columns]
    return [np.where(on, x, edge) for x, on, edge in zip(natives, active[shown].T.numpy(), edges, strict=True)]


def colour_bar(figure: "Figure", study: "Study", drawn: Any, beside: Any) -> None:
    """The bar of pi, beside one axes or several."""
    bar = figure.colorbar(drawn, ax=beside, aspect=30)
    bar.set_ticks([0, 0.05, 0.2, 0.5, 1.0], labels=["0", "0.05", "0.2", "0.5", "1"])
    bar.set_label(name_of_pi(study))
