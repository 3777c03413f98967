"""`history`: the values of a run in the order of evaluation; `comparison`: the best values of several runs."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Union, get_args

import numpy as np

from deepbore.component import class_name, settings_in
from deepbore.data.array_ranking import best_and_tau, best_so_far
from deepbore.data.ledger import Ledger
from deepbore.data.ranking import best_among, is_feasible, may_be_best
from deepbore.data.trial import Direction, sign_of
from deepbore.errors import SettingError
from deepbore.plots.on_matplotlib import finished, new_axes, note, plain
from deepbore.plots.on_plotly import Chart, line, points, remark, text, titled, value_axis
from deepbore.plots.sources import (
    MOST,
    finished_trials,
    first_values,
    names_of_values,
    record_of,
    require_study,
    some_of,
    thinned,
)
from deepbore.plots.style import BAD, BEST, EARLIER, FAILED, GOOD, INFEASIBLE, RUNGS, TAU, ValueAxis
from deepbore.validation import one_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from deepbore.labels import Gamma
    from deepbore.study import Study

__all__ = ["best_and_tau", "gamma_of", "history"]

GAMMA = 0.5  # of the default labels
GAMMAS = {"ValueGradedLabels": 1 / 2, "RankGradedLabels": 1 / 2, "ThresholdLabels": 1 / 3, "ImprovementLabels": 1 / 3}
MANY = 1000  # trials from which the points are small


def gamma_of(header: Mapping[str, Any]) -> float | None:
    """The proportion gamma that a journal's header gives its labels; None for labels without one, or a schedule.

    With budgets there is a threshold in each rung, and none of all values.
    """
    if "budget" in header:
        return None
    described = header.get("recipe", {}).get("labels")
    while class_name(described) == "EmphasiseChanges":  # which weighs the rows of another labelling
        described = settings_in(described).get("base")
    given = settings_in(described).get("gamma", GAMMAS.get(class_name(described)))
    return float(given) if isinstance(given, (int, float)) and 0 < given < 1 else None


# --- what is drawn ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class History:
    """The finished trials of a run in the order of evaluation.

    Attributes:
        ids: their numbers, from 0 (n).
        values: the first value of each in the user's sign; NaN for failures (n).
        counted: which may be the best: feasible ones of this run (n).
        own: which are of this run, not of an earlier task, whose values may be on another scale (n).
        good: which reach the last threshold; without one, which have a label above 0 (n).
        best: the value of the best trial after each; NaN before the first (n).
        tau: the threshold of the good values after each; None for labels without one (n).
        name_of_tau: with its gamma.
        sign: -1 where values are maximised, else 1.
        doubted: which are suspicious, so that the axis does not reach for them (n); none where that is not known.
        is_one_of_several: whether these are one of several values, of which there is no best one.
        name: of the values.
        budgets: what each has spent, NaN for no budget (n); None where there are none.
        unit: of the budgets.
    """

    ids: np.ndarray
    values: np.ndarray
    counted: np.ndarray
    own: np.ndarray
    good: np.ndarray
    best: np.ndarray
    tau: np.ndarray | None
    name_of_tau: str
    sign: float
    is_one_of_several: bool = False
    doubted: np.ndarray | None = None
    name: str = "value"
    budgets: np.ndarray | None = None
    unit: str = ""

    @classmethod
    def of(
        cls,
        run: Union["Study", Ledger, Sequence[float], np.ndarray],
        direction: Direction | None = None,
        gamma: "Gamma | None" = None,
    ) -> "History":
        """The history of a study, of a record or of plain values; the arguments are those of `history`."""
        if gamma is not None:
            from deepbore.labels.threshold import checked_gamma

            checked_gamma(gamma)
        if isinstance(run, Ledger):
            return _of_record(run, direction, gamma_of(run.header) if gamma is None else gamma)
        if isinstance(run, Sequence | np.ndarray) and not isinstance(run, str):
            return _of_values(_numbers(run), sign_of(direction or "minimize"), GAMMA if gamma is None else gamma)
        require_study(run)
        return _of_study(run, direction, gamma)

    @property
    def failed(self) -> np.ndarray:
        """The trials without a value."""
        failed: np.ndarray = self.ids[np.isnan(self.values)]
        return failed

    @property
    def kinds(self) -> dict[str, tuple[np.ndarray, str]]:
        """The trials with a value by kind, in the order of the legend: indices and a colour."""
        known = ~np.isnan(self.values)
        mine = self.counted & known
        worse = "label 0" if self.tau is None else "worse than the last tau"
        graded = {
            "good" if (mine & ~self.good).any() else "value": (mine & self.good, GOOD),
            worse: (mine & ~self.good, BAD),
        }
        kinds = {
            **(graded if self.budgets is None else self._rungs(mine, self.budgets)),
            "infeasible": (self.own & ~self.counted & known, INFEASIBLE),
            "earlier task": (~self.own & known, EARLIER),
        }
        return {name: (np.flatnonzero(which), colour) for name, (which, colour) in kinds.items() if which.any()}

    @property
    def axis(self) -> ValueAxis | None:
        """The axis of this run's values, or of all, if it has none yet."""
        trusted = self.own if self.doubted is None else self.own & ~self.doubted
        return ValueAxis.of(self.values[trusted], self.sign) or ValueAxis.of(self.values, self.sign)

    def _rungs(self, which: np.ndarray, budgets: np.ndarray) -> dict[str, tuple[np.ndarray, str]]:
        """The trials of each budget, the largest first."""
        spent = np.unique(budgets[which & ~np.isnan(budgets)])
        colours = [RUNGS[round(k)] for k in np.linspace(0, len(RUNGS) - 1, len(spent))] if len(spent) > 1 else [GOOD]
        rungs = {f"{rung:g} {self.unit}": (which & (budgets == rung), colours[k]) for k, rung in enumerate(spent)}
        return dict(reversed(rungs.items()))


