"""What all tests need, and fixtures of several files."""

import multiprocessing
import os
import signal
import warnings

import pytest
from hypothesis import settings

from commands import BRANIN, Done
from processes import is_gone

settings.register_profile("timeless", deadline=None)  # on a busy machine anything takes long at times
settings.load_profile("timeless")

if "PYTEST_XDIST_WORKER" in os.environ:  # there is one on each core: two threads each would stand in each other's way
    os.environ.setdefault("OMP_NUM_THREADS", "1")

# Shells have processes in the background ignore Ctrl-C, and these hand that on: some tests are about Ctrl-C.
signal.signal(signal.SIGINT, signal.default_int_handler)

collect_ignore = ["plugin_package"]  # a package of its own, with tests of its own: see `test_extending.py`


@pytest.fixture
def quiet_optuna():
    """Optuna without its log, and without warnings of what is experimental."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        yield


@pytest.fixture
def no_process_is_left():
    """What the test has begun has ended with it."""
    yield
    assert all(is_gone(process.pid) for process in multiprocessing.active_children())


@pytest.fixture
def deepbore_here(tmp_path, monkeypatch, capsys):
    """Runs a command in this process, in an empty folder: spares it the imports of a new one."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "branin.yaml").write_text(BRANIN)

    def run(*args):
        from deepbore.cli.main import main

        status = main([str(arg) for arg in args])
        return Done(status, *capsys.readouterr())

    return run
