"""`Chart` and `Section`: what the page is made of. Light to import."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

from deepbore.data.outcome import Status
from deepbore.data.trial import Direction, Trial, sign_of
from deepbore.plots.names import short_names, shortened
from deepbore.plots.value_axis import ValueAxis

LINES, LETTERS = 24, 60  # of a text that comes up under the pointer
MOST = 3000  # trials that are drawn and listed
TICKS = 6  # of a logarithmic axis, at most


@dataclass(frozen=True)
class Chart:
    """A picture as plotly.js takes it.

    Attributes:
        data: its traces. One with "trials", a number for each of its points, shows these under the pointer.
        layout: its axes and more; the page adds fonts and margins.
        height: in pixels.
        width: least width in pixels; what is narrower scrolls.
    """

    data: Sequence[Mapping[str, Any]]
    layout: Mapping[str, Any] = field(default_factory=dict)
    height: int = 340
    width: int = 0


@dataclass(frozen=True)
class Section:
    """A part of the page.

    Attributes:
        title: its headline.
        says: a sentence that explains it, as plain text.
        charts: what is drawn.
        html: what stands below, as HTML.
        grid: how the charts stand: "" below each other, "grid" or "grid wide" side by side.
    """

    title: str
    says: str = ""
    charts: Sequence[Chart] = ()
    html: str = ""
    grid: str = ""


def text(value: Any, most: int = LETTERS) -> str:
    """Text from a user as one line for plotly, which reads some HTML."""
    return escape(shortened(value, most), quote=False)


def texts(values: Sequence[Any], most: int) -> list[str]:
    """Several of them, which differ."""
    return [escape(name, quote=False) for name in short_names(values, most)]


def number(value: Any) -> str:
    """A native value in few digits."""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def about(trial: Trial, names: Sequence[str] | None = None) -> str:
    """What comes up when the pointer is on a trial: its value and its configuration."""
    values = trial.values or ()
    found = ", ".join(number(value) for value in values) if values else trial.status.name.lower()
    lines = [f"<b>trial {trial.id}: {text(found)}</b>"]
    lines += [
        f"{text(name, 30)}: {text(number(value), 40)}"
        for name, value in trial.params.items()
        if not names or name in names
    ]
    if trial.task is not None:
        lines.append(f"task: {text(trial.task)}")
    if trial.reason:
        lines.append(text(trial.reason))
    hidden = len(lines) - LINES
    return "<br>".join(lines[:LINES] + ([f"and {hidden} more"] if hidden > 0 else []))


def axis_of(shown: ValueAxis | None, title: str) -> dict[str, Any]:
    """The layout of an axis of values."""
    if shown is None:
        return {"title": {"text": title}}
    cut = " (outliers at the edge)" if shown.cut else ""
    named = {"title": {"text": title + cut}, "range": ends(shown)}
    if not shown.log:
        return {**named, "type": "linear"}
    decades = math.log10(shown.high / shown.low)
    powers = {"dtick": math.ceil(decades / TICKS)} if decades > 2 else {}  # plotly's own say 2 and 5 between them
    return {**named, "type": "log", **powers}


def ends(shown: ValueAxis) -> list[float]:
    """The range of an axis as plotly takes it: exponents on a log scale."""
    return [math.log10(shown.low), math.log10(shown.high)] if shown.log else [shown.low, shown.high]


def clipped(values: Sequence[float], shown: ValueAxis) -> list[float]:
    """Values with those outside of an axis at its ends."""
    return [min(max(value, shown.low), shown.high) for value in values]


def some_of(trials: Sequence[Trial], direction: Direction, most: int = MOST) -> list[Trial]:
    """At most so many trials in order: a third the best, a third the newest, the others evenly."""
    if len(trials) <= most:
        return list(trials)
    sign = sign_of(direction)
    valued = [trial for trial in trials if trial.value is not None]
    chosen = {trial.id for trial in sorted(valued, key=lambda trial: sign * (trial.value or 0.0))[: most // 3]}
    chosen |= {trial.id for trial in trials[-(most // 3) :]}
    chosen |= {trial.id for trial in trials[:: -(-len(trials) // (most // 3))]}
    return [trial for trial in trials if trial.id in chosen]


def finished(trials: Sequence[Trial]) -> list[Trial]:
    """Those that are not pending."""
    return [trial for trial in trials if trial.status is not Status.PENDING]


def note(words: str) -> dict[str, Any]:
    """Words in the middle of a picture, where there is nothing to draw."""
    return {"text": words, "showarrow": False, "xref": "paper", "yref": "paper", "x": 0.5, "y": 0.5}
