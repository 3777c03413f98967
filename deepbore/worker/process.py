"""What runs in a worker process of `ProcessEvaluator`. Light to import: it loads only what the objective needs."""

import multiprocessing
import os
import pickle
import signal
import threading

from deepbore.data.outcome import Outcome
from deepbore.data.trial import Trial
from deepbore.worker.objective import Objective, evaluate

_WORKER = os.getpid()
_HELD: dict[str, Objective] = {}  # this process's objective: sent once, so what it caches lasts from call to call


def begin() -> None:
    """Sets a new worker up: a process group of its own, and an end that comes with the parent's.

    In its own group a worker hears no Ctrl-C, and can be killed together with the processes that the objective starts.
    SIGTERM, which clusters send to all processes of a job, is the parent's business, too: it ends the run when the
    running trials are done.
    """
    signal.signal(signal.SIGTERM, _leave_to_parent)
    if hasattr(os, "setpgrp"):
        os.setpgrp()
    threading.Thread(target=_end_with_parent, daemon=True).start()


def load(pickled: bytes) -> None:
    """Takes the objective in."""
    _HELD["objective"] = pickle.loads(pickled)


def call(trial: Trial) -> Outcome:
    """Evaluates the objective that was loaded."""
    return evaluate(_HELD["objective"], trial)


def kill_group(pid: int) -> bool:
    """Kills a worker and all that it has started; whether there was such a group."""
    try:
        os.killpg(pid, signal.SIGKILL)
    except (AttributeError, OSError):  # no groups on Windows; a worker that has not begun leads none
        return False
    return True


def _leave_to_parent(number: int, _frame: object) -> None:
    if os.getpid() != _WORKER:  # a process that the objective has forked: it ends as any other
        signal.signal(number, signal.SIG_DFL)
        signal.raise_signal(number)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    if not kill_group(os.getpid()):
        os._exit(1)
