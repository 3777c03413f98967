"""`report`: a run on one page of HTML that needs nothing else. Needs no torch; the classifier's part does."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Union

from deepbore.component import class_name
from deepbore.data.inbox import Inbox
from deepbore.data.ledger import Ledger
from deepbore.data.outcome import Status
from deepbore.data.ranking import is_feasible
from deepbore.data.trial import Trial
from deepbore.plots.on_plotly import Drawing, text
from deepbore.plots.page.curves import curves_section, history_section, timeline_section, trade_off_sections
from deepbore.plots.page.sections import (
    Section,
    best_section,
    commands_section,
    failures_section,
    former_values,
    parallel_section,
    summary_section,
    trials_section,
    trials_table,
)
from deepbore.plots.sources import names_of_values, record_of, require_study
from deepbore.plots.style import number
from deepbore.plots.timeline_chart import seconds, spans_of
from deepbore.text import visible

if TYPE_CHECKING:
    from deepbore.study import Study

LINE_ENDS = "\n\t"
LINES = 24  # of a text that comes up under the pointer


class Page(str):
    """HTML that a notebook shows in a frame."""

    def _repr_html_(self) -> str:
        return f'<iframe srcdoc="{escape(self)}" style="width: 100%; height: 900px; border: 0"></iframe>'


def report(
    run: Union["Study", Ledger],
    *,
    title: str = "Report",
    facts: Mapping[str, Any] | None = None,
    configuration: str = "",
    times: str | Path | None = None,
    every: float | None = None,
    inbox: Inbox | None = None,
) -> Page:
    """A page of HTML with the results of a run: a table to sort, and charts with details under the pointer.

    plotly.js is in the page (1.5 MB), and nothing is fetched from anywhere.

    Args:
        run: a study with a trained classifier (see `Study.fit`); or the record of a journal (see
            `deepbore.data.replay.read_record`), for a page without the classifier's charts, which needs no torch.
        title: of the page.
        facts: more to say in the summary, name -> text.
        configuration: of the run, as YAML or other text; left out if empty.
        times: file of when trials began and ended, where the trials do not say it; see `deepbore.data.notes`.
        every: seconds after which the page reloads itself; None for never.
        inbox: of a record's run; that of a study with a journal is beside that.

    Returns:
        the HTML, a `str` that a notebook shows; text of the user is escaped in it.

    Raises:
        SettingError: if the classifier is not trained.
    """
    if not isinstance(run, Ledger):
        require_study(run)
    record = run if isinstance(run, Ledger) else record_of(run)
    sections = [*_sections(record, None if isinstance(run, Ledger) else run, times)]
    if not isinstance(run, Ledger) and (journal := run.state.observations.journal) is not None:
        inbox = Inbox(journal.path, journal.run_id)
    if (asked := commands_section(inbox)) is not None:
        sections.append(asked)
    if configuration:
        shown = escape(visible(configuration, keep=LINE_ENDS))
        settings = f"<details><summary>all settings</summary><pre>{shown}</pre></details>"
        sections.append(Section("Configuration", html=settings))
    return Page(render(title, {**summary(record), **(facts or {})}, sections, record, every))


def _sections(record: Ledger, study: "Study | None", times: str | Path | None) -> Iterator[Section]:
    learned: list[Section] = []
    if study is not None:
        from deepbore.plots.page.learned import learned_sections  # needs torch

        learned = learned_sections(study)
    spans = spans_of(record, times)
    how = [history_section(record)] if record.k == 1 else trade_off_sections(record)
    first = [summary_section(record), *how, curves_section(record), best_section(record), parallel_section(record)]
    last = [failures_section(record), timeline_section(record, spans), trials_section(record)]
    yield from (section for section in [*first, *learned, *last] if section is not None)


def summary(record: Ledger) -> dict[str, Any]:
    """What stands at the top of the page, name -> text."""
    statuses = record.status.tolist()
    parts = record.header.get("recipe", {})
    named = {name: class_name(parts[name]) for name in ("classifier", "labels") if name in parts}
    unfinished = {name: n for name, n in _unfinished(statuses).items() if n}
    return {
        **_found(record),
        "direction": _directions(record),
        "trials": len(statuses),
        **unfinished,
        "parameters": len(record.space),
        **named,
    }


def _directions(record: Ledger) -> str:
    if "objectives" not in record.header:
        return ", ".join(record.directions)
    named = zip(names_of_values(record), record.directions, strict=True)
    return ", ".join(f"{direction} {name}" for name, direction in named)


def _found(record: Ledger) -> dict[str, str]:
    if record.k > 1:
        return {"beaten by none": f"{len(record.front)} trials"}
    best = record.best
    found = {"best value": "none yet" if best is None else f"{number(best.value, 5)} in trial {best.id}"}
    if best is not None and best.suspicious:
        found["best value"] += ", suspicious"
    told = [trial for trial in record.trials if trial.constraints is not None and trial.value is not None]
    return found | ({"feasible": f"{sum(map(is_feasible, told))} of {len(told)}"} if told else {})


UNFINISHED = (Status.FAILED, Status.PRUNED, Status.PENDING, Status.WITHDRAWN)


def _unfinished(statuses: list[int]) -> dict[str, int]:
    return {str(status): statuses.count(status) for status in UNFINISHED}


# --- as HTML ---------------------------------------------------------------------------------------------------------

PAGE = """<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<title>{title}</title>
<link rel="icon" href="data:,">
<style>{style}</style></head>
<body><main>
<h1>{title}</h1>
{facts}
<noscript>The pictures and the table of this page are drawn by a script within it, which needs to be allowed.</noscript>
{body}
</main>
<script id="data" type="application/json">{data}</script>
<script>{plotly}</script>
<script>{script}</script>
</body>
</html>
"""
# nothing is fetched, whatever a name of a parameter may contain
POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:; font-src data:"
)


def render(
    title: str, facts: Mapping[str, Any], sections: Sequence[Section], record: Ledger | None, every: float | None = None
) -> str:
    """The page.

    Args:
        title: of the page.
        facts: at its top, name -> text; the first one large.
        sections: its parts; one of them has the element of the table.
        record: of the trials in the table and under the pointer; None for a page without trials.
        every: seconds after which it reloads itself, while a run is running; None for never.

    Returns:
        HTML that needs nothing else; text of the user is escaped.
    """
    charts: list[Drawing] = []
    body = "\n".join(_section(section, charts) for section in sections)
    data: dict[str, Any] = {"charts": [_spec(chart) for chart in charts], "every": every}
    if record is not None:
        shown = {row for chart in charts for trace in chart.data for row in trace.get("trials", ())}
        names = names_of_values(record)
        data["about"] = {row: about(record.trials[row], names) for row in sorted(shown)}
        data["table"] = trials_table(record)
    return PAGE.format(
        policy=POLICY,
        title=escape(visible(title)),
        style=_asset("report.css"),
        facts=_facts(facts),
        body=body,
        data=_embedded(data),
        plotly=_asset("plotly-cartesian.min.js"),
        script=_asset("report.js"),
    )


def _facts(facts: Mapping[str, Any]) -> str:
    cells = []
    for k, (name, value) in enumerate(facts.items()):
        kind = "fact" if k else "fact first"
        shown = escape(visible(str(value)))
        cells.append(f'<div class="{kind}"><b>{escape(str(name))}</b><span>{shown}</span></div>')
    return f'<div class="facts">{"".join(cells)}</div>'


def _section(section: Section, charts: list[Drawing]) -> str:
    """A section's HTML; its charts join those of the page."""
    places = []
    for chart in section.charts:
        places.append(f'<div><div data-chart="{len(charts)}" style="height: {chart.height}px"></div></div>')
        charts.append(chart)
    drawn = f'<div class="{section.grid}">{"".join(places)}</div>' if section.grid else "".join(places)
    says = f'<p class="says">{escape(section.says)}</p>' if section.says else ""
    return f"<section>\n<h2>{escape(section.title)}</h2>\n{says}{drawn}{section.html}\n</section>"


