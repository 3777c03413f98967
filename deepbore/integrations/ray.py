"""`RayExecutor`: trials on a Ray cluster, as `ExecutorEvaluator(train, RayExecutor(workers=64))`."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import Executor, Future, InvalidStateError
from contextlib import suppress
from functools import partial
from typing import Any

from deepbore.errors import MissingPackage
from deepbore.validation import required, whole

try:
    import ray
except ImportError:
    raise MissingPackage("RayExecutor needs Ray: pip install 'deepbore[ray]'.") from None

LOOK = 0.5  # seconds between two looks whether Ray is still there


class RayExecutor(Executor):
    """An executor of tasks on a Ray cluster, with the interface of `concurrent.futures`.

    It connects to the cluster as Ray does by itself; for another one call `ray.init(address)` before. A task whose
    worker or node is lost is tried again by `ExecutorEvaluator`, at most `lost_retries` times, and not by Ray. What is
    left at the end of a run is cancelled on the cluster, too. Where no node has what a task needs, the run waits as
    long as the evaluator's `patience`. After `ray.shutdown()` it takes no more tasks, those that ran are lost, and the
    run ends with an EvaluatorError.

    Args:
        workers: how many trials are evaluated at the same time.
        options: of each task, as of `ray.remote`: num_cpus, num_gpus, resources, runtime_env, ...

    Raises:
        SettingError: for workers below 1.
    """

    def __init__(self, workers: int, **options: Any):
        required(workers=workers)
        whole(1, workers=workers)
        self.num_workers = workers
        own = options.get("resources") or {}
        self._needs = {"CPU": options.get("num_cpus", 1), "GPU": options.get("num_gpus"), **own}
        self._task = ray.remote(**{"max_retries": 0, **options})(called)
        self._job: str | None = None  # of Ray's, since the first task
        self._futures: list[Future[Any]] = []
        self._lock = threading.Lock()
        self._watcher: threading.Thread | None = None

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> "Future[Any]":
        """Begins a call, when the cluster has room for it.

        Raises:
            ConnectionError: after `ray.shutdown()`.
        """
        if self._job is None:
            if not ray.is_initialized():
                ray.init()
            self._job = _job()
        self._check()
        reference = self._task.remote(fn, args, kwargs)
        future: Future[Any] = reference.future()
        future.add_done_callback(partial(_end_if_cancelled, reference))
        with self._lock:
            self._futures.append(future)
            if self._watcher is None:
                self._watcher = threading.Thread(target=self._watch, daemon=True, name="deepbore-ray")
                self._watcher.start()
        return future

    def can_run(self) -> bool:
        """Whether the cluster has a node, busy or not, with what a task needs."""
        try:
            nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
        except ray.exceptions.RaySystemError:  # it was shut down: its tasks are lost
            return True
        return any(all(has.get(name, 0) >= (need or 0) for name, need in self._needs.items()) for has in nodes)

    def _check(self) -> None:
        if _job() != self._job:
            raise ConnectionError("Ray was shut down")

    def _watch(self) -> None:
        """Ends the futures of a Ray that was shut down, which Ray itself leaves as they are."""
        while True:
            time.sleep(LOOK)
            with self._lock:
                self._futures = [each for each in self._futures if not each.done()]
                if not self._futures:
                    self._watcher = None
                    return
                lost = self._futures if _job() != self._job else []
            for each in lost:
                with suppress(InvalidStateError):  # it has ended in this moment
                    each.set_exception(ConnectionError("Ray was shut down"))


def _job() -> str | None:
    """The id of this process in its Ray cluster; None while it has none."""
    return str(ray.get_runtime_context().get_job_id()) if ray.is_initialized() else None


def called(fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What a task does: a call."""
    return fn(*args, **kwargs)


def _end_if_cancelled(reference: Any, future: "Future[Any]") -> None:
    if future.cancelled() and ray.is_initialized():
        ray.cancel(reference, force=True)
