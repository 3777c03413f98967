"""What the runs took, and what made them."""

from collections import defaultdict
from statistics import median

from reporting import tables
from reporting.facts import place_of, suite_of
from reporting.rows import Run
from reporting.sections import SHORT


def time_table(runs: list[Run], reference: str) -> str:
    """Median milliseconds of the optimiser for an evaluation: methods by suites."""
    found: dict[tuple[int, str, int, int], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for run in runs:
        if run.seconds is not None:
            suite = suite_of(run.problem)
            column = (place_of(suite), suite, run.workers, run.n if run.n > SHORT else 0)
            found[column][run.method].append(1000 * run.seconds / run.n)
    columns = sorted(found)
    methods = tables.ordered({method for times in found.values() for method in times}, reference)
    lines = [
        [
            method,
            *(_milliseconds(found[column][method]) if method in found[column] else tables.NONE for column in columns),
        ]
        for method in methods
    ]
    head = (
        "## Optimiser time\n\nMilliseconds for an evaluation (asking and telling, on one core): the median over "
        f"runs of the whole run's mean. Runs of up to {SHORT} evaluations, unless a column says more.\n\n"
    )
    return head + tables.table(["method", *map(_column, columns)], lines)


def versions_table(runs: list[Run], reference: str) -> str:
    """Packages, number of runs and failed evaluations of each method."""
    lines = []
    for method in tables.ordered({run.method for run in runs}, reference):
        own = [run for run in runs if run.method == method]
        versions = ", ".join(sorted({run.version for run in own if run.version})) or tables.NONE
        lines.append([method, versions, f"{len(own)}", f"{sum(run.n for run in own)}", f"{sum(r.failed for r in own)}"])
    header = ["method", "version", "runs", "evaluations", "failed"]
    return f"## Versions and runs\n\n{tables.table(header, lines)}\n{REPRODUCE}"


REPRODUCE = """To make it again: `python scripts/benchmark.py --help` says how runs are made; a run that stands in
docs/results/benchmark/ already is not done again. Then `python scripts/report_benchmark.py` writes this page, its
pictures and the README's table, and with `--check` says whether they are up to date.
"""


def _milliseconds(times: list[float]) -> str:
    return tables.short(median(times))


def _column(column: tuple[int, str, int, int]) -> str:
    _, suite, workers, n = column
    return suite + (f", {workers} workers" if workers > 1 else "") + (f", {n} evaluations" if n else "")
