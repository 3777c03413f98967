"""Native configurations and points: exact both ways, and on any device."""

import pytest
import torch
from hypothesis import given, settings, strategies as st

import deepbore as db
from deepbore import Categorical, Condition, Integer, Ordinal, Real, SearchSpace
from deepbore.space.features import Coordinates
from deepbore.testing import TOY_SPACES
from drawn_spaces import CONDITIONAL, conditional_spaces, spaces


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.mark.slow
@given(spaces, st.integers(0, 10_000))
@settings(max_examples=150)
def test_decoded_configurations_survive_encoding_exactly(space, seed):
    points = space.points.sample(5, generator(seed))
    configurations = space.decode(points)
    assert space.decode(space.encode(configurations)) == configurations
    assert torch.allclose(space.encode(configurations), space.points.snap(points), atol=1e-3)


@given(st.floats(1e-12, 1.0), st.booleans())
def test_real_values_of_twelve_digits_are_kept_exactly(value, log):
    value = float(f"{value:.11e}") if log else round(value, 12)
    parameter = Real(1e-12, 1.0, log=True) if log else Real(0.0, 1.0)
    assert parameter.decode(parameter.encode([value])) == [value]


@pytest.mark.parametrize("parameter", [Integer(1, 100_000), Integer(1, 100_000, log=True)])
def test_every_integer_is_kept_exactly(parameter):
    values = list(range(1, 100_001))
    assert parameter.decode(parameter.encode(values)) == values


def test_inactive_parameters_are_left_out_and_zero():
    points = CONDITIONAL.points.sample(200, generator())
    for params, point in zip(CONDITIONAL.decode(points), points, strict=True):
        assert ("momentum" in params) == (params["opt"] == "sgd")
        assert ("boost" in params) == (params.get("nesterov") is True)
        assert ("beta" in params) == (params["opt"] != "sgd")
        assert all(point[i] == 0 for i, name in enumerate(CONDITIONAL.names) if name not in params)
    configurations = CONDITIONAL.decode(points)
    assert CONDITIONAL.decode(CONDITIONAL.encode(configurations)) == configurations


def test_columns_encode_as_rows_do():
    configurations = CONDITIONAL.decode(CONDITIONAL.points.sample(50, generator()))
    columns = {name: [params.get(name) for params in configurations] for name in CONDITIONAL.names}
    assert torch.equal(CONDITIONAL.points.encode_columns(columns), CONDITIONAL.encode(configurations))


@given(conditional_spaces(), st.integers(0, 1000))
@settings(max_examples=100)
def test_identities_are_equal_exactly_where_configurations_are(space, seed):
    points = space.points.sample(12, generator(seed))
    points = torch.cat([points, points + 1e-15, space.points.neighbours(points, 12, generator(seed)), -0.0 * points])
    configurations, identities = space.decode(points), space.points.identify(points)
    for row, params in enumerate(configurations):
        assert [params == other for other in configurations] == [identities[row] == each for each in identities]
    many = points.repeat(3, 1)  # enough for the arithmetic of many rows
    assert space.points.identify(many) == identities * 3


def test_points_are_worked_on_where_they_are():
    """A tensor of the meta device has no numbers: reading one, or mixing it with the CPU's, raises."""
    space = SearchSpace(
        {
            "c": Categorical(["a", "b"]),
            "x": Real(0.5, 1, log=True, when=Condition("c", "a")),
            "n": Integer(1, 99, when=Condition("k", [2, 4])),
            "k": Ordinal([1, 2, 4]),
        }
    )
    points = torch.empty(9, len(space), dtype=torch.float64, device="meta")
    results = [
        space.points.active(points),
        space.points.snap(points),
        space.points.neighbours(points, 9, generator()),
        space.points.neighbour_of_each(points, generator()),
        space.points.features.to("meta")(points),
        Coordinates(space.points).to("meta")(points),
        space.points.sobol(9, 0, device="meta"),
        space.points.bounds.to(points),
    ]
    assert {result.device.type for result in results} == {"meta"}


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_points_are_drawn_on_the_device_of_the_generator():
    space = SearchSpace(
        {"c": Categorical(["a", "b"]), "x": Real(0, 1, when=Condition("c", "a")), "n": Integer(1, 99, log=True)}
    )
    drawing = torch.Generator("cuda").manual_seed(0)
    points = space.points.sample(500, drawing)
    near = space.points.neighbours(points, 500, drawing)
    assert {points.device.type, near.device.type} == {"cuda"}
    for each in (points, near):
        assert space.decode(each) == space.decode(each.cpu())
        assert torch.allclose(space.points.snap(each).cpu(), space.points.snap(each.cpu()))


def test_the_default_dtype_changes_nothing():
    space = SearchSpace({"c": Categorical(["a", "b"]), "x": Real(0, 1, when=Condition("c", "a")), "n": Integer(1, 99)})

    def all_of_them():
        points = space.points.sample(20, generator())
        near = space.points.neighbours(points, 20, generator())
        return [
            points,
            near,
            space.points.sobol(20, 3),
            space.points.features(near),
            Coordinates(space.points)(near),
            space.points.active(near),
        ]

    usual = all_of_them()
    torch.set_default_dtype(torch.float64)
    try:
        assert all(torch.equal(a, b) for a, b in zip(usual, all_of_them(), strict=True))
    finally:
        torch.set_default_dtype(torch.float32)


BELOW_A_REAL = db.SearchSpace({"a": db.Real(0, 100), "b": db.Real(0, 1, when=db.Condition("a", "> 50"))})


# regression: each of these was wrong once
def test_earlier_results_keep_what_hangs_on_a_real_parameter():
    study = db.Study(BELOW_A_REAL)
    study.add({"a": [60.0, 40.0], "b": [0.7, 0.7]}, [1.0, 2.0])
    assert [trial.params for trial in study.trials] == [{"a": 60.0, "b": 0.7}, {"a": 40.0}]


@pytest.mark.parametrize("space", [*TOY_SPACES.values(), BELOW_A_REAL])
def test_columns_come_back_as_the_points_that_they_were(space):
    points = space.points.sobol(50, seed=0)
    torch.testing.assert_close(space.points.encode_columns(space.points.decode_columns(points)), points)
