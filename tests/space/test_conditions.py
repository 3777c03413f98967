"""Conditional spaces: what is active, in long chains and under several conditions, and what is refused."""

import json
import math
import time

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st

from deepbore import Categorical, Condition, Integer, Ordinal, Real, SearchSpace
from deepbore.errors import SpaceError
from deepbore.space.features import Coordinates
from drawn_spaces import chain, conditional_spaces, is_active


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


@given(conditional_spaces(), st.integers(0, 1000))
@settings(max_examples=150)
def test_a_configuration_has_its_active_parameters_and_survives(space, seed):
    points = space.points.sample(20, generator(seed))
    configurations = space.decode(points)
    for params in configurations:
        assert list(params) == [name for name in space.names if is_active(space, name, params)]
    encoded = space.encode(configurations)
    assert space.decode(encoded) == configurations
    assert torch.equal(space.points.active(encoded), space.points.active(points))
    columns = {name: [params.get(name) for params in configurations] for name in space.names}
    assert torch.equal(space.points.encode_columns(columns), encoded)
    assert torch.equal(space.points.encode_columns({n: np.array(c, dtype=object) for n, c in columns.items()}), encoded)
    assert space.points.decode_columns(encoded) == columns


def branching(branches):
    kinds = {"kind": Categorical([f"k{i}" for i in range(branches)])}
    return SearchSpace(
        kinds | {f"p{i}_{j}": Real(0, 1, when={"kind": f"k{i}"}) for i in range(branches) for j in range(4)}
    )


def test_what_is_active_is_found_of_all_branches_together():
    def seconds(space):
        points, taken = space.points.sample(20, generator()), []
        for _ in range(7):
            begun = time.process_time()
            for _ in range(20):
                space.points.active(points)
            taken.append(time.process_time() - begun)
        return min(taken)

    assert seconds(branching(50)) < 4 * seconds(branching(5))  # ten times, column by column


def test_points_of_any_leading_shape_and_levels_out_of_range_have_active_parameters():
    space = SearchSpace(
        {
            "c": Categorical(["a", "b", "c"]),
            "x": Real(0, 1),
            "n": Integer(1, 9, when=[Condition("c", ["a", "c"]), Condition("x", ">= 0.5")]),
            "m": Integer(1, 9, when=[Condition("c", ["b"]), Condition("x", "< 0.25")]),
            "y": Real(0, 1, when={"n": "> 4"}),
        }
    )
    points = space.points.sample(60, generator())
    whole = space.points.active(points)
    assert 0 < whole[:, 2].sum() < 60
    assert 0 < whole[:, 4].sum() < whole[:, 2].sum()
    assert torch.equal(space.points.active(points.reshape(3, 20, 5)), whole.reshape(3, 20, 5))
    assert torch.equal(torch.stack([space.points.active(point) for point in points]), whole)
    beyond, last = points.clone(), points.clone()
    beyond[:, 0], last[:, 0] = 7, 2  # the nearest level
    assert torch.equal(space.points.active(beyond), space.points.active(last))


@given(conditional_spaces())
@settings(max_examples=60)
def test_conditions_survive_plain_data_whatever_their_kind(space):
    assert SearchSpace.from_dict(space.to_dict()) == space


def test_a_chain_of_a_thousand_conditions_works():
    space = chain(1000)
    assert space.cardinality == 1001
    points = space.points.enumerate()
    assert points.shape == (1001, 1000)
    assert points.sum(1).tolist() == list(range(1001))
    assert space.decode(points[:2]) == [{"p0": 0}, {"p0": 1, "p1": 0}]
    columns = {name: [0, 1] for name in space.names}
    assert space.points.encode_columns(columns).sum(1).tolist() == [0, 1000]
    assert SearchSpace.from_dict(space.to_dict()) == space
    assert torch.equal(space.points.snap(points), points)
    assert Coordinates(space.points)(points[:2]).shape == (2, 1999)


def test_a_circle_at_the_end_of_a_chain_is_named():
    pairs = dict(chain(900).parameters) | {"p0": Integer(0, 1, when=Condition("p899", 1))}
    with pytest.raises(SpaceError, match=r"circle.*'p0', 'p1'"):
        SearchSpace(pairs)


