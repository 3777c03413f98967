"""Values in the user's units, and predictions of trials that the classifier has not seen."""

import math

import numpy as np
import pytest
import torch
from sklearn.isotonic import IsotonicRegression

import deepbore as db
from deepbore import MLPClassifier, RankGradedLabels, Study, ThresholdLabels
from deepbore.classifiers.posterior import PointEstimate
from deepbore.errors import SettingError
from deepbore.plots.predictions import (
    BY_CALIBRATION,
    BY_DEFINITION,
    Translation,
    anew,
    held_out,
    isotonic,
    judged_rows,
    labels_of,
    probability,
    values_of,
)
from drawn_studies import CUBE, NAN, Known
from pictured import told_at_random
from plane import SQUARE
from tried import tried, with_a_task


class Memory(Known):
    """Knows the labels of the points that it has learned by heart, and says a half elsewhere."""

    def __init__(self):
        super().__init__(None)
        self.known = {}

    def fit(self, batch):
        self.known = {tuple(x): float(z) for x, z in zip(batch.points.tolist(), batch.z.mean(-1), strict=True)}
        return {}

    def posterior(self, points):
        said = torch.tensor([self.known.get(tuple(x), 0.5) for x in points.tolist()], dtype=torch.float64)
        return PointEstimate(said, self.link, "Memory")


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
@pytest.mark.parametrize("labels", [None, RankGradedLabels()])
def test_graded_labels_are_led_back_to_the_values_that_they_were_made_of(direction, labels):
    study = told_at_random(CUBE, 40, direction=direction, labels=labels)
    found = Translation.of(study)
    assert found.says == BY_DEFINITION
    z, values = labels_of(study).z.mean(-1).numpy(), values_of(study)
    graded = z > z.min()  # beyond the last threshold of ranks values have one label
    assert found(z)[graded] == pytest.approx(values[graded])
    steps = np.diff(found(np.linspace(0, 1, 99)))
    assert (steps <= 0).all() if direction == "minimize" else (steps >= 0).all()


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_binary_labels_are_calibrated_on_unseen_trials(direction):
    study = told_at_random(
        CUBE, 60, direction=direction, labels=ThresholdLabels(), classifier=Known(lambda x: x.sum(-1) / 3)
    )
    assert Translation.of(study) is None
    values = values_of(study)
    unseen = (-values if direction == "minimize" else values) + 10.0  # whatever its scale
    found = Translation.of(study, unseen)
    assert found.says == BY_CALIBRATION
    assert found(unseen) == pytest.approx(values)
    shuffled = np.random.default_rng(0).permutation(unseen)  # it says nothing: all is expected to be in the middle
    assert np.std(Translation.of(study, shuffled)(shuffled)) < np.std(values) / 2


def test_failures_rank_last_in_a_calibration():
    values = [*np.linspace(0, 1, 20), *[NAN] * 10]
    study = told_at_random(CUBE, values, labels=ThresholdLabels())
    unseen = np.array([*np.linspace(1, 0.5, 20), *[0.1] * 10])
    assert Translation.of(study, unseen)(np.array([0.1, 1.0])) == pytest.approx([1.0, 0.0])


def test_isotonic_regression_is_that_of_scikit_learn():
    y = np.random.default_rng(0).normal(size=200) + np.linspace(0, 2, 200)
    assert isotonic(y) == pytest.approx(IsotonicRegression().fit_transform(np.arange(200), y))


def test_several_objectives_have_no_translation():
    study = Study(CUBE, directions=["minimize", "minimize"])
    for trial in study.ask(12):
        study.tell(trial, [trial.params["x0"], -trial.params["x0"]])
    study.fit(epochs=1)
    assert Translation.of(study) is None


def test_no_trial_is_predicted_by_a_classifier_that_has_seen_it():
    study = told_at_random(CUBE, 30, classifier=Memory())
    study.observations.reserve(CUBE.points.sample(2, torch.Generator().manual_seed(1)))
    found = held_out(study)
    assert found[:30].tolist() == [0.5] * 30
    assert np.isnan(found[30:]).all()  # pending


@pytest.mark.slow
def test_a_classifier_predicts_unseen_trials_of_a_smooth_function():
    study = told_at_random(CUBE, 60)
    found, z = held_out(study, epochs=2), labels_of(study).z.mean(-1).numpy()
    assert np.corrcoef(found, z)[0, 1] > 0.8
    assert held_out(study, epochs=2).tolist() == found.tolist()


def test_a_classifier_that_carries_weights_is_not_held_out():
    network = torch.nn.Linear(3, 1)
    with pytest.raises(SettingError, match="network of your own"):
        anew(Known(network))
    assert anew(MLPClassifier(hidden=(8,))).ready is False


def test_too_few_trials_are_not_held_out():
    with pytest.raises(SettingError, match="5 folds need 10 finished trials, but there are 3"):
        held_out(told_at_random(CUBE, 3))


# regression: each of these was wrong once
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
    study = tried(with_a_task(db.Study(SQUARE, seed=0, n_initial=4)), 10)
    assert judged_rows(study.observations, 100).tolist() == list(range(8, 18))
    assert np.isnan(held_out(study, folds=2, epochs=1)[:8]).all()


@pytest.mark.slow
def test_what_is_said_of_unseen_trials_knows_crashes_by_chance():
    study, chance = db.Study(SQUARE, seed=0), np.random.default_rng(0)
    for _ in range(40):
        (trial,) = study.ask()
        value = sum((x - 0.3) ** 2 for x in trial.params.values())
        study.tell(trial, None if (failed := chance.random() < 0.25) else value, failed=failed)
    values = np.array([math.inf if trial.value is None else trial.value for trial in study.trials])
    assert held_out(study)[values < 1e-3].mean() > 0.8


def test_values_of_infeasible_trials_are_predicted_as_they_are(limited):
    study, _ = limited
    values, feasible = values_of(study), study.observations.feasible.numpy()
    assert values[~feasible].max() > values[feasible].max() + 0.3
    predicted = Translation.of(study)(probability(study, study.observations.points))
    assert np.abs(predicted - values).max() < 0.1
