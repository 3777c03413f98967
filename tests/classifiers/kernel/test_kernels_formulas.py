"""Kernels, priors and posteriors against formulas, scikit-learn and SciPy."""

import math

import numpy as np
import pytest
import torch
from scipy.optimize import approx_fprime
from scipy.stats import multivariate_normal
from sklearn.gaussian_process import kernels as theirs

from deepbore import Integer, KernelPLS, Real, SearchSpace
from deepbore.classifiers.kernel.kernels import (
    KERNELS,
    PartlyAdditiveKernel,
    ScaledKernel,
    correlated,
    penalty,
    prior_of,
)
from deepbore.classifiers.kernel.posterior import noiseless_scenarios
from deepbore.labels import LabelledBatch
from plane import SQUARE

STREAM = np.random.default_rng(0)
X, Y = torch.from_numpy(STREAM.random((7, 3))), torch.from_numpy(STREAM.random((5, 3)))
LENGTHS = torch.tensor([0.3, 1.0, 2.0], dtype=torch.float64)
THEIRS = {
    "matern": lambda length: theirs.Matern(length, nu=2.5),
    "rbf": theirs.RBF,
    "rational_quadratic": lambda length: theirs.RationalQuadratic(length, alpha=1.0),
}


def scaled(name, lengths=LENGTHS, amplitude=1.7):
    return ScaledKernel(KERNELS[name], 1 / lengths, torch.tensor(amplitude, dtype=torch.float64))


@pytest.mark.parametrize("name", sorted(KERNELS))
def test_kernels_are_those_of_scikit_learn(name):
    if name == "rational_quadratic":
        expected = theirs.RationalQuadratic(1.0, alpha=1.0)((X / LENGTHS).numpy(), (Y / LENGTHS).numpy())
    else:
        expected = THEIRS[name](LENGTHS.numpy())(X.numpy(), Y.numpy())
    assert np.allclose(scaled(name)(X, Y), 1.7 * expected)
    assert torch.allclose(scaled(name)(X, X).diagonal(), torch.tensor(1.7, dtype=torch.float64))


def test_a_partly_additive_kernel_adds_one_of_each_group_to_one_of_all():
    share, ratio, groups = 0.3, 0.5, (torch.tensor([0, 2]), torch.tensor([1]))
    kernel = PartlyAdditiveKernel(scaled("rbf"), torch.tensor(share), torch.tensor(ratio), groups)
    parts = [
        theirs.RBF((LENGTHS * ratio).numpy()[own])(X.numpy()[:, own], Y.numpy()[:, own])
        for own in (each.numpy() for each in groups)
    ]
    together = theirs.RBF(LENGTHS.numpy())(X.numpy(), Y.numpy())
    assert np.allclose(kernel(X, Y), 1.7 * ((1 - share) * together + share * sum(parts) / 2), atol=1e-6)
    assert float(kernel.amplitude) == 1.7


def test_the_prior_of_each_setting():
    space = SearchSpace({"x": Real(0, 1), "n": Integer(0, 3), "y": Real(0, 1), "z": Real(1, 2, log=True)})
    real, level = -0.8 + math.log(2), -0.1 + math.log(2)  # distances grow with the root of four
    expected = [[real, 1], [level, 1], [real, 1], [real, 1], [0, 2], [-7, 2]]
    assert np.allclose(prior_of(space), expected)
    assert np.allclose(
        prior_of(space, (0.5, 0.25), (-3.0, 0.5))[[0, 1, 5]], [[0.5 + math.log(2), 0.25], [level, 1], [-3, 0.5]]
    )
    levels = prior_of(SearchSpace({"n": Integer(0, 3)}), regularisation=(-3.0, 0.5))
    assert np.allclose(levels, [[-0.1, 1], [0, 2], [-6, 3]])


@pytest.mark.parametrize("precision", [np.eye(5), correlated(3)])
def test_the_penalty_is_minus_the_logarithm_of_a_normal_density(precision):
    stream = np.random.default_rng(1)
    prior = np.stack([stream.normal(size=5), 0.5 + stream.random(5)], axis=1)
    covariance = np.linalg.inv(precision) * np.outer(prior[:, 1], prior[:, 1])
    density = multivariate_normal(prior[:, 0], covariance)
    middle = density.logpdf(prior[:, 0])
    for theta in stream.normal(size=(3, 5)):
        value, gradient = penalty(theta, prior, precision)
        assert value == pytest.approx(middle - density.logpdf(theta))
        slopes = approx_fprime(theta, lambda at: penalty(at, prior, precision)[0])
        assert np.allclose(gradient, slopes, atol=1e-5)


