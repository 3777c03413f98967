"""FourierLogistic against quadrature, finite differences, closed-form kernels and scikit-learn."""

import math

import numpy as np
import pytest
import torch
from scipy.integrate import quad
from scipy.special import expit, log_expit
from sklearn.gaussian_process.kernels import RBF, Matern
from sklearn.linear_model import LogisticRegression

import deepbore as db
from deepbore import Categorical, FourierLogistic, Real, SearchSpace, ThresholdLabels
from deepbore.classifiers.networks.last_layer import FourierFeatures
from deepbore.classifiers.papers import logistic
from deepbore.classifiers.papers.logistic import LogisticData, curvature, maximise_bound, moments
from deepbore.errors import SettingError
from deepbore.testing import TOY_SPACES, fit, toy_data
from plane import SQUARE
from trainers import trainer_of
from tried import tried

SPACE = TOY_SPACES["continuous"]

ONE = torch.ones((), dtype=torch.float64)


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def both(classifier, points):
    """Mean and standard deviation."""
    posterior = classifier.posterior(points)
    return posterior.mean, posterior.std


def rows(n, h, graded=True, seed=0):
    """Random features, labels that depend on them, and weights."""
    rng = np.random.default_rng(seed)
    phi = rng.normal(size=(n, h))
    chance = expit(2 * phi @ rng.normal(size=h))
    z = chance if graded else (rng.random(n) < chance).astype(float)
    return LogisticData(*(torch.tensor(array) for array in (phi, z, rng.uniform(0.5, 2, n))))


# --- one weight: the posterior by quadrature -------------------------------------------------------------------------


def likelihood(w, data):
    """Log of prod sigmoid(f)^(w z) sigmoid(-f)^(w (1 - z)) for f = phi w, one feature."""
    f = data.phi[:, 0].numpy() * w
    z, weight = data.z.numpy(), data.weight.numpy()
    return float(np.sum(weight * (z * log_expit(f) + (1 - z) * log_expit(-f))))


def integral(log_integrand, power=0):
    return quad(lambda w: w**power * math.exp(log_integrand(w)), -15, 15, points=[0], limit=400)[0]


def converged(data, alpha):
    """q at the best xi for a given alpha."""
    xi = torch.ones(len(data.z), dtype=torch.float64)
    for _ in range(200):
        q = moments(data, xi, alpha * ONE)
        xi = ((data.phi @ q.mean).square() + q.variance).sqrt()
    return q


@pytest.mark.parametrize("graded", [True, False])
def test_the_bound_is_below_the_log_evidence_and_close(graded):
    data, alpha = rows(12, 1, graded), 0.7
    scale = 0.5 * math.log(alpha / (2 * math.pi))
    evidence = math.log(integral(lambda w: scale - 0.5 * alpha * w * w + likelihood(w, data)))
    loose = moments(data, torch.full((12,), 4.0, dtype=torch.float64), alpha * ONE).bound
    best = converged(data, alpha).bound
    assert loose < best < evidence
    assert evidence - best < 0.02 * 12  # nats: what a row's bound loses where |f| is not xi


@pytest.mark.parametrize("graded", [True, False])
def test_the_posterior_is_close_to_the_exact_one_and_narrower(graded):
    data, alpha = rows(12, 1, graded), 0.7
    mass, first, second = (integral(lambda w: likelihood(w, data) - 0.5 * alpha * w * w, power) for power in range(3))
    mean, std = first / mass, math.sqrt(second / mass - (first / mass) ** 2)
    q = converged(data, alpha)
    assert float(q.mean) == pytest.approx(mean, abs=0.15 * std)
    assert 0.8 * std < 1 / float(q.factor) <= std


def test_the_bound_is_the_integral_of_the_rows_bounds():
    data, alpha = rows(7, 1), 1.3
    xi = torch.rand(7, generator=generator(), dtype=torch.float64) * 3 + 0.1

    def log_integrand(w):
        f = data.phi[:, 0] * w
        quadratic = (data.z - 0.5) * f - torch.log(2 * torch.cosh(xi / 2)) - curvature(xi) / 2 * (f * f - xi * xi)
        return float((data.weight * quadratic).sum()) + 0.5 * (math.log(alpha / (2 * math.pi)) - alpha * w * w)

    assert moments(data, xi, alpha * ONE).bound == pytest.approx(math.log(integral(log_integrand)), abs=1e-8)


# --- many weights ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "h", "graded"), [(30, 4, False), (30, 4, True), (15, 60, False), (80, 20, True)])
def test_the_bound_never_falls(n, h, graded):
    data = rows(n, h, graded)
    xi, alpha, reached = torch.full((n,), 3.0, dtype=torch.float64), 5 * ONE, -math.inf
    for _ in range(30):
        found = maximise_bound(data, xi, alpha, rounds=1, tolerance=-math.inf)
        assert found.bound >= reached - 1e-9
        xi, alpha, reached = found.xi, found.alpha, found.bound


