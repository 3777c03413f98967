"""`MCDropout`: masks, their gradients, and when they are drawn."""

import math
import pickle

import pytest
import torch
from torch import nn

from deepbore import Study, ThresholdLabels, Training
from deepbore.classifiers import MCDropout
from deepbore.classifiers.networks.mc_dropout import keep
from deepbore.classifiers.networks.stacked import StackedMLP
from deepbore.errors import SettingError
from deepbore.testing import TOY_SPACES, fit, toy_data
from plane import SQUARE
from tried import tried

SPACE = TOY_SPACES["continuous"]

QUICK = Training(steps=50)


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def data(n=60):
    return toy_data(SPACE, n, ThresholdLabels(0.3))


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
    points = SPACE.points.sobol(12, seed=0)
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
    points = SPACE.points.sobol(7, seed=0)
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
        scores = classifier.posterior(SPACE.points.sobol(4, seed=0)).members
        assert torch.equal(scores, classifier.posterior(SPACE.points.sobol(4, seed=0)).members)
    assert len(scores.unique(dim=0)) == 6


def test_a_sample_is_the_network_without_the_dropped_units():
    classifier = fit(MCDropout(hidden=(6,), samples=3, training=QUICK), data(), epochs=2)
    points = SPACE.points.sobol(4, seed=0)
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


# regression: this was wrong once
def test_a_study_with_dropout_of_ones_own_goes_through_pickle():
    study = tried(Study(SQUARE, classifier=MCDropout(network=dropout_network, samples=4), seed=0, n_initial=4), 5)
    assert pickle.loads(pickle.dumps(study)).ask()[0].params == study.ask()[0].params
