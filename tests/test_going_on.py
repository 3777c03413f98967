"""What a run that has ended, failed or been refused leaves to whoever goes on."""

import gc
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest

from commands import deepbore as command, on_ranks_of
from deepbore import (
    DeepEnsemble,
    ExecutorEvaluator,
    ExpectedImprovementBelow,
    ImprovementLabels,
    MLPClassifier,
    Real,
    SearchSpace,
    Study,
    Training,
    minimize,
)
from deepbore.cli.run_directory import new_run
from deepbore.errors import EvaluatorError, JournalError, ObjectiveError, SettingError, ValueTypeError
from deepbore.loop.engine import Engine

LINE = SearchSpace({"x": Real(0, 1)})
PLANE = SearchSpace({"x": Real(-5, 5), "y": Real(-5, 5)})


def bowl(params):
    return (params["x"] - 1) ** 2 + (params["y"] - 2) ** 2


def broken(_params):
    raise ValueError("a typo")


# --- a run that has ended --------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:trial .* failed")
def test_a_mended_objective_goes_on_with_the_journal_of_the_broken_one(tmp_path):
    gc.disable()  # what holds the study is not found by chance
    try:
        with pytest.raises(ObjectiveError):
            minimize(broken, LINE, 50, journal=tmp_path / "run.jsonl")
        result = minimize(lambda params: params["x"], LINE, 22, journal=tmp_path / "run.jsonl", if_exists="load")
        again = minimize(lambda params: params["x"], LINE, 24, journal=tmp_path / "run.jsonl", if_exists="load")
    finally:
        gc.enable()
    assert (len(result.values), len(again.values)) == (22, 24)


def test_a_run_without_hope_stays_ended_when_its_script_is_run_again(tmp_path):
    lengths = [
        len(
            minimize(
                lambda params: params["x"] ** 2,
                LINE,
                100,
                stop_when=ExpectedImprovementBelow(0.01, proposals=4),
                journal=tmp_path / "run.jsonl",
                if_exists="load",
            ).values
        )
        for _ in range(3)
    ]
    assert lengths == lengths[:1] * 3


@pytest.mark.slow
def test_another_rule_counts_for_itself(tmp_path):
    study = Study(LINE, seed=0)
    study.optimize(lambda params: params["x"] ** 2, 100, stop_when=ExpectedImprovementBelow(0.3, proposals=3))
    ended = len(study.trials)
    study.optimize(lambda params: params["x"] ** 2, 100, stop_when=ExpectedImprovementBelow(1e-3, proposals=3))
    assert len(study.trials) > ended


@pytest.mark.slow
def test_a_proposal_that_was_dropped_is_made_again(tmp_path):
    rule, whole = ExpectedImprovementBelow(0.05, proposals=1), Study(PLANE, seed=0)
    whole.optimize(bowl, 25)
    kept = Study(PLANE, seed=0, journal=tmp_path / "run.jsonl")
    kept.optimize(bowl, 25, stop_when=rule)
    kept.close()
    (found,) = kept.ask()
    assert found.params == whole.trials[found.id].params


# --- a run that is refused -------------------------------------------------------------------------------------------


def test_a_study_that_is_refused_takes_no_classifier_and_no_labels(tmp_path):
    classifier, labels = MLPClassifier(), ImprovementLabels()
    study = Study(LINE, journal=tmp_path / "run.jsonl", classifier=classifier, labels=labels)
    study.ask()
    with pytest.raises(JournalError, match="holds a run already"):
        Study(LINE, journal=tmp_path / "run.jsonl", classifier=classifier, labels=labels)
    with pytest.raises(SettingError, match="n_trials=None needs something else"):
        minimize(bowl, LINE, None, classifier=classifier)
    study.ask()


def test_a_classifier_that_has_learned_in_another_run_is_named_once(caplog):
    classifier = MLPClassifier()
    minimize(lambda params: params["x"], LINE, 12, classifier=classifier)
    minimize(lambda params: params["x"], LINE, 11, classifier=classifier)
    assert caplog.text.count("has learned in another run") == 1


def test_budgets_of_a_study_without_any_are_the_same_in_one_call_and_in_two():
    study = Study(LINE)
    study.add({"x": [0.1]}, [1.0], budgets=1)
    study.add({"x": [0.2]}, [1.5])
    with pytest.raises(SettingError, match=r"several budgets \(1, 81\)"):
        study.add({"x": [0.3]}, [2.0], budgets=81)
    study.add({"x": [0.4]}, [2.0], budgets=81, task="another")
    assert len(study.trials) == 3


# --- doors -----------------------------------------------------------------------------------------------------------


def test_a_trial_is_a_record_whose_notes_change_nothing():
    study = Study(LINE)
    (trial,) = study.ask()
    study.annotate(trial, {"host": "n1", "gpus": [0]})
    study.trials[0].attributes["host"] = "n2"
    study.trials[0].attributes["gpus"].append(1)
    assert study.trials[0].attributes == {"host": "n1", "gpus": [0]}


def test_a_row_of_a_frame_is_one_configuration():
    study = Study(PLANE)
    study.add(pd.DataFrame({"x": [0.1, 0.2], "y": [1.0, 2.0]}).iloc[1], 3.0)
    assert study.trials[0].params == {"x": 0.2, "y": 2.0}


@pytest.mark.parametrize("value", [np.complex128(1 + 2j), np.array(1 + 2j), 1j])
def test_complex_values_are_refused(value):
    study = Study(LINE)
    (trial,) = study.ask()
    with pytest.raises(ValueTypeError):
        study.tell(trial, value)


