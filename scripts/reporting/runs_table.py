"""What the runs took, and what made them."""

from collections import defaultdict
from collections.abc import Mapping
from statistics import median

from reporting import tables
from reporting.facts import dimension_of, instance_of, place_of, suite_of
from reporting.rows import Run
from reporting.sections import LOOK, SHORT

ASYNCHRONOUS = ", asynchronous"  # how the name of a method ends that was asked as soon as one evaluation was done


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


def versions_table(runs: list[Run], reference: str, halves: Mapping[str, str]) -> str:
    """Packages, number of runs and failed evaluations of each method."""
    lines = []
    for method in tables.ordered({run.method for run in runs}, reference):
        own = [run for run in runs if run.method == method]
        versions = ", ".join(sorted({run.version for run in own if run.version})) or tables.NONE
        lines.append([method, versions, f"{len(own)}", f"{sum(run.n for run in own)}", f"{sum(r.failed for r in own)}"])
    table = tables.table(["method", "version", "runs", "evaluations", "failed"], lines)
    made = "\n".join(f"    {command}" for command in commands(runs, reference, halves))
    return f"## Versions and runs\n\n{table}\n{REPRODUCE.format(commands=made)}"


REPRODUCE = """The runs are made by the following, which leaves out those that are in docs/results/benchmark/ already;
runs that took too long are missing. The commands of looks at what is held out are in the register.

{commands}

Then `python scripts/report_benchmark.py` writes this page, its pictures and the table of docs/compared.md; with
`--check` it says whether they are up to date.
"""


def commands(runs: list[Run], reference: str, halves: Mapping[str, str]) -> list[str]:
    """What makes the runs: a command for each suite, number of evaluations and number of workers.

    Args:
        runs: all.
        reference: the method that is named first.
        halves: of the problems.
    """
    found: dict[tuple[int, str, int, int, bool], list[Run]] = defaultdict(list)
    for run in runs:
        if halves[run.problem].startswith(LOOK):  # the register has their commands
            continue
        suite = suite_of(run.problem)
        found[place_of(suite), suite, run.n, run.workers, run.method.endswith(ASYNCHRONOUS)].append(run)
    return [_command(key[1], found[key], reference, halves) for key in sorted(found)]


def _command(suite: str, runs: list[Run], reference: str, halves: Mapping[str, str]) -> str:
    problems = {run.problem for run in runs}
    dimensions = sorted({d for problem in problems if (d := dimension_of(problem))})
    instances = sorted({i for problem in problems if (i := instance_of(problem))})
    of_problems = {halves[problem] for problem in problems}
    seeds = {run.seed for run in runs}
    methods = tables.ordered({run.method.removesuffix(ASYNCHRONOUS) for run in runs}, reference)
    settings: dict[str, list[object]] = {
        "suite": [suite],
        "half": [of_problems.pop() if len(of_problems) == 1 else "all"],
        "dimensions": [*dimensions],
        "instances": [*instances],
        "methods": [*methods],
        "first-seed": [min(seeds)] if min(seeds) else [],
        "seeds": [max(seeds) - min(seeds) + 1],
        "trials": [runs[0].n],
        "workers": [runs[0].workers] if runs[0].workers > 1 else [],
    }
    given = [f"--{name} {' '.join(map(str, values))}" for name, values in settings.items() if values]
    last = ["--asynchronous"] if runs[0].method.endswith(ASYNCHRONOUS) else []
    return " ".join(["python scripts/benchmark.py", *given, *last])


def _milliseconds(times: list[float]) -> str:
    return tables.short(median(times))


def _column(column: tuple[int, str, int, int]) -> str:
    _, suite, workers, n = column
    return suite + (f", {workers} workers" if workers > 1 else "") + (f", {n} evaluations" if n else "")
