"""Conditional spaces: what is active, counted and enumerated, also of long chains and huge spaces."""

import math
import tracemalloc

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st

from deepbore import Categorical, Condition, Integer, Ordinal, Real, SearchSpace
from deepbore.errors import SpaceError
from deepbore.space.features import Coordinates


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


@st.composite
def conditional_spaces(draw, continuous=True, several=False):
    """Up to seven parameters, each perhaps under a condition on any of those declared before or after it.

    With `several` perhaps under two, on parents that depend on nothing, so that they can hold together.
    """
    names = [f"p{i}" for i in range(draw(st.integers(1, 7)))]
    order = draw(st.permutations(names))  # parents first; the declaration has another order
    levels = {}
    declared = {}
    for place, name in enumerate(order):
        parents = [other for other in order[:place] if other in levels]
        when = None
        if parents and draw(st.booleans()):
            parent = draw(st.sampled_from(parents))
            when = Condition(parent, draw(st.sets(st.sampled_from(levels[parent]), min_size=1)))
            free = [other for other in parents if other != parent and declared[other].when is None]
            if several and free and declared[parent].when is None and draw(st.booleans()):
                other = draw(st.sampled_from(free))
                when = [when, Condition(other, draw(st.sets(st.sampled_from(levels[other]), min_size=1)))]
        kind = draw(st.sampled_from(["integer", "ordinal", "categorical"] + ["real", "log"] * continuous))
        if kind == "integer":
            low = draw(st.integers(-3, 3))
            declared[name] = Integer(low, low + draw(st.integers(1, 3)), when=when)
            levels[name] = list(range(declared[name].low, declared[name].high + 1))
        elif kind in ("real", "log"):
            declared[name] = Real(0.5, 3, log=kind == "log", when=when)
        else:
            levels[name] = draw(st.sampled_from([[True, False], ["a", "b", "c"], [1, 2.5, None, "x"]]))
            declared[name] = (Ordinal if kind == "ordinal" else Categorical)(levels[name], when=when)
    return SearchSpace({name: declared[name] for name in names})


def is_active(space, name, params):
    """Whether a parameter is active, from its conditions and the native values above it."""
    return all(
        is_active(space, when.parent, params) and params[when.parent] in when.values
        for when in space.parameters[name].conditions
    )


# --- properties ------------------------------------------------------------------------------------------------------


@given(conditional_spaces(), st.integers(0, 1000))
@settings(max_examples=150)
def test_a_configuration_has_its_active_parameters_and_survives(space, seed):
    points = space.sample(20, generator(seed))
    configurations = space.decode(points)
    for params in configurations:
        assert list(params) == [name for name in space.names if is_active(space, name, params)]
    encoded = space.encode(configurations)
    assert space.decode(encoded) == configurations
    assert torch.equal(space.active(encoded), space.active(points))
    columns = {name: [params.get(name) for params in configurations] for name in space.names}
    assert torch.equal(space.encode_columns(columns), encoded)
    assert torch.equal(space.encode_columns({n: np.array(c, dtype=object) for n, c in columns.items()}), encoded)
    assert space.decode_columns(encoded) == columns


@given(conditional_spaces(), st.integers(0, 1000))
@settings(max_examples=100)
def test_identities_are_equal_exactly_where_configurations_are(space, seed):
    points = space.sample(12, generator(seed))
    points = torch.cat([points, points + 1e-15, space.neighbours(points, 12, generator(seed)), -0.0 * points])
    configurations, identities = space.decode(points), space.identify(points)
    for row, params in enumerate(configurations):
        assert [params == other for other in configurations] == [identities[row] == each for each in identities]
    many = points.repeat(3, 1)  # enough for the arithmetic of many rows
    assert space.identify(many) == identities * 3


@given(conditional_spaces(), st.integers(0, 1000))
@settings(max_examples=100)
def test_neighbours_and_snapped_points_lie_in_the_space(space, seed):
    samples = space.sample(8, generator(seed))
    raw = space.bounds[1] * torch.rand(30, len(space), generator=generator(seed), dtype=torch.float64)
    for points in (space.neighbours(samples, 30, generator(seed)), space.sobol(8, seed), space.snap(raw)):
        assert torch.allclose(space.snap(points), points, atol=1e-12)
        assert (points[~space.active(points)] == 0).all()
        assert ((points >= 0) & (points <= space.bounds[1] + 1e-12)).all()
    assert space.decode(space.snap(raw)) == space.decode(raw)


@given(conditional_spaces(continuous=False))
@settings(max_examples=50)
def test_a_finite_space_is_enumerated_in_order_without_repetition(space):
    points = space.enumerate()
    assert len(points) == space.cardinality == len(set(space.identify(points)))
    assert torch.equal(points, torch.unique(points, dim=0))
    grid = torch.cartesian_prod(
        *[p.from_level(torch.arange(p.levels).double()) for p in space.parameters.values()]
    ).reshape(-1, len(space))
    assert torch.equal(points, torch.unique(space.snap(grid), dim=0))


@given(conditional_spaces())
@settings(max_examples=60)
def test_conditions_survive_plain_data_whatever_their_kind(space):
    assert SearchSpace.from_dict(space.to_dict()) == space


# --- large spaces ----------------------------------------------------------------------------------------------------


def test_five_algorithms_with_settings_of_their_own_are_not_a_grid():
    space = SearchSpace(
        {"algorithm": Categorical(list("abcde"))}
        | {f"{a}{i}": Integer(1, 10, when=Condition("algorithm", a)) for a in "abcde" for i in (1, 2)}
    )
    tracemalloc.start()
    points = space.enumerate()
    assert tracemalloc.get_traced_memory()[1] < 10e6  # the grid has 5e10 rows
    tracemalloc.stop()
    assert space.cardinality == len(points) == len(set(space.identify(points))) == 500


