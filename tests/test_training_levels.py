"""Training runs whose ranges are grids of levels."""

import pytest

from deepbore.errors import PointError, SettingError
from deepbore.problems import TrainingRun
from deepbore.problems.benchmarks.training import RUNS
from deepbore.space import Integer, Ordinal, Real


@pytest.mark.parametrize("name", RUNS)
def test_on_levels_ranges_are_grids_from_end_to_end(name):
    ranges, levels = TrainingRun(name).space.parameters, TrainingRun(name, levels=4).space.parameters
    assert list(levels) == list(ranges)
    for each, parameter in ranges.items():
        assert levels[each].when == parameter.when
        if isinstance(parameter, Real | Integer):
            assert isinstance(levels[each], Ordinal)
            assert (levels[each].choices[0], levels[each].choices[-1]) == (parameter.low, parameter.high)
            assert 2 <= len(levels[each].choices) <= 4
        else:
            assert levels[each] == parameter


def test_levels_are_evenly_spaced_on_their_own_scale_and_configurations_on_them_have_the_same_values():
    on_levels = TrainingRun("boosting-wine", levels=4)
    assert on_levels.space.parameters["learning_rate"].choices == (0.001, 0.01, 0.1, 1.0)
    assert on_levels.space.parameters["n_estimators"].choices == (5, 10, 20, 40)
    assert on_levels.space.parameters["max_depth"].choices == (1, 3, 4, 6)
    (params,) = on_levels.space.decode(on_levels.space.sobol(1, seed=0))
    assert on_levels(params) == TrainingRun("boosting-wine")(params)
    with pytest.raises(PointError, match="learning_rate"):
        on_levels(params | {"learning_rate": 0.02})
    with pytest.raises(SettingError, match="levels"):
        TrainingRun("boosting-wine", levels=1)
