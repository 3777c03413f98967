"""`ExecutorEvaluator`: on any engine with the interface of `concurrent.futures`, with timeouts and retries."""

import logging
import math
import pickle
import sys
import time
from abc import abstractmethod
from collections import Counter, deque
from collections.abc import Mapping
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    CancelledError,
    Executor,
    Future,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
    wait,
)
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any
from uuid import uuid4

from deepbore.data.notes import RunningReports
from deepbore.data.outcome import LostWorker, Outcome
from deepbore.data.trial import Trial
from deepbore.errors import EvaluatorError, SettingError
from deepbore.evaluators.base import Evaluator, Finished, check_objective, check_settings, warn
from deepbore.validation import above, seconds
from deepbore.worker.objective import Objective, evaluate, in_words
from deepbore.worker.reporting import Judge, JudgeServer, Reporting

LOOK = 0.5  # seconds between two looks at workers that may have died, or are to come back
LOST_RETRIES = 2
PLAIN = (str, int, float, bool, type(None))  # values that every process has
GRACE = 60.0  # seconds without a worker in the engine after which there is a warning
PATIENCE = 3600.0  # and after which the run ends
log = logging.getLogger(__name__)


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

    A trial fails by what its evaluation returned, raised, or took too long for. Whatever else an engine says of it is
    a *loss*: its worker died, was pre-empted or disconnected, or the engine has cancelled it. What is lost is tried
    again. After `lost_retries` such retries the trial has failed if it is the cause: another one, begun since its last
    loss, came back, or it has killed a process in which it was alone. Otherwise the engine is: `collect` raises
    EvaluatorError, after all outcomes that are known, and the trial stays pending.

    If an executor breaks while it runs several trials, because one of them has killed its process, it does not say
    which: each is tried again alone, and that isn't counted; also one that has timed out and still runs there.

    Args:
        workers: how many trials are evaluated at the same time.
        timeout: seconds, or a `timedelta`, that one attempt may take; None for no limit.
        retries: how many times a trial is tried again that failed: raised, gave no number, timed out.
        lost_retries: how many times a trial is tried again that was lost.

    Raises:
        SettingError: for a setting outside its range.
    """

    patience: float | None = None  # seconds that trials wait for an engine without workers, before the run ends

    def __init__(self, workers: int, timeout: float | timedelta | None, retries: int, lost_retries: int = LOST_RETRIES):
        limit = seconds(timeout)
        check_settings(workers, limit, retries, lost_retries)
        self.workers, self.timeout, self.retries, self.lost_retries = workers, limit, retries, lost_retries
        self._queue: deque[tuple[Trial, int]] = deque()  # with the number of the next attempt
        self.running: list[Attempt] = []
        self._suspects: set[int] = set()  # trials to be tried alone
        # calls that occupy a worker until they are done; with the executor of an attempt that was given up
        self.away: dict[Future[Any], Executor | None] = {}
        self._losses: Counter[int] = Counter()  # by trial
        self._returned = -math.inf  # when the latest of the attempts that came back had started
        self._lost_at: dict[int, float] = {}  # when a trial was lost for the last time
        self._deserted_since: float | None = None  # when the engine was found without workers
        self._is_warned = False  # of that
        self._error: BaseException | None = None  # ends the run, once the outcomes beside it are collected
        self._server: JudgeServer | None = None  # answers running trials, where a pruner may end them
        self._heard: dict[int, dict[float, float]] = {}  # what running trials have told their judge

    # --- what an engine defines --------------------------------------------------------------------------------------

    @abstractmethod
    def _start(self, trial: Trial) -> "tuple[Executor, Future[Outcome]] | None":
        """Begins an evaluation on a free worker; None if that had died and is being replaced."""

    @property
    def _reach(self) -> str:
        """Where trials run: in this "process", on this "machine", or "anywhere"."""
        return "machine"

    @abstractmethod
    def _give_up(self, attempt: Attempt) -> None:
        """Frees the worker of an attempt that has timed out, or else counts it as away."""

    @abstractmethod
    def _replace(self, executor: Executor) -> None:
        """Replaces a broken executor."""

    def _dead(self) -> set[Executor]:
        """Executors whose process has died; they may not have noticed yet."""
        return set()

    def _is_deserted(self) -> bool:
        """Whether the engine has no worker now that could run a trial."""
        return False

    # --- Evaluator ---------------------------------------------------------------------------------------------------

    @property
    def outstanding(self) -> int:
        return len(self._queue) + len(self.running)

    @property
    def free(self) -> int:
        return self._idle - len(self._queue)

    def submit(self, trial: Trial) -> None:
        self._queue.append((self._connected(trial), 1))
        self._fill()

    def collect(self) -> list[Finished]:
        self._raise_if_over()
        self._fill()  # now, not when trials end: the run may be over by then
        self._wait()
        ended = self._ended()
        self.running = [attempt for attempt in self.running if attempt not in ended]
        dead = self._dead()
        broken = Counter(attempt.executor for attempt in ended if is_broken(attempt.future) or attempt.executor in dead)
        given_up = Counter(executor for future, executor in self.away.items() if is_broken(future))
        for executor in broken:
            try:
                self._replace(executor)
            except EvaluatorError as error:
                self._error = error
        under_it = broken + given_up
        found = [self._finished(attempt, alone=under_it[attempt.executor] <= 1, dead=dead) for attempt in ended]
        finished = [one for one in found if one is not None]
        if not finished:
            self._raise_if_over()
        return finished

    def withdraw(self) -> list[Trial]:
        waiting = [trial for trial, _ in self._queue]
        self._queue.clear()
        return waiting

    def close(self) -> None:
        self._queue.clear()
        self.running.clear()
        self._suspects.clear()
        self._losses.clear()
        self._lost_at.clear()
        self._heard.clear()
        self._deserted_since, self._is_warned = None, False
        self._error = None
        if self._server is not None:
            self._server.close()
            self._server = None

    # --- within ------------------------------------------------------------------------------------------------------

    @property
    def _idle(self) -> int:
        """How many attempts could start now: one for each worker that is not away, and suspects one at a time."""
        self._forget_those_back()
        if self._error is not None:
            return 0
        at_once = 1 if self._suspects else self.workers
        return min(at_once, self.workers - len(self.away)) - len(self.running)

    def _connected(self, trial: Trial) -> Trial:
        """The trial with a judge that listens; with the address of such a one if it runs in another process."""
        reporting = Reporting.of(trial)
        if reporting is None or reporting.judge is None:
            return trial
        if self._reach == "process":
            return replace(trial, reporter=Reporting(self._listening(reporting.judge), reporting.send))
        is_local = self._reach == "machine"
        self._server = self._server or JudgeServer(self._listening(reporting.judge), is_local)
        return replace(trial, reporter=Reporting(self._server.address, reporting.send))

    def _listening(self, judge: Judge) -> Judge:
        """A judge that remembers what it is told of trials, in case that their workers are lost."""

        def judged(row: int, reports: Mapping[float, float]) -> bool:
            known, first = self._heard.get(row, {}), min(reports, default=math.inf)
            self._heard[row] = {step: value for step, value in known.items() if step < first} | dict(reports)
            return judge(row, reports)

        return judged

    def _reported(self, trial: Trial) -> dict[float, float]:
        """What is known of the curve of a trial that did not come back: by its judge, or by the file of its reports."""
        heard = self._heard.pop(trial.id, {})
        send = getattr(Reporting.of(trial), "send", None)
        return heard or (send.written() if isinstance(send, RunningReports) else {})

    def _raise_if_over(self) -> None:
        """Raises the error that ends the run, once running attempts are done; an interrupt does not wait for them."""
        if self._error is not None and (not self.running or isinstance(self._error, KeyboardInterrupt)):
            raise self._error

    def _fill(self) -> None:
        while self._queue and self._idle > 0:
            trial, number = self._queue[0]
            try:
                started = self._start(trial)
            except EvaluatorError as error:
                self._error = error
                return
            if started is not None:
                self._queue.popleft()
                self.running.append(Attempt(trial, number, *started, time.monotonic()))

    def _wait(self) -> None:
        """Waits until an attempt is done or out of time, or a worker is back; without attempts, a moment at most."""
        self._forget_those_back()
        watched = [*self.away, *(attempt.future for attempt in self.running)]
        is_watched = bool(self.running)
        while not wait(watched, self._until_look(), FIRST_COMPLETED).done and is_watched:
            if self._dead() or any(map(self._is_late, self.running)):
                return
            self._look_for_workers()

    def _look_for_workers(self) -> None:
        """Warns, once, if the engine has had no worker for a while.

        Raises:
            EvaluatorError: if it has had none for as long as `patience` says.
        """
        if not self._is_deserted():
            self._deserted_since, self._is_warned = None, False
            return
        self._deserted_since = self._deserted_since or time.monotonic()
        gone, name = time.monotonic() - self._deserted_since, type(self.running[0].executor).__name__
        what = f"the {name} has had no worker that could run a trial for {gone:.0f} s, and {len(self.running)} wait"
        if self.patience is not None and gone >= self.patience:
            raise EvaluatorError(
                f"{what}. They stay pending. Start workers, and continue; if a trial ends its workers, tell it as "
                "failed; if workers may be away for longer, give patience=."
            )
        if gone >= GRACE and not self._is_warned:
            self._is_warned = True
            until = "" if self.patience is None else f", which ends after {self.patience:g} s without (patience=)"
            warn(f"{what}: start workers, or end the run{until}.")

    def _until_look(self) -> float:
        """Seconds until there is something to look at, but for the end of an attempt."""
        if self.timeout is None or not self.running:
            return LOOK
        return min(LOOK, max(0.0, self.timeout - max(attempt.seconds() for attempt in self.running)))

    def _ended(self) -> list[Attempt]:
        """Attempts that are done, out of time, or on an executor that broke, where they end in a moment."""
        dead = self._dead()
        if doomed := [attempt.future for attempt in self.running if attempt.executor in dead]:
            wait(doomed, LOOK)  # an outcome may have been sent before the death
        ended = [a for a in self.running if a.future.done() or self._is_late(a) or a.executor in dead]
        broken = {attempt.executor for attempt in ended if is_broken(attempt.future)}
        doomed = [attempt.future for attempt in self.running if attempt.executor in broken]
        given_up = [future for future, executor in self.away.items() if executor in broken]
        wait([*given_up, *doomed])
        return ended + [attempt for attempt in self.running if attempt.executor in broken and attempt not in ended]

    def _forget_those_back(self) -> None:
        self.away = {future: executor for future, executor in self.away.items() if not future.done()}

    def _is_late(self, attempt: Attempt) -> bool:
        return self.timeout is not None and attempt.seconds() >= self.timeout

    def _finished(self, attempt: Attempt, alone: bool, dead: set[Executor]) -> Finished | None:
        """The trial with its outcome; None if it is tried again, or stays pending."""
        future, trial = attempt.future, attempt.trial
        if is_broken(future) and not alone:
            self._suspects.add(trial.id)
            self._queue.appendleft((trial, attempt.number))
            return None
        if not future.done() and attempt.executor not in dead and not (self._is_deserted() and future.cancel()):
            self._give_up(attempt)
            return self._known(attempt, Outcome.failure(f"timed out after {self.timeout:g} s"))
        if not future.done() or is_broken(future):
            return self._lost(attempt, "the worker process died", is_its_own=self._error is None)
        error = CancelledError() if future.cancelled() else future.exception()
        if error is None:
            self._returned = max(self._returned, attempt.started)
            return self._known(attempt, future.result())
        if isinstance(error, KeyboardInterrupt):  # Ctrl-C reached the worker, too: the trial has not failed
            self._queue.appendleft((trial, attempt.number))
            self._error = error
            return None
        came_back = self._returned > self._lost_at.get(trial.id, math.inf)
        was_cancelled = any("Cancelled" in each.__name__ for each in type(error).__mro__)  # also dask's and Ray's
        return self._lost(attempt, in_words(error), came_back and not was_cancelled)

    def _known(self, attempt: Attempt, outcome: Outcome) -> Finished | None:
        """The trial with its outcome; None if it has failed and is tried again."""
        if outcome.has_failed and attempt.number <= self.retries:
            self._suspects.discard(attempt.trial.id)
            self._queue.appendleft((attempt.trial, attempt.number + 1))
            return None
        return self._settled(attempt, outcome)

    def _settled(self, attempt: Attempt, outcome: Outcome) -> Finished:
        """The trial with its outcome, after the last attempt."""
        self._suspects.discard(attempt.trial.id)
        attempts = attempt.number + self._losses.pop(attempt.trial.id, 0)
        if outcome.has_failed and attempts > 1:
            outcome = replace(outcome, reason=f"{outcome.reason or 'failed'} (attempt {attempts})")
        reports = self._reported(attempt.trial)
        if outcome.has_failed and reports and not outcome.reports:
            outcome = replace(outcome, reports=reports)
        return Finished(attempt.trial, outcome)

    def _lost(self, attempt: Attempt, why: str, is_its_own: bool) -> Finished | None:
        """The trial as failed if it was lost too often by its own doing; None if it is tried again, or stays pending.

        Args:
            attempt: what was lost.
            why: how.
            is_its_own: whether the trial, not the engine, is the cause if it was lost too often.
        """
        trial = attempt.trial
        self._losses[trial.id] += 1
        self._lost_at[trial.id] = time.monotonic()
        times = self._losses[trial.id]
        if times > self.lost_retries and is_its_own:
            self._losses[trial.id] -= 1  # this attempt is counted by its number
            return self._settled(attempt, LostWorker.failure(why))
        self._queue.appendleft((trial, attempt.number))
        if times > self.lost_retries:
            self._error = self._error or EvaluatorError(
                f"the {type(attempt.executor).__name__} has lost trial {trial.id}, {times} times now: {why}. It stays "
                "pending. See whether the engine is still there, and continue with a new one; if the trial itself ends "
                "its workers, tell it as failed."
            )
        else:
            log.warning("trial %d was lost, and is tried again: %s", trial.id, why)
        return None


def is_broken(future: "Future[Any]") -> bool:
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
    except Exception as error:  # a RuntimeError of executors that are shut down, anything of an engine that is gone
        name = type(executor).__name__
        raise EvaluatorError(f"the {name} takes no more trials: {in_words(error)}. Make a new one.") from error


class ExecutorEvaluator(ParallelEvaluator):
    """Evaluates on an executor of yours: threads, a process pool, `mpi4py.futures`, `dask`'s client executor.

    For Ray and SLURM there are `deepbore.integrations.ray.RayExecutor` and
    `deepbore.integrations.submitit.SubmititExecutor`.

    The executor stays yours: it isn't shut down. Timeouts count from submission, which is the start where the executor
    has as many workers as stated and no other work. No executor can end a running call: after a timeout the
    trial has failed, but its worker is lost until the call returns; if all are lost, the run waits, with a warning.

    A trial fails by what its evaluation does. What the engine loses (a worker that died, was pre-empted or has lost
    its connection; a cancelled call) is tried again, at most `lost_retries` times. Then the trial has failed if others
    have come back meanwhile; otherwise, as when the engine is gone, the run ends with an EvaluatorError, and the trial
    stays pending. So does an engine without any worker that could run a trial (of dask and Ray, which know): after a
    minute there is a warning, after `patience` the run ends.

    If a worker of a `ProcessPoolExecutor` dies, the pool breaks and is replaced by one like it; the trials that ran are
    tried again, one at a time, to find the one that killed it. dask tries again by itself, on other workers. Where
    timeouts and crashes are to be expected on one machine, take `ProcessEvaluator`; also because Ctrl-C in a terminal
    reaches the processes of a pool: their trials end at once, and stay pending.

    Args:
        objective: configuration -> value; for a process pool one that cloudpickle can send.
        executor: any `concurrent.futures.Executor`; in a configuration the class_path of one, such as
            `concurrent.futures.ThreadPoolExecutor`, and its init_args.
        workers: how many trials are evaluated at the same time; default as many as the executor has.
        timeout: seconds, or a `timedelta`, that one attempt may take; None for no limit.
        retries: how many times a trial is tried again that failed: raised, gave no number, timed out.
        lost_retries: how many times a trial is tried again that the engine has lost.
        patience: seconds, or a `timedelta`, that the run waits for an engine that has no workers; None for no limit, as
            where they wait in the queue of a cluster.

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
        lost_retries: int = LOST_RETRIES,
        patience: float | timedelta | None = PATIENCE,
    ):
        check_objective(objective)
        if isinstance(executor, type) or not callable(getattr(executor, "submit", None)):
            raise SettingError(
                f"executor must be an executor of concurrent.futures, but got {executor!r:.100}. Give an object, as "
                "ThreadPoolExecutor(4)."
            )
        if type(executor).__module__.partition(".")[0] == "submitit":  # its jobs are no futures
            raise SettingError(
                "an executor of submitit gives jobs. Give integrations.submitit.SubmititExecutor(it, 64)."
            )
        super().__init__(_workers_of(executor) if workers is None else workers, timeout, retries, lost_retries)
        self._sent: Any = Carried(objective) if isinstance(executor, ProcessPoolExecutor) else objective
        self.objective, self.executor, self.patience = objective, executor, seconds(patience)
        above(0, patience=self.patience)
        self._given = executor

    @property
    def lost(self) -> int:
        return sum(not future.done() for future in self.away)

    @property
    def _reach(self) -> str:
        if isinstance(self.executor, ThreadPoolExecutor):
            return "process"
        return "machine" if isinstance(self.executor, ProcessPoolExecutor) else "anywhere"

    def _is_deserted(self) -> bool:
        can_run = getattr(self.executor, "can_run", None)  # of RayExecutor
        return not can_run() if can_run else _threads_of(self.executor) == 0

    def _start(self, trial: Trial) -> "tuple[Executor, Future[Outcome]]":
        task = sendable(trial) if isinstance(self.executor, ProcessPoolExecutor) else trial
        future = submitted(self.executor, evaluate, self._sent, task, uuid4().hex)
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
    if (threads := _threads_of(executor)) is not None:
        return threads
    for name in ("_max_workers", "num_workers"):  # of the standard library and loky; of mpi4py
        if isinstance(count := getattr(executor, name, None), int):
            return count
    raise SettingError(f"workers must be given, because {type(executor).__name__} doesn't say how many it has.")


