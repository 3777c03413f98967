"""The options that the papers' protocols needed, each against what it says."""

import functools

import numpy as np
import pytest
import torch
import xgboost
from scipy.stats import rankdata
from sklearn.calibration import _SigmoidCalibration
from sklearn.gaussian_process import GaussianProcessRegressor, kernels

import deepbore
from deepbore import (
    Calibrated,
    Categorical,
    DifferentialEvolution,
    ExpectedProbability,
    KernelPLS,
    MLPClassifier,
    MultiStartLBFGS,
    Ordinal,
    RandomForest,
    Real,
    Relaxed,
    RelaxedSearch,
    SearchSpace,
    Study,
    SVGDCandidates,
    ThresholdLabels,
    Training,
    XGBoost,
)
from deepbore.acquisition import ClassProbability
from deepbore.candidates import Search
from deepbore.classifiers import PointEstimate
from deepbore.data.observations import Observations
from deepbore.errors import SettingError
from deepbore.space.relaxation import Relaxation
from deepbore.testing import TOY_SPACES, fit, toy_data

PLANE = SearchSpace({"x": Real(0, 1), "y": Real(0, 1)})
THIRD = 1 / 3


class Flat(MLPClassifier):
    """One score everywhere, with a gradient of 0."""

    def posterior(self, points):
        return PointEstimate(0 * points.sum(-1), self.link, "Flat")


class Bowl(MLPClassifier):
    """Scores that fall with the distance from the middle, level columns counted in ranges."""

    def posterior(self, points):
        return PointEstimate(-(points - 0.4).square().sum(-1), self.link, "Bowl")


def searching(classifier, space=PLANE, n=20, seed=0):
    data = toy_data(space, n) if n else None
    observations = data.observations if data else Observations(space)
    return Search(ClassProbability(), classifier.bind(space), observations, torch.Generator().manual_seed(seed))


def test_random_restarts_are_uniform_points_as_they_come():
    starts = PLANE.sample(3, torch.Generator().manual_seed(0))
    ranked = MultiStartLBFGS(restarts=3, samples=3, near_best=False).ranked(searching(Flat()), 1)
    assert torch.equal(ranked.unique(dim=0), starts.unique(dim=0))  # nowhere to climb to
    climbed = MultiStartLBFGS(restarts=3, samples=3, near_best=False).ranked(searching(Bowl()), 1)
    assert torch.allclose(climbed[0], torch.tensor([0.4, 0.4], dtype=torch.float64), atol=1e-4)
    with pytest.raises(SettingError, match="restarts <= samples must hold where all starts are random points"):
        MultiStartLBFGS(restarts=4, samples=3, near_best=False)


@pytest.mark.parametrize("near_best", [True, False])
def test_a_population_has_the_best_observed_points_if_it_may(near_best):
    search = searching(Bowl())
    best = search.observations.points[search.observations.best_rows(1)]
    evolution = DifferentialEvolution(evaluations=20, population=10, near_best=near_best)
    assert (evolution.ranked(search, 1) == best).all(-1).any() == near_best


def test_particles_start_uniformly_and_take_steps_of_one_length():
    starts = PLANE.sample(4, torch.Generator().manual_seed(0))
    svgd = SVGDCandidates(start="uniform", sweeps=0, optimizer="rmsprop", steps=1, step_size=0.01)
    moved = (svgd.ranked(searching(Bowl(), n=0), 4) - starts).abs()
    assert torch.allclose(moved, torch.full_like(moved, 0.01), atol=1e-6)


def test_the_marginal_likelihood_alone_chooses_what_scikit_learn_does():
    x = np.linspace(0, 1, 40)
    z = (np.sin(9 * x) > 0.3).astype(float)
    line = SearchSpace({"x": Real(0, 1)})
    data = toy_data(line, 0, ThresholdLabels(float(z.mean())))
    data.observations.add({"x": x}, -z)
    head = fit(KernelPLS("rational_quadratic", regularisation=0.025, prior=False, iterations=300), data, epochs=2)
    fixed = kernels.RationalQuadratic(alpha=1.0, alpha_bounds="fixed", length_scale_bounds=(1e-2, 1e2))
    theirs = GaussianProcessRegressor(
        kernels.ConstantKernel() * fixed, alpha=0.025, n_restarts_optimizer=5, random_state=0
    ).fit(x[:, None], z)
    amplitude, length_scale = theirs.kernel_.k1.constant_value, theirs.kernel_.k2.length_scale
    assert np.allclose(head.theta.exp().numpy(), [length_scale, amplitude, 0.025], rtol=2e-3)
    with_priors = fit(KernelPLS("rational_quadratic", regularisation=0.025, iterations=300), data, epochs=2)
    assert not np.allclose(with_priors.theta.numpy(), head.theta.numpy(), rtol=2e-3)


