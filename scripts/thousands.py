#!/usr/bin/env python
"""What is found in a thousand evaluations: the suite `thousands`.

    python scripts/benchmark.py --suite thousands --trials 1000 --seeds 1 --out docs/results/thousands.jsonl \
        --methods deepbore deepbore:without-evolution deepbore:evolution-unscreened cma-es optuna-tpe
    python scripts/benchmark.py --suite thousands --trials 5000 --seeds 3 --out docs/results/thousands.jsonl \
        --workers 64 --methods deepbore cma-es
    python scripts/benchmark.py --suite thousands --trials 1000 --seeds 1 --out docs/results/thousands.jsonl \
        --workers 64 --methods turbo optuna-tpe
    python scripts/thousands.py             # docs/results/thousands.jsonl -> docs/results/thousands.md and its picture
    python scripts/thousands.py --check     # exits 1 if the page would change

The same with `--half held_out` gives the part that nothing was chosen on. Ranks, ratios and verdicts are those of
`scripts/ground.py`.
"""

import argparse
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from deepbore.problems.suites import suite
from ground import Runs, Table, methods_of
from reporting.rows import read

ROOT = Path(__file__).parent.parent
ROWS = ROOT / "docs" / "results" / "thousands.jsonl"
PAGE = ROOT / "docs" / "results" / "thousands.md"
PICTURE = ROOT / "docs" / "pictures" / "thousands.png"
BUDGETS = (200, 400, 1000)
LONG = (1000, 2000, 5000)  # of the runs that are as long
REFERENCE = "deepbore"
WORKERS = (1, 64)
NAMES = {  # as they stand in tables
    "deepbore:without-evolution": "deepbore without evolution",
    "deepbore:evolution-unscreened": "evolution, not screened",
    "deepbore:evolution-by-kernel": "evolution, screened by the kernel",
}
HALVES = {
    "development": "On what the strategy was made with",
    "held_out": "On what nothing was chosen on",
}


def runs_of(half: str, workers: int, rows: Path = ROWS) -> Runs:
    """The runs on a part of the suite with so many workers, the longest of each problem, seed and method."""
    names = set(suite("thousands", half=half))  # type: ignore[arg-type]
    found = [run for run in read([rows]) if run.problem in names and run.workers == workers]
    return {(run.problem, run.seed, run.method): run for run in sorted(found, key=lambda run: run.n)}


def groups(runs: Runs) -> list[list[str]]:
    """The other methods, those together that ran on the same problems and seeds for as many evaluations."""
    of: dict[tuple[int, frozenset[tuple[str, int]]], list[str]] = {}
    for method in methods_of(runs, REFERENCE)[1:]:
        own = of_method(runs, method)
        of.setdefault((shortest(own), frozenset(key[:2] for key in own)), []).append(method)
    return list(of.values())


def of_method(runs: Runs, method: str) -> Runs:
    """The runs of one method."""
    return {key: run for key, run in runs.items() if key[2] == method}


def shortest(runs: Runs) -> int:
    """How many evaluations all of the runs have."""
    return min(run.n for run in runs.values())


def budgets_of(runs: Runs, methods: Sequence[str]) -> tuple[int, ...]:
    """After how many evaluations methods are compared: as far as all of their runs went."""
    least = min(shortest(of_method(runs, method)) for method in methods)
    return LONG if least >= LONG[-1] else BUDGETS


