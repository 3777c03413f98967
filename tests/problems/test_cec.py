"""The functions of CEC's competitions: opfunu's values, on its box, with its optima."""

import numpy as np
import pytest

from deepbore.errors import SettingError
from deepbore.problems import Cec, suites


@pytest.mark.parametrize("name", suites.suite("cec", half="held_out"))
def test_a_function_has_the_values_of_opfunu_and_its_optimum_where_it_says(name):
    cec = pytest.importorskip("opfunu.cec_based")
    _, year, function = name.split("/")
    oracle = getattr(getattr(cec, f"cec{year}"), f"F{int(function[1:])}{year}")(ndim=10)
    problem = suites.problem(name)
    assert [(p.low, p.high) for p in problem.space.parameters.values()] == [(-100.0, 100.0)] * 10
    for params in problem.space.decode(problem.space.points.sobol(2, seed=0)):
        x = np.array(list(params.values()))
        assert problem(params) == oracle.evaluate(x) > problem.optimum
    lowest = dict(zip(problem.space.names, map(float, oracle.x_global), strict=True))
    assert problem.regret(problem(lowest)) < 1e-6 * problem.optimum


def test_a_function_that_is_none_is_refused():
    for settings in [(2015, 1), (2017, 30), (2020, 1, 11)]:
        with pytest.raises(SettingError):
            Cec(*settings)
