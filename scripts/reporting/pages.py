"""docs/results.md with the pages behind it, and the table of docs/compared.md between its markers."""

from collections.abc import Iterable, Mapping
from itertools import groupby
from types import MappingProxyType
from typing import Any

from reporting import intervals, tables
from reporting.comparison import Comparison
from reporting.runs_table import time_table, versions_table
from reporting.section import section_tables
from reporting.sections import HALVES, Comparisons, Section, half_title

MARKERS = ("<!-- results -->\n", "<!-- /results -->")
K = 100  # evaluations of the tables that give one figure for a suite
BEFORE = 50  # where nothing ran for so long

HEAD = """# Results

Written by `python scripts/report_benchmark.py` from the runs in `docs/results/benchmark/`; do not edit.
"""

NOTHING = """
There are no runs yet.
"""

READING = """The regret of `{reference}` by that of the best other method (by average rank) after {k} evaluations;
`networks` after {before}. What is typical of the problems has a 95 % interval, and decides. The geometric mean beside
it owes more to the problems with extreme ratios; so its interval is wide, and the next column has the mean without the
four problems that favour `{reference}` most. {rule} How it is measured is on [a page](results/method.md); other numbers
of evaluations and all methods are behind each suite.
"""

METHOD = """# How results are measured

Written by `python scripts/report_benchmark.py`; do not edit.

Every method has the same problems, seeds, number of initial evaluations and cores.

- **Average rank.** The methods that have runs on at least 80 % of the problems, and with at least half of all
  seeds on them, are ranked by their regret on each problem and seed that all of them have (1 is best, ties share their
  ranks); the mean is over seeds, then problems. Methods with fewer runs are compared on those they have, below.
- **Regret** is the value minus the best possible one. Nobody knows that of training runs, policies and digits under a
  limit: theirs is the value minus the best one that any run here has seen. Regrets below 1e-8 count as 1e-8; there and
  on tables, whose values are steps, those below a tenth of the smallest regret above 0 that any run has seen count as
  that; and none counts as less than the last digit of the values that are kept: the sixth where no optimum was known
  when the runs were made, as on bbob-constrained.
- **Ratios** are of regrets with the same seed; below 1, `{reference}` is ahead. A cell has {cell}. The best peer is
  the method with the best average rank at that number of evaluations.
- **Ahead, level, behind, undecided.** {rule}
- **Intervals.** That of a typical ratio has every ratio that Wilcoxon's signed-rank test does not reject at 5 %; those
  of means are Student's t of {confidence:.1f} %. Both are over problems; the instances of one of COCO's functions count
  as one. Few problems have most of a mean of log ratios: by simulation with the ratios of these pages and 6 to 24
  problems, Student's t of 95 % holds it in 85 to 91 of a hundred cases, bootstraps in 76 to 93, and Student's t of
  {confidence:.1f} % in 94 to 96; the signed-rank interval holds what it is of in 94 to 96
  (`python scripts/interval_coverage.py docs/results/coverage.json`). Of fewer than {fewest} problems there is no
  interval.
- **Targets** are 51 regrets, evenly spread over their logarithms: from 100 to 1e-8 on COCO's functions, elsewhere from
  the median regret of random search after 10 evaluations to the smallest that counts. Pictures show the best that was
  seen.
- **Development and validation.** Defaults were chosen on the development half: COCO's instances 1 to 5, and half of
  the tables, training runs and branches, drawn by a hash of their names. The other half is called validation, not held
  out: its results were made anew, and looked at, after changes of a default, and single rules followed from them
  ([what was tried](../ablation.md)). The commits that did, and what is held out now for one look of a release each,
  are in [the register](held_out.json); `scripts/benchmark.py` refuses a second look, and one that was not planned.
- **Peers** are set as [a page](../peers.md) says.
"""

LOOKED = """Held-out problems: no default was tuned on them, and each was evaluated once. The regret of `{reference}` by
that of the best other method after {k} evaluations, or {before} where there are no more
([the plan](results/method.md#looks-at-what-is-held-out) was made before):

"""

PLANS = """
## Looks at what is held out

Which problems, by which methods and for how long: planned in the register before any method ran on them. Pieces were
run in this order, as far as the machine's time went.

"""


MADE_FOR = {  # suites made for one defect of the default -> the section of docs/ablation.md on it
    "branches": "branches-that-are-known-in-detail",
    "levels": "where-all-parameters-have-levels",
}
GAINS = """This suite was made for [one defect of the default](../ablation.md#{section}).
It says what the change gained; what it costs is on the pages of ordinary suites, such as [bbob](bbob.md)
and [training runs](ground.md).
"""


def documents(
    compared: Comparisons,
    reference: str,
    pictures: Iterable[str] = (),
    register: Mapping[str, Any] = MappingProxyType({}),
) -> dict[str, str]:
    """The pages of results: name below docs -> text.

    Args:
        compared: the comparisons of all runs.
        reference: the method that others are compared with.
        pictures: names of the files in docs/pictures; each begins with its suite.
        register: of what is held out.
    """
    if not compared.runs:
        return {"results.md": HEAD + NOTHING}
    runs = [run for ran in compared.runs.values() for run in ran]
    halves = {run.problem: section.half for section, ran in compared.runs.items() for run in ran}
    method = METHOD.format(
        reference=reference,
        cell=tables.CELL,
        rule=intervals.RULE,
        confidence=100 * intervals.CONFIDENCE,
        fewest=intervals.FEWEST,
    )
    found = {
        "results.md": overview(compared, reference),
        "results/method.md": method + plans(register),
        "results/runs.md": f"# Runs\n\n{time_table(runs, reference)}\n{versions_table(runs, reference, halves)}",
    }
    for suite, sections in groupby(compared.runs, key=lambda section: section.suite):
        parts = [f"# {suite}\n", f"A ratio's cell has {tables.CELL}. [How it is measured](method.md).\n"]
        parts += [GAINS.format(section=MADE_FOR[suite])] if suite in MADE_FOR else []
        parts += [_picture(name, suite) for name in pictures if name.split("-targets")[0] == suite]
        for section in sections:
            parts += section_tables(section, compared, reference)
        found[_page(suite)] = "\n".join(parts)
    return found


