"""The values of a run in the order of evaluation, or against each other. Light to import."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from deepbore.data.array_ranking import best_and_tau
from deepbore.data.outcome import Status
from deepbore.data.ranking import best_among, front, is_feasible
from deepbore.data.replay import Record
from deepbore.data.trial import Trial, sign_of
from deepbore.plots.optimization_history import gamma_of
from deepbore.plots.page.charts import MOST, Chart, Section, axis_of, clipped, finished, note, some_of
from deepbore.plots.style import BAD, BEST, EARLIER, FAILED, GOOD, INFEASIBLE, TAU
from deepbore.plots.value_axis import ValueAxis


def history_section(record: Record) -> Section:
    """Every value in the order of evaluation; of several objectives the first two against each other, too."""
    if record.k > 1:
        return Section("History", _SEVERAL, [_front(record), _history(record)])
    few = (
        ""
        if len(record) <= MOST
        else f" Of {len(record)} trials {MOST} at most are drawn: the best, the newest, others."
    )
    return Section("History", _SAYS + few, [_history(record)])


_SAYS = (
    "Every value in the order of evaluation, the best so far, and, where the labels have one, the threshold tau: "
    "values at or better than it are good ones to the classifier. Put the pointer on a trial for its configuration."
)
_SEVERAL = "The first two values of every trial against each other, and the first in the order of evaluation."


def _history(record: Record) -> Chart:
    told = finished(record.trials)
    sign = sign_of(record.direction)
    values = np.array([np.nan if trial.value is None else trial.value for trial in told], dtype=float)
    own = np.array([trial.task is None for trial in told], dtype=bool)  # others may be on another scale
    shown = ValueAxis.of(values[own], sign) or ValueAxis.of(values, sign)
    layout = {"xaxis": {"title": {"text": "trial"}}, "yaxis": axis_of(shown, "value"), "hovermode": "closest"}
    if shown is None:
        failures = [_marks([t for t in told if t.status is Status.FAILED], "failed", FAILED, "x", None)]
        return Chart(failures, {**layout, "annotations": [note("no value yet")]}, 260)
    gamma = gamma_of(record.header)
    _, taus = best_and_tau(sign * np.where(own, values, np.nan), 0.5 if gamma is None else gamma)
    good = np.ones(len(values), dtype=bool) if gamma is None else sign * values <= taus[-1]
    some = {trial.id for trial in some_of(told, record.direction)}
    kinds = _kinds(told, good, some)
    traces = [_marks(trials, name, colour, "circle", shown) for name, (trials, colour) in kinds.items() if trials]
    traces.append(_marks([t for t in told if t.value is None and t.id in some], "failed", FAILED, "x", shown, sign))
    ids = [trial.id for trial in told]
    if gamma is not None:
        traces.append(_steps(ids, sign * taus, f"tau (gamma = {gamma:.3g})", TAU, "dash", 1.4))
    if record.k == 1:
        best = best_among(told, record.direction, record.budget is not None)
        traces.append(_steps(ids, best, "best so far", BEST, "solid", 2.2))
    return Chart([trace for trace in traces if trace["x"]], layout, 400)


def _kinds(told: Sequence[Trial], good: np.ndarray, some: set[int]) -> dict[str, tuple[list[Trial], str]]:
    """The trials with a value, by what they are."""
    kinds: dict[str, tuple[list[Trial], str]] = {
        "worse than the last tau": ([], BAD),
        "value" if good.all() else "good": ([], GOOD),
        "infeasible": ([], INFEASIBLE),
        "earlier task": ([], EARLIER),
    }
    names = list(kinds)
    for trial, is_good in zip(told, good, strict=True):
        if trial.value is None or trial.id not in some:
            continue
        name = names[3] if trial.task is not None else names[int(bool(is_good))] if is_feasible(trial) else names[2]
        kinds[name][0].append(trial)
    return kinds


def _marks(
    trials: Sequence[Trial], name: str, colour: str, symbol: str, shown: ValueAxis | None, sign: float = 1.0
) -> dict[str, Any]:
    """Trials as markers; failures at the worse edge, outliers as triangles at the edge that they lie beyond."""
    worse = 0.0 if shown is None else shown.high if sign > 0 else shown.low
    values = [worse if trial.value is None else trial.value for trial in trials]
    symbols = symbol if shown is None else [_symbol(value, shown, symbol) for value in values]
    return {
        "type": "scatter",
        "mode": "markers",
        "name": name,
        "x": [trial.id for trial in trials],
        "y": values if shown is None else clipped(values, shown),
        "trials": [trial.id for trial in trials],
        "cliponaxis": False,
        "marker": {"color": colour, "size": 7 if len(trials) < 500 else 4, "symbol": symbols},
    }


def _symbol(value: float, shown: ValueAxis, usual: str) -> str:
    if value > shown.high:
        return "triangle-up"
    return "triangle-down" if value < shown.low else usual


def _steps(x: Sequence[int], y: np.ndarray, name: str, colour: str, dash: str, width: float) -> dict[str, Any]:
    """A line of steps that keeps only where it changes."""
    known = [k for k in range(len(y)) if np.isfinite(y[k])]
    kept = [k for j, k in enumerate(known) if j in (0, len(known) - 1) or y[k] != y[known[j - 1]]]
    return {
        "type": "scatter",
        "mode": "lines",
        "name": name,
        "x": [x[k] for k in kept],
        "y": [float(y[k]) for k in kept],
        "hoverinfo": "skip",
        "line": {"shape": "hv", "color": colour, "dash": dash, "width": width},
    }


def _front(record: Record) -> Chart:
    """The first two of several values against each other, those that none beats in all of them in colour."""
    best = {trial.id for trial in front(record.trials, record.directions)}
    valued = [trial for trial in some_of(finished(record.trials), record.direction) if trial.values]
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
        marks = {"color": colour, "size": 7}
        traces.append({"type": "scatter", "mode": "markers", "name": name, "x": x, "y": y, "marker": marks,
                       "trials": [trial.id for trial in trials]})  # fmt: skip
    titles = [f"value {j} ({direction})" for j, direction in enumerate(record.directions[:2])]
    axes = {"xaxis": {"title": {"text": titles[0]}}, "yaxis": {"title": {"text": titles[1]}}}
    return Chart([trace for trace in traces if trace["x"]], axes, 400)
