"""`report`: a run on one page of HTML that needs nothing else. Light to import; the classifier's part is not."""

from collections.abc import Iterator, Mapping
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Union

from deepbore.data.outcome import Status
from deepbore.data.ranking import front, is_feasible
from deepbore.data.replay import Record
from deepbore.parts import class_name
from deepbore.plots.page.charts import Section
from deepbore.plots.page.history_chart import history_section
from deepbore.plots.page.page import render
from deepbore.plots.page.parallel_chart import parallel_section
from deepbore.plots.page.tables import (
    best_section,
    failures_section,
    timeline_section,
    times_of,
    trials_section,
)
from deepbore.plots.style import require_study

if TYPE_CHECKING:
    from deepbore.study import Study


def report(
    run: Union["Study", Record],
    *,
    title: str = "Report",
    facts: Mapping[str, Any] | None = None,
    configuration: str = "",
    times: str | Path | None = None,
    every: float | None = None,
) -> str:
    """A page of HTML with what a run has found: a table to sort, and pictures that say more under the pointer.

    plotly.js stands in the page (1.5 MB), and nothing is fetched from anywhere.

    Args:
        run: a study with a trained classifier (see `Study.fit`); or what `deepbore.data.replay.read_record` has read of
            a journal, for a page without the classifier's pictures, which needs no torch.
        title: of the page.
        facts: more to say in the summary, name -> text.
        configuration: of the run, as YAML or other text; left out if empty.
        times: file of when trials began and ended, for the timeline: see `deepbore.evaluators.Timed`.
        every: seconds after which the page shows itself anew; None for never.

    Returns:
        the HTML; what comes from the user is escaped in it.

    Raises:
        SettingError: if the classifier is not trained.
    """
    if not isinstance(run, Record):
        require_study(run)
    record = run if isinstance(run, Record) else record_of(run)
    sections = [*_sections(record, run, None if times is None else times_of(Path(times)))]
    if configuration:
        settings = f"<details><summary>all settings</summary><pre>{escape(configuration)}</pre></details>"
        sections.append(Section("Configuration", html=settings))
    return render(title, {**_summary(record), **(facts or {})}, sections, record, every)


def record_of(study: "Study") -> Record:
    """The record of a study, as its journal would give it."""
    observations = study.observations
    return Record(study._state.header(), observations.directions, study.trials, observations.n_asked)


def _sections(
    record: Record, run: Union["Study", Record], times: Mapping[int, tuple[float, float]] | None
) -> Iterator[Section]:
    learned: list[Section] = []
    if not isinstance(run, Record):
        from deepbore.plots.page.learned import learned_sections  # needs torch

        learned = learned_sections(run)
    yield history_section(record)
    for section in (best_section(record), parallel_section(record)):
        if section is not None:
            yield section
    yield from learned
    for section in (failures_section(record), timeline_section(record, times or {})):
        if section is not None:
            yield section
    yield trials_section(record)


def _summary(record: Record) -> dict[str, Any]:
    statuses = record.status
    parts = record.header.get("recipe", {})
    named = {name: class_name(parts[name]) for name in ("classifier", "labels") if name in parts}
    unfinished = {name: n for name, n in _unfinished(statuses).items() if n}
    return {
        **_found(record),
        "direction": ", ".join(record.directions),
        "trials": len(statuses),
        **unfinished,
        "parameters": len(record.space),
        **named,
    }


def _found(record: Record) -> dict[str, str]:
    if record.k > 1:
        return {"beaten by none": f"{len(front(record.trials, record.directions))} trials"}
    best = record.best
    found = {"best value": "none yet" if best is None else f"{best.value:.8g} in trial {best.id}"}
    told = [trial for trial in record.trials if trial.constraints is not None and trial.value is not None]
    return found | ({"feasible": f"{sum(map(is_feasible, told))} of {len(told)}"} if told else {})


def _unfinished(statuses: list[Status]) -> dict[str, int]:
    return {"failed": statuses.count(Status.FAILED), "pending": statuses.count(Status.PENDING)}
