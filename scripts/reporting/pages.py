"""docs/results.md, and the README's table between its markers."""

from collections.abc import Iterable
from itertools import groupby

from reporting import bootstrap, tables
from reporting.comparison import Comparison
from reporting.runs_table import time_table, versions_table
from reporting.section import section_tables
from reporting.sections import CHECKPOINTS, HALVES, Comparisons, Section, half_title

MARKERS = ("<!-- results -->\n", "<!-- /results -->")
K = 100  # evaluations of the tables that give one figure for a suite

HEAD = """# Results

Written by `python scripts/report_benchmark.py` from the runs in `docs/results/benchmark/`; do not edit.
"""

NOTHING = """
There are no runs yet.
"""

METHOD = """
Every method has the same problems, seeds, number of initial evaluations and cores.

- **Average rank.** The methods that have runs on at least 80 % of the problems, and with at least half of all
  seeds on them, are ranked by their regret on each problem and seed that all of them have (1 is best, ties share their
  ranks); the mean is over seeds, then problems. Methods with fewer runs are compared on those they have, below.
- **Regret** is the value minus the best possible one. Nobody knows that of training runs, policies and digits under a
  limit: theirs is the value minus the best one that any run here has seen. Regrets below 1e-8 count as 1e-8; there and
  on tables, whose values are steps, those below a tenth of the smallest regret above 0 that any run has seen count as
  that; and none counts as less than the last digit of the values that are kept: the sixth where no optimum was known
  when the runs were made, as on bbob-constrained.
- **Ratios** are geometric means over seeds, then problems, of regrets with the same seed; below 1, `{reference}` is
  ahead. The best peer is the one with the best average rank at that number of evaluations.
- **Targets** are 51 regrets, evenly spread over their logarithms: from 100 to 1e-8 on COCO's functions, elsewhere from
  the median regret of random search after 10 evaluations to the smallest that counts. Pictures show the best that was
  seen.
- **Intervals** hold 95 % of 2000 bootstrap samples of the problems; the instances of one of COCO's functions are drawn
  together. Those of a mean of several suites take these for independent, though some have the same functions in other
  dimensions.
- **Halves.** Only the development half was looked at while deepbore's defaults were chosen: COCO's instances 1 to 5,
  and half of the tables, training runs and branches, drawn by a hash of their names. After a change of a default the
  runs that it touches are made anew, those held out, too ([what was tried](ablation.md) says when).
"""


def document(compared: Comparisons, reference: str, pictures: Iterable[str] = ()) -> str:
    """The page of results.

    Args:
        compared: the comparisons of all runs.
        reference: the method that others are compared with.
        pictures: names of the files in docs/pictures; each begins with its suite.
    """
    if not compared.runs:
        return HEAD + NOTHING
    parts = [HEAD, METHOD.strip().format(reference=reference) + "\n", overview(compared, reference)]
    for suite, sections in groupby(compared.runs, key=lambda section: section.suite):
        parts.append(f"## {suite}\n")
        parts += [_picture(name, suite) for name in pictures if name.split("-targets")[0] == suite]
        for section in sections:
            parts += section_tables(section, compared, reference)
    runs = [run for ran in compared.runs.values() for run in ran]
    halves = {run.problem: section.half for section, ran in compared.runs.items() for run in ran}
    return "\n".join([*parts, time_table(runs, reference), versions_table(runs, reference, halves)])


def overview(compared: Comparisons, reference: str) -> str:
    """For each half: average ranks after `K` evaluations, and the ratio to the best peer at each checkpoint."""
    parts = ["## Overview\n"]
    for half in HALVES:
        sections = [section for section in compared.runs if (section.half, section.workers) == (half, 1)]
        ranked = {section.suite_title: compared.summary(section, K) for section in sections}
        ranked = {title: comparison for title, comparison in ranked.items() if comparison.ranks()}
        if ranked:
            parts.append(f"### {half_title(half).capitalize()}\n\nAverage rank after {K} evaluations:\n")
            parts.append(_ranks_by_suite(ranked, reference, overall=True))
            parts.append(_against_best(compared, sections, reference))
    return "\n".join(parts)


def readme(compared: Comparisons, reference: str) -> str | None:
    """The README's table: average ranks by suite, all dimensions and both halves together; None without runs."""
    pooled = compared.pooled()
    summaries = {s.suite_title: pooled.summary(s, K) for s in pooled.runs if s.workers == 1}
    ranked = {f"{suite} ({len(c.problems())})": c for suite, c in summaries.items() if c.ranks()}
    if not ranked:
        return None
    return (
        f"Average rank after {K} evaluations (1 is best), by suite, with the number of problems; one set of defaults."
        "\n[All results](docs/results.md), with intervals, other budgets and how they were made:\n\n"
        + _ranks_by_suite(ranked, reference)
    )


def with_table(text: str, table: str | None) -> str:
    """A README with the table between its markers; as it is where there is no table or no markers."""
    before, opening, rest = text.partition(MARKERS[0])
    _, closing, after = rest.partition(MARKERS[1])
    return f"{before}{opening}\n{table}\n{closing}{after}" if table is not None and closing else text


def _ranks_by_suite(compared: dict[str, Comparison], reference: str, overall: bool = False) -> str:
    """Suites by methods."""
    ranks = {title: comparison.ranks() for title, comparison in compared.items()}
    methods = tables.ordered({method for of in ranks.values() for method in of}, reference)
    lines = []
    for title, of in ranks.items():
        first = tables.best(of)
        lines.append([title, *(tables.rank(of.get(name), name in first, interval=False) for name in methods)])
    if overall and len(ranks) > 1:
        means = {
            name: bootstrap.average([of[name] for of in ranks.values()])
            for name in methods
            if all(name in of for of in ranks.values())
        }
        first = tables.best(means)
        lines.append(["mean of these", *(tables.rank(means.get(name), name in first) for name in methods)])
    return tables.table(["suite", *methods], lines)


def _against_best(compared: Comparisons, sections: list[Section], reference: str) -> str:
    """Suites by checkpoints: the ratio of regrets to the best peer's."""
    ratios: dict[int, list[bootstrap.Estimate]] = {k: [] for k in CHECKPOINTS}
    lines = {section.suite_title: [tables.NONE] * len(CHECKPOINTS) for section in sections}
    for section in sections:
        for column, k in enumerate(CHECKPOINTS):
            if found := compared.summary(section, k).against_best(reference):
                peer, duel = found
                ratios[k].append(duel.ratio)
                lines[section.suite_title][column] = f"{tables.ratio(duel.ratio)} {peer}"
    if len(lines) > 1:
        lines["mean of these"] = [tables.ratio(bootstrap.average(of) if of else None) for of in ratios.values()]
    shown = [column for column, k in enumerate(CHECKPOINTS) if ratios[k]]
    body = [[title, *(cells[column] for column in shown)] for title, cells in lines.items()]
    head = f"Regret of `{reference}` by that of the best peer, at the number of evaluations:\n\n"
    return head + tables.table(["suite", *(str(CHECKPOINTS[column]) for column in shown)], body)


def _picture(name: str, suite: str) -> str:
    return f"![Share of the targets reached on {suite} against the number of evaluations](pictures/{name})\n"