def _spec(chart: Drawing) -> dict[str, Any]:
    kept = asdict(chart)
    layout = {"height": chart.height, **kept["layout"]}
    return {"data": kept["data"], "layout": layout, "turns": chart.turns, "log": chart.log}


def _embedded(data: Mapping[str, Any]) -> str:
    """Data as JSON that no tag can end; what JSON has not becomes null."""
    written = json.dumps(plain(data), allow_nan=False, separators=(",", ":"))
    return written.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def plain(data: Any) -> Any:
    """Data as JSON has it: what is no finite number becomes null."""
    if isinstance(data, float):
        return data if data - data == 0 else None
    if isinstance(data, Mapping):
        return {str(name): plain(each) for name, each in data.items()}
    if isinstance(data, (list, tuple)):
        return [plain(each) for each in data]
    return data if data is None or isinstance(data, (str, int, bool)) else plain(float(data))


def _asset(name: str) -> str:
    return files("deepbore.plots.page").joinpath("assets", name).read_text(encoding="utf-8")


def about(trial: Trial, names: Sequence[str] = ("value",)) -> str:
    """What comes up when the pointer is on a trial: its value and its configuration."""
    values = [number(value, 5) for value in trial.values or ()]
    if len(values) > 1 and not names[0].startswith("value"):
        values = [f"{name} {value}" for name, value in zip(names, values, strict=True)]
    found = ", ".join(values) if values else trial.status.name.lower()
    lines = [f"<b>trial {trial.id}: {text(found)}</b>"]
    lines += [f"{text(name, 30)}: {text(number(value, 5), 40)}" for name, value in trial.params.items()]
    if trial.budget is not None:
        lines.append(f"budget: {trial.budget:g}")
    if trial.duration is not None:
        lines.append(f"took {seconds(trial.duration)}")
    if trial.suspicious:
        lines.append(f"suspicious: {text(trial.suspicious)}")
    if trial.task is not None:
        lines.append(f"task: {text(trial.task)}")
    if trial.reason:
        lines.append(text(trial.reason))
    if trial.former:
        lines.append(f"before: {text(str(former_values(trial)))}")
    hidden = len(lines) - LINES
    return "<br>".join(lines[:LINES] + ([f"and {hidden} more"] if hidden > 0 else []))
