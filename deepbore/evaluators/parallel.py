"""`ParallelEvaluator`: several trials at a time on `concurrent.futures`, with timeouts and retries."""

import time
from abc import abstractmethod
from collections import Counter, deque
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, wait
from dataclasses import dataclass, replace
from typing import Any

from deepbore.data.outcome import LostWorker, Outcome
from deepbore.data.trial import Trial
from deepbore.errors import EvaluatorError
from deepbore.evaluators.base import Evaluator, Finished, check_settings
from deepbore.worker.objective import in_words

LOOK = 0.5  # seconds that are waited for a worker to come back before somebody asks whether the run is over


@dataclass(frozen=True, eq=False)
class Attempt:
    """A trial under evaluation.

    Attributes:
        trial: the trial.
        number: 1 for the first attempt, 2 for the first retry, ...
        executor: where it runs.
        future: what it will return.
        started: when, in seconds of the monotonic clock.
    """

    trial: Trial
    number: int
    executor: Executor
    future: "Future[Outcome]"
    started: float

    def seconds(self) -> float:
        """For how long it has run."""
        return time.monotonic() - self.started


class ParallelEvaluator(Evaluator):
    """Keeps up to `workers` trials running at a time; the others wait here, so that submission to an engine is start.

    Where an executor breaks under several trials, because one of them has killed its process, nobody knows which: each
    is tried again alone, and that isn't counted. One that has timed out, and still runs there, is among them.

    Args:
        workers: how many trials are evaluated at the same time.
        timeout: seconds that one attempt may take; None for no limit.
        retries: how many times a trial is tried again that failed: raised, gave no number, timed out, lost its worker.

    Raises:
        SettingError: for a setting outside its range.
    """

    def __init__(self, workers: int, timeout: float | None, retries: int):
        check_settings(workers, timeout, retries)
        self.workers, self.timeout, self.retries = workers, timeout, retries
        self._queue: deque[tuple[Trial, int]] = deque()  # with the number of the next attempt
        self._running: list[Attempt] = []
        self._suspects: set[int] = set()  # trials to be tried alone
        # each keeps a worker from work until it is done; with where it runs, if it is an attempt that was given up
        self._away: dict[Future[Any], Executor | None] = {}

    # --- what an engine must say -------------------------------------------------------------------------------------

    @abstractmethod
    def _start(self, trial: Trial) -> "tuple[Executor, Future[Outcome]] | None":
        """Begins an evaluation on a free worker; None if that had died, and another will take its place."""

    @abstractmethod
    def _give_up(self, attempt: Attempt) -> None:
        """Frees the worker of an attempt that has timed out, or else notes it as away."""

    @abstractmethod
    def _replace(self, executor: Executor) -> None:
        """Puts another in the place of a broken executor."""

    # --- Evaluator ---------------------------------------------------------------------------------------------------

    @property
    def outstanding(self) -> int:
        return len(self._queue) + len(self._running)

    @property
    def free(self) -> int:
        return self._idle - len(self._queue)

    def submit(self, trial: Trial) -> None:
        self._queue.append((trial, 1))
        self._fill()

    def collect(self) -> list[Finished]:
        self._fill()  # now, and not when others are done: who collects may have ended the run since
        self._wait()
        ended = self._ended()
        self._running = [attempt for attempt in self._running if attempt not in ended]
        broken = Counter(attempt.executor for attempt in ended if is_lost(attempt.future))
        given_up = Counter(executor for future, executor in self._away.items() if is_lost(future))
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
        self._running.clear()
        self._suspects.clear()

    # --- within ------------------------------------------------------------------------------------------------------

    @property
    def _idle(self) -> int:
        """How many attempts could start now: one for each worker that is not away, and suspects one at a time."""
        self._forget_those_back()
        at_once = 1 if self._suspects else self.workers
        return min(at_once, self.workers - len(self._away)) - len(self._running)

    def _fill(self) -> None:
        while self._queue and self._idle > 0:
            trial, number = self._queue[0]
            if (started := self._start(trial)) is not None:
                self._queue.popleft()
                self._running.append(Attempt(trial, number, *started, time.monotonic()))

    def _wait(self) -> None:
        """Until an attempt is done or out of time, or a worker is back; without attempts, for a moment at most."""
        self._forget_those_back()
        patience = None if self._running else LOOK
        if self.timeout is not None and self._running:
            patience = max(0.0, self.timeout - max(attempt.seconds() for attempt in self._running))
        wait([*self._away, *(attempt.future for attempt in self._running)], patience, FIRST_COMPLETED)

    def _ended(self) -> list[Attempt]:
        """Attempts that are done, out of time, or on an executor that broke: those are done in a moment, too."""
        ended = [attempt for attempt in self._running if attempt.future.done() or self._is_late(attempt)]
        broken = {attempt.executor for attempt in ended if is_lost(attempt.future)}
        doomed = [attempt for attempt in self._running if attempt.executor in broken]
        given_up = [future for future, executor in self._away.items() if executor in broken]
        wait([*given_up, *(attempt.future for attempt in doomed)])
        return ended + [attempt for attempt in doomed if attempt not in ended]

    def _forget_those_back(self) -> None:
        self._away = {future: executor for future, executor in self._away.items() if not future.done()}

    def _is_late(self, attempt: Attempt) -> bool:
        return self.timeout is not None and attempt.seconds() >= self.timeout

    def _finished(self, attempt: Attempt, alone: bool) -> Finished | None:
        """What became of the trial; None if it is tried again."""
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
        if isinstance(error, KeyboardInterrupt):  # Ctrl-C has reached the worker, too: it is no failure of the trial
            raise KeyboardInterrupt
        if error is None:
            return attempt.future.result()
        if isinstance(error, BrokenExecutor):
            return LostWorker.failure("the worker process died")
        return Outcome.failure(in_words(error))  # sys.exit, or the engine's own


def is_lost(future: "Future[Any]") -> bool:
    """Whether an executor broke under a call."""
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
