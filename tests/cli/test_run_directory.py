"""Directories of runs: where they are, how they are named, and that a refused run leaves none."""

import os
import threading
from pathlib import Path

import pytest
from lightning.pytorch.utilities import rank_zero_only

from deepbore import Study, minimize
from deepbore.cli.load import load_run
from deepbore.cli.main import main
from deepbore.cli.new_run import leave_unused, new_run
from deepbore.data import runs
from deepbore.data.runs import Run
from kinds_of_jobs import JOBS
from plane import SQUARE


def value(params):
    return (params["x"] - 0.3) ** 2 + params["y"]


# regression: each of these was wrong once
def test_a_run_directory_is_named_as_a_journal_is(tmp_path):
    journal = tmp_path / "mine" / "journal.jsonl"
    minimize(value, SQUARE, 11, seed=0, journal=journal).study.close()
    study = Study.load(tmp_path / "mine")
    assert len(study.trials) == len(load_run(str(tmp_path / "mine")).trials) == 11
    assert repr(study) == f"Study(11 trials, best {study.best_trial.value:.6g})"


def fit(*args):
    return main(["fit", "--config", "mine.yaml", *map(str, args)])


def test_a_run_may_be_kept_at_home_and_taken_up_again_there(at_home):
    assert fit("--run=~/run") == 0
    assert not (at_home / "~").exists()
    assert Run(at_home / "home" / "run").settings["loop"]["n_trials"] == 3
    assert main(["fit", "--resume", "~/run", "--loop.n_trials", "4"]) == 0
    assert len(Study.load(at_home / "home" / "run").trials) == 4


def test_a_folder_that_can_not_be_written_is_said_in_one_line(at_home, capsys):
    run = at_home / "run"
    (run / "config.yaml").mkdir(parents=True)  # where the configuration would be: root may write anywhere
    assert fit("--run", run) == 2
    said = capsys.readouterr().err.strip()
    assert said.startswith(f"deepbore: {run}/config.yaml can't be written")
    assert "\n" not in said


def test_a_run_of_fit_is_no_run_of_tune(at_home, capsys):
    assert fit("--run", "run") == 0
    assert main(["tune", "--resume", "run"]) == 2
    said = capsys.readouterr().err.splitlines()[-1]
    assert said == "deepbore: run is no run of `deepbore tune`. Go on with: deepbore fit --resume run"


@pytest.mark.usefixtures("beside_branin")
def test_runs_that_begin_together_have_a_directory_each():
    begun = threading.Barrier(8)
    found = []

    def begins():
        begun.wait()
        found.append(new_run("tune"))

    threads = [threading.Thread(target=begins) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(path.name for path in found) == [f"tune-{k}" for k in range(1, 9)]


@pytest.mark.usefixtures("beside_branin")
def test_a_run_that_is_refused_leaves_no_directory():
    assert main(["fit", "--config", "branin.yaml", "--loop.n_trials", "null"]) == 2
    assert not Path("runs").exists()
    assert main(["fit", "--config", "branin.yaml", "--loop.n_trials", "null"]) == 2  # in one process, too
    assert not Path("runs").exists()
    with leave_unused():
        (new_run("branin") / "config.yaml").touch()
    assert Path("runs/branin-1/config.yaml").exists()


def run_here(*args):
    return main([*map(str, args)])


def test_a_run_stays_where_it_is_though_its_problem_goes_elsewhere(empty_folder):
    Path("goes.py").write_text(
        "import os, tempfile\n\ndef f(p):\n    os.chdir(tempfile.mkdtemp())\n    return p['x'] ** 2\n"
    )
    Path("run.yaml").write_text(
        "problem:\n  class_path: deepbore.problems.FunctionProblem\n  init_args:\n    function: goes.f\n"
        "    space: {x: {type: real, low: -1, high: 1}}\n"
        "loop: {n_trials: 14, n_initial: 4}\nrun: mine\n"
    )
    assert run_here("fit", "--config", "run.yaml") == 0
    assert "best_value" in (empty_folder / "mine" / "metrics.csv").read_text()
    os.chdir(empty_folder)
    assert run_here("fit", "--resume", "mine", "--loop.n_trials", 16) == 0
    assert len(Study.load(empty_folder / "mine" / "journal.jsonl").trials) == 16


@pytest.mark.usefixtures("beside_branin")
@pytest.mark.parametrize("job", JOBS)
def test_a_run_on_one_device_asks_no_cluster(job, monkeypatch):
    for name, value in JOBS[job].items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(rank_zero_only, "rank", 1)  # as Lightning finds it when it is imported there
    assert main(["fit", "--config", "branin.yaml", "--loop.n_trials", "12"]) == 0
    assert main(["fit", "--config", "branin.yaml", "--loop.n_trials", "2", "--trainer.devices", "1"]) == 0
    assert [len(Study.load(run).trials) for run in sorted(Path("runs").iterdir())] == [12, 2]
    assert "best_value" in Path("runs/branin-1/metrics.csv").read_text()  # the logger, too


def test_a_run_is_running_while_its_lock_is_held_where_there_is_no_flock_as_well(tmp_path, monkeypatch):
    study = minimize(value, SQUARE, 11, seed=0, journal=tmp_path / "mine" / "journal.jsonl").study
    monkeypatch.setattr(runs, "fcntl", None)  # as on Windows
    study.ask_one()
    assert Run(tmp_path / "mine").state == "running"
    study.tell(study.ask_one(), 0.0)  # a look has taken nothing
    study.tell(11, 0.0)
    study.close()
    assert Run(tmp_path / "mine").state == "finished"
    (tmp_path / "mine" / "journal.jsonl.lock").unlink(missing_ok=True)
    assert Run(tmp_path / "mine").is_locked is False
    assert not (tmp_path / "mine" / "journal.jsonl.lock").exists()
