"""GPClassifier against brute-force integrals, a generic optimiser of the same bound, and scikit-learn's kernels."""

import copy
import io

import numpy as np
import pytest
import torch
from scipy.integrate import quad
from scipy.optimize import minimize
from scipy.special import log_ndtr, ndtr
from scipy.stats import norm
from sklearn.gaussian_process.kernels import Matern

from deepbore import Categorical, Condition, Real, SearchSpace, Study, ThresholdLabels
from deepbore.acquisition import ExpectedProbability, LogExpectedImprovement, UpperConfidenceBound
from deepbore.classifiers import Calibrated, GPClassifier
from deepbore.classifiers.papers.gp_classifier import ProbitPosterior
from deepbore.classifiers.papers.variational import VariationalGP
from deepbore.data.observations import Observations
from deepbore.errors import SettingError
from deepbore.labels import LabelledObservations
from deepbore.testing import TOY_SPACES, fit, toy_data
from plane import LINE, SQUARE
from tried import tried

SPACE = TOY_SPACES["continuous"]

X, Z, WEIGHT = np.array([0.1, 0.3, 0.8]), np.array([1.0, 0.4, 0.0]), np.array([1.0, 2.0, 1.5])

LENGTH, AMPLITUDE, MEAN = 0.4, 3.0, -0.5


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def both(posterior):
    """Mean and variance of GPyTorch's, or mean and standard deviation of ours."""
    return posterior.mean, posterior.variance if hasattr(posterior, "variance") else posterior.std


def column(x):
    return torch.tensor(x, dtype=torch.float64).reshape(-1, 1)


def solved(x=X, z=Z, weight=WEIGHT, inducing=None):
    """q for given hyperparameters, after 15 natural gradient steps, and the bound."""
    points = column(x if inducing is None else inducing)
    gp = VariationalGP(torch.tensor([0]), points)
    gp.theta.data.copy_(torch.tensor([np.log(LENGTH), np.log(AMPLITUDE), MEAN]))
    data = column(x), torch.tensor(z), torch.tensor(weight)
    natural = gp.restart(points)
    for _ in range(15):
        gp.zero_grad()
        (-gp.elbo(*data)).backward()
        natural.step()
    return gp, float(gp.elbo(*data).detach())


def prior(x):
    return AMPLITUDE * Matern(LENGTH, nu=2.5)(x[:, None])


def log_likelihood(f):
    return WEIGHT * (Z * log_ndtr(f) + (1 - Z) * log_ndtr(-f))


@pytest.mark.parametrize("d", [1, 2, 9])
def test_hyperparameters_begin_at_the_most_likely_of_their_prior_whose_lengths_grow_with_the_dimension(d):
    gp = VariationalGP(torch.arange(d), torch.rand(3, d, generator=generator(), dtype=torch.float64))
    assert gp.theta[:d].detach().exp().tolist() == pytest.approx(
        [np.exp(-0.8) * np.sqrt(d)] * d
    )  # as the distances in a cube do
    assert gp.theta[d:].tolist() == [1.5, 0.0]
    gp.log_prior().backward()
    assert torch.equal(gp.theta.grad, torch.zeros(d + 2, dtype=torch.float64))


# --- q ---------------------------------------------------------------------------------------------------------------


def bound_by_hand(mean, root):
    """E_q[log likelihood] - KL(q, prior) of q = N(mean, root root^T) over f at X."""
    covariance, kernel = root @ root.T, prior(X)
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    f = mean + np.sqrt(np.diag(covariance)) * nodes[:, None]
    expected = (weights / weights.sum()) @ log_likelihood(f)
    away = mean - MEAN
    trace = np.trace(np.linalg.solve(kernel, covariance)) + away @ np.linalg.solve(kernel, away)
    volumes = np.linalg.slogdet(kernel)[1] - np.linalg.slogdet(covariance)[1]
    return expected.sum() - 0.5 * (trace - 3 + volumes)


def best_by_hand():
    """Mean and covariance of the best Gaussian, and its bound, by BFGS on numerical gradients."""
    lower = np.tril_indices(3)

    def unpack(v):
        root = np.zeros((3, 3))
        root[lower] = v[3:]
        return v[:3], root

    start = np.concatenate([np.full(3, MEAN), np.linalg.cholesky(prior(X))[lower]])
    found = minimize(lambda v: -bound_by_hand(*unpack(v)), start, method="BFGS", options={"gtol": 1e-6})
    mean, root = unpack(found.x)
    return mean, root @ root.T, -found.fun