def test_length_scales_alike_are_correlated_by_three_quarters_and_the_rest_by_nothing():
    covariance = np.linalg.inv(correlated(4))
    expected = np.eye(6)
    expected[:4, :4] += 0.75 * (1 - np.eye(4))
    assert np.allclose(covariance, expected)


# --- what was learned ------------------------------------------------------------------------------------------------


def batch(n=15, weight=None):
    points = SQUARE.points.sample(n, torch.Generator().manual_seed(0))
    z = (points[:, :1] - 0.3).abs().float()
    return LabelledBatch(points, z, torch.ones(n) if weight is None else weight)


def learned(labelled, **settings):
    classifier = KernelPLS(additive=False, **settings)
    classifier.bind(SQUARE)
    return classifier, classifier.learn(labelled)


def test_what_is_fixed_is_not_learned():
    classifier, _ = learned(batch(), length_scale=0.4, regularisation=0.01)
    assert classifier.theta.tolist() == pytest.approx([math.log(0.4)] * 2 + [0, math.log(0.01)])
    classifier, _ = learned(batch(), regularisation=0.01)
    assert classifier.theta[-1].item() == pytest.approx(math.log(0.01))
    assert classifier.theta[0].item() != pytest.approx(classifier.theta[1].item())
    classifier, _ = learned(batch(), length_scale=0.4)
    assert classifier.theta[:3].tolist() == pytest.approx([math.log(0.4)] * 2 + [0])
    assert classifier.theta[-1].item() != pytest.approx(-7)


def test_all_is_learned_by_the_default_kernel_alone():
    assert KernelPLS().learns_all
    for given in ({"kernel": "rbf"}, {"length_scale": 1.0}, {"regularisation": 0.1}):
        assert not KernelPLS(**given).learns_all


def test_the_posterior_is_a_gaussian_process_of_rows_with_their_noise():
    weight = torch.linspace(0.5, 2, 15)
    rows = batch(weight=weight)
    classifier, measured = learned(rows, length_scale=0.4, regularisation=0.05)
    kernel = theirs.Matern(0.4, nu=2.5)
    x, z, at = rows.points.numpy(), rows.z[:, 0].double().numpy(), SQUARE.points.sobol(6, seed=0)
    noise = np.diag(0.05 / weight.double().numpy())
    inverse, across = np.linalg.inv(kernel(x) + noise), kernel(at.numpy(), x)
    posterior = classifier.posterior(at)
    covariance = kernel(at.numpy()) - across @ inverse @ across.T
    assert np.allclose(posterior.mean, across @ inverse @ z, atol=1e-6)
    assert np.allclose(posterior.covariance(), covariance, atol=1e-6)
    assert np.allclose(posterior.std, np.sqrt(covariance.diagonal()), atol=1e-6)
    assert float(posterior.scale) == 1
    assert measured["rows"] == 15
    _, logdet = np.linalg.slogdet(np.eye(15) + np.linalg.inv(noise) @ kernel(x))
    beta = 2.0 + math.sqrt(2 / 0.05 * (logdet / 2 - math.log(0.1)))
    assert float(posterior.beta(0.1, 2.0)) == pytest.approx(beta, rel=1e-5)
    lowered = posterior.lowered(torch.arange(6.0))
    assert torch.allclose(lowered.mean, posterior.mean - torch.arange(6.0))
    assert torch.equal(lowered.std, posterior.std)


def test_the_loss_is_the_evidence_and_the_prior_of_each_row():
    rows = batch()
    for prior in (True, False):
        classifier, measured = learned(rows, prior=prior)
        theta = classifier.theta.numpy()
        x, z = rows.points.numpy(), rows.z[:, 0].double().numpy()
        gram = math.exp(theta[2]) * theirs.Matern(np.exp(theta[:2]), nu=2.5)(x) + math.exp(theta[3]) * np.eye(15)
        evidence = multivariate_normal(np.zeros(15), gram).logpdf(z) + 15 / 2 * math.log(2 * math.pi)
        means, deviations = prior_of(SQUARE).T
        paid = ((theta - means) ** 2 / deviations**2).sum() / 2 if prior else 0
        assert measured["loss"] * 15 == pytest.approx(paid - evidence, rel=1e-4)


def test_settings_stay_within_their_bounds():
    stream = np.random.default_rng(0)
    noise = torch.from_numpy(stream.random((40, 1)))
    points = torch.from_numpy(stream.random((40, 2)))
    for z in (noise, torch.full((40, 1), 0.5), points[:, :1]):
        classifier, _ = learned(LabelledBatch(points, z, torch.ones(40)), iterations=200, prior=False)
        low, high = np.array([(-4.6, 4.6)] * 2 + [(-6.0, 4.0), (-20.0, 1.0)]).T
        assert (low - 1e-9 <= classifier.theta.numpy()).all()
        assert (classifier.theta.numpy() <= high + 1e-9).all()
    assert classifier.theta[1].item() == pytest.approx(4.6)  # nothing depends on it
    assert classifier.theta[-1].item() < -15
    classifier, _ = learned(LabelledBatch(points, 60 * (noise - 0.5), torch.ones(40)), iterations=200, prior=False)
    assert classifier.theta.tolist() == [-4.6, -4.6, 4, 1]


