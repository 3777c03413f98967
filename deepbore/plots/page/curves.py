"""Sections of the page on how values come about: learning curves, each objective over time, the hypervolume."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from deepbore.data.array_ranking import hypervolume, non_dominated
from deepbore.data.ledger import Ledger
from deepbore.data.outcome import Status
from deepbore.data.ranking import is_feasible
from deepbore.data.trial import Direction, Trial, sign_of
from deepbore.plots.history_chart import History, front_chart, history_chart
from deepbore.plots.on_plotly import Chart, line, points, titled, value_axis
from deepbore.plots.page.sections import Section, asides, withdrawn_values
from deepbore.plots.sources import MOST, names_of_values, some_of
from deepbore.plots.style import BAD, BEST, FAILED, GOOD, GREY, RUNNING, ValueAxis

CURVES, STEPS = 200, 100  # drawn at most, and points of each
SHADES = ("#b5bcc2", "#a8bdb3", "#93bfac", "#74b598", "#4a9e7d", GOOD)  # of curves, from the worst to the best
DESIGN, MEASURED = 10, 4  # trials whose worst values are the reference; objectives up to which the volume is cheap


# --- what trials have reported ---------------------------------------------------------------------------------------


def curves_section(record: Ledger) -> Section | None:
    """What trials have reported by step, a line each; None if none has."""
    with_reports = [trial for trial in record.trials if trial.reports and trial.status is not Status.WITHDRAWN]
    if not with_reports:
        return None
    trials = some_of(with_reports, record.direction, CURVES)
    sign = sign_of(record.direction)
    axis = ValueAxis.of(np.array([value for trial in trials for value in trial.reports.values()]), sign)
    traces = [
        _curves(trials, axis, sign, colour, name=name, showlegend=bool(name))
        for name, colour, trials in _kinds(trials, record.best if record.k == 1 else None, sign)
    ]
    says = (
        "What each trial has reported while it ran: the greener, the better it is in the end. A cross is where a "
        "pruned or failed trial ended."
    )
    says += f" Of {len(with_reports)} trials {CURVES} at most are drawn." if len(with_reports) > CURVES else ""
    layout = {"xaxis": titled("step"), "yaxis": value_axis(axis, "reported value")}
    return Section("Learning curves", says, [Chart([each for each in traces if each["x"]], layout, 400, log="y")])


def _kinds(trials: Sequence[Trial], best: Trial | None, sign: float) -> list[tuple[str, str, list[Trial]]]:
    """Name in the legend, if it has one, colour and trials of the lines, those on top last."""
    of = {status: [trial for trial in trials if trial.status is status] for status in Status}
    others = [trial for trial in of[Status.COMPLETE] if best is None or trial.id != best.id]
    others.sort(key=lambda trial: -sign * (trial.value or 0.0))
    sixths = [[others[k] for k in part] for part in np.array_split(np.arange(len(others)), len(SHADES))]
    return [
        ("pruned", BAD, of[Status.PRUNED]),
        ("failed", FAILED, of[Status.FAILED]),
        *(("complete" if colour == GOOD else "", colour, part) for colour, part in zip(SHADES, sixths, strict=True)),
        ("running", RUNNING, of[Status.PENDING]),
        ("best", BEST, [trial for trial in trials if best is not None and trial.id == best.id]),
    ]


def _curves(trials: Sequence[Trial], axis: ValueAxis | None, sign: float, colour: str, **more: Any) -> dict[str, Any]:
    """Curves of one colour as one trace, with gaps between them."""
    x: list[float | None] = []
    y: list[float | None] = []
    ids: list[int] = []
    said: list[str] = []
    symbols: list[str] = []
    for trial in trials:
        steps = np.array(list(trial.reports), dtype=float)
        values = np.array(list(trial.reports.values()), dtype=float)
        kept = np.unique(np.linspace(0, len(steps) - 1, min(len(steps), STEPS)).astype(int))
        shown = np.where(np.isfinite(values), values, sign * np.inf)[kept]
        shown = shown if axis is None else axis.clip(shown)
        x += [*steps[kept].tolist(), None]
        y += [*shown.tolist(), None]
        ids += [trial.id] * (len(kept) + 1)
        said += [*(f"step {step:g}: {value:.5g}" for step, value in zip(steps[kept], values[kept], strict=True)), ""]
        ended = trial.status in (Status.PRUNED, Status.FAILED)
        symbols += [*["circle"] * (len(kept) - 1), "x" if ended else "circle", "circle"]
    sizes = [6 if each == "x" else 2 for each in symbols]
    marker = {"color": colour, "size": sizes, "symbol": symbols, "line": {"width": 0}}
    width = 2.6 if colour == BEST else 1.2
    dash = {"dash": "dot"} if colour == BAD else {}
    look = {"mode": "lines+markers", "marker": marker, "cliponaxis": False, "line": dash}
    return line(x, y, colour, width, trials=ids, more=said, **look, **more)


# --- several objectives ----------------------------------------------------------------------------------------------


def trade_off_sections(record: Ledger) -> list[Section]:
    """The front, the hypervolume, and each of several objectives in the order of evaluation."""
    names = names_of_values(record)
    volume = hypervolume_chart(record)
    says = f"{names[0]} and {names[1]} of every trial against each other." + (
        " Below, the hypervolume: what the front dominates, up to the worst values of the first ten trials, over time."
        if volume
        else ""
    )
    smaller = [_history_of(record, j, direction) for j, direction in _each(record)]
    front = front_chart(record)
    if gone := withdrawn_values(record):
        x, y = ([values[j] for values in gone.values()] for j in (0, 1))
        marks = points(x, y, GREY, 7, name="withdrawn", trials=list(gone), marker={"symbol": "x-thin-open"})
        front = replace(front, data=[*front.data, marks])
    return [
        Section("Trade-off", says, [front, *volume]),
        Section("History", "Each objective in the order of evaluation.", smaller, grid="grid wide"),
    ]


def _history_of(record: Ledger, j: int, direction: Direction) -> Chart:
    """An objective in the order of evaluation, with what does not count."""
    alone = of_objective(record, j)
    shown = History.of(alone, direction)
    chart = replace(history_chart(shown), height=320)
    return chart if shown.axis is None else replace(chart, data=[*chart.data, *asides(alone, shown.axis, j)])


def _each(record: Ledger) -> list[tuple[int, Any]]:
    return list(enumerate(record.directions))


def of_objective(record: Ledger, j: int) -> Ledger:
    """The record with the j-th value in the place of the first."""
    names = names_of_values(record)
    header = {**record.header, "objectives": [names[j], *names[:j], *names[j + 1 :]]}
    return record.by_objective(j).described(header)


def hypervolumes(record: Ledger) -> tuple[list[int], list[float]]:
    """Trials after which the front's hypervolume was another one, and the volume then; as `hypervolume_so_far` has it.

    The reference point is the worst value of each objective among the first ten trials that have not failed.
    """
    signs = np.array([sign_of(direction) for direction in record.directions])
    own = [trial for trial in record.trials if trial.task is None]
    usable = [trial for trial in own if trial.status not in (Status.FAILED, Status.WITHDRAWN)]
    first = [signs * trial.values for trial in usable[:DESIGN] if trial.values]
    if not first or record.k > MEASURED:
        return [], []
    reference = np.max(first, axis=0)
    front, rows, volumes = np.empty((0, record.k)), [], []
    for trial in usable:
        if not trial.values or not is_feasible(trial):
            continue
        values = signs * trial.values
        if not (front <= values).all(1).any():
            front = np.vstack([front, values])
            front = front[non_dominated(front)]
            volumes.append(hypervolume(front, reference))
            rows.append(trial.id)
    return rows, volumes


def hypervolume_chart(record: Ledger) -> list[Chart]:
    """The hypervolume over time; none where it takes too long, or without a value."""
    rows, volumes = hypervolumes(record) if len(record) <= MOST else ([], [])
    if not rows:
        return []
    more = [f"hypervolume {volume:.5g}" for volume in volumes]
    last = len(record) - 1
    look = {"mode": "lines+markers", "marker": {"color": GOOD, "size": 5}, "line": {"shape": "hv"}}
    trace = line([*rows, last], [*volumes, volumes[-1]], GOOD, 2, trials=[*rows, rows[-1]], more=[*more, more[-1]],
                 showlegend=False, **look)  # fmt: skip
    layout = {"xaxis": titled("trial"), "yaxis": titled("hypervolume", rangemode="tozero")}
    return [Chart([trace], layout, 260)]
