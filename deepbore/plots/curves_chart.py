"""`curves`: what trials have reported while they ran, by step."""

import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from deepbore.data.outcome import Status
from deepbore.data.trial import Trial, sign_of
from deepbore.plots.chart import Axis, Chart, Layer, Line, Points
from deepbore.plots.history_chart import Run
from deepbore.plots.on_matplotlib import drawn
from deepbore.plots.sources import ledger_of, some_of
from deepbore.plots.style import BAD, BEST, FAILED, GOOD, RUNNING, ValueAxis

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

CURVES, STEPS = 200, 100  # drawn at most, and points of each
SHADES = ("#b5bcc2", "#a8bdb3", "#93bfac", "#74b598", "#4a9e7d", GOOD)  # of curves, from the worst to the best
ENDED = (Status.PRUNED, Status.FAILED)  # before their last step


def reporting(run: Run) -> list[Trial]:
    """The trials that have reported a value, but for withdrawn ones."""
    return [trial for trial in ledger_of(run).trials if trial.reports and trial.status is not Status.WITHDRAWN]


def curves_chart(run: Run) -> Chart:
    """What trials have reported by step, a line each; of more than 200 the best, the newest, and others evenly."""
    record = ledger_of(run)
    trials, sign = some_of(reporting(record), record.direction, CURVES), sign_of(record.direction)
    axis = ValueAxis.of(np.array([value for trial in trials for value in trial.reports.values()]), sign)
    layers: list[Layer] = []
    for name, colour, some in _kinds(trials, record.best if record.k == 1 else None, sign):
        layers += _drawn(some, axis, sign, name, colour)
    says = "" if layers else "no trial has reported a value"
    return Chart(
        "Reported value by step of each trial", layers, Axis("step"), Axis("reported value", axis), says, 400, "y"
    )


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


def _drawn(
    trials: Sequence[Trial], axis: ValueAxis | None, sign: float, name: str, colour: str
) -> Iterator[Line | Points]:
    """Curves of one colour as one line, with gaps between them, and a cross where a trial was ended."""
    parts = [_curve(trial, axis, sign) for trial in trials]
    if not parts:
        return
    x, y, values = (np.concatenate([np.append(part[k], np.nan) for part in parts]) for k in range(3))
    said = ["" if np.isnan(step) else f"step {step:g}: {value:.5g}" for step, value in zip(x, values, strict=True)]
    ids = np.concatenate([np.full(len(part[0]) + 1, trial.id) for trial, part in zip(trials, parts, strict=True)])
    width, dash = 2.6 if colour == BEST else 1.2, "dot" if colour == BAD else ""
    yield Line(x, y, width, dash, colour=colour, name=name, trials=ids, said=said)
    if ends := [(part, trial.id) for trial, part in zip(trials, parts, strict=True) if trial.status in ENDED]:
        at = np.array([[part[0][-1], part[1][-1]] for part, _ in ends]).T
        yield Points(at[0], at[1], colour=colour, symbols="x", trials=np.array([row for _, row in ends]))


def _curve(trial: Trial, axis: ValueAxis | None, sign: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Steps, where the values are drawn, and the values of a trial; evenly chosen ones of many."""
    steps = np.array(list(trial.reports), dtype=float)
    values = np.array(list(trial.reports.values()), dtype=float)
    kept = np.unique(np.linspace(0, len(steps) - 1, min(len(steps), STEPS)).astype(int))
    shown = np.where(np.isfinite(values), values, sign * np.inf)[kept]
    return steps[kept], shown if axis is None else axis.clip(shown), values[kept]


def curves(run: Run, *, path: str | os.PathLike[str] | None = None, axes: "Axes | None" = None) -> "Figure":
    """The learning curves: what each trial has reported by step. The greener, the better it is in the end.

    A cross is where a pruned or failed trial ended. Of more than 200 trials the best, the newest, and others evenly.

    Args:
        run: a study, or the record of a journal (see `deepbore.data.replay.read_record`).
        path: where to save it (the suffix says the format); None for nowhere.
        axes: where to draw; None for a new figure.

    Raises:
        MissingPackage: without matplotlib.
    """
    return drawn(curves_chart(run), axes, path)
