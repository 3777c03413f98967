"""`front` and `hypervolume`: several objectives against each other, and what the front has gained over time."""

import os
from typing import TYPE_CHECKING

import numpy as np

from deepbore.data.array_ranking import hypervolume as volume_of, non_dominated
from deepbore.data.ledger import Ledger
from deepbore.data.outcome import Status
from deepbore.data.ranking import is_feasible
from deepbore.data.trial import Trial, sign_of
from deepbore.errors import SettingError
from deepbore.plots.chart import Axis, Chart, Layer, Line, Points
from deepbore.plots.history_chart import Run
from deepbore.plots.on_matplotlib import drawn
from deepbore.plots.sources import MOST, finished_trials, ledger_of, names_of_values, some_of, withdrawn_values
from deepbore.plots.style import BAD, EARLIER, GOOD, GREY, INFEASIBLE, shortened

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DESIGN, MEASURED = 10, 4  # trials whose worst values are the reference; objectives up to which the volume is cheap


def of_several(run: Run) -> Ledger:
    """The record of a run with several objectives. Raises SettingError for one."""
    record = ledger_of(run)
    if record.k < 2:
        raise SettingError("a front needs at least two objectives, but this run has one. Use history.")
    return record


def front_chart(run: Run) -> Chart:
    """The first two of several values against each other, the trials of the front in colour."""
    record = of_several(run)
    names = [shortened(name, 40) for name in names_of_values(record)[:2]]
    best = {trial.id for trial in record.front}
    valued = [trial for trial in some_of(finished_trials(record.trials), record.direction) if trial.values]
    own = [trial for trial in valued if trial.task is None]
    kinds = {
        "beaten by another": (BAD, [trial for trial in own if is_feasible(trial) and trial.id not in best]),
        "beaten by none": (GOOD, [trial for trial in own if trial.id in best]),
        "infeasible": (INFEASIBLE, [trial for trial in own if not is_feasible(trial)]),
        "earlier task": (EARLIER, [trial for trial in valued if trial.task is not None]),
    }
    layers: list[Layer] = [_marks(trials, name, colour) for name, (colour, trials) in kinds.items() if trials]
    if gone := withdrawn_values(record):
        x, y = np.array([values[:2] for values in gone.values()]).T
        rows = np.array(list(gone))
        layers.append(Points(x, y, colour=GREY, name="withdrawn", size=7, symbols="thin x", trials=rows))
    across, up = (Axis(f"{name} ({direction})") for name, direction in zip(names, record.directions, strict=False))
    return Chart(f"{names[1]} against {names[0]} of each trial", layers, across, up, height=400, switches="xy")


def _marks(trials: list[Trial], name: str, colour: str) -> Points:
    x, y = np.array([(trial.values or ())[:2] for trial in trials], dtype=float).T
    return Points(x, y, colour=colour, name=name, size=7, trials=np.array([trial.id for trial in trials]))


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
            volumes.append(volume_of(front, reference))
            rows.append(trial.id)
    return rows, volumes


def hypervolume_chart(run: Run) -> Chart:
    """The hypervolume over time; a remark where it takes too long, or without a value."""
    record = of_several(run)
    rows, volumes = hypervolumes(record) if len(record) <= MOST else ([], [])
    title = f"Hypervolume of the front, up to the worst values of the first {DESIGN} trials"
    x, y = Axis("trial", form="whole"), Axis("hypervolume", from_zero=True)
    if not rows:
        why = "no value yet" if len(record) <= MOST and record.k <= MEASURED else "it takes too long to compute"
        return Chart(title, [], x, y, remark=why, height=260)
    ids, heights = np.array([*rows, len(record) - 1]), np.array([*volumes, volumes[-1]])
    said = [f"hypervolume {volume:.5g}" for volume in heights]
    line = Line(ids, heights, colour=GOOD, steps=True, is_marked=True, trials=np.array([*rows, rows[-1]]), said=said)
    return Chart(title, [line], x, y, height=260)


def front(run: Run, *, path: str | os.PathLike[str] | None = None, axes: "Axes | None" = None) -> "Figure":
    """The first two objectives of each trial against each other; the trials that none beats are green.

    Args:
        run: a study of several objectives, or the record of its journal (see `deepbore.data.replay.read_record`).
        path: where to save it (the suffix says the format); None for nowhere.
        axes: where to draw; None for a new figure.

    Raises:
        SettingError: for a run of one objective.
        MissingPackage: without matplotlib.
    """
    return drawn(front_chart(run), axes, path)


def hypervolume(run: Run, *, path: str | os.PathLike[str] | None = None, axes: "Axes | None" = None) -> "Figure":
    """The hypervolume that the front dominates, after each trial; the arguments are those of `front`.

    The reference point is the worst value of each objective among the first ten trials that have not failed. It is
    measured for up to four objectives and 3000 trials.
    """
    return drawn(hypervolume_chart(run), axes, path)
