"""`ProcessEvaluator`: worker processes that can be killed and replaced."""

import ast
import os
import sys
import tokenize
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from multiprocessing import (
    current_process,
    get_all_start_methods,
    get_context,
    get_start_method,
    set_start_method,
)
from time import monotonic, sleep
from uuid import uuid4

from deepbore.data.outcome import Outcome
from deepbore.data.trial import Trial
from deepbore.errors import SettingError
from deepbore.evaluators.base import check_objective
from deepbore.evaluators.executor import LOST_RETRIES, Attempt, ParallelEvaluator, pickled, sendable, submitted
from deepbore.worker import process as worker
from deepbore.worker.objective import Objective

GRACE = 5.0  # seconds that an idle worker has to exit
TOLERATED = 3  # after so many workers in a row that die before a trial begins, the trial counts as the cause
THREADS = "OMP_NUM_THREADS"  # which OpenMP, OpenBLAS and MKL read
VISIBLE = "CUDA_VISIBLE_DEVICES"  # the GPUs that CUDA and ROCm let a process see


class ProcessEvaluator(ParallelEvaluator):
    """Evaluates in processes of its own on this machine; an attempt that takes too long, or dies, affects no other.

    Each worker is a spawned process, started with the run and ended with it. One that is out of time is killed and
    replaced. One that dies is noticed within a second, and replaced; its trial is tried again, since a machine that is
    short of memory may kill any process, and fails if that kills `lost_retries` more.

    When a worker ends, for whatever reason, so do the processes that it has started: those of its process group, and
    those in a session of their own, which inherit the variable DEEPBORE_WORKER. A process that is to outlive it is
    started in a session of its own and without that variable. Numeric libraries get an equal share of this process's
    threads in each, unless OMP_NUM_THREADS is set. Timeouts don't count the start of a process.

    Args:
        objective: configuration -> value: a function of an importable module, or an object of such a class; what a
            notebook has defined, lambdas and closures are sent by cloudpickle. Each worker loads it once.
        workers: how many trials are evaluated at the same time, each in a process.
        timeout: seconds, or a `timedelta`, that one attempt may take; None for no limit.
        retries: how many times a trial is tried again that failed: raised, gave no number, timed out.
        devices: GPUs, by number or name as in CUDA_VISIBLE_DEVICES. Each worker sees one of them alone, as "cuda" or
            "cuda:0", in turn where there are fewer than workers. None: all workers see what this process sees.
        lost_retries: how many times a trial is tried again whose worker has died.

    Raises:
        SettingError: for a setting outside its range, or an objective that can't be sent to a process.

    Example::

        if __name__ == "__main__":  # the worker processes import this file, too
            evaluator = deepbore.ProcessEvaluator(train, workers=8, timeout=3600, retries=1)
            result = deepbore.minimize(evaluator, space, n_trials=100)
    """

    def __init__(
        self,
        objective: Objective,
        workers: int = 2,
        timeout: float | timedelta | None = None,
        retries: int = 0,
        devices: Sequence[int | str] | None = None,
        lost_retries: int = LOST_RETRIES,
    ):
        check_objective(objective)
        _check_may_have_children()
        super().__init__(workers, timeout, retries, lost_retries)
        self.devices = _device_names(devices)
        self.objective, self._pickled = objective, pickled(objective)
        self._processes: list[_Process] = []
        self._died_idle = 0  # workers in a row

    def open(self) -> None:
        """Starts the processes and waits for the first.

        Raises:
            SettingError: if it can't load the objective.
        """
        if self._processes:
            return
        _check_may_have_children()  # it may be open in another process than that where it was made
        worker.leave_if_unguarded()
        if main_is_unguarded():
            raise _unguarded()
        for k in range(self.workers):
            self._processes.append(self._new(k))
        try:
            self._processes[0].ready.result()
        except Exception as error:
            is_unguarded = self._processes[0].was_unguarded
            self.close()
            raise (_unguarded() if is_unguarded else _cannot_load(error)) from None

    def submit(self, trial: Trial) -> None:
        self.open()
        super().submit(trial)

    def close(self) -> None:
        busy = {attempt.executor for attempt in self.running}
        for process in self._processes:
            process.executor.shutdown(wait=False, cancel_futures=True)
        for process in self._processes:
            process.end(0.0 if process.executor in busy or not process.ready.done() else GRACE)
        super().close()
        self.away.clear()
        self._processes.clear()

    def _start(self, trial: Trial) -> "tuple[Executor, Future[Outcome]] | None":
        busy = {attempt.executor for attempt in self.running}
        idle = next(p for p in self._processes if p.ready.done() and p.executor not in busy)
        error = idle.ready.exception()
        if isinstance(error, Exception) and not isinstance(error, BrokenExecutor):
            raise _cannot_load(error)
        sent = sendable(trial)
        try:
            future = idle.executor.submit(worker.call, sent)
        except BrokenExecutor:  # it had died before, and the trial has not begun
            self._died_idle += 1
            if self._died_idle < TOLERATED:
                self._replace(idle.executor)
                return None
            future = submitted(idle.executor, worker.call, sent)
        self._died_idle = 0
        return idle.executor, future

    def _give_up(self, attempt: Attempt) -> None:
        self._replace(attempt.executor)

    def _dead(self) -> set[Executor]:
        return {process.executor for process in self._processes if process.has_died}

    def _replace(self, executor: Executor) -> None:
        (k,) = (k for k, process in enumerate(self._processes) if process.executor is executor)
        self._processes[k].end()
        self._processes[k] = self._new(k)

    def _new(self, k: int) -> "_Process":
        environment = {THREADS: os.environ.get(THREADS, str(max(1, _threads() // self.workers)))}
        environment |= {VISIBLE: self.devices[k % len(self.devices)]} if self.devices else {}
        process = _Process(self._pickled, environment)
        self.away[process.ready] = None
        return process


class _Process:
    """One worker: an executor of one process, so that its death breaks nothing else.

    Args:
        pickled: the objective.
        environment: variables that it has beside this process's from its first line on: numeric libraries read them
            when they are loaded, which the script of the run may do.
    """

    def __init__(self, pickled: bytes, environment: Mapping[str, str]):
        spawn = get_context("spawn")
        self.executor = ProcessPoolExecutor(1, spawn, initializer=worker.begin)
        self._mark = uuid4().hex
        with (
            _inherited({**environment, worker.MARK: self._mark}),
            _start_method_left_open(),
            worker.no_ctrl_c_inherited(),
        ):
            self.ready: Future[None] = self.executor.submit(worker.load, pickled)
        (self._process,) = self.executor._processes.values()  # Python 3.14 can kill it, older ones need this

    @property
    def was_unguarded(self) -> bool:
        """Whether the process has ended because it came upon a run of its own while it imported the script."""
        return self._exitcode(GRACE) == worker.UNGUARDED

    @property
    def has_died(self) -> bool:
        """Whether the process itself has ended: its pipes stay open as long as processes live that it has forked."""
        return self._process.exitcode is not None

    def end(self, grace: float = 0.0) -> None:
        """Waits so many seconds for the exit, then kills the process and all that it has started."""
        self.executor.shutdown(wait=False, cancel_futures=True)
        exitcode = self._exitcode(grace)
        if self._process.pid is not None:
            worker.kill_group(self._process.pid)  # also after a clean exit: the objective's own processes may still run
            worker.kill_marked(self._mark)
        if exitcode != 0:
            self._process.kill()
            self._exitcode(GRACE)

    def _exitcode(self, patience: float) -> int | None:
        """The process's exit code, waited for; the executor waits for it, too, and the second caller gets None."""
        deadline = monotonic() + patience
        self._process.join(patience)
        while self._process.exitcode is None and monotonic() < deadline:
            sleep(0.005)
        return self._process.exitcode


@contextmanager
def _inherited(environment: Mapping[str, str]) -> Iterator[None]:
    """Processes that are started within have these variables."""
    before = {name: os.environ.get(name) for name in environment}
    os.environ.update(environment)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextmanager
def _start_method_left_open() -> Iterator[None]:
    """A context after which the program may still say how its own processes are started.

    To start one by an explicit context is enough for multiprocessing to take its default for good.
    """
    before = get_start_method(allow_none=True)
    try:
        yield
    finally:
        if before is None and get_start_method(allow_none=True) == get_all_start_methods()[0]:
            set_start_method(None, force=True)


def _check_may_have_children() -> None:
    """Raises SettingError in a process of which multiprocessing allows no children."""
    if current_process().daemon:
        raise SettingError(
            "worker processes can't be started from a daemonic process, as those of multiprocessing.Pool are, but this "
            "is one. Give workers=1, or start it by concurrent.futures.ProcessPoolExecutor, or with daemon=False."
        )


def _device_names(devices: Sequence[int | str] | None) -> list[str]:
    """The names of GPUs.

    Raises:
        SettingError: for anything but a list of numbers and names, or an empty one.
    """
    if devices is None:
        return []
    listed = isinstance(devices, Sequence) and not isinstance(devices, str) and len(devices) > 0
    if not listed or any(isinstance(each, bool) or not isinstance(each, int | str) for each in devices):
        raise SettingError(f"devices must be a list of GPUs, such as [0, 1], but got devices={devices!r:.100}.")
    return [str(each) for each in devices]


def main_is_unguarded() -> bool:
    """Whether this is called from a line of the script that a worker would run, too, when it imports it.

    So is a line at the top level of the file, below no condition, where the file never asks for its `__name__`.
    """
    main = sys.modules.get("__main__")
    spec, path = getattr(main, "__spec__", None), getattr(main, "__file__", None)
    if path is None or (spec is not None and spec.name.endswith("__main__")):
        return False  # nothing is imported
    frame = sys._getframe()
    while frame.f_back is not None and not (frame.f_code.co_name == "<module>" and frame.f_globals is vars(main)):
        frame = frame.f_back
    if frame.f_code.co_name != "<module>" or frame.f_globals is not vars(main):
        return False  # as in another thread
    try:
        with tokenize.open(path) as file:
            source = ast.parse(file.read())
    except (OSError, SyntaxError, ValueError):
        return False
    asks = any(isinstance(each, ast.Name) and each.id == "__name__" for each in ast.walk(source))
    line = next((each for each in source.body if each.lineno <= frame.f_lineno <= (each.end_lineno or 0)), None)
    return not asks and line is not None and not isinstance(line, ast.If | ast.Match | ast.While | ast.Try)


def _unguarded() -> SettingError:
    return SettingError(
        "worker processes import the script of a run, so a script that starts one as it is imported would start one in "
        'each worker, and so on. Put what begins the run below `if __name__ == "__main__":`, at the end of the script.'
    )


def _cannot_load(error: Exception) -> SettingError:
    """The error of a worker that could not load the objective: another worker could not either."""
    return SettingError(
        "a worker process must be able to import the objective, but "
        f"{type(error).__name__}: {error}. Define it in a module that workers can import, and start "
        'the run of a script below `if __name__ == "__main__":`.'
    )


def _threads() -> int:
    """How many threads this process's numeric libraries have."""
    import torch  # evaluators are light to import, so that a job of one trial starts fast

    return torch.get_num_threads()
