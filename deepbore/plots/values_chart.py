"""`values_charts`: the values of the trials over each parameter, as they were told, without a model. Needs no torch."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from deepbore.data.ledger import Ledger
from deepbore.data.ranking import is_feasible
from deepbore.data.trial import Trial, sign_of
from deepbore.plots.chart import Axis, Chart, Layer, Points
from deepbore.plots.history_chart import Run
from deepbore.plots.parallel_chart import DeclaredScale
from deepbore.plots.sources import first_values, ledger_of, names_of_values, some_of
from deepbore.plots.style import BEST, GOOD, INFEASIBLE, ParameterAxis, ValueAxis, short_names, shortened

MOST, TRIALS, NAME = 12, 600, 24  # parameters and trials that are drawn; characters of a parameter's name
MARGIN = 0.02  # of the length of an axis, at both ends


def values_charts(run: Run) -> list[Chart]:
    """A chart for each of the first 12 parameters: the first value of each trial of this run that has the parameter.

    Args:
        run: a study, or a record.
    """
    record = ledger_of(run)
    told = [trial for trial in record.trials if trial.value is not None and trial.task is None]
    trials = some_of(told, record.direction, TRIALS)
    values = ValueAxis.of(first_values(trials), sign_of(record.direction))
    if values is None:
        return []
    names = list(record.space)[:MOST]
    shown = zip(names, short_names(names, NAME), strict=True)
    return [_chart(record, trials, name, label, values) for name, label in shown]


def _chart(record: Ledger, trials: Sequence[Trial], name: str, label: str, values: ValueAxis) -> Chart:
    some = [trial for trial in trials if name in trial.params]
    seen = [trial.params[name] for trial in some]
    scale = DeclaredScale.of(record.space[name], seen)
    x = np.array([_place(scale, value) for value in seen], dtype=float)
    y = values.clip(first_values(some))
    best = record.best if record.k == 1 else None
    kinds = np.array([_kind(trial, best) for trial in some])
    layers: list[Layer] = []
    for kind, colour, size in (("infeasible", INFEASIBLE, 4.0), ("value", GOOD, 4.0), ("best", BEST, 8.0)):
        if len(which := np.flatnonzero(kinds == kind)):
            ids = np.array([some[k].id for k in which])
            layers.append(Points(x[which], y[which], colour=colour, size=size, trials=ids, opacity=0.8))
    what = shortened(names_of_values(record)[0], 20)
    return Chart(f"{what} over {label}", layers, Axis(label, axis_of(scale, label)), Axis(what, values), height=230,
                 has_legend=False)  # fmt: skip


def _kind(trial: Trial, best: Trial | None) -> str:
    if best is not None and trial.id == best.id:
        return "best"
    return "value" if is_feasible(trial) else "infeasible"


def _place(scale: DeclaredScale, value: Any) -> float:
    """Where a value stands: a number at itself, a choice at its index."""
    if not scale.choices:
        return min(max(float(value), scale.low), scale.high)
    return scale.place(value) * (len(scale.choices) - 1) if len(scale.choices) > 1 else 0.0


def axis_of(scale: DeclaredScale, label: str) -> ParameterAxis:
    """The axis of a parameter by its declaration alone."""
    ticks = scale.ticks
    places = np.array([_place(scale, tick) for tick in ticks], dtype=float)
    if scale.choices:
        return ParameterAxis(label, -0.5, len(scale.choices) - 0.5, False, ticks, places, is_numeric=False)
    if scale.log:
        low, high = math.log10(scale.low), math.log10(scale.high)
        room = MARGIN * (high - low)
        return ParameterAxis(label, 10 ** (low - room), 10 ** (high + room), True, ticks, places)
    room = MARGIN * (scale.high - scale.low)
    return ParameterAxis(label, scale.low - room, scale.high + room, False, ticks, places)
