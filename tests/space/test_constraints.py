"""Constraints and fixed values of a space: against brute force, in every draw, and what is refused."""

import json
import pickle

import pytest
import torch
from hypothesis import given, settings, strategies as st

from deepbore import Categorical, Integer, Ordinal, Real, SearchSpace
from deepbore.errors import SpaceError
from drawn_spaces import chain, conditional_spaces


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


NUMBERS = (
    "{a} + {b} <= 2|{a} * {b} >= 1|2 * {a} < {b} + 1.5|{a} in [0, 1, 2.5] or {b} > 0|not {a} == {b}|-2 < {a} <= {b}"
)

NUMBERS += "|{b} != 0 and {a} / {b} < 2|{a} % 2 == 0 or {b} // 2 == 0|{a} ** 2 + {b} ** 2 <= 4"

ANY = "{a} == {b}|{a} != {b} or {a} in ['a', 'b']"


@st.composite
def constrained_spaces(draw):
    """A finite conditional space, and up to three expressions over pairs of its parameters."""
    space = draw(conditional_spaces(continuous=False))
    expressions = []
    for _ in range(draw(st.integers(1, 3))):
        a, b = (draw(st.sampled_from(space.names)) for _ in range(2))
        numeric = all(space.parameters[name].is_numeric for name in (a, b))
        form = draw(st.sampled_from((NUMBERS if numeric else ANY).split("|")))
        expressions.append(form.format(a=a, b=b))
    return space, expressions


def meets(params, expression, names):
    """The expression as Python has it; one that names an inactive parameter holds."""
    named = [name for name in names if name in expression.replace("'", " ")]
    return any(name not in params for name in named) or bool(eval(expression, {}, dict(params)))


def brute_force(space, expressions):
    """The points of an unconstrained space whose configurations meet the expressions."""
    points = space.points.enumerate()
    met = [all(meets(params, each, space.names) for each in expressions) for params in space.decode(points)]
    return points[torch.tensor(met)]


@pytest.mark.slow
@given(constrained_spaces(), st.integers(0, 1000))
@settings(max_examples=60)
def test_constraints_are_brute_force(case, seed):
    """Counted, enumerated, sampled and moved as if all configurations were made and filtered."""
    space, expressions = case
    try:
        allowed = brute_force(space, expressions)
    except TypeError:
        return  # eval compares what has no order
    try:
        constrained = SearchSpace(space.parameters, constraints=expressions)
    except SpaceError as error:
        refused = str(error)
        assert not len(allowed) if "no configuration meets" in refused else "not among the choices" in refused
        return
    assert constrained.cardinality == len(allowed)
    assert torch.equal(constrained.points.enumerate(), allowed)
    inside = set(space.points.identify(allowed))
    samples, sobol = constrained.points.sample(30, generator(seed)), constrained.points.sobol(20, seed)
    near = constrained.points.neighbours(samples, 40, generator(seed))
    for points in (samples, sobol, near):
        assert set(space.points.identify(points)) <= inside
        assert constrained.points.permitted(points).all()
    whole = space.points.enumerate()
    assert constrained.points.permitted(whole).tolist() == [each in inside for each in space.points.identify(whole)]
    as_function = SearchSpace(
        space.parameters, constraints=[lambda p, e=e: meets(p, e, space.names) for e in expressions]
    )
    assert torch.equal(as_function.points.enumerate(), allowed)
    assert as_function.cardinality == len(allowed)
    assert SearchSpace.from_dict(json.loads(json.dumps(constrained.to_dict()))) == constrained
    assert pickle.loads(pickle.dumps(constrained)) == constrained


@pytest.mark.slow
@given(conditional_spaces(continuous=False), st.data())
@settings(max_examples=60)
def test_fixed_values_are_brute_force(space, data):
    fixed = {}
    for name in data.draw(st.sets(st.sampled_from(space.names), max_size=3)):
        fixed[name] = data.draw(
            st.sampled_from(
                space.parameters[name].decode(
                    space.parameters[name].from_level(torch.arange(space.parameters[name].levels).double())
                )
            )
        )
    still = space.with_fixed(fixed)
    points = space.points.enumerate()
    kept = [all(params.get(name, value) == value for name, value in fixed.items()) for params in space.decode(points)]
    allowed = points[torch.tensor(kept)]
    assert still.cardinality == len(allowed)
    assert torch.equal(still.points.enumerate(), allowed)
    assert still.points.permitted(points).tolist() == kept
    inside = set(space.points.identify(allowed))
    samples = still.points.sample(20, generator())
    for drawn in (
        samples,
        still.points.sobol(20, 0),
        still.points.neighbours(points, 40, generator()),
        still.points.snap(points),
    ):
        assert set(space.points.identify(drawn)) <= inside
    assert still.fixed == fixed
    assert still.points.without_fixed == space
    assert (still == space) == (not fixed)
    assert SearchSpace.from_dict(json.loads(json.dumps(still.to_dict()))) == still


