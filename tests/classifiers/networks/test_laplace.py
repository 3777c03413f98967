"""LaplaceGGN of the built-in networks against dense algebra with finite differences, and quadrature."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy import integrate, stats

import deepbore as db
from deepbore import LaplaceGGN, ThresholdLabels, Training
from deepbore.errors import SettingError
from deepbore.testing import TOY_SPACES, fit, toy_data
from plane import LINE, SQUARE
from tried import tried

SPACE = TOY_SPACES["continuous"]

FEW = Training(steps=30, batch_size=1000)

QUICK = Training(steps=50)


def fitted(space=LINE, n=12, **settings):
    data = toy_data(space, n, ThresholdLabels(0.4))
    settings = {"hidden": (1,), "activation": "tanh", "training": FEW, "likelihood": "bernoulli", **settings}
    return fit(LaplaceGGN(**settings), data, epochs=3).double(), data.labelled()


def dense_ggn(classifier, points, weight):
    """Output, Jacobian by finite differences (n x P) and the precision matrix, in numpy."""
    parameters = [*classifier.net.parameters()]
    x = classifier.encode(points)
    columns = []
    with torch.no_grad():
        for p in parameters:
            flat = p.view(-1)
            for i in range(len(flat)):
                flat[i] += 1e-5
                above = classifier.net(x)[0, :, 0]
                flat[i] -= 2e-5
                below = classifier.net(x)[0, :, 0]
                flat[i] += 1e-5
                columns.append((above - below) / 2e-5)
        output = classifier.net(x)[0, :, 0].numpy()
    jacobian = torch.stack(columns, -1).numpy()
    pi = 1 / (1 + np.exp(-output))
    curvature = weight.numpy() * pi * (1 - pi)
    return output, jacobian, jacobian.T * curvature @ jacobian + float(classifier.delta) * np.eye(len(columns))


@pytest.mark.parametrize("n", [3, 12])  # fewer rows than the four weights: function space; more: weight space
def test_predictive_evidence_and_effective_parameters_are_those_of_a_dense_ggn(n):
    classifier, batch = fitted(n=n)
    weight = torch.linspace(0.5, 2.0, n, dtype=torch.float64)
    condition(classifier, batch, weight)
    points = LINE.points.sobol(5, seed=1)
    output, _, precision = dense_ggn(classifier, batch.points, weight)
    expected_mean, jacobian, _ = dense_ggn(classifier, points, torch.ones(5))
    posterior = classifier.posterior(points)
    covariance = np.linalg.inv(precision)
    expected = jacobian @ covariance @ jacobian.T
    assert np.allclose(posterior.mean.detach().numpy(), expected_mean)
    assert np.allclose(posterior.covariance().detach().numpy(), expected, rtol=1e-5, atol=1e-9)
    assert np.allclose(posterior.std.detach().numpy() ** 2, expected.diagonal(), rtol=1e-5)
    delta, weights = (
        float(classifier.delta),
        np.concatenate([p.detach().flatten() for p in classifier.net.parameters()]),
    )
    assert float(classifier.weight_posterior.effective) == pytest.approx(4 - delta * np.trace(covariance), rel=1e-5)
    z = batch.z[:, 0].double().numpy()
    log_likelihood = (weight.numpy() * (z * output - np.logaddexp(0, output))).sum()
    evidence = (
        log_likelihood - delta / 2 * weights @ weights + 4 / 2 * math.log(delta) - np.linalg.slogdet(precision)[1] / 2
    )
    ours = classifier.log_evidence(replace(batch, z=batch.z.double(), weight=weight))
    assert float(ours) == pytest.approx(evidence, rel=1e-6)


def condition(classifier, batch, weight):
    classifier._condition_on(classifier.encode(batch.points), weight, torch.tensor(3), batch.z[:, 0].double())


@pytest.mark.parametrize("n", [3, 12])  # fewer rows than the four weights, and more
@pytest.mark.parametrize("structure", ["full", "last_layer"])
def test_with_gaussian_noise_it_is_linear_regression_of_what_training_has_left(n, structure):
    """Mean, covariance and evidence of z = f + J w + noise, w ~ N(0, I / delta), by dense algebra."""
    classifier, batch = fitted(n=n, structure=structure, likelihood="gaussian")
    weight = torch.linspace(0.5, 2.0, n, dtype=torch.float64)
    condition(classifier, batch, weight)
    classifier.delta.fill_(3.0)
    classifier.noise.fill_(0.2)
    points = LINE.points.sobol(5, seed=1)
    own = slice(-2, None) if structure == "last_layer" else slice(None)
    output, rows, _ = dense_ggn(classifier, batch.points, weight)
    at, jacobian, _ = dense_ggn(classifier, points, torch.ones(5))
    rows, jacobian, noise = rows[:, own], jacobian[:, own], np.diag(0.04 / weight.numpy())
    total, residual = rows @ rows.T / 3 + noise, batch.z[:, 0].double().numpy() - output
    gain = np.linalg.solve(total, rows @ jacobian.T / 3).T
    posterior = classifier.posterior(points)
    covariance = jacobian @ jacobian.T / 3 - gain @ (rows @ jacobian.T / 3)
    assert np.allclose(posterior.mean.detach().numpy(), at + gain @ residual, atol=1e-7)
    assert np.allclose(posterior.covariance().detach().numpy(), covariance, atol=1e-8)
    assert np.allclose(posterior.std.detach().numpy() ** 2, covariance.diagonal(), atol=1e-8)
    # laplace-torch counts a row of weight w as w rows of one value: the same up to terms without delta
    found = {delta: evidence_of(classifier, delta) for delta in (0.5, 3.0)}
    exact = {
        delta: stats.multivariate_normal.logpdf(residual, cov=rows @ rows.T / delta + noise) for delta in (0.5, 3.0)
    }
    assert found[3.0] - found[0.5] == pytest.approx(exact[3.0] - exact[0.5], rel=1e-6)


def evidence_of(classifier, delta):
    classifier.delta.fill_(delta)
    return float(classifier.log_evidence(None))


def test_delta_and_noise_are_at_a_maximum_of_the_evidence_and_their_priors():
    classifier, batch = fitted(SPACE, 30, hidden=(6,), likelihood="gaussian", training=Training(steps=20))
    condition(classifier, batch, torch.ones(30))
    for _ in range(6):
        classifier._choose_delta_and_noise()
    amplitude = classifier._directions().amplitude

    def value(delta, noise):
        own = classifier._directions().at(delta, noise)
        surprise = ((amplitude / delta).log() + 2.3) ** 2 / 2**2 + (2 * noise.log() + 9.2) ** 2 / 3**2
        return float(own.laplace.log_marginal_likelihood()) - float(surprise) / 2

    best = value(classifier.delta, classifier.noise)
    for by in (0.8, 1.25):
        assert value(classifier.delta * by, classifier.noise) < best
        assert value(classifier.delta, classifier.noise * by) < best


def test_a_given_prior_precision_is_kept_while_noise_is_learned():
    classifier, _ = fitted(SPACE, 30, hidden=(6,), likelihood="gaussian", prior_precision=2.5)
    assert float(classifier.delta) == 2.5
    assert float(classifier.noise) != 0.01


def test_the_diagonal_structure_has_the_diagonal_of_the_dense_precision():
    classifier, batch = fitted(SPACE, 20, hidden=(4,), structure="diag")
    weight = torch.linspace(0.5, 2.0, 20, dtype=torch.float64)
    condition(classifier, batch, weight)
    points = SPACE.points.sobol(5, seed=2)
    _, _, precision = dense_ggn(classifier, batch.points, weight)
    _, jacobian, _ = dense_ggn(classifier, points, torch.ones(5))
    expected = jacobian / precision.diagonal() @ jacobian.T
    posterior = classifier.posterior(points)
    assert np.allclose(posterior.covariance().detach().numpy(), expected, rtol=1e-5)
    assert np.allclose(posterior.std.detach().numpy() ** 2, expected.diagonal(), rtol=1e-5)


def test_the_last_layer_alone_is_bayesian_logistic_regression_on_the_hidden_units():
    classifier, batch = fitted(SPACE, 40, hidden=(6,), structure="last_layer")
    hidden = classifier.net.hidden(classifier.encode(batch.points))[0]
    phi = torch.cat([hidden, torch.ones(40, 1)], -1).detach()
    pi = classifier.net(classifier.encode(batch.points))[0, :, 0].sigmoid().detach()
    precision = phi.T @ (phi * (pi * (1 - pi))[:, None]) + classifier.delta * torch.eye(7)
    expected = phi @ torch.linalg.inv(precision) @ phi.T
    posterior = classifier.posterior(batch.points)
    assert torch.allclose(posterior.covariance(), expected)
    assert torch.allclose(posterior.std.square(), expected.diagonal())


@pytest.mark.parametrize("structure", ["full", "kron", "diag", "last_layer"])
@pytest.mark.parametrize(("n", "likelihood"), [(20, "bernoulli"), (80, "bernoulli"), (20, "gaussian")])
def test_samples_have_the_moments_of_the_predictive(structure, n, likelihood):
    classifier, _ = fitted(SPACE, n, hidden=(5,), structure=structure, samples=4000, likelihood=likelihood)
    with torch.no_grad():
        posterior = classifier.posterior(SPACE.points.sobol(6, seed=3))
        mean, std, covariance = posterior.mean, posterior.std, posterior.covariance()
        for drawn in (posterior.members, posterior.sample(4000, torch.Generator().manual_seed(5))):
            assert drawn.shape == (4000, 6)
            assert torch.allclose(drawn.mean(0), mean, atol=5 * float(std.max()) / math.sqrt(4000))
            assert torch.allclose(torch.cov(drawn.mT), covariance, atol=0.15 * float(covariance.max()))


def test_members_are_the_same_functions_for_all_points_and_samples_are_new_ones():
    classifier, _ = fitted(SPACE, 30, hidden=(5,))
    points = SPACE.points.sobol(6, seed=3)
    with torch.no_grad():
        posterior = classifier.posterior(points)
        alone = torch.cat([classifier.posterior(point[None]).members for point in points], dim=1)
        one, again, other = (posterior.sample(3, torch.Generator().manual_seed(seed)) for seed in (1, 1, 2))
    assert posterior.members.shape == (16, 6)
    assert torch.allclose(posterior.members, alone)
    assert torch.equal(one, again)
    assert not torch.allclose(one, other)


@pytest.mark.parametrize("likelihood", ["bernoulli", "gaussian"])
@pytest.mark.parametrize("structure", ["full", "kron", "diag", "last_layer"])
def test_a_row_of_weight_two_counts_twice(structure, likelihood):
    classifier, batch = fitted(SPACE, 10, hidden=(8,), structure=structure, likelihood=likelihood)
    weight = torch.ones(10)
    weight[4] = 2
    deviations = []
    for rows, weights in ((torch.arange(10), weight), (torch.tensor([*range(10), 4]), torch.ones(11))):
        condition(classifier, batch.take(rows), weights)
        posterior = classifier.posterior(batch.points)
        deviations.append(torch.cat([posterior.mean, posterior.std]))
    assert torch.allclose(*deviations, atol=1e-6)


@pytest.mark.parametrize("structure", ["full", "kron", "diag", "last_layer"])
def test_a_posterior_on_some_rows_is_as_sure_as_one_on_all(structure):
    """In version 0.1 the 256 rows behind it counted as 256, whatever n: deviations twice too large here."""
    data = toy_data(SPACE, 1000, ThresholdLabels(0.3))
    settings = {"hidden": (4,), "structure": structure, "prior_precision": 0.1, "likelihood": "bernoulli"}
    classifier = fit(LaplaceGGN(training=QUICK, rows=256, **settings), data, epochs=2)
    points = SPACE.points.sobol(64, seed=4)
    with torch.no_grad():
        ours = classifier.posterior(points).std
        condition(classifier, data.labelled(), torch.ones(1000))
        on_all = classifier.posterior(points).std
    assert float((ours / on_all).log().mean().exp()) == pytest.approx(1, abs=0.15)


@pytest.mark.slow
def test_training_finds_the_map_estimate():
    """At the end the gradient of the penalised likelihood vanishes."""
    data = toy_data(SPACE, 40, ThresholdLabels(0.4))
    training = Training(steps=4000, batch_size=1000, learning_rate=0.003)
    classifier = fit(LaplaceGGN((4,), prior_precision=0.5, training=training, likelihood="bernoulli"), data, epochs=2)
    batch = data.labelled()
    loss = 40 * classifier.loss(classifier.net(classifier.encode(batch.points)), batch.z, batch.weight)
    loss = loss + 0.5 / 2 * sum(p.square().sum() for p in classifier.net.parameters())
    gradients = torch.autograd.grad(loss, [*classifier.net.parameters()])
    assert max(float(g.abs().max()) for g in gradients) < 0.05


@pytest.mark.slow
def test_the_evidence_chooses_delta():
    """The chosen delta satisfies MacKay's fixed point, delta = effective / |theta|^2."""
    data = toy_data(SPACE, 60, ThresholdLabels(0.4))
    training = Training(steps=300, batch_size=1000)
    classifier = fit(LaplaceGGN((8,), training=training, likelihood="bernoulli"), data, epochs=20)
    squared_norm = sum(float(p.detach().square().sum()) for p in classifier.net.parameters())
    effective = float(classifier.weight_posterior.effective)
    assert float(classifier.delta) == pytest.approx(effective / squared_norm, rel=0.05)


