"""`RayExecutor`: trials on a Ray cluster, as `ExecutorEvaluator(train, RayExecutor(workers=64))`."""

from collections.abc import Callable
from concurrent.futures import Executor, Future
from functools import partial
from typing import Any

from deepbore.errors import MissingPackage
from deepbore.validation import required, whole

try:
    import ray
except ImportError:
    raise MissingPackage("RayExecutor needs Ray: pip install 'deepbore[ray]'.") from None


class RayExecutor(Executor):
    """An executor of tasks on a Ray cluster, with the interface of `concurrent.futures`.

    It connects to the cluster as Ray does by itself; for another one call `ray.init(address)` before. A task whose
    worker or node is lost is tried again by `ExecutorEvaluator`, at most `lost_retries` times, and not by Ray. What is
    left at the end of a run is cancelled on the cluster, too.

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
        self._task = ray.remote(**{"max_retries": 0, **options})(called)

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> "Future[Any]":
        """Begins a call, when the cluster has room for it."""
        reference = self._task.remote(fn, args, kwargs)
        future: Future[Any] = reference.future()
        future.add_done_callback(partial(_end_if_cancelled, reference))
        return future


def called(fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What a task does: a call."""
    return fn(*args, **kwargs)


def _end_if_cancelled(reference: Any, future: "Future[Any]") -> None:
    if future.cancelled() and ray.is_initialized():
        ray.cancel(reference, force=True)
