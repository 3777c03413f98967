"""What is kept, drawn and printed of a run: defects that reading the code has found."""

import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import deepbore as db
from deepbore.data.array_ranking import best_and_tau, threshold
from deepbore.data.observations import Observations
from deepbore.data.ranking import best_among
from deepbore.data.replay import read_record
from deepbore.labels import preferences
from deepbore.plots import history, report
from deepbore.plots.held_out import held_out
from deepbore.plots.html_report import record_of
from deepbore.plots.optimization_history import gamma_of
from deepbore.plots.page.charts import axis_of
from deepbore.plots.page.parallel_chart import _good
from deepbore.plots.parallel_plot import _heights
from deepbore.plots.predictions import is_good, judged_rows
from deepbore.plots.value_axis import ValueAxis
from test_found_by_reading import SQUARE, told, with_a_task

# --- records and pictures --------------------------------------------------------------------------------------------


def test_a_record_has_later_notes_of_the_trial_that_goes_on(tmp_path):
    path = tmp_path / "run.jsonl"
    space = db.SearchSpace({"x": db.Real(0, 1)})
    study = db.Study(space, budget=db.Budget("epochs", 1, 9), n_initial=3, journal=path)
    for trial in study.ask(3):
        study.tell(trial, trial.id)
    (promoted,) = study.ask()
    study.annotate(promoted.resume_from, {"host": "n7"})
    study.close()
    assert read_record(Path(path)).trials[3].resume_from.attributes == {"host": "n7"}


def test_no_threshold_of_values_of_all_budgets_is_drawn(tmp_path):
    path = tmp_path / "run.jsonl"
    study = db.Study(db.SearchSpace({"x": db.Real(0, 1)}), budget=db.Budget("epochs", 1, 9), n_initial=3, journal=path)
    told(study, 6, lambda params: params["x"])
    for run in (study, read_record(path)):
        assert not [line for line in history(run).axes[0].lines if str(line.get_label()).startswith("tau")]


@pytest.mark.slow
def test_a_prediction_is_judged_by_trials_of_the_largest_budget():
    study = db.Study(db.SearchSpace({"x": db.Real(0, 1)}), budget=db.Budget("epochs", 1, 9), n_initial=9, seed=0)
    while int((study.observations.budgets == 9).sum()) < 4:
        (trial,) = study.ask()
        study.tell(trial, (trial.params["x"] - 0.3) ** 2 + 1 / trial.budget)
    rows = judged_rows(study.observations, 100)
    assert (study.observations.budgets[rows] == 9).all()
    said = held_out(study, folds=2, epochs=1)
    assert set(np.flatnonzero(~np.isnan(said))) <= set(rows.tolist())


def test_trials_of_earlier_tasks_are_not_judged():
    study = told(with_a_task(db.Study(SQUARE, seed=0, n_initial=4)), 10)
    assert judged_rows(study.observations, 100).tolist() == list(range(8, 18))
    assert np.isnan(held_out(study, folds=2, epochs=1)[:8]).all()


@pytest.mark.parametrize("n", [7, 2000, 4321])
def test_tau_is_drawn_of_many_values_at_no_more_than_a_picture_shows(n):
    values = np.random.default_rng(0).normal(size=n)
    values[3] = math.nan
    best, taus = best_and_tau(values, 0.5)
    assert taus[-1] == threshold(np.sort(values[~np.isnan(values)]), 0.5)
    assert best[-1] == np.nanmin(values)
    exact = [threshold(np.sort(values[: k + 1][~np.isnan(values[: k + 1])]), 0.5) for k in range(n)]
    assert n > 2000 or taus.tolist() == exact
    assert np.abs(taus - exact)[min(n, 100) - 1 :].max() < 0.1


@pytest.mark.parametrize(("low", "high", "every"), [(1e-3, 10, 1), (1e-12, 1, 2), (2, 30, None)])
def test_a_logarithmic_axis_has_powers_of_ten_where_there_are_several(low, high, every):
    assert axis_of(ValueAxis(low, high, True, False), "value").get("dtick") == every


def test_observations_of_a_part_know_their_best():
    observations = Observations(SQUARE)
    observations.add({"x": [0.1, 0.2, 0.3], "y": [0.0, 0.0, 0.0]}, [3.0, 1.0, 2.0])
    assert observations.part(torch.tensor([0, 2])).best.value == 2.0


# --- runs with budgets, as they are shown ----------------------------------------------------------------------------


@pytest.fixture
def by_budget(tmp_path):
    """A run whose cheapest trials have the best values, and its journal."""
    path = tmp_path / "journal.jsonl"
    study = db.Study(SQUARE, budget=db.Budget("epochs", 1, 9), journal=path, seed=0)
    x = [0.1, 0.2, 0.3, 0.4, 0.5]
    study.add({"x": x, "y": x}, [0.1, 0.5, 0.6, 0.3, 0.4], budgets=[1, 1, 1, 9, 9])
    study.fit()
    return study, read_record(path)


