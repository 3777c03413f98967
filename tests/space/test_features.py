"""Points as networks and kernels see them."""

import pytest
import torch

from deepbore import Categorical, Condition, Integer, Ordinal, Real, SearchSpace
from deepbore.space.features import Coordinates


def test_coordinates_put_categories_one_apart_and_mark_what_is_active():
    space = SearchSpace(
        {"c": Categorical(["a", "b", "c"]), "k": Ordinal([1, 2, 4]), "x": Real(0, 1, when=Condition("c", "a"))}
    )
    coordinates = Coordinates(space.points)
    a, b = coordinates(space.encode([{"c": "a", "k": 2, "x": 0.3}, {"c": "b", "k": 4}]))
    assert (a[:3] - b[:3]).square().sum() == pytest.approx(1)
    assert a[3:].tolist() == [0.5, 0.3, 1]
    assert b[3:].tolist() == [1, 0, 0]
    assert coordinates.owner.tolist() == [0, 0, 0, 1, 2, 2]


def test_features_are_thermometer_one_hot_scaled_and_masked():
    space = SearchSpace(
        {
            "k": Ordinal([10, 20, 30]),
            "c": Categorical(["a", "b"]),
            "x": Real(0, 1),
            "n": Integer(1, 1000),
            "m": Integer(1, 3, when=Condition("c", "b")),
        }
    )
    rows = [{"k": 20, "c": "a", "x": 0.75, "n": 1}, {"k": 30, "c": "b", "x": 0.0, "n": 1000, "m": 2}]
    assert space.points.features(space.encode(rows)).tolist() == [
        [1, 0, 1, 0, 0.5, -1, 0, 0, 0],
        [1, 1, 0, 1, -1, 1, 1, 0, 1],
    ]
    assert space.points.features.size == 9


def test_features_carry_gradients_of_numeric_columns():
    space = SearchSpace({"x": Real(0, 1), "k": Ordinal([1, 2, 3])})
    points = torch.tensor([[0.3, 1.0]], dtype=torch.float64, requires_grad=True)
    space.points.features(points).sum().backward()
    assert points.grad.tolist() == [[2.0, 0.0]]


def test_features_have_nothing_to_save():
    space = SearchSpace({"x": Real(0, 1), "n": Integer(1, 9), "c": Categorical(["a", "b", "c"])})
    assert not Coordinates(space.points).state_dict()
