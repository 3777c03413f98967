"""Ensembles: what their members learn, and the moments and scores that they give."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from deepbore import (
    DeepEnsemble,
    DeepPLS,
    HyperDeepEnsemble,
    MCDropout,
    MLPClassifier,
    Real,
    SearchSpace,
    SeveralThresholds,
    ThresholdLabels,
    Training,
    ValueGradedLabels,
)
from deepbore.classifiers.networks.last_layer import fit_last_layer
from deepbore.classifiers.networks.stacked import Members
from deepbore.classifiers.posterior import PointEstimate
from deepbore.errors import SettingError
from deepbore.labels import LabelledBatch
from deepbore.testing import TOY_SPACES, fit, toy_data
from plane import LINE

SPACE = TOY_SPACES["continuous"]


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def test_every_member_of_an_ensemble_learns_and_differs():
    classifier = fit(DeepEnsemble(members=4), toy_data(SPACE, labels=ThresholdLabels()))
    scores = classifier.posterior(SPACE.points.sample(50, generator())).members
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


QUICK = Training(steps=50)


def data(n=60):
    return toy_data(SPACE, n, ThresholdLabels(0.3))


@pytest.mark.parametrize("make", [MLPClassifier, lambda **settings: DeepEnsemble(members=1, **settings)])
def test_one_network_is_a_point_estimate_that_owns_up_to_having_no_deviation(make):
    classifier = fit(make(training=QUICK), data(), epochs=2)
    posterior = classifier.posterior(SPACE.points.sobol(4, seed=0))
    assert classifier.capabilities == frozenset()
    assert posterior.members is None
    assert torch.allclose(posterior.probability, (60 * posterior.mean.sigmoid() + 1) / 62)  # of 60 rows
    for ask in (lambda: posterior.std, posterior.covariance, lambda: posterior.sample(2, generator())):
        with pytest.raises(SettingError, match=r"one score a point.*Use DeepEnsemble"):
            ask()


def test_several_networks_are_members_with_moments_and_joint_samples():
    classifier = fit(DeepEnsemble(members=4, training=QUICK), data(), epochs=2)
    posterior = classifier.posterior(SPACE.points.sobol(5, seed=0))
    scores = posterior.members.detach()
    assert classifier.capabilities == {"std", "members"}
    assert scores.shape == (4, 5)
    mean = sum(scores) / 4
    covariance = sum(torch.outer(row - mean, row - mean) for row in scores) / 4
    assert torch.allclose(posterior.mean, mean)
    assert torch.allclose(posterior.std.square(), covariance.diagonal(), rtol=1e-4)
    assert torch.allclose(posterior.covariance(), covariance, rtol=1e-4, atol=1e-5)
    assert torch.allclose(posterior.probability, (60 * sum(scores.sigmoid()) / 4 + 1) / 62)  # of 60 rows
    drawn = posterior.sample(50, generator()).detach()
    assert sorted(map(tuple, drawn.unique(dim=0).tolist())) == sorted(map(tuple, scores.tolist()))


def test_of_several_columns_the_score_is_the_logit_of_the_mean_probability():
    several = toy_data(SPACE, 60, SeveralThresholds((0.1, 0.3, 0.6)))
    classifier = fit(DeepEnsemble(members=2, training=QUICK), several, epochs=1)
    points = SPACE.points.sobol(5, seed=0)
    outputs = classifier.net(classifier.encode(points))
    assert outputs.shape == (2, 5, 3)
    probabilities = outputs.sigmoid().mean(-1)
    assert torch.allclose(classifier.posterior(points).members.sigmoid(), probabilities, atol=1e-5)


def test_the_mean_logit_ranks_otherwise_than_the_mean_probability():
    """One member that is very sure: what the docstring of DeepEnsemble says."""
    scores = torch.tensor([[9.0, 1.0], [-1.0, 1.0], [-1.0, 1.0]])
    assert scores.mean(0).argmax() == 0
    assert scores.sigmoid().mean(0).argmax() == 1


def normed_network(features, outputs):
    return nn.Sequential(
        nn.Linear(features, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.5), nn.Linear(16, outputs)
    )


def test_a_users_network_predicts_each_point_on_its_own():
    """Batch statistics and dropout belong to the training; in version 0.1 a score depended on the other points."""
    classifier = fit(DeepEnsemble(network=normed_network, members=2, training=QUICK), data(), epochs=2)
    points = SPACE.points.sobol(6, seed=0)
    with torch.no_grad():
        together = classifier.posterior(points).members
        alone = torch.cat([classifier.posterior(point[None]).members for point in points], dim=1)
    assert torch.allclose(together, alone, atol=1e-5)
    assert classifier.net.members[0][1].num_batches_tracked > 0


# regression: each of these was wrong once
@pytest.mark.parametrize("head", [MLPClassifier(), DeepEnsemble(members=3), MCDropout()])
@pytest.mark.parametrize("biases", [(-40.0, -41.0, -42.0), (40.0, 41.0, 42.0), (-2.0, 0.0, 1.0)])
def test_the_score_of_several_columns_is_the_logit_of_their_mean_however_sure_they_are(head, biases):
    head.bind(LINE, outputs=3)
    with torch.no_grad():
        head.net.layers[-1].weight.zero_()
        head.net.layers[-1].bias.copy_(torch.tensor(biases).expand_as(head.net.layers[-1].bias))
    mean = torch.tensor(biases, dtype=torch.float64).sigmoid().mean()
    other = torch.tensor(biases, dtype=torch.float64).neg().sigmoid().mean()  # 1 - mean, to all its digits
    scores = head.posterior(torch.tensor([[0.2], [0.7]], dtype=torch.float64)).mean
    assert scores.tolist() == pytest.approx([float(mean.log() - other.log())] * 2, rel=1e-5)


def test_a_sure_head_of_several_columns_still_has_a_gradient():
    head = MLPClassifier().bind(LINE, outputs=3)
    with torch.no_grad():
        head.net.layers[-1].weight.mul_(100)
        head.net.layers[-1].bias.fill_(-60)
    points = torch.tensor([[0.2], [0.7]], dtype=torch.float64, requires_grad=True)
    (gradient,) = torch.autograd.grad(head.posterior(points).mean.sum(), points)
    assert bool((gradient != 0).all())


# regression: probabilities were 0 and 1
@pytest.mark.parametrize("make", [MLPClassifier, DeepEnsemble, HyperDeepEnsemble, MCDropout])
def test_no_probability_is_more_certain_than_the_rows_and_their_order_is_that_of_the_scores(make):
    head = fit(make(training=Training(steps=400)), data(), epochs=10)
    points = SPACE.points.sobol(256, seed=3)
    with torch.no_grad():
        posterior = head.posterior(points)
    assert float(posterior.mean.abs().max()) > 10
    assert float(posterior.probability.min()) > 1 / 62.1
    assert float(posterior.probability.max()) < 1 - 1 / 62.1
    scores = posterior.mean[None] if posterior.members is None else posterior.members
    order = scores.double().sigmoid().mean(0).argsort()
    assert bool((posterior.probability[order].diff() >= -1e-6).all())


def test_a_head_that_has_learned_nothing_and_a_state_without_the_number_of_rows_have_the_scores_probabilities():
    head = MLPClassifier().bind(SPACE)
    points = SPACE.points.sobol(8, seed=3)
    assert torch.equal(head.probability(points), head.posterior(points).mean.sigmoid())
    trained = fit(MLPClassifier(training=QUICK), data(), epochs=1)
    state = {name: value for name, value in trained.state_dict().items() if name != "n_learned"}  # of version 0.3
    head.load_state_dict(state)
    assert torch.equal(head.probability(points), trained.posterior(points).mean.sigmoid())


def test_the_ranking_of_learned_rows_is_measured_where_sigmoids_are_equal():
    class Certain(MLPClassifier):
        def posterior(self, points):
            return PointEstimate((30 + 60 * points[:, 0]).float(), self.link, "Certain")

    batch = LabelledBatch.of(data().observations, ThresholdLabels(0.3))
    batch = replace(batch, z=(batch.points[:, :1] > 0.5).float())
    assert float(Certain().bind(SPACE).quality(batch)["auroc"]) == 1
