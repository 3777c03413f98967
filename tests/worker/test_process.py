"""The code of a worker process: what it has started ends with it, also where there are no groups and no /proc."""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress

import pytest

from deepbore.worker import process
from processes import is_gone

TREE = """
import os, subprocess, sys, time
child = "import time; time.sleep(120)"
both = [subprocess.Popen([sys.executable, "-c", child], start_new_session=apart) for apart in (False, True)]
print(*[each.pid for each in both], flush=True)
time.sleep(120)
"""


@pytest.fixture
def elsewhere(monkeypatch, tmp_path):
    """As on Windows: no groups of processes, and no /proc."""
    monkeypatch.delattr(os, "killpg")
    monkeypatch.setattr(process, "PROC", tmp_path)


@pytest.fixture
def tree():
    """A process that has two children, one of them in a session of its own, and their pids."""
    env = os.environ | {process.MARK: "mine"}
    parent = subprocess.Popen([sys.executable, "-c", TREE], stdout=subprocess.PIPE, text=True, env=env)
    children = [int(pid) for pid in parent.stdout.readline().split()]
    yield parent, children
    for pid in (parent.pid, *children):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    parent.wait()
    parent.stdout.close()


@pytest.mark.usefixtures("elsewhere")
def test_a_worker_ends_with_its_descendants_without_groups(tree):
    parent, children = tree
    assert not process.kill_group(parent.pid)
    assert all(is_gone(pid) for pid in (parent.pid, *children))


@pytest.mark.usefixtures("elsewhere")
def test_what_a_dead_worker_has_started_is_known_by_its_mark_without_proc(tree):
    parent, children = tree
    parent.kill()
    parent.wait()  # its children have another parent now
    process.kill_marked("another")
    time.sleep(0.1)
    assert not any(is_gone(pid, within=0.1) for pid in children)
    process.kill_marked("mine")
    assert all(is_gone(pid) for pid in children)


@pytest.mark.usefixtures("elsewhere")
def test_a_worker_that_has_gone_is_no_trouble():
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    assert not process.kill_group(gone.pid)
