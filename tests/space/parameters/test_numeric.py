"""Numbers: bounds, logarithms and steps."""

import copy
import json
import math
import pickle
import re
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st

from deepbore import Categorical, Condition, Integer, Ordinal, Real, SearchSpace, Study, minimize
from deepbore.errors import PointError, SpaceError


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


@pytest.mark.parametrize(
    "value",
    [np.float32(0.25), np.float64(0.25), np.array(0.25), torch.tensor(0.25), torch.tensor(0.25, requires_grad=True),
     torch.tensor(0.25, dtype=torch.bfloat16), torch.tensor(0.25, dtype=torch.half)],
)  # fmt: skip
def test_numbers_of_numpy_and_torch_are_numbers(value):
    assert Real(0, 1).encode([value]).tolist() == [0.25]
    study = Study(SearchSpace({"x": Real(0, 1, default=value)}))
    study.enqueue({"x": value})
    study.add({"x": [value]}, [value])
    assert [trial.params["x"] for trial in [study.ask_one(), study.ask_one(), study.trials[0]]] == [0.25] * 3


# regression: NumPy refused them
@pytest.mark.parametrize("kind", [torch.float32, torch.float64, torch.bfloat16, torch.half])
def test_tensors_are_columns(kind):
    study = Study(SearchSpace({"x": Real(0, 1)}))
    study.add({"x": torch.full((2,), 0.25, dtype=kind, requires_grad=True)}, torch.ones(2, dtype=kind))
    assert [(trial.params["x"], trial.value) for trial in study.trials] == [(0.25, 1.0)] * 2


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
def test_a_run_finds_numbers_over_six_orders_of_magnitude(seed):
    space = SearchSpace({f"x{i}": Integer(1, 10**6, log=True) for i in range(3)})

    def squared(params):
        return sum((math.log10(x) - at) ** 2 for x, at in zip(params.values(), (1.3, 2.7, 3.9), strict=True))

    assert minimize(squared, space, 40, seed=seed).values.min() < 1e-5  # the least that whole numbers give is 1.1e-6


# regression: this was wrong once
@pytest.mark.parametrize("column", [np.array([0.1 + 5j, 0.2]), np.array([3, 4], dtype="datetime64[D]")])
def test_what_is_no_number_is_refused_as_a_parameter(column):
    with pytest.raises(PointError, match="must be numbers"):
        Study(SearchSpace({"x": Real(0, 9)})).add({"x": column}, [1.0, 2.0])


@pytest.mark.parametrize(("low", "high"), [(-1e305, 1.0), (0.0, 1e-305)])
def test_bounds_without_room_for_twelve_digits_are_named(low, high):
    with pytest.raises(SpaceError, match=re.escape(f"but got low={low}, high={high}")):
        Real(low, high)
