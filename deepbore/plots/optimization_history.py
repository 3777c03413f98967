"""`history`: the values of a run in the order of evaluation."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Union, get_args

import numpy as np

from deepbore.checks import one_of
from deepbore.data.array_ranking import best_and_tau, best_so_far
from deepbore.data.outcome import Status
from deepbore.data.ranking import best_among, may_be_best
from deepbore.data.replay import Record
from deepbore.data.trial import Direction, sign_of
from deepbore.errors import SettingError
from deepbore.parts import class_name
from deepbore.plots.style import (
    BAD,
    BEST,
    EARLIER,
    FAILED,
    GOOD,
    INFEASIBLE,
    TAU,
    figure_of,
    legend,
    new_axes,
    note,
    plain,
    require_study,
    save,
    thin_spines,
)
from deepbore.plots.value_axis import ValueAxis

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from deepbore.labels import Gamma
    from deepbore.study import Study

__all__ = ["best_and_tau", "gamma_of", "history"]

GAMMA = 0.5  # of the default labels
GAMMAS = {"ValueGradedLabels": 1 / 2, "RankGradedLabels": 1 / 2, "ThresholdLabels": 1 / 3, "ImprovementLabels": 1 / 3}
MANY = 1000  # trials from which the points are small


def history(
    run: Union["Study", Record, Sequence[float], np.ndarray],
    *,
    direction: Direction | None = None,
    gamma: "Gamma | None" = None,
    optimum: float | None = None,
    title: str = "",
    path: str | os.PathLike[str] | None = None,
    axes: "Axes | None" = None,
) -> "Figure":
    """The values in the order of evaluation, coloured by their label, with the best so far and the threshold tau.

    Only feasible values can be the best; those that violate a constraint, and those of earlier tasks, have a colour of
    their own.

    Args:
        run: a study, what `deepbore.data.replay.read_record` has read of a journal, or n values in the user's sign;
            NaN for failures, which are marked at the edge.
        direction: "minimize" or "maximize"; None for the study's, or "minimize".
        gamma: proportion of good observations, in (0, 1), or a schedule; None for the study's, or 1/2. For labels
            that are made without a threshold there is no tau, and those values are grey whose label is 0.
        optimum: the best possible value, drawn if known; not at 0 or below where the axis is logarithmic.
        title: of the picture.
        path: where to save it (the suffix says the format); None for nowhere.
        axes: where to draw; None for a new figure.

    Returns:
        the matplotlib figure.

    Raises:
        SettingError: for gamma outside (0, 1).
        MissingPackage: without matplotlib.
    """
    if direction is not None:
        one_of(get_args(Direction), direction=direction)
    shown = _told(run, direction, gamma)
    axes = axes or new_axes(7.5, 4.2)
    axes.set(xlabel="evaluation", ylabel="value 0" if shown.is_one_of_several else "value", title=plain(title, 80))
    if np.isfinite(shown.values).any():
        _draw_values(axes, shown)
        _hide_outliers(axes, shown)
    else:
        note(axes, "no value yet")
        axes.set_yticks([])
    _mark_failures(axes, shown.trials[np.isnan(shown.values)])
    if optimum is not None:
        _draw_optimum(axes, optimum)
    axes.locator_params(axis="x", integer=True, min_n_ticks=1)
    thin_spines(axes)
    legend(axes, loc="best" if len(shown.trials) < MANY else "upper right")
    if path is not None:
        save(figure_of(axes), path)
    return figure_of(axes)


def gamma_of(header: Mapping[str, Any]) -> float | None:
    """The proportion gamma that a journal's header gives its labels; None where they have none, or a schedule.

    With budgets there is a threshold in each rung, and none of all values.
    """
    if "budget" in header:
        return None
    described = header.get("recipe", {}).get("labels") or {}
    while class_name(described) == "EmphasiseChanges":  # which weighs the rows of others
        described = described["init_args"]["base"]
    given = described.get("init_args", {}).get("gamma", GAMMAS.get(class_name(described)))
    return float(given) if isinstance(given, (int, float)) and 0 < given < 1 else None


@dataclass(frozen=True)
class _Told:
    """The trials of a run that are not pending.

    Attributes:
        trials: their numbers, from 1 (n).
        values: in the user's sign; NaN for failures (n).
        counted: which may be the best: feasible ones of this run (n).
        best: the value of the best trial after each, in the user's sign; NaN before the first (n).
        sign: -1 where they are maximised, else 1.
        gamma: proportion of good values; None for labels that are made without a threshold.
        good: which have a label above 0 by the labels of the run, for where there is no gamma (n).
        own: which are of this run, not of an earlier task, whose values may be on another scale (n).
        is_one_of_several: whether these are the first of several values, of which there is no best one.
    """

    trials: np.ndarray
    values: np.ndarray
    counted: np.ndarray
    best: np.ndarray
    sign: float
    gamma: "Gamma | None"
    good: np.ndarray
    own: np.ndarray
    is_one_of_several: bool = False


def _told(
    run: Union["Study", Record, Sequence[float], np.ndarray], direction: Direction | None, gamma: "Gamma | None"
) -> _Told:
    """What is drawn of a study, of a record or of plain values."""
    if gamma is not None:
        from deepbore.labels.threshold import checked_gamma

        checked_gamma(gamma)
    if isinstance(run, Record):
        told = [trial for trial in run.trials if trial.status is not Status.PENDING]
        values = np.array([np.nan if trial.value is None else trial.value for trial in told], dtype=float)
        trials = np.array([trial.id for trial in told], dtype=int) + 1
        known = gamma_of(run.header) if gamma is None else gamma
        counted = np.array([may_be_best(trial) for trial in told], dtype=bool)
        direction = direction or run.direction
        best = best_among(told, direction, run.budget is not None)
        own = np.array([trial.task is None for trial in told], dtype=bool)
        return _Told(trials, values, counted, best, sign_of(direction), known, np.isfinite(values), own, run.k > 1)
    if isinstance(run, Sequence | np.ndarray) and not isinstance(run, str):
        values = _numbers(run)
        trials = np.arange(1, len(values) + 1)
        known, sign = np.isfinite(values), sign_of(direction or "minimize")
        best = sign * best_so_far(sign * values)
        every = np.ones(len(values), dtype=bool)
        return _Told(trials, values, known, best, sign, GAMMA if gamma is None else gamma, known, every)
    require_study(run)
    return _told_of_study(run, direction, gamma)


def _numbers(values: Sequence[float] | np.ndarray) -> np.ndarray:
    try:
        numbers = np.asarray(values, dtype=float)
    except (TypeError, ValueError):
        numbers = np.zeros(())
    if numbers.ndim != 1:
        raise SettingError(f"values must be a list of numbers, one for each trial, but got {values!r:.100}.")
    return numbers


def _told_of_study(study: "Study", direction: Direction | None, gamma: "Gamma | None") -> _Told:
    from deepbore.plots.predictions import is_good, labels_of, thresholds_of, values_of

    observations = study.observations
    told = (observations.status != Status.PENDING).cpu().numpy()
    own = (observations.tasks == 0).cpu().numpy()[told]
    counted = observations.feasible.cpu().numpy()[told] & own
    family = thresholds_of(study.labels)
    gamma = family.gamma if gamma is None and family is not None else gamma
    sign = sign_of(direction or observations.direction)
    good, values = is_good(study, labels_of(study))[told], values_of(study)[told]
    budgets = None if observations.budget is None else observations.budgets.cpu().numpy()[told]
    best = sign * best_so_far(np.where(counted, sign * values, np.nan), budgets)
    several = observations.k > 1
    return _Told(np.flatnonzero(told) + 1, values, counted, best, sign, gamma, good, own, several)


def _draw_values(axes: "Axes", shown: _Told) -> None:
    """The values coloured by their label, the best so far, and tau where the labels have one."""
    gamma, values = shown.gamma, shown.sign * shown.values
    _, taus = best_and_tau(np.where(shown.own, values, np.nan), GAMMA if gamma is None else gamma)
    good = shown.good if gamma is None else values <= taus[-1]
    known = ~np.isnan(values)
    earlier, out = ~shown.own & known, shown.own & ~shown.counted & known
    mine = shown.counted & known
    size = 16 if len(values) < MANY else 3
    worse = "worse than the last tau" if gamma is not None else "value, label 0"
    kinds = [
        (mine & good, GOOD, "value"),
        (mine & ~good, BAD, worse),
        (out, INFEASIBLE, "infeasible"),
        (earlier, EARLIER, "earlier task"),
    ]
    for which, colour, name in kinds:
        if which.any():
            axes.scatter(shown.trials[which], shown.values[which], s=size, color=colour, label=name, zorder=3)
    if not shown.is_one_of_several:
        axes.step(shown.trials, shown.best, where="post", color=BEST, lw=1.8, label="best so far", zorder=5)
    if gamma is not None:
        name = "tau" if callable(gamma) else f"tau (gamma = {gamma:.3g})"
        axes.step(shown.trials, shown.sign * taus, where="post", color=TAU, lw=1.2, ls="--", label=name, zorder=4)


def _draw_optimum(axes: "Axes", optimum: float) -> None:
    """A line at the best possible value, for which the axis grows; none where a logarithmic one has no room for it."""
    if axes.get_yscale() == "log" and optimum <= 0:
        return
    low, high = axes.get_ylim()
    axes.axhline(optimum, color="black", lw=0.8, ls=":", label="optimum")
    if not low < optimum < high:
        room = 0.03 * (high - low)
        ends = (optimum / 1.2, optimum * 1.2) if axes.get_yscale() == "log" else (optimum - room, optimum + room)
        axes.set_ylim(min(low, ends[0]), max(high, ends[1]))


def _mark_failures(axes: "Axes", trials: np.ndarray) -> None:
    """Short red strokes at the lower edge."""
    if len(trials):
        edge = axes.get_xaxis_transform()
        axes.vlines(trials, 0, 0.03, color=FAILED, lw=1.5, transform=edge, label="failed")


def _hide_outliers(axes: "Axes", shown: _Told) -> None:
    """Has the axis logarithmic, or end early, where some values would squeeze the others, or an earlier task's do."""
    of_all = ValueAxis.of(shown.values, shown.sign)
    scale = ValueAxis.of(shown.values[shown.own], shown.sign) or of_all
    if scale is None or of_all is None:
        return
    if scale.log:
        axes.set_yscale("log")
    if scale.cut or of_all.low < scale.low or of_all.high > scale.high:
        axes.set_ylim(scale.low, scale.high)
        axes.set_ylabel("value (outliers are outside)")
