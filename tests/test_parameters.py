"""Parameters one by one: bounds, choices, rounding and ticks."""

import copy
import json
import math
import pickle
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st

from cases import PARAMETERS
from deepbore import Categorical, Condition, Integer, Ordinal, Real, SearchSpace, minimize
from deepbore.errors import PointError, SpaceError
from deepbore.space.features import Coordinates, squared_distances
from deepbore.space.parameters.base import KINDS
from deepbore.space.parameters.scale import round_decimals, round_significant


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


# --- every type ------------------------------------------------------------------------------------------------------


def test_every_type_has_a_case():
    kinds = {kind for kind, cls in KINDS.items() if cls.__module__.startswith("deepbore.")}
    assert {parameter.kind for parameter in PARAMETERS.values()} == kinds


@pytest.mark.parametrize("parameter", PARAMETERS.values(), ids=PARAMETERS)
def test_a_parameter_keeps_its_contract(parameter):
    """The same alone and in a space where it is conditional; its numbers lie where they should."""
    conditional = replace(parameter, when=Condition("on", 1))
    space = SearchSpace({"on": Ordinal([0, 1]), "p": conditional, "free": parameter})
    points = space.sample(200, generator())
    configurations = space.decode(points)
    assert space.decode(space.encode(configurations)) == configurations
    near = space.neighbours(points, 300, generator())
    for each in (points, near):
        assert torch.allclose(space.snap(each), each, atol=1e-12)
        assert ((each >= 0) & (each <= space.bounds[1] + 1e-12)).all()
        assert space.features(each).abs().max() <= 1 + 1e-12
    x = Coordinates(SearchSpace({"p": parameter}))(near[:, 2:])
    assert squared_distances(x, x).max() == pytest.approx(1.0, abs=0.1)
    moved = parameter.decode(parameter.moved(near[:, 2], *torch.rand(3, 300, generator=generator()).double()))
    assert np.mean([a != b for a, b in zip(moved, parameter.decode(near[:, 2]), strict=True)]) > 0.9
    texts = [str(params["free"]) for params in configurations]
    read = [parameter.read(text) for text in texts]
    assert parameter.decode(parameter.encode(read)) == [params["free"] for params in configurations]
    assert SearchSpace.from_dict(json.loads(json.dumps(space.to_dict()))) == space
    ticks = parameter.ticks(5)
    assert 1 < len(ticks) <= 5
    assert parameter.decode(parameter.encode(ticks)) == ticks


# --- what a parameter says of itself ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameter", "says"),
    [
        (Real(0, 1), (True, True, True, 1.0)),
        (Integer(3, 9, log=True), (False, True, True, 1.0)),
        (Ordinal([1, 5, 7]), (False, True, False, 2.0)),
        (Categorical(list("abcd")), (False, False, False, 3.0)),
    ],
)
def test_predicates(parameter, says):
    assert (parameter.is_continuous, parameter.is_ordered, parameter.is_numeric, parameter.upper) == says


@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6), st.integers(2, 12), st.booleans())
@settings(max_examples=200)
def test_ticks_are_few_round_and_inside(low, width, most, log):
    low = abs(low) + 1e-3 if log else low
    high = low + max(width, 1e-4 * abs(low))
    ticks = Real(low, high, log=log).ticks(most)
    assert 2 <= len(ticks) <= most + 1
    assert all(low <= tick <= high for tick in ticks)
    assert ticks == sorted(set(ticks))
    assert Real(low, high, log=log).encode(ticks).diff().min() > 0


def test_ticks_of_integers_are_whole_values():
    assert Integer(1, 5).ticks(6) == [1, 2, 3, 4, 5]
    assert Integer(0, 9).ticks(5) == [0, 2, 4, 6, 8]
    assert Integer(1, 1000, log=True).ticks(4) == [1, 10, 100, 1000]
    assert Categorical(list("abcdef")).ticks(3) == ["a", "c", "e"]


# --- rounding --------------------------------------------------------------------------------------------------------


@given(st.integers(-30, 24), st.integers(0, 1000))
@settings(max_examples=100)
def test_arrays_are_rounded_as_python_rounds(decimals, seed):
    rng = np.random.default_rng(seed)
    values = rng.uniform(-1, 1, 500) * 10.0 ** (14 - decimals - 10 * rng.uniform(size=500))
    halves = (np.floor(values * 10.0**decimals) + 0.5) / 10.0**decimals  # at a tie, or next to one
    for each in (values, halves, np.nextafter(halves, 1e300), np.array([0.0, -0.0])):
        assert round_decimals(each, decimals).tolist() == [round(value, decimals) for value in each.tolist()]


