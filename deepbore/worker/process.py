"""The code of a worker process of `ProcessEvaluator`. Light to import: it loads only what the objective needs."""

import multiprocessing
import os
import pickle
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from deepbore.data.outcome import Outcome
from deepbore.data.trial import Trial
from deepbore.worker.objective import Objective, evaluate

MARK = "DEEPBORE_WORKER"  # the variable by which the processes that a worker starts are known
UNGUARDED = 77  # exit status
PROC = Path("/proc")  # of Linux
_WORKER = os.getpid()
_HELD: dict[str, Objective] = {}  # this process's objective, sent once, so that its caches last from call to call


def begin() -> None:
    """Sets up a new worker: a process group of its own, and an exit when the parent exits.

    In its own group a worker gets no Ctrl-C, and can be killed together with the processes that the objective starts.
    SIGTERM, which clusters send to all processes of a job, is left to the parent, too: it ends the run when the running
    trials are done. So is Ctrl-C where there are no groups: a console of Windows sends it to all its processes.
    """
    signal.signal(signal.SIGTERM, _leave_to_parent)
    if hasattr(os, "setpgrp"):
        os.setpgrp()
    else:
        signal.signal(signal.SIGINT, _leave_to_parent)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def leave_if_unguarded() -> None:
    """Ends a worker that comes upon a run while it imports the script: the script has no guard, as its parent says."""
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        os._exit(UNGUARDED)


def load(pickled: bytes) -> None:
    """Loads the objective."""
    _HELD["objective"] = pickle.loads(pickled)


def call(trial: Trial) -> Outcome:
    """Evaluates the objective that was loaded."""
    return evaluate(_HELD["objective"], trial)


def kill_group(pid: int) -> bool:
    """Kills a worker and all that it has started; whether there was such a group.

    On Windows, which has no groups, those that descend from it are killed; a caller that is the worker survives that.
    """
    if not hasattr(os, "killpg"):
        _kill_descendants(pid)
        return False
    try:
        os.killpg(pid, signal.SIGKILL)
    except OSError:  # a worker that has not begun has none
        return False
    return True


def _kill_descendants(pid: int) -> None:
    """Kills a process, unless it is this one, and those that it has started, and these in turn."""
    psutil = _psutil()
    with suppress(psutil.Error):
        worker = psutil.Process(pid)
        found = worker.children(recursive=True)
        for each in [*([worker] if pid != os.getpid() else []), *found]:  # the worker first: it starts no more
            with suppress(psutil.Error):
                each.kill()


def kill_marked(mark: str) -> None:
    """Kills the processes that a worker has started, whatever their group and session.

    Args:
        mark: the worker's value of the variable `MARK`, which these have inherited.
    """
    if not (PROC / "self" / "environ").exists():
        _kill_marked_elsewhere(mark)
        return
    entry = f"{MARK}={mark}".encode()
    for process in PROC.glob("[0-9]*"):
        with suppress(OSError):  # it has ended, or belongs to another user
            if entry in (process / "environ").read_bytes().split(b"\0") and int(process.name) != os.getpid():
                os.kill(int(process.name), signal.SIGKILL)


def _kill_marked_elsewhere(mark: str) -> None:
    """`kill_marked` on macOS and Windows, which have no /proc."""
    psutil = _psutil()
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):  # it has ended, or belongs to another user
            if process.environ().get(MARK) == mark and process.pid != os.getpid():
                process.kill()


def _psutil() -> Any:
    """The module, which is a dependency where it is needed, and takes a moment to import."""
    import psutil

    return psutil


@contextmanager
def no_ctrl_c_inherited() -> Iterator[None]:
    """A context in which a process that is started on Windows ignores Ctrl-C from its first line on.

    Elsewhere it does nothing: a worker leaves the group of the terminal in `begin`.
    """
    if sys.platform != "win32":
        yield
        return
    import ctypes

    ignore = ctypes.windll.kernel32.SetConsoleCtrlHandler
    ignore(None, True)  # an attribute of this process that children inherit
    try:
        yield
    finally:
        ignore(None, False)


def _leave_to_parent(number: int, _frame: object) -> None:
    if os.getpid() != _WORKER:  # a process that the objective has forked: it ends as any other
        signal.signal(number, signal.SIG_DFL)
        signal.raise_signal(number)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    kill_marked(os.environ.get(MARK, ""))
    if not kill_group(os.getpid()):
        os._exit(1)
