"""The statements of docs/theory.md on posteriors, scores and regret, in numbers: quadrature against the package."""

import math
from functools import partial

import numpy as np
import pytest
import torch
from scipy import stats
from scipy.special import expit, logit
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import Matern

from deepbore import KernelPLS, Real, SearchSpace
from deepbore.acquisition import ClassProbability, ExpectedProbability, LogExpectedImprovement, TheoremBound
from deepbore.classifiers import Calibrated, FourierLogistic, MembersPosterior, RandomForest
from deepbore.classifiers.link import Link
from deepbore.data.observations import Observations
from deepbore.labels import LabelledObservations, ThresholdLabels, ValueGradedLabels
from deepbore.testing import TOY_SPACES, fit, toy_data
from known_distributions import averages, expected_improvement, grades


def gaussian(x, y, length_scale):
    """The squared-exponential kernel on a line, n and m -> n x m."""
    return np.exp(-((x[:, None] - y) ** 2) / (2 * length_scale**2))


# --- the Gaussian posterior, and the default acquisition -------------------------------------------------------------


def test_kernel_least_squares_is_the_posterior_mean_of_a_gaussian_process():
    space, scale, strength = SearchSpace({"x": Real(0, 1)}), 0.3, 0.05
    data = LabelledObservations(Observations(space), ThresholdLabels(0.3))
    x = np.random.default_rng(9).random(15)
    data.observations.add({"x": x}, np.sin(9 * x))
    classifier = fit(KernelPLS("rbf", length_scale=scale, regularisation=strength), data, epochs=1)
    z = data.labelled().z[:, 0].numpy()
    kernel, grid = partial(gaussian, length_scale=scale), np.linspace(0, 1, 20)
    gram = kernel(x, x)
    root = np.linalg.cholesky(gram + 1e-10 * np.eye(15))
    design, target = np.vstack([gram, math.sqrt(strength) * root.T]), np.r_[z, np.zeros(15)]
    ridge = np.linalg.lstsq(design, target, rcond=None)[0]  # of the sum of squares in eq. 12, written out
    joint = np.block([[gram + strength * np.eye(15), kernel(x, grid)], [kernel(grid, x), kernel(grid, grid)]])
    conditional = joint[15:, :15] @ np.linalg.inv(joint[:15, :15]) @ z  # of a Gaussian vector
    posterior = classifier.posterior(torch.tensor(grid)[:, None])
    assert np.allclose(posterior.mean, kernel(grid, x) @ ridge, atol=1e-5)
    assert np.allclose(posterior.mean, conditional, atol=1e-6)


def test_the_default_is_gp_ei_on_values_that_saturate_beyond_the_median():
    space = TOY_SPACES["continuous"]
    data = toy_data(space, 40)
    classifier = fit(KernelPLS(), data, epochs=5)
    values = data.observations.values[:, 0].numpy()
    tau, best = np.sort(values)[19], values.min()
    half = (tau - best) / 2
    above = np.maximum(values - tau, 0)
    saturated = np.minimum(values, tau) + above * half / (half + above)
    *scales, amplitude, noise = classifier.theta.exp().numpy()
    unit = 1.5 * (tau - best)  # of a label, in values
    process = GaussianProcessRegressor(
        amplitude * unit**2 * Matern(scales, nu=2.5), alpha=noise * unit**2 + 1e-10 * unit**2, optimizer=None
    ).fit(data.observations.points.numpy(), saturated - (tau + half))
    points = space.points.sample(100, torch.Generator().manual_seed(1))
    mean, std = process.predict(points.numpy(), return_std=True)
    ours = LogExpectedImprovement()(classifier.posterior(points), classifier.best_label).exp().numpy()
    theirs = expected_improvement(mean + tau + half, std, best)
    assert float(classifier.best_label) == 1
    assert theirs.max() > 1e-6
    assert np.allclose(ours * unit, theirs, rtol=1e-3, atol=1e-6 * theirs.max())


