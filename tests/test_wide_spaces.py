"""Spaces of many real parameters: their design begins in the middle of the ranges."""

import pytest

from deepbore import Categorical, Integer, Real, SearchSpace, Study


def reals(d, **others):
    return SearchSpace({**{f"x{i}": Real(1e-4, 1, log=True) for i in range(d)}, **others})


def first(study):
    return study.ask()[0].params


@pytest.mark.parametrize(("d", "n_initial"), [(10, 10), (20, 10), (40, 10), (12, 30)])
def test_a_wide_design_begins_in_the_middle_of_the_ranges(d, n_initial):
    assert first(Study(reals(d), seed=3, n_initial=n_initial)) == {f"x{i}": 0.01 for i in range(d)}


@pytest.mark.parametrize(
    "space",
    [reals(9), reals(2), reals(10, units=Integer(8, 512)), reals(10, kind=Categorical(["a", "b"]))],
    ids=["nine", "two", "an integer among them", "a category among them"],
)
def test_others_are_sobol_s_alone(space):
    assert first(Study(space, seed=3, n_initial=4)) == space.decode(space.sobol(1, seed=3))[0]


def test_the_other_points_are_sobol_s_in_batches_or_not():
    space = reals(24)
    sobol = space.decode(space.sobol(6, seed=1, skip=1))
    study = Study(space, seed=1)
    assert [first(study) for _ in range(7)][1:] == sobol
    assert [trial.params for trial in Study(space, seed=1).ask(7)][1:] == sobol


def test_fixed_parameters_stay_where_they_are():
    study = Study(reals(12), seed=0)
    study.fix({"x0": 1.0})
    assert first(study) == {"x0": 1.0} | {f"x{i}": 0.01 for i in range(1, 12)}


def test_a_middle_that_is_forbidden_is_left_out():
    space = SearchSpace({f"x{i}": Real(0, 1) for i in range(20)}, constraints=["x0 >= 0.6"])
    assert first(Study(space, seed=0)) == space.decode(space.sobol(2, seed=0))[1]


def test_earlier_results_take_the_design_s_place():
    space = reals(20)
    study = Study(space, seed=0)
    study.add({name: [0.5] for name in space.names}, [1.0])
    assert first(study) != dict.fromkeys(space.names, 0.01)