def test_q_is_the_gaussian_of_the_greatest_bound():
    gp, bound = solved()
    mean, variance = both(gp.marginals(column(X)))
    best_mean, best_covariance, best = best_by_hand()
    assert bound == pytest.approx(best, abs=1e-4)
    assert np.allclose(mean.detach(), best_mean, atol=1e-3)
    assert np.allclose(variance.detach(), np.diag(best_covariance), atol=1e-3)


@pytest.mark.slow
def test_predictions_are_close_to_the_exact_posteriors():
    """On a grid over f at the three points; f elsewhere is Gaussian given those."""
    axis = np.linspace(-9, 8, 120)
    f = np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), -1).reshape(-1, 3)
    kernel = prior(X)
    quadratic = np.einsum("gi,ij,gj->g", f - MEAN, np.linalg.inv(kernel), f - MEAN)
    log_prior = -0.5 * (quadratic + np.linalg.slogdet(2 * np.pi * kernel)[1])
    mass = np.exp(log_prior + log_likelihood(f).sum(-1)) * (axis[1] - axis[0]) ** 3
    weights = mass / mass.sum()

    there = np.array([0.0, 0.2, 0.55, 1.0])
    gain = prior(np.concatenate([X, there]))[3:, :3] @ np.linalg.inv(kernel)
    conditional_mean = MEAN + (f - MEAN) @ gain.T
    conditional_variance = AMPLITUDE - np.einsum("pi,ij,pj->p", gain, kernel, gain)
    exact_mean = weights @ conditional_mean
    exact_variance = conditional_variance + weights @ (conditional_mean - exact_mean) ** 2

    gp, bound = solved()
    mean, variance = (moment.detach().numpy() for moment in both(gp.marginals(column(there))))
    assert bound < np.log(mass.sum()) < bound + 0.05
    assert np.allclose(mean, exact_mean, atol=0.05 * np.sqrt(AMPLITUDE))  # a Gaussian's mean for a skew posterior's
    assert np.allclose(variance, exact_variance, rtol=0.1)


def test_the_covariance_between_points_is_that_of_the_process_given_q():
    mean, covariance, _ = best_by_hand()
    there = np.array([0.0, 0.2, 0.55, 1.0])
    gain = prior(np.concatenate([X, there]))[3:, :3] @ np.linalg.inv(prior(X))
    expected = prior(there) - gain @ (prior(X) - covariance) @ gain.T
    posterior = ProbitPosterior(solved()[0], column(there))
    assert np.allclose(posterior.covariance().detach(), expected, atol=2e-3)
    assert torch.allclose(posterior.covariance().diagonal(), posterior.std.square(), atol=1e-8)
    assert np.allclose(posterior.mean.detach(), MEAN + gain @ (mean - MEAN), atol=2e-3)
    samples = posterior.sample(20_000, generator()).detach().numpy()
    assert np.abs(np.cov(samples.T) - expected).max() < 0.05 * AMPLITUDE


def test_inducing_points_beyond_the_data_change_nothing():
    there = column(np.linspace(0, 1, 7))
    one, other = (both(solved(inducing=points)[0].marginals(there)) for points in (X, np.array([*X, 0.0, 0.55, 1.0])))
    for ours, theirs in zip(one, other, strict=True):
        assert torch.allclose(ours, theirs, atol=1e-4)


def test_a_row_of_weight_two_counts_twice_and_half_a_label_is_half_of_each():
    there = column(np.linspace(0, 1, 7))
    plain, _ = solved(X, np.array([1.0, 0.5, 0.0]), np.array([1.0, 2.0, 1.0]))
    split, _ = solved(np.array([0.1, 0.3, 0.3, 0.8]), np.array([1.0, 1.0, 0.0, 0.0]), np.ones(4), inducing=X)
    for ours, theirs in zip(both(plain.marginals(there)), both(split.marginals(there)), strict=True):
        assert torch.allclose(ours, theirs, atol=1e-6)


# --- the kernel ------------------------------------------------------------------------------------------------------


