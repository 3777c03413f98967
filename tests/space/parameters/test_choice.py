"""Choices: which are taken, and that they come back as they were."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st

from deepbore import Categorical, Condition, Ordinal, SearchSpace, Study
from deepbore.errors import SpaceError
from plane import DESIGN


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


# regression: choices that JSON can't carry run, and can never be loaded
@pytest.mark.parametrize("choices", [[(1, 2), (3, 4)], [[1], [2]], [{"a": 1}, {}], [1.0, float("nan")], [Path(), "b"]])
@pytest.mark.parametrize("kind", [Categorical, Ordinal])
def test_a7_choices_that_a_journal_cannot_give_back_are_refused_at_once(kind, choices):
    with pytest.raises(SpaceError, match=r"choices must be strings.* but got .*Give each choice a name"):
        kind(choices)


def test_a7_choices_come_back_from_a_journal_as_they_were(tmp_path):
    choices = ["a", 1, 2.5, True, None, np.float32(0.5), np.int64(7)]
    study = Study(SearchSpace({"c": Categorical(choices)}), journal=tmp_path / "run.jsonl", n_initial=DESIGN)
    given = [trial.params["c"] for trial in study.ask(7)]
    study.close()
    loaded = [trial.params["c"] for trial in Study.load(tmp_path / "run.jsonl").trials]
    assert [(type(c), c) for c in loaded] == [(type(c), c) for c in given]
