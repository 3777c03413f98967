"""`ExecutorEvaluator`: on any engine with the interface of `concurrent.futures`, with timeouts and retries."""

import pickle
import time
from abc import abstractmethod
from collections import Counter, deque
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any
from uuid import uuid4

from deepbore.data.outcome import LostWorker, Outcome
from deepbore.data.trial import Trial
from deepbore.errors import EvaluatorError, SettingError
from deepbore.evaluators.base import Evaluator, Finished, check_objective, check_settings, warn
from deepbore.validation import seconds
from deepbore.worker.objective import Objective, evaluate, in_words

LOOK = 0.5  # seconds to wait for a worker that was lost before the run looks whether it is over


@dataclass(frozen=True, eq=False)
class Attempt:
    """A trial under evaluation.

    Attributes:
        trial: the trial.
        number: 1 for the first attempt, 2 for the first retry, ...
        executor: where it runs.
        future: of its outcome.
        started: when, in seconds of the monotonic clock.
    """

    trial: Trial
    number: int
    executor: Executor
    future: "Future[Outcome]"
    started: float

    def seconds(self) -> float:
        """The time since it started."""
        return time.monotonic() - self.started


class ParallelEvaluator(Evaluator):
    """An evaluator that runs up to `workers` trials at a time; others are queued here, so that submission is start.

    If an executor breaks while it runs several trials, because one of them has killed its process, it does not say
    which: each is tried again alone, and that isn't counted; also one that has timed out and still runs there.

    Args:
        workers: how many trials are evaluated at the same time.
        timeout: seconds, or a `timedelta`, that one attempt may take; None for no limit.
        retries: how many times a trial is tried again that failed: raised, gave no number, timed out, lost its worker.

    Raises:
        SettingError: for a setting outside its range.
    """

    def __init__(self, workers: int, timeout: float | timedelta | None, retries: int):
        limit = seconds(timeout)
        check_settings(workers, limit, retries)
        self.workers, self.timeout, self.retries = workers, limit, retries
        self._queue: deque[tuple[Trial, int]] = deque()  # with the number of the next attempt
        self.running: list[Attempt] = []
        self._suspects: set[int] = set()  # trials to be tried alone
        # calls that occupy a worker until they are done; with the executor of an attempt that was given up
        self.away: dict[Future[Any], Executor | None] = {}

    # --- what an engine defines --------------------------------------------------------------------------------------

    @abstractmethod
    def _start(self, trial: Trial) -> "tuple[Executor, Future[Outcome]] | None":
        """Begins an evaluation on a free worker; None if that had died and is being replaced."""

    @abstractmethod
    def _give_up(self, attempt: Attempt) -> None:
        """Frees the worker of an attempt that has timed out, or else counts it as away."""

    @abstractmethod
    def _replace(self, executor: Executor) -> None:
        """Replaces a broken executor."""

    # --- Evaluator ---------------------------------------------------------------------------------------------------

    @property
    def outstanding(self) -> int:
        return len(self._queue) + len(self.running)

    @property
    def free(self) -> int:
        return self._idle - len(self._queue)

    def submit(self, trial: Trial) -> None:
        self._queue.append((trial, 1))
        self._fill()

    def collect(self) -> list[Finished]:
        self._fill()  # now, not when trials end: the run may be over by then
        self._wait()
        ended = self._ended()
        self.running = [attempt for attempt in self.running if attempt not in ended]
        broken = Counter(attempt.executor for attempt in ended if is_lost(attempt.future))
        given_up = Counter(executor for future, executor in self.away.items() if is_lost(future))
        for executor in broken:
            self._replace(executor)
        under_it = broken + given_up
        finished = [self._finished(attempt, alone=under_it[attempt.executor] <= 1) for attempt in ended]
        return [one for one in finished if one is not None]

    def withdraw(self) -> list[Trial]:
        waiting = [trial for trial, _ in self._queue]
        self._queue.clear()
        return waiting

    def close(self) -> None:
        self._queue.clear()
        self.running.clear()
        self._suspects.clear()

    # --- within ------------------------------------------------------------------------------------------------------

    @property
    def _idle(self) -> int:
        """How many attempts could start now: one for each worker that is not away, and suspects one at a time."""
        self._forget_those_back()
        at_once = 1 if self._suspects else self.workers
        return min(at_once, self.workers - len(self.away)) - len(self.running)

    def _fill(self) -> None:
        while self._queue and self._idle > 0:
            trial, number = self._queue[0]
            if (started := self._start(trial)) is not None:
                self._queue.popleft()
                self.running.append(Attempt(trial, number, *started, time.monotonic()))

    def _wait(self) -> None:
        """Waits until an attempt is done or out of time, or a worker is back; without attempts, a moment at most."""
        self._forget_those_back()
        patience = None if self.running else LOOK
        if self.timeout is not None and self.running:
            patience = max(0.0, self.timeout - max(attempt.seconds() for attempt in self.running))
        wait([*self.away, *(attempt.future for attempt in self.running)], patience, FIRST_COMPLETED)

    def _ended(self) -> list[Attempt]:
        """Attempts that are done, out of time, or on an executor that broke, where they end in a moment."""
        ended = [attempt for attempt in self.running if attempt.future.done() or self._is_late(attempt)]
        broken = {attempt.executor for attempt in ended if is_lost(attempt.future)}
        doomed = [attempt for attempt in self.running if attempt.executor in broken]
        given_up = [future for future, executor in self.away.items() if executor in broken]
        wait([*given_up, *(attempt.future for attempt in doomed)])
        return ended + [attempt for attempt in doomed if attempt not in ended]

    def _forget_those_back(self) -> None:
        self.away = {future: executor for future, executor in self.away.items() if not future.done()}

    def _is_late(self, attempt: Attempt) -> bool:
        return self.timeout is not None and attempt.seconds() >= self.timeout

    def _finished(self, attempt: Attempt, alone: bool) -> Finished | None:
        """The trial with its outcome; None if it is tried again."""
        if is_lost(attempt.future) and not alone:
            self._suspects.add(attempt.trial.id)
            self._queue.appendleft((attempt.trial, attempt.number))
            return None
        self._suspects.discard(attempt.trial.id)
        outcome = self._outcome(attempt)
        if outcome.has_failed and attempt.number <= self.retries:
            self._queue.appendleft((attempt.trial, attempt.number + 1))
            return None
        if outcome.has_failed and attempt.number > 1:
            outcome = replace(outcome, reason=f"{outcome.reason or 'failed'} (attempt {attempt.number})")
        return Finished(attempt.trial, outcome)

    def _outcome(self, attempt: Attempt) -> Outcome:
        if not attempt.future.done():
            self._give_up(attempt)
            return Outcome.failure(f"timed out after {self.timeout:g} s")
        if attempt.future.cancelled():
            return Outcome.failure("its evaluation was cancelled")
        error = attempt.future.exception()
        if isinstance(error, KeyboardInterrupt):  # Ctrl-C reached the worker, too: the trial has not failed
            raise KeyboardInterrupt
        if error is None:
            return attempt.future.result()
        if isinstance(error, BrokenExecutor):
            return LostWorker.failure("the worker process died")
        return Outcome.failure(in_words(error))  # sys.exit, or the engine's own


