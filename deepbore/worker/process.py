"""The code of a worker process of `ProcessEvaluator`. Light to import: it loads only what the objective needs."""

import multiprocessing
import os
import pickle
import signal
import threading
from contextlib import suppress
from pathlib import Path

from deepbore.data.outcome import Outcome
from deepbore.data.trial import Trial
from deepbore.worker.objective import Objective, evaluate

MARK = "DEEPBORE_WORKER"  # the variable by which the processes that a worker starts are known
_WORKER = os.getpid()
_HELD: dict[str, Objective] = {}  # this process's objective, sent once, so that its caches last from call to call


def begin() -> None:
    """Sets up a new worker: a process group of its own, and an exit when the parent exits.

    In its own group a worker gets no Ctrl-C, and can be killed together with the processes that the objective starts.
    SIGTERM, which clusters send to all processes of a job, is left to the parent, too: it ends the run when the running
    trials are done.
    """
    signal.signal(signal.SIGTERM, _leave_to_parent)
    if hasattr(os, "setpgrp"):
        os.setpgrp()
    threading.Thread(target=_end_with_parent, daemon=True).start()


def load(pickled: bytes) -> None:
    """Loads the objective."""
    _HELD["objective"] = pickle.loads(pickled)


def call(trial: Trial) -> Outcome:
    """Evaluates the objective that was loaded."""
    return evaluate(_HELD["objective"], trial)


def kill_group(pid: int) -> bool:
    """Kills a worker and all that it has started; whether there was such a group."""
    try:
        os.killpg(pid, signal.SIGKILL)
    except (AttributeError, OSError):  # no groups on Windows; a worker that has not begun has none
        return False
    return True


def kill_marked(mark: str) -> None:
    """Kills the processes that a worker has started, whatever their group and session; on Linux, elsewhere none.

    Args:
        mark: the worker's value of the variable `MARK`, which these have inherited.
    """
    entry = f"{MARK}={mark}".encode()
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended, or belongs to another user
            if entry in (process / "environ").read_bytes().split(b"\0") and int(process.name) != os.getpid():
                os.kill(int(process.name), signal.SIGKILL)


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
