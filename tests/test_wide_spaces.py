"""Spaces of many real parameters: their design begins in the middle of the ranges."""

import pytest

from deepbore import Categorical, Integer, Real, SearchSpace, Study


def reals(d, **others):
    return SearchSpace({**{f"x{i}": Real(1e-4, 1, log=True) for i in range(d)}, **others})


def first(study):
    return study.ask()[0].params


@pytest.mark.parametrize(("d", "n_initial"), [(20, 10), (8, 4), (40, 10)])
def test_a_wide_design_begins_in_the_middle_of_the_ranges(d, n_initial):
    assert first(Study(reals(d), seed=3, n_initial=n_initial)) == {f"x{i}": 0.01 for i in range(d)}


@pytest.mark.parametrize(("d", "n_initial"), [(19, 10), (7, 4), (2, 10)])
def test_others_are_sobol_s_alone(d, n_initial):
    space = reals(d)
    assert first(Study(space, seed=3, n_initial=n_initial)) == space.decode(space.sobol(1, seed=3))[0]


def test_the_other_points_are_sobol_s_in_batches_or_not():
    space = reals(24)
    sobol = space.decode(space.sobol(6, seed=1, skip=1))
    study = Study(space, seed=1)
    assert [first(study) for _ in range(7)][1:] == sobol
    assert [trial.params for trial in Study(space, seed=1).ask(7)][1:] == sobol


def test_fixed_parameters_and_those_of_other_kinds_stay_where_they_are():
    slope = Real(0, 1, when={"kind": "b"})
    space = reals(20, units=Integer(8, 512, log=True), kind=Categorical(["a", "b"]), slope=slope)
    seen = set()
    for seed in range(4):
        study = Study(space, seed=seed)
        study.fix({"x0": 1.0})
        params = first(study)
        (sobol,) = space.decode(space.sobol(1, seed=seed))
        assert params["x0"] == 1.0
        assert {params[f"x{i}"] for i in range(1, 20)} == {0.01}
        assert (params["units"], params["kind"]) == (sobol["units"], sobol["kind"])
        assert params.get("slope", 0.5) == 0.5
        seen.add(params["kind"])
    assert seen == {"a", "b"}


def test_a_middle_that_is_forbidden_is_left_out():
    space = SearchSpace({f"x{i}": Real(0, 1) for i in range(20)}, constraints=["x0 >= 0.6"])
    assert first(Study(space, seed=0)) == space.decode(space.sobol(2, seed=0))[1]


def test_earlier_results_take_the_design_s_place():
    space = reals(20)
    study = Study(space, seed=0)
    study.add({name: [0.5] for name in space.names}, [1.0])
    assert first(study) != dict.fromkeys(space.names, 0.01)
