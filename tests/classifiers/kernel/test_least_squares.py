"""KernelPLS against dense solves, scikit-learn, finite differences and Theorem 1 by hand."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.optimize import check_grad
from sklearn.gaussian_process import GaussianProcessRegressor, kernels
from sklearn.gaussian_process.kernels import RBF, Matern
from sklearn.kernel_ridge import KernelRidge

from deepbore import Budget, KernelPLS, Real, SearchSpace, ThresholdLabels, ValueGradedLabels
from deepbore.classifiers import Relaxed
from deepbore.classifiers.wrappers import AtBudgets
from deepbore.errors import SettingError
from deepbore.labels import LabelledBatch
from deepbore.testing import TOY_SPACES, fit, toy_data

SPACE = TOY_SPACES["continuous"]

LENGTH, LAMBDA = 0.4, 0.05


def fixed(kernel="rbf", n=30, labels=None):
    """A fit with given length scale and lambda, and its data."""
    data = toy_data(SPACE, n, labels or ThresholdLabels(0.3))
    return fit(KernelPLS(kernel, length_scale=LENGTH, regularisation=LAMBDA), data, epochs=1), data.labelled()


def moments(classifier, points):
    posterior = classifier.posterior(points)
    return posterior.mean, posterior.std


def test_the_mean_is_kernel_ridge_regression():
    classifier, batch = fixed()
    points = SPACE.points.sample(20, torch.Generator().manual_seed(1))
    ridge = KernelRidge(alpha=LAMBDA, kernel="rbf", gamma=1 / (2 * LENGTH**2)).fit(batch.points, batch.z[:, 0])
    assert np.allclose(classifier.posterior(points).mean, ridge.predict(points), atol=1e-5)


@pytest.mark.parametrize(("kernel", "theirs"), [("rbf", RBF(LENGTH)), ("matern", Matern(LENGTH, nu=2.5))])
def test_mean_and_deviation_are_a_gaussian_processs(kernel, theirs):
    classifier, batch = fixed(kernel)
    points = SPACE.points.sample(20, torch.Generator().manual_seed(1))
    process = GaussianProcessRegressor(theirs, alpha=LAMBDA, optimizer=None).fit(batch.points, batch.z[:, 0])
    for ours, expected in zip(moments(classifier, points), process.predict(points, return_std=True), strict=True):
        assert np.allclose(ours, expected, atol=1e-5)


def test_the_evidence_and_its_gradient_are_right():
    classifier = KernelPLS("matern")
    data = toy_data(SPACE, 25, ValueGradedLabels())
    fit(classifier, data, epochs=1)
    batch = data.labelled()
    theta = classifier.theta.numpy() + 0.3
    evidence = classifier.negative_evidence()
    value, gradient = lambda t: evidence(t)[0], lambda t: evidence(t)[1]
    assert check_grad(value, gradient, theta) < 1e-4 * np.abs(gradient(theta)).max()
    ours = []
    theirs = []
    for shift in (0.0, 0.5):  # differences, in which constants and priors of what stays fixed drop out
        moved = theta.copy()
        moved[0] += shift
        score = (moved - classifier._prior[:, 0]) / classifier._prior[:, 1]
        ours.append(value(moved) - score @ score / 2)
        kernel = Matern(np.exp(moved[:3]), nu=2.5) * math.exp(moved[3])
        process = GaussianProcessRegressor(kernel, alpha=math.exp(moved[4]), optimizer=None)
        process.fit(batch.points, batch.z[:, 0])
        theirs.append(-process.log_marginal_likelihood_value_)
    assert ours[1] - ours[0] == pytest.approx(theirs[1] - theirs[0], rel=1e-4)


def test_hyperparameters_learn_which_parameters_matter():
    space = SearchSpace({"relevant": Real(0, 1), "idle": Real(0, 1)})
    data = toy_data(space, 0, ValueGradedLabels())
    rng = np.random.default_rng(0)
    x, y = rng.random((2, 60))
    data.observations.add({"relevant": x, "idle": y}, np.sin(9 * x))
    relevant, idle = fit(KernelPLS(), data, epochs=5).theta[:2].exp()
    assert idle > 5 * relevant


def test_beta_of_theorem_1_by_hand_for_three_points():
    classifier, batch = fixed(n=3)
    squared = ((batch.points[:, None] - batch.points) ** 2).sum(-1).numpy()
    determinant = np.linalg.det(np.eye(3) + np.exp(-squared / (2 * LENGTH**2)) / LAMBDA)
    expected = 2.0 + math.sqrt(2 / LAMBDA * math.log(math.sqrt(determinant) / 0.1))
    beta = classifier.posterior(batch.points).beta(delta=0.1, norm=2.0)
    assert float(beta) == pytest.approx(expected, rel=1e-5)


def test_a_weight_of_two_is_two_rows():
    classifier, batch = fixed(n=10)
    weight = torch.ones(10)
    weight[4] = 2
    twice = torch.tensor([*range(10), 4])
    points = SPACE.points.sample(5, torch.Generator().manual_seed(1))
    predictions, betas = [], []
    for rows, weights in ((torch.arange(10), weight), (twice, torch.ones(11))):
        x, z = classifier.coordinates(batch.points[rows]), batch.z[rows].mean(-1)
        classifier._remember(x, torch.stack([z.double(), weights.double()], -1))
        predictions.append(classifier.posterior(points).mean)
        betas.append(float(classifier.posterior(points).beta(delta=0.1, norm=1.0)))
    assert torch.allclose(*predictions, atol=1e-6)
    assert betas[0] == pytest.approx(betas[1], rel=1e-5)


def test_samples_have_the_posterior_mean_and_covariance():
    classifier, batch = fixed()
    points = SPACE.points.sample(6, torch.Generator().manual_seed(1))
    posterior = classifier.posterior(points)
    samples = posterior.sample(40_000, torch.Generator().manual_seed(2)).numpy()
    process = GaussianProcessRegressor(RBF(LENGTH), alpha=LAMBDA, optimizer=None).fit(batch.points, batch.z[:, 0])
    mean, covariance = process.predict(points, return_cov=True)
    assert np.allclose(samples.mean(0), mean, atol=0.02)
    assert np.allclose(np.cov(samples.T), covariance, atol=0.02)
    assert np.allclose(posterior.covariance(), covariance, atol=1e-5)
    assert np.abs(covariance - np.diag(np.diag(covariance))).max() > 0.1


def test_uncertainty_grows_away_from_the_data():
    space = SearchSpace({"x": Real(0, 1)})
    data = toy_data(space, 0)
    data.observations.add({"x": [0.0, 0.05, 0.1]}, [1.0, 2.0, 3.0])
    points = torch.tensor([[0.05], [0.3], [1.0]], dtype=torch.float64)
    std = fit(KernelPLS(), data, epochs=2).posterior(points).std
    assert std[0] < std[1] < std[2]


def learned(chance, classifier=None, n=60):
    """A classifier after n values of a slope with so much chance, and what it learned from."""
    data = toy_data(SPACE, 0, ValueGradedLabels())
    configurations = SPACE.decode(SPACE.points.sample(n, torch.Generator().manual_seed(4)))
    x = np.array([list(each.values()) for each in configurations])
    values = x[:, 0] + chance * np.random.default_rng(3).normal(size=n)
    data.observations.add({name: x[:, i] for i, name in enumerate(SPACE.names)}, values)
    return fit(classifier or KernelPLS(), data, epochs=3), data.labelled()


def share_of_chance(classifier, batch):
    return float(classifier.theta[-1].exp() / batch.z.var())


def test_improvement_is_over_the_best_label_where_values_follow_from_the_points():
    classifier, batch = learned(chance=0.0)
    assert share_of_chance(classifier, batch) < 0.1
    assert float(classifier.best_label) == batch.best == 1


def test_improvement_is_over_the_best_expected_label_where_most_is_chance():
    classifier, batch = learned(chance=3.0)
    assert share_of_chance(classifier, batch) > 0.5
    expected = classifier.posterior(batch.points).mean.max()
    assert float(classifier.best_label) == pytest.approx(float(expected), abs=1e-6)
    assert float(expected) < batch.best


@pytest.mark.parametrize("noisy", [False, True])
def test_noise_that_short_length_scales_may_explain_is_taken_for_noise_where_it_is_known_of(noisy):
    classifier, batch = learned(chance=1.0, classifier=KernelPLS(noisy=noisy), n=20)
    assert (share_of_chance(classifier, batch) > 0.5) is noisy


def test_what_is_expected_beyond_the_best_label_does_not_lift_it():
    classifier, _ = learned(chance=3.0)
    classifier.keep_best(0.01)
    assert float(classifier.best_label) == pytest.approx(0.01)


@pytest.mark.filterwarnings("error")
def test_of_one_row_nobody_knows_how_much_is_chance():
    classifier, batch = learned(chance=0.0)
    classifier.learn(batch.take(torch.tensor([3])))
    classifier.keep_best(1.0)
    assert float(classifier.best_label) == 1


@pytest.mark.parametrize("wrapped", [lambda: Relaxed(KernelPLS()), lambda: AtBudgets(KernelPLS(), Budget("n", 1, 9))])
def test_a_classifier_of_a_wrapped_one_measures_improvement_as_that_does(wrapped):
    classifier, batch = learned(chance=3.0, classifier=wrapped())
    assert float(classifier.best_label) == float(classifier.base.best_label) < batch.best


def test_improvement_may_be_over_a_row_of_this_run_that_just_keeps_its_constraints():
    grades = torch.tensor([[1.0], [0.5], [0.499], [math.nan]])
    batch = LabelledBatch(torch.zeros(4, 1), torch.ones(4, 1), torch.ones(4), constraints=grades)
    assert batch.may_be_best.tolist() == [True, True, False, True]  # of the last nothing is known
    failed = torch.tensor([False, False, False, True])
    assert replace(batch, failed=failed).may_be_best.tolist() == [True, True, False, False]
    assert replace(batch, n_earlier=1).may_be_best.tolist() == [False, True, False, True]
    assert replace(batch, failed=failed, n_earlier=2).may_be_best.tolist() == [False, False, True, True]  # none is


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"kernel": "linear"}, "kernel must be one of"),
        ({"regularisation": 0}, "regularisation > 0"),
        ({"length_scale": -1}, "length_scale > 0"),
        ({"rows": 0}, "rows >= 1"),
        ({"rows": 2.5}, "rows must be a whole number"),
    ],
)
def test_bad_settings_are_refused(settings, says):
    with pytest.raises(SettingError, match=says):
        KernelPLS(**settings)


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


def test_explained_is_the_share_of_the_better_half_that_the_other_rows_forecast():
    space = SearchSpace({"x": Real(0, 1)})
    model, points = KernelPLS(additive=False), space.points.sobol(12, seed=2)
    z = (6 * points[:, :1]).sin() / 2 + 0.5
    model.bind(space)
    model.learn(LabelledBatch(points, z, torch.ones(len(z)), best=float(z.max())))
    residuals = []
    for row in range(len(z)):  # each row by a model of the others with the same hyperparameters
        kept = torch.arange(len(z)) != row
        covariance = model._covariance(model.theta)
        inverse = torch.linalg.inv(covariance[kept][:, kept])
        residuals.append(z[row, 0] - covariance[row, kept] @ inverse @ z[kept, 0])
    better = z[:, 0] >= z[:, 0].median()
    error = torch.stack(residuals)[better].square().mean()
    assert model.explained == pytest.approx(float(1 - error / z[better, 0].var(correction=0)), rel=1e-6)
