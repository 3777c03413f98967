"""Calibration against scikit-learn, and what the folds must not see."""

import numpy as np
import pytest
import torch
from sklearn.calibration import _SigmoidCalibration
from sklearn.isotonic import IsotonicRegression

from deepbore import (
    Calibrated,
    KernelPLS,
    MLPClassifier,
    RandomForest,
    Real,
    SearchSpace,
    ThresholdLabels,
    Training,
    XGBoost,
)
from deepbore.classifiers import Classifier, Link, PointEstimate
from deepbore.classifiers.wrappers import METHODS
from deepbore.testing import fit, toy_data

SPACE = SearchSpace({"x": Real(0, 1), "y": Real(0, 1)})
QUICK = Training(steps=30)
HEADS = {
    "MLPClassifier": lambda: MLPClassifier(training=QUICK),
    "RandomForest": lambda: RandomForest(trees=20),
    "XGBoost": lambda: XGBoost(rounds=20),
    "KernelPLS": KernelPLS,
}


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def noisy_data(n, seed=0, labels=None):
    """A bowl under so much noise that no classifier can be sure."""
    data = toy_data(SPACE, 0, labels or ThresholdLabels(1 / 3))
    rng = np.random.default_rng(seed)
    x, y = rng.random((2, n))
    data.observations.add({"x": x, "y": y}, (x - 0.5) ** 2 + (y - 0.5) ** 2 + 0.1 * rng.normal(size=n))
    return data


def scores_and_labels(n=120, seed=0):
    rng = np.random.default_rng(seed)
    scores = 5 * rng.normal(size=n) + 2
    return scores, (rng.random(n) < 1 / (1 + np.exp(-0.4 * scores + 1))).astype(float), rng.random(n) + 0.5


def calibrated_logit(method, data, scores):
    fitted, logit = METHODS[method]
    return logit(fitted(*data), torch.from_numpy(scores))


# --- the maps --------------------------------------------------------------------------------------------------------


def test_platts_map_is_scikit_learns_sigmoid():
    scores, z, weight = scores_and_labels()
    theirs = _SigmoidCalibration().fit(scores, z, weight)
    grid = np.linspace(-20, 20, 50)
    assert np.allclose(calibrated_logit("platt", (scores, z, weight), grid).sigmoid(), theirs.predict(grid), atol=1e-4)


def test_the_isotonic_map_is_scikit_learns_within_what_the_data_can_tell():
    scores, z, weight = scores_and_labels()
    least = 1 / (weight.sum() + 2)
    theirs = IsotonicRegression(out_of_bounds="clip").fit(scores, z, weight)
    ours = calibrated_logit("isotonic", (scores, z, weight), scores).sigmoid()
    assert least < 0.01
    assert np.allclose(ours, theirs.predict(scores).clip(least, 1 - least))
    theirs = IsotonicRegression(y_min=least, y_max=1 - least, out_of_bounds="clip").fit(scores, z, weight)
    grid = np.linspace(-20, 20, 500)  # between the scores and beyond
    ours = calibrated_logit("isotonic", (scores, z, weight), grid).sigmoid()
    assert np.allclose(ours, theirs.predict(grid))
    assert (ours.diff() >= 0).all()


@pytest.mark.parametrize("method", METHODS)
def test_graded_labels_count_in_part_for_both_classes(method):
    scores, _, weight = scores_and_labels()
    z = 1 / (1 + np.exp(-scores / 5)) * np.random.default_rng(1).random(len(scores))
    parts = np.tile(scores, 2), np.repeat([1.0, 0.0], len(scores)), np.concatenate([weight * z, weight * (1 - z)])
    whole, apart = (calibrated_logit(method, data, scores) for data in ((scores, z, weight), parts))
    assert torch.allclose(whole, apart, atol=1e-4)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("scores", [np.arange(20.0)[::-1].copy(), np.ones(20)], ids=["falling", "equal"])
def test_scores_that_do_not_rise_with_the_labels_give_no_map(method, scores):
    assert METHODS[method][0](scores, np.repeat([0.0, 1.0], 10), np.ones(20)).numel() == 0


@pytest.mark.parametrize("method", METHODS)
def test_maps_are_finite_for_separable_and_huge_scores(method):
    separable = np.repeat([-1e4, 1e4], 10) + np.arange(20), np.repeat([0.0, 1.0], 10), np.ones(20)
    logit = calibrated_logit(method, separable, np.array([-1e6, -1e4, 0.0, 1e4, 1e6]))
    assert logit.isfinite().all()
    assert (logit.diff() >= 0).all()
    assert logit[1] < -1.5 < 1.5 < logit[3]
    in_single = METHODS[method][1](METHODS[method][0](*separable), torch.tensor([-1e4, 0.0, 1e4]))
    assert in_single.dtype == torch.float32
    assert torch.allclose(in_single.double(), logit[1:4], atol=1e-3)


# --- the folds -------------------------------------------------------------------------------------------------------


class Memory(Classifier):
    """Scores what it has learned with its label and anything else with a half, and remembers what it was asked."""

    link = Link.IDENTITY

    def build(self, space, outputs):
        self.known, self.asked = {}, []

    def fit(self, batch):
        self.known.update(zip(map(tuple, batch.points.tolist()), batch.z[:, 0].tolist(), strict=True))
        self.lightning_optimizer().step()
        return {}

    def posterior(self, points):
        self.check_points(points)
        self.asked.append(len(points))
        scores = torch.tensor([self.known.get(tuple(point), 0.5) for point in points.tolist()])
        return PointEstimate(scores, self.link, "Memory")


def test_no_fold_ever_learns_its_own_rows():
    data = noisy_data(40)
    classifier = Calibrated(Memory(), folds=4)
    for n in (40, 47, 90):
        x = np.random.default_rng(n).random((2, n - len(data.observations)))
        data.observations.add({"x": x[0], "y": x[1]}, x[0])
        fit(classifier, data, epochs=2)
        points = [tuple(point) for point in data.observations.points.tolist()]
        assert set(classifier.base.known) == set(points)
        for number, fold in enumerate(classifier.folds):
            assert set(fold.known) == {point for row, point in enumerate(points) if row % 4 != number}


def test_among_very_many_rows_the_folds_still_keep_apart_and_the_cost_is_flat():
    data = noisy_data(30_000)
    classifier = fit(Calibrated(Memory(), folds=3, rows=90), data, epochs=2)
    own = {tuple(point): row % 3 for row, point in enumerate(data.observations.points.tolist())}
    for number, fold in enumerate(classifier.folds):
        assert number not in {own[point] for point in fold.known}
        assert 7_000 < len(fold.known) < 2 * 7_000  # two thirds of 10 000, others each time
        assert max(fold.asked) <= 90


def test_a_memory_is_not_trusted():
    """It scores its own rows perfectly, and others all alike: held-out scores say nothing."""
    data = noisy_data(60)
    classifier = fit(Calibrated(Memory()), data, epochs=1)
    assert classifier.trainer.callback_metrics["calibrated"] == 0
    assert torch.equal(classifier.posterior(data.observations.points).mean, data.labelled().z[:, 0])
