"""Lines, steps, rounding and ticks of numbers."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st

from deepbore import Categorical, Integer, Real, SearchSpace
from deepbore.errors import SpaceError
from deepbore.space.parameters.scale import round_decimals, round_significant


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


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


@pytest.mark.parametrize("parameter", [Integer(1, 1000, log=True), Real(-1, 1, step=0.001), Integer(0, 499)])
def test_numbers_of_many_levels_move_along_their_scale_or_to_the_next_level(parameter):
    space = SearchSpace({"p": parameter})
    start = space.points.in_the_middle(space.points.sample(1, generator()))
    near = space.points.neighbours(start, 2000, generator())
    landed = space.points.snap(SearchSpace({"p": Real(0, 1)}).points.neighbours(start, 2000, generator()))
    stepped = near == landed
    assert 0.4 < stepped.double().mean() < 0.6
    levels = (parameter.to_level(near) - parameter.to_level(start))[~stepped]
    assert set(levels.round().tolist()) == {-1, 1}


# regression: this was wrong once
def test_steps_of_whole_numbers_may_be_as_fine_as_whole_numbers_are():
    assert Integer(0, 2**32 - 1, step=1) == Integer(0, 2**32 - 1)
    even = Integer(-4 * 10**14, 4 * 10**14, step=2)
    values = [-4 * 10**14, 2, 4 * 10**14 - 2]
    assert even.decode(even.encode(values)) == values
    with pytest.raises(SpaceError, match="high must be low plus a multiple"):
        Integer(0, 4 * 10**14 + 1, step=2)