def plans(register: Mapping[str, Any]) -> str:
    """What the register plans to look at, and when it was."""
    lines = []
    for name, each in register.get("sets", {}).items():
        look = each["look"]
        when = f"looked at on {look['date']} by {look['commit'][:7]}" if look else "not looked at yet"
        for plan in each.get("plan", ()):
            lines.append(
                f"- {name}, release {each['release']}, {when}: {plan['rule']}; {', '.join(plan['methods'])}; "
                f"{plan['trials']} evaluations, {plan['seeds']} seeds. {plan.get('made', '')}".rstrip()
                + "\n"
            )
    return PLANS + "".join(lines) if lines else ""


def _page(suite: str) -> str:
    return f"results/{suite}.md"


def overview(compared: Comparisons, reference: str) -> str:
    """docs/results.md: a line for each suite, dimension and half."""
    parts = [HEAD, READING.format(reference=reference, k=K, before=BEFORE, rule=intervals.RULE)]
    halves = [*looks(compared), *HALVES]
    parts += [table for half in halves if (table := _of_half(half, compared, reference, "results/"))]
    large = list(dict.fromkeys(section.suite for section in compared.runs if section.workers > 1))
    batches = ", ".join(f"[{suite}]({_page(suite)})" for suite in large)
    parts.append(f"Batches are on the pages of {batches}. " if large else "")
    return "\n".join(parts) + "Optimiser time, versions and commands: [runs](results/runs.md).\n"


def looks(compared: Comparisons) -> list[str]:
    """The halves that were held out, that of the newest release first."""
    halves = {section.half for section in compared.runs if section.is_look}
    return sorted(halves, key=lambda half: [int(part) for part in half.split()[1].split(".")], reverse=True)


def _of_half(half: str, compared: Comparisons, reference: str, folder: str) -> str:
    """A line for each suite and dimension of a half; empty where there is none."""
    lines = [
        line
        for section in compared.runs
        if (section.half, section.workers) == (half, 1) and (line := _summary(section, compared, reference, folder))
    ]
    header = [half_title(half).capitalize(), "problems", "rank", "best other", "", "typical", "mean", "without 4"]
    return tables.table(header, lines) if lines else ""


def _summary(section: Section, compared: Comparisons, reference: str, folder: str) -> list[str] | None:
    """A line of the overview, which links to a page in a folder; None where the reference has no rank."""
    for k in (K, BEFORE):
        comparison = compared.summary(section, k)
        found = comparison.against_best(reference)
        if found and reference in (ranks := comparison.ranks()):
            peer, duel = found
            title = f"[{section.suite_title}]({folder}{section.suite}.md)"
            ranked = [tables.rank(ranks[reference], interval=False), f"{peer} {ranks[peer].mean:.2f}"]
            ratios = [tables.typical(duel), tables.ratio(duel.ratio), tables.without_best(duel)]
            return [title, str(len(duel.ratios)), *ranked, f"**{duel.typical.verdict}**", *ratios]
    return None


def summary(compared: Comparisons, reference: str) -> str | None:
    """The table of docs/compared.md: average ranks by suite, over all dimensions and halves; None without runs."""
    pooled = compared.pooled()
    summaries = {s.suite_title: pooled.summary(s, K) for s in pooled.runs if s.workers == 1}
    ranked = {f"{suite} ({len(c.problems())})": c for suite, c in summaries.items() if c.ranks()}
    if not ranked:
        return None
    look = "\n".join(_of_half(half, compared, reference, "results/") for half in looks(compared))
    return (
        (LOOKED.format(reference=reference, k=K, before=BEFORE) + look + "\n" if look else "")
        + f"Average rank after {K} evaluations (1 is best), by suite, with the number of problems; one set of defaults."
        "\n[All results](results.md), with intervals, other budgets and how they were made:\n\n"
        + _ranks_by_suite(ranked, reference)
    )


def with_table(text: str, table: str | None) -> str:
    """A page with the table between its markers; as it is where there is no table or no markers."""
    before, opening, rest = text.partition(MARKERS[0])
    _, closing, after = rest.partition(MARKERS[1])
    return f"{before}{opening}\n{table}\n{closing}{after}" if table is not None and closing else text


def _ranks_by_suite(compared: dict[str, Comparison], reference: str) -> str:
    """Suites by methods."""
    ranks = {title: comparison.ranks() for title, comparison in compared.items()}
    methods = tables.ordered({method for of in ranks.values() for method in of}, reference)
    lines = []
    for title, of in ranks.items():
        first = tables.best(of)
        lines.append([title, *(tables.rank(of.get(name), name in first, interval=False) for name in methods)])
    return tables.table(["suite", *methods], lines)


def _picture(name: str, suite: str) -> str:
    return f"![Share of the targets reached on {suite} against the number of evaluations](../pictures/{name})\n"
