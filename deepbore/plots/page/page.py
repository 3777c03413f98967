"""`render`: sections, a table and facts as one page of HTML. Light to import."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from html import escape
from importlib.resources import files
from typing import Any

from deepbore.data.replay import Record
from deepbore.plots.page.charts import Chart, Section, about
from deepbore.plots.page.tables import trials_table

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
    title: str,
    facts: Mapping[str, Any],
    sections: Sequence[Section],
    record: Record,
    every: float | None = None,
) -> str:
    """The page.

    Args:
        title: of the page.
        facts: what stands at its top, name -> text; the first one large.
        sections: its parts; one of them has the element that the table is put into.
        record: whose trials stand in the table, and come up under the pointer.
        every: seconds after which it shows itself anew, while a run goes on; None for never.

    Returns:
        HTML that needs nothing else; what comes from the user is escaped.
    """
    charts: list[Chart] = []
    body = "\n".join(_section(section, charts) for section in sections)
    shown = {row for chart in charts for trace in chart.data for row in trace.get("trials", ())}
    data = {
        "charts": [_spec(chart) for chart in charts],
        "about": {row: about(record.trials[row]) for row in sorted(shown)},
        "table": trials_table(record),
        "every": every,
    }
    return PAGE.format(
        policy=POLICY,
        title=escape(title),
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
        cells.append(f'<div class="{kind}"><b>{escape(str(name))}</b><span>{escape(str(value))}</span></div>')
    return f'<div class="facts">{"".join(cells)}</div>'


def _section(section: Section, charts: list[Chart]) -> str:
    """A section's HTML; its charts join those of the page."""
    places = []
    for chart in section.charts:
        width = f"; min-width: {chart.width}px" if chart.width else ""
        places.append(
            f'<div class="scroll"><div data-chart="{len(charts)}" style="height: {chart.height}px{width}"></div></div>'
        )
        charts.append(chart)
    drawn = f'<div class="{section.grid}">{"".join(places)}</div>' if section.grid else "".join(places)
    says = f'<p class="says">{escape(section.says)}</p>' if section.says else ""
    return f"<section>\n<h2>{escape(section.title)}</h2>\n{says}{drawn}{section.html}\n</section>"


def _spec(chart: Chart) -> dict[str, Any]:
    kept = asdict(chart)
    return {"data": kept["data"], "layout": {"height": chart.height, **kept["layout"]}}


def _embedded(data: Mapping[str, Any]) -> str:
    """Data as JSON that no tag can end; what JSON has not becomes null."""
    plain = json.dumps(_plain(data), allow_nan=False, separators=(",", ":"))
    return plain.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _plain(data: Any) -> Any:
    if isinstance(data, float):
        return data if data - data == 0 else None
    if isinstance(data, Mapping):
        return {str(name): _plain(each) for name, each in data.items()}
    if isinstance(data, (list, tuple)):
        return [_plain(each) for each in data]
    return data if data is None or isinstance(data, (str, int, bool)) else _plain(float(data))


def _asset(name: str) -> str:
    return files("deepbore.plots.page").joinpath("assets", name).read_text(encoding="utf-8")
