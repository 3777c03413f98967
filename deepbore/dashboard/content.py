"""What stands on the page of a run, as plain data: the sections of `deepbore report`, each with a mark of its content.

A page gets the sections whose mark it does not have. Of a long run some trials are drawn: the best, the newest, those
that were the best once, and others evenly.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from html import escape
from typing import Any

import numpy as np

from deepbore.dashboard.runs import Entry
from deepbore.data.inbox import Command
from deepbore.data.ledger import Ledger
from deepbore.data.outcome import Status
from deepbore.data.trial import Trial
from deepbore.plots.on_plotly import Drawing, drawing
from deepbore.plots.page.curves import curves_section, history_section, timeline_section, trade_off_sections
from deepbore.plots.page.page import about, plain, summary
from deepbore.plots.page.sections import (
    AXES,
    Section,
    best_section,
    failures_section,
    parallel_section,
    trials_section,
    trials_table,
)
from deepbore.plots.parallel_chart import DeclaredScale
from deepbore.plots.sources import names_of_values, thinned
from deepbore.plots.timeline_chart import spans_of
from deepbore.plots.values_chart import values_charts
from deepbore.text import visible

MOST_WAITING, LONG = 20, 300  # commands that are listed; characters of one
SHOWN = 600  # trials of a long run that are drawn and listed


@dataclass(frozen=True)
class Part:
    """A part of a page: its name, a mark of its content, and the content as JSON."""

    name: str
    mark: str
    text: str

    @classmethod
    def of(cls, name: str, data: Any) -> "Part":
        """Plain data as a part."""
        text = written(data)
        return cls(name, hashlib.blake2b(text.encode(), digest_size=6).hexdigest(), text)


class Said:
    """What comes up under the pointer, by trial: made anew only for trials that have changed."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Trial, str]] = {}

    def of(self, trials: Sequence[Trial], names: Sequence[str]) -> dict[str, str]:
        """The texts of some trials, by number."""
        known, self._known = self._known, {}
        for trial in trials:
            before = known.get(trial.id)
            is_known = before is not None and before[0] == trial and before[0].ended == trial.ended
            text = before[1] if before is not None and is_known else about(trial, names)
            self._known[trial.id] = trial, text
        return {str(row): text for row, (_, text) in self._known.items()}


class Content:
    """The page of one run, made anew when the run has changed; several readers share it.

    Args:
        entry: the run.
    """

    def __init__(self, entry: Entry):
        self.entry = entry
        self._made: tuple[int, list[Part]] | None = None
        self._said = Said()

    def news(self, known: Sequence[str]) -> str:
        """The page as JSON, without the parts that a reader has already, by their marks."""
        with self.entry.lock:
            version = self.entry.version
            if self._made is None or self._made[0] != version:
                self._made = version, list(parts_of(self.entry, self._said))
            parts = self._made[1]
        kept = set(known)
        order = json.dumps([[part.name, part.mark] for part in parts])
        new = ",".join(f"{json.dumps(part.name)}:{part.text}" for part in parts if part.mark not in kept)
        return f'{{"version":{version},"order":{order},"parts":{{{new}}}}}'


def parts_of(entry: Entry, said: Said) -> Iterator[Part]:
    """The page of a run: sections, the table with what comes up under the pointer, and what is not drawn."""
    whole = entry.ledger
    if whole is None or not whole.header:
        return
    shown = part_of(whole)
    names, trials = names_of_values(whole), shown.trials
    for section in sections_of(shown, entry):
        yield Part.of("-".join(section.title.lower().split()), as_data(section))
    facts = [[str(name), visible(str(value))] for name, value in summary(shown).items()]
    yield Part.of("*facts", facts)
    yield Part.of("*about", said.of(trials, names))
    yield Part.of("*table", trials_table(shown))
    yield Part.of("*scales", scales_of(whole, trials))
    yield Part.of("*run", run_of(whole, entry))
    yield Part.of("*logged", logged_of(trials))


def run_of(record: Ledger, entry: Entry) -> dict[str, Any]:
    """What a reader may change of a run, and what waits to be changed."""
    mail = entry.inbox.mail()
    return {
        "note": visible(record.remarks.get(None, ""), keep="\n\t"),
        "tags": [visible(each) for each in record.tags.get(None, ())],
        "fixed": [[visible(str(name)), visible(str(value))] for name, value in record.fixed.items()],
        "queue": [{visible(str(name)): value for name, value in part.items()} for part in record.queue[:MOST_WAITING]],
        "params": [_field(name, declared) for name, declared in record.space.items()],
        "waiting": [{"id": each.id, "says": _in_words(each), "at": each.at} for each in mail.waiting[:MOST_WAITING]],
        "answers": [_answered(each) for each in mail.answers],
        "malformed": [visible(each[:LONG]) for each in mail.malformed[:MOST_WAITING]],
        "verbs": list(entry.verbs),
        "why": entry.why,
    }


def _field(name: str, declared: Mapping[str, Any]) -> dict[str, Any]:
    """What a form needs of a parameter."""
    choices = declared.get("choices")
    names = list(choices) if isinstance(choices, list | dict) else []
    return {"name": name, "low": declared.get("low"), "high": declared.get("high"), "choices": names}


