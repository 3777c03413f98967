"""Curves of the share of targets reached against the number of evaluations, as COCO draws them."""

from collections import defaultdict
from itertools import cycle
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from numpy.typing import NDArray
from PIL import Image

from reporting import tables
from reporting.comparison import Comparison
from reporting.sections import HALVES, SHORT, Comparisons, Section

BLIND = {"random": "#9aa0a6", "sobol": "#bfc4c9"}
COLOURS = ("#d9822b", "#1f3b73", "#8e44ad", "#c0392b", "#2f9bd6", "#7a5c3e", "#e377c2", "#a8a100")
DASHES = ("-", (0, (4, 1.5)), (0, (1, 1)))


Pictures = dict[str, dict[Section, Comparison]]  # file name -> the comparison of each panel


def plan(comparisons: Comparisons) -> Pictures:
    """A picture for each suite and number of workers; of its sections, those with long runs have one of their own.

    There is none of what is held out: nobody should choose by it.
    """
    pictures: Pictures = defaultdict(dict)
    for section in sorted(comparisons.runs, key=lambda section: (section.place, section.workers)):
        ranked = [comparison for comparison in comparisons.of(section) if comparison.ranks()]
        if ranked and not section.is_look:
            workers = f"-{section.workers}" if section.workers > 1 else ""
            name = "-long" if ranked[-1].k > SHORT else ""
            pictures[f"{section.suite}-targets{workers}{name}.png"][section] = ranked[-1]
    return dict(pictures)


def draw(pictures: Pictures, reference: str, folder: Path) -> None:
    """Draws what is planned, into a folder; the reference stands out."""
    panels = [comparison for of in pictures.values() for comparison in of.values()]
    styles = _styles({method for comparison in panels for method in comparison.main}, reference)
    folder.mkdir(parents=True, exist_ok=True)
    for name, of in pictures.items():
        _save(_figure(of, styles), folder / name)


def curve(comparison: Comparison, method: str, ks: NDArray[np.int64]) -> NDArray[np.float64]:
    """Share of (problem, seed, target) that a method has reached after each of `ks` evaluations."""
    shares: dict[str, list[NDArray[np.float64]]] = defaultdict(list)
    for problem, seed in comparison.pairs(comparison.main):
        scale, run = comparison.scales[problem], comparison.runs[problem, seed][method]
        shares[problem].append(scale.reached([scale.regret(run.at(k)) for k in ks.tolist()]))
    return np.mean([np.mean(of, axis=0) for of in shares.values()], axis=0)


def _styles(methods: set[str], reference: str) -> dict[str, dict[str, object]]:
    """The same look of a method in all pictures."""
    colours, styles = cycle(COLOURS), {}
    for number, method in enumerate(tables.ordered(methods, reference)):
        if method == reference:
            styles[method] = {"color": "#1a7f5a", "lw": 2.8, "zorder": 5}
        elif method in BLIND:
            styles[method] = {"color": BLIND[method], "lw": 1.2}
        else:
            styles[method] = {"color": next(colours), "ls": DASHES[(number - 1) // len(COLOURS) % 3], "lw": 1.2}
    return styles


def _figure(panels: dict[Section, Comparison], styles: dict[str, dict[str, object]]) -> Figure:
    """Columns are dimensions, rows are halves; without dimensions, columns are halves."""
    dimensions = sorted({section.dimension for section in panels})
    halves = [half for half in HALVES if any(section.half == half for section in panels)]
    rows, columns = (halves, dimensions) if len(dimensions) > 1 else (dimensions, halves)
    figure = Figure(figsize=(max(2.3 * len(columns), 5), 1.9 * len(rows) + 1.1), layout="constrained")
    axes = figure.subplots(len(rows), len(columns), squeeze=False, sharey=True)
    for panel in axes.flat:
        panel.set_axis_off()
    for section, comparison in panels.items():
        place = halves.index(section.half), dimensions.index(section.dimension)
        panel = axes[place if rows is halves else place[::-1]]
        panel.set_axis_on()
        _panel(panel, comparison, styles)
        where = f"{section.dimension}-D, " if section.dimension else ""
        panel.set_title(where + section.half_title, fontsize=8)
    named = {method for comparison in panels.values() for method in comparison.main}
    handles = [axes.flat[0].plot([], [], label=name, **style)[0] for name, style in styles.items() if name in named]
    figure.legend(handles=handles, loc="outside lower center", ncols=5, frameon=False, fontsize=7)
    figure.supylabel("share of targets reached", fontsize=8)
    for panel in axes[-1]:
        panel.set_xlabel("evaluations", fontsize=8)
    return figure


def _panel(axes: Axes, comparison: Comparison, styles: dict[str, dict[str, object]]) -> None:
    ks = np.unique(np.geomspace(1, comparison.k, 60).round().astype(int))
    for method, style in styles.items():
        if method in comparison.main:
            axes.step(ks, curve(comparison, method, ks), where="post", **style)
    axes.set(xscale="log", xlim=(1, comparison.k), ylim=(0, None))
    axes.tick_params(labelsize=7)
    axes.spines[["top", "right"]].set_visible(False)


def _save(figure: Figure, path: Path) -> None:
    """Writes a picture of few colours, and so of few bytes."""
    figure.set_dpi(110)
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB").quantize(64).save(path, optimize=True)
