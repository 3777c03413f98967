"""Parameters, the search space and its features."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st

from deepbore import Categorical, Condition, Integer, Ordinal, Real, SearchSpace
from deepbore.errors import PointError, ShapeError, SpaceError

CONDITIONAL = SearchSpace(
    {
        "opt": Categorical(["sgd", "adam", "none"]),
        "momentum": Real(0, 0.99, when=Condition("opt", "sgd")),
        "nesterov": Categorical([True, False], when=Condition("opt", ["sgd"])),
        "boost": Ordinal([1, 2, 4], when=Condition("nesterov", True)),
        "beta": Real(0.8, 0.999, when=Condition("opt", ["adam", "none"])),
    }
)


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


@st.composite
def parameters(draw):
    kind = draw(st.sampled_from(["real", "integer", "choice"]))
    if kind == "choice":
        choices = draw(
            st.lists(st.one_of(st.integers(), st.text(), st.booleans()), min_size=2, max_size=9, unique_by=repr)
        )
        distinct = {(isinstance(c, bool), c) for c in choices}
        if len(distinct) == len(choices):
            return draw(st.sampled_from([Ordinal, Categorical]))(choices)
    log = draw(st.booleans())
    if kind == "integer":
        low = draw(st.integers(1 if log else -1000, 1000))
        return Integer(low, low + draw(st.integers(1, 100_000)), log=log)
    low = draw(st.floats(1e-9 if log else -1e6, 1e6))
    return Real(low, low + max(draw(st.floats(1e-3, 1e6)), 1e-4 * abs(low)), log=log)  # nearer bounds are refused


spaces = st.lists(parameters(), min_size=1, max_size=6).map(
    lambda ps: SearchSpace({f"p{i}": p for i, p in enumerate(ps)})
)


@pytest.mark.slow
@given(spaces, st.integers(0, 10_000))
@settings(max_examples=150)
def test_decoded_configurations_survive_encoding_exactly(space, seed):
    points = space.sample(5, generator(seed))
    configurations = space.decode(points)
    assert space.decode(space.encode(configurations)) == configurations
    assert torch.allclose(space.encode(configurations), space.snap(points), atol=1e-3)


@given(st.floats(1e-12, 1.0), st.booleans())
def test_real_values_of_twelve_digits_are_kept_exactly(value, log):
    value = float(f"{value:.11e}") if log else round(value, 12)
    parameter = Real(1e-12, 1.0, log=True) if log else Real(0.0, 1.0)
    assert parameter.decode(parameter.encode([value])) == [value]


@pytest.mark.parametrize("parameter", [Integer(1, 100_000), Integer(1, 100_000, log=True)])
def test_every_integer_is_kept_exactly(parameter):
    values = list(range(1, 100_001))
    assert parameter.decode(parameter.encode(values)) == values


@given(spaces, st.integers(0, 1000))
@settings(max_examples=50)
def test_samples_sobol_and_neighbours_lie_in_the_space(space, seed):
    samples = space.sample(8, generator(seed))
    for points in (samples, space.sobol(8, seed), space.neighbours(samples, 20, generator(seed))):
        assert (points >= space.bounds[0] - 1e-12).all()
        assert (points <= space.bounds[1] + 1e-12).all()
        assert torch.allclose(space.snap(points), points, atol=1e-12)


def test_levels_are_sampled_equally_often():
    space = SearchSpace({"k": Ordinal(list(range(5))), "n": Integer(1, 5), "c": Categorical(list("abcde"))})
    for column in space.sample(20_000, generator()).T:
        counts = torch.unique(column, return_counts=True)[1]
        assert len(counts) == 5
        assert (counts - 4000).abs().max() < 250  # four standard deviations


def test_neighbours_change_one_or_two_parameters():
    space = SearchSpace({f"p{i}": Ordinal(list(range(6))) for i in range(9)})
    centre = space.sample(1, generator())
    changes = (space.neighbours(centre, 500, generator(1)) != centre).sum(1)
    assert set(changes.tolist()) == {1, 2}


def test_sobol_continues_where_it_stopped():
    space = SearchSpace({"x": Real(0, 1), "y": Real(0, 1)})
    whole = space.sobol(16, seed=3)
    assert torch.equal(torch.cat([space.sobol(5, 3), space.sobol(11, 3, skip=5)]), whole)
    cells = (whole * 4).floor()
    assert len(torch.unique(cells, dim=0)) == 16  # one point in each cell of the 4 x 4 grid


# --- conditions ------------------------------------------------------------------------------------------------------


def test_inactive_parameters_are_left_out_and_zero():
    points = CONDITIONAL.sample(200, generator())
    for params, point in zip(CONDITIONAL.decode(points), points, strict=True):
        assert ("momentum" in params) == (params["opt"] == "sgd")
        assert ("boost" in params) == (params.get("nesterov") is True)
        assert ("beta" in params) == (params["opt"] != "sgd")
        assert all(point[i] == 0 for i, name in enumerate(CONDITIONAL.names) if name not in params)
    configurations = CONDITIONAL.decode(points)
    assert CONDITIONAL.decode(CONDITIONAL.encode(configurations)) == configurations


def test_switching_a_parent_on_gives_its_child_any_value():
    adam = CONDITIONAL.encode([{"opt": "adam", "beta": 0.9}])
    moved = CONDITIONAL.decode(CONDITIONAL.neighbours(adam, 300, generator()))
    momenta = [params["momentum"] for params in moved if "momentum" in params]
    assert len(momenta) > 20
    assert np.std(momenta) > 0.2


@pytest.mark.parametrize(
    "space",
    [
        SearchSpace({"a": Ordinal([1, 2, 3]), "b": Categorical(["x", "y"]), "n": Integer(2, 6)}),
        SearchSpace(
            {
                "opt": Categorical(["sgd", "adam", "none"]),
                "nesterov": Categorical([True, False], when=Condition("opt", ["sgd"])),
                "boost": Ordinal([1, 2, 4], when=Condition("nesterov", True)),
                "n": Integer(1, 4, when=Condition("opt", ["adam", "sgd"])),
            }
        ),
    ],
)
def test_cardinality_counts_distinct_configurations(space):
    points = space.enumerate()
    assert len(points) == space.cardinality == len(set(space.identify(points)))
    seen = set(space.identify(space.sample(5000, generator())))
    assert seen == set(space.identify(points))


def test_a_continuous_space_is_infinite():
    assert math.isinf(CONDITIONAL.cardinality)
    with pytest.raises(SpaceError, match="finite"):
        CONDITIONAL.enumerate()


# --- columns ---------------------------------------------------------------------------------------------------------


def test_columns_encode_as_rows_do():
    configurations = CONDITIONAL.decode(CONDITIONAL.sample(50, generator()))
    columns = {name: [params.get(name) for params in configurations] for name in CONDITIONAL.names}
    assert torch.equal(CONDITIONAL.encode_columns(columns), CONDITIONAL.encode(configurations))


# --- features --------------------------------------------------------------------------------------------------------


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
    assert space.features(space.encode(rows)).tolist() == [
        [1, 0, 1, 0, 0.5, -1, 0, 0, 0],
        [1, 1, 0, 1, -1, 1, 1, 0, 1],
    ]
    assert space.features.size == 9


def test_features_carry_gradients_of_numeric_columns():
    space = SearchSpace({"x": Real(0, 1), "k": Ordinal([1, 2, 3])})
    points = torch.tensor([[0.3, 1.0]], dtype=torch.float64, requires_grad=True)
    space.features(points).sum().backward()
    assert points.grad.tolist() == [[2.0, 0.0]]


def test_large_spaces_are_handled():
    space = SearchSpace({f"x{i}": Real(0, 1) for i in range(199)} | {"c": Categorical(list(range(1000)))})
    points = space.sobol(4, 0)
    assert space.features(points).shape == (4, 1199)
    assert space.decode(space.encode(space.decode(points))) == space.decode(points)


# --- plain data ------------------------------------------------------------------------------------------------------


@given(spaces)
@settings(max_examples=30)
def test_a_space_survives_plain_data(space):
    assert SearchSpace.from_dict(space.to_dict()) == space


def test_conditions_survive_plain_data():
    assert SearchSpace.from_dict(CONDITIONAL.to_dict()) == CONDITIONAL


# --- errors ----------------------------------------------------------------------------------------------------------


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
