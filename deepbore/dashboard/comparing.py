"""`compared`: several runs side by side: the best value of each after each trial, on one chart."""

from collections.abc import Sequence
from contextlib import ExitStack

import numpy as np

from deepbore.dashboard.content import chart_data, lowest_so_far, may_count, written
from deepbore.dashboard.runs import Entry
from deepbore.data.ledger import Ledger
from deepbore.data.trial import sign_of
from deepbore.plots.chart import Axis, Chart, Layer, Line
from deepbore.plots.history_chart import COLOURS
from deepbore.plots.on_plotly import drawing
from deepbore.plots.sources import names_of_values
from deepbore.plots.style import ValueAxis, shortened

MOST_RUNS = 20  # on one chart


def compared(entries: Sequence[Entry]) -> str:
    """The chart of some runs as JSON, and why some are not on it."""
    with ExitStack() as held:
        for entry in sorted(entries[:MOST_RUNS], key=lambda each: each.key):
            held.enter_context(entry.lock)
        return _compared(entries[:MOST_RUNS], [entry.name for entry in entries[MOST_RUNS:]])


def _compared(entries: Sequence[Entry], surplus: Sequence[str]) -> str:
    known = [(entry.name, entry.ledger) for entry in entries if entry.ledger is not None]
    several = [name for name, ledger in known if ledger.k > 1]
    single = [(name, ledger) for name, ledger in known if ledger.k == 1]
    direction = single[0][1].direction if single else "minimize"
    same = [(name, ledger) for name, ledger in single if ledger.direction == direction]
    others = [name for name, ledger in single if ledger.direction != direction]
    left = [f"{name} has several objectives" for name in several]
    left += [f"{name} does not {direction} its values" for name in others]
    left += [f"{name} is one more than the {MOST_RUNS} runs of a chart" for name in surplus]
    return written({"chart": chart_data(drawing(chart_of(same))) if same else None, "left_out": left})


def chart_of(runs: Sequence[tuple[str, Ledger]]) -> Chart:
    """A line of steps for each of some runs of one value and the same direction.

    Args:
        runs: names and ledgers.
    """
    lines = [best_line(ledger) for _, ledger in runs]
    sign, title = sign_of(runs[0][1].direction), names_of_values(runs[0][1])[0]
    axis = ValueAxis.of(np.concatenate([y for _, y in lines]), sign)
    if axis is None:
        return Chart("best so far", [], remark="no value yet", height=260)
    layers: list[Layer] = []
    for k, ((name, _), (x, y)) in enumerate(zip(runs, lines, strict=True)):
        colour, label = COLOURS[k % len(COLOURS)], shortened(name, 40)
        said = [f"{label}: {value:.5g} after {at} trials" for at, value in zip(x.tolist(), y.tolist(), strict=True)]
        layers.append(Line(x, axis.clip(y), colour=colour, name=label, steps=True, is_marked=True, said=said))
    return Chart(f"best {title} so far", layers, Axis("trials", form="whole"), Axis(f"best {title}", axis), height=440,
                 switches="xy")  # fmt: skip


def best_line(ledger: Ledger) -> tuple[np.ndarray, np.ndarray]:
    """After how many finished trials of this run the best value changed, and to what; the last one, too."""
    order = np.concatenate([[], *(np.atleast_1d(np.asarray(each)) for each in ledger.finished)]).astype(int)
    order = order[ledger.tasks[order] == 0]
    if ledger.budget is not None and len(order):
        order = order[ledger.budgets[order] == ledger.budgets[order].max()]
    lowest, changes = lowest_so_far(np.where(may_count(ledger)[order], ledger.values[order, 0], np.inf))
    if len(changes) and changes[-1] != len(lowest) - 1:
        changes = np.append(changes, len(lowest) - 1)
    return changes + 1, ledger.signs[0] * lowest[changes]
