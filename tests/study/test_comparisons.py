"""Studies of preferences: what comparisons make of them, and what they refuse."""

import json
import os
import sys
import time

import numpy as np
import pytest

import forked
from comparing import compared, cost
from deepbore import Budget, Outcome, PreferenceLabels, Study
from deepbore.data.outcome import Status
from deepbore.data.replay import read_record
from deepbore.errors import JournalError, SettingError, TrialError, ValueTypeError
from deepbore.labels import RankGradedLabels
from plane import LINE, SQUARE
from processes import ROOT

TESTS = ROOT / "tests"


@pytest.mark.slow
def test_a_study_finds_what_is_preferred_as_no_random_search_does():
    found = [cost(compared(Study(SQUARE, seed=seed, preferences=True), 20).best_trial) for seed in range(3)]
    assert np.median(found) < 0.01  # the best of 22 uniform points has 1 / (22 pi), 0.014, on average


def test_a_trial_is_complete_with_its_first_comparison_and_its_value_is_its_utility():
    study = Study(SQUARE, preferences=True)
    one, other, third = study.ask(3)
    study.prefer(one, other.id)
    assert [trial.status.name for trial in study.trials] == ["COMPLETE", "COMPLETE", "PENDING"]
    study.prefer(other, third)
    study.tell(study.ask()[0], failed=True)
    values = [trial.value for trial in study.trials]
    assert values[0] > values[1] > values[2]
    assert study.best_trial == study.trials[0]
    assert study.to_frame()["value"].tolist()[:3] == values[:3]
    assert study.observations.preferences == ((0, 1), (1, 2))
    assert study.observations.ledger.statistics.n_complete == 3


@pytest.mark.slow
def test_a_run_that_was_interrupted_goes_on_bit_for_bit(tmp_path):
    whole = compared(Study(SQUARE, seed=3, n_initial=4, preferences=True), 9)
    study = compared(Study(SQUARE, seed=3, n_initial=4, preferences=True, journal=tmp_path / "run.jsonl"), 5)
    record, before = read_record(tmp_path / "run.jsonl"), study.trials
    study.close()
    loaded = Study.load(tmp_path / "run.jsonl")
    assert loaded.trials == before
    assert [(trial.value, trial.status) for trial in record.trials] == [(t.value, t.status) for t in before]
    assert record.best == loaded.best_trial
    assert compared(loaded, 4).trials == whole.trials
    loaded.close()
    again = Study(SQUARE, seed=3, n_initial=4, preferences=True, journal=tmp_path / "run.jsonl", if_exists="load")
    assert len(again.observations.preferences) == 10


DRIVER = """
import sys, time, warnings
from deepbore import Study
from deepbore.data.observations import Status
from comparing import compare
from plane import SQUARE

warnings.simplefilter("ignore")
study = Study(SQUARE, seed=3, n_initial=4, preferences=True, journal=sys.argv[1], if_exists="load")
while len(study.observations.preferences) < 12:
    asked = [trial for trial in study.trials if trial.status is Status.PENDING]
    one, other = [*(asked or study.ask(1 if study.best_trial else 2)), study.best_trial][:2]
    compare(study, one, other)
    time.sleep(0.02)
"""


def drive(journal):
    """A process of its own that asks and compares."""
    paths = os.pathsep.join([str(TESTS), str(TESTS.parent), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-c", DRIVER, str(journal)]
    return forked.Popen(command, env={**os.environ, "PYTHONPATH": paths})


def lines(journal):
    """Its events, without the run's own id, and the checksums that depend on it."""
    return [json.loads(line) | {"crc": None} for line in journal.read_text().splitlines()[1:]]


@pytest.mark.slow
def test_a_run_that_was_killed_goes_on_bit_for_bit(tmp_path):
    whole, killed = tmp_path / "whole.jsonl", tmp_path / "killed.jsonl"
    assert drive(whole).wait(timeout=300) == 0
    for least in (7, 17):
        process = drive(killed)
        while process.poll() is None and not (killed.exists() and killed.read_text().count("\n") > least):
            time.sleep(0.01)
        process.kill()
        process.wait()
    assert drive(killed).wait(timeout=300) == 0
    assert lines(killed) == lines(whole)


def test_another_run_is_told_from_it(tmp_path):
    Study(SQUARE, preferences=True, journal=tmp_path / "run.jsonl").close()
    with pytest.raises(JournalError, match="preferences is False, was True"):
        Study(SQUARE, journal=tmp_path / "run.jsonl", if_exists="load")


def test_a_journal_in_which_a_failed_trial_is_compared_is_refused(tmp_path):
    study = Study(SQUARE, preferences=True, journal=tmp_path / "run.jsonl")
    study.tell(study.ask(3)[2], failed=True)
    study.observations.journal.write({"event": "preferred", "better": 0, "worse": 2})
    study.close()
    for read in (Study.load, read_record):
        with pytest.raises(JournalError, match="trial 2 has"):
            read(tmp_path / "run.jsonl")


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (lambda study: study.tell(0, 1.0), ValueTypeError, r"prefer\(better, worse\)"),
        (lambda study: study.add({"x": 0.1, "y": 0.2}, 1.0), ValueTypeError, "earlier results were added"),
        (lambda study: study.optimize(lambda params: 0.0, 3), SettingError, "ask and prefer"),
        (lambda study: study.prefer(0, 0), TrialError, "trial 0 twice"),
        (lambda study: study.prefer(0, 7), TrialError, "got 7"),
        (lambda study: (study.tell(1, failed=True), study.prefer(0, 1)), TrialError, "trial 1 has"),
    ],
)
def test_values_and_preferences_are_not_mixed(call, error, says):
    study = Study(SQUARE, preferences=True)
    study.ask(2)
    with pytest.raises(error, match=says):
        call(study)
    assert not study.observations.preferences


def test_preferences_need_a_study_of_them():
    study = Study(SQUARE)
    study.ask(2)
    with pytest.raises(SettingError, match="preferences=True"):
        study.prefer(0, 1)
    with pytest.raises(SettingError, match="preferences=True"):
        Study(SQUARE, labels=PreferenceLabels())
    with pytest.raises(SettingError, match="have no directions"):
        Study(SQUARE, direction="minimize", preferences=True)
    with pytest.raises(SettingError, match="no budgets"):
        Study(SQUARE, budget=Budget("epochs", 1, 9), preferences=True)


def test_labels_that_are_given_stay():
    labels = PreferenceLabels(RankGradedLabels())
    assert Study(SQUARE, preferences=True, labels=labels).state.recipe.labels is labels


def statuses(study):
    return [trial.status for trial in study.trials]


# regression: this was wrong once
@pytest.mark.parametrize("given", [{"constraints": [1.0]}, {"noise": 0.1}])
def test_a_study_of_preferences_is_told_no_constraints_or_noise_even_of_a_failure(tmp_path, given):
    study = Study(LINE, preferences=True, journal=tmp_path / "run.jsonl")
    (trial,) = study.ask()
    with pytest.raises(ValueTypeError, match="in a study of preferences"):
        study.tell(trial, Outcome(float("nan"), **given))
    assert statuses(study) == [Status.PENDING]
    study.observations.journal.write({"event": "failed", "trial": 0, **given})  # as an earlier version did
    study.close()
    for read in (Study.load, read_record):
        with pytest.raises(JournalError, match="in a study of preferences"):
            read(tmp_path / "run.jsonl")
