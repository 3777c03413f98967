"""Forests and boosted trees against scikit-learn and xgboost's own classifier."""

import sys

import numpy as np
import pytest
import torch
import xgboost
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

from deepbore import (
    Categorical,
    DifferentialEvolution,
    Ordinal,
    RandomForest,
    Real,
    SearchSpace,
    SeveralThresholds,
    ThresholdLabels,
    ValueGradedLabels,
    XGBoost,
    minimize,
)
from deepbore.classifiers import trees
from deepbore.errors import MissingPackage, SettingError
from deepbore.labels.threshold import ThresholdFamily
from deepbore.testing import TOY_SPACES, fit, toy_data
from plane import SQUARE
from trainers import trainer_of

THIRD = 1 / 3


@pytest.mark.parametrize("tree_method", ["hist", "exact"])
def test_boosting_by_a_tree_method_is_xgboosts(tree_method):
    data = toy_data(SQUARE, 600, ThresholdLabels(THIRD))  # more than the 256 bins of a histogram
    head = fit(XGBoost(rounds=20, tree_method=tree_method), data, epochs=1)
    batch = data.labelled()
    x = SQUARE.points.features(batch.points).float().numpy()
    theirs = xgboost.XGBClassifier(n_estimators=20, tree_method=tree_method, base_score=0.5, max_depth=6)
    theirs.fit(x, batch.z[:, 0].numpy())
    query = SQUARE.points.sobol(100, seed=1)
    margin = theirs.predict(SQUARE.points.features(query).float().numpy(), output_margin=True)
    assert np.allclose(head.posterior(query).mean.numpy(), margin, atol=1e-5)


SPACE = TOY_SPACES["mixed"]

POINTS = SPACE.points.sample(200, torch.Generator().manual_seed(1))

TREES = {"RandomForest": lambda: RandomForest(trees=20), "XGBoost": lambda: XGBoost(rounds=20)}


