"""Sections of the page that a journal fills: parallel coordinates, the best configuration, failures, the table of
trials. Needs no torch."""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from deepbore.data.inbox import Inbox
from deepbore.data.ledger import Ledger
from deepbore.data.outcome import Status
from deepbore.data.summary import summary_of
from deepbore.data.trial import Trial
from deepbore.plots.on_plotly import Drawing, drawing
from deepbore.plots.parallel_chart import Parallel, parallel_chart
from deepbore.plots.sources import MOST, names_of_values, some_of
from deepbore.plots.style import number
from deepbore.text import visible

LINES, AXES = 300, 14  # of parallel coordinates
REASONS, EXAMPLES, LONG = 12, 8, 300


@dataclass(frozen=True)
class Section:
    """A part of the page.

    Attributes:
        title: its headline.
        says: a sentence that explains it, as plain text.
        charts: of the section.
        html: what stands below, as HTML.
        grid: how the charts stand: "" below each other, "grid" or "grid wide" side by side.
    """

    title: str
    says: str = ""
    charts: Sequence[Drawing] = ()
    html: str = ""
    grid: str = ""


def summary_section(record: Ledger) -> Section:
    """A run in at most ten lines, as text: those of `deepbore summary`."""
    said = summary_of(record, record.space, record.header.get("objectives") or ())
    rows = (
        f"<div><b>{_text(what)}</b><span>{_text(text)}</span></div>"
        for what, _, text in (line.partition(": ") for line in said.lines)
    )
    return Section("In ten lines", html=f'<div class="lines">{"".join(rows)}</div>')


def parallel_section(record: Ledger) -> Section | None:
    """The lines of a run with at least two parameters and a trial that has ended; else None."""
    names = list(record.space)[:AXES]
    shown = Parallel.of(record, names, LINES)
    if len(names) < 2 or not shown.trials:
        return None
    says = (
        "Every trial is a line through its parameters to its value: the greener the better; failed ones are red and "
        "end before it, those that violate a constraint are pink. A line beside an axis lacks the parameter."
    )
    says += f" Of several values {names_of_values(record)[0]} counts." if record.k > 1 else ""
    says += f" The first {AXES} of {len(record.space)} parameters." if len(record.space) > AXES else ""
    conditional = any("when" in record.space[name] for name in names)
    return Section("Parallel coordinates", says, [drawing(parallel_chart(shown, conditional=conditional))])


def commands_section(inbox: Inbox | None) -> Section | None:
    """What was left for a run to do, and is not done: it waits, is no command, or was refused; None for nothing."""
    if inbox is None:
        return None
    mail = inbox.mail()
    lines = [f"waits: {each.verb}" for each in mail.waiting[:EXAMPLES]]
    lines += [f"no command: {each}" for each in mail.malformed[:EXAMPLES]]
    refused = [each for each in mail.answers if each.get("refused")]
    lines += [f"refused: {each.get('verb')}: {each['refused']}" for each in refused[-EXAMPLES:]]
    if not lines:
        return None
    says = "What the dashboard, or another program, has left for this run to do, and what has not come of it."
    return Section("Commands", says, html=f"<ul>{''.join(f'<li>{_text(line[:LONG])}</li>' for line in lines)}</ul>")


# --- trials ----------------------------------------------------------------------------------------------------------


