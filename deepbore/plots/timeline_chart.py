"""`timeline`: when each evaluation began and ended, in as many rows as ran at the same time."""

import heapq
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from deepbore.data.ledger import Ledger
from deepbore.data.outcome import Status
from deepbore.data.replay import timed_in
from deepbore.data.trial import Span
from deepbore.plots.chart import Axis, Bars, Chart
from deepbore.plots.history_chart import Run
from deepbore.plots.on_matplotlib import drawn
from deepbore.plots.sources import ledger_of, some_of
from deepbore.plots.style import BAD, EARLIER, FAILED, GOOD

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BARS, ROWS = 1500, 16  # drawn at most; rows from which they become lower
KINDS = {  # of what is pending the outcome is about to be told
    "complete": (GOOD, (Status.COMPLETE, Status.PENDING)),
    "failed": (FAILED, (Status.FAILED,)),
    "pruned": (BAD, (Status.PRUNED,)),
    "withdrawn": (EARLIER, (Status.WITHDRAWN,)),
}


def spans_of(record: Ledger, times: str | Path | None = None) -> dict[int, Span]:
    """When each trial began and ended, as it says itself, or a file of times does; of those where it is known."""
    own = {
        trial.id: (trial.began, trial.ended)
        for trial in record.trials
        if trial.began is not None and trial.ended is not None
    }
    return own | ({} if times is None else {each.row: (each.began, each.ended) for each in timed_in(Path(times))})


def timeline_chart(run: Run, times: Mapping[int, Span] | None = None) -> Chart:
    """A bar for each evaluation, in as many rows as there were at the same time.

    Args:
        run: a study, or a record.
        times: when trials began and ended; None for what they say themselves.
    """
    record = ledger_of(run)
    spans = spans_of(record) if times is None else times
    known = {row: span for row, span in spans.items() if 0 <= row < len(record) and span[0] <= span[1]}
    trials = [trial for trial in some_of(record.trials, record.direction, BARS) if trial.id in known]
    title = "When each evaluation began and ended"
    if not trials:
        return Chart(title, [], remark="no trial says when it began and ended", height=130)
    start = min(span[0] for span in known.values())
    unit, length = unit_of(max(span[1] for span in known.values()) - start)
    lanes = _lanes({trial.id: known[trial.id] for trial in trials})
    layers = []
    for name, (colour, statuses) in KINDS.items():
        if rows := [trial.id for trial in trials if trial.status in statuses]:
            ends = (np.array([known[row] for row in rows]) - start) / length
            said = [f"took {seconds(known[row][1] - known[row][0])}" for row in rows]
            at = np.array([lanes[row] for row in rows])
            layers.append(Bars(ends[:, 0], ends[:, 1] - ends[:, 0], at, colour=colour, name=name, opacity=0.75,
                               trials=np.array(rows), said=said))  # fmt: skip
    count = 1 + max(lanes.values())
    workers = Axis("worker", ticks=[str(k) for k in range(1, count + 1)], is_reversed=True)
    return Chart(
        title, layers, Axis(f"{unit} since the first trial began"), workers, height=130 + 34 * min(count, ROWS)
    )


def _lanes(spans: Mapping[int, Span]) -> dict[int, int]:
    """A row for each span, such that spans of one row do not overlap, from as few rows as there can be."""
    lanes: dict[int, int] = {}
    busy: list[tuple[float, int]] = []  # when each row that is taken is free again
    free: list[int] = []
    for row, (begin, end) in sorted(spans.items(), key=lambda pair: pair[1]):
        while busy and busy[0][0] <= begin + 1e-3:
            heapq.heappush(free, heapq.heappop(busy)[1])
        lanes[row] = heapq.heappop(free) if free else len(busy)
        heapq.heappush(busy, (end, lanes[row]))
    return lanes


def unit_of(seconds: float) -> tuple[str, float]:
    """The unit that suits a duration, and its length in seconds."""
    for unit, length in (("days", 86400.0), ("hours", 3600.0), ("minutes", 60.0)):
        if seconds > 3 * length:
            return unit, length
    return "seconds", 1.0


def seconds(duration: float) -> str:
    """A duration as text, in the unit that suits it."""
    unit, length = unit_of(duration)
    return f"{duration / length:.3g} {unit}"


def timeline(
    run: Run,
    *,
    times: str | Path | None = None,
    path: str | os.PathLike[str] | None = None,
    axes: "Axes | None" = None,
) -> "Figure":
    """When each evaluation began and ended, in as many rows as ran at the same time.

    Args:
        run: a study, or the record of a journal (see `deepbore.data.replay.read_record`).
        times: file of when trials began and ended, where they do not say it; see `deepbore.data.notes`.
        path: where to save it (the suffix says the format); None for nowhere.
        axes: where to draw; None for a new figure.

    Raises:
        MissingPackage: without matplotlib.
    """
    record = ledger_of(run)
    return drawn(timeline_chart(record, spans_of(record, times)), axes, path)
