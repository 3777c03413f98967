"""What all tests need, and fixtures of several files."""

import multiprocessing
import signal
import warnings
from pathlib import Path

import pytest
import yaml
from hypothesis import settings

from commands import BRANIN, SQUARED_AT_HOME, Done
from drawn_spaces import uncounted  # noqa: F401  (a fixture of two rooms)
from processes import is_gone

settings.register_profile("timeless", deadline=None)  # on a busy machine anything takes long at times
settings.load_profile("timeless")

CHROMIUM = next((path for path in map(Path, ["/usr/bin/chromium", "/usr/bin/google-chrome"]) if path.exists()), None)

# Shells have processes in the background ignore Ctrl-C, and these hand that on: some tests are about Ctrl-C.
signal.signal(signal.SIGINT, signal.default_int_handler)

# A package of its own, with tests of its own (see `docs/test_extending.py`), and what test files import by name.
HELPERS = [path.name for path in Path(__file__).parent.glob("*.py") if not path.name.startswith("test_")]
collect_ignore = ["plugin_package", *HELPERS]


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


@pytest.fixture
def empty_folder(tmp_path, monkeypatch):
    """An empty folder to work in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def beside_branin(tmp_path, monkeypatch):
    """A folder with a configuration, in a process that no run has told where it is."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DEEPBORE_RUN", raising=False)
    (tmp_path / "branin.yaml").write_text(BRANIN)


@pytest.fixture
def at_home(tmp_path, monkeypatch):
    """A folder with an objective and its configuration, and a home of its own within."""
    (tmp_path / "objective_at_home.py").write_text("def squared(params):\n    return min(params.values()) ** 2\n")
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump(SQUARED_AT_HOME))
    (tmp_path / "home").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return tmp_path


@pytest.fixture
def by_budget(tmp_path):
    """A run whose cheapest trials have the best values, and its journal."""
    from deepbore import Budget, Study
    from deepbore.data.replay import read_record
    from plane import SQUARE

    path = tmp_path / "journal.jsonl"
    study = Study(SQUARE, budget=Budget("epochs", 1, 9), journal=path, seed=0)
    x = [0.1, 0.2, 0.3, 0.4, 0.5]
    study.add({"x": x, "y": x}, [0.1, 0.5, 0.6, 0.3, 0.4], budgets=[1, 1, 1, 9, 9])
    study.fit()
    return study, read_record(path)


@pytest.fixture(scope="module")
def browser():
    sync_api = pytest.importorskip("playwright.sync_api")
    if CHROMIUM is None:
        pytest.skip("there is no chromium")
    with sync_api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=str(CHROMIUM), args=["--no-sandbox"])
        yield chromium
        chromium.close()
