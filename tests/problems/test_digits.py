"""Digits: trainings that depend on configuration and seed alone."""

import copy
import math

import numpy as np
import pytest
import torch

from deepbore.errors import PointError, SettingError
from deepbore.problems import Digits, DigitsUnderLimit

FEW = {"learning_rate": 0.01, "width": 16, "depth": 1, "dropout": 0.0, "weight_decay": 1e-6, "optimizer": "adam"}


def test_the_size_of_a_network_is_that_of_torch():
    network = torch.nn.Sequential(torch.nn.Linear(64, 16), torch.nn.Linear(16, 16), torch.nn.Linear(16, 10))
    weights = sum(each.numel() for each in network.parameters())
    outcome = DigitsUnderLimit(limit=1000, epochs=1)({**FEW, "depth": 2})
    assert outcome.constraints == (weights / 1000 - 1,)
    assert 0.1 < outcome.values[0] <= 1


GOOD = {
    "learning_rate": 3e-3,
    "width": 64,
    "depth": 2,
    "dropout": 0.2,
    "weight_decay": 1e-5,
    "optimizer": "adam",
}


@pytest.fixture(scope="module")
def digits():
    return Digits(epochs=5)


@pytest.mark.slow
def test_digits_depends_on_params_and_seed_alone(digits):
    first = digits(GOOD)
    torch.manual_seed(123)
    assert digits(GOOD) == first == Digits(epochs=5)(GOOD)
    assert Digits(epochs=5, seed=1)(GOOD) != first


def test_digits_leaves_the_global_random_states_alone(digits):
    before, numpy_before = torch.random.get_rng_state(), copy.deepcopy(np.random.get_state()[1])
    digits(GOOD)
    assert torch.equal(torch.random.get_rng_state(), before)
    np.testing.assert_array_equal(np.random.get_state()[1], numpy_before)


@pytest.mark.slow
def test_digits_trains_where_gradients_are_off(digits):
    with torch.no_grad():
        assert digits(GOOD) == digits(GOOD)
    with torch.inference_mode():
        assert digits(GOOD) < 0.5


@pytest.mark.parametrize("worse", [{"learning_rate": 1e-5}, {"learning_rate": 1.0}, {"dropout": 0.8, "width": 8}])
def test_a_good_training_beats_a_bad_one(digits, worse):
    assert digits(GOOD) < 0.5 < digits(GOOD | worse)


@pytest.mark.slow
def test_digits_runs_all_over_its_space(digits):
    points = digits.space.points.sample(8, torch.Generator().manual_seed(0))
    params = digits.space.decode(points)
    assert {p["optimizer"] for p in params} == {"sgd", "adam"}
    assert all(("momentum" in p) == (p["optimizer"] == "sgd") for p in params)
    assert all(isinstance(digits(p), float) for p in params)


@pytest.mark.slow
def test_a_diverged_training_is_reported_as_it_is():
    wild = {"optimizer": "sgd", "learning_rate": 1.0, "momentum": 0.99, "depth": 3, "width": 256, "weight_decay": 0.1}
    assert not math.isfinite(Digits(epochs=10)(wild | {"dropout": 0.0}))


def test_digits_refuses_an_inactive_momentum_and_bad_settings(digits):
    with pytest.raises(PointError, match="inactive"):
        digits(GOOD | {"momentum": 0.9})
    with pytest.raises(SettingError, match="epochs >= 1"):
        Digits(epochs=0)
    with pytest.raises(SettingError, match="seed >= 0"):
        Digits(seed=-1)
    assert digits.optimum is None
