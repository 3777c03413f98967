"""Members and point estimates, dropout masks, and ensembles whose members differ in their hyperparameters."""

import math

import pytest
import torch
from torch import nn

from deepbore import (
    DeepEnsemble,
    HyperDeepEnsemble,
    MCDropout,
    MLPClassifier,
    SeveralThresholds,
    ThresholdLabels,
    Training,
)
from deepbore.classifiers.networks.hyper_ensemble import greedy_choice
from deepbore.classifiers.networks.mc_dropout import keep
from deepbore.classifiers.networks.stacked import StackedMLP
from deepbore.errors import SettingError
from deepbore.testing import TOY_SPACES, fit, toy_data

SPACE = TOY_SPACES["continuous"]
QUICK = Training(steps=50)


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def data(n=60):
    return toy_data(SPACE, n, ThresholdLabels(0.3))


# --- settings of the training ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"steps": 0}, "steps >= 1"),
        ({"steps": 1.5}, "steps must be a whole number"),
        ({"batch_size": 0}, "batch_size >= 1"),
        ({"learning_rate": 0.0}, "learning_rate > 0"),
        ({"weight_decay": -0.1}, "weight_decay >= 0"),
        ({"patience": 0}, "patience >= 1"),
        ({"half_life": 0.0}, "half_life > 0"),
    ],
)
def test_bad_settings_of_the_training_are_refused(settings, says):
    with pytest.raises(SettingError, match=says):
        Training(**settings)


def test_bad_settings_of_a_network_are_refused():
    with pytest.raises(SettingError, match="members >= 1"):
        DeepEnsemble(members=0)
    with pytest.raises(SettingError, match=r"activation must be one of .*'gelu'"):
        DeepEnsemble(activation="gelu").bind(SPACE)


# --- members and point estimates -------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [MLPClassifier, lambda **settings: DeepEnsemble(members=1, **settings)])
def test_one_network_is_a_point_estimate_that_owns_up_to_having_no_deviation(make):
    classifier = fit(make(training=QUICK), data(), epochs=2)
    posterior = classifier.posterior(SPACE.sobol(4, seed=0))
    assert classifier.capabilities == frozenset()
    assert posterior.members is None
    assert torch.equal(posterior.probability, posterior.mean.sigmoid())
    for ask in (lambda: posterior.std, posterior.covariance, lambda: posterior.sample(2, generator())):
        with pytest.raises(SettingError, match=r"one score a point.*Use DeepEnsemble"):
            ask()


def test_several_networks_are_members_with_moments_and_joint_samples():
    classifier = fit(DeepEnsemble(members=4, training=QUICK), data(), epochs=2)
    posterior = classifier.posterior(SPACE.sobol(5, seed=0))
    scores = posterior.members.detach()
    assert classifier.capabilities == {"std", "members"}
    assert scores.shape == (4, 5)
    mean = sum(scores) / 4
    covariance = sum(torch.outer(row - mean, row - mean) for row in scores) / 4
    assert torch.allclose(posterior.mean, mean)
    assert torch.allclose(posterior.std.square(), covariance.diagonal(), rtol=1e-4)
    assert torch.allclose(posterior.covariance(), covariance, rtol=1e-4, atol=1e-5)
    assert torch.allclose(posterior.probability, sum(scores.sigmoid()) / 4)
    drawn = posterior.sample(50, generator()).detach()
    assert sorted(map(tuple, drawn.unique(dim=0).tolist())) == sorted(map(tuple, scores.tolist()))


def test_of_several_columns_the_score_is_the_logit_of_the_mean_probability():
    several = toy_data(SPACE, 60, SeveralThresholds((0.1, 0.3, 0.6)))
    classifier = fit(DeepEnsemble(members=2, training=QUICK), several, epochs=1)
    points = SPACE.sobol(5, seed=0)
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
    points = SPACE.sobol(6, seed=0)
    with torch.no_grad():
        together = classifier.posterior(points).members
        alone = torch.cat([classifier.posterior(point[None]).members for point in points], dim=1)
    assert torch.allclose(together, alone, atol=1e-5)
    assert classifier.net.members[0][1].num_batches_tracked > 0


# --- dropout ---------------------------------------------------------------------------------------------------------