def _in_words(command: Command) -> str:
    wish = command.wish
    return visible(f"{command.verb} {json.dumps(wish) if wish else ''}".strip()[:LONG])


def _answered(answer: Mapping[str, Any]) -> dict[str, Any]:
    refused = answer.get("refused")
    says = visible(str(answer.get("verb"))[:LONG])
    at = answer.get("at")
    return {
        "says": says,
        "refused": visible(str(refused)[:LONG]) if refused else "",
        "at": at if isinstance(at, float | int) else 0,
    }


def logged_of(trials: Sequence[Trial]) -> dict[str, Any]:
    """Notes, tags, metrics and artifacts of trials, by number; of those that have any."""
    return {
        str(trial.id): _logged(trial)
        for trial in trials
        if trial.note or trial.tags or trial.metrics or trial.artifacts
    }


def _logged(trial: Trial) -> dict[str, Any]:
    return {
        "note": visible(trial.note, keep="\n\t"),
        "tags": [visible(each) for each in trial.tags],
        "metrics": [
            [visible(name), list(curve.values())[-1], len(curve)] for name, curve in trial.metrics.items() if curve
        ],
        "artifacts": [
            {"name": visible(each.name), "size": each.size, "digest": each.digest, "path": visible(each.path)}
            for each in trial.artifacts
        ],
    }


def sections_of(record: Ledger, entry: Entry) -> Iterator[Section]:
    """The sections, those that a reader looks at most often first."""
    first = [history_section(record, SHOWN)] if record.k == 1 else trade_off_sections(record)
    yield from first
    others = (
        best_section(record),
        curves_section(record),
        parallel_section(record),
        _values_section(record),
        failures_section(record),
        timeline_section(record, spans_of(record)),
        trials_section(record),
        _configuration(entry.configuration),
    )
    yield from (section for section in others if section is not None)


def _values_section(record: Ledger) -> Section | None:
    charts = [drawing(chart) for chart in values_charts(record)]
    says = f"{names_of_values(record)[0]} of each trial over each parameter: what the trials say, without a model."
    return Section("Values by parameter", says, charts, grid="grid") if charts else None


def _configuration(text: str) -> Section | None:
    if not text:
        return None
    shown = escape(visible(text, keep="\n\t"))
    return Section("Configuration", html=f"<details><summary>all settings</summary><pre>{shown}</pre></details>")


def part_of(record: Ledger) -> Ledger:
    """The record itself, or, of a long run, with some trials only, and without the threshold, which needs all."""
    if len(record) <= SHOWN:
        return record
    header = {name: each for name, each in record.header.items() if name != "recipe"}
    return record.with_records_of(some_rows(record).tolist()).described(header)


def some_rows(record: Ledger) -> np.ndarray:
    """Rows to draw of a long run: the best, the newest, others evenly, and each that was the best once (ascending)."""
    values = record.values[:, 0]
    _, was_best = lowest_so_far(np.where(may_count(record), values, np.inf))
    pending = record.statistics.pending[-SHOWN // 10 :]
    rows: np.ndarray = np.unique(np.concatenate([thinned(values, SHOWN), was_best[-SHOWN:], pending]))
    return rows


def lowest_so_far(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The lowest of the values up to each (n), and where it falls (ascending); infinite values don't count."""
    lowest = np.minimum.accumulate(values)
    return lowest, np.flatnonzero(np.diff(lowest, prepend=np.inf) < 0)


def may_count(record: Ledger) -> np.ndarray:
    """Which rows are feasible ones of this run with a value (n booleans)."""
    feasible = ~(record.constraints > 0).any(-1)
    found: np.ndarray = (record.status == Status.COMPLETE) & (record.tasks == 0) & feasible
    return found


def scales_of(record: Ledger, trials: Sequence[Trial]) -> list[dict[str, Any]]:
    """The axes of the parallel coordinates, by which the page finds the trials within a brush."""
    names = list(record.space)[:AXES]
    found = []
    for name in names:
        seen = [trial.params[name] for trial in trials if name in trial.params]
        found.append({"name": name, **asdict(DeclaredScale.of(record.space[name], seen))})
    return found


# --- as data ---------------------------------------------------------------------------------------------------------


def as_data(section: Section) -> dict[str, Any]:
    """A section as plain data; what stands in `html` is escaped already."""
    charts = [chart_data(chart) for chart in section.charts]
    return {"title": section.title, "says": section.says, "charts": charts, "html": section.html, "grid": section.grid}


def chart_data(chart: Drawing) -> dict[str, Any]:
    """A drawing as the page's script takes it."""
    layout = {"height": chart.height, **chart.layout}
    return {"data": chart.data, "layout": layout, "turns": chart.turns, "log": chart.log, "height": chart.height}


def written(data: Any) -> str:
    """Data as JSON; what is no finite number becomes null."""
    try:
        return json.dumps(data, allow_nan=False, default=float, separators=(",", ":"))
    except ValueError:
        return json.dumps(plain(data), allow_nan=False, separators=(",", ":"))
