"""Pictures of races: the mean over seeds with the band of its intervals, a panel for each."""

from itertools import cycle
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure as Picture
from PIL import Image

from figures.kinds import Panel
from figures.scores import Scores
from reporting import intervals

COLOURS = ("#d9822b", "#1f3b73", "#c23b6b", "#6b4fa0", "#3f9fbf", "#8c6d31", "#7a9a01", "#b22222")
FIXED = {"deepbore": "#1a7f5a", "random": "#9aa0a6"}
DASHES = ("-", "--", ":")
POINTS = 80  # of a curve


def draw(scores: Scores) -> Picture:
    """The panels that have runs; an empty picture without any."""
    race = scores.race
    panels = [panel for panel in race.panels if scores.columns(panel)]
    styles = _styles(list(dict.fromkeys(method for panel in panels for method in panel.methods)))
    columns = min(len(panels), 4) or 1
    rows = -(-len(panels) // columns) or 1
    picture = Picture(figsize=(max(2.6 * columns, 5), 2.3 * rows + 0.9), layout="constrained")
    axes = picture.subplots(rows, columns, squeeze=False)
    for place in axes.flat:
        place.set_axis_off()
    for place, panel in zip(axes.flat, panels, strict=False):
        place.set_axis_on()
        _panel(place, panel, scores, styles)
    ran = {method for panel in panels for method in panel.methods if scores.length(panel.problem, method)}
    handles = [axes.flat[0].plot([], [], label=name, **style)[0] for name, style in styles.items() if name in ran]
    if handles:
        picture.legend(handles=handles, loc="outside lower center", ncols=3, frameon=False, fontsize=7)
    return picture


def save(picture: Picture, path: Path) -> None:
    """Writes a picture of few colours, and so of few bytes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    picture.set_dpi(110)
    canvas = FigureCanvasAgg(picture)
    canvas.draw()
    Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB").quantize(128).save(path, optimize=True)


def _styles(methods: list[str]) -> dict[str, dict[str, object]]:
    """A look for each method; beyond the colours, dashes."""
    colours, styles = cycle(COLOURS), {}
    for method in methods:
        number = len(styles) // len(COLOURS)
        colour = FIXED.get(method) or next(colours)
        width = 2.2 if method == "deepbore" else 1.3
        styles[method] = {"color": colour, "lw": width, "ls": "-" if method in FIXED else DASHES[number % 3]}
    return styles


def _panel(axes: Axes, panel: Panel, scores: Scores, styles: dict[str, dict[str, object]]) -> None:
    metric, end = scores.metric(panel.problem), scores.columns(panel)[-1]
    positive = []
    for method in panel.methods:
        n = min(scores.length(panel.problem, method), end)
        curves = [curve[:n] for curve in scores.curves(panel.problem, method, max(n, 1)).values()]
        if not curves:
            continue
        ks = np.unique(np.linspace(1, n, POINTS).round().astype(int))
        values = np.array(curves)[:, ks - 1]
        mean = np.nanmean(values, axis=0)
        positive.append(mean[mean > 0])
        axes.plot(ks, mean, **styles[method])
        low, high = np.transpose([intervals.mean(column).interval for column in values.T])
        if np.isfinite(low).all():
            axes.fill_between(ks, low, high, color=styles[method]["color"], alpha=0.08, lw=0)
    above = np.concatenate(positive)
    if metric == "regret" and above.size:
        axes.set_yscale("log")
        axes.set_ylim(above.min() / 2, above.max() * 1.5)
    axes.set_title(panel.title, fontsize=8)
    axes.set_xlabel("evaluations", fontsize=7)
    axes.set_ylabel(metric, fontsize=7)
    axes.tick_params(labelsize=7)
    axes.spines[["top", "right"]].set_visible(False)
