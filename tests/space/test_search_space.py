"""The search space as a whole: plain data, and what is refused."""

import pytest
import torch
from hypothesis import given, settings

from deepbore import Categorical, Condition, Integer, Ordinal, Real, SearchSpace, Study
from deepbore.errors import PointError, ShapeError, SpaceError
from deepbore.testing import TOY_SPACES
from drawn_spaces import CONDITIONAL, spaces


def test_large_spaces_are_handled():
    space = SearchSpace({f"x{i}": Real(0, 1) for i in range(199)} | {"c": Categorical(list(range(1000)))})
    points = space.points.sobol(4, 0)
    assert space.points.features(points).shape == (4, 1199)
    assert space.decode(space.encode(space.decode(points))) == space.decode(points)


@given(spaces)
@settings(max_examples=30)
def test_a_space_survives_plain_data(space):
    assert SearchSpace.from_dict(space.to_dict()) == space


def test_conditions_survive_plain_data():
    assert SearchSpace.from_dict(CONDITIONAL.to_dict()) == CONDITIONAL


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: SearchSpace({}), "at least one parameter"),
        (
            lambda: SearchSpace([("x", Real(0, 1)), ("y", Real(0, 1)), ("x", Real(0, 2))]),
            r"\['x'\] stand more than once",
        ),
        (lambda: Real(1, 1), "low < high must hold, but got low=1, high=1"),
        (lambda: Real(0, 1, log=True), "low > 0, but got low=0"),
        (lambda: Real(0, float("inf")), "finite"),
        (lambda: Real("1e-5", 1), r"1\.0e-5"),
        (lambda: Integer(1, 2.5), "whole bounds"),
        (lambda: Ordinal([1]), "at least two choices"),
        (lambda: Categorical(["a", "a"]), "differ"),
        (lambda: SearchSpace({"x": Real(0, 1, when=Condition("y", 1))}), "'y', which is not among"),
        (lambda: SearchSpace({"x": Real(0, 1), "y": Real(0, 1, when=Condition("x", 1))}), "continuous"),
        (lambda: SearchSpace({"c": Ordinal([1, 2]), "y": Real(0, 1, when=Condition("c", 3))}), "impossible values"),
        (
            lambda: SearchSpace(
                {"a": Ordinal([1, 2], when=Condition("b", 1)), "b": Ordinal([1, 2], when=Condition("a", 1))}
            ),
            "circle",
        ),
        (lambda: SearchSpace.from_dict({"x": {"type": "reel", "low": 0}}), "type must be one of"),
        (lambda: SearchSpace.from_dict({"x": {"type": "real", "low": 0, "hihg": 1}}), "hihg"),
        (lambda: SearchSpace.from_dict({"x": 3}), "mapping"),
        (
            lambda: SearchSpace.from_dict({"x": {"type": "integer", "low": 1, "high": 11, "log": "yes please"}}),
            "'x': log must be True or False, but got log='yes please'",
        ),
        (
            lambda: SearchSpace.from_dict({"x": {"type": "real", "low": 0, "high": 1, "step": 0.3}}),
            r"'x': high must be low plus a multiple of step.* Give high=0\.9 or high=1\.2",
        ),
        (lambda: Integer(0, 10, step=2.5), "whole step"),
        (lambda: Integer(0, 10, step=0), "step > 0"),
        (lambda: Real(1, 16, log=True, step=1), "a log scale has no equal steps"),
        (lambda: Real(0, 1, step=2), "Give high=2"),
        (lambda: Real(0, 1, step="0.1"), "step must be a finite number"),
        (lambda: Real(0, 1, step=1e-12), "at least 1e-09"),
        (lambda: SearchSpace(3), "is declared as"),
        (lambda: SearchSpace.from_dict([1]), "declared by a mapping"),
        (lambda: SearchSpace({"": Real(0, 1)}), "names"),
        (lambda: SearchSpace({"x": (0, 1)}), "must be a Real"),
    ],
)
def test_bad_spaces_are_refused(make, says):
    with pytest.raises(SpaceError, match=says):
        make()


@pytest.mark.parametrize(
    ("params", "says"),
    [
        ({"opt": "sgd", "momentum": 0.5}, "nesterov"),
        ({"opt": "adam", "beta": 0.9, "momentum": 0.1}, "inactive"),
        ({"opt": "adam", "beta": 2.0}, r"\[0.8, 0.999\], but got 2.0"),
        ({"opt": "rmsprop", "beta": 0.9}, "'rmsprop'"),
        ({"opt": "adam", "beta": "high"}, "numbers"),
        ({"opt": "adam", "beta": 0.9, "gamma": 1}, r"gamma"),
    ],
)
def test_bad_configurations_are_refused(params, says):
    with pytest.raises(PointError, match=says):
        CONDITIONAL.encode([params])


def test_points_of_another_shape_are_refused():
    with pytest.raises(ShapeError, match="n x 5"):
        CONDITIONAL.decode(torch.zeros(3, 4))


# regression: each of these was wrong once
def test_parameters_may_be_called_as_the_lists_of_a_declaration(tmp_path):
    space = SearchSpace(
        {"constraints": Integer(1, 9), "fixed": Integer(1, 9), "b": Integer(1, 9)},
        constraints=["constraints < b"],
        fixed={"b": 7},
    )
    assert SearchSpace.from_dict(space.to_dict()) == space
    study = Study(space, seed=0, journal=tmp_path / "run.jsonl")
    study.optimize(lambda params: params["constraints"], 5)
    study.close()
    assert Study.load(tmp_path / "run.jsonl").space == space
    assert Study.load(tmp_path / "run.jsonl", space=space).best_trial == study.best_trial


def test_toy_spaces_come_back_from_their_declaration():
    for space in TOY_SPACES.values():
        assert SearchSpace.from_dict(space.to_dict()) == space