def _threads_of(executor: Executor) -> int | None:
    """How many threads a dask executor's workers have, all together; None for other executors, and while it's away."""
    client: Any = getattr(executor, "_client", None)
    if getattr(client, "scheduler", None) is None:
        return None
    try:
        return int(sum(client.nthreads().values()))
    except OSError:  # the connection is lost: dask cancels its calls, or finds it again
        return None


def pickled(objective: Objective) -> bytes:
    """The objective as bytes: by the name of its module, or else, as of a notebook or a lambda, with its code.

    Raises:
        SettingError: if it can't be pickled.
    """
    try:
        if not _is_console():
            with suppress(Exception):
                return pickle.dumps(objective)
        import cloudpickle

        return bytes(cloudpickle.dumps(objective))
    except Exception as error:
        raise SettingError(
            f"worker processes need an objective that can be pickled, but got {objective!r} ({error}). Define it as "
            "a function at the top level of a module, or use threads: ExecutorEvaluator(objective, "
            "ThreadPoolExecutor(workers))."
        ) from None


class Carried:
    """What reaches other processes by `pickled`, and is itself there: for pools that pickle by `pickle`.

    Args:
        objective: what is carried: an objective, or a trial.
    """

    def __init__(self, objective: Any):
        self._content = pickled(objective)

    def __reduce__(self) -> tuple[Any, ...]:
        return pickle.loads, (self._content,)


def sendable(trial: Trial) -> Any:
    """A trial that reaches another process: as it is, or carried where choices are objects, as those of a notebook.

    Raises:
        SettingError: for choices that can't be pickled.
    """
    objects = {name: value for name, value in trial.params.items() if not isinstance(value, PLAIN)}
    if not objects:
        return trial
    try:
        return Carried(trial)
    except SettingError as error:
        raise SettingError(
            f"choices that are objects are sent to worker processes, but one of {objects!r:.200} can't be pickled "
            f"({error.__context__}). Give names, and look up in the objective what they stand for."
        ) from None


def _is_console() -> bool:
    """Whether the main module is a notebook, a console or the text of -c, which no other process can import."""
    main = sys.modules.get("__main__")
    has_source = getattr(main, "__file__", None) is not None or getattr(main, "__spec__", None) is not None
    return not has_source or hasattr(sys, "ps1") or bool(sys.flags.interactive)