def is_lost(future: "Future[Any]") -> bool:
    """Whether its executor broke during a call."""
    return future.done() and not future.cancelled() and isinstance(future.exception(), BrokenExecutor)


def submitted(executor: Executor, *call: Any) -> "Future[Outcome]":
    """The future of a call; one that has failed already, if the executor turns out to be broken."""
    try:
        return executor.submit(*call)
    except BrokenExecutor as error:
        future: Future[Outcome] = Future()
        future.set_exception(error)
        return future
    except RuntimeError as error:  # what executors raise when they are shut down
        raise EvaluatorError(f"the {type(executor).__name__} takes no more trials: {error}. Make a new one.") from error


class ExecutorEvaluator(ParallelEvaluator):
    """Evaluates on an executor of yours: threads, a process pool, `mpi4py.futures`, `dask`'s client executor.

    The executor stays yours: it isn't shut down. Timeouts count from submission, which is the start where the executor
    has as many workers as stated and no other work. No executor can end a running call: after a timeout the
    trial has failed, but its worker is lost until the call returns; if all are lost, the run waits, with a warning.

    If a worker of a `ProcessPoolExecutor` dies, the pool breaks and is replaced by one like it; the trials that ran are
    tried again, one at a time, to find the one that killed it. dask tries again by itself, on other workers. Where
    timeouts and crashes are to be expected on one machine, take `ProcessEvaluator`; also because Ctrl-C in a terminal
    reaches the processes of a pool: their trials end at once, and stay pending.

    Args:
        objective: configuration -> value; for a process pool a function of an importable module.
        executor: any `concurrent.futures.Executor`; in a configuration the class_path of one, such as
            `concurrent.futures.ThreadPoolExecutor`, and its init_args.
        workers: how many trials are evaluated at the same time; default as many as the executor has.
        timeout: seconds, or a `timedelta`, that one attempt may take; None for no limit.
        retries: how many times a trial is tried again that failed: raised, gave no number, timed out, lost its worker.

    Raises:
        SettingError: for a setting outside its range, an executor that doesn't say how many workers it has, or an
            objective that can't be sent to a process pool.

    Example:
        >>> from concurrent.futures import ThreadPoolExecutor
        >>> from deepbore import ExecutorEvaluator, Real, SearchSpace, minimize
        >>> with ThreadPoolExecutor(2) as threads:
        ...     evaluator = ExecutorEvaluator(lambda p: p["x"] ** 2, threads, timeout=60)
        ...     result = minimize(evaluator, SearchSpace({"x": Real(-1, 1)}), n_trials=12, seed=0)
        >>> len(result.values)
        12
    """

    def __init__(
        self,
        objective: Objective,
        executor: Executor,
        workers: int | None = None,
        timeout: float | timedelta | None = None,
        retries: int = 0,
    ):
        check_objective(objective)
        if isinstance(executor, type) or not callable(getattr(executor, "submit", None)):
            raise SettingError(
                f"executor must be an executor of concurrent.futures, but got {executor!r:.100}. Give an object, as "
                "ThreadPoolExecutor(4)."
            )
        super().__init__(_workers_of(executor) if workers is None else workers, timeout, retries)
        if isinstance(executor, ProcessPoolExecutor):
            pickled(objective)
        self.objective, self.executor = objective, executor
        self._given = executor

    @property
    def lost(self) -> int:
        return sum(not future.done() for future in self.away)

    def _start(self, trial: Trial) -> "tuple[Executor, Future[Outcome]]":
        future = submitted(self.executor, evaluate, self.objective, trial, uuid4().hex)
        return self.executor, future

    def _give_up(self, attempt: Attempt) -> None:
        """Counts the worker as away until the call returns. It isn't cancelled: dask would call a running one done."""
        self.away[attempt.future] = attempt.executor
        if len(self.away) == self.workers:
            warn(
                "every worker is still busy with an evaluation that has timed out, and the run waits until one "
                "returns. ProcessEvaluator ends such evaluations."
            )

    def _replace(self, executor: Executor) -> None:
        if not isinstance(executor, ProcessPoolExecutor):
            name = type(executor).__name__
            raise EvaluatorError(f"the {name} is broken and can't be replaced. Make a new one, or a ProcessEvaluator.")
        executor.shutdown(wait=False)
        self.executor = _like(executor)

    def close(self) -> None:
        self.away |= {attempt.future: attempt.executor for attempt in self.running}  # they can't be cancelled
        for future in self.away:
            future.cancel()
        super().close()
        if isinstance(self.executor, ProcessPoolExecutor) and self.executor is not self._given:
            self.executor.shutdown(wait=all(future.done() for future in self.away), cancel_futures=True)
            self.executor = _like(self.executor)  # for a later `submit`; it begins no process before


