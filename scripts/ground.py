#!/usr/bin/env python
"""What is found on training runs: the suite `ground`, by kind of task and after few evaluations.

    python scripts/benchmark.py --suite ground --half validation --out docs/results/ground.jsonl \
        --methods deepbore optuna-tpe lfbo-xgb random
    python scripts/ground.py             # docs/results/ground.jsonl -> docs/results/ground.md and its picture
    python scripts/ground.py --check     # exits 1 if the page would change
    python scripts/ground.py --rows FILE --reference deepbore:NAME --half development    # Markdown to stdout

A problem's values are compared seed by seed, on the pairs (problem, seed) that all methods of a table have. Ranks are
averages over these pairs, ties shared. The ratio is the regret of the reference by that of another method, regret being
the distance from the best value of any run; its interval is that of the signed-rank test over problems.
"""

import argparse
import math
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from scipy.stats import rankdata

from deepbore.problems.suites import suite
from reporting import facts, regrets
from reporting.intervals import Typical
from reporting.rows import Run, read

ROOT = Path(__file__).parent.parent
ROWS = ROOT / "docs" / "results" / "ground.jsonl"
PAGE = ROOT / "docs" / "results" / "ground.md"
PICTURE = ROOT / "docs" / "pictures" / "ground.png"
BUDGETS = (20, 40, 60, 100)
KINDS = ("networks", "boosting", "pipelines", "policies", "others")
Runs = dict[tuple[str, int, str], Run]


class Table:
    """Methods on the pairs (problem, seed) that all of them have.

    Args:
        runs: of all methods, by problem, seed and method.
        methods: the reference first.
        budgets: numbers of evaluations.
    """

    def __init__(self, runs: Runs, methods: Sequence[str], budgets: Sequence[int]):
        self.methods, self.budgets, self.runs = list(methods), list(budgets), runs
        long = {key for key, run in runs.items() if run.n >= max(budgets)}
        pairs = {key[:2] for key in long}
        self.pairs = sorted(pair for pair in pairs if all((*pair, method) in long for method in methods))
        self.problems = sorted({problem for problem, _ in self.pairs})
        known = {problem: facts.Fact(None, "all") for problem in self.problems}
        self.scales = regrets.scales([run for run in runs.values() if run.problem in known], known)

    def value(self, pair: tuple[str, int], method: str, n: int) -> float:
        """The best value after n evaluations; infinite before the first."""
        found = self.runs[(*pair, method)].at(n)
        return math.inf if found is None else found

    def ranks(self, n: int, kind: str = "") -> np.ndarray:
        """The average rank of each method after n evaluations, on one kind of task or all."""
        of = [pair for pair in self.pairs if f"/{kind}" in pair[0]]
        return np.mean([rankdata([self.value(pair, method, n) for method in self.methods]) for pair in of], axis=0)

    def ratio(self, other: str, n: int) -> Typical:
        """Log ratios of the reference's regret by another's, typical of problems."""
        by_problem: dict[str, list[float]] = defaultdict(list)
        for pair in self.pairs:
            scale = self.scales[pair[0]]
            own, others = (scale.regret(self.runs[(*pair, method)].at(n)) for method in (self.methods[0], other))
            by_problem[pair[0]].append(math.log(own / others))
        return Typical.of([float(np.mean(each)) for each in by_problem.values()])

    def won(self, other: str, n: int) -> tuple[int, int]:
        """On how many pairs the reference is better, and on how many worse."""
        values = [[self.value(pair, method, n) for method in (self.methods[0], other)] for pair in self.pairs]
        return sum(a < b for a, b in values), sum(a > b for a, b in values)

    def by_kind(self) -> str:
        """Markdown: ranks of each method by kind of task, after each number of evaluations."""
        present = [kind for kind in KINDS if any(f"/{kind}/" in problem for problem in self.problems)]
        lines = ["| method | all | " + " | ".join(present) + " |", "|---" * (len(present) + 2) + "|"]
        for place, method in enumerate(self.methods):
            cells = [" / ".join(f"{self.ranks(n, kind)[place]:.2f}" for n in self.budgets) for kind in ("", *present)]
            lines.append(f"| {method} | " + " | ".join(cells) + " |")
        return "\n".join(lines)

    def against(self, others: Sequence[str]) -> str:
        """Markdown: the reference beside other methods."""
        lines = ["| beside | after | ratio of regret | verdict | pairs won : lost |", "|---|---|---|---|---|"]
        for other in others:
            for n in self.budgets:
                found, (won, lost) = self.ratio(other, n), self.won(other, n)
                low, high = (f"{math.exp(end):.2g}" if math.isfinite(end) else "-" for end in (found.low, found.high))
                ratio = f"{math.exp(found.middle):.2f} [{low}, {high}]"
                lines.append(f"| {other} | {n} | {ratio} | {found.verdict} | {won} : {lost} |")
        return "\n".join(lines)


def of_half(half: str, rows: Path) -> Runs:
    """The runs on a part of the suite, the longest of each problem, seed and method."""
    names = set(suite("ground", half=half))
    runs = sorted((run for run in read([rows]) if run.problem in names), key=lambda run: run.n)
    return {(run.problem, run.seed, run.method): run for run in runs}


