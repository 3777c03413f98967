"""`SubmititExecutor`: each trial a job of SLURM's, as `ExecutorEvaluator(train, SubmititExecutor(executor, 64))`."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import Executor, Future
from datetime import timedelta
from typing import Any

from deepbore.errors import SettingError
from deepbore.validation import above, required, seconds, whole


class SubmititExecutor(Executor):
    """An executor of jobs that submitit hands to SLURM, with the interface of `concurrent.futures`.

    Each trial waits in SLURM's queue by itself, which suits evaluations that take an hour or so. For shorter ones a
    shared study has fewer and longer jobs (docs/cluster.md). A job that is lost, as by a node that fails, is submitted
    again by `ExecutorEvaluator`, at most `lost_retries` times. What is left at the end of a run is cancelled.

    Args:
        executor: of submitit, as `submitit.AutoExecutor(folder="logs")`, with its parameters (partition, timeout_min,
            gpus_per_node, ...). The objective must be importable, or be pickled by cloudpickle, on the nodes.
        workers: how many jobs there are at the same time, running or in SLURM's queue.
        poll: seconds between two looks at all jobs.

    Raises:
        SettingError: for anything but an executor of submitit, or a setting outside its range.
    """

    def __init__(self, executor: Any, workers: int, poll: float | timedelta = 1.0):
        if isinstance(executor, type) or not callable(getattr(executor, "submit", None)):
            raise SettingError(
                f"executor must be one of submitit's, but got {executor!r:.100}. Give AutoExecutor(...)."
            )
        required(workers=workers, poll=poll)
        whole(1, workers=workers)
        above(0, poll=seconds(poll))
        self.executor, self.num_workers, self.poll = executor, workers, float(seconds(poll) or 0)
        self._jobs: list[tuple[Any, Future[Any]]] = []
        self._lock = threading.Lock()
        self._watcher: threading.Thread | None = None

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> "Future[Any]":
        """Submits a job."""
        job, future = self.executor.submit(fn, *args, **kwargs), Future[Any]()
        with self._lock:
            self._jobs.append((job, future))
            if self._watcher is None:
                self._watcher = threading.Thread(target=self._watch, daemon=True, name="deepbore-submitit")
                self._watcher.start()
        return future

    def _watch(self) -> None:
        """Passes the results of jobs on, until there is none left."""
        while True:
            with self._lock:
                self._jobs = [(job, future) for job, future in self._jobs if not _passed_on(job, future)]
                if not self._jobs:
                    self._watcher = None
                    return
            time.sleep(self.poll)


def _passed_on(job: Any, future: "Future[Any]") -> bool:
    """Whether a job is over; its future has its result then, or its error."""
    if future.cancelled():
        job.cancel()
        return True
    if not job.done() or not future.set_running_or_notify_cancel():
        return False
    error = job.exception()
    if error is None:
        future.set_result(job.result())
    else:
        future.set_exception(error)
    return True