@pytest.mark.parametrize(("n", "steps"), [(50, 10), (100, 10), (150, 5), (200, 3)])
def test_beyond_a_hundred_rows_iterations_are_fewer(n, steps, monkeypatch):
    asked = []
    monkeypatch.setattr(
        "deepbore.classifiers.kernel.least_squares.minimize",
        lambda evidence, start, **how: (
            asked.append(how["options"]["maxiter"]) or type("Found", (), {"x": start, "fun": 0.0})
        ),
    )
    learned(batch(n), iterations=10, crashes=False)
    assert asked == [steps]


def test_a_fit_goes_on_from_its_state():
    classifier, _ = learned(batch())
    again = KernelPLS(additive=False)
    again.bind(SQUARE)
    again.load_state_dict(classifier.state_dict())
    points = SQUARE.points.sobol(5, seed=0)
    one, other = classifier.posterior(points), again.posterior(points)
    assert torch.equal(one.mean, other.mean)
    assert torch.equal(one.std, other.std)
    assert torch.equal(again.get_extra_state()["may_be_best"], torch.ones(15, dtype=torch.bool))


def test_of_many_rows_a_coreset_is_learned():
    classifier, measured = learned(batch(30), rows=12)
    assert measured["rows"] == 12
    assert len(classifier.get_extra_state()["x"]) == 12


def test_a_state_that_says_nothing_of_who_may_be_best_is_about_all_rows():
    classifier, _ = learned(batch())
    state = classifier.get_extra_state()
    del state["may_be_best"]
    classifier.set_extra_state(state)
    assert torch.equal(classifier.get_extra_state()["may_be_best"], torch.ones(15, dtype=torch.bool))


def test_scenarios_without_noise_have_mean_and_variance_of_the_posterior():
    rows, noise = batch(12), 0.2
    gram = torch.from_numpy(theirs.Matern(0.5, nu=2.5)(rows.points.numpy()))
    covariance = gram + noise * torch.eye(12, dtype=torch.float64)
    root = torch.linalg.inv(torch.linalg.cholesky(covariance))
    z, may_be_best = rows.z[:, 0].double(), torch.arange(12) < 8
    found = noiseless_scenarios(gram, root, z, noise, may_be_best)
    drawn = gram @ found.coefficients
    inverse = torch.linalg.inv(covariance)
    assert torch.allclose(drawn.mean(1), gram @ inverse @ z, atol=1e-3)
    expected = float((gram - gram @ inverse @ gram).trace())
    assert float((drawn - drawn.mean(1, keepdim=True)).square().mean(1).sum()) == pytest.approx(expected, rel=0.3)
    assert torch.allclose(found.shift, drawn[:8].amax(0) - z[:8].max(), atol=1e-6)
    assert torch.allclose(found.root.mT @ found.root @ gram, torch.eye(12, dtype=torch.float64), atol=1e-2)
    again = noiseless_scenarios(gram, root, z, noise, may_be_best)
    assert torch.equal(found.coefficients, again.coefficients)


@pytest.mark.parametrize(("noisy", "spread", "known"), [(False, 1.0, False), (True, 0.0, False), (True, 1.0, True)])
def test_there_are_scenarios_without_noise_where_values_are_noisy_and_it_shows(noisy, spread, known):
    rows = batch(30)
    chance = torch.from_numpy(np.random.default_rng(2).random((30, 1))).float()
    rows = LabelledBatch(rows.points, (1 - spread) * rows.z + spread * chance, rows.weight)
    classifier, _ = learned(rows, noisy=noisy)
    assert (classifier.posterior(SQUARE.points.sobol(2, seed=0)).noiseless is not None) == known


def test_a_rival_begins_with_a_share_and_a_ratio_in_the_middle_of_their_priors():
    classifier = KernelPLS()
    classifier.bind(SQUARE)
    middle = prior_of(SQUARE)[:, 0]
    assert classifier.additive_model.theta.tolist() == pytest.approx([*middle[:2], -1, -2, *middle[2:]])
    classifier.additive_model.restart_from(torch.tensor([1.0, 2.0, 3.0, 4.0], dtype=torch.float64))
    assert classifier.additive_model.theta.tolist() == [1, 2, -1, -2, 3, 4]