def test_the_fixed_point_is_a_maximum_in_xi_and_alpha():
    data = rows(40, 5, graded=False)
    found = maximise_bound(data, torch.ones(40, dtype=torch.float64), ONE, rounds=5000, tolerance=1e-13)
    assert 0.011 < found.alpha < 9.9  # not at the end of its range
    q = moments(data, found.xi, found.alpha)
    assert torch.allclose(found.xi, ((data.phi @ q.mean).square() + q.variance).sqrt(), atol=1e-4)
    covariance = torch.cholesky_inverse(q.factor)
    expected_alpha = len(q.mean) / (q.mean.square().sum() + covariance.trace())  # EM's M step has the same fixed point
    assert torch.allclose(found.alpha, expected_alpha, rtol=1e-4)
    best = moments(data, found.xi, found.alpha).bound
    for factor in (0.9, 1.1):
        assert moments(data, found.xi, found.alpha * factor).bound < best
        for row in (0, 17):
            moved = found.xi.clone()
            moved[row] *= factor
            assert moments(data, moved, found.alpha).bound < best


def test_fewer_rows_than_features_give_the_same_in_fewer_features():
    data = rows(12, 50)
    small, xi = data.reduced(), torch.rand(12, generator=generator(), dtype=torch.float64) + 0.5
    assert small.phi.shape == (12, 12)
    one, other = moments(data, xi, 0.3 * ONE), moments(small, xi, 0.3 * ONE)
    assert one.bound == pytest.approx(other.bound)
    assert torch.allclose(one.variance, other.variance)
    assert torch.allclose(data.phi @ one.mean, small.phi @ other.mean)


def test_a_row_of_weight_two_counts_twice():
    data = rows(20, 6)
    weight = torch.ones(20, dtype=torch.float64)
    weight[3] = 2
    again = torch.tensor([*range(20), 3])
    found = []
    for chosen, weights in ((torch.arange(20), weight), (again, torch.ones(21, dtype=torch.float64))):
        some = LogisticData(data.phi[chosen], data.z[chosen], weights)
        maximum = maximise_bound(some, torch.ones_like(weights), ONE, rounds=50)
        found.append((moments(some, maximum.xi, maximum.alpha).mean, torch.tensor(maximum.bound)))
    for one, other in zip(*found, strict=True):
        assert torch.allclose(one, other, rtol=1e-5)


@pytest.mark.parametrize(("spectrum", "kernel"), [("rbf", RBF(0.7)), ("matern", Matern(0.7, nu=2.5))])
def test_inner_products_of_many_features_are_the_kernel(spectrum, kernel):
    waves = FourierFeatures(3, 40_000, generator(), spectrum).double()
    waves.length_scale.fill_(0.7)
    x = torch.rand(15, 3, generator=generator(1), dtype=torch.float64)
    phi = waves(x)
    assert np.abs((phi @ phi.mT).numpy() - kernel(x.numpy())).max() < 5 / math.sqrt(40_000)


# --- the classifier --------------------------------------------------------------------------------------------------


def test_mean_logits_rank_points_as_the_most_probable_ones_do():
    data = toy_data(SPACE, 200, ThresholdLabels(0.3))
    classifier, batch = fit(FourierLogistic(features=40, length_scale=1.5), data, epochs=5), data.labelled()
    phi = classifier._phi(batch.points).numpy()
    model = LogisticRegression(C=1 / float(classifier.alpha), fit_intercept=False, tol=1e-8, max_iter=5000)
    model.fit(phi, batch.z[:, 0].long())
    most_probable = model.decision_function(classifier._phi(SPACE.points.sample(100, generator())))
    ours = classifier.posterior(SPACE.points.sample(100, generator())).mean.numpy()
    assert np.corrcoef(ours, most_probable)[0, 1] > 0.995


def test_the_standard_deviation_is_that_of_the_laplace_approximation_at_the_same_curvature():
    data = toy_data(SPACE, 30, ThresholdLabels(0.3))
    classifier, batch = fit(FourierLogistic(features=25, length_scale=1.5), data, epochs=40), data.labelled()
    phi, points = classifier._phi(batch.points).numpy(), SPACE.points.sample(9, generator(1))
    mean, std = both(classifier, batch.points)
    xi = np.sqrt(mean.numpy() ** 2 + std.numpy() ** 2)
    precision = float(classifier.alpha) * np.eye(26) + (phi.T * np.tanh(xi / 2) / (2 * xi)) @ phi
    there = classifier._phi(points).numpy()
    expected = np.sqrt(np.einsum("nh,hk,nk->n", there, np.linalg.inv(precision), there))
    assert np.allclose(classifier.posterior(points).std, expected, rtol=0.01)


def test_probabilities_are_integrals_over_the_posterior():
    classifier = fit(FourierLogistic(), toy_data(SPACE, 40, ThresholdLabels(0.3)), epochs=3)
    classifier.root *= 3
    points = SPACE.points.sample(20, generator())
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    mean, std = (moment.numpy()[:, None] for moment in both(classifier, points))
    exact = expit(mean + std * nodes) @ weights / weights.sum()
    assert np.abs(classifier.probability(points).numpy() - exact).max() < 0.02  # MacKay, 1992


