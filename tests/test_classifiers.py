"""Classifiers against independent oracles."""

import math

import numpy as np
import pytest
import torch
from torch import nn

from deepbore import (
    DeepEnsemble,
    DeepPLS,
    KernelPLS,
    MLPClassifier,
    Real,
    SearchSpace,
    ThresholdLabels,
    Training,
    ValueGradedLabels,
)
from deepbore.classifiers.networks.last_layer import fit_last_layer
from deepbore.classifiers.networks.stacked import ACTIVATIONS, Members, StackedMLP
from deepbore.errors import SettingError
from deepbore.testing import TOY_SPACES, fit, toy_data

SPACE = TOY_SPACES["continuous"]


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("make", [DeepEnsemble, DeepPLS])
def test_backpropagation_by_hand_agrees_with_autograd(activation, make):
    classifier = make(activation=activation, members=3)
    net = StackedMLP([5, 8, 6, 2], 3, activation, generator())
    x, z = torch.randn(11, 5, generator=generator(1)), torch.rand(11, 2, generator=generator(2))
    weight = torch.rand(11, generator=generator(3)) + 0.5
    net.backpropagate(x, lambda outputs: classifier.loss_gradient(outputs, z, weight))
    by_hand = [p.grad.clone() for p in net.parameters()]
    net.zero_grad()
    classifier.loss(net(x), z, weight).backward()
    for ours, theirs in zip(by_hand, net.parameters(), strict=True):
        assert torch.allclose(ours, theirs.grad, atol=1e-6)


def test_stacked_members_compute_what_single_networks_do():
    net = StackedMLP([4, 7, 1], 2, "tanh", generator())
    x = torch.randn(6, 4, generator=generator(1))
    for member in range(2):
        layers = [nn.Linear(4, 7), nn.Linear(7, 1)]
        for ours, theirs in zip(net.layers, layers, strict=True):
            theirs.weight.data, theirs.bias.data = ours.weight[member].T, ours.bias[member, 0]
        single = nn.Sequential(layers[0], nn.Tanh(), layers[1])
        assert torch.allclose(net(x)[member], single(x), atol=1e-6)


def test_our_adam_steps_are_those_of_torch():
    training = Training(steps=7, batch_size=1000, learning_rate=0.01, weight_decay=0.01)
    data = toy_data(SPACE, 40, ThresholdLabels(0.3))
    ours = fit(MLPClassifier(training=training), data, epochs=3)
    start = MLPClassifier(training=training).bind(SPACE)
    batch = data.labelled()
    adam = torch.optim.Adam(start.net.parameters(), lr=0.01, weight_decay=0.01)
    for _ in range(21):
        adam.zero_grad()
        start.loss(start.net(start.encode(batch.points)), batch.z, batch.weight).backward()
        adam.step()
    for mine, theirs in zip(ours.net.parameters(), start.net.parameters(), strict=True):
        assert torch.allclose(mine, theirs, atol=1e-5)


def test_every_member_of_an_ensemble_learns_and_differs():
    classifier = fit(DeepEnsemble(members=4), toy_data(SPACE, labels=ThresholdLabels()))
    scores = classifier.posterior(SPACE.sample(50, generator())).members
    correlations = np.corrcoef(scores.detach())
    assert (correlations[~np.eye(4, dtype=bool)] > 0.5).all()
    assert len(torch.unique(scores, dim=0)) == 4


@pytest.mark.slow
def test_a_users_own_network_is_a_classifier():
    def network(features, outputs):
        return nn.Sequential(nn.Linear(features, 16), nn.LayerNorm(16), nn.SiLU(), nn.Linear(16, outputs))

    before = torch.random.get_rng_state()
    classifier = fit(DeepEnsemble(network=network, members=3), toy_data(SPACE, labels=ThresholdLabels(0.3)))
    test = toy_data(SPACE, 300, ThresholdLabels(0.3), seed=1).labelled()
    scores = classifier.posterior(test.points).members
    assert scores.shape == (3, 300)
    assert isinstance(classifier.net, Members)
    assert scores.mean(0)[test.z[:, 0] == 1].mean() > scores.mean(0)[test.z[:, 0] == 0].mean() + 1
    assert torch.equal(before, torch.random.get_rng_state())


@pytest.mark.slow
def test_the_relative_density_ratio_is_bounded_by_one_over_gamma():
    classifier = fit(DeepEnsemble(), toy_data(SPACE, labels=ThresholdLabels(0.3)))
    points = SPACE.sample(200, generator())
    ratio = classifier.density_ratio(points, gamma=0.3)
    assert torch.allclose(ratio, classifier.probability(points) / 0.3)
    assert 2.5 < ratio.max() <= 1 / 0.3
    with pytest.raises(SettingError, match="0 < gamma < 1"):
        classifier.density_ratio(points, gamma=1.0)


# --- the last layer --------------------------------------------------------------------------------------------------


def evidence_by_hand(phi, z, alpha, beta):
    n = len(z)
    covariance = np.eye(n) / beta + phi @ phi.T / alpha
    _sign, logdet = np.linalg.slogdet(covariance)
    return -0.5 * (n * math.log(2 * math.pi) + logdet + z @ np.linalg.solve(covariance, z))