def values(runs: Runs, methods: Sequence[str], n: int) -> str:
    """Markdown: the median over seeds of the best value after n evaluations, by problem."""
    lines = ["| problem | " + " | ".join(NAMES.get(each, each) for each in methods) + " |"]
    lines.append("|---" * (len(methods) + 1) + "|")
    for problem in sorted({key[0] for key in runs}):
        ends = {}
        for method in methods:
            found = [run.at(n) for key, run in runs.items() if (key[0], key[2]) == (problem, method) and run.n >= n]
            ends |= {method: median(math.inf if end is None else end for end in found)} if found else {}
        best = min(ends.values(), default=math.inf)
        cells = [_bold(f"{ends[each]:.4g}", ends[each] == best) if each in ends else "" for each in methods]
        lines.append(f"| {problem.split('/')[1]} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _bold(text: str, is_best: bool) -> str:
    return f"**{text}**" if is_best else text


def seconds(runs: Runs, methods: Sequence[str]) -> str:
    """A sentence: processor time of an evaluation, by method."""
    of = {each: [1e3 * run.seconds / run.n for run in of_method(runs, each).values()] for each in methods}
    told = [f"{NAMES.get(each, each)} {median(times):.0f}" for each, times in of.items() if times]
    return f"Processor time for each evaluation, median over the runs, in ms: {', '.join(told)}."


def section(half: str, workers: int) -> list[str]:
    """What the runs on a part of the suite say; nothing where there are none."""
    runs = runs_of(half, workers)
    if not runs:
        return []
    at_a_time = "one at a time" if workers == 1 else f"{workers} at a time"
    parts = [f"## {HALVES[half]}, {at_a_time}"]
    for others in groups(runs):
        budgets = budgets_of(runs, [REFERENCE, *others])
        table = Table(runs, [REFERENCE, *others], budgets)
        if not table.pairs:
            continue
        seeds = len({seed for _, seed in table.pairs})
        parts += [
            f"Average rank after {' / '.join(map(str, budgets))} evaluations (1 is best), {len(table.problems)} "
            f"problem{_s(len(table.problems))}, {seeds} seed{_s(seeds)}:",
            _named(table.by_kind()),
            f"The regret of `{REFERENCE}` by that of each other method; the verdict is by [the one rule](method.md):",
            _named(table.against(others)),
        ]
    methods = methods_of(runs, REFERENCE)
    for n in sorted({budgets_of(runs, [method])[-1] for method in methods}):
        ran = [method for method in methods if max(run.n for run in of_method(runs, method).values()) >= n]
        parts += [f"Best values after {n}, to minimise:", values(runs, ran, n)]
    return [*parts, seconds(runs, methods)]


def _s(count: int) -> str:
    """The ending of a plural."""
    return "s" if count > 1 else ""


def _named(table: str) -> str:
    """A table of `ground` with the names of this page, and without kinds of tasks."""
    table = table.replace("| all |  |", "| all |")
    for method, name in NAMES.items():
        table = table.replace(f"| {method} |", f"| {name} |")
    return table


def page() -> str:
    """The page of results."""
    parts = [
        "# Thousands of evaluations: the suite `thousands`",
        "Twenty-three problems in 14 to 300 dimensions, for runs that are longer than a study of tens of trials: a "
        "rover's path, penalties of a Lasso, policies of MuJoCo's machines and a lander, functions whose optimum is "
        "moved and whose axes are turned, three of them with numbers and choices, four of bbob-largescale, robot "
        "pushing. A third is held out. Made by `python scripts/thousands.py`.",
        "![Average rank of each method, one at a time to 1000 and 64 at a time to 5000 evaluations]"
        "(../pictures/thousands.png)",
    ]
    for half in HALVES:
        for workers in WORKERS:
            parts += section(half, workers)
    return "\n\n".join(parts) + "\n"


def draw(path: Path) -> None:
    """The average rank of the methods that ran on most problems, one at a time and many at a time."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 3.6), layout="constrained")
    for axes, workers in zip(figure.subplots(1, 2), WORKERS, strict=True):
        runs = runs_of("all", workers)
        methods = [REFERENCE, *max(groups(runs), key=lambda group: len(Table(runs, [REFERENCE, *group], [1]).pairs))]
        last = budgets_of(runs, methods)[-1]
        _draw_ranks(axes, Table(runs, methods, [last]), np.linspace(last / 50, last, 50).astype(int))
        axes.set(title="one at a time" if workers == 1 else f"{workers} at a time")
    figure.savefig(path, dpi=150)


def _draw_ranks(axes: Any, table: Table, n: np.ndarray) -> None:
    """The average rank of each method after n evaluations."""
    curves = np.array([table.ranks(int(each)) for each in n]).T
    for number, (method, curve) in enumerate(zip(table.methods, curves, strict=True)):
        style = {"color": "C3", "linewidth": 2.5} if number == 0 else {"color": f"{0.15 + 0.17 * number:.2f}"}
        axes.plot(n, curve, **style)
        name = NAMES.get(method, method)
        axes.annotate(name, (n[-1], curve[-1]), xytext=(4, 0), textcoords="offset points", va="center", fontsize=9)
    axes.set(xlabel="evaluations", ylabel="average rank (1 is best)", xlim=(n[0], n[-1]))
    axes.invert_yaxis()
    axes.spines[["top", "right"]].set_visible(False)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if the page is out of date")
    given = parser.parse_args()
    text = page()
    if given.check:
        return int(not PAGE.exists() or PAGE.read_text() != text)
    PAGE.write_text(text)
    draw(PICTURE)
    return 0


if __name__ == "__main__":
    sys.exit(main())
