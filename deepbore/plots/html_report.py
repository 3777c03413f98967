"""`report`: a run on one page of HTML that needs nothing else."""

import base64
import io
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

from deepbore.data.outcomes import Status
from deepbore.plots.landscape_plot import landscape
from deepbore.plots.optimization_history import history
from deepbore.plots.pair_plot import pairs
from deepbore.plots.parallel_plot import parallel_coordinates
from deepbore.plots.permutation_importance import importance
from deepbore.plots.predictions import nothing_learned
from deepbore.plots.reliability_diagram import calibration
from deepbore.plots.slice_plot import slices

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from deepbore.study import Study

DPI = 110
STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #222; max-width: 980px; margin: 2em auto; padding: 0 1em; }
h1 { font-size: 1.5em; color: #1f3b73; } h2 { font-size: 1.15em; margin: 2em 0 .4em; color: #1a7f5a; }
table { border-collapse: collapse; } td, th { padding: .15em 1.2em .15em 0; text-align: left; vertical-align: top; }
th { font-weight: 600; } td { font-variant-numeric: tabular-nums; overflow-wrap: anywhere; }
figure { margin: 0; } img { max-width: 100%; height: auto; } figcaption { color: #555; max-width: 46em; }
pre { background: #f3f5f6; padding: 1em; overflow-x: auto; font-size: 13px; } summary { cursor: pointer; }
"""
PAGE = """<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{title}</title>
<style>{style}</style></head>
<body>
<h1>{title}</h1>
{body}
</body>
</html>
"""


@dataclass(frozen=True)
class Picture:
    """One picture of the page: its title, what draws it, and a sentence that explains it."""

    title: str
    draw: Callable[["Study"], "Figure"]
    says: str


HISTORY = Picture(
    "History",
    history,
    "Every value in the order of evaluation: those at or better than the threshold tau are class 1, the rest class 0.",
)
PARALLEL = Picture(
    "Parallel coordinates",
    parallel_coordinates,
    "Every trial is a line through its parameters to its value; the greener the better, and failed trials are red.",
)
IMPORTANCE = Picture(
    "Importance of the parameters",
    importance,
    "How much the classifier's answer changes at the trials if one parameter is redrawn, relative to redrawing all.",
)
SLICES = Picture(
    "Slices",
    slices,
    "The classifier along each parameter with the others at the best configuration (dotted), its standard deviation, "
    "and the labels of the trials.",
)
PAIRS = Picture(
    "Pairs",
    pairs,
    "The classifier over pairs of parameters with the others at the best configuration (star); class 1 is filled, "
    "class 0 hollow.",
)
LANDSCAPE = Picture(
    "The classifier",
    landscape,
    "The classifier over the whole space with the trials: it is asked where to evaluate next.",
)
CALIBRATION = Picture(
    "Calibration",
    calibration,
    "The mean label against what the classifier says, on the data that it has learned from: on the diagonal it means "
    "what it says.",
)


def report(
    study: "Study", *, title: str = "Report", facts: Mapping[str, Any] | None = None, configuration: str = ""
) -> str:
    """A page of HTML with what a run has found and its pictures within: no script, no link to anything outside.

    Args:
        study: with a trained classifier; see `Study.fit`.
        title: of the page.
        facts: more to say in the summary, name -> text.
        configuration: of the run, as YAML or other text; left out if empty.

    Returns:
        the HTML; what comes from the user is escaped in it.

    Raises:
        SettingError: if the classifier is not trained.
        MissingPackage: without matplotlib.
    """
    parts = [_table({**_summary(study), **(facts or {})}), *_best(study), *_pictures(study)]
    if configuration:
        text = escape(configuration)
        parts.append(f"<h2>Configuration</h2>\n<details><summary>all settings</summary><pre>{text}</pre></details>")
    return PAGE.format(title=escape(title), style=STYLE, body="\n".join(parts))


def _summary(study: "Study") -> dict[str, Any]:
    statuses = study.observations.status.tolist()
    best = study.best_trial
    found = "none yet" if best is None else f"{best.value:.8g}, in trial {best.id} (counted from 0)"
    return {
        "best value": found,
        "direction": study.observations.direction,
        "trials": len(statuses),
        "failed": statuses.count(Status.FAILED),
        "pending": statuses.count(Status.PENDING),
        "parameters": len(study.space),
        "classifier": type(study.classifier).__name__,
        "labels": type(study.labels).__name__,
    }


def _best(study: "Study") -> list[str]:
    best = study.best_trial
    return [] if best is None else ["<h2>Best configuration</h2>", _table(best.params)]


def _pictures(study: "Study") -> Iterator[str]:
    yield _figure(HISTORY, study)
    if not len(study.observations):
        return
    if len(study.space) > 1:
        yield _figure(PARALLEL, study)
    if reason := nothing_learned(study):
        yield f"<h2>{LANDSCAPE.title}</h2>\n<p>{escape(reason)}</p>"
        return
    for picture in _of_classifier(len(study.space)):
        yield _figure(picture, study)


def _of_classifier(d: int) -> list[Picture]:
    """The pictures of the classifier that suit d parameters."""
    if d == 1:
        return [LANDSCAPE, CALIBRATION]
    return [IMPORTANCE, SLICES, LANDSCAPE if d == 2 else PAIRS, CALIBRATION]


def _table(rows: Mapping[str, Any]) -> str:
    texts = ((escape(str(name)), escape(str(value))) for name, value in rows.items())
    cells = "\n".join(f"<tr><th>{name}</th><td>{value}</td></tr>" for name, value in texts)
    return f"<table>\n{cells}\n</table>"


def _figure(picture: Picture, study: "Study") -> str:
    png = io.BytesIO()
    picture.draw(study).savefig(png, format="png", dpi=DPI)
    source = f"data:image/png;base64,{base64.b64encode(png.getvalue()).decode()}"
    title, says = escape(picture.title), escape(picture.says)
    image = f'<img src="{source}" alt="{title}">'
    return f"<h2>{title}</h2>\n<figure>{image}<figcaption>{says}</figcaption></figure>"
