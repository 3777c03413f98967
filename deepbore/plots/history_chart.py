"""`history`: the values of a run in the order of evaluation; `comparison`: the best values of several runs."""

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Union, get_args

import numpy as np

from deepbore.component import class_name, settings_in
from deepbore.data.array_ranking import best_and_tau, best_so_far
from deepbore.data.ledger import Ledger
from deepbore.data.outcome import Status
from deepbore.data.ranking import best_among, may_be_best
from deepbore.data.trial import Direction, sign_of
from deepbore.errors import SettingError
from deepbore.plots.chart import Axis, Band, Chart, Layer, Line, Points, Rule
from deepbore.plots.on_matplotlib import drawn, new_figure, save
from deepbore.plots.sources import (
    MOST,
    finished_trials,
    first_values,
    ledger_of,
    names_of_values,
    of_objective,
    record_of,
    require_study,
    thinned,
    withdrawn_values,
)
from deepbore.plots.style import BAD, BEST, EARLIER, FAILED, GOOD, GREY, INFEASIBLE, RUNGS, TAU, ValueAxis, shortened
from deepbore.validation import one_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from deepbore.labels import Gamma
    from deepbore.study import Study

__all__ = ["best_and_tau", "gamma_of", "history"]

Run = Union["Study", Ledger]
GAMMA = 0.5  # of the default labels
GAMMAS = {"ValueGradedLabels": 1 / 2, "RankGradedLabels": 1 / 2, "ThresholdLabels": 1 / 3, "ImprovementLabels": 1 / 3}
MANY = 500  # trials from which the points are small


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
        worse = "label 0" if self.tau is None else "worse than the threshold"
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

    record, family = record_of(study), thresholds_of(study.state.recipe.labels)
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


# --- the chart -------------------------------------------------------------------------------------------------------


def history_chart(
    run: Run | Sequence[float] | np.ndarray,
    direction: Direction | None = None,
    gamma: "Gamma | None" = None,
    optimum: float | None = None,
    objective: int = 0,
) -> Chart:
    """The values of a run in the order of evaluation, as a chart; the arguments are those of `history`.

    Args:
        run: a study, a record, or values.
        direction: of the values.
        gamma: of the labels.
        optimum: the best possible value.
        objective: which of several values.
    """
    if isinstance(run, Sequence | np.ndarray) and not isinstance(run, str):
        shown, others = History.of(run, direction, gamma), list[Layer]()
    else:
        record = ledger_of(run)
        one = of_objective(record, objective) if record.k > 1 else record
        direction = direction or record.directions[objective]
        shown = History.of(run if record.k == 1 else one, direction, gamma)
        others = [] if shown.axis is None else list(asides(one, shown.axis, objective))
    what = shortened(shown.name, 40)
    title = f"{what} of each trial" + ("" if shown.is_one_of_several else ", and the best so far")
    if (axis := shown.axis) is None:
        failures = Points(shown.failed, np.zeros(len(shown.failed)), colour=FAILED, name="failed", symbols="x",
                          trials=shown.failed)  # fmt: skip
        return Chart(title, [failures], Axis("trial", form="whole"), Axis(what), remark="no value yet", height=260)
    axis = axis if optimum is None else axis.reaching(optimum)
    layers = [*_kinds(shown, axis), *_lines(shown), *others]
    if optimum is not None and axis.low < optimum < axis.high:
        layers.append(Rule(y=optimum, colour="#000000", name="optimum"))
    return Chart(title, layers, Axis("trial", form="whole"), Axis(what, axis), height=400, switches="y")


def _kinds(shown: History, axis: ValueAxis) -> Iterator[Points]:
    """Trials by kind, the best kind on top; of more than 3000 the best, the newest, and others evenly."""
    some = thinned(shown.sign * shown.values, MOST)
    failed = {"failed": (np.flatnonzero(np.isnan(shown.values)), FAILED)}
    for name, (which, colour) in (dict(reversed(shown.kinds.items())) | failed).items():
        if len(kept := np.intersect1d(which, some)):
            yield _marks(shown, axis, kept, name, colour)


def _marks(shown: History, axis: ValueAxis, which: np.ndarray, name: str, colour: str) -> Points:
    """Failures at the worse edge, outliers as triangles at the edge that they lie beyond."""
    ids, values = shown.ids[which], shown.values[which]
    values = np.where(np.isnan(values), axis.high if shown.sign > 0 else axis.low, values)
    usual = "x" if name == "failed" else "circle"
    symbols = np.where(values > axis.high, "up", np.where(values < axis.low, "down", usual))
    return Points(ids, axis.clip(values), colour=colour, name=name, size=7 if len(shown.ids) < MANY else 4,
                  symbols=symbols.tolist(), trials=ids)  # fmt: skip


def _lines(shown: History) -> Iterator[Line]:
    """The threshold, and the best so far."""
    if shown.tau is not None:
        yield steps(shown.ids, shown.tau, colour=TAU, width=1.4, name=shown.name_of_tau, dash="dash")
    if not shown.is_one_of_several:
        yield steps(shown.ids, shown.best, colour=BEST, width=2.2, name="best so far")


def steps(ids: np.ndarray, y: np.ndarray, **look: Any) -> Line:
    """A line of steps that keeps only where it changes."""
    known = np.flatnonzero(np.isfinite(y))
    kept = known[np.concatenate([[True], np.diff(y[known]) != 0]) | (known == known[-1])] if len(known) else known
    return Line(ids[kept], y[kept], steps=True, **look)