def test_a_parameter_has_one_length_scale_and_categories_are_one_apart():
    space = SearchSpace({"c": Categorical(["a", "b", "c"]), "x": Real(0, 1, when=Condition("c", "a"))})
    gp = GPClassifier().bind(space).gp
    assert len(gp.theta) == 4
    gp.theta.data.copy_(torch.tensor([0.5, 2.0, AMPLITUDE, 0.0]).log())
    configurations = [{"c": "a", "x": 0.1}, {"c": "a", "x": 0.5}, {"c": "b"}, {"c": "c"}]
    ours = gp(GPClassifier().bind(space).coordinates(space.encode(configurations)), prior=True).covariance_matrix
    # c at length scale 0.5, any two 1 apart; x at 2, and its mark 1 where active
    scaled = [[1, 0, 0, 0.1, 1], [1, 0, 0, 0.5, 1], [0, 1, 0, 0, 0], [0, 0, 1, 0, 0]]
    scaled = np.array(scaled) * np.array([2 / np.sqrt(2)] * 3 + [0.5] * 2)
    assert np.allclose(ours.detach(), AMPLITUDE * Matern(1.0, nu=2.5)(scaled), atol=1e-6)


def test_the_value_of_an_inactive_parameter_does_not_count():
    space = TOY_SPACES["mixed"]
    classifier = fit(GPClassifier(), toy_data(space, 30, ThresholdLabels(0.3)), epochs=1)
    points = space.encode([{"lr": 0.01, "units": 64, "optimizer": "adam"}]).repeat(2, 1)
    points[1, space.names.index("momentum")] = 0.7
    one, other = classifier.posterior(points).mean.detach()
    assert torch.allclose(one, other, rtol=1e-9)


@pytest.mark.slow
def test_hyperparameters_learn_which_parameters_matter():
    space = SearchSpace({"relevant": Real(0, 1), "idle": Real(0, 1)})
    data = toy_data(space, 0, ThresholdLabels(0.5))
    x, y = np.random.default_rng(0).random((2, 60))
    data.observations.add({"relevant": x, "idle": y}, np.sin(9 * x))
    relevant, idle = fit(GPClassifier(learning_rate=0.2), data, epochs=6).gp.theta[:2].detach().exp()
    assert idle > 3 * relevant


# --- the classifier --------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_probabilities_are_integrals_over_the_posterior():
    classifier = fit(GPClassifier(), toy_data(SPACE, 40, ThresholdLabels(0.3)), epochs=2)
    points = SPACE.points.sample(20, generator())
    nodes, weights = np.polynomial.hermite_e.hermegauss(120)
    with torch.no_grad():
        mean, std = (moment.numpy()[:, None] for moment in both(classifier.posterior(points)))
        ours = classifier.probability(points).numpy()
    assert np.allclose(ours, ndtr(mean + std * nodes) @ weights / weights.sum(), atol=1e-6)


@pytest.mark.slow
def test_acquisitions_of_a_probit_are_integrals_over_its_posterior():
    """B6 of the audit: version 0.1 put probits into the formulas of logits."""
    classifier = fit(GPClassifier(), toy_data(SPACE, 40, ThresholdLabels(0.3)), epochs=2)
    with torch.no_grad():
        posterior = classifier.posterior(SPACE.points.sample(12, generator()))
        exact = [
            quad(lambda f, m=m, s=s: ndtr(f) * norm.pdf(f, m, s), m - 9 * s, m + 9 * s, epsabs=1e-11)[0]
            for m, s in zip(*(moment.tolist() for moment in both(posterior)), strict=True)
        ]
        expected = ExpectedProbability("probit")
        assert np.allclose(ndtr(expected(posterior, 1.0)), exact, atol=1e-8)
        assert np.allclose(expected.log_density(posterior, 1.0).exp(), exact, atol=1e-8)
        assert np.allclose(posterior.probability, exact, atol=1e-8)
        bound = UpperConfidenceBound(2.0)
        at_bound = ndtr(posterior.mean + 2 * posterior.std)
        assert np.allclose(bound.log_density(posterior, 1.0).exp(), at_bound)
    with pytest.raises(SettingError, match="LogExpectedImprovement"):
        LogExpectedImprovement().check(classifier)


@pytest.mark.slow
def test_uncertainty_grows_away_from_the_data():
    data = toy_data(LINE, 0, ThresholdLabels(0.5))
    data.observations.add({"x": np.linspace(0, 0.2, 30)}, np.linspace(0, 1, 30))
    points = torch.tensor([[0.1], [0.4], [1.0]], dtype=torch.float64)
    std = fit(GPClassifier(), data, epochs=2).posterior(points).std
    assert std[0] < std[1] < std[2]