def _of_record(
    record: Ledger, direction: Direction | None, gamma: "Gamma | None", good: np.ndarray | None = None
) -> History:
    trials = finished_trials(record.trials)
    direction = direction or record.direction
    return _assembled(
        sign_of(direction),
        gamma,
        good=good,
        ids=np.array([trial.id for trial in trials], dtype=int),
        values=first_values(trials),
        counted=np.array([may_be_best(trial) for trial in trials], dtype=bool),
        own=np.array([trial.task is None for trial in trials], dtype=bool),
        doubted=np.array([trial.suspicious is not None for trial in trials], dtype=bool),
        best=best_among(trials, direction, record.budget is not None),
        is_one_of_several=record.k > 1,
        name=names_of_values(record)[0],
        budgets=None if record.budget is None else np.array([trial.budget or np.nan for trial in trials], dtype=float),
        unit="" if record.budget is None else record.budget.unit,
    )


def _of_values(values: np.ndarray, sign: float, gamma: "Gamma") -> History:
    return _assembled(
        sign,
        gamma,
        good=None,
        ids=np.arange(len(values)),
        values=values,
        counted=np.isfinite(values),
        own=np.ones(len(values), dtype=bool),
        best=sign * best_so_far(sign * values),
    )


def _of_study(study: "Study", direction: Direction | None, gamma: "Gamma | None") -> History:
    """The history of its record, with the labels that it has now, which a journal may not describe."""
    from deepbore.plots.predictions import is_good, labels_of, thresholds_of

    record, family = record_of(study), thresholds_of(study.labels)
    gamma = family.gamma if gamma is None and family is not None else gamma
    rows = [trial.id for trial in finished_trials(record.trials)]
    return _of_record(record, direction, gamma, is_good(study, labels_of(study))[rows])


def _assembled(sign: float, gamma: "Gamma | None", good: np.ndarray | None, **shown: Any) -> History:
    """A history with its thresholds; without gamma the good trials are those given, or all."""
    values, tau, name = sign * shown["values"], None, ""
    if gamma is not None:
        _, taus = best_and_tau(np.where(shown["own"], values, np.nan), gamma)
        good, tau = values <= (taus[-1] if len(taus) else np.nan), sign * taus
        name = "tau" if callable(gamma) else f"tau (gamma = {gamma:.3g})"
    good = np.isfinite(values) if good is None else good
    return History(good=good, tau=tau, name_of_tau=name, sign=sign, **shown)


def _numbers(values: Sequence[float] | np.ndarray) -> np.ndarray:
    try:
        numbers = np.asarray(values, dtype=float)
    except (TypeError, ValueError):
        numbers = np.zeros(())
    if numbers.ndim != 1:
        raise SettingError(f"values must be a list of numbers, one for each trial, but got {values!r:.100}.")
    return numbers


# --- as a picture ----------------------------------------------------------------------------------------------------


