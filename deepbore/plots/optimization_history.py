"""`history`: the values of a run in the order of evaluation."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Union

import numpy as np

from deepbore.data.observations import Direction
from deepbore.data.outcomes import Status
from deepbore.labels.gamma import DecayingGamma, Gamma, checked_gamma, threshold
from deepbore.plots.predictions import is_good, labels_of, thresholds_of, values_of
from deepbore.plots.style import (
    BAD,
    BEST,
    FAILED,
    GOOD,
    TAU,
    figure_of,
    legend,
    new_axes,
    note,
    plain,
    thin_spines,
    usual_range,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from deepbore.study import Study

GAMMA = 0.5  # of the default labels
MANY = 1000  # trials from which the points are small


def history(
    run: Union["Study", Sequence[float], np.ndarray],
    *,
    direction: Direction | None = None,
    gamma: Gamma | None = None,
    optimum: float | None = None,
    title: str = "",
    path: str | os.PathLike[str] | None = None,
    axes: "Axes | None" = None,
) -> "Figure":
    """The values in the order of evaluation, coloured by their label, with the best so far and the threshold tau.

    Args:
        run: a study, or n values in the user's sign; NaN for failures, which are marked at the edge.
        direction: "minimize" or "maximize"; None for the study's, or "minimize".
        gamma: proportion of good observations, in (0, 1), or a schedule; None for the study's, or 1/2. For labels
            that are made without a threshold there is no tau, and values are class 1 whose label is above 0.
        optimum: the best possible value, drawn if known.
        title: of the picture.
        path: where to save it (the suffix says the format); None for nowhere.
        axes: where to draw; None for a new figure.

    Returns:
        the matplotlib figure.

    Raises:
        SettingError: for gamma outside (0, 1).
        MissingPackage: without matplotlib.
    """
    shown = _told(run, direction, gamma)
    axes = axes or new_axes(7.5, 4.2)
    axes.set(xlabel="evaluation", ylabel="value", title=plain(title, 80))
    if np.isfinite(shown.values).any():
        _draw_values(axes, shown)
        _hide_outliers(axes, shown.sign * shown.values, shown.sign)
    else:
        note(axes, "no value yet")
        axes.set_yticks([])
    _mark_failures(axes, shown.trials[np.isnan(shown.values)])
    if optimum is not None:
        axes.axhline(optimum, color="black", lw=0.8, ls=":", label="optimum")
    axes.locator_params(axis="x", integer=True, min_n_ticks=1)
    thin_spines(axes)
    legend(axes, loc="best" if len(shown.trials) < MANY else "upper right")
    if path is not None:
        figure_of(axes).savefig(path, dpi=150)
    return figure_of(axes)


@dataclass(frozen=True)
class _Told:
    """The trials of a run that are not pending.

    Attributes:
        trials: their numbers, from 1 (n).
        values: in the user's sign; NaN for failures (n).
        sign: -1 where they are maximised, else 1.
        gamma: proportion of good values; None for labels that are made without a threshold.
        good: which are class 1 by the labels of the run, for where there is no gamma (n).
    """

    trials: np.ndarray
    values: np.ndarray
    sign: float
    gamma: Gamma | None
    good: np.ndarray


def _told(run: Union["Study", Sequence[float], np.ndarray], direction: Direction | None, gamma: Gamma | None) -> _Told:
    """What is drawn of a study or of plain values."""
    if gamma is not None:
        checked_gamma(gamma)
    if isinstance(run, Sequence | np.ndarray):
        values = np.asarray(run, dtype=float)
        trials = np.arange(1, len(values) + 1)
        return _Told(trials, values, _sign(direction), GAMMA if gamma is None else gamma, np.isfinite(values))
    told = (run.observations.status != Status.PENDING).cpu().numpy()
    family = thresholds_of(run.labels)
    gamma = family.gamma if gamma is None and family is not None else gamma
    sign = _sign(direction or run.observations.direction)
    return _Told(np.flatnonzero(told) + 1, values_of(run)[told], sign, gamma, is_good(run, labels_of(run))[told])


def _sign(direction: Direction | None) -> float:
    return -1.0 if direction == "maximize" else 1.0


def _draw_values(axes: "Axes", shown: _Told) -> None:
    """The values coloured by their label, the best so far, and tau where the labels have one."""
    gamma, values = shown.gamma, shown.sign * shown.values
    best, taus = best_and_tau(values, GAMMA if gamma is None else gamma)
    good = shown.good if gamma is None else values <= taus[-1]
    bad = ~good & ~np.isnan(values)
    size = 16 if len(values) < MANY else 3
    for which, colour, name in ((good, GOOD, "value, class 1"), (bad, BAD, "value, class 0")):
        if which.any():
            axes.scatter(shown.trials[which], shown.values[which], s=size, color=colour, label=name, zorder=3)
    axes.step(shown.trials, shown.sign * best, where="post", color=BEST, lw=1.8, label="best so far", zorder=5)
    if gamma is not None:
        name = "tau" if isinstance(gamma, DecayingGamma) else f"tau (gamma = {gamma:.3g})"
        axes.step(shown.trials, shown.sign * taus, where="post", color=TAU, lw=1.2, ls="--", label=name, zorder=4)


def _mark_failures(axes: "Axes", trials: np.ndarray) -> None:
    """Short red strokes at the lower edge."""
    if len(trials):
        edge = axes.get_xaxis_transform()
        axes.vlines(trials, 0, 0.03, color=FAILED, lw=1.5, transform=edge, label="failed")


def _hide_outliers(axes: "Axes", values: np.ndarray, sign: float) -> None:
    """Ends the axis early if few values (to minimise) would squeeze the others together."""
    finite = values[np.isfinite(values)]
    best, most = usual_range(finite)
    if most < finite.max():
        ends = sign * np.array([best - 0.05 * (most - best), most + 0.3 * (most - best)])
        axes.set_ylim(ends.min(), ends.max())
        axes.set_ylabel("value (outliers are outside)")


def best_and_tau(values: np.ndarray, gamma: Gamma) -> tuple[np.ndarray, np.ndarray]:
    """The best value and the threshold after each evaluation (n and n), of values to minimise; NaN before the first."""
    finite = np.isfinite(values)
    best = np.fmin.accumulate(np.where(finite, values, np.nan)) if len(values) else values
    taus = np.full(len(values), np.nan)
    seen = np.empty(0)
    for row, value in enumerate(values):
        if finite[row]:
            seen = np.insert(seen, np.searchsorted(seen, value), value)
        if len(seen):
            taus[row] = threshold(seen, gamma(len(seen)) if isinstance(gamma, DecayingGamma) else gamma)
    return best, taus
