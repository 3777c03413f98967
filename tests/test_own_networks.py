"""Networks of a user's own: what they draw at random, and weights that move late."""

import pytest
import torch
from torch import nn

from deepbore import LaplaceGGN, MLPClassifier, ThresholdLabels, Training
from deepbore.testing import TOY_SPACES, fit, toy_data

QUICK = Training(steps=50)


def data():
    return toy_data(TOY_SPACES["continuous"], 60, ThresholdLabels(0.3))


def dropping(features, outputs):
    return nn.Sequential(nn.Linear(features, 16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, outputs))


@pytest.mark.parametrize("head", [MLPClassifier, LaplaceGGN])
def test_what_a_network_draws_while_it_learns_follows_the_seed_of_the_run(head):
    weights = []
    for seed in (1, 2):
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            before = torch.random.get_rng_state()
            trained = fit(head(network=dropping, training=QUICK), data(), epochs=1)
            assert torch.equal(torch.random.get_rng_state(), before)
        weights.append(nn.utils.parameters_to_vector(trained.net.parameters()))
    assert torch.equal(*weights)


class Alternating(nn.Module):
    """Learns by one layer first, and by another one later."""

    def __init__(self, features, outputs):
        super().__init__()
        self.first, self.second, self.passes = nn.Linear(features, outputs), nn.Linear(features, outputs), 0

    def forward(self, x):
        self.passes += self.training
        return self.first(x) if self.passes <= 2 else self.second(x)


def test_a_network_some_of_whose_weights_move_late_learns_them():
    trained = fit(MLPClassifier(network=Alternating, training=QUICK), data(), epochs=1)
    assert trained.ready
    assert trained.configure_optimizers().state[trained.net.members[0].second.weight]["step"] > 10
