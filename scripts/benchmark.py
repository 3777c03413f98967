#!/usr/bin/env python
"""Runs methods on problems over several seeds and keeps what they found, one run a line.

    python scripts/benchmark.py --suite bbob --dimensions 5 --instances 1 2 --methods deepbore optuna-tpe --seeds 5
    python scripts/benchmark.py --problems branin hpolib/protein_structure --methods deepbore random --trials 200
    python scripts/benchmark.py --methods help     # lists the methods; scripts/peers/README.md describes them

Rows go to docs/results/benchmark/SUITE.jsonl, or to --out, as soon as a run is done. What is there for at least as many
evaluations is not run again, so an interrupted benchmark goes on where it stopped. One process a core, one thread each;
a run that fails, or takes longer than --limit, is reported, and the exit code is 1 at the end. A row:

    problem, method, seed, workers
    n             evaluations; fewer were made only if a finite space had no more
    best          [[evaluations, value], ...] where it changes: the true value of the best configuration seen so far.
                  Values are minimised: those of a problem that is maximised are negated
    recommended   the same of what the method recommends, at some checkpoints; only where values are noisy
    seconds       of processor time in ask and tell, over the whole run
    failed        evaluations that failed
    version       of the method's packages
"""

import argparse
import itertools
import json
import math
import multiprocessing
import os
import signal
import statistics
import sys
import time
import traceback
import warnings
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("MKL_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import torch

from deepbore.data.outcomes import Outcome
from deepbore.problems import Problem
from deepbore.problems.suites import SUITES, problem as problem_of, suite as suite_of
from deepbore.space import Params
from peers import methods
from peers.base import Peer
from reporting.rows import Run, read

RESULTS = Path(__file__).parent.parent / "docs" / "results" / "benchmark"
CHECKPOINTS = (25, 50, 100, 200, 500, 1000, 2000, 5000)  # at which recommendations are asked for
NOISY = ("bbob-noisy/", "noisy/")  # how the names of noisy problems begin
Row = dict[str, object]


@dataclass(frozen=True)
class Job:
    """One run: what is optimised how, and how many configurations are evaluated at the same time."""

    problem: str
    method: str
    seed: int
    trials: int
    workers: int = 1
    initial: int = 10
    asynchronous: bool = False
    limit: float = math.inf  # seconds

    @property
    def label(self) -> str:
        """The method's name in the results."""
        return self.method + ", asynchronous" * self.asynchronous

    @property
    def key(self) -> tuple[str, str, int, int]:
        """What tells it from other runs, but for their length."""
        return self.problem, self.label, self.seed, self.workers


class TimeUp(BaseException):
    """A run has had its time; nothing in between should catch it."""


# --- one run ----------------------------------------------------------------------------------------------------------


class Ledger:
    """What a run has found so far, by the true values of configurations, in the sign that is minimised."""

    def __init__(self, problem: Problem):
        self.problem, self.sign = problem, -1.0 if problem.direction == "maximize" else 1.0
        self.digits = 12 if problem.optimum else 6  # the regret is a small difference where the optimum is not 0
        self.least, self.n, self.failed = math.inf, 0, 0
        self.best = list[tuple[int, float]]()
        self.recommended = list[tuple[int, float]]()

    def evaluate(self, params: Params) -> float | None:
        """The value that the method is told; None for a failure."""
        value = evaluated(self.problem, params)
        self.n += 1
        if value is None:
            self.failed += 1
            return None
        if self.sign * value < self.least:
            self.least = self.sign * value
            true = self.true_value(params)
            if not self.best or self.best[-1][1] != true:
                self.best.append((self.n, true))
        return self.sign * value

    def recommend(self, params: Params) -> None:
        """Notes the true value of a recommended configuration."""
        self.recommended.append((self.n, self.true_value(params)))

    def true_value(self, params: Params) -> float:
        """The value without noise, rounded."""
        return float(f"{self.sign * self.problem.true_value(params):.{self.digits}g}")


def evaluated(problem: Problem, params: Params) -> float | None:
    """The observed value; None where the evaluation raises, or gives no finite number."""
    try:
        value = problem(params)
    except Exception:
        return None
    if isinstance(value, Outcome):
        value = math.nan if value.has_failed else value.values[0]
    return float(value) if math.isfinite(value) else None


def optimise(peer: Peer, ledger: Ledger, job: Job) -> float:
    """Runs to the end; returns the seconds of processor time that the peer took."""
    seconds, pending = 0.0, list[Params]()
    while (left := job.trials - ledger.n) > 0:
        started = peer.clock()
        if job.asynchronous or not pending:
            room = min(job.workers, left) - len(pending)
            pending += peer.ask(room) if room > 0 else []
        seconds += peer.clock() - started
        if not pending:  # nothing is left to try
            break
        params = pending.pop(0)
        value = ledger.evaluate(params)
        started = peer.clock()
        peer.tell(params, value)
        seconds += peer.clock() - started
        if peer.noisy and ledger.n in CHECKPOINTS:
            ledger.recommend(peer.recommend())
    return seconds


def run(job: Job) -> Row:
    """One run as a row of the results."""
    problem = problem_of(job.problem, seed=job.seed)
    noisy = job.problem.startswith(NOISY)
    ledger = Ledger(problem)
    peer = methods.make(job.method, problem.space, job.seed, n_initial=job.initial, noisy=noisy, workers=job.workers)
    try:
        seconds = optimise(peer, ledger, job)
        return {
            "problem": job.problem,
            "method": job.label,
            "seed": job.seed,
            "workers": job.workers,
            "n": job.trials,
            "best": ledger.best,
            "recommended": ledger.recommended,
            "seconds": round(seconds, 3),
            "failed": ledger.failed,
            "version": peer.version,
        }
    finally:
        peer.close()


# --- many runs --------------------------------------------------------------------------------------------------------


def prepare() -> None:
    """What each process of the pool does first: Ctrl-C is for the main process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGALRM, time_up)
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")


def time_up(*_: object) -> None:
    raise TimeUp


def attempt(job: Job) -> Row | str:
    """The row of a run, or why there is none."""
    try:
        if math.isfinite(job.limit):
            signal.setitimer(signal.ITIMER_REAL, job.limit, 1)  # and again, should a library have swallowed it
        return run(job)
    except TimeUp:
        return f"took longer than {job.limit:g} s"
    except Exception:
        return traceback.format_exc()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def finished(jobs: list[Job], processes: int) -> Iterator[tuple[Job, Row | str]]:
    """Each job with its row, as they are done."""
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(processes, mp_context=context, initializer=prepare)
    try:
        futures = {pool.submit(attempt, job): job for job in jobs}
        for future in as_completed(futures):
            yield futures[future], outcome(future)
    finally:
        workers = list((pool._processes or {}).values())
        pool.shutdown(wait=False, cancel_futures=True)
        for worker in workers:
            worker.terminate()


def outcome(future: "Future[Row | str]") -> Row | str:
    """What `attempt` gave; a process that was killed takes the whole pool with it."""
    try:
        return future.result()
    except BrokenProcessPool as error:
        return str(error)


def place(job: Job, out: Path | None) -> Path:
    """The file that a job's row goes to."""
    if out is not None:
        return out
    family = job.problem.split("/")[0]
    return RESULTS / f"{family if family in SUITES else 'tables' if '/' in job.problem else 'functions'}.jsonl"


def append(path: Path, row: Row) -> None:
    """Adds a row, in one write: several benchmarks may share a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+b") as file:
        end = file.seek(0, os.SEEK_END)
        file.seek(max(end - 1, 0))
        torn = file.read(1) not in (b"", b"\n")  # one who wrote here was killed
        file.write(b"\n" * torn + json.dumps(row, separators=(",", ":")).encode() + b"\n")


def known(jobs: Iterable[Job], out: Path | None) -> list[Run]:
    """The runs that the jobs' files hold."""
    return read(path for path in {place(job, out): None for job in jobs} if path.exists())


def key(run: Run) -> tuple[str, str, int, int]:
    """What tells a run from others, but for its length."""
    return run.problem, run.method, run.seed, run.workers


def left(jobs: list[Job], out: Path | None) -> list[Job]:
    """The jobs that are not done: no run of as many evaluations is there."""
    longest = dict[tuple[str, str, int, int], int]()
    for run in known(jobs, out):
        longest[key(run)] = max(longest.get(key(run), 0), run.n)
    return [job for job in jobs if longest.get(job.key, 0) < job.trials]


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


def progress(started: float, count: int, total: int, failures: int) -> str:
    """How far it is, and when it will end."""
    minutes = (time.monotonic() - started) / count * (total - count) / 60
    return f"\r{count} of {total} runs, {failures} failed, {minutes:.0f} min left "


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--suite", choices=SUITES, help="all its problems")
    parser.add_argument("--dimensions", type=int, nargs="+", help="of COCO's suites")
    parser.add_argument("--instances", type=int, nargs="+", help="of COCO's suites")
    parser.add_argument("--half", choices=("development", "held_out", "all"), default="development")
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
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends as by Ctrl-C: no worker is left behind
    jobs, failures, started = left(every, given.out), 0, time.monotonic()
    try:
        for count, (job, row) in enumerate(finished(jobs, given.processes), 1):
            if isinstance(row, str):
                failures += 1
                print(f"\n{job.problem}, {job.label}, seed {job.seed}: {row}", file=sys.stderr)
            else:
                append(place(job, given.out), row)
            print(progress(started, count, len(jobs), failures), end="", file=sys.stderr, flush=True)
    except KeyboardInterrupt:
        print("\ninterrupted; the same command goes on from here", file=sys.stderr)
        return 130
    print(file=sys.stderr)
    keys = {job.key for job in every}
    print(summary([run for run in known(every, given.out) if key(run) in keys]))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
