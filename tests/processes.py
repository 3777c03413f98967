"""Programs in processes of their own, and whether processes have ended."""

import os
import subprocess
import sys
import time
import traceback
from pathlib import Path

import psutil
import torch

import forked

ROOT = Path(__file__).parent.parent
PATHS = [*filter(None, [os.environ.get("PYTHONPATH")]), str(ROOT), str(Path(__file__).parent)]
ENV = os.environ | {"PYTHONPATH": os.pathsep.join(PATHS), "OMP_NUM_THREADS": "1"}


def run(code, *args, timeout=120, cold=False):
    """What a program prints that has this deepbore."""
    start = subprocess.run if cold else forked.run
    command = [sys.executable, "-c", code, *map(str, args)]
    return start(command, cwd=ROOT, capture_output=True, text=True, timeout=timeout, check=False)


def fork(program):
    """The pid of a forked process that does this, on one thread, and ends: with 0, or with 1 and a traceback.

    The threads of OpenMP end with a fork, and a child that asks for those its parent has used waits for ever.
    """
    if child := os.fork():
        return child
    status = 1
    try:
        torch.set_num_threads(1)
        program()
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:  # a child that went on would be a second pytest
        os._exit(status)


def is_gone(pid, within=5.0):
    """Whether a process, by its number, has ended; one that its parent hasn't waited for yet has, too."""
    deadline = time.monotonic() + within
    while time.monotonic() < deadline:
        try:
            if psutil.Process(int(pid)).status() == psutil.STATUS_ZOMBIE:
                return True
        except psutil.NoSuchProcess:
            return True
        time.sleep(0.02)
    return False