@pytest.mark.parametrize("tree_method", ["hist", "exact"])
def test_boosting_by_a_tree_method_is_xgboosts(tree_method):
    data = toy_data(PLANE, 600, ThresholdLabels(THIRD))  # more than the 256 bins of a histogram
    head = fit(XGBoost(rounds=20, tree_method=tree_method), data, epochs=1)
    batch = data.labelled()
    x = PLANE.features(batch.points).float().numpy()
    theirs = xgboost.XGBClassifier(n_estimators=20, tree_method=tree_method, base_score=0.5, max_depth=6)
    theirs.fit(x, batch.z[:, 0].numpy())
    query = PLANE.sobol(100, seed=1)
    margin = theirs.predict(PLANE.features(query).float().numpy(), output_margin=True)
    assert np.allclose(head.posterior(query).mean.numpy(), margin, atol=1e-5)


@functools.cache
def ensemble(make):
    data = toy_data(PLANE, 150, ThresholdLabels(THIRD))
    return fit(Calibrated(make(), folds=3, min_per_class=3, ensemble=True), data, epochs=2), data.labelled()


@pytest.mark.parametrize("make", [functools.partial(RandomForest, trees=20), functools.partial(XGBoost, rounds=20)])
def test_the_folds_average_probabilities_by_scikit_learns_sigmoid(make):
    head, batch = ensemble(make)
    query, number = PLANE.sobol(64, seed=1), torch.arange(len(batch)) % 3
    expected = np.zeros(64)
    for fold, classifier in enumerate(head.folds):
        rows = batch.take((number == fold).nonzero()[:, 0])
        held_out = classifier.posterior(rows.points).mean.double().numpy()
        sigmoid = _SigmoidCalibration().fit(held_out, rows.z[:, 0].numpy())
        expected += sigmoid.predict(classifier.posterior(query).mean.double().numpy()) / 3
    score = ExpectedProbability(by="samples")(head.posterior(query), 1.0)
    assert np.allclose(head.link.probability(score).numpy(), expected, atol=1e-3)


def test_platts_maps_of_folds_change_a_ranking_where_one_map_keeps_it():
    make = functools.partial(RandomForest, trees=20)
    head, _ = ensemble(make)
    query = PLANE.sobol(64, seed=1)
    plain = head.base.posterior(query).mean.numpy()
    data = toy_data(PLANE, 150, ThresholdLabels(THIRD))
    single = fit(Calibrated(make(), folds=3, min_per_class=3), data, epochs=2)
    of_base = single.base.posterior(query).mean.numpy()
    assert (rankdata(single.posterior(query).mean.numpy()) == rankdata(of_base)).all()
    assert (rankdata(head.posterior(query).mean.numpy()) != rankdata(plain)).any()


# --- spaces as boxes -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("space", TOY_SPACES)
def test_a_space_and_its_box_are_the_same_configurations(space):
    relaxation = Relaxation(TOY_SPACES[space])
    points = TOY_SPACES[space].sample(200, torch.Generator().manual_seed(0))
    vectors = relaxation.vectors(points)
    assert vectors.shape == (200, len(relaxation.box))
    assert torch.allclose(relaxation.points(vectors), points)
    nudged = relaxation.points((vectors + 0.04 * torch.rand(vectors.shape, dtype=torch.float64)).clamp(0, 1))
    levels = [c for c in range(len(TOY_SPACES[space])) if c not in TOY_SPACES[space].continuous_columns]
    assert torch.equal(nudged[:, levels], points[:, levels]) or space == "mixed"  # which has an integer of many levels


def test_climbing_in_the_box_finds_the_best_configuration():
    space = SearchSpace({"k": Ordinal([1, 2, 4, 8, 16]), "c": Categorical(["a", "b", "c"]), "x": Real(0, 1)})

    class BoxBowl(MLPClassifier):
        """Scores around the box's vector of k = 8, c = "b", x = 0.2."""

        def posterior(self, points):
            aim = torch.tensor([0.75, 0.0, 1.0, 0.0, 0.2], dtype=torch.float64)
            return PointEstimate(-(points - aim).square().sum(-1), self.link, "BoxBowl")

    lbfgs = MultiStartLBFGS(restarts=3, samples=3, near_best=False)
    search = searching(Relaxed(BoxBowl()), space, n=0)
    (found,) = space.decode(RelaxedSearch(lbfgs).ranked(search, 1)[:1])
    assert (found["k"], found["c"]) == (8, "b")
    assert found["x"] == pytest.approx(0.2, abs=1e-4)
    with pytest.raises(SettingError, match=r"MultiStartLBFGS needs real parameters without conditions"):
        lbfgs.check(space, Relaxed(BoxBowl()))
    with pytest.raises(SettingError, match=r"Give Relaxed\(MLPClassifier\(\.\.\.\)\)"):
        Study(space, classifier=MLPClassifier(), candidates=RelaxedSearch(lbfgs))


def test_a_relaxed_head_keeps_its_base_and_refuses_a_bound_one():
    base = MLPClassifier(training=Training(steps=5))
    head = fit(Relaxed(base), toy_data(TOY_SPACES["finite"]), epochs=1)
    assert (head.link, head.capabilities, head.base) == (base.link, base.capabilities, base)
    with pytest.raises(SettingError, match="the base learns another space, but it is bound already"):
        Relaxed(base)
    assert deepbore.Relaxed is Relaxed
