"""The best value at a bound is found on the finest grids as on real ranges."""

import pytest

from deepbore import Integer, Real, SearchSpace, Study


def first_at_corner(parameter, top):
    """The first trial that is at the corner of a plane, where its value is least."""
    study = Study(SearchSpace({"x": parameter, "y": parameter}), seed=0)
    for number in range(20):
        (trial,) = study.ask()
        value = trial.params["x"] / top + 1 - trial.params["y"] / top
        study.tell(trial, value)
        if value == 0:
            return number
    return None


@pytest.mark.parametrize("levels", [9_999, 10_001, 10**6, 10**9])
def test_the_corner_is_reached_whatever_the_number_of_levels(levels):
    assert first_at_corner(Integer(0, levels), levels) is not None


def test_the_corner_is_reached_in_the_finest_steps():
    assert first_at_corner(Real(0, 1, step=1e-9), 1) is not None


def test_the_finest_grids_follow_gradients_and_stay_on_their_levels():
    space = SearchSpace({"n": Integer(0, 10**6), "k": Integer(0, 9), "x": Real(0, 1)})
    assert space.points.moving_columns == (0, 2)
    assert space.points.continuous_columns == (2,)
    middle = space.points.in_the_middle(space.encode([{"n": 3, "k": 4, "x": 0.1}]))
    assert space.decode(middle) == [{"n": 500_000, "k": 4, "x": 0.5}]
    assert space.points.snap(middle).equal(middle)
