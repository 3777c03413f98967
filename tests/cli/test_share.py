"""`deepbore lead` and `deepbore work`: one study of a leader and workers, in threads of this process."""

import io
import subprocess
import sys
import threading
import time
from contextlib import contextmanager

import pytest

from deepbore import Study
from deepbore.cli import main as cli
from deepbore.data.runs import Run

TRAIN = "def train(params):\n    return (params['lr'] - 0.3) ** 2\n"
CONFIG = """
problem:
  class_path: deepbore.problems.FunctionProblem
  init_args:
    function: lead_train.train
    space:
      lr: {type: real, low: 0, high: 1}
loop: {n_trials: 12}
"""
pytestmark = pytest.mark.timeout(60)  # a leader waits for workers
BRIEF = ["--poll", "0.02", "--patience", "30"]
SHARED = ["--storage", "sqlite:///storage.db", "--study", "mine"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", sys.path.copy())
    for name in ("lead_train", "work_train"):
        (tmp_path / f"{name}.py").write_text(TRAIN)
    (tmp_path / "mine.yaml").write_text(CONFIG)
    return tmp_path


@contextmanager
def loaded(folder):
    study = Study.load(folder / "runs" / "mine")
    yield study
    study.close()


def lead(*more):
    return cli.main(["lead", *SHARED, "--config", "mine.yaml", "--poll", "0.02", *more])


def working():
    """The commands of a worker, in a thread."""
    thread = threading.Thread(target=cli.main, args=[["work", *SHARED, "work_train:train", *BRIEF]])
    thread.start()
    return thread


def test_a_study_is_led_and_worked_on(folder, capsys):
    command = [sys.executable, "-m", "deepbore", "work", *SHARED, "work_train.py:train", *BRIEF]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as worker:
        assert lead() == 0
        assert "evaluated: 12 trials" in worker.communicate(timeout=60)[0]
    assert "12 trials" in capsys.readouterr().out
    assert Run(folder / "runs" / "mine").record  # a run as any other, for `deepbore watch`, `best`, ...
    assert lead() == 0  # nothing is left to do
    with loaded(folder) as study:
        assert len(study.trials) == 12


def test_a_second_leader_waits_for_the_first_and_continues(folder, monkeypatch):
    worker = working()
    assert lead("--loop.n_trials", "4") == 0
    worker.join()
    with loaded(folder) as study:
        study.enqueue({"lr": 0.25})  # it writes the journal now
        said = io.StringIO()  # capsys, which reads and then empties, may miss what another thread writes
        monkeypatch.setattr(sys, "stderr", said)
        second = threading.Thread(target=lead)
        second.start()
        while "another process leads" not in said.getvalue():
            assert second.is_alive()
            time.sleep(0.02)
    worker = working()
    second.join()
    worker.join()
    with loaded(folder) as study:
        assert len(study.trials) == 12
        assert {"lr": 0.25} in [trial.params for trial in study.trials]


@pytest.mark.parametrize(
    ("target", "says"),
    [("train", "TARGET"), ("nowhere:train", "nowhere"), ("missing.py:train", "missing.py"), ("work_train:f", "'f'")],
)
def test_a_target_that_is_no_function_is_refused(folder, capsys, target, says):
    assert cli.main(["work", *SHARED, target]) == 2
    assert says in capsys.readouterr().err


def test_a_worker_of_the_command_line_imports_no_torch(folder):
    program = "import sys; from deepbore.cli import main; main.main(sys.argv[1:]); print('torch' in sys.modules)"
    arguments = ["work", *SHARED, "work_train.py:train", "--patience", "0.1", "--poll", "0.02"]
    done = subprocess.run([sys.executable, "-c", program, *arguments], check=True, capture_output=True, text=True)
    assert done.stdout.splitlines() == ["evaluated: 0 trials", "False"]


@pytest.mark.parametrize("missing", ["--storage", "--study"])
def test_both_names_must_be_given(folder, capsys, missing):
    place = SHARED.index(missing)
    assert cli.main(["lead", *SHARED[:place], *SHARED[place + 2 :], "--config", "mine.yaml"]) == 2
    assert f"{missing} must be given" in capsys.readouterr().err
    assert cli.main(["work", *SHARED[:place], *SHARED[place + 2 :], "work_train.py:train"]) == 2
