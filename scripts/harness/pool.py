"""Many runs, each in a process with one thread."""

import math
import multiprocessing
import os
import signal
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from typing import Protocol, TypeVar

import torch

THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
Row = dict[str, object]


class Limited(Protocol):
    """A job as the pool sees it."""

    @property
    def limit(self) -> float:
        """Seconds that it may take."""
        ...


AnyJob = TypeVar("AnyJob", bound=Limited)


class TimeUp(BaseException):
    """A run has had its time; nothing in between should catch it."""


def finished(
    jobs: Sequence[AnyJob], processes: int | None, run: Callable[[AnyJob], Row]
) -> Iterator[tuple[AnyJob, Row | str]]:
    """Each job with its row, or why there is none, as they are done.

    Args:
        jobs: to be run.
        processes: how many at the same time; None for one a core.
        run: from a job to its row; a function of a module, as other processes import it.
    """
    for name in THREADS:
        os.environ.setdefault(name, "1")
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(processes, mp_context=context, initializer=prepare)
    try:
        futures = {pool.submit(attempt, job, run): job for job in jobs}
        for future in as_completed(futures):
            yield futures[future], outcome(future)
    finally:
        workers = list((pool._processes or {}).values())
        pool.shutdown(wait=False, cancel_futures=True)
        for worker in workers:
            worker.terminate()


def prepare() -> None:
    """What each process of the pool does first: Ctrl-C is for the main process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGALRM, time_up)
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")


def time_up(*_: object) -> None:
    raise TimeUp


def attempt(job: AnyJob, run: Callable[[AnyJob], Row]) -> Row | str:
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


def outcome(future: "Future[Row | str]") -> Row | str:
    """What `attempt` gave; a process that was killed takes the whole pool with it."""
    try:
        return future.result()
    except BrokenProcessPool as error:
        return str(error)