def test_backpropagation_through_masks_agrees_with_autograd():
    net = StackedMLP([5, 8, 6, 1], 2, "tanh", generator())
    x = torch.randn(11, 5, generator=generator(1))
    masks = [keep((2, 11, 8), 0.3, generator(2)), keep((2, 1, 6), 0.5, generator(3))]
    net.backpropagate(x, lambda outputs: 2 * outputs, masks)
    by_hand = [p.grad.clone() for p in net.parameters()]
    net.zero_grad()
    net(x, masks).square().sum().backward()
    for ours, theirs in zip(by_hand, net.parameters(), strict=True):
        assert torch.allclose(ours, theirs.grad, atol=1e-5)


def test_masks_keep_the_mean_and_drop_at_their_rate():
    masks = keep((200_000,), 0.2, generator())
    assert masks.unique().tolist() == pytest.approx([0, 1.25])
    assert float((masks == 0).float().mean()) == pytest.approx(0.2, abs=5 * math.sqrt(0.16 / 200_000))
    assert float(masks.mean()) == pytest.approx(1, abs=0.01)


def dropout_network(features, outputs):
    return nn.Sequential(nn.Linear(features, 32), nn.Tanh(), nn.Dropout(0.3), nn.Linear(32, outputs))


@pytest.mark.parametrize("settings", [{}, {"network": dropout_network}], ids=["built in", "a user's own"])
def test_masks_are_the_same_for_all_points_and_new_in_each_iteration(settings):
    classifier = fit(MCDropout(samples=5, training=QUICK, **settings), data(), epochs=2)
    points = SPACE.sobol(12, seed=0)
    with torch.no_grad():
        scores = classifier.posterior(points).members
        assert scores.shape == (5, 12)
        assert torch.equal(scores, classifier.posterior(points).members)
        one_by_one = torch.cat([classifier.posterior(point[None]).members for point in points], dim=1)
        assert torch.allclose(scores, one_by_one, atol=1e-5)
        assert len(scores.unique(dim=0)) == 5
    masks = masks_of(classifier)
    assert masks.shape[0] == 5
    fit(classifier, data(), epochs=1)
    assert not torch.equal(masks, masks_of(classifier))


def masks_of(classifier):
    """Those of the built-in network, or of the user's one dropout layer."""
    buffers = {name: buffer for name, buffer in classifier.named_buffers() if "masks" in name}
    return [buffer for buffer in buffers.values() if buffer.any()][-1].clone()


@pytest.mark.parametrize("settings", [{}, {"network": dropout_network}], ids=["built in", "a user's own"])
def test_masks_come_back_with_the_state_and_are_drawn_at_no_other_time(settings):
    classifier = fit(MCDropout(samples=5, training=QUICK, **settings), data(), epochs=2)
    fresh = MCDropout(samples=5, **settings).bind(SPACE)
    fresh.load_state_dict(classifier.state_dict())
    points = SPACE.sobol(7, seed=0)
    with torch.no_grad():
        assert torch.equal(fresh.posterior(points).members, classifier.posterior(points).members)


def test_a_layer_that_drops_at_two_widths_has_masks_for_each():
    class Twice(nn.Module):
        def __init__(self, features, outputs):
            super().__init__()
            self.first, self.second, self.last = nn.Linear(features, 9), nn.Linear(9, 7), nn.Linear(7, outputs)
            self.dropout = nn.Dropout(0.4)

        def forward(self, x):
            x = self.dropout(self.first(x).tanh())
            return self.last(self.dropout(self.second(x).tanh()))

    classifier = fit(MCDropout(samples=6, network=Twice, training=QUICK), data(), epochs=2)
    with torch.no_grad():
        scores = classifier.posterior(SPACE.sobol(4, seed=0)).members
        assert torch.equal(scores, classifier.posterior(SPACE.sobol(4, seed=0)).members)
    assert len(scores.unique(dim=0)) == 6


def test_a_sample_is_the_network_without_the_dropped_units():
    classifier = fit(MCDropout(hidden=(6,), samples=3, training=QUICK), data(), epochs=2)
    points = SPACE.sobol(4, seed=0)
    first, last = classifier.net.layers
    hidden = classifier.net.activation(classifier.encode(points) @ first.weight[0] + first.bias[0])
    for score, mask in zip(classifier.posterior(points).members, classifier.masks, strict=True):
        kept = mask[0] > 0
        expected = hidden[:, kept] / 0.9 @ last.weight[0][kept] + last.bias[0]
        assert torch.allclose(score, expected[:, 0], atol=1e-5)


