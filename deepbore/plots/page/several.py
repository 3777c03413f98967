"""`report_of_several`: runs beside each other on one page of HTML. Needs no torch."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from typing import Any

import numpy as np

from deepbore.data.ledger import Ledger
from deepbore.data.outcome import Status
from deepbore.data.ranking import best_among
from deepbore.data.trial import Span, sign_of
from deepbore.plots.chart import Axis, Chart
from deepbore.plots.history_chart import COLOURS, steps
from deepbore.plots.on_plotly import drawing
from deepbore.plots.page.page import Page, render
from deepbore.plots.page.sections import Section
from deepbore.plots.sources import names_of_values
from deepbore.plots.style import ValueAxis, number
from deepbore.plots.timeline_chart import seconds
from deepbore.text import visible


@dataclass(frozen=True)
class NamedRun:
    """A run on the page.

    Attributes:
        name: of the run.
        record: what its journal says; of one value, and of the same direction as the others.
        spans: when each trial began and ended, in seconds since 1970.
        facts: more to say of it, name -> text: the same names for all.
    """

    name: str
    record: Ledger
    spans: Mapping[int, Span] = field(default_factory=dict)
    facts: Mapping[str, str] = field(default_factory=dict)

    @property
    def best(self) -> np.ndarray:
        """The best feasible value after each finished trial of this task, in the user's sign; NaN before the first."""
        told = [trial for trial in self.record.trials if trial.status.is_told and trial.task is None]
        return best_among(told, self.record.direction, self.record.budget is not None)

    @property
    def cells(self) -> dict[str, str]:
        """Its line in the table."""
        best, status = self.record.best, self.record.status.tolist()
        took = (
            max(end for _, end in self.spans.values()) - min(begin for begin, _ in self.spans.values())
            if self.spans
            else None
        )
        return {
            "best": "–" if best is None else number(best.value, 5),
            "in trial": "–" if best is None else str(best.id),
            "trials": str(len(status)),
            **{str(each): str(status.count(each)) for each in (Status.FAILED, Status.PRUNED)},
            "time": "–" if took is None else seconds(took),
            **self.facts,
        }


def report_of_several(runs: Sequence[NamedRun], *, title: str = "Runs", every: float | None = None) -> Page:
    """A page of HTML with the best values of several runs over their trials, and a table of them, the best first.

    Args:
        runs: one or more, with one value and the same direction.
        title: of the page.
        every: seconds after which the page reloads itself; None for never.

    Returns:
        the HTML, a `str` that a notebook shows; text of the user is escaped in it.
    """
    sign = sign_of(runs[0].record.direction)
    ends = {run.name: math.inf if run.record.best is None else sign * float(run.record.best.value or 0) for run in runs}
    ranked = sorted(runs, key=lambda run: ends[run.name])
    first = ranked[0]
    found = "none yet" if first.record.best is None else f"{number(first.record.best.value, 5)} in {first.name}"
    facts: dict[str, Any] = {
        "best value": found,
        "direction": first.record.direction,
        "runs": len(runs),
        "trials": sum(len(run.record) for run in runs),
    }
    says = "The best value of each run after each finished trial. A click on a name in the legend hides its run."
    sections = [Section("Best so far", says, [drawing(_chart(ranked, sign))]), Section("Runs", html=_table(ranked))]
    return Page(render(title, facts, sections, None, every))


def _chart(runs: Sequence[NamedRun], sign: float) -> Chart:
    """A line of steps for each run."""
    bests = [run.best for run in runs]
    axis, up = ValueAxis.of(np.concatenate(bests), sign), names_of_values(runs[0].record)[0]
    if axis is None:
        return Chart("best so far", [], Axis("trial"), Axis(up), remark="no value yet", height=260)
    layers = []
    for k, (run, best) in enumerate(zip(runs, bests, strict=True)):
        line = steps(np.arange(1, len(best) + 1), best, colour=COLOURS[k % len(COLOURS)], name=run.name)
        said = [f"{run.name}\n{number(float(y), 5)} after {x} trials" for x, y in zip(line.x, line.y, strict=True)]
        layers.append(replace(line, y=axis.clip(line.y), is_marked=True, said=said))
    return Chart("best so far", layers, Axis("trial"), Axis(up, axis), height=440, switches="xy")


def _table(runs: Sequence[NamedRun]) -> str:
    """The runs in lines, the best first; columns in which nothing stands are left out."""
    rows = {run.name: run.cells for run in runs}
    names = [
        name for name in next(iter(rows.values())) if any(cells[name] not in ("0", "–") for cells in rows.values())
    ]
    head = "".join(f"<th>{escape(name)}</th>" for name in ("run", *names))
    lines = [
        f"<tr><td>{escape(visible(run))}</td>"
        + "".join(f"<td>{escape(visible(cells[name]))}</td>" for name in names)
        + "</tr>"
        for run, cells in rows.items()
    ]
    return f'<div class="scroll"><table class="runs"><tr>{head}</tr>{"".join(lines)}</table></div>'
