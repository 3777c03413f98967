"""Preferences: utilities of comparisons against oracles, what a study makes of them, and what it refuses."""

import itertools
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import choix
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.optimize import minimize

from deepbore import Budget, Categorical, PreferenceLabels, RandomForest, Real, SearchSpace, Study
from deepbore.data.comparisons import SCALE, fitted_utilities
from deepbore.data.replay import read_record
from deepbore.errors import JournalError, SettingError, TrialError, ValueTypeError
from deepbore.labels import RankGradedLabels

TESTS = Path(__file__).parent
PLANE = SearchSpace({"x": Real(0, 1), "y": Real(0, 1)})
comparisons = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)).filter(lambda pair: pair[0] != pair[1]))


def cost(trial):
    return (trial.params["x"] - 0.3) ** 2 + (trial.params["y"] - 0.6) ** 2


def compare(study, one, other):
    study.prefer(*sorted((one, other), key=cost))


def compared(study, n):
    """The study after n more comparisons of a new trial with the best one."""
    if study.best_trial is None:
        compare(study, *study.ask(2))
    for _ in range(n):
        compare(study, *study.ask(), study.best_trial)
    return study


# --- utilities -------------------------------------------------------------------------------------------------------


@given(comparisons)
@settings(max_examples=40)
def test_utilities_are_those_of_choix(pairs):
    found = fitted_utilities(6, np.array(pairs, dtype=int).reshape(-1, 2))
    expected = choix.opt_pairwise(6, pairs, alpha=1 / (2 * SCALE**2), tol=1e-12)
    assert np.allclose(found, expected, atol=1e-5)


def test_without_a_prior_they_tend_to_the_maximum_of_the_likelihood():
    pairs = [*itertools.permutations(range(4), 2), (0, 1), (1, 2), (2, 3), (0, 1)]
    found = fitted_utilities(4, np.array(pairs), root=1e4 * np.eye(4))
    assert np.allclose(found, choix.ilsr_pairwise(4, pairs), atol=1e-4)


def test_correlated_ones_are_the_most_likely_by_brute_force():
    rng = np.random.default_rng(0)
    root = rng.normal(size=(5, 5))
    precision = np.linalg.inv(root @ root.T)
    pairs = np.array([(0, 1), (2, 1), (1, 0), (3, 4), (3, 0)])

    def negative_log_posterior(u):
        return np.log1p(np.exp(u[pairs[:, 1]] - u[pairs[:, 0]])).sum() + u @ precision @ u / 2

    brute = minimize(negative_log_posterior, np.zeros(5), method="Nelder-Mead", options={"maxiter": 20_000})
    brute = minimize(negative_log_posterior, brute.x, tol=1e-12)
    assert np.allclose(fitted_utilities(5, pairs, root), brute.x, atol=1e-4)


def test_what_is_told_apart_by_nothing_is_equal_to_the_last_bit():
    utilities = fitted_utilities(6, np.array([(0, 1), (2, 3), (4, 5)]))
    assert utilities[0] == utilities[2] == utilities[4] == -utilities[1]
    assert not fitted_utilities(2, np.array([(0, 1), (1, 0)])).any()


# --- a study ---------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_study_finds_what_is_preferred_as_no_random_search_does():
    found = [cost(compared(Study(PLANE, seed=seed, preferences=True), 20).best_trial) for seed in range(3)]
    assert np.median(found) < 0.01  # the best of 22 uniform points has 1 / (22 pi), 0.014, on average


def test_a_trial_is_complete_with_its_first_comparison_and_its_value_is_its_utility():
    study = Study(PLANE, preferences=True)
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
    assert study.observations.n_complete == 3


def test_contradictions_are_allowed_and_undo_one_another():
    study = Study(PLANE, preferences=True)
    one, other = study.ask(2)
    study.prefer(one, other)
    study.prefer(other, one)
    assert study.best_trial.value == study.trials[1].value == 0
    study.prefer(other, one)
    assert study.best_trial.id == other.id


def test_neighbours_have_similar_labels_though_only_pairs_were_compared():
    study = Study(SearchSpace({"x": Real(0, 1)}), preferences=True)
    for better, worse in [(0.9, 0.5), (0.52, 0.1)]:
        for x in (better, worse):
            study.enqueue({"x": x})
        study.prefer(*study.ask(2))
    z = PreferenceLabels()(study.observations).z[:, 0]
    assert z[0] > z[2] > z[3]  # the loser of one pair is next to the winner of the other
    assert abs(z[1] - z[2]) < abs(z[0] - z[3]) / 3
    assert len({trial.value for trial in study.trials}) == 2  # by the comparisons alone both pairs are alike