def test_far_from_all_data_the_default_expects_what_a_failure_gets():
    data = LabelledObservations(Observations(SearchSpace({"x": Real(0, 1)})))
    data.observations.add({"x": [0.0, 0.02, 0.04, 0.06]}, [1.0, 0.5, 2.0, math.nan])
    labels = data.labelled().z[:, 0]
    assert labels[-1] == 0
    assert grades([1e12], 0.5, 1.0, 0.5)[0] == pytest.approx(0, abs=1e-11)
    far = fit(KernelPLS(length_scale=0.05, regularisation=1e-4), data, epochs=1).posterior(torch.ones(1, 1).double())
    assert float(far.mean) == pytest.approx(0, abs=1e-6)
    assert float(far.std) == pytest.approx(1, abs=1e-6)  # the prior's amplitude: bad, but uncertain


# --- scores and probabilities ----------------------------------------------------------------------------------------


def test_a_rising_map_changes_no_ranking_by_the_mean():
    space = TOY_SPACES["continuous"]
    points = space.points.sample(100, torch.Generator().manual_seed(2))
    for method, base, labels in [
        ("platt", FourierLogistic(), ThresholdLabels(0.3)),
        ("platt", KernelPLS(), ValueGradedLabels()),
        ("isotonic", RandomForest(trees=20), ValueGradedLabels()),
    ]:
        classifier = fit(Calibrated(base, method), toy_data(space, 60, labels), epochs=1)
        mapped, plain = classifier.posterior(points), classifier.base.posterior(points)
        order = plain.mean.argsort()
        assert not torch.allclose(mapped.mean, plain.mean)
        assert (mapped.mean[order].diff() >= -1e-9).all()
        if method == "platt" and base.link is Link.LOGIT:  # a line: it keeps the order of upper bounds, too
            bound = (plain.mean + 3 * plain.std).argsort()
            assert ((mapped.mean + 3 * mapped.std)[bound].diff() > -1e-9).all()


def test_the_mean_logit_does_not_rank_as_the_mean_probability():
    members = torch.tensor([[9.0, 1.5], [-1.0, 1.4]], dtype=torch.float64)  # of two members, at two points
    posterior = MembersPosterior(members, Link.LOGIT)
    logits = ClassProbability()(posterior, 1.0)
    probabilities = expit(members.numpy()).mean(0)
    assert logits[0] > logits[1]
    assert probabilities[0] < probabilities[1]
    assert np.allclose(ExpectedProbability("samples")(posterior, 1.0), logit(probabilities))
    odds = expit(members.numpy()) / (1 - expit(members.numpy()))
    assert np.allclose(logits.exp(), stats.gmean(odds))  # the mean logit is that of the geometric mean of the odds
    for mean, std in [(0.7, 2.0), (-1.0, 0.5)]:
        exact = stats.norm(mean, std).expect(stats.norm.cdf)
        score = Link.PROBIT.expected_score(torch.tensor(mean), torch.tensor(std))
        assert float(Link.PROBIT.probability(score)) == pytest.approx(exact, abs=1e-6)
        assert (exact > 0.5) == (mean > 0)  # both say alike which points are likelier good than bad


def test_points_drawn_from_the_class_probability_are_draws_of_good_points():
    x = np.linspace(0, 1, 400)
    objective, noise, tau = np.sin(6 * x), stats.norm(0, 0.5), -0.3
    probability = noise.cdf(tau - objective)
    rng = np.random.default_rng(10)
    at = rng.integers(400, size=400_000)  # a uniform design, its values, and where the good ones lie
    good = at[objective[at] + rng.normal(0, 0.5, len(at)) <= tau]
    counted = np.bincount(good, minlength=400).reshape(20, 20).sum(1) / len(good)
    drawn = (probability / probability.sum()).reshape(20, 20).sum(1)
    assert np.allclose(counted, drawn, atol=3e-3)
    assert len(good) / len(at) == pytest.approx(probability.mean(), abs=3e-3)  # gamma, the constant of eq. 23
    score = torch.tensor(logit(probability))
    assert np.allclose(Link.LOGIT.log_probability(score).exp(), probability)


