"""Cheap fidelities in whole runs: through every door, and after an end."""

import json
import math
import os
import shutil
import signal
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch

import deepbore
import forked
from deepbore import AtBudgets, Budget, ExecutorEvaluator, KernelPLS, Outcome, Study
from deepbore.cli.main import main
from deepbore.data.observations import Status
from deepbore.data.replay import read_record
from deepbore.errors import SettingError, StudyRunning, TrialError, ValueTypeError
from deepbore.labels import EmphasiseChanges, RungLabels, ThresholdLabels, ValueGradedLabels
from plane import LINE
from rungs import EPOCHS, loss, run

# --- doors -----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_objectives_of_optimize_are_given_the_trial(tmp_path):
    kept = {}

    def train(params, trial):
        done = kept.pop(trial.resume_from.id) if trial.resume_from else 0
        kept[trial.id] = trial.budget
        assert done in (0, trial.budget / 3)
        return Outcome(loss(params, trial), attributes={"epochs": trial.budget - done})

    result = deepbore.minimize(train, LINE, 40, budget=EPOCHS, seed=0, journal=tmp_path / "run.jsonl")
    trials = result.study.trials
    assert all(trial.status is Status.COMPLETE for trial in trials)
    assert result.best_value == min(trial.value for trial in trials if trial.budget == 27)
    spent = sum(trial.attributes["epochs"] for trial in trials)
    assert spent == sum(t.budget - (t.resume_from.budget if t.resume_from else 0) for t in trials)


@pytest.mark.slow
@pytest.mark.parametrize("batch_size", [1, 3])
def test_workers_and_batches(batch_size):
    with ThreadPoolExecutor(3) as threads:
        evaluator = ExecutorEvaluator(loss, threads)
        result = deepbore.minimize(evaluator, LINE, 45, budget=EPOCHS, batch_size=batch_size)
    trials = result.study.trials
    assert len(trials) == 45
    assert len({(trial.params["x"], trial.budget) for trial in trials}) == 45
    assert all(t.resume_from is None or t.resume_from.budget * 3 == t.budget for t in trials)
    assert max(trial.budget for trial in trials) >= 9


def test_reports_stop_and_promote_a_running_trial():
    study = Study(LINE, budget=EPOCHS)
    ends = []
    for number in range(9):
        (trial,) = study.ask()
        epoch = 1
        while study.report(trial, 1 / (number + 1) + 1 / epoch, step=epoch):  # each better than the one before
            epoch += 1
        ends.append(epoch)
    assert ends == [1, 1, 3, 3, 9, 9, 27, 27, 27]
    assert not len(study.observations.columns.pending_rows)
    with pytest.raises(TrialError, match="ended reports nothing"):
        study.report(trial, 0.1, step=28)


def test_a_report_that_is_no_number_ends_the_trial():
    study = Study(LINE, budget=EPOCHS)
    (trial,) = study.ask()
    assert not study.report(trial, math.nan, step=0.5)
    assert study.trials[0].status is Status.FAILED


def test_in_a_run_a_trial_that_reports_ends_at_its_budget_and_comes_again():
    study = Study(LINE, budget=EPOCHS)

    def reporting(params, trial):
        with pytest.raises(StudyRunning):
            study.report(trial.id, 1.0, step=1)
        epoch = 1
        while study.report(trial, 1.0 + trial.id, step=epoch):
            epoch += 1
        assert epoch == trial.budget
        return 1.0 + trial.id

    assert study.optimize(reporting, 4).best_value == 4.0
    assert [trial.budget for trial in study.trials] == [1, 1, 1, 3]


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"budget": 81}, "budget must be a Budget"),
        ({"directions": ["minimize", "minimize"]}, "one objective"),
        ({"labels": EmphasiseChanges(ThresholdLabels())}, "have no state"),
    ],
)
def test_what_does_not_go_with_budgets_is_refused(tmp_path, settings, says):
    journal = tmp_path / "run.jsonl"
    with pytest.raises(SettingError, match=says):
        Study(LINE, journal=journal, **{"budget": EPOCHS} | settings)
    assert not journal.exists()


