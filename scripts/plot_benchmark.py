#!/usr/bin/env python
"""Draws the regret curves that scripts/benchmark.py has written, one panel a problem.

    python scripts/plot_benchmark.py results.json docs/regret.png

Lines are means over the seeds, the bands their range; a regret of 0 is drawn at the bottom.
"""

import json
import math
import sys
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

COLUMNS = 4
COLOURS = {"deepbore": "#1a7f5a", "random": "#9aa0a6"}
OTHERS = ("#d9822b", "#1f3b73", "#8e44ad", "#c0392b")


def draw(axes: Axes, rows: list[dict], colours: dict[str, str]) -> None:
    """One problem's curves."""
    floor = min(v for row in rows for v in row["regret_after"].values() if v > 0) / 3
    for method, colour in colours.items():
        runs = [row["regret_after"] for row in rows if row["method"] == method]
        if not runs:
            continue
        trials = sorted((int(k) for k in runs[0]), key=int)
        curves = np.array([[run[str(k)] for k in trials] for run in runs])
        axes.fill_between(
            trials, np.maximum(curves.min(0), floor), np.maximum(curves.max(0), floor), color=colour, alpha=0.15, lw=0
        )
        axes.plot(trials, np.maximum(curves.mean(0), floor), color=colour, label=method, lw=1.6)
    axes.set(yscale="log", title=rows[0]["problem"])
    axes.title.set_fontsize(9)
    axes.tick_params(labelsize=7)
    axes.spines[["top", "right"]].set_visible(False)


def main() -> None:
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    rows = json.loads(Path(sys.argv[1]).read_text())
    methods = list(dict.fromkeys(row["method"] for row in rows))
    others = iter(OTHERS)
    colours = {method: COLOURS.get(method) or next(others) for method in methods}
    names = list(dict.fromkeys(row["problem"] for row in rows if min(row["regret_after"].values()) < math.inf))
    height = math.ceil(len(names) / COLUMNS)
    figure = Figure(figsize=(3 * COLUMNS, 2.3 * height), layout="constrained")
    panels = figure.subplots(height, COLUMNS, squeeze=False).flat
    for axes in panels:
        axes.set_axis_off()
    for name, axes in zip(names, figure.axes, strict=False):
        axes.set_axis_on()
        draw(axes, [row for row in rows if row["problem"] == name], colours)
    figure.axes[0].legend(frameon=False, fontsize=8)
    figure.supxlabel("evaluations", fontsize=9)
    figure.supylabel("simple regret", fontsize=9)
    figure.savefig(sys.argv[2], dpi=110)


if __name__ == "__main__":
    main()