# --- regret ----------------------------------------------------------------------------------------------------------


def one_dimensional(norm=0.9):
    """A function of the RKHS of the squared-exponential kernel (length scale 0.1) with a given norm, within [0, 1]."""
    centres, grid = np.array([0.2, 0.7]), np.linspace(0, 1, 101)
    kernel = partial(gaussian, length_scale=0.1)
    weights = np.array([0.5, 0.8])
    weights *= norm / math.sqrt(weights @ kernel(centres, centres) @ weights)
    return grid, np.clip(kernel(grid, centres) @ weights, 0, 1)


def exact_fit(x, z):
    """`KernelPLS` with the kernel above and lambda 0.1, given labels z at x as a checkpoint gives them."""
    head = KernelPLS("rbf", length_scale=0.1, regularisation=0.1).bind(SearchSpace({"x": Real(0, 1)}))
    data = torch.tensor(np.stack([z, np.ones(len(z))], axis=-1), dtype=torch.float64)
    head.set_extra_state({"x": torch.tensor(np.array(x), dtype=torch.float64)[:, None], "data": data})
    return head


def test_the_bound_of_theorem_1_holds_where_its_assumptions_do():
    grid, truth = one_dimensional()
    points = torch.tensor(grid)[:, None]
    rng, delta, runs, missed, closest = np.random.default_rng(11), 0.2, 30, 0, math.inf
    for _ in range(runs):
        x, z, outside = np.empty(0), np.empty(0), False
        for _ in range(6):
            posterior = exact_fit(x, z).posterior(points)
            bound = TheoremBound(delta, norm=1.0)(posterior, 1.0).numpy()
            error, width = np.abs(truth - posterior.mean.numpy()), bound - posterior.mean.numpy()
            outside |= bool((error > width).any())
            closest = min(closest, float((width / error.clip(1e-9)).min()))
            chosen = rng.choice(np.argsort(bound)[-30:], 5)  # by what was seen, as the theorem allows
            x, z = np.r_[x, grid[chosen]], np.r_[z, rng.random(5) < truth[chosen]]
        missed += outside
    assert missed <= delta * runs
    assert closest < 20  # the bound is wide, but no trivial one


def test_without_exploration_one_good_label_holds_the_search_for_ever():
    grid = torch.linspace(0, 1, 101, dtype=torch.float64)[:, None]
    values = np.sin(9 * grid[:, 0].numpy()) - grid[:, 0].numpy()
    tau = 0.0
    found = {}
    for acquisition in (ClassProbability(), TheoremBound(delta=0.1, norm=1.0)):
        rows = [0, 40]  # a bad one, and a good one that is far from the best
        assert values[0] >= tau >= values[40]
        for _ in range(15):
            posterior = exact_fit(grid[rows, 0], values[rows] <= tau).posterior(grid)
            rows.append(int(acquisition(posterior, 1.0).argmax()))
        found[type(acquisition).__name__] = rows[2:]
    assert set(found["ClassProbability"]) <= {39, 40, 41}
    regret = values[found["ClassProbability"]] - values.min()
    assert regret.min() > 0.5  # the same at each step, so that the sum grows without end
    assert len(set(found["TheoremBound"])) > 10
    assert values[found["TheoremBound"]].min() - values.min() < 0.3


def test_without_noise_one_threshold_cannot_tell_good_points_apart():
    values = {f"{number}": [value] for number, value in enumerate(np.linspace(0, 1, 12))}
    one = list(averages(values, ThresholdLabels(0.5)).values())
    assert np.allclose(one, [1] * 6 + [0] * 6, atol=1e-5)
    graded = np.array(list(averages(values, ValueGradedLabels()).values()))
    assert (np.diff(graded) < -0.01).all()