def test_a_chain_backwards_is_the_same_space():
    space = chain(40)
    backwards = SearchSpace(reversed(space.parameters.items()))
    points = backwards.points.enumerate()
    assert torch.equal(points, torch.unique(points, dim=0))
    assert torch.equal(torch.unique(points.flip(1), dim=0), space.points.enumerate())


def test_a_conditions_set_of_values_has_one_order():
    assert Condition("c", {"b", "a", "d"}).values == ("a", "b", "d")
    assert Condition("n", np.array([3, 1])).values == (3, 1)


def test_several_conditions_and_comparisons():
    space = SearchSpace(
        {
            "kind": Categorical(["mlp", "conv", "none"]),
            "layers": Integer(1, 4, when={"kind": "!= none"}),
            "size": Ordinal(["small", "medium", "large"]),
            "dropout": Real(0, 1),
            "width": Ordinal([8, 16], when={"kind": ["mlp", "conv"], "layers": ">= 3"}),
            "wide": Ordinal([1, 2], when=[Condition("size", ">= medium"), {"dropout": "> 0.5"}]),
            "odd": Ordinal([1, 2], when=[{"layers": ["< 2", 3]}, {"layers": "<= 3"}]),
        }
    )
    for params in space.decode(space.points.sample(300, generator())):
        layers = params.get("layers", 0)
        assert ("layers" in params) == (params["kind"] != "none")
        assert ("width" in params) == (layers >= 3)
        assert ("wide" in params) == (params["size"] != "small" and params["dropout"] > 0.5)
        assert ("odd" in params) == (layers in (1, 3))
    assert SearchSpace.from_dict(json.loads(json.dumps(space.to_dict()))) == space


@given(st.integers(0, 10**6), st.sampled_from(["<", "<=", ">", ">="]), st.booleans())
@settings(max_examples=60)
def test_a_condition_on_a_real_parent_goes_by_its_native_value(micros, sign, log):
    bound = 0.1 + micros * 9e-7
    space = SearchSpace(
        {"x": Real(0.1, 1, log=log), "k": Ordinal([1, 2], when={"x": f"{sign} {bound!r}"})}
        if (0.1 < bound < 1)
        else {"x": Real(0.1, 1), "k": Ordinal([1, 2], when={"x": "> 0.5"})}
    )
    here = space.parameters["x"].encode([bound])
    points = space.points.snap(torch.stack([(here + d * 1e-13).clamp(0, 1) for d in range(-9, 10)]).repeat(1, 2))
    params = space.decode(points)
    assert torch.equal(space.points.active(space.encode(params)), space.points.active(points))
    assert all(is_active_natively(space, p) == ("k" in p) for p in params)


def is_active_natively(space, params):
    sign, bound = space.parameters["k"].when.values[0].split()
    return eval(f"{params['x']!r} {sign} {bound}")


@pytest.mark.parametrize(
    ("parent", "when", "says"),
    [
        (Integer(0, 9), "> 9", "never holds"),
        (Integer(0, 9), "> nine", "compared with a number, but got 'nine'"),
        (Integer(0, 9), "> nan", "compared with a number"),
        (Integer(0, 9), [], "got none"),
        (Integer(0, 9), "three", "impossible values"),
        (Categorical(["u", "v"]), "> u", "needs an order"),
        (Categorical(["u", "v"]), "!= w", "among .*'w'"),
        (Ordinal(["u", "v"]), "> v", "never holds"),
        (Real(0, 1), 0.5, "no values to name"),
        (Real(0, 1), "== 0.5", "too narrow"),
        (Real(0, 1), "> 2", "never holds"),
        (Integer(0, 9), {"b": 1}, "impossible values"),
        (Integer(0, 9), lambda value: value > 3, "impossible values"),
    ],
)
def test_conditions_that_cannot_be_meant_are_refused(parent, when, says):
    with pytest.raises(SpaceError, match=says):
        SearchSpace({"a": parent, "k": Ordinal([1, 2], when={"a": when})})


