"""Expressions of constraints: which names, words and numbers may stand in them."""

import ast

import pytest
import torch

from deepbore import Categorical, Integer, Ordinal, SearchSpace
from deepbore.errors import SpaceError


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


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
    for params in space.decode(space.points.sample(50, generator())):
        assert (params["a"] * params["b"]) ** 2 >= 10**40


# regression: this was wrong once
def test_an_expression_knows_letters_that_python_reads_as_others():
    micro = "\N{MICRO SIGN}"
    assert ast.parse(micro).body[0].value.id != micro
    space = SearchSpace({micro: Integer(1, 9), "b": Integer(1, 9)}, constraints=[f"{micro} < b"])
    assert all(params[micro] < params["b"] for params in space.decode(space.points.sobol(50, seed=0)))