def asides(record: Ledger, axis: ValueAxis, j: int = 0) -> Iterator[Layer]:
    """What does not count, or is doubted: the last reports of pruned trials, withdrawn values, rings of suspicion.

    Args:
        record: with the objective that is drawn in the first place.
        axis: of the values.
        j: the place of the objective among the values of a trial.
    """
    pruned = {
        trial.id: list(trial.reports.values())[-1]
        for trial in record.trials
        if trial.status is Status.PRUNED and trial.reports
    }
    withdrawn = {row: values[j] for row, values in withdrawn_values(record).items()}
    doubted = {trial.id: trial.value for trial in record.trials if trial.suspicious is not None}
    for name, found, colour, symbol, size in (
        ("pruned (last report)", pruned, GREY, "dash", 7),
        ("withdrawn", withdrawn, GREY, "thin x", 7),
        ("suspicious", doubted, TAU, "ring", 13),
    ):
        known = {row: value for row, value in found.items() if value is not None and math.isfinite(value)}
        if some := list(known)[-MOST:]:
            y = axis.clip(np.array([known[row] for row in some]))
            yield Points(np.array(some), y, colour=colour, name=name, size=size, symbols=symbol, trials=np.array(some))


def history_charts(run: Run) -> list[Chart]:
    """`history_chart` of each objective."""
    return [history_chart(run, objective=j) for j in range(ledger_of(run).k)]


# --- as a picture ----------------------------------------------------------------------------------------------------


def history(
    run: Run | Sequence[float] | np.ndarray,
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
    their own. Outliers that would flatten the others are triangles at the edge; failures are crosses there. Each of
    several objectives has axes of its own.

    Args:
        run: a study, the record of a journal (see `deepbore.data.replay.read_record`), or n values in the user's sign;
            NaN for failures.
        direction: "minimize" or "maximize"; None for the study's, or "minimize".
        gamma: proportion of good observations, in (0, 1), or a schedule; None for the study's, or 1/2. For labels
            that are made without a threshold there is no tau, and values with the label 0 are grey.
        optimum: the best possible value, drawn if known; not at 0 or below where the axis is logarithmic.
        title: of the picture; what is measured, if it is empty.
        path: where to save it (the suffix says the format); None for nowhere.
        axes: where to draw, the first of several objectives; None for a new figure.

    Returns:
        the matplotlib figure.

    Raises:
        SettingError: for gamma outside (0, 1).
        MissingPackage: without matplotlib.
    """
    if direction is not None:
        one_of(get_args(Direction), direction=direction)
    k = 1 if isinstance(run, Sequence | np.ndarray) or axes is not None else ledger_of(run).k
    charts = [history_chart(run, direction, gamma, optimum, j) for j in range(k)]
    charts[0] = replace(charts[0], title=title or charts[0].title)
    if k == 1:
        return drawn(charts[0], axes, path)
    figure = new_figure(7.5, 3.4 * k)
    for chart, each in zip(charts, figure.subplots(k), strict=True):
        drawn(chart, each)
    if path is not None:
        save(figure, path)
    return figure


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
    """A line for each group: the median of its runs, in a band.

    The band reaches from the worst to the best run; with four runs and more it holds the middle half of them.

    Args:
        groups: what is compared.
        direction: of the values.
        title: of the picture.
        path: where to save it; None for nowhere.
        axes: where to draw; None for a new figure.

    Raises:
        MissingPackage: without matplotlib.
    """
    return drawn(comparison_chart(groups, direction=direction, title=title), axes, path)


def comparison_chart(groups: Sequence[Curves], *, direction: Direction = "minimize", title: str = "") -> Chart:
    """`comparison` as a record; see there."""
    if not isinstance(groups, Sequence) or not all(isinstance(group, Curves) for group in groups):
        raise SettingError(f"groups must be a list of Curves, but got {groups!r:.100}. Give Curves(name, [values]).")
    one_of(get_args(Direction), direction=direction)
    colours = [COLOURS[i % len(COLOURS)] for i in range(len(groups))]
    layers = [layer for group, colour in zip(groups, colours, strict=True) for layer in _group_layers(group, colour)]
    heights = [layer.y if isinstance(layer, Line) else np.concatenate([layer.low, layer.high]) for layer in layers]
    shown = ValueAxis.of(np.concatenate([[], *heights]), sign_of(direction))
    up, nothing = Axis("best value so far", shown), "" if shown else "no value yet"
    return Chart(title or "best value so far", layers, Axis("trials", form="whole"), up, nothing, switches="xy")


def _group_layers(group: Curves, colour: str) -> Iterator[Line | Band]:
    """The median of a group, and its band, if it has a value."""
    shown, n = group.from_first_value(), len(group.begun)
    if not shown.length:
        return
    low, middle, high = shown.band
    trials = np.arange(group.length - len(middle) + 1, group.length + 1)
    if n > 1:  # in steps, as the line
        at, (low, high) = np.repeat(trials, 2)[1:], (np.repeat(each, 2)[:-1] for each in (low, high))
        yield Band(at, low, high, colour=colour, opacity=0.18)
    yield Line(trials, middle, steps=True, colour=colour, name=group.name + (f" ({n} runs)" if n > 1 else ""))
