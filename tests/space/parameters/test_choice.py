"""Choices: which are taken, and that they come back as they were."""

import itertools
import json
import math
import pickle
import time
from enum import Enum
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st
from sklearn.svm import SVC

from deepbore import Categorical, Condition, Integer, Library, Ordinal, Real, SearchSpace, Study
from deepbore.errors import PointError, SpaceError
from deepbore.space.features import Coordinates, Features
from deepbore.space.search_space import check_known
from plane import DESIGN


@pytest.mark.parametrize(
    "choices", [[math.nan, 1.0], [math.inf, 1.0], [object(), object()], [lambda: 1, lambda: 2], {1: "a", 2: "b"}]
)
def test_choices_without_a_name_of_their_own_are_refused(choices):
    with pytest.raises(SpaceError, match=r"Name (it|them)|named by texts"):
        Categorical(choices)


class Optimizer(Enum):
    SGD = "s"
    ADAM = "a"


def build():
    """A function as a choice."""


OBJECTS = {
    "estimators": ([SVC(), SVC(C=2)], ["SVC()", "SVC(C=2)"]),
    "lists": ([[64], [64, 64], (64,)], ["[64]", "[64, 64]", "(64,)"]),
    "enum": (Optimizer, ["SGD", "ADAM"]),
    "paths": ([Path("a/b"), "c"], ["a/b", "c"]),
    "classes": ([SVC, build, None], ["SVC", "build", "None"]),
    "arrays": ({"low": np.arange(3), "high": np.arange(3)}, ["low", "high"]),
    "named": ({"svc": SVC(), "64-64": [64, 64], "none": None}, ["svc", "64-64", "none"]),
}


@pytest.mark.parametrize(("choices", "names"), OBJECTS.values(), ids=OBJECTS)
@pytest.mark.parametrize("kind", [Categorical, Ordinal])
def test_any_object_is_a_choice_by_name(kind, choices, names):
    parameter = kind(choices)
    objects = list(choices.values()) if isinstance(choices, dict) else list(choices)
    column = torch.arange(len(names), dtype=torch.float64)
    assert list(parameter.names) == names == parameter.decode_plain(column)
    given = parameter.decode(column)
    assert all(a is b or a == b for a, b in zip(given, objects, strict=True))
    assert torch.equal(parameter.encode(names), column)
    assert torch.equal(parameter.encode(objects), column)
    assert [parameter.plain(each) for each in given] == names
    again = SearchSpace.from_dict(json.loads(json.dumps(SearchSpace({"c": parameter}).to_dict())))
    assert again.parameters["c"] == parameter
    assert pickle.loads(pickle.dumps(parameter)) == parameter
    with pytest.raises(PointError, match="must be among"):
        parameter.encode(["no such name"])


def test_lists_are_given_out_as_copies_and_a_name_of_another_choice_is_refused():
    parameter = Categorical({"one": [64], "two": [64, 64]})
    parameter.decode(torch.tensor([0.0]))[0].append(8)
    assert parameter.decode(torch.tensor([0.0])) == [[64]]
    with pytest.raises(SpaceError, match="must not be the name of another"):
        Categorical({"a": "b", "b": "a"})


def test_plain_data_come_back_from_a_declaration_and_other_objects_by_name_alone():
    declared = {"layers": {"type": "categorical", "choices": {"one": [64], "two": [64, 64]}}}
    assert SearchSpace.from_dict(declared).decode(torch.tensor([[1.0]])) == [{"layers": [64, 64]}]
    assert SearchSpace.from_dict(declared).to_dict() == declared
    kept = SearchSpace({"m": Categorical({"svc": SVC(), "sum": sum})}).to_dict()
    assert kept["m"]["choices"] == {"svc": {"unknown": "SVC"}, "sum": {"unknown": "sum"}}
    read = SearchSpace.from_dict(kept)
    assert read.to_dict() == kept
    assert read.decode(torch.tensor([[0.0]])) == [{"m": "svc"}]
    with pytest.raises(SpaceError, match="keeps the names alone"):
        check_known(read)


def test_conditions_and_constraints_have_names_and_functions_the_objects():
    space = SearchSpace(
        {
            "m": Categorical({"svc": SVC(), "none": None}),
            "C": Real(0, 1, when={"m": "svc"}),
            "layers": Categorical({"one": [64], "two": [64, 64]}),
        },
        constraints=["m != 'none' or layers == 'one'", lambda params: params["layers"] != [64] or params["m"] is None],
    )
    found = space.decode(space.points.sample(20, torch.Generator().manual_seed(0)))
    assert {(type(params["m"]).__name__, len(params["layers"])) for params in found} == {("SVC", 2), ("NoneType", 1)}
    assert all(("C" in params) == (params["m"] is not None) for params in found)