def test_outcomes_and_results_of_other_budgets_are_refused():
    study = Study(LINE, budget=EPOCHS)
    (trial,) = study.ask()
    with pytest.raises(ValueTypeError, match="has a budget of 1 epochs, but its outcome is of 12"):
        study.tell(trial, Outcome(1.0, budget=12))
    with pytest.raises(SettingError, match="one of 1, 3, 9, 27 epochs, but got 5"):
        study.observations.add({"x": 0.5}, 1.0, budgets=5)
    with pytest.raises(SettingError, match="earlier tasks do not combine with budgets"):
        study.add({"x": 0.5}, 1.0, task="last year")


@pytest.mark.slow
def test_a_run_by_configuration(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("job.yaml").write_text(
        """
problem:
  class_path: deepbore.problems.LearningCurves
  init_args: {name: digits}
loop:
  n_trials: 25
  budget: {unit: epochs, low: 1, high: 81}
"""
    )
    assert main(["fit", "--config", "job.yaml", "--run", "run"]) == 0
    record = read_record(Path("run/journal.jsonl"))
    assert record.budget == Budget("epochs", 1, 81)
    assert {trial.budget for trial in record.trials} >= {1, 3, 9}
    assert main(["fit", "--resume", "run", "--loop.n_trials", "27"]) == 0
    assert len(read_record(Path("run/journal.jsonl"))) == 27


# --- a run goes on ---------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_loaded_study_goes_on_bit_for_bit(tmp_path):
    whole = Study(LINE, seed=3, budget=EPOCHS, n_initial=5, journal=tmp_path / "whole.jsonl")
    part = Study(LINE, seed=3, budget=EPOCHS, n_initial=5, journal=tmp_path / "part.jsonl")
    run(whole, 36)
    for n in (7, 1, 10, 1, 1, 16):
        run(part, n)
        part.close()
        part = Study.load(tmp_path / "part.jsonl")
    assert torch.equal(part.observations.points, whole.observations.points)
    assert torch.equal(part.observations.budgets, whole.observations.budgets)
    assert part.trials == whole.trials
    assert part.observations.budget == EPOCHS


@pytest.mark.parametrize("lost", [1, 2])
def test_what_the_journal_does_not_have_is_asked_again(tmp_path, lost):
    """The process dies between the snapshot and the journal, which is then some lines behind."""
    study = run(Study(LINE, seed=0, budget=EPOCHS, n_initial=3, journal=tmp_path / "run.jsonl"), 3)
    study.ask(2)  # a promotion, and a new configuration
    expected = [(trial.params, trial.budget) for trial in study.trials]
    study.close()
    folder = tmp_path / "killed"
    folder.mkdir()
    lines = (tmp_path / "run.jsonl").read_bytes().splitlines(keepends=True)
    (folder / "run.jsonl").write_bytes(b"".join(lines[:-lost]))
    if lost == 1:
        shutil.copy(tmp_path / "run.jsonl.ckpt", folder)
    else:  # the snapshot that came before the promotion
        again = run(Study(LINE, seed=0, budget=EPOCHS, n_initial=3, journal=tmp_path / "again.jsonl"), 3)
        again.ask(1)
        again.close()
        lines = (tmp_path / "again.jsonl").read_bytes().splitlines(keepends=True)
        (folder / "run.jsonl").write_bytes(b"".join(lines[:-1]))
        shutil.copy(tmp_path / "again.jsonl.ckpt", folder / "run.jsonl.ckpt")
    loaded = Study.load(folder / "run.jsonl")
    loaded.ask(lost)
    assert [(trial.params, trial.budget) for trial in loaded.trials] == expected


@pytest.mark.parametrize("lost", [1, 2])
def test_promotions_that_were_chosen_together_stay_together(tmp_path, lost):
    """Whatever comes of the first of them after an end, the others are still the next."""

    def promoted(journal):
        study = Study(LINE, seed=0, budget=EPOCHS, n_initial=9, journal=journal)
        for trial in study.ask(9):
            study.tell(trial, trial.params["x"])
        return study, study.ask(3)  # the best third

    study, chosen = promoted(tmp_path / "whole.jsonl")
    assert {trial.budget for trial in chosen} == {3}
    study.close()
    journal = tmp_path / "whole.jsonl"
    journal.write_bytes(b"".join(journal.read_bytes().splitlines(keepends=True)[:-lost]))
    loaded = Study.load(journal)
    for trial in loaded.trials[9:]:
        loaded.tell(trial, 100.0)
    loaded.add({"x": [0.9] * 9}, [-float(k) for k in range(9)], budgets=1)  # nine that are better, and unheard of
    again = [*loaded.trials[9 : 12 - lost], *loaded.ask(lost)]
    assert [(t.params, t.budget, t.resume_from.id) for t in again] == [
        (t.params, t.budget, t.resume_from.id) for t in chosen
    ]


def test_another_budget_is_another_run(tmp_path):
    journal = tmp_path / "run.jsonl"
    Study(LINE, budget=EPOCHS, journal=journal).close()
    with pytest.raises(deepbore.errors.JournalError, match="budget is None, was Budget"):
        Study(LINE, journal=journal, if_exists="load")
    assert json.loads(journal.read_text().splitlines()[0])["budget"] == {
        "unit": "epochs",
        "low": 1,
        "high": 27,
        "factor": 3,
    }


PROGRAM = """
import sys, time
from deepbore import Budget, Real, SearchSpace, minimize

def loss(params, trial):
    time.sleep(0.02)
    return (params["x"] - 0.3 - 0.05 / trial.budget) ** 2 + 1 / trial.budget

minimize(loss, SearchSpace({"x": Real(0, 1)}), 60, budget=Budget("epochs", 1, 27), seed=5,
         journal=sys.argv[1], if_exists="load", n_initial=5)
"""


@pytest.mark.slow
def test_a_killed_run_goes_on_with_the_same_trials(tmp_path):
    program, journal = tmp_path / "program.py", tmp_path / "killed.jsonl"
    program.write_text(PROGRAM)
    environment = os.environ | {"PYTHONPATH": str(Path(deepbore.__file__).parents[1])}
    for lines in (12, 40, 75):
        process = forked.Popen([sys.executable, program, journal], env=environment)
        while process.poll() is None and (not journal.exists() or len(journal.read_bytes().splitlines()) < lines):
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        process.wait()
    forked.run([sys.executable, program, journal], env=environment, check=True)
    whole = deepbore.minimize(loss, LINE, 60, budget=EPOCHS, seed=5, n_initial=5).study
    assert Study.load(journal).trials == whole.trials


def test_a_classifier_of_another_budget_is_refused():
    other = AtBudgets(KernelPLS(), Budget("epochs", 1, 9))
    with pytest.raises(SettingError, match=r"the classifier is of Budget.*high=9.*Give the classifier alone"):
        Study(LINE, budget=Budget("epochs", 1, 81), classifier=other)


def test_labels_of_rungs_may_be_within_others():
    labels = EmphasiseChanges(RungLabels(ValueGradedLabels()))
    study = Study(LINE, budget=EPOCHS, labels=labels)
    assert study.state.recipe.labels is labels


@pytest.mark.slow
def test_no_forecast_of_the_highest_budget_is_held_against_a_label_of_the_lowest():
    study = run(Study(LINE, budget=EPOCHS, n_initial=5), 12)
    study.optimize(lambda params, trial: params["x"] / trial.budget, 15)
    assert "brier_score" not in (study._state.metrics.known if study._state.metrics else {})