def test_the_record_of_a_study_is_that_of_its_journal(by_budget):
    study, record = by_budget
    made = record_of(study)
    assert made.best.id == record.best.id == study.best_trial.id == 3
    assert made.header == {name: value for name, value in record.header.items() if name in made.header}
    assert "0.3 in trial 3" in report(study)


def test_the_best_so_far_is_at_the_largest_budget(by_budget):
    study, record = by_budget
    curve = [0.1, 0.1, 0.1, 0.3, 0.3]
    assert best_among(record.trials, "minimize", has_budget=True).tolist() == curve
    for run in (study, record):
        (line,) = (each for each in history(run).axes[0].lines if each.get_label() == "best so far")
        assert line.get_ydata().tolist() == curve


def test_no_tau_of_utilities_is_drawn_over_values(tmp_path):
    path = tmp_path / "journal.jsonl"
    study = db.Study(SQUARE, preferences=True, journal=path, seed=0)
    for _ in range(4):
        one, other = study.ask(2)
        study.prefer(one, other)
    study.fit()
    labels = study.labels(study.observations)
    assert labels.metrics == {}
    assert is_good(study, labels).sum() == (labels.z[:, 0] > 0).sum() > 0
    assert gamma_of(read_record(path).header) is None


def test_forgotten_comparisons_leave_positive_weights(monkeypatch):
    monkeypatch.setattr(preferences, "LATEST", 1)
    study = db.Study(SQUARE, preferences=True, seed=0)
    for _ in range(2):
        one, other = study.ask(2)
        study.prefer(one, other)
    weight = study.labels(study.observations).weight
    assert (weight > 0).all()
    assert weight[:2].max() < 1e-3


# --- what a program prints -------------------------------------------------------------------------------------------

PROGRAM = """
import deepbore as db
space = db.SearchSpace({"x": db.Real(0, 1), "y": db.Real(0, 1)})
study = db.Study(space, n_initial=3, seed=0, SETTINGS)
for _ in range(6):
    (trial,) = study.ask()
    study.tell(trial, VALUE)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("settings", "value"),
    [
        ("directions=['minimize'] * 2", "[trial.params['x'], trial.params['y'] - trial.params['x']]"),
        ("classifier=db.KernelPLS()", "trial.params['x']"),
        ("classifier=db.GPClassifier(), candidates=db.MultiStartLBFGS()", "trial.params['x']"),
        ("classifier=db.KernelPLS(), acquisition=db.UpperConfidenceBound(), candidates=db.BoTorchBatch()", "trial.id"),
    ],
)
def test_a_study_warns_of_nothing_that_its_user_cannot_mend(settings, value):
    program = PROGRAM.replace("SETTINGS", settings).replace("VALUE", value)
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True, timeout=300)
    assert "Warning" not in done.stderr


@pytest.mark.slow
def test_what_is_said_of_unseen_trials_knows_crashes_by_chance():
    study, chance = db.Study(SQUARE, seed=0), np.random.default_rng(0)
    for _ in range(40):
        (trial,) = study.ask()
        value = sum((x - 0.3) ** 2 for x in trial.params.values())
        study.tell(trial, None if (failed := chance.random() < 0.25) else value, failed=failed)
    values = np.array([math.inf if trial.value is None else trial.value for trial in study.trials])
    assert held_out(study)[values < 1e-3].mean() > 0.8


def test_fixed_parameters_stay_on_their_axes():
    space = db.SearchSpace({"x": db.Real(0, 1), "c": db.Categorical(["a", "b", "c", "d"])})
    for fixed in ("a", "b"):
        study = db.Study(space, seed=0)
        told(study, 8, lambda params: params["x"])
        study.fix({"c": fixed})
        heights = _heights(study, ["x", "c"], torch.arange(8))
        assert np.isfinite(heights).all()
        assert ((heights > -0.1) & (heights < 1.1)).all()


def test_infeasible_values_beyond_a_log_axis_are_no_failures(tmp_path):
    study = db.Study(db.SearchSpace({"x": db.Real(0, 1)}), journal=tmp_path / "run.jsonl")
    for trial, value in zip(study.ask(5), [-1.0, 1.0, 10.0, 100.0, 1000.0], strict=True):
        study.tell(trial, value, constraints=[-value])
    study.close()
    record = read_record(tmp_path / "run.jsonl")
    good = _good(record, record.trials)
    assert (np.diff(good) < 0).all()  # none is NaN, which a failure is
