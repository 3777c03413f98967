"""`ExecutorEvaluator`: on any engine that speaks `concurrent.futures`."""

from concurrent.futures import Executor, Future, ProcessPoolExecutor
from uuid import uuid4

from deepbore.data.outcome import Outcome
from deepbore.data.trial import Trial
from deepbore.errors import EvaluatorError, SettingError
from deepbore.evaluators.base import check_objective
from deepbore.evaluators.parallel import Attempt, ParallelEvaluator, submitted
from deepbore.evaluators.process import pickled
from deepbore.evaluators.warning import warn
from deepbore.worker.objective import Objective, evaluate


class ExecutorEvaluator(ParallelEvaluator):
    """Evaluates on an executor that you have: threads, a process pool, `mpi4py.futures`, `dask`'s client executor.

    The executor stays yours: it isn't shut down. Timeouts count from submission, which is the start where the executor
    has as many workers as stated and nobody else's work. No executor can end a running call: after a timeout the
    trial has failed, but its worker is lost until the call returns; if all are lost, the run waits, with a warning.

    If a worker of a `ProcessPoolExecutor` dies, the pool breaks and is replaced by one like it; the trials that ran are
    tried again, one at a time, to find which of them it was. dask tries again by itself, on other workers. Where
    timeouts and crashes are to be expected on one machine, take `ProcessEvaluator`; also because Ctrl-C in a terminal
    reaches the processes of a pool: what they run ends at once, and stays pending.

    Args:
        objective: configuration -> value; for a process pool a function of an importable module.
        executor: any `concurrent.futures.Executor`; in a configuration the class_path of one, such as
            `concurrent.futures.ThreadPoolExecutor`, and its init_args.
        workers: how many trials are evaluated at the same time; default as many as the executor has.
        timeout: seconds that one attempt may take; None for no limit.
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
        timeout: float | None = None,
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
        return sum(not future.done() for future in self._away)

    def _start(self, trial: Trial) -> "tuple[Executor, Future[Outcome]]":
        future = submitted(self.executor, evaluate, self.objective, trial, uuid4().hex)
        return self.executor, future

    def _give_up(self, attempt: Attempt) -> None:
        """Counts on the worker again when the call returns. Not cancelled: dask would call a running one done."""
        self._away[attempt.future] = attempt.executor
        if len(self._away) == self.workers:
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
        self._away |= {attempt.future: attempt.executor for attempt in self._running}  # what runs can't be cancelled
        for future in self._away:
            future.cancel()
        super().close()
        if isinstance(self.executor, ProcessPoolExecutor) and self.executor is not self._given:
            self.executor.shutdown(wait=all(future.done() for future in self._away), cancel_futures=True)
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