def test_the_last_layer_is_bayesian_linear_regression_at_the_evidences_maximum():
    rng = np.random.default_rng(0)
    phi = rng.normal(size=(40, 5))
    z = phi @ rng.normal(size=5) + 0.3 * rng.normal(size=40)
    layer = fit_last_layer(torch.tensor(phi)[None], torch.tensor(z), torch.ones(40), rounds=200)
    beta = float(layer.noise[0]) ** -2
    covariance = (layer.root[0] @ layer.root[0].T).numpy()
    precision = np.linalg.inv(covariance)
    alpha = precision[0, 0] - beta * (phi.T @ phi)[0, 0]
    assert np.allclose(precision, alpha * np.eye(5) + beta * phi.T @ phi)
    assert np.allclose(layer.mean[0], beta * covariance @ phi.T @ z)
    best = evidence_by_hand(phi, z, alpha, beta)
    assert float(layer.evidence[0]) == pytest.approx(best)
    for factor in (0.8, 1.25):
        assert evidence_by_hand(phi, z, alpha * factor, beta) < best
        assert evidence_by_hand(phi, z, alpha, beta * factor) < best


def test_a_row_of_weight_two_counts_twice():
    phi, z = torch.randn(1, 20, 4, generator=generator()), torch.rand(20, generator=generator(1))
    weight = torch.ones(20)
    weight[3] = 2
    twice = fit_last_layer(torch.cat([phi, phi[:, 3:4]], 1), torch.cat([z, z[3:4]]), torch.ones(21))
    assert torch.allclose(fit_last_layer(phi, z, weight).mean, twice.mean)


@pytest.mark.slow
def test_graded_labels_under_squared_error_estimate_expected_improvement():
    """On noisy values, the fitted score is proportional to EI over tau, known in closed form."""
    space = SearchSpace({"x": Real(0, 1)})
    rng = np.random.default_rng(0)
    x = rng.random(4000)
    y = np.sin(6 * x) + 0.5 * rng.normal(size=4000)
    data = toy_data(space, 0, ValueGradedLabels(0.5))
    data.observations.add({"x": x}, y)
    classifier = fit(DeepPLS(training=Training(steps=200)), data, epochs=15)
    grid = torch.linspace(0.05, 0.95, 60, dtype=torch.float64)[:, None]
    tau = float(np.quantile(y, 0.5))
    normal = torch.distributions.Normal(0.0, 1.0)
    u = (tau - np.sin(6 * grid[:, 0])) / 0.5
    expected_improvement = 0.5 * (u * normal.cdf(u) + normal.log_prob(u).exp()) / (tau - y.min())
    assert np.corrcoef(classifier.posterior(grid).mean.detach(), expected_improvement)[0, 1] > 0.98


# --- training --------------------------------------------------------------------------------------------------------


def test_steps_epochs_and_their_schedule():
    assert Training(steps=800, batch_size=64).epochs(512, 800) == 100  # the example of BORE J.3
    assert Training(steps=800, batch_size=64).epochs(10, 800) == 800
    annealed = Training(steps=100, half_life=10)
    assert [annealed.steps_at(t) for t in (0, 10, 10_000)] == [100, 63, 25]


def test_warm_starts_go_on_and_cold_ones_begin_again():
    data = toy_data(SPACE, labels=ThresholdLabels(0.3))
    losses = {}
    for warm in (True, False):
        classifier = MLPClassifier(training=Training(steps=20, warm_start=warm))
        fit(classifier, data, epochs=1)
        first = float(classifier.trainer.callback_metrics["loss"])
        fit(classifier, data, epochs=10)
        losses[warm] = (first, float(classifier.trainer.callback_metrics["loss"]))
    assert losses[True][1] < 0.5 * losses[True][0]
    assert losses[False][1] > 0.7 * losses[False][0]


@pytest.mark.slow
def test_patience_stops_when_the_loss_no_longer_falls():
    data = toy_data(SPACE, labels=ThresholdLabels(0.3))
    classifier = MLPClassifier(training=Training(steps=100_000, learning_rate=0.05, patience=5))
    fit(classifier, data, epochs=1)
    assert float(classifier.trainer.callback_metrics["accuracy"]) > 0.9


def test_metrics_of_each_iteration_are_logged():
    for make, own in ((DeepEnsemble, "epochs"), (KernelPLS, "rows")):
        metrics = fit(make(), toy_data(SPACE, labels=ThresholdLabels(0.3)), epochs=5).trainer.callback_metrics
        assert {"loss", own, "accuracy", "calibration_error", "auroc"} <= set(metrics)
        assert metrics["auroc"] > 0.9


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Training(steps=0), "steps >= 1"),
        (lambda: Training(learning_rate=-1), "learning_rate > 0"),
        (lambda: Training(weight_decay=-1), "weight_decay >= 0"),
        (lambda: Training(patience=0), "patience >= 1"),
        (lambda: DeepEnsemble(members=0), "members >= 1"),
        (lambda: MLPClassifier(activation="gelu").bind(SPACE), "activation must be one of"),
        (lambda: MLPClassifier().bind(SPACE).bind(TOY_SPACES["finite"]), "bound to another"),
        (lambda: MLPClassifier().posterior(torch.zeros(1, 3)), "know its space"),
    ],
)
def test_bad_settings_are_refused(make, says):
    with pytest.raises(SettingError, match=says):
        make()