def test_an_unknown_setting_says_what_was_meant():
    for make, says in [
        (lambda: Real(lo=0, high=1), "Here it is low"),
        (lambda: Integer(0, 9, stp=1), "Did you mean 'step'"),
        (lambda: Categorical(values=["a", "b"]), "Here it is choices"),
    ]:
        with pytest.raises(SpaceError, match=says):
            make()


def test_a_repr_is_the_declaration_without_what_is_left_out():
    for parameter in [
        Real(0, 1), Integer(1, 9, log=True, default=3), Ordinal([1, 2]), Categorical(["a", None], default=None),
        Categorical({"one": [64], "two": [64, 64]}, when=Condition("a", 1)),
    ]:  # fmt: skip
        assert eval(repr(parameter)) == parameter
        assert "UNSET" not in repr(parameter)
    assert repr(Real(0, 1)) == "Real(0, 1)"


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


def test_a7_choices_come_back_from_a_journal_as_they_were(tmp_path):
    choices = ["a", 1, 2.5, True, None, np.float32(0.5), np.int64(7)]
    study = Study(SearchSpace({"c": Categorical(choices)}), journal=tmp_path / "run.jsonl", n_initial=DESIGN)
    given = [trial.params["c"] for trial in study.ask(7)]
    study.close()
    loaded = [trial.params["c"] for trial in Study.load(tmp_path / "run.jsonl").trials]
    assert [(type(c), c) for c in loaded] == [(type(c), c) for c in given]


KINDS = {
    "real": Real(0, 1),
    "integer": Integer(0, 5),
    "ordinal": Ordinal([1, 2, 4]),
    "categorical": Categorical(["u", "v", "w"]),
    "described": Categorical(["u", "v", "w"], features=[[0.0], [1.0], [3.0]]),
    "library": Library(np.eye(4, 8, dtype=bool)),
}


@pytest.mark.filterwarnings("error:NotImplemented should not be used")  # an error of its own from Python 3.14 on
def test_parameters_of_any_two_kinds_can_be_compared_and_stand_side_by_side():
    for (name, one), (other_name, other) in itertools.product(KINDS.items(), repeat=2):
        assert (one == other) == (name == other_name)
        assert (one != other) == (name != other_name)
        assert one != "u"
    beside = {name: each for name, each in KINDS.items() if name != "library"}
    assert list(SearchSpace(beside).parameters) == list(beside)


HALF = "run-\udcff"


def test_half_a_character_is_refused_in_choices():
    for choices in ([HALF, "b"], {HALF: 1, "b": 2}, [Path(HALF), Path("b")]):
        for kind in (Categorical, Ordinal):
            with pytest.raises(SpaceError, match=r"whole characters.*Name it"):
                kind(choices)
    assert Categorical({"odd": Path(HALF), "b": Path("b")}).names == ("odd", "b")


def test_the_inputs_of_very_many_choices_are_random_bits_of_them():
    space = SearchSpace({"c": Categorical([f"k{number}" for number in range(20_000)]), "x": Real(0, 1)})
    points = space.encode([{"c": f"k{number}", "x": 0.5} for number in range(0, 20_000, 50)])
    features, coordinates = Features(space)(points), Coordinates(space)(points)
    assert features.shape[1] == coordinates.shape[1] == 257
    assert set(features[:, :256].unique().tolist()) == {0, 1}
    assert abs(features[:, :256].mean() - 0.5) < 0.01
    apart = torch.pdist(coordinates)
    assert apart.min() > 0.7
    assert apart.max() < 1.3
    assert abs(apart.mean() - 1) < 0.01
    torch.testing.assert_close(Coordinates(space)(points.float()), coordinates.float())
    bits = torch.corrcoef(features[:, :256].T)
    assert (bits - torch.eye(256)).abs().max() < 0.3  # each says something else


@pytest.mark.parametrize("choices", [20_000, 100_000])
def test_very_many_choices_cost_seconds(choices):
    space = SearchSpace({"c": Categorical(range(choices)), "x": Real(0, 1)})
    study = Study(space, seed=0)
    began = time.process_time()
    for trial in (study.ask_one() for _ in range(13)):
        study.tell(trial, trial.params["x"] + trial.params["c"] % 7)
    assert time.process_time() - began < 15  # 60 to 84 with an input for each


def test_three_hundred_parameters_cost_seconds():
    kinds = [Real(0, 1), Integer(0, 20), Categorical(list("abcd")), Ordinal([1, 2, 4, 8])]
    study = Study({f"p{number}": kinds[number % 4] for number in range(300)}, seed=0)
    began = time.process_time()
    for trial in (study.ask_one() for _ in range(14)):
        study.tell(trial, sum(value for value in trial.params.values() if not isinstance(value, str)))
    assert time.process_time() - began < 15
