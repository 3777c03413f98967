"""What every classifier learns of comparisons."""

import math

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.gaussian_process.kernels import Matern

from comparing import compared
from deepbore import Categorical, PreferenceLabels, RandomForest, Real, SearchSpace, Study, ValueGradedLabels
from deepbore.data.observations import Observations
from plane import SQUARE


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
    study = Study(SQUARE, preferences=True)
    one, other, failed, _ = study.ask(4)
    study.prefer(one, other)
    study.tell(failed, failed=True)
    labels = PreferenceLabels()(study.observations)
    assert labels.weight.tolist() == pytest.approx([1, 1, 1, 0], abs=1e-3)
    assert labels.z[2:, 0].tolist() == [0, 0]


@pytest.mark.parametrize("parts", [dict, lambda: {"classifier": RandomForest(trees=10)}, lambda: {"gamma": 0.3}])
def test_every_head_learns_preferences(parts):
    study = compared(Study(SQUARE, n_initial=4, preferences=True, **parts()), 5)
    assert isinstance(study.state.recipe.labels, PreferenceLabels)
    assert study.recommended is not None


def test_categories_too():
    study = Study(SearchSpace({"c": Categorical(["a", "b", "c", "d"])}), preferences=True)
    a, b, c, d = study.ask(4)
    study.prefer(a, b)
    study.prefer(c, d)
    study.prefer(c, a)
    assert study.best_trial.id == c.id == study.recommended.id


def test_labels_are_those_of_the_most_likely_utilities_under_a_gaussian_process():
    study = Study(SQUARE, preferences=True, seed=1)
    trials, pairs = study.ask(5), [(0, 1), (1, 2), (3, 2), (2, 3), (0, 3), (4, 1)]
    for better, worse in pairs:
        study.prefer(trials[better], trials[worse])
    x = np.array([[trial.params["x"], trial.params["y"]] for trial in trials])
    precision = np.linalg.inv(9 * Matern(nu=2.5, length_scale=math.exp(-1.5) * math.sqrt(2))(x))
    better, worse = np.array(pairs).T
    likely = minimize(lambda u: np.logaddexp(0, u[worse] - u[better]).sum() + u @ precision @ u / 2, np.zeros(5))
    told = Observations(SQUARE)
    told.add({"x": x[:, 0], "y": x[:, 1]}, -likely.x)
    labels = PreferenceLabels()(study.observations)
    assert labels.z.numpy() == pytest.approx(ValueGradedLabels()(told).z.numpy(), abs=1e-4)
    assert labels.metrics == {}