@pytest.mark.parametrize("name", ["a\0b", "a" * 300])
@pytest.mark.parametrize("if_exists", ["error", "load"])
def test_a_path_that_no_file_has_is_refused(tmp_path, name, if_exists):
    with pytest.raises(JournalError, match="Name another file"):
        Study(LINE, journal=tmp_path / name, if_exists=if_exists)


def test_an_executor_that_was_shut_down_is_named(tmp_path):
    threads = ThreadPoolExecutor(1)
    threads.shutdown()
    with pytest.raises(EvaluatorError, match="ThreadPoolExecutor takes no more trials"):
        minimize(ExecutorEvaluator(lambda params: params["x"], threads), LINE, 3)


@pytest.mark.parametrize("size", [1, 10, 60])
@pytest.mark.parametrize("if_exists", ["error", "load"])
def test_half_a_first_line_is_no_run(tmp_path, size, if_exists):
    Study(LINE, journal=tmp_path / "whole.jsonl").close()
    (tmp_path / "run.jsonl").write_bytes((tmp_path / "whole.jsonl").read_bytes()[:size])
    with pytest.raises(JournalError, match="first line is missing, or torn"):
        Study.load(tmp_path / "run.jsonl")
    study = Study(LINE, journal=tmp_path / "run.jsonl", if_exists=if_exists)
    study.ask()
    study.close()
    assert len(Study.load(tmp_path / "run.jsonl").trials) == 1


# --- ranks -----------------------------------------------------------------------------------------------------------

CONFIG = """
problem:
  class_path: deepbore.problems.FunctionProblem
  init_args: {function: mine.objective, space: {x: {type: real, low: -1, high: 1}}}
loop: {n_trials: 12}
"""
OBJECTIVE = """
import time

def objective(params):
    return (params["x"] - 0.3) ** 2

def slow(params):
    time.sleep(0.5)
    return objective(params)
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "mine.py").write_text(OBJECTIVE)
    (tmp_path / "mine.yaml").write_text(CONFIG)
    return tmp_path


def on_two_ranks(launcher, folder, *args):
    """A command of `deepbore` on two ranks, in a folder; its whole output if it fails."""
    done = on_ranks_of(launcher, folder, *args, "--trainer.devices", "2", "--trainer.strategy", "ddp")
    assert done.returncode == 0, done.stdout + done.stderr
    return done


def test_other_ranks_have_the_run_of_the_first(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RANK", "1")
    monkeypatch.delenv("DEEPBORE_RUN", raising=False)
    with pytest.raises(SettingError, match="name its directory by --run"):
        new_run("branin")
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("DEEPBORE_RUN", "of another run, before")
    first = new_run("branin")
    monkeypatch.setenv("RANK", "1")
    assert new_run("branin") == first.absolute()


@pytest.mark.slow
def test_results_that_a_run_has_already_are_not_added_twice(folder):
    (folder / "earlier.csv").write_text("x,value\n0.5,0.04\n-0.5,0.64\n0.7,\n")
    done = command("fit", "--config", "mine.yaml", "--run", "run", cwd=folder)
    assert done.returncode == 0, done.stderr
    before = (folder / "run" / "config.yaml").read_text()
    for _ in range(2):  # as if it had died when it had added them, and before it could note that
        (folder / "run" / "config.yaml").write_text(before)
        done = command("fit", "--resume", "run", "--warm_start", "earlier.csv", cwd=folder)
        assert done.returncode == 0, done.stderr
    assert len(Study.load(folder / "run" / "journal.jsonl").trials) == 15


@pytest.mark.slow
def test_ranks_of_torchrun_take_in_earlier_results_once(folder):
    (folder / "earlier.csv").write_text("x,value\n" + "".join(f"{k / 10},{(k / 10 - 0.3) ** 2}\n" for k in range(5)))
    done = command("fit", "--config", "mine.yaml", "--run", "run", cwd=folder)
    assert done.returncode == 0, done.stderr
    on_two_ranks("torchrun", folder, "fit", "--resume", "run", "--warm_start", "earlier.csv", "--loop.n_trials", "16")
    study = Study.load(folder / "run" / "journal.jsonl")
    assert (len(study.trials), study.observations.n_asked) == (21, 16)


@pytest.mark.slow
def test_ranks_keep_all_of_a_run_in_one_place_and_its_time(folder):
    problem = ["--problem.init_args.function", "mine.slow", "--loop.batch_size", "40", "--loop.n_trials", "60"]
    on_two_ranks("lightning", folder, "fit", "--config", "mine.yaml", *problem, "--loop.timeout", "2")
    (run,) = (folder / "runs").iterdir()
    study = Study.load(run / "journal.jsonl")
    told = study.observations.n_complete
    assert 2 <= told < 20
    assert len((run / "journal.jsonl.times").read_text().splitlines()) == told


# --- a run that is interrupted ---------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_study_goes_on_where_it_was_interrupted_as_one_that_is_loaded(tmp_path, monkeypatch):
    propose, interrupts = Engine.propose, iter([True])

    def interrupted(self, q):
        points = propose(self, q)
        if len(self.state.observations) == 10 and next(interrupts, False):
            raise KeyboardInterrupt
        return points

    def settings():
        return {"seed": 0, "n_initial": 6, "classifier": DeepEnsemble(training=Training(steps=5))}

    whole = Study(PLANE, **settings())
    whole.optimize(bowl, 14)
    study = Study(PLANE, **settings())
    monkeypatch.setattr(Engine, "propose", interrupted)
    with pytest.raises(KeyboardInterrupt):
        study.optimize(bowl, 14)
    study.optimize(bowl, 14 - len(study.trials))
    assert [trial.params for trial in study.trials] == [trial.params for trial in whole.trials]
