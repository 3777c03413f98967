"""Samples, Sobol points and neighbours: uniform, within the space, and where little is permitted."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st

from deepbore import Categorical, Condition, Integer, Ordinal, Real, SearchSpace
from drawn_spaces import CONDITIONAL, conditional_spaces, spaces
from plane import SQUARE


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


@given(spaces, st.integers(0, 1000))
@settings(max_examples=50)
def test_samples_sobol_and_neighbours_lie_in_the_space(space, seed):
    samples = space.points.sample(8, generator(seed))
    for points in (samples, space.points.sobol(8, seed), space.points.neighbours(samples, 20, generator(seed))):
        assert (points >= space.points.bounds[0] - 1e-12).all()
        assert (points <= space.points.bounds[1] + 1e-12).all()
        assert torch.allclose(space.points.snap(points), points, atol=1e-12)


def test_levels_are_sampled_equally_often():
    space = SearchSpace({"k": Ordinal(list(range(5))), "n": Integer(1, 5), "c": Categorical(list("abcde"))})
    for column in space.points.sample(20_000, generator()).T:
        counts = torch.unique(column, return_counts=True)[1]
        assert len(counts) == 5
        assert (counts - 4000).abs().max() < 250  # four standard deviations


def test_neighbours_change_one_or_two_parameters():
    space = SearchSpace({f"p{i}": Ordinal(list(range(6))) for i in range(9)})
    centre = space.points.sample(1, generator())
    changes = (space.points.neighbours(centre, 500, generator(1)) != centre).sum(1)
    assert set(changes.tolist()) == {1, 2}


def test_sobol_continues_where_it_stopped():
    space = SearchSpace({"x": Real(0, 1), "y": Real(0, 1)})
    whole = space.points.sobol(16, seed=3)
    assert torch.equal(torch.cat([space.points.sobol(5, 3), space.points.sobol(11, 3, skip=5)]), whole)
    cells = (whole * 4).floor()
    assert len(torch.unique(cells, dim=0)) == 16  # one point in each cell of the 4 x 4 grid


def test_switching_a_parent_on_gives_its_child_any_value():
    adam = CONDITIONAL.encode([{"opt": "adam", "beta": 0.9}])
    moved = CONDITIONAL.decode(CONDITIONAL.points.neighbours(adam, 300, generator()))
    momenta = [params["momentum"] for params in moved if "momentum" in params]
    assert len(momenta) > 20
    assert np.std(momenta) > 0.2


@given(conditional_spaces(), st.integers(0, 1000))
@settings(max_examples=100)
def test_neighbours_and_snapped_points_lie_in_the_space(space, seed):
    samples = space.points.sample(8, generator(seed))
    raw = space.points.bounds[1] * torch.rand(30, len(space), generator=generator(seed), dtype=torch.float64)
    for points in (
        space.points.neighbours(samples, 30, generator(seed)),
        space.points.sobol(8, seed),
        space.points.snap(raw),
    ):
        assert torch.allclose(space.points.snap(points), points, atol=1e-12)
        assert (points[~space.points.active(points)] == 0).all()
        assert ((points >= 0) & (points <= space.points.bounds[1] + 1e-12)).all()
    assert space.decode(space.points.snap(raw)) == space.decode(raw)


def test_what_a_move_switches_on_starts_anywhere():
    space = SearchSpace(
        {
            "kernel": Categorical(["linear", "rbf", "poly"]),
            "gamma": Real(0, 1, when=Condition("kernel", "rbf")),
            "degree": Integer(0, 9, when=Condition("kernel", "poly")),
        }
    )
    linear = space.encode([{"kernel": "linear"}]).expand(3000, -1)
    found = space.decode(space.points.neighbour_of_each(linear, torch.Generator().manual_seed(0)))
    gammas = [params["gamma"] for params in found if "gamma" in params]
    degrees = [params["degree"] for params in found if "degree" in params]
    assert len(gammas) > 500
    assert abs(sum(gammas) / len(gammas) - 0.5) < 0.05
    assert sum(gamma == 0 for gamma in gammas) == 0
    assert set(degrees) == set(range(10))
    assert degrees.count(0) < 0.2 * len(degrees)


@pytest.mark.parametrize("share", [0.3, 0.02])
def test_samples_are_uniform_over_what_is_permitted(share):
    """Also where few draws are permitted: the mean of x in a triangle below a line is a third of its width."""
    width = math.sqrt(2 * share)
    space = SearchSpace({"x": Real(0, 1), "y": Real(0, 1), "z": Real(0, 1)}, constraints=[f"x + y <= {width}"])
    means = space.points.sample(4000, generator()).mean(0)
    assert means.tolist() == pytest.approx([width / 3, width / 3, 0.5], abs=0.03 * (1 if share > 0.1 else width + 0.3))
    again = space.points.sample(4000, generator()).mean(0)
    assert torch.equal(means, again)


@pytest.mark.slow
def test_rare_configurations_are_found():
    """Each group is drawn by itself, and what random points do not find is counted."""
    pairs = {f"{side}{i}": Integer(1, 50) for i in range(5) for side in "ab"}
    space = SearchSpace(pairs, constraints=[f"a{i} == b{i}" for i in range(5)])
    assert space.cardinality == 50**5
    assert len(set(space.points.identify(space.points.sample(100, generator())))) == 100
    rare = SearchSpace({"a": Integer(1, 1500), "b": Integer(1, 1500)}, constraints=["a * b == 1500 * 1499"])
    assert rare.cardinality == len(rare.points.enumerate()) == 2
    assert rare.points.permitted(rare.points.sobol(5, 0)).all()


def test_sobol_goes_on_where_it_stopped_under_constraints():
    space = SearchSpace({"x": Real(0, 1), "y": Real(0, 1)}, constraints=["x * y < 0.3"])
    assert torch.equal(
        torch.cat([space.points.sobol(5, 3), space.points.sobol(11, 3, skip=5)]), space.points.sobol(16, 3)
    )


def test_in_more_dimensions_than_sobol_sequences_have_points_depend_on_the_seed_alone(monkeypatch):
    monkeypatch.setattr(torch.quasirandom.SobolEngine, "MAXDIM", 1)
    first = SQUARE.points.sobol(6, seed=3)
    torch.manual_seed(1)
    assert torch.equal(SQUARE.points.sobol(6, seed=3), first)
    assert torch.equal(SQUARE.points.sobol(4, seed=3, skip=2), first[2:])
    assert not torch.equal(SQUARE.points.sobol(6, seed=4), first)


def test_where_all_is_fixed_neighbours_are_where_they_were():
    fixed = SQUARE.with_fixed({"x": 0.25, "y": 0.5})
    points = fixed.points.sample(3, generator())
    assert torch.equal(fixed.points.neighbours(points, 3, generator()), points)