def methods_of(runs: Iterable[tuple[str, int, str]], reference: str) -> list[str]:
    """The methods, the reference first, those with most runs next."""
    counts: dict[str, int] = defaultdict(int)
    for _, _, method in runs:
        counts[method] += 1
    return sorted(counts, key=lambda method: (method != reference, -counts[method], method))


def page(runs: Runs, held_out: Runs, reference: str) -> str:
    """The page of results."""
    sections = [
        "# Training runs: the suite `ground`",
        "Forty tasks of the kind that people tune (`deepbore.problems.GroundRun`): networks of torch, boosted trees, "
        "pipelines of scikit-learn, policies, and forecasters, fits, filters and schedules. They have 8 to 25 "
        "parameters, most of them conditional. Nineteen are for development: defaults are chosen on them. This page "
        "has the fifteen for validation, then the six that are held out. Made by `python scripts/ground.py`.",
        "![Average rank of each method from 10 to 100 evaluations](../pictures/ground.png)",
        *comparisons(runs, reference, "##"),
    ]
    if held_out:
        sections += [
            "## Held out, and looked at once",
            "No default was chosen on these, no method had run on them, and what would be run was "
            "[planned](method.md#looks-at-what-is-held-out) before.",
            *comparisons(held_out, reference, "###"),
        ]
    return "\n\n".join(sections) + "\n"


def comparisons(runs: Runs, reference: str, heading: str) -> list[str]:
    """The reference beside all other methods, those that ran on the same pairs together."""
    sections = []
    groups = tables(runs, methods_of(runs, reference), reference)
    for others, budgets in groups:
        most = [each for each in groups[0][0] if each not in others]
        table = Table(runs, [reference, *others, *most], budgets)
        seeds = len({seed for _, seed in table.pairs})
        after = " / ".join(map(str, budgets))
        sections += [
            f"{heading} Beside {', '.join(others)}",
            f"Average rank after {after} evaluations (1 is best), {len(table.problems)} problems, {len(table.pairs)} "
            f"pairs of problem and seed, {seeds} seed{'s' if seeds > 1 else ''}:",
            table.by_kind(),
            "The regret of `"
            + reference
            + "` by that of each other method; the verdict is by [the one rule](method.md):",
            table.against(others),
        ]
    return sections


def tables(runs: Runs, methods: Sequence[str], reference: str) -> list[tuple[list[str], Sequence[int]]]:
    """Which methods stand in a table together: those that ran on the same pairs, for as long."""
    of = {method: frozenset(key[:2] for key in runs if key[2] == method) for method in methods}
    groups: dict[tuple[frozenset[tuple[str, int]], int], list[str]] = defaultdict(list)
    for method in methods:
        if method != reference:
            groups[of[method], min(run.n for key, run in runs.items() if key[2] == method)].append(method)
    return [(group, [n for n in BUDGETS if n <= most]) for (_, most), group in groups.items()]


def draw(runs: Runs, reference: str, path: Path, size: tuple[float, float] = (7, 3.6)) -> None:
    """The average rank of the methods with most runs, from the end of the design on; the size is in inches."""
    from matplotlib.figure import Figure

    (others, _), *_ = tables(runs, methods_of(runs, reference), reference)
    table, n = Table(runs, [reference, *others], (100,)), range(10, 101, 2)
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots()
    curves = np.array([table.ranks(each) for each in n]).T
    for number, (method, curve) in enumerate(zip(table.methods, curves, strict=True)):
        style = {"color": "C3", "linewidth": 2.5} if number == 0 else {"color": f"{0.15 + 0.17 * number:.2f}"}
        axes.plot(n, curve, label=method, **style)
        axes.annotate(method, (100, curve[-1]), xytext=(4, 0), textcoords="offset points", va="center", fontsize=9)
    axes.set(xlabel="evaluations", ylabel="average rank (1 is best)", xlim=(10, 100), title="Training runs, validation")
    axes.invert_yaxis()
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=150)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if the page is out of date")
    parser.add_argument("--rows", type=Path, help="another file of runs: its tables go to stdout")
    parser.add_argument("--reference", default="deepbore", help="the method that others are compared with")
    parser.add_argument("--half", default="validation", choices=("development", "validation", "held_out", "all"))
    parser.add_argument("--methods", nargs="+", help="these alone, beside the reference")
    return parser.parse_args()


def main() -> int:
    given = arguments()
    runs = of_half(given.half, given.rows or ROWS)
    if given.rows:
        methods = given.methods or methods_of(runs, given.reference)[1:]
        kept = [n for n in BUDGETS if n <= max(run.n for run in runs.values())]
        table = Table(runs, [given.reference, *methods], kept)
        print(
            f"{len(table.problems)} problems, {len(table.pairs)} pairs\n\n{table.by_kind()}\n\n{table.against(methods)}"
        )
        return 0
    text = page(runs, of_half("held_out", ROWS), given.reference)
    if given.check:
        return int(not PAGE.exists() or PAGE.read_text() != text)
    PAGE.write_text(text)
    draw(runs, given.reference, PICTURE)
    return 0


if __name__ == "__main__":
    sys.exit(main())
