#!/usr/bin/env python
"""Runs methods on problems over several seeds and keeps what they found, one run a line.

    python scripts/benchmark.py --suite bbob --dimensions 5 --instances 1 2 --methods deepbore optuna-tpe --seeds 5
    python scripts/benchmark.py --problems branin hpolib/protein_structure --methods deepbore random --trials 200
    python scripts/benchmark.py --methods help     # lists the methods; scripts/peers/README.md describes them

Rows go to docs/results/benchmark/SUITE.jsonl, or to --out, as soon as a run is done. What is there for at least as many
evaluations is not run again, so an interrupted benchmark goes on where it stopped. One process a core, one thread each;
a run that fails, or takes longer than --limit, is reported, and the exit code is 1 at the end. Problems that
docs/results/held_out.json holds out are run once for their release, by one commit. A row:

    problem, method, seed, workers
    n             evaluations; fewer were made only if a finite space had no more
    best          [[evaluations, value], ...] where it changes: the true value of the best configuration seen so far.
                  Values are minimised: those of a problem that is maximised are negated
    recommended   the same of what the method recommends, at some checkpoints; only where values are noisy
    seconds       of processor time in ask and tell, over the whole run
    failed        evaluations that failed
    version       of the method's packages
    rounds        the sum of the true values of each round of `workers` evaluations; only where a figure asks for it
"""

import argparse
import itertools
import math
import os
import statistics
import sys
from collections.abc import Iterable
from pathlib import Path

import deepbore
from deepbore.problems.suites import SUITES, suite as suite_of
from harness import held_out, running
from harness.files import append, key, left
from harness.job import Job
from harness.working import work
from peers import methods
from reporting.rows import Run, read

RESULTS = Path(__file__).parent.parent / "docs" / "results" / "benchmark"


def place(job: Job, out: Path | None) -> Path:
    """The file that a job's row goes to."""
    if out is not None:
        return out
    family = job.problem.split("/")[0]
    return RESULTS / f"{family if family in SUITES else 'tables' if '/' in job.problem else 'functions'}.jsonl"


def known(jobs: Iterable[Job], out: Path | None) -> list[Run]:
    """The runs that the jobs' files hold."""
    return read(path for path in {place(job, out): None for job in jobs} if path.exists())


def summary(runs: list[Run]) -> str:
    """A line for each problem: each method's best value, the median over the seeds; then the time of each method."""
    lines = []
    names = list(dict.fromkeys(run.method for run in runs))
    for problem in dict.fromkeys(run.problem for run in runs):
        ends = []
        for method in names:
            values = [run.best[-1][1] for run in runs if (run.problem, run.method) == (problem, method) and run.best]
            ends += [f"{method} {statistics.median(values):.4g} ({len(values)})"] if values else []
        lines.append(f"{problem}: " + ", ".join(ends))
    for method in names:
        times = [1e3 * run.seconds / run.n for run in runs if run.method == method]
        lines.append(f"{method}: {statistics.median(times):.0f} ms an evaluation")
    return "\n".join(lines)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--suite", choices=SUITES, help="all its problems")
    parser.add_argument("--dimensions", type=int, nargs="+", help="of COCO's suites")
    parser.add_argument("--instances", type=int, nargs="+", help="of COCO's suites")
    parser.add_argument("--half", choices=("development", "validation", "held_out", "all"), default="development")
    parser.add_argument("--problems", nargs="+", default=[], help="single problems, by name")
    names = [*methods.names(), "help"]
    parser.add_argument("--methods", nargs="+", default=["deepbore"], choices=names, metavar="NAME", help="by name")
    parser.add_argument("--seeds", type=int, default=5, help="how many")
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--trials", type=int, default=100, help="evaluations a run")
    parser.add_argument("--initial", type=int, default=10, help="evaluations of the initial design")
    parser.add_argument("--workers", type=int, default=1, help="how many configurations are evaluated at the same time")
    parser.add_argument("--asynchronous", action="store_true", help="ask as soon as one is done, not for whole batches")
    parser.add_argument("--processes", type=int, default=os.cpu_count(), help="runs at the same time")
    parser.add_argument("--limit", type=float, default=math.inf, help="seconds that a run may take")
    parser.add_argument("--out", type=Path, help="a file for all rows")
    return parser.parse_args()


def main() -> int:
    given = arguments()
    if "help" in given.methods:
        print("\n".join(methods.names()))
        return 0
    problems = list(given.problems)
    if given.suite:
        problems += suite_of(given.suite, half=given.half, dimensions=given.dimensions, instances=given.instances)
    seeds = range(given.first_seed, given.first_seed + given.seeds)
    how = given.trials, given.workers, given.initial, given.asynchronous, given.limit
    every = [
        Job(problem, method, seed, *how)
        for seed, problem, method in itertools.product(seeds, dict.fromkeys(problems), given.methods)
    ]
    try:
        held_out.register(problems, deepbore.__version__)
    except held_out.LookedError as error:
        raise SystemExit(f"benchmark.py: {error}") from None
    try:
        failures = work(
            left(every, known(every, given.out)),
            given.processes,
            running.run,
            keep=lambda job, row: append(place(job, given.out), row),
            name=lambda job: f"{job.problem}, {job.label}, seed {job.seed}",
        )
    except KeyboardInterrupt:
        return 130
    keys = {job.key for job in every}
    print(summary([run for run in known(every, given.out) if key(run) in keys]))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