class LaterRowsTwice(ThresholdFamily):
    """Another labelling, in which the later half of the rows has weight 2."""

    def __init__(self, base):
        super().__init__(base.gamma)
        self.base = base

    def label(self, values, ranked, tau):
        z, weight = self.base.label(values, ranked, tau)
        weight[len(values) // 2 :] = 2
        return z, weight


def trained(classifier, labels):
    """The classifier after one epoch, and what it has learned."""
    data = toy_data(SPACE, 80, LaterRowsTwice(labels))
    return fit(classifier, data, epochs=1), data.labelled()


def features(points):
    return SPACE.points.features(points).float().numpy()


@pytest.mark.slow
def test_on_labels_0_and_1_the_forest_is_scikit_learns_classifier():
    forest, batch = trained(RandomForest(), ThresholdLabels(0.3))
    theirs = RandomForestClassifier(random_state=int(forest.get_extra_state()["seed"]))
    theirs.fit(features(batch.points), batch.z[:, 0].int(), sample_weight=batch.weight)
    members = np.stack([tree.predict_proba(features(POINTS))[:, 1] for tree in theirs.estimators_])
    ours = forest.posterior(POINTS).members.numpy()
    assert np.isclose(ours, members).mean() > 0.98  # two splits that are equally good may be told apart by rounding
    assert np.allclose(forest.probability(POINTS), theirs.predict_proba(features(POINTS))[:, 1], atol=0.05)


def test_on_graded_labels_the_forest_is_scikit_learns_regressor():
    forest, batch = trained(RandomForest(), ValueGradedLabels())
    theirs = RandomForestRegressor(max_features="sqrt", random_state=int(forest.get_extra_state()["seed"]))
    theirs.fit(features(batch.points), batch.z[:, 0], sample_weight=batch.weight)
    members = np.stack([tree.predict(features(POINTS)) for tree in theirs.estimators_])
    posterior = forest.posterior(POINTS)
    assert np.allclose(posterior.members, members)
    assert np.allclose(posterior.mean, members.mean(0))
    assert np.allclose(posterior.std, members.std(0))


def test_boosted_trees_are_those_of_xgboosts_classifier():
    ours, batch = trained(XGBoost(), ThresholdLabels(0.3))
    theirs = xgboost.XGBClassifier(n_estimators=100, learning_rate=0.3, max_depth=6, base_score=0.5, n_jobs=1)
    theirs.fit(features(batch.points), batch.z[:, 0].int(), sample_weight=batch.weight)
    assert np.allclose(ours.probability(POINTS), theirs.predict_proba(features(POINTS))[:, 1], atol=1e-5)


def test_boosted_probabilities_are_weighted_means_of_graded_labels():
    rng = np.random.default_rng(0)
    x, weight = np.repeat(np.float32([[0], [1]]), 500, axis=0), rng.random(1000) + 0.5
    z = rng.random(1000) ** np.where(x[:, 0] == 0, 3, 0.5)
    trees = XGBoost()
    trees.grow(x, z, weight, seed=0)
    expected = [np.average(z[x[:, 0] == side], weights=weight[x[:, 0] == side]) for side in (0, 1)]
    assert np.allclose(1 / (1 + np.exp(-trees.predict(np.float32([[0], [1]]))[0])), expected, atol=1e-3)


@pytest.mark.parametrize("make", TREES.values(), ids=TREES)
def test_several_thresholds_are_learned_as_their_mean(make):
    data = toy_data(SPACE, 60, SeveralThresholds())
    learned = fit(make(), data, epochs=1).get_extra_state()["rows"]
    assert torch.equal(learned[:, :-2], data.observations.points)
    assert torch.allclose(learned[:, -2], data.labelled().z.mean(-1).double())


@pytest.mark.parametrize("make", TREES.values(), ids=TREES)
def test_checkpoints_hold_tensors_and_grow_the_same_trees(make, tmp_path):
    classifier = make()
    trainer_of(classifier, toy_data(SPACE), 2).save_checkpoint(tmp_path / "some.ckpt")
    state = torch.load(tmp_path / "some.ckpt", weights_only=True)["state_dict"]
    fresh = make().bind(SPACE)
    fresh.load_state_dict(state)
    assert torch.equal(fresh.posterior(POINTS).mean, classifier.posterior(POINTS).mean)


@pytest.mark.parametrize("make", [lambda: RandomForest(trees=5, rows=50), lambda: XGBoost(rounds=5, rows=50)])
def test_they_learn_from_so_many_rows_at_most(make):
    assert len(fit(make(), toy_data(SPACE, 120), epochs=1).get_extra_state()["rows"]) == 50


@pytest.mark.parametrize("make", TREES.values(), ids=TREES)
def test_global_streams_stay_as_they_were(make):
    before = np.random.get_state()[1].copy(), torch.random.get_rng_state()
    minimize(
        lambda p: p["x"], SearchSpace({"x": Real(0, 1)}), 12, classifier=make(), candidates=DifferentialEvolution(50)
    )
    assert np.array_equal(before[0], np.random.get_state()[1])
    assert torch.equal(before[1], torch.random.get_rng_state())


@pytest.mark.slow
@pytest.mark.parametrize("candidates", [None, DifferentialEvolution(evaluations=500)], ids=["local", "evolution"])
@pytest.mark.parametrize("make", TREES.values(), ids=TREES)
def test_they_optimise(make, candidates):
    space = SearchSpace({"x": Real(0, 1), "y": Real(0, 1), "k": Ordinal([1, 2, 4]), "c": Categorical(["a", "b"])})

    def objective(p):
        return (p["x"] - 0.3) ** 2 + (p["y"] - 0.7) ** 2 + p["k"] * (p["c"] == "a")

    labels = ValueGradedLabels(tail=0)  # a forest of classes learns little from grades of the bad
    settings = {"classifier": make(), "labels": labels, "candidates": candidates}
    result = minimize(objective, space, n_trials=40, seed=1, **settings)
    assert result.best_value < 0.02 < result.values[:10].min()


# --- degenerate data -------------------------------------------------------------------------------------------------


class OneClass(ThresholdFamily):
    """All rows in one class, though told apart."""

    def __init__(self, z):
        super().__init__(0.5)
        self.z = z

    def label(self, values, ranked, tau):
        return torch.full_like(values, self.z), torch.ones_like(values)


WIDE = SearchSpace({f"x{i}": Real(0, 1) for i in range(200)})

MANY = SearchSpace({"c": Categorical([f"level {i}" for i in range(1000)]), "x": Real(0, 1)})

DEGENERATE = {
    "two rows": toy_data(SPACE, 2),
    "constant values": toy_data(SPACE, 0),
    "all good": toy_data(SPACE, 20, OneClass(1.0)),
    "all bad": toy_data(SPACE, 20, OneClass(0.0)),
    "all graded alike": toy_data(SPACE, 20, OneClass(0.3)),
    "duplicates": toy_data(SearchSpace({"x": Real(0, 1)}), 0),
    "200 parameters": toy_data(WIDE, 30),
    "1000 levels": toy_data(MANY, 30),
}

DEGENERATE["constant values"].observations.add(
    {"lr": [0.01] * 9, "units": [64] * 9, "optimizer": ["adam"] * 9, "momentum": [None] * 9, "nesterov": [None] * 9},
    [1.0] * 9,
)

DEGENERATE["duplicates"].observations.add({"x": [0.2] * 6 + [0.5]}, [1.0, 2.0, 3.0, 1.0, 2.0, 3.0, 5.0])


@pytest.mark.filterwarnings("ignore:No .* samples in targets")  # torchmetrics has no AUROC for one class
@pytest.mark.parametrize("data", DEGENERATE.values(), ids=DEGENERATE)
@pytest.mark.parametrize("make", TREES.values(), ids=TREES)
def test_degenerate_data_leave_finite_scores(make, data):
    classifier = fit(make(), data, epochs=2)
    posterior = classifier.posterior(data.space.points.sample(20, torch.Generator().manual_seed(0)))
    assert posterior.mean.shape == (20,)
    assert posterior.mean.isfinite().all()


# --- settings --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: RandomForest(trees=0), "trees >= 1 must hold, but got trees=0"),
        (lambda: RandomForest(max_depth=0), "max_depth >= 1"),
        (lambda: RandomForest(min_samples_split=1), "min_samples_split >= 2"),
        (lambda: RandomForest(rows=0), "rows >= 1"),
        (lambda: XGBoost(rounds=0), "rounds >= 1"),
        (lambda: XGBoost(max_depth=0), "max_depth >= 1"),
        (lambda: XGBoost(learning_rate=0.0), "0 < learning_rate <= 1"),
        (lambda: XGBoost(min_child_weight=-1), "min_child_weight >= 0"),
    ],
)
def test_bad_settings_are_refused(make, says):
    with pytest.raises(SettingError, match=says):
        make()


def test_one_tree_and_boosted_trees_are_point_estimates():
    for classifier in (RandomForest(trees=1), XGBoost(rounds=5)):
        posterior = fit(classifier, toy_data(SPACE), epochs=1).posterior(POINTS)
        assert classifier.capabilities == frozenset()
        with pytest.raises(SettingError, match=f"{type(classifier).__name__} gives one score a point"):
            posterior.std  # noqa: B018  # asking is the test
    assert RandomForest(trees=2).capabilities == {"std", "members"}


def test_a_package_that_lacks_a_library_of_the_system_says_so(monkeypatch):
    class XGBoostError(ValueError):
        pass

    def fails(_name):
        raise XGBoostError("libxgboost.dylib could not be loaded")

    monkeypatch.setattr(trees, "import_module", fails)
    with pytest.raises(
        MissingPackage, match=r"XGBoost needs xgboost, which.* brew install libomp.*could not be loaded"
    ):
        XGBoost()


@pytest.mark.parametrize(("make", "module"), [(RandomForest, "sklearn.ensemble"), (XGBoost, "xgboost")])
def test_a_missing_package_is_named_with_what_installs_it(make, module, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingPackage, match=rf"{make.__name__} needs \w+: pip install 'deepbore\[trees\]'"):
        make()