def chain(length):
    """Each parameter is active where the one before is 1."""
    pairs = {f"p{i}": Integer(0, 1, when=Condition(f"p{i - 1}", 1) if i else None) for i in range(length)}
    return SearchSpace(pairs)


def test_a_chain_of_a_thousand_conditions_works():
    space = chain(1000)
    assert space.cardinality == 1001
    points = space.enumerate()
    assert points.shape == (1001, 1000)
    assert points.sum(1).tolist() == list(range(1001))
    assert space.decode(points[:2]) == [{"p0": 0}, {"p0": 1, "p1": 0}]
    columns = {name: [0, 1] for name in space.names}
    assert space.encode_columns(columns).sum(1).tolist() == [0, 1000]
    assert SearchSpace.from_dict(space.to_dict()) == space
    assert torch.equal(space.snap(points), points)
    assert Coordinates(space)(points[:2]).shape == (2, 1999)


def test_a_circle_at_the_end_of_a_chain_is_named():
    pairs = dict(chain(900).parameters) | {"p0": Integer(0, 1, when=Condition("p899", 1))}
    with pytest.raises(SpaceError, match=r"circle.*'p0', 'p1'"):
        SearchSpace(pairs)


def test_a_chain_backwards_is_the_same_space():
    space = chain(40)
    backwards = SearchSpace(reversed(space.parameters.items()))
    points = backwards.enumerate()
    assert torch.equal(points, torch.unique(points, dim=0))
    assert torch.equal(torch.unique(points.flip(1), dim=0), space.enumerate())


def test_a_huge_cardinality_counts_as_infinite():
    space = SearchSpace({f"n{i}": Integer(1, 10**6) for i in range(60)})
    assert space.cardinality == math.inf
    assert SearchSpace({f"n{i}": Integer(1, 10**6) for i in range(40)}).cardinality == 10**240
    assert math.isinf(SearchSpace({**space.parameters, "x": Real(0, 1)}).cardinality)
    assert space.decode(space.encode(space.decode(space.sobol(3, 0)))) == space.decode(space.sobol(3, 0))
    with pytest.raises(SpaceError, match="Use sample or sobol"):
        space.enumerate()
    with pytest.raises(SpaceError, match="1,000,000,000 entries"):
        SearchSpace({"a": Integer(1, 10**6), "b": Integer(1, 10**6)}).enumerate()


def test_conditions_on_many_levels_are_counted():
    space = SearchSpace(
        {"n": Integer(1, 100_000), "x": Integer(1, 3, when=Condition("n", range(2, 100_001))), "c": Ordinal([1, 2])}
    )
    assert space.cardinality == 2 * (1 + 3 * 99_999)
    points = space.sample(1000, generator())
    assert torch.equal(space.active(points)[:, 1], points[:, 0] > 0)


def test_a_conditions_set_of_values_has_one_order():
    assert Condition("c", {"b", "a", "d"}).values == ("a", "b", "d")
    assert Condition("n", np.array([3, 1])).values == (3, 1)


# --- devices ---------------------------------------------------------------------------------------------------------


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
        space.active(points),
        space.snap(points),
        space.neighbours(points, 9, generator()),
        space.neighbour_of_each(points, generator()),
        space.features.to("meta")(points),
        Coordinates(space).to("meta")(points),
        space.sobol(9, 0, device="meta"),
        space.bounds.to(points),
    ]
    assert {result.device.type for result in results} == {"meta"}


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_points_are_drawn_on_the_device_of_the_generator():
    space = SearchSpace(
        {"c": Categorical(["a", "b"]), "x": Real(0, 1, when=Condition("c", "a")), "n": Integer(1, 99, log=True)}
    )
    drawing = torch.Generator("cuda").manual_seed(0)
    points = space.sample(500, drawing)
    near = space.neighbours(points, 500, drawing)
    assert {points.device.type, near.device.type} == {"cuda"}
    for each in (points, near):
        assert space.decode(each) == space.decode(each.cpu())
        assert torch.allclose(space.snap(each).cpu(), space.snap(each.cpu()))


def test_the_default_dtype_changes_nothing():
    space = SearchSpace({"c": Categorical(["a", "b"]), "x": Real(0, 1, when=Condition("c", "a")), "n": Integer(1, 99)})

    def all_of_them():
        points = space.sample(20, generator())
        near = space.neighbours(points, 20, generator())
        return [points, near, space.sobol(20, 3), space.features(near), Coordinates(space)(near), space.active(near)]

    usual = all_of_them()
    torch.set_default_dtype(torch.float64)
    try:
        assert all(torch.equal(a, b) for a, b in zip(usual, all_of_them(), strict=True))
    finally:
        torch.set_default_dtype(torch.float32)


def test_what_a_move_switches_on_starts_anywhere():
    space = SearchSpace(
        {
            "kernel": Categorical(["linear", "rbf", "poly"]),
            "gamma": Real(0, 1, when=Condition("kernel", "rbf")),
            "degree": Integer(0, 9, when=Condition("kernel", "poly")),
        }
    )
    linear = space.encode([{"kernel": "linear"}]).expand(3000, -1)
    found = space.decode(space.neighbour_of_each(linear, torch.Generator().manual_seed(0)))
    gammas = [params["gamma"] for params in found if "gamma" in params]
    degrees = [params["degree"] for params in found if "degree" in params]
    assert len(gammas) > 500
    assert abs(sum(gammas) / len(gammas) - 0.5) < 0.05
    assert sum(gamma == 0 for gamma in gammas) == 0
    assert set(degrees) == set(range(10))
    assert degrees.count(0) < 0.2 * len(degrees)
