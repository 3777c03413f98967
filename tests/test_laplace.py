"""LaplaceGGN against a dense GGN by finite differences, laplace-torch, and quadrature."""

import math
import warnings
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy import integrate, stats
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from deepbore import LaplaceGGN, Real, SearchSpace, ThresholdLabels, Training, UpperConfidenceBound
from deepbore.errors import SettingError
from deepbore.testing import TOY_SPACES, fit, toy_data

LINE = SearchSpace({"x": Real(0, 1)})
SPACE = TOY_SPACES["continuous"]
FEW = Training(steps=30, batch_size=1000)


def fitted(space=LINE, n=12, **settings):
    data = toy_data(space, n, ThresholdLabels(0.4))
    settings = {"hidden": (1,), "activation": "tanh", "training": FEW, **settings}
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
    classifier._condition_on(classifier.encode(batch.points), weight, torch.tensor(3))
    points = LINE.sobol(5, seed=1)
    output, _, precision = dense_ggn(classifier, batch.points, weight)
    expected_mean, jacobian, _ = dense_ggn(classifier, points, torch.ones(5))
    mean, std = (moment.detach().numpy() for moment in classifier.gaussian(points))
    covariance = np.linalg.inv(precision)
    assert np.allclose(mean, expected_mean)
    assert np.allclose(std**2, np.einsum("np,pq,nq->n", jacobian, covariance, jacobian), rtol=1e-5)
    delta, weights = (
        float(classifier.delta),
        np.concatenate([p.detach().flatten() for p in classifier.net.parameters()]),
    )
    assert float(classifier.posterior.effective) == pytest.approx(4 - delta * np.trace(covariance), rel=1e-5)
    z = batch.z[:, 0].double().numpy()
    log_likelihood = (weight.numpy() * (z * output - np.logaddexp(0, output))).sum()
    evidence = (
        log_likelihood - delta / 2 * weights @ weights + 4 / 2 * math.log(delta) - np.linalg.slogdet(precision)[1] / 2
    )
    ours = classifier.log_evidence(replace(batch, z=batch.z.double(), weight=weight))
    assert float(ours) == pytest.approx(evidence, rel=1e-6)


class TwoLogits(nn.Module):
    """The two-logit softmax on [0, f], which laplace-torch has a likelihood for."""

    def __init__(self, classifier):
        super().__init__()
        layers = []
        for stacked in classifier.net.layers:
            layer = nn.Linear(*stacked.weight.shape[1:]).double()
            layer.weight.data, layer.bias.data = stacked.weight.data[0].T.contiguous(), stacked.bias.data[0, 0].clone()
            layers += [layer, nn.Tanh()]
        self.one = nn.Sequential(*layers[:-1])

    def forward(self, x):
        f = self.one(x)
        return torch.cat([torch.zeros_like(f), f], -1)


@pytest.mark.parametrize(("structure", "n"), [("full", 30), ("full", 100), ("diag", 30)])
def test_variance_and_evidence_are_those_of_laplace_torch(structure, n):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from laplace import Laplace
        from laplace.curvature import BackPackGGN, CurvlinopsGGN

        backend = BackPackGGN if structure == "full" else CurvlinopsGGN

        classifier, batch = fitted(SPACE, n, hidden=(4, 3), structure=structure)
        x, points = classifier.encode(batch.points), SPACE.sobol(7, seed=2)
        theirs = Laplace(
            TwoLogits(classifier), "classification", "all", structure, backend=backend,
            prior_precision=float(classifier.delta),
        )  # fmt: skip
        theirs.fit(DataLoader(TensorDataset(x, batch.z[:, 0].long()), batch_size=n))
        _, variance = theirs._glm_predictive_distribution(classifier.encode(points))
        evidence = theirs.log_marginal_likelihood()
    assert torch.allclose(classifier.gaussian(points)[1].square(), variance[:, 1, 1], rtol=1e-4)
    batch = replace(batch, z=batch.z.double(), weight=batch.weight.double())
    assert float(classifier.log_evidence(batch)) == pytest.approx(float(evidence), rel=1e-5)


def test_kronecker_factors_are_kfac_by_hand():
    classifier, batch = fitted(SPACE, 40, hidden=(3,), structure="kron")
    output, factors = classifier.net.jacobian_factors(classifier.encode(batch.points))
    pi = output.sigmoid()
    points = SPACE.sobol(5, seed=2)
    _, at = classifier.net.jacobian_factors(classifier.encode(points))
    expected = torch.zeros(5, dtype=torch.float64)
    for (a, g), (b, h) in zip(factors, at, strict=True):
        left = sum(torch.outer(row, row) for row in a) / len(a)
        right = sum(c * torch.outer(row, row) for c, row in zip(pi * (1 - pi), g, strict=True))
        precision = torch.kron(left, right) + classifier.delta * torch.eye(left.shape[0] * right.shape[0])
        jacobian = torch.stack([torch.kron(u, v) for u, v in zip(b, h, strict=True)])
        expected += (jacobian @ torch.linalg.inv(precision) * jacobian).sum(-1)
    assert torch.allclose(classifier.gaussian(points)[1].square(), expected)


def test_the_last_layer_alone_is_bayesian_logistic_regression_on_the_hidden_units():
    classifier, batch = fitted(SPACE, 40, hidden=(6,), structure="last_layer")
    hidden = classifier.net.hidden(classifier.encode(batch.points))[0]
    phi = torch.cat([hidden, torch.ones(40, 1)], -1).detach()
    pi = classifier.net(classifier.encode(batch.points))[0, :, 0].sigmoid().detach()
    precision = phi.T @ (phi * (pi * (1 - pi))[:, None]) + classifier.delta * torch.eye(7)
    expected = (phi @ torch.linalg.inv(precision) * phi).sum(-1)
    assert torch.allclose(classifier.gaussian(batch.points)[1].square(), expected)