@given(st.integers(0, 1000))
@settings(max_examples=100)
def test_arrays_keep_digits_as_python_writes_them(seed):
    rng = np.random.default_rng(seed)
    values = 10.0 ** rng.uniform(-40, 40, 500)
    powers = 10.0 ** np.arange(-30, 30)
    ties = (np.floor(values[:200] / 10.0 ** np.floor(np.log10(values[:200])) * 1e11) + 0.5) * 1e-15
    for each in (values, powers, np.nextafter(powers, 0), np.nextafter(powers, 1e300), ties):
        assert round_significant(each, 12).tolist() == [float(f"{value:.11e}") for value in each.tolist()]


@given(st.booleans(), st.floats(1e-6, 1e6), st.floats(0.1, 1e6), st.integers(0, 1000))
@settings(max_examples=50)
def test_a_value_is_the_same_alone_and_among_many(log, low, width, seed):
    parameter = Real(low, low + max(width, 1e-4 * low), log=log)
    column = torch.rand(200, generator=generator(seed), dtype=torch.float64)
    together = parameter.decode(column)
    assert together == [parameter.decode(column[[row]])[0] for row in range(200)]
    assert all(type(native) is float for native in together)


# --- bounds ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Real(1, 1 + 4e-16), "1,000,000 values"),
        (lambda: Real(1e6, 1e6 + 1e-6, log=True), "1,000,000 values"),
        (lambda: Real(-1e308, 1e308), r"within \+-1e\+300"),
        (lambda: Real(0, 10**400), "finite"),
        (lambda: Real(0, 5e-324), "high - low >= 1e-290"),
        (lambda: Real(1e-300, 1, log=True), "low >= 1e-290"),
        (lambda: Integer(-(2**63), 2**63), r"within \+-500,000,000,000,000.*Search the difference"),
        (lambda: Integer(2**60, 2**60 + 5), "can't tell whole numbers apart"),
        (lambda: Integer(1, 2**50, log=True), r"log scale needs bounds within \+-10,000,000,000,000"),
        (lambda: Integer(1, 11, log=2), "True or False, but got log=2"),
        (lambda: Real(1, 11, log="false"), "True or False, but got log='false'"),
        (lambda: Integer(1, 11, log=1), "True or False, but got log=1"),
        (lambda: Real(0, 1, when={}), "when needs a condition"),
        (lambda: Real(0, 1, when={"opt": []}), "'opt' got none"),
        (lambda: Real(0, 1, when={3: "sgd"}), "names its parent first"),
        (lambda: Real(0, 1, when="opt"), "a dict, as in"),
        (lambda: Integer(0, 1, when=["sgd"]), "when must be a Condition"),
        (lambda: Categorical([1, 2], when=lambda params: True), "when must be a Condition"),
        (lambda: Condition(["sgd"], "opt"), "names its parent first"),
        (lambda: Condition("opt", []), "got none"),
    ],
)
def test_bounds_and_conditions_that_cannot_work_are_refused(make, says):
    with pytest.raises(SpaceError, match=says):
        make()


@pytest.mark.parametrize("kind", [Real, Integer])
def test_log_step_and_when_are_keywords(kind):
    name = kind.__name__
    with pytest.raises(SpaceError, match=rf"by keyword, but got 2 .* Give {name}\(1, 11, step=2\)"):
        kind(1, 11, 2)
    with pytest.raises(SpaceError, match="by keyword, but got True"):
        kind(1, 11, True)
    assert kind(1, 11) == kind(low=1, high=11)
    assert copy.deepcopy(kind(1, 11)) == pickle.loads(pickle.dumps(kind(1, 11))) == replace(kind(1, 10), high=11)


@given(st.sampled_from([False, True]), st.integers(0, 10_000))
@settings(max_examples=60)
def test_the_largest_integers_are_kept_exactly(log, seed):
    rng = np.random.default_rng(seed)
    high = 10**13 if log else 5 * 10**14
    parameter = Integer(1, high, log=True) if log else Integer(-high, high)
    near = high - rng.integers(0, 1000, 50)
    values = [*rng.integers(parameter.low, high, 100).tolist(), *near.tolist(), parameter.low, high]
    assert parameter.decode(parameter.encode(values)) == values


def test_bounds_become_pythons_own():
    parameter = Integer(np.int64(1), np.float64(9.0), log=np.True_)
    assert parameter == Integer(1, 9, log=True)
    assert [type(value) for value in parameter.settings().values()] == [int, int, bool]
    assert json.dumps(SearchSpace({"x": Real(np.float32(0), np.int8(3))}).to_dict())


# --- choices ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "choices",
    [[(1, 2), (3, 4)], [math.nan, 1.0], [math.inf, 1.0], [b"a", b"b"], [object(), object()], [[1], [2]], [1j, 2j]],
)
def test_choices_that_a_journal_cannot_give_back_are_refused(choices):
    with pytest.raises(SpaceError, match="Give each choice a name"):
        Categorical(choices)