@pytest.mark.slow
def test_the_cost_has_a_cap_and_an_iteration_counts_as_one_step():
    classifier = fit(GPClassifier(inducing=20), toy_data(SPACE, 1100, ThresholdLabels(0.3)), epochs=2)
    assert classifier.trainer.callback_metrics["rows"] == 1024
    assert classifier.trainer.callback_metrics["auroc"] > 0.95
    assert classifier.trainer.global_step == 2


@pytest.mark.slow
@torch.no_grad()
def test_a_checkpoint_of_tensors_restores_it():
    points = SPACE.points.sample(9, generator())
    fitted = fit(GPClassifier(), toy_data(SPACE, 100, ThresholdLabels(0.3)), epochs=2)
    other = fit(GPClassifier(), toy_data(SPACE, 20, ThresholdLabels(0.3)), epochs=1)
    assert not torch.allclose(other.posterior(points).mean, fitted.posterior(points).mean)
    file = io.BytesIO()
    torch.save(fitted.state_dict(), file)
    file.seek(0)
    other.load_state_dict(torch.load(file, weights_only=True))
    for ours, theirs in zip(both(other.posterior(points)), both(fitted.posterior(points)), strict=True):
        assert torch.equal(ours, theirs)


@pytest.mark.slow
def test_evaluation_mode_changes_nothing_neither_before_nor_after_more_training():
    """In it GPyTorch keeps factors of matrices, which must not outlive the parameters."""
    data, points = toy_data(SPACE, 80, ThresholdLabels(0.3)), SPACE.points.sample(100, generator())
    one, other = fit(GPClassifier(), data, epochs=1), fit(GPClassifier(), data, epochs=1).eval()
    for _ in range(2):
        for training, evaluation in zip(both(one.posterior(points)), both(other.posterior(points)), strict=True):
            assert torch.allclose(training, evaluation, atol=1e-6)
        one, other = fit(one, data, epochs=1), fit(other, data, epochs=1)


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
    classifier = fit(GPClassifier(), toy_data(space, n, ThresholdLabels(0.3)), epochs=1)
    for moment in both(classifier.posterior(space.points.sample(5, generator()))):
        assert moment.isfinite().all()


@pytest.mark.slow
def test_many_points_that_are_all_but_equal_with_contradictory_values_are_learned():
    data = toy_data(LINE, 0, ThresholdLabels(0.4))
    data.observations.add({"x": 0.5 + 1e-9 * np.arange(40)}, np.random.default_rng(0).random(40))
    classifier = fit(GPClassifier(), data, epochs=3)
    assert float(classifier.probability(column([0.5])).detach()) == pytest.approx(0.4, abs=0.08)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"inducing": 0}, "inducing >= 1"),
        ({"steps": 5}, "steps >= 6"),
        ({"learning_rate": -1.0}, "learning_rate > 0"),
    ],
)
def test_bad_settings_are_refused(settings, says):
    with pytest.raises(SettingError, match=says):
        GPClassifier(**settings)


def test_a_joint_covariance_of_many_points_is_that_of_each_two():
    space = TOY_SPACES["continuous"]
    classifier = fit(GPClassifier(inducing=16), toy_data(space, 30), epochs=1)
    points = space.points.sample(40, torch.Generator().manual_seed(3))  # more than inducing ones
    covariance = classifier.posterior(points).covariance()
    assert torch.linalg.eigvalsh(covariance).min() > -1e-8
    for i in (1, 20, 39):
        of_two = classifier.posterior(points[[0, i]]).covariance()
        assert torch.allclose(covariance[[0, i]][:, [0, i]], of_two)


TENTHS = {"x": [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]}


# regression: each of these was wrong once
def test_a_gp_takes_steps_enough_to_learn_its_hyperparameters():
    with pytest.raises(SettingError, match="steps"):
        GPClassifier(steps=5)
    observations = Observations(LINE)
    observations.add(TENTHS, [0.1, 0.4, 0.2, 0.6, 0.9, 0.7])
    one, other = (GPClassifier(steps=6).bind(LINE) for _ in range(2))
    fit(one, LabelledObservations(observations), epochs=3)
    assert not torch.equal(one.gp.theta, other.gp.theta)


@pytest.mark.slow
@pytest.mark.parametrize("head", [GPClassifier(), Calibrated(GPClassifier(), min_per_class=2)])
def test_a_study_with_a_gp_is_copied_after_a_prediction(head):
    study = tried(Study(SQUARE, classifier=head, seed=0, n_initial=6), 9)
    study.classifier.probability(SQUARE.points.sobol(3, seed=0))
    assert len(copy.deepcopy(study).trials) == 9