def history(
    run: Union["Study", Ledger, Sequence[float], np.ndarray],
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
    their own. Outliers that would flatten the others lie outside of the axis.

    Args:
        run: a study, the record of a journal (see `deepbore.data.replay.read_record`), or n values in the user's sign;
            NaN for failures, which are marked at the edge.
        direction: "minimize" or "maximize"; None for the study's, or "minimize".
        gamma: proportion of good observations, in (0, 1), or a schedule; None for the study's, or 1/2. For labels
            that are made without a threshold there is no tau, and values with the label 0 are grey.
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
    shown = History.of(run, direction, gamma)
    axes = axes or new_axes(7.5, 4.2)
    axes.set(xlabel="evaluation", ylabel=plain(shown.name, 40), title=plain(title, 80))
    if (axis := shown.axis) is None:
        note(axes, "no value yet")
        axes.set_yticks([])
    else:
        _draw_values(axes, shown)
        _draw_scale(axes, shown, axis)
    if len(shown.failed):
        edge = axes.get_xaxis_transform()
        axes.vlines(shown.failed + 1, 0, 0.03, color=FAILED, lw=1.5, transform=edge, label="failed")
    if optimum is not None:
        _draw_optimum(axes, optimum)
    return finished(axes, path, loc="best" if len(shown.ids) < MANY else "upper right")


def _draw_values(axes: "Axes", shown: History) -> None:
    """The values coloured by their kind, the best so far, and tau."""
    x, size = shown.ids + 1, 16 if len(shown.ids) < MANY else 3
    for name, (which, colour) in shown.kinds.items():
        axes.scatter(x[which], shown.values[which], s=size, color=colour, label=name, zorder=3)
    if not shown.is_one_of_several:
        axes.step(x, shown.best, where="post", color=BEST, lw=1.8, label="best so far", zorder=5)
    if shown.tau is not None:
        axes.step(x, shown.tau, where="post", color=TAU, lw=1.2, ls="--", label=shown.name_of_tau, zorder=4)


def _draw_scale(axes: "Axes", shown: History, axis: ValueAxis) -> None:
    finite = shown.values[np.isfinite(shown.values)]
    axes.set(yscale="log" if axis.log else "linear", ylim=(axis.low, axis.high))
    if (finite != axis.clip(finite)).any():
        axes.set_ylabel(f"{plain(shown.name, 40)} (outliers are outside)")


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


# --- on the page -----------------------------------------------------------------------------------------------------


def history_chart(shown: History) -> Chart:
    """The same chart for the page; of more than 3000 trials the best, the newest, and others evenly."""
    axis, some = shown.axis, thinned(shown.sign * shown.values, MOST)
    layout = {"xaxis": titled("trial"), "yaxis": value_axis(axis, text(shown.name, 40)), "hovermode": "closest"}
    if axis is None:
        failures = points(shown.failed.tolist(), [0.0] * len(shown.failed), FAILED, 7, name="failed",
                          trials=shown.failed.tolist(), marker={"symbol": "x"})  # fmt: skip
        return Chart([failures] if len(shown.failed) else [], {**layout, "annotations": [remark("no value yet")]}, 260)
    kinds = {name: (np.intersect1d(which, some), colour) for name, (which, colour) in reversed(shown.kinds.items())}
    kinds["failed"] = np.intersect1d(np.flatnonzero(np.isnan(shown.values)), some), FAILED
    traces = [_markers(shown, axis, which, name, colour) for name, (which, colour) in kinds.items() if len(which)]
    if shown.tau is not None:
        traces.append(_steps(shown.ids, shown.tau, TAU, 1.4, name=shown.name_of_tau, line={"dash": "dash"}))
    if not shown.is_one_of_several:
        traces.append(_steps(shown.ids, shown.best, BEST, 2.2, name="best so far"))
    return Chart([trace for trace in traces if trace["x"]], layout, 400, log="y")


def _markers(shown: History, axis: ValueAxis, which: np.ndarray, name: str, colour: str) -> dict[str, Any]:
    """Trials as markers; failures at the worse edge, outliers as triangles at the edge that they lie beyond."""
    ids, values = shown.ids[which].tolist(), shown.values[which]
    worse = axis.high if shown.sign > 0 else axis.low
    values = np.where(np.isnan(values), worse, values)
    usual = "x" if name == "failed" else "circle"
    symbols = np.where(values > axis.high, "triangle-up", np.where(values < axis.low, "triangle-down", usual))
    marker = {"symbol": symbols.tolist()}
    return points(ids, axis.clip(values).tolist(), colour, 7 if len(ids) < 500 else 4, name=name, trials=ids,
                  cliponaxis=False, marker=marker)  # fmt: skip


def _steps(ids: np.ndarray, y: np.ndarray, colour: str, width: float, **more: Any) -> dict[str, Any]:
    """A line of steps that keeps only where it changes."""
    known = np.flatnonzero(np.isfinite(y))
    kept = known[np.concatenate([[True], np.diff(y[known]) != 0]) | (known == known[-1])] if len(known) else known
    look = {"shape": "hv", **more.pop("line", {})}
    return line(ids[kept].tolist(), y[kept].tolist(), colour, width, line=look, **more)


def front_chart(record: Ledger) -> Chart:
    """The first two of several values against each other for the page, the trials of the front in colour."""
    best = {trial.id for trial in record.front}
    valued = [trial for trial in some_of(finished_trials(record.trials), record.direction) if trial.values]
    own = [trial for trial in valued if trial.task is None]
    kinds = {
        "beaten by another": (BAD, [trial for trial in own if is_feasible(trial) and trial.id not in best]),
        "beaten by none": (GOOD, [trial for trial in own if trial.id in best]),
        "infeasible": (INFEASIBLE, [trial for trial in own if not is_feasible(trial)]),
        "earlier task": (EARLIER, [trial for trial in valued if trial.task is not None]),
    }
    traces = []
    for name, (colour, trials) in kinds.items():
        pairs = [trial.values for trial in trials if trial.values]
        x, y = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
        traces.append(points(x, y, colour, 7, name=name, trials=[trial.id for trial in trials]))
    named = zip(names_of_values(record)[:2], record.directions[:2], strict=True)
    across, up = (titled(f"{text(name, 40)} ({direction})") for name, direction in named)
    return Chart([trace for trace in traces if trace["x"]], {"xaxis": across, "yaxis": up}, 400, log="xy")


# --- several runs ----------------------------------------------------------------------------------------------------

COLOURS = ["#1f3b73", "#d9822b", "#1a7f5a", "#8e44ad", "#c0392b", "#2f8fb3", "#7a5c2e", "#5f6b76"]
FEW = 4  # runs from which the band holds the middle half of them, and not all


@dataclass(frozen=True)
class Curves:
    """Runs that differ in their seeds only.

    Attributes:
        name: of them all.
        bests: of each run the best value after each finished trial, in the user's sign; NaN before the first value.
    """

    name: str
    bests: Sequence[np.ndarray]

    @property
    def begun(self) -> list[np.ndarray]:
        """The runs with a finished trial."""
        return [best for best in self.bests if len(best)]

    @property
    def length(self) -> int:
        """The number of trials that each of these has at least."""
        return min(map(len, self.begun), default=0)

    def after(self, n: int) -> np.ndarray:
        """The best values of these after n >= 1 trials."""
        return np.array([best[n - 1] for best in self.begun])

    @property
    def band(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Lower edge, median and upper edge after each trial that all of these have (up to `length`)."""
        together = np.array([best[: self.length] for best in self.begun])
        share = 25.0 if len(together) >= FEW else 0.0
        edges: np.ndarray = np.nanpercentile(together, [share, 50.0, 100 - share], axis=0)
        return edges[0], edges[1], edges[2]

    def from_first_value(self) -> "Curves":
        """The same from the trial on after which some run has a value, cut to `length`; empty if none has one."""
        known = np.isfinite([best[: self.length] for best in self.begun]).any(0) if self.begun else np.empty(0)
        first = int(known.argmax()) if known.any() else self.length
        return Curves(self.name, [best[first : self.length] for best in self.begun])


def comparison(
    groups: Sequence[Curves],
    *,
    direction: Direction = "minimize",
    title: str = "",
    path: str | os.PathLike[str] | None = None,
    axes: "Axes | None" = None,
) -> "Figure":
    """A line for each group: the median of its runs, in a band from the worst to the best run, or, with four runs and
    more, of the middle half of them.

    Args:
        groups: what is compared.
        direction: of the values.
        title: of the picture.
        path: where to save it; None for nowhere.
        axes: where to draw; None for a new figure.

    Raises:
        MissingPackage: without matplotlib.
    """
    if not isinstance(groups, Sequence) or not all(isinstance(group, Curves) for group in groups):
        raise SettingError(f"groups must be a list of Curves, but got {groups!r:.100}. Give Curves(name, [values]).")
    one_of(get_args(Direction), direction=direction)
    axes = axes or new_axes(7.5, 4.4)
    axes.set(xlabel="trials", ylabel="best value so far", title=plain(title, 80))
    colours = [COLOURS[i % len(COLOURS)] for i in range(len(groups))]
    drawn = [_draw_curves(axes, group, colour) for group, colour in zip(groups, colours, strict=True)]
    shown = ValueAxis.of(np.concatenate([[], *drawn]), sign_of(direction))
    if shown is None:
        note(axes, "no value yet")
    else:
        axes.set(yscale="log" if shown.log else "linear", ylim=(shown.low, shown.high))
    return finished(axes, path)


def _draw_curves(axes: "Axes", group: Curves, colour: str) -> np.ndarray:
    """Draws a group, if it has a value; returns the values that are drawn."""
    shown, n = group.from_first_value(), len(group.begun)
    if not shown.length:
        return np.empty(0)
    low, middle, high = shown.band
    trials = np.arange(group.length - len(middle) + 1, group.length + 1)
    name = plain(group.name, 40) + (f" ({n} runs)" if n > 1 else "")
    axes.step(trials, middle, where="post", color=colour, lw=1.8, label=name, zorder=3)
    if n > 1:
        axes.fill_between(trials, low, high, step="post", color=colour, alpha=0.18, lw=0)
    return np.concatenate([low, middle, high])
