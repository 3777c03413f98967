"""Fixtures of the dashboard: runs, a client, a server on a port of its own, a browser."""

import re
import subprocess
import sys

import pytest

from deepbore import SearchSpace, Study
from deepbore.dashboard.live import Live
from deepbore.dashboard.runs import Shelf
from deepbore.dashboard.security import Access
from deepbore.dashboard.server import application
from watched import SPACE, TOKEN, begun, value_of


@pytest.fixture
def folder(tmp_path):
    """A folder with a run that has ended, one whose process holds the journal, and one that left trials behind."""
    runs = tmp_path / "runs"
    study = Study(SearchSpace(SPACE), seed=0, journal=runs / "ended.jsonl")
    study.optimize(value_of, 6, progress=False)
    study.close()
    dead = begun(runs / "dead.jsonl", 5)
    dead.ask(2)
    dead.close()
    live = begun(runs / "live" / "journal.jsonl")
    yield runs
    live.close()


@pytest.fixture
def client(folder):
    """Function of settings that gives a client of the dashboard of these runs, all of which are read."""
    from starlette.testclient import TestClient

    def make(*paths, **settings):
        live = Live(Shelf.of(map(str, paths or [folder])))
        while live.look():
            pass
        access = Access(**{"token": TOKEN, **settings})
        found = TestClient(application(live, access), base_url="http://127.0.0.1:8080", follow_redirects=False)
        found.live = live
        return found

    return make


@pytest.fixture
def served():
    """Function of command line arguments that starts `deepbore dashboard` on a free port; its address."""
    processes = []

    def start(*args):
        command = [sys.executable, "-m", "deepbore", "dashboard", "--port", "0", "--token", TOKEN, *map(str, args)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, encoding="utf-8")
        processes.append(process)
        line = process.stdout.readline()
        return re.search(r"http://[^/]+", line)[0]

    yield start
    for process in processes:
        process.terminate()
        process.wait(20)