def test_conditions_that_never_hold_together_are_refused():
    with pytest.raises(SpaceError, match=r"conditions of 'c'.*never hold together"):
        SearchSpace(
            {"a": Integer(0, 9), "b": Integer(0, 3, when={"a": "> 3"}), "c": Integer(0, 3, when={"a": 2, "b": 1})}
        )
    both = SearchSpace({"a": Integer(0, 9), "k": Integer(1, 2, when=[{"a": ">= 3"}, {"a": "<= 5"}])})
    assert both.cardinality == 7 + 3 * 2


def test_a_choice_that_looks_like_a_comparison_is_a_choice():
    space = SearchSpace({"a": Categorical(["< 2", ">= 2"]), "k": Ordinal([1, 2, 3], when={"a": ">= 2"})})
    assert space.cardinality == 1 + 3


def test_conditions_on_parents_of_very_many_levels():
    space = SearchSpace({"n": Integer(1, 10**13), "k": Integer(1, 3, when={"n": "> 5"})})
    assert space.cardinality == 5 + 3 * (10**13 - 5)
    steps = SearchSpace({"n": Integer(0, 100, step=10), "k": Integer(1, 3, when={"n": "> 45"})})
    assert steps.cardinality == len(steps.points.enumerate()) == 5 + 3 * 6


@given(conditional_spaces(several=True), st.integers(0, 1000))
@settings(max_examples=60)
def test_several_conditions_are_brute_force(space, seed):
    for params in space.decode(space.points.sample(20, generator(seed))):
        assert list(params) == [name for name in space.names if is_active(space, name, params)]
    if not math.isinf(space.cardinality):
        points = space.points.enumerate()
        grid = torch.cartesian_prod(
            *[p.from_level(torch.arange(p.levels).double()) for p in space.parameters.values()]
        ).reshape(-1, len(space))
        assert torch.equal(points, torch.unique(space.points.snap(grid), dim=0))
        assert space.cardinality == len(points)
    assert SearchSpace.from_dict(json.loads(json.dumps(space.to_dict()))) == space


def test_choices_of_numpy_stand_in_conditions_and_fixed_values():
    space = SearchSpace(
        {
            "c": Categorical(np.array(["a", "b"])),
            "n": Integer(np.int8(1), np.array(9)),
            "x": Real(0, 1, when={"c": np.array(["a"])}),
        }
    )
    still = space.with_fixed({"n": np.int64(3), "c": np.str_("b")})
    assert still.fixed == {"n": 3, "c": "b"}
    assert space.encode([{"c": np.str_("a"), "n": np.float32(3), "x": np.array(0.5)}]).tolist() == [[0, 0.25, 0.5]]
    assert json.dumps(still.to_dict())


# regression: this was wrong once
def test_choices_beyond_all_floats_may_be_compared():
    space = SearchSpace({"n": Ordinal([1, 10**400]), "m": Integer(1, 100)}, constraints=["n + m > 5"])
    assert space.cardinality == 100 + 96


def test_parents_come_before_their_children_in_the_order_of_declaration():
    space = SearchSpace(
        {
            "grandchild": Real(0, 1, when=Condition("child", "a")),
            "one": Categorical(["a", "b"]),
            "child": Categorical(["a", "b"], when=Condition("one", "a")),
            "two": Real(0, 1),
            "three": Real(0, 1),
        }
    )
    names = [space.names[column] for column in space.points.structure.conditions.order]
    assert names == ["one", "child", "grandchild", "two", "three"]


@pytest.mark.parametrize("values", [["< 3", "< 5"], ["< 5", "< 3"], ["< 3", "< 2", "== 3", "== 4"]])
def test_comparisons_that_overlap_hold_where_one_of_them_does(values):
    for parent in (Integer(0, 9), Real(0, 9, step=1)):
        space = SearchSpace({"k": parent, "x": Real(0, 1, when=Condition("k", values))})
        active = {params["k"] for params in space.decode(space.points.sample(300, generator())) if "x" in params}
        assert active == {0, 1, 2, 3, 4}