def test_samples_are_functions_with_the_posteriors_mean_and_covariance():
    classifier = fit(FourierLogistic(features=30), toy_data(SPACE, 40, ThresholdLabels(0.3)), epochs=3)
    posterior = classifier.posterior(SPACE.points.sample(6, generator(1)))
    phi, root = classifier._phi(SPACE.points.sample(6, generator(1))).numpy(), classifier.root.numpy()
    expected = phi @ root @ root.T @ phi.T
    assert np.allclose(posterior.covariance(), expected)
    samples = posterior.sample(40_000, generator(2)).numpy()
    assert np.abs(samples.mean(0) - posterior.mean.numpy()).max() < 0.03 * np.sqrt(expected.max())
    assert np.abs(np.cov(samples.T) - expected).max() < 0.03 * expected.max()
    wide = classifier.posterior(SPACE.points.sample(20_000, generator(3))).sample(2, generator(2))  # no n x n matrix
    assert wide.shape == (2, 20_000)


@pytest.mark.parametrize(("frequency", "longer"), [(1.0, True), (5.0, False)])
def test_the_length_scale_follows_the_data(frequency, longer):
    space = SearchSpace({"x": Real(0, 1)})
    data = toy_data(space, 0, ThresholdLabels(0.5))
    x = np.random.default_rng(0).random(120)
    data.observations.add({"x": x}, np.cos(frequency * np.pi * x))
    classifier = fit(FourierLogistic(), data, epochs=5)
    assert (classifier.waves.length_scale > 0.45) == longer
    assert fit(FourierLogistic(length_scale=0.3), data, epochs=2).waves.length_scale == pytest.approx(0.3)


def test_uncertainty_grows_away_from_the_data():
    space = SearchSpace({"x": Real(0, 1)})
    data = toy_data(space, 0, ThresholdLabels(0.5))
    data.observations.add({"x": np.linspace(0, 0.2, 30)}, np.linspace(0, 1, 30))
    points = torch.tensor([[0.1], [0.4], [1.0]], dtype=torch.float64)
    std = fit(FourierLogistic(length_scale=0.4), data, epochs=3).posterior(points).std
    assert std[0] < std[1] < std[2]


@pytest.mark.slow
def test_warm_starts_reach_what_many_rounds_reach():
    data = toy_data(SPACE, 50, ThresholdLabels(0.3))
    warm = trainer_of(FourierLogistic(length_scale=1.5, rounds=3), data, 40).callback_metrics["loss"]
    once = trainer_of(FourierLogistic(length_scale=1.5, rounds=3), data, 1).callback_metrics["loss"]
    long = trainer_of(FourierLogistic(length_scale=1.5, rounds=400), data, 1).callback_metrics["loss"]
    assert warm <= long + 0.01 / 50  # the tolerance
    assert once > long + 0.5 / 50


def test_an_iteration_learns_from_a_coreset_and_counts_as_one_step():
    trainer = trainer_of(FourierLogistic(rows=50), toy_data(SPACE, 300, ThresholdLabels(0.3)), 4)
    assert trainer.callback_metrics["rows"] == 50
    assert trainer.global_step == 4


@pytest.mark.parametrize("n", [2, 60])
@pytest.mark.parametrize(
    "space",
    [
        SearchSpace({"c": Categorical([str(i) for i in range(1000)]), "x": Real(0, 1)}),
        SearchSpace({f"x{i}": Real(0, 1) for i in range(200)}),
    ],
    ids=["levels", "wide"],
)
def test_large_spaces_leave_finite_scores(space, n):
    classifier = fit(FourierLogistic(), toy_data(space, n, ThresholdLabels(0.3)), epochs=2)
    for moment in both(classifier, space.points.sample(5, generator())):
        assert moment.isfinite().all()


@pytest.mark.parametrize(
    ("name", "least"), [("features", ">= 1"), ("length_scale", "> 0"), ("rows", ">= 1"), ("rounds", ">= 1")]
)
def test_bad_settings_are_refused(name, least):
    with pytest.raises(SettingError, match=f"{name} {least} must hold"):
        FourierLogistic(**{name: 0})


# regression: this was wrong once
@pytest.mark.slow
def test_a_fourier_head_at_the_end_of_its_length_scales_stops_climbing(monkeypatch):
    tries = []
    original = logistic.maximise_bound
    monkeypatch.setattr(logistic, "maximise_bound", lambda *given: tries.append(1) or original(*given))
    study = tried(
        db.Study(SQUARE, seed=0, n_initial=10, classifier=db.FourierLogistic()), 10, lambda p: p["x"] + p["y"]
    )
    most = 0
    for _ in range(6):
        tries.clear()
        tried(study, 1, lambda p: p["x"] + p["y"])
        most = max(most, len(tries))
    assert most <= 25
