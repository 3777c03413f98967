"""Sections of the page on how values come about: history, learning curves, the front, the timeline."""

from collections.abc import Mapping
from dataclasses import replace

from deepbore.data.ledger import Ledger
from deepbore.data.trial import Span
from deepbore.plots.curves_chart import CURVES, curves_chart, reporting
from deepbore.plots.history_chart import history_chart, history_charts
from deepbore.plots.objectives_chart import front_chart, hypervolume_chart
from deepbore.plots.on_plotly import drawing
from deepbore.plots.page.sections import Section
from deepbore.plots.sources import MOST, names_of_values
from deepbore.plots.timeline_chart import timeline_chart


def history_section(record: Ledger, most: int = MOST) -> Section:
    """Every value of a run with one in the order of evaluation, with what does not count; of `most` trials at most."""
    many = f" Of {len(record)} trials {most} at most are drawn: the best, the newest, and others evenly."
    says = (
        "Every value in the order of evaluation, the best so far, and, where the labels have one, the threshold tau: "
        "to the classifier, values at or better than it are good. Point at a trial for its configuration."
    )
    return Section("History", says + (many if len(record) > most else ""), [drawing(history_chart(record))])


def trade_off_sections(record: Ledger) -> list[Section]:
    """The front, the hypervolume, and each of several objectives in the order of evaluation."""
    names, volume = names_of_values(record), hypervolume_chart(record)
    says = f"{names[0]} and {names[1]} of every trial against each other." + (
        " Below, the hypervolume: what the front dominates, up to the worst values of the first ten trials, over time."
        if volume.layers
        else ""
    )
    front = [front_chart(record), *([volume] if volume.layers else [])]
    each = [drawing(replace(chart, height=320)) for chart in history_charts(record)]
    return [
        Section("Trade-off", says, [drawing(chart) for chart in front]),
        Section("History", "Each objective in the order of evaluation.", each, grid="grid wide"),
    ]


def curves_section(record: Ledger) -> Section | None:
    """What trials have reported by step, a line each; None if none has."""
    if not (count := len(reporting(record))):
        return None
    says = (
        "What each trial has reported while it ran: the greener, the better it is in the end. A cross is where a "
        "pruned or failed trial ended."
    )
    says += f" Of {count} trials {CURVES} at most are drawn." if count > CURVES else ""
    return Section("Learning curves", says, [drawing(curves_chart(record))])


def timeline_section(record: Ledger, times: Mapping[int, Span]) -> Section | None:
    """A bar for each evaluation, in as many rows as there were at the same time; None if times were not kept."""
    chart = timeline_chart(record, times)
    says = "When each evaluation began and ended. The gaps are the time for proposals, or a pause of the run."
    return Section("Timeline of workers", says, [drawing(chart)]) if chart.layers else None