def test_dropout_needs_a_network_that_drops():
    with pytest.raises(SettingError, match=r"nn.Dropout"):
        MCDropout(network=nn.Linear).bind(SPACE)
    with pytest.raises(SettingError, match="0 < rate < 1"):
        MCDropout(rate=1.0)
    with pytest.raises(SettingError, match="samples >= 2"):
        MCDropout(samples=1)  # no deviation


# --- members with hyperparameters of their own -----------------------------------------------------------------------


def test_members_have_widths_rates_and_decays_of_their_own():
    ensemble = HyperDeepEnsemble(
        width=(4, 32), dropout=(0.1, 0.3), weight_decay=(1e-5, 1e-1), pool=20, members=4, training=QUICK
    ).bind(SPACE)
    widths = ensemble.units.sum(-1).flatten()
    assert 4 <= widths.min() < 10
    assert 20 < widths.max() <= 32
    assert ((ensemble.rate >= 0.1) & (ensemble.rate <= 0.3)).all()
    assert ((ensemble.decay >= 1e-5) & (ensemble.decay <= 1e-1)).all()
    assert ensemble.posterior(SPACE.sobol(3, seed=0)).members.shape == (4, 3)


def test_a_narrow_member_is_a_narrow_network():
    ensemble = fit(HyperDeepEnsemble(width=(3, 16), pool=6, members=6, training=QUICK), data(), epochs=3)
    points = SPACE.sobol(5, seed=0)
    for row, member in zip(ensemble.posterior(points).members, ensemble.chosen.tolist(), strict=True):
        w = int(ensemble.units[member].sum())
        first, second, last = ensemble.net.layers
        act = ensemble.net.activation
        hidden = act(ensemble.encode(points) @ first.weight[member][:, :w] + first.bias[member][:, :w])
        hidden = act(hidden @ second.weight[member][:w, :w] + second.bias[member][:, :w])
        assert torch.allclose(row, (hidden @ last.weight[member][:w] + last.bias[member])[:, 0], atol=1e-4)


@pytest.mark.slow
def test_a_greater_weight_decay_makes_smaller_weights():
    ensemble = HyperDeepEnsemble(dropout=(0, 0), weight_decay=(1e-6, 1.0), pool=20, members=5, training=QUICK)
    fit(ensemble, data(), epochs=20)
    norms = ensemble.net.layers[0].weight.square().sum((1, 2))
    decay = ensemble.decay.flatten()
    assert norms[decay > 0.05].max() < norms[decay < 1e-4].min()


def test_the_choice_prefers_members_that_predict_well_and_err_differently():
    z = torch.tensor([1.0, 1.0, 0.0, 0.0])
    good_left = torch.tensor([0.9, 0.5, 0.1, 0.5])
    good_right = torch.tensor([0.5, 0.9, 0.5, 0.1])
    worse_left = torch.tensor([0.85, 0.5, 0.15, 0.5])
    wrong = 1 - z
    pool = torch.stack([wrong, good_left, worse_left, good_right])
    assert greedy_choice(pool, z, 2).tolist() == [1, 3]
    assert sorted(greedy_choice(pool, z, 4).tolist()) == [0, 1, 2, 3]


def test_members_are_chosen_by_rows_before_they_are_learnt():
    ensemble = HyperDeepEnsemble(pool=6, members=2, training=QUICK)
    growing = data(30)
    fit(ensemble, growing, epochs=1)
    new = SPACE.sobol(3, seed=9)
    with torch.no_grad():
        expected = ensemble.pool_outputs(ensemble.encode(new)).sigmoid().mean(-1)
    for row in growing.observations.reserve(new):
        growing.observations.tell(row, 0.5)
    fit(ensemble, growing, epochs=1)
    assert torch.allclose(ensemble.foretold[:, -3:], expected)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"width": (8, 4)}, r"width must be \(least, greatest\)"),
        ({"width": (0, 4)}, "width >= 1"),
        ({"dropout": (0.5, 1.0)}, "dropout < 1"),
        ({"dropout": (-0.1, 0.5)}, "dropout >= 0"),
        ({"weight_decay": (0.0, 0.1)}, "weight_decay > 0"),
        ({"members": 11}, "1 <= members <= 10"),
    ],
)
def test_bad_settings_are_refused(settings, says):
    with pytest.raises(SettingError, match=says):
        HyperDeepEnsemble(**settings)
