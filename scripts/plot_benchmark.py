#!/usr/bin/env python
"""Draws the regret curves of runs that scripts/benchmark.py has written, one panel a problem.

    python scripts/plot_benchmark.py docs/results/benchmark/functions.jsonl docs/regret.png

Lines are means over the seeds, the bands their range; a regret of 0 is drawn at the bottom. Only for problems whose
optimum is known.
"""

import math
import sys
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from deepbore.problems.suites import problem as problem_of
from reporting.rows import Run, read

COLUMNS = 4
COLOURS = {"deepbore": "#1a7f5a", "random": "#9aa0a6"}
OTHERS = ("#d9822b", "#1f3b73", "#8e44ad", "#c0392b")


def curve(run: Run, optimum: float, n: int) -> np.ndarray:
    """Regret after 1 ... n evaluations (n), infinite before the first value."""
    regret = np.full(n + 1, math.inf)
    for evaluations, value in run.best:
        regret[evaluations:] = max(value - optimum, 0)
    return regret[1:]


def draw(axes: Axes, problem: str, runs: list[Run], colours: dict[str, str]) -> None:
    """One problem's curves."""
    about = problem_of(problem)
    optimum = -about.optimum if about.direction == "maximize" else about.optimum
    n = min(run.n for run in runs)
    curves = {
        method: np.array([curve(run, optimum, n) for run in runs if run.method == method])
        for method in colours
        if any(run.method == method for run in runs)
    }
    positive = [part[(part > 0) & np.isfinite(part)] for part in curves.values()]
    floor = np.concatenate(positive).min() / 3
    trials = np.arange(1, n + 1)
    for method, of_seeds in curves.items():
        low, middle, high = (np.maximum(part, floor) for part in (of_seeds.min(0), of_seeds.mean(0), of_seeds.max(0)))
        axes.fill_between(trials, low, high, color=colours[method], alpha=0.15, lw=0)
        axes.plot(trials, middle, color=colours[method], label=method, lw=1.6)
    axes.set(yscale="log", title=problem)
    axes.title.set_fontsize(9)
    axes.tick_params(labelsize=7)
    axes.spines[["top", "right"]].set_visible(False)


def main() -> None:
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    runs = read([Path(sys.argv[1])])
    methods = list(dict.fromkeys(run.method for run in runs))
    others = iter(OTHERS * len(methods))
    colours = {method: COLOURS.get(method) or next(others) for method in methods}
    names = list(dict.fromkeys(run.problem for run in runs))
    height = math.ceil(len(names) / COLUMNS)
    figure = Figure(figsize=(3 * COLUMNS, 2.3 * height), layout="constrained")
    panels = figure.subplots(height, COLUMNS, squeeze=False).flat
    for axes in panels:
        axes.set_axis_off()
    for name, axes in zip(names, figure.axes, strict=False):
        axes.set_axis_on()
        draw(axes, name, [run for run in runs if run.problem == name], colours)
    figure.axes[0].legend(frameon=False, fontsize=8)
    figure.supxlabel("evaluations", fontsize=9)
    figure.supylabel("simple regret", fontsize=9)
    figure.savefig(sys.argv[2], dpi=110)


if __name__ == "__main__":
    main()