@pytest.mark.parametrize("likelihood", ["bernoulli", "gaussian"])
@pytest.mark.parametrize("structure", ["full", "kron", "diag", "last_layer"])
def test_mean_and_deviation_have_the_gradients_of_finite_differences(structure, likelihood):
    classifier, _ = fitted(SPACE, 30, hidden=(6,), structure=structure, likelihood=likelihood)
    assert_gradients_are_finite_differences(classifier)


def assert_gradients_are_finite_differences(classifier):
    points = SPACE.points.sobol(4, seed=5).requires_grad_(True)
    for moment in ("mean", "std"):
        (gradient,) = torch.autograd.grad(getattr(classifier.posterior(points), moment).sum(), points)
        assert gradient.abs().max() > 1e-3
        for i in range(points.shape[1]):
            step = torch.zeros_like(points).index_fill(1, torch.tensor(i), 1e-6)
            with torch.no_grad():
                above, below = (getattr(classifier.posterior(points + sign * step), moment) for sign in (1, -1))
            assert torch.allclose(gradient[:, i], (above - below) / 2e-6, rtol=1e-4, atol=1e-6)


def test_the_probit_approximation_is_close_to_quadrature():
    classifier, _ = fitted(SPACE, 30, hidden=(6,))
    points = SPACE.points.sobol(5, seed=6)
    posterior = classifier.posterior(points)
    moments = torch.stack([posterior.probability, posterior.mean, posterior.std], -1)
    for probability, m, s in moments.tolist():
        exact, _ = integrate.quad(
            lambda f, m=m, s=s: stats.norm.pdf(f, m, s) / (1 + math.exp(-f)), m - 10 * s, m + 10 * s
        )
        assert probability == pytest.approx(exact, abs=0.02)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"structure": "dense"}, "structure must be one of"),
        ({"likelihood": "poisson"}, "likelihood must be one of"),
        ({"prior_precision": 0.0}, "prior_precision > 0"),
        ({"samples": 0}, "samples >= 1"),
        ({"likelihood": "bernoulli", "optimizer": torch.optim.AdamW}, "Leave out optimizer="),
    ],
)
def test_bad_settings_are_refused(settings, says):
    with pytest.raises(SettingError, match=says):
        LaplaceGGN(**settings)


# regression: this was wrong once
@pytest.mark.slow
def test_pending_trials_do_not_weaken_the_prior_of_a_laplace_network():
    head = db.LaplaceGGN(training=db.Training(steps=2), prior_precision=1.0, likelihood="bernoulli")
    study = tried(db.Study(SQUARE, seed=0, n_initial=4, classifier=head), 10)
    for q in (1, 60, 1):
        study.ask(q)
        assert head.optimizers_made().optimizers[0].param_groups[0]["weight_decay"] == pytest.approx(0.1)
