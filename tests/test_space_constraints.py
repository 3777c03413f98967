"""Constraints and fixed values of a space: against brute force, in every draw, and what is refused."""

import json
import math
import pickle

import pytest
import torch
from hypothesis import given, settings, strategies as st

from deepbore import Categorical, Integer, Ordinal, Real, SearchSpace
from deepbore.errors import SpaceError
from test_space_conditions import chain, conditional_spaces, generator

# --- brute force -----------------------------------------------------------------------------------------------------

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
    points = space.enumerate()
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
    assert torch.equal(constrained.enumerate(), allowed)
    inside = set(space.identify(allowed))
    samples, sobol = constrained.sample(30, generator(seed)), constrained.sobol(20, seed)
    near = constrained.neighbours(samples, 40, generator(seed))
    for points in (samples, sobol, near):
        assert set(space.identify(points)) <= inside
        assert constrained.permitted(points).all()
    whole = space.enumerate()
    assert constrained.permitted(whole).tolist() == [each in inside for each in space.identify(whole)]
    as_function = SearchSpace(
        space.parameters, constraints=[lambda p, e=e: meets(p, e, space.names) for e in expressions]
    )
    assert torch.equal(as_function.enumerate(), allowed)
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
    points = space.enumerate()
    kept = [all(params.get(name, value) == value for name, value in fixed.items()) for params in space.decode(points)]
    allowed = points[torch.tensor(kept)]
    assert still.cardinality == len(allowed)
    assert torch.equal(still.enumerate(), allowed)
    assert still.permitted(points).tolist() == kept
    inside = set(space.identify(allowed))
    samples = still.sample(20, generator())
    for drawn in (samples, still.sobol(20, 0), still.neighbours(points, 40, generator()), still.snap(points)):
        assert set(space.identify(drawn)) <= inside
    assert still.fixed == fixed
    assert still.without_fixed == space
    assert (still == space) == (not fixed)
    assert SearchSpace.from_dict(json.loads(json.dumps(still.to_dict()))) == still


def test_a_space_without_restrictions_is_as_it_was():
    space = SearchSpace({"a": Integer(1, 9), "b": Real(0, 1)})
    assert not space.is_restricted
    assert space.with_fixed({}) == space
    assert space.to_dict().keys() == {"a", "b"}


@pytest.mark.parametrize("share", [0.3, 0.02])
def test_samples_are_uniform_over_what_is_permitted(share):
    """Also where few draws are permitted: the mean of x in a triangle below a line is a third of its width."""
    width = math.sqrt(2 * share)
    space = SearchSpace({"x": Real(0, 1), "y": Real(0, 1), "z": Real(0, 1)}, constraints=[f"x + y <= {width}"])
    means = space.sample(4000, generator()).mean(0)
    assert means.tolist() == pytest.approx([width / 3, width / 3, 0.5], abs=0.03 * (1 if share > 0.1 else width + 0.3))
    again = space.sample(4000, generator()).mean(0)
    assert torch.equal(means, again)


@pytest.mark.slow
def test_rare_configurations_are_found():
    """Each group is drawn by itself, and what random points do not find is counted."""
    pairs = {f"{side}{i}": Integer(1, 50) for i in range(5) for side in "ab"}
    space = SearchSpace(pairs, constraints=[f"a{i} == b{i}" for i in range(5)])
    assert space.cardinality == 50**5
    assert len(set(space.identify(space.sample(100, generator())))) == 100
    rare = SearchSpace({"a": Integer(1, 1500), "b": Integer(1, 1500)}, constraints=["a * b == 1500 * 1499"])
    assert rare.cardinality == len(rare.enumerate()) == 2
    assert rare.permitted(rare.sobol(5, 0)).all()


def test_sobol_goes_on_where_it_stopped_under_constraints():
    space = SearchSpace({"x": Real(0, 1), "y": Real(0, 1)}, constraints=["x * y < 0.3"])
    assert torch.equal(torch.cat([space.sobol(5, 3), space.sobol(11, 3, skip=5)]), space.sobol(16, 3))