def trials_table(record: Ledger) -> dict[str, Any]:
    """What the page's script makes the table of: columns, rows, and which row is the best."""
    trials = some_of(record.trials, record.direction)
    values = names_of_values(record)
    extras: dict[str, list[Any]] = {
        "budget": [trial.budget for trial in trials],
        "seconds": [None if trial.duration is None else round(trial.duration, 3) for trial in trials],
        "task": [trial.task for trial in trials],
        "constraints": [_listed(trial.constraints) for trial in trials],
        "reports": [len(trial.reports) or None for trial in trials],
        "former value": [former_values(trial) for trial in trials],
        "withdrawn because": [trial.reason if trial.status is Status.WITHDRAWN else None for trial in trials],
        **_attributes(trials),
        **_metrics(trials),
        "tags": [", ".join(map(visible, trial.tags)) or None for trial in trials],
        "note": [visible(trial.note[:LONG]) or None for trial in trials],
        "artifacts": [", ".join(visible(each.name) for each in trial.artifacts) or None for trial in trials],
    }
    kept = {name: column for name, column in extras.items() if any(each is not None for each in column)}
    names = ["trial", *values, "status", *record.space, *kept]
    rows = [
        [
            trial.id,
            *(trial.values or [None] * record.k),
            trial.status.name.lower(),
            *(_param(trial.params[name]) if name in trial.params else None for name in record.space),
            *(column[k] for column in kept.values()),
        ]
        for k, trial in enumerate(trials)
    ]
    columns = [{"name": visible(name), "number": _is_numeric(row[k] for row in rows)} for k, name in enumerate(names)]
    best = record.best if record.k == 1 else None
    first = {"column": 1, "up": record.direction == "minimize"}
    status = 1 + record.k
    return {
        "columns": columns,
        "rows": rows,
        "best": None if best is None else best.id,
        "status": status,
        "params": list(record.space),
        "suspicious": [trial.id for trial in trials if trial.suspicious],
        "first": first,
    }


def trials_section(record: Ledger) -> Section:
    """The table, which the script fills."""
    few = f" Of {len(record)} trials {MOST} at most are listed." if len(record) > MOST else ""
    says = (
        "A click on a headline sorts by it, another turns the order; a click on a trial, here or in a chart, shows all "
        f"of it, to be copied. The filter takes words, and conditions such as {_example(record)}.{few}"
    )
    if any(trial.status is Status.WITHDRAWN for trial in record.trials):
        says += " Withdrawn trials are struck out."
    if any(trial.suspicious for trial in record.trials):
        says += " Suspicious ones are orange."
    return Section("Trials", says, html=TABLE)


TABLE = """<div class="tools"><input id="filter" type="search" placeholder="filter" aria-label="filter trials">
<span id="count" role="status"></span><button type="button" id="csv">CSV</button></div>
<div class="scroll high"><table id="trials"></table></div>
<dialog id="trial" aria-labelledby="who"></dialog>"""


def _example(record: Ledger) -> str:
    """A condition on the first number of the space."""
    numbers = (name for name, declared in record.space.items() if declared.get("type") in ("real", "integer"))
    return f"{visible(next(numbers, 'trial'))}<1 or status=failed"


def _param(value: Any) -> Any:
    """A value of the configuration: a number or a text as it is, anything else in a list, as its JSON.

    What a number of JavaScript would alter is its text.
    """
    if _is_altered(value):
        return {"exact": json.dumps(value)}
    is_plain = isinstance(value, (int, float, str)) and not isinstance(value, bool)
    if isinstance(value, str) and (visible(value) != value or len(value) > LONG):
        return [value]
    return value if is_plain else [value]


def _is_altered(value: Any) -> bool:
    """Whether a value is, or has within it, a whole number that JavaScript rounds."""
    if isinstance(value, dict):
        return any(map(_is_altered, value.values()))
    if isinstance(value, list | tuple):
        return any(map(_is_altered, value))
    return isinstance(value, int) and abs(value) > 2**53


def _attributes(trials: Sequence[Trial]) -> dict[str, list[Any]]:
    """A column for each attribute, but for tracebacks, which stand with the failures."""
    names = dict.fromkeys(name for trial in trials for name in trial.attributes if name != "traceback")
    return {
        name: [_cell(trial.attributes[name]) if name in trial.attributes else None for trial in trials]
        for name in names
    }


def _metrics(trials: Sequence[Trial]) -> dict[str, list[Any]]:
    """A column for each metric that was logged: its latest value."""
    names = dict.fromkeys(name for trial in trials for name in trial.metrics)
    return {
        name: [list(trial.metrics[name].values())[-1] if trial.metrics.get(name) else None for trial in trials]
        for name in names
    }


