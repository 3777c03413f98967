"""Finite spaces: counted and enumerated, and where counting would take too long."""

import math
import tracemalloc

import pytest
import torch
from hypothesis import given, settings

import deepbore as db
from deepbore import Categorical, Condition, Integer, Ordinal, Real, SearchSpace
from deepbore.errors import SpaceError, SpaceExhausted
from drawn_spaces import CONDITIONAL, conditional_spaces


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


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
    points = space.points.enumerate()
    assert len(points) == space.cardinality == len(set(space.points.identify(points)))
    seen = set(space.points.identify(space.points.sample(5000, generator())))
    assert seen == set(space.points.identify(points))


def test_a_continuous_space_is_infinite():
    assert math.isinf(CONDITIONAL.cardinality)
    with pytest.raises(SpaceError, match="finite"):
        CONDITIONAL.points.enumerate()


@given(conditional_spaces(continuous=False))
@settings(max_examples=50)
def test_a_finite_space_is_enumerated_in_order_without_repetition(space):
    points = space.points.enumerate()
    assert len(points) == space.cardinality == len(set(space.points.identify(points)))
    assert torch.equal(points, torch.unique(points, dim=0))
    grid = torch.cartesian_prod(
        *[p.from_level(torch.arange(p.levels).double()) for p in space.parameters.values()]
    ).reshape(-1, len(space))
    assert torch.equal(points, torch.unique(space.points.snap(grid), dim=0))


def test_five_algorithms_with_settings_of_their_own_are_not_a_grid():
    space = SearchSpace(
        {"algorithm": Categorical(list("abcde"))}
        | {f"{a}{i}": Integer(1, 10, when=Condition("algorithm", a)) for a in "abcde" for i in (1, 2)}
    )
    tracemalloc.start()
    points = space.points.enumerate()
    assert tracemalloc.get_traced_memory()[1] < 10e6  # the grid has 5e10 rows
    tracemalloc.stop()
    assert space.cardinality == len(points) == len(set(space.points.identify(points))) == 500


def test_a_huge_cardinality_counts_as_infinite():
    space = SearchSpace({f"n{i}": Integer(1, 10**6) for i in range(60)})
    assert space.cardinality == math.inf
    assert SearchSpace({f"n{i}": Integer(1, 10**6) for i in range(40)}).cardinality == 10**240
    assert math.isinf(SearchSpace({**space.parameters, "x": Real(0, 1)}).cardinality)
    assert space.decode(space.encode(space.decode(space.points.sobol(3, 0)))) == space.decode(space.points.sobol(3, 0))
    with pytest.raises(SpaceError, match="Use sample or sobol"):
        space.points.enumerate()
    with pytest.raises(SpaceError, match="1,000,000,000 entries"):
        SearchSpace({"a": Integer(1, 10**6), "b": Integer(1, 10**6)}).points.enumerate()


def test_conditions_on_many_levels_are_counted():
    space = SearchSpace(
        {"n": Integer(1, 100_000), "x": Integer(1, 3, when=Condition("n", range(2, 100_001))), "c": Ordinal([1, 2])}
    )
    assert space.cardinality == 2 * (1 + 3 * 99_999)
    points = space.points.sample(1000, generator())
    assert torch.equal(space.points.active(points)[:, 1], points[:, 0] > 0)


# regression: each of these was wrong once
def test_what_a_constraint_keeps_inactive_is_not_enumerated():
    space = SearchSpace(
        {
            "opt": Categorical(["sgd", "adam"]),
            "k": Integer(1, 40),
            "seed": Integer(0, 10**12, when={"opt": "sgd"}),
        },
        constraints=["opt == 'adam'"],
    )
    assert len(space.points.enumerate()) == 40


def idle(high, **settings):
    """A space of 8 configurations once "opt" is fixed: then "period" is never active."""
    period = db.Integer(1, high, log=True, when={"opt": "sgd"})
    depth = db.Integer(1, 8)
    return db.SearchSpace({"opt": db.Categorical(["sgd", "adam"]), "depth": depth, "period": period}, **settings)


@pytest.mark.parametrize("settings", [{}, {"constraints": ["period <= 100000 * depth"]}])
def test_a_parameter_that_is_never_active_costs_nothing(settings):
    space = idle(10**13, **settings)
    assert space.with_fixed({"opt": "adam"}).cardinality == 8
    study = db.Study(space, seed=0)
    study.fix({"opt": "adam"})
    study.optimize(lambda params: params["depth"], 20)
    assert sorted(trial.params["depth"] for trial in study.trials) == list(range(1, 9))


@pytest.mark.slow
@pytest.mark.parametrize("batch_size", [1, 8])
def test_a_space_that_is_small_without_being_known_to_be_ends_the_run(uncounted, batch_size, caplog):
    found = db.minimize(lambda params: params["max_depth"], uncounted, 30, batch_size=batch_size, seed=0)
    assert len(found.study.trials) == 20
    assert "the run ends" in caplog.text
    with pytest.raises(SpaceExhausted):
        found.study.ask()