def test_what_has_failed_is_learned_from_and_what_is_pending_is_not():
    study = Study(PLANE, preferences=True)
    one, other, failed, _ = study.ask(4)
    study.prefer(one, other)
    study.tell(failed, failed=True)
    labels = PreferenceLabels()(study.observations)
    assert labels.weight.tolist() == pytest.approx([1, 1, 1, 0], abs=1e-3)
    assert labels.z[2:, 0].tolist() == [0, 0]


@pytest.mark.parametrize("parts", [dict, lambda: {"classifier": RandomForest(trees=10)}, lambda: {"gamma": 0.3}])
def test_every_head_learns_preferences(parts):
    study = compared(Study(PLANE, n_initial=4, preferences=True, **parts()), 5)
    assert isinstance(study.labels, PreferenceLabels)
    assert study.recommended is not None


def test_categories_too():
    study = Study(SearchSpace({"c": Categorical(["a", "b", "c", "d"])}), preferences=True)
    a, b, c, d = study.ask(4)
    study.prefer(a, b)
    study.prefer(c, d)
    study.prefer(c, a)
    assert study.best_trial.id == c.id == study.recommended.id


# --- journal ---------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_run_that_was_interrupted_goes_on_bit_for_bit(tmp_path):
    whole = compared(Study(PLANE, seed=3, n_initial=4, preferences=True), 9)
    study = compared(Study(PLANE, seed=3, n_initial=4, preferences=True, journal=tmp_path / "run.jsonl"), 5)
    record, before = read_record(tmp_path / "run.jsonl"), study.trials
    study.close()
    loaded = Study.load(tmp_path / "run.jsonl")
    assert loaded.trials == before
    assert [(trial.value, trial.status) for trial in record.trials] == [(t.value, t.status) for t in before]
    assert record.best == loaded.best_trial
    assert compared(loaded, 4).trials == whole.trials
    loaded.close()
    again = Study(PLANE, seed=3, n_initial=4, preferences=True, journal=tmp_path / "run.jsonl", if_exists="load")
    assert len(again.observations.preferences) == 10


DRIVER = """
import sys, time
from deepbore import Study
from deepbore.data.observations import Status
from test_preferences import PLANE, compare

study = Study(PLANE, seed=3, n_initial=4, preferences=True, journal=sys.argv[1], if_exists="load")
while len(study.observations.preferences) < 12:
    asked = [trial for trial in study.trials if trial.status is Status.PENDING]
    one, other = [*(asked or study.ask(1 if study.best_trial else 2)), study.best_trial][:2]
    compare(study, one, other)
    time.sleep(0.02)
"""


def drive(journal):
    """A process of its own that asks and compares."""
    paths = os.pathsep.join([str(TESTS), str(TESTS.parent), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-W", "ignore", "-c", DRIVER, str(journal)]
    return subprocess.Popen(command, env={**os.environ, "PYTHONPATH": paths})


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
    Study(PLANE, preferences=True, journal=tmp_path / "run.jsonl").close()
    with pytest.raises(JournalError, match="preferences is False, was True"):
        Study(PLANE, journal=tmp_path / "run.jsonl", if_exists="load")


def test_a_journal_in_which_a_failed_trial_is_compared_is_refused(tmp_path):
    study = Study(PLANE, preferences=True, journal=tmp_path / "run.jsonl")
    study.tell(study.ask(3)[2], failed=True)
    study.observations.journal.write({"event": "preferred", "better": 0, "worse": 2})
    study.close()
    for read in (Study.load, read_record):
        with pytest.raises(JournalError, match="trial 2 has"):
            read(tmp_path / "run.jsonl")


# --- what is refused -------------------------------------------------------------------------------------------------


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
    study = Study(PLANE, preferences=True)
    study.ask(2)
    with pytest.raises(error, match=says):
        call(study)
    assert not study.observations.preferences


def test_preferences_need_a_study_of_them():
    study = Study(PLANE)
    study.ask(2)
    with pytest.raises(SettingError, match="preferences=True"):
        study.prefer(0, 1)
    with pytest.raises(SettingError, match="preferences=True"):
        Study(PLANE, labels=PreferenceLabels())
    with pytest.raises(SettingError, match="have no directions"):
        Study(PLANE, direction="minimize", preferences=True)
    with pytest.raises(SettingError, match="no budgets"):
        Study(PLANE, budget=Budget("epochs", 1, 9), preferences=True)


def test_labels_that_are_given_stay():
    labels = PreferenceLabels(RankGradedLabels())
    assert Study(PLANE, preferences=True, labels=labels).labels is labels
