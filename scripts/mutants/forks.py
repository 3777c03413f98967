"""Forks of this process: each begins with what it has imported, and leaves nothing behind."""

import contextlib
import os
import signal
import tempfile
import time
from collections.abc import Callable


def forked(action: Callable[[], int], seconds: float, quiet: bool = True) -> int | None:
    """The exit status of `action` in a fork, which ends with all that it began; None if it took longer."""
    with tempfile.TemporaryDirectory(prefix="mutant-") as folder:
        pid = os.fork()
        if not pid:
            status = 1
            try:
                _prepare(folder, quiet)
                status = action()
            finally:
                os._exit(status)
        status = _wait(pid, seconds)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
        if status is None:
            os.waitpid(pid, 0)
    return status


def _prepare(folder: str, quiet: bool) -> None:
    os.setsid()
    os.environ["HYPOTHESIS_STORAGE_DIRECTORY"] = os.environ["PYTEST_DEBUG_TEMPROOT"] = folder
    if quiet:
        null = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(null, stream)


def _wait(pid: int, seconds: float) -> int | None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    return None