def test_climbers_stop_on_their_way():
    space = SearchSpace({"x": Real(0, 1), "y": Real(0, 1)}, constraints=["x <= 0.5"])
    starts = torch.tensor([[0.0, 0.0], [0.4, 0.0], [0.5, 0.1], [0.25, 0.0]], dtype=torch.float64)
    ends = torch.tensor([[0.8, 0.8], [0.3, 1.0], [0.9, 0.9], [1.0, 1.0]], dtype=torch.float64)
    kept = ends.clone()
    assert space.project_to_feasible(starts, ends).tolist() == [[0.4, 0.4], [0.3, 1.0], [0.5, 0.1], [0.4375, 0.25]]
    assert torch.equal(ends, kept)


def test_a_chain_under_a_constraint_costs_what_it_holds():
    space = SearchSpace(chain(100).parameters, constraints=["p0 == 1", "p50 == 0"])
    assert space.cardinality == len(space.enumerate()) == 50 + 1 - 1


# --- what is refused -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expression", "says"),
    [
        ("a > 20", "no configuration meets the constraints: a > 20"),
        ("a <", "must read like Python"),
        ("a < 3 or __import__('os').system('ls')", "it may have names of parameters"),
        ("a.__class__ == 3", r"'a.__class__', which is not among \['a', 'c'\]"),
        ("[x for x in [1]] == a", "it may have"),
        ("(lambda: a)() < 3", "it may have"),
        ("(a := 3) < 4", "it may have"),
        ("f'{a}' == '1'", "it may have"),
        ("a if a else 3", "it may have"),
        ("d < 3", "'d', which is not among"),
        ("c == 'z'", "'z', which is not among the choices of 'c'"),
        ("c in ['x', 'z']", "'z', which is not among the choices"),
        ("c < 3", "no order"),
        ("c * 2 == 3", "computes with 'c'"),
        ("c", "must be true or false, but 'c' is a text"),
        ("a + 1", "must be true or false"),
        ("not a", "must be true or false"),
        ("a is 3", "compared by"),
        ("a in 3", "needs a list"),
        ("3 < 4", "names no parameter"),
        ("9 ** 9 ** 9 > a", "can't be computed"),
        ("a / (a - 5) < 3", "can't be computed for .*'a': 5.*division by zero"),
        ("(-a) ** 0.5 < 3", "fractional power"),
        ("-" * 1500 + "a < 3", "nested|must read|can't be computed"),
        ("a < 3" + " " * 3000, "at most 2000 characters"),
        ("", "must read like Python"),
    ],
)
def test_expressions_that_cannot_be_meant_are_refused(expression, says):
    with pytest.raises(SpaceError, match=says) as caught:
        SearchSpace({"a": Integer(1, 9), "c": Categorical(["x", "y"])}, constraints=[expression])
    assert len(str(caught.value)) < 1000


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


def test_names_with_dots_stand_in_expressions():
    space = SearchSpace(
        {"model.width": Integer(1, 9), "data.batch": Integer(1, 9)}, constraints="model.width < data.batch"
    )
    assert space.cardinality == 36


def test_booleans_and_words_stand_in_expressions():
    parameters = {"flag": Categorical([True, False]), "c": Categorical(["a", "b", None]), "n": Ordinal([1, 2.5, 4])}
    assert SearchSpace(parameters, constraints=["flag and c != 'b'"]).cardinality == 6
    assert SearchSpace(parameters, constraints=["not flag or c in ['a', None]", "n > 2"]).cardinality == 10
    assert SearchSpace(parameters, constraints=["flag == True", "c == None"]).cardinality == 3


def test_large_numbers_are_computed_as_python_does():
    space = SearchSpace({"a": Integer(1, 10**14), "b": Integer(1, 10**14)}, constraints=["a * b * a * b >= 10 ** 40"])
    for params in space.decode(space.sample(50, generator())):
        assert (params["a"] * params["b"]) ** 2 >= 10**40
