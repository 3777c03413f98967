"""Problems of several objectives, against pymoo's of the same names and against their fronts as published."""

import numpy as np
import pytest

from deepbore.errors import PointError, SettingError
from deepbore.problems import DTLZ2, WFG, ZDT

POINTS = np.random.default_rng(0).uniform(size=(20, 6))


def values(problem, x):
    return problem({name: float(value) for name, value in zip(problem.space.names, x, strict=True)}).values


@pytest.mark.parametrize("number", [1, 2, 3])
def test_zdt_is_that_of_pymoo(number):
    oracle = pytest.importorskip("pymoo.problems").get_problem(f"zdt{number}", n_var=6)
    np.testing.assert_allclose([values(ZDT(number), x) for x in POINTS], oracle.evaluate(POINTS), rtol=1e-12)


@pytest.mark.parametrize("objectives", [2, 3, 5])
def test_dtlz2_is_that_of_pymoo(objectives):
    oracle = pytest.importorskip("pymoo.problems").get_problem("dtlz2", n_var=6, n_obj=objectives)
    expected = oracle.evaluate(POINTS)
    np.testing.assert_allclose([values(DTLZ2(objectives), x) for x in POINTS], expected, rtol=1e-10, atol=1e-15)


@pytest.mark.parametrize("objectives", [2, 3])
@pytest.mark.parametrize("number", [4, 5, 6, 7])
def test_the_front_of_wfg_is_a_quarter_of_an_ellipsoid(number, objectives):
    """Huband et al. (2006): z_i = 2 i x .35 for what says how far, whatever the rest, so that sum (f_j / 2 j)^2 = 1."""
    pytest.importorskip("pymoo")
    problem = WFG(number, objectives)
    for x in POINTS:
        scaled = np.where(np.arange(6) < 4, x, 0.35) * 2 * np.arange(1, 7)
        found = np.array(values(problem, scaled)) / (2 * np.arange(1, objectives + 1))
        assert (found**2).sum() == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("number", range(1, 10))
def test_wfg_is_minimised_on_its_box(number):
    pytest.importorskip("pymoo")
    problem = WFG(number)
    assert problem.directions == ("minimize", "minimize")
    for x in POINTS:
        found = values(problem, x * 2 * np.arange(1, 7))
        assert (np.array(found) >= 0).all()
        assert (np.array(found) <= [3, 5]).all()  # distance 1 and shape 2 j at most
    with pytest.raises(PointError):
        values(problem, np.full(6, 2.5))


@pytest.mark.parametrize(
    ("settings", "rule"),
    [
        ({"number": 10}, "number"),
        ({"number": 1, "dimension": 4}, "dimension"),
        ({"number": 1, "dimension": 7}, "dimension must be even for WFG, but got dimension=7"),
        ({"number": 1, "objectives": 1}, "objectives"),
        ({"number": 1, "objectives": 4, "dimension": 6}, "dimension"),
    ],
)
def test_wfg_names_the_rule_that_was_broken(settings, rule):
    with pytest.raises(SettingError, match=rule):
        WFG(**settings)
