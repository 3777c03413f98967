"""Makes what is missing of a figure: the runs of a race, or the seeds of a demonstration."""

import math
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache

from figures.kinds import Demonstration, Race
from figures.places import Results
from harness import running
from harness.files import append, left
from harness.job import Job
from harness.working import work

SMOKE_TRIALS, SMOKE_SEEDS = 14, 2


@dataclass(frozen=True)
class Size:
    """How large a figure is made; None for its default."""

    seeds: int | None = None
    trials: int | None = None
    problems: Sequence[str] = ()  # of those of a race; empty for all
    methods: Sequence[str] = ()
    limit: float = math.inf  # seconds that a run may take


@dataclass(frozen=True)
class Computation:
    """One seed of a demonstration."""

    figure: str
    seed: int
    size: int
    limit: float


def jobs(race: Race, size: Size) -> list[Job]:
    """The runs of a race, seed by seed, so that an interrupted figure has all methods on some seeds."""
    found = []
    rounds = race.metric == "cumulative regret"
    for (problem, method), trials in race.pairs.items():
        if not _wanted(problem, method, size):
            continue
        for seed in range(size.seeds or race.few.get(method, race.seeds)):
            n = size.trials or trials
            found.append(Job(problem, method, seed, n, race.workers, limit=size.limit, rounds=rounds))
    return sorted(found, key=lambda job: job.seed)


def race_on(race: Race, size: Size, processes: int | None, results: Results) -> int:
    """Makes the runs that no figure's file holds; returns how many failed."""
    missing = lacking({pair for pair in race.pairs if _wanted(*pair, size)})
    for reason in dict.fromkeys(missing.values()):
        print(f"{race.name}: {reason}", file=sys.stderr)
    todo = [job for job in left(jobs(race, size), results.runs()) if (job.problem, job.method) not in missing]
    return work(
        todo,
        processes,
        running.run,
        keep=lambda _, row: append(results.rows(race), row),
        name=lambda job: f"{job.problem}, {job.label}, seed {job.seed}",
    )


def compute_on(figure: Demonstration, size: Size, processes: int | None, results: Results) -> int:
    """Computes the seeds that are not in the figure's file; returns how many failed."""
    n = size.trials or figure.size
    there = results.numbers(figure, n)
    todo = [Computation(figure.name, seed, n, size.limit) for seed in range(size.seeds or figure.seeds)]
    return work(
        [each for each in todo if each.seed not in there],
        processes,
        compute,
        keep=lambda each, numbers: append(
            results.rows(figure), {"seed": each.seed, "size": each.size, "numbers": numbers}
        ),
        name=lambda each: f"{each.figure}, seed {each.seed}",
    )


def compute(each: Computation) -> dict[str, object]:
    """One seed of a demonstration, in a process of the pool."""
    from figures.catalogue import FIGURES  # which imports what computes

    figure = FIGURES[each.figure]
    assert isinstance(figure, Demonstration)
    return figure.compute(each.seed, each.size)


def lacking(pairs: Iterable[tuple[str, str]]) -> dict[tuple[str, str], str]:
    """The pairs of a problem and a method that can't be run here, and why."""
    found = {}
    for problem, method in sorted(pairs):
        reason = why_no_problem(problem) or why_no_method(method)
        if reason:
            found[problem, method] = reason
    return found


@cache
def why_no_problem(name: str) -> str:
    """Why a problem can't be made; empty if it can."""
    from deepbore.problems.suites import problem  # a report does without torch

    return _why(f"the problem {name} is left out", lambda: problem(name))


@cache
def why_no_method(name: str) -> str:
    """Why a method can't be run; empty if there is one of the name."""
    from peers import methods

    return "" if name in methods.names() else f"the method {name} is left out: there is none of this name"


def _why(what: str, make: Callable[[], object]) -> str:
    try:
        make()
    except Exception as error:
        return f"{what}: {error}"
    return ""


def _wanted(problem: str, method: str, size: Size) -> bool:
    return (not size.problems or problem in size.problems) and (not size.methods or method in size.methods)