def _like(pool: ProcessPoolExecutor) -> ProcessPoolExecutor:
    """A new pool with the settings of another."""
    tasks = getattr(pool, "_max_tasks_per_child", None)
    settings = _workers_of(pool), pool._mp_context, pool._initializer, pool._initargs
    return ProcessPoolExecutor(*settings, max_tasks_per_child=tasks)


def _workers_of(executor: Executor) -> int:
    """How many calls an executor can run at a time; a dask executor's client knows.

    Raises:
        SettingError: if it doesn't say.
    """
    client = getattr(executor, "_client", None)
    if client is not None and hasattr(client, "nthreads"):
        return sum(client.nthreads().values())
    for name in ("_max_workers", "num_workers"):  # of the standard library and loky; of mpi4py
        if isinstance(count := getattr(executor, name, None), int):
            return count
    raise SettingError(f"workers must be given, because {type(executor).__name__} doesn't say how many it has.")


def pickled(objective: Objective) -> bytes:
    """The objective as bytes.

    Raises:
        SettingError: if it can't be pickled.
    """
    try:
        return pickle.dumps(objective)
    except Exception as error:
        raise SettingError(
            f"worker processes need an objective that can be pickled, but got {objective!r} ({error}). Define it as "
            "a function at the top level of a module, or use threads: ExecutorEvaluator(objective, "
            "ThreadPoolExecutor(workers))."
        ) from None