@pytest.mark.parametrize("structure", ["full", "kron", "diag", "last_layer"])
@pytest.mark.parametrize("n", [20, 80])
def test_samples_have_the_moments_of_the_predictive(structure, n):
    classifier, _ = fitted(SPACE, n, hidden=(5,), structure=structure, samples=4000)
    points = SPACE.sobol(6, seed=3)
    with torch.no_grad():
        mean, std = classifier.gaussian(points)
        scores = classifier.scores(points)
    assert torch.allclose(scores.mean(0), mean, atol=5 * float(std.max()) / math.sqrt(4000))
    assert torch.allclose(scores.std(0), std, rtol=0.1)


def test_a_row_of_weight_two_counts_twice():
    classifier, batch = fitted(SPACE, 10, hidden=(8,))
    x, weight = classifier.encode(batch.points), torch.ones(10)
    weight[4] = 2
    twice = torch.tensor([*range(10), 4])
    deviations = []
    for rows, weights in ((torch.arange(10), weight), (twice, torch.ones(11))):
        classifier._condition_on(x[rows], weights, torch.tensor(0))
        deviations.append(classifier.gaussian(batch.points)[1])
    assert torch.allclose(*deviations)


@pytest.mark.slow
def test_training_finds_the_map_estimate():
    """At the end the gradient of the penalised likelihood vanishes."""
    data = toy_data(SPACE, 40, ThresholdLabels(0.4))
    training = Training(steps=4000, batch_size=1000, learning_rate=0.003)
    classifier = fit(LaplaceGGN((4,), "tanh", prior_precision=0.5, training=training), data, epochs=2)
    batch = data.labelled()
    loss = 40 * classifier.loss(classifier.net(classifier.encode(batch.points)), batch.z, batch.weight)
    loss = loss + 0.5 / 2 * sum(p.square().sum() for p in classifier.net.parameters())
    gradients = torch.autograd.grad(loss, [*classifier.net.parameters()])
    assert max(float(g.abs().max()) for g in gradients) < 0.05


@pytest.mark.slow
def test_the_evidence_chooses_delta():
    """The chosen delta satisfies MacKay's fixed point, delta = effective / |theta|^2."""
    data = toy_data(SPACE, 60, ThresholdLabels(0.4))
    classifier = fit(LaplaceGGN((8,), "tanh", training=Training(steps=300, batch_size=1000)), data, epochs=20)
    squared_norm = sum(float(p.detach().square().sum()) for p in classifier.net.parameters())
    assert float(classifier.delta) == pytest.approx(float(classifier.posterior.effective) / squared_norm, rel=0.05)


@pytest.mark.parametrize("structure", ["full", "kron", "diag", "last_layer"])
def test_the_acquisitions_gradient_has_the_variance_term(structure):
    classifier, _ = fitted(SPACE, 30, hidden=(6,), structure=structure)
    points = SPACE.sobol(4, seed=5).requires_grad_(True)
    (gradient,) = torch.autograd.grad(UpperConfidenceBound(2.0)(classifier, points).sum(), points)
    (of_mean,) = torch.autograd.grad(classifier.gaussian(points)[0].sum(), points)
    assert not torch.allclose(gradient, of_mean, rtol=1e-2)
    for i in range(points.shape[1]):
        step = torch.zeros_like(points).index_fill(1, torch.tensor(i), 1e-6)
        with torch.no_grad():
            above, below = (UpperConfidenceBound(2.0)(classifier, points + sign * step) for sign in (1, -1))
        assert torch.allclose(gradient[:, i], (above - below) / 2e-6, rtol=1e-4, atol=1e-6)


def test_the_probit_approximation_is_close_to_quadrature():
    classifier, _ = fitted(SPACE, 30, hidden=(6,))
    points = SPACE.sobol(5, seed=6)
    mean, std = (moment.tolist() for moment in classifier.gaussian(points))
    for probability, m, s in zip(classifier.probability(points).tolist(), mean, std, strict=True):
        exact, _ = integrate.quad(
            lambda f, m=m, s=s: stats.norm.pdf(f, m, s) / (1 + math.exp(-f)), m - 10 * s, m + 10 * s
        )
        assert probability == pytest.approx(exact, abs=0.02)


def test_a_users_network_has_a_bayesian_last_layer():
    def network(features, outputs):
        return nn.Sequential(nn.Linear(features, 16), nn.LayerNorm(16), nn.SiLU(), nn.Linear(16, outputs))

    data = toy_data(SPACE, 60, ThresholdLabels(0.3))
    classifier = fit(LaplaceGGN(network=network, structure="last_layer"), data)
    _, std = classifier.gaussian(SPACE.sobol(5, seed=0))
    assert (std > 0.05).all()
    assert float(classifier.trainer.callback_metrics["auroc"]) > 0.95
    wrong = LaplaceGGN(network=lambda e, k: nn.Sequential(nn.Linear(e, k), nn.Tanh()), structure="last_layer")
    with pytest.raises(SettingError, match="must give its output"):
        wrong.bind(SPACE)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"structure": "dense"}, "structure must be one of"),
        ({"network": nn.Linear}, "last_layer"),
        ({"prior_precision": 0.0}, "prior_precision > 0"),
        ({"samples": 0}, "samples > 0"),
    ],
)
def test_bad_settings_are_refused(settings, says):
    with pytest.raises(SettingError, match=says):
        LaplaceGGN(**settings)