@pytest.mark.parametrize("choices", ["relu", {"relu", "tanh"}, 3, None])
def test_choices_are_a_list(choices):
    with pytest.raises(SpaceError, match="must be a list"):
        Ordinal(choices)


scalars = st.one_of(
    st.integers(), st.text(), st.booleans(), st.none(), st.floats(allow_nan=False, allow_infinity=False)
)


@pytest.mark.slow
@given(st.lists(scalars, min_size=2, max_size=9, unique_by=lambda c: (isinstance(c, bool), c)))
@settings(max_examples=200)
def test_choices_come_back_from_json_and_are_told_apart(choices):
    parameter = Categorical(choices)
    again = SearchSpace.from_dict(json.loads(json.dumps(SearchSpace({"c": parameter}).to_dict(), allow_nan=False)))
    assert again == SearchSpace({"c": parameter})
    assert again.parameters["c"].encode(choices).tolist() == list(range(len(choices)))
    decoded = parameter.decode(torch.arange(len(choices)).double())
    assert [(type(a), a) for a in decoded] == [(type(c), c) for c in choices]


def test_choices_of_numpy_become_pythons_own():
    parameter = Ordinal(np.array([1, 2, 4]))
    assert [type(choice) for choice in parameter.choices] == [int] * 3
    assert Ordinal(torch.tensor([1, 2, 4])).choices == Ordinal([torch.tensor(1), np.array(2), 4]).choices == (1, 2, 4)
    assert Condition("n", torch.tensor([1, 2])).values == Condition("n", [np.int8(1), np.array(2)]).values == (1, 2)
    assert Categorical([np.str_("a"), np.bool_(True), np.float64(0.5)]).choices == ("a", True, 0.5)


@pytest.mark.parametrize(
    ("parameter", "values", "levels"),
    [
        (Ordinal([1, 2, 4]), np.array([4, 1, 2, 4]), [2, 0, 1, 2]),
        (Ordinal([1, 2, 4]), [np.int64(4), np.float64(1.0), np.array(2), torch.tensor(4)], [2, 0, 1, 2]),
        (Categorical([True, False]), np.array([False, True]), [1, 0]),
        (Categorical([True, 1, None]), [1, True, None, np.True_], [1, 0, 2, 0]),
        (Categorical(["a", "b"]), np.array(["b", "a"]), [1, 0]),
        (Categorical(["a", "b"]), np.array(["b", "a"], dtype=object), [1, 0]),
    ],
)
def test_choices_are_encoded_from_numpy(parameter, values, levels):
    assert parameter.encode(values).tolist() == levels


@pytest.mark.parametrize(
    ("parameter", "values", "says"),
    [
        (Ordinal([1, 2]), [1, True], "among .*, but got True"),
        (Categorical([True, False]), [1], "but got 1"),
        (Categorical(["a", "b"]), ["a", ["b"]], r"but got \['b'\]"),
        (Categorical(["a", "b"]), [math.nan], "but got nan"),
        (Real(0, 1), [10**400], "numbers"),
        (Real(0, 1), [[0.5], [0.2]], "each row needs one number"),
        (Integer(0, 9), [np.float32(0.5)], "whole numbers"),
    ],
)
def test_values_outside_are_refused(parameter, values, says):
    with pytest.raises(PointError, match=says):
        parameter.encode(values)


@pytest.mark.parametrize("value", [np.float32(0.25), np.float64(0.25), np.array(0.25), torch.tensor(0.25)])
def test_numbers_of_numpy_and_torch_are_numbers(value):
    assert Real(0, 1).encode([value]).tolist() == [0.25]


@pytest.mark.parametrize("parameter", [Integer(1, 1000, log=True), Real(-1, 1, step=0.001), Integer(0, 499)])
def test_numbers_of_many_levels_move_along_their_scale_or_to_the_next_level(parameter):
    space = SearchSpace({"p": parameter})
    start = space.in_the_middle(space.sample(1, generator()))
    near = space.neighbours(start, 2000, generator())
    landed = space.snap(SearchSpace({"p": Real(0, 1)}).neighbours(start, 2000, generator()))
    stepped = near == landed
    assert 0.4 < stepped.double().mean() < 0.6
    levels = (parameter.to_level(near) - parameter.to_level(start))[~stepped]
    assert set(levels.round().tolist()) == {-1, 1}


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
def test_a_run_finds_numbers_over_six_orders_of_magnitude(seed):
    space = SearchSpace({f"x{i}": Integer(1, 10**6, log=True) for i in range(3)})

    def squared(params):
        return sum((math.log10(x) - at) ** 2 for x, at in zip(params.values(), (1.3, 2.7, 3.9), strict=True))

    assert minimize(squared, space, 40, seed=seed).values.min() < 1e-5  # the least that whole numbers give is 1.1e-6