def _cell(value: Any) -> Any:
    """A value as a cell of the table: a number, or a text."""
    if _is_altered(value):
        return json.dumps(value)[:LONG]
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return value
    if isinstance(value, (dict, list, tuple)):
        return json.dumps(value)[:LONG]
    return visible(str(value)[:LONG])


def former_values(trial: Trial) -> float | str | None:
    """What a trial was told before it was corrected or withdrawn; None for one that never was."""
    told = [each.values or ("failed",) for each in trial.former]
    if len(told) == 1 and trial.former[0].value is not None and len(told[0]) == 1:
        return trial.former[0].value
    return "; ".join(", ".join(one if isinstance(one, str) else f"{one:.5g}" for one in each) for each in told) or None


def _listed(numbers: tuple[float, ...] | None) -> str | None:
    return None if numbers is None else ", ".join(f"{each:.4g}" for each in numbers)


def _is_numeric(cells: Iterable[Any]) -> bool:
    known = [cell for cell in cells if cell is not None]
    return bool(known) and all(isinstance(cell, (int, float)) for cell in known)


# --- the best, and failures ------------------------------------------------------------------------------------------


def best_section(record: Ledger) -> Section | None:
    """The best configuration; None while there is none, or with several values."""
    best = record.best if record.k == 1 else None
    if best is None:
        return None
    cells = (
        f'<div><b>{_text(name)}</b><span title="{_text(value)}">{_text(number(value, 5))}</span></div>'
        for name, value in best.params.items()
    )
    doubt = f"<p>The value is suspicious: it is {_text(best.suspicious)}.</p>" if best.suspicious else ""
    copies = f'<div class="tools" data-copies="{best.id}"></div>'
    return Section("Best configuration", html=f'<div class="pairs">{"".join(cells)}</div>{doubt}{copies}')


def failures_section(record: Ledger) -> Section | None:
    """Why trials have failed, the most frequent reason first; None if none has."""
    failed = [trial for trial in record.trials if trial.status is Status.FAILED]
    if not failed:
        return None
    groups: dict[str, list[Trial]] = {}
    for trial in failed:
        groups.setdefault(_gist(trial.reason), []).append(trial)
    ranked = sorted(groups.items(), key=lambda pair: -len(pair[1]))
    rows = "".join(_reason(trials) for _, trials in ranked[:REASONS])
    more = f"<p class=note>{len(ranked) - REASONS} more reasons.</p>" if len(ranked) > REASONS else ""
    says = f"{len(failed)} of {len(record)} trials have failed. Equal reasons stand together, but for their numbers."
    head = "<tr><th>count</th><th>reason</th><th>trials</th></tr>"
    return Section(
        "Failures", says, html=f'<div class="scroll"><table class="reasons">{head}{rows}</table></div>{more}'
    )


def _gist(reason: str | None) -> str:
    """The first line of a reason with every number as #."""
    return re.sub(r"\d+", "#", (reason or "no reason was given").strip().partition("\n")[0][:LONG])


def _text(value: Any) -> str:
    """A user's text as HTML."""
    return escape(visible(str(value), keep="\n\t"))


def _reason(trials: Sequence[Trial]) -> str:
    """One line of the table: how many, the reason of the first of them with its traceback, and which."""
    first = next((trial for trial in trials if trial.attributes.get("traceback")), trials[0])
    said = _text((first.reason or "no reason was given").strip()[:LONG])
    if first.attributes.get("traceback"):
        trace = _text(first.attributes["traceback"])
        said = f"<details><summary>{said}</summary><pre>{trace}</pre></details>"
    ids = ", ".join(str(trial.id) for trial in trials[:EXAMPLES]) + (", …" if len(trials) > EXAMPLES else "")
    return f"<tr><td>{len(trials)}</td><td>{said}</td><td>{ids}</td></tr>"