def test_a_space_without_restrictions_is_as_it_was():
    space = SearchSpace({"a": Integer(1, 9), "b": Real(0, 1)})
    assert not space.points.is_restricted
    assert space.with_fixed({}) == space
    assert space.to_dict().keys() == {"a", "b"}


def test_climbers_stop_on_their_way():
    space = SearchSpace({"x": Real(0, 1), "y": Real(0, 1)}, constraints=["x <= 0.5"])
    starts = torch.tensor([[0.0, 0.0], [0.4, 0.0], [0.5, 0.1], [0.25, 0.0]], dtype=torch.float64)
    ends = torch.tensor([[0.8, 0.8], [0.3, 1.0], [0.9, 0.9], [1.0, 1.0]], dtype=torch.float64)
    kept = ends.clone()
    assert space.points.project_to_feasible(starts, ends).tolist() == [
        [0.4, 0.4],
        [0.3, 1.0],
        [0.5, 0.1],
        [0.4375, 0.25],
    ]
    assert torch.equal(ends, kept)


def test_a_chain_under_a_constraint_costs_what_it_holds():
    space = SearchSpace(chain(100).parameters, constraints=["p0 == 1", "p50 == 0"])
    assert space.cardinality == len(space.points.enumerate()) == 50 + 1 - 1


@pytest.mark.parametrize(
    ("constraints", "says"),
    [
        (3, "must be a list"),
        ({"a": 1}, "must be a list"),
        ([3], "must be an expression"),
        ([lambda p: p["b"]], "has failed for .*KeyError: 'b'"),
        ([lambda p: p["a"]], "must return True or False"),
        ([lambda p: False], "no configuration meets"),
    ],
)
def test_constraints_of_the_wrong_kind_are_refused(constraints, says):
    with pytest.raises(SpaceError, match=says):
        SearchSpace({"a": Integer(1, 9)}, constraints=constraints)


@pytest.mark.parametrize(
    ("fixed", "says"),
    [
        ({"q": 1}, r"among \['a', 'c', 'x'\], but got 'q'"),
        ({"c": "z"}, "fixed parameter 'c': values must be among"),
        ({"x": 2}, "fixed parameter 'x': values must lie in"),
        ({"a": 9, "x": 1.0}, "with the fixed values {'a': 9, 'x': 1.0}"),
        ("adam", "are a dict"),
    ],
)
def test_fixed_values_that_cannot_be_are_refused(fixed, says):
    space = SearchSpace({"a": Integer(1, 9), "c": Categorical(["x", "y"]), "x": Real(0, 1)}, constraints=["a * x < 5"])
    with pytest.raises(SpaceError, match=says):
        space.with_fixed(fixed)


# regression: each of these was wrong once
@pytest.mark.slow
@pytest.mark.parametrize("beside", [{}, {"x": Real(0, 1)}])
def test_a_scarce_rule_is_counted_by_its_own_parameters(beside):
    whole = {"a": Integer(1, 3000), "b": Integer(1, 3000)}
    space = SearchSpace({**beside, **whole}, constraints=["a * b == 2999 * 2998"])
    drawn = space.decode(space.points.sample(20, torch.Generator().manual_seed(0)))
    assert {(params["a"], params["b"]) for params in drawn} == {(2999, 2998), (2998, 2999)}
    with pytest.raises(SpaceError, match="no configuration meets"):
        SearchSpace({**beside, **whole}, constraints=["a * b == 2999 * 2998", "a > b + 1"])


@pytest.mark.parametrize("kind", [Ordinal, Categorical])
def test_true_and_one_are_two_choices_between_parameters_too(kind):
    assert kind([True, 2]) != kind([1, 2])
    assert {kind([1, 2]), kind((1.0, 2))} == {kind([1, 2])}


def test_a_function_is_named_where_nothing_meets_it():
    class Never:
        def __call__(self, params):
            return False

    def never(params):
        return False

    for rule, name in ((Never(), "Never"), (never, "never")):
        with pytest.raises(SpaceError, match=rf"constraints: \S*\.{name}\. Loosen"):
            SearchSpace({"a": Integer(0, 3), "b": Integer(0, 3)}, constraints=[rule]).points.sample(1)
