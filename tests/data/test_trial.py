"""A trial's record, and the rungs of a budget."""

import math

import pytest
from hypothesis import given, strategies as st

from deepbore import Budget, Study
from deepbore.errors import SettingError
from plane import LINE
from rungs import EPOCHS, run


@given(low=st.floats(0.01, 100), factor=st.floats(1.5, 5), count=st.integers(2, 6), more=st.floats(0, 0.3))
def test_rungs_go_from_low_by_the_factor_up_to_high(low, factor, count, more):
    rungs = Budget("seconds", low, low * factor ** (count - 1) * (1 + more), factor).rungs
    assert rungs == pytest.approx([low * factor**k for k in range(count)])


def test_whole_rungs_stay_whole():
    assert Budget("epochs", 1, 100).rungs == (1, 3, 9, 27, 81)
    assert all(type(rung) is int for rung in EPOCHS.rungs)
    trial = run(Study(LINE, budget=EPOCHS), 4).trials[3]
    assert type(trial.budget) is int
    assert list(range(trial.budget)) == [0, 1, 2]


@pytest.mark.parametrize(
    ("setting", "says"),
    [
        ({"unit": ""}, "unit must name"),
        ({"low": 0}, "low > 0"),
        ({"high": 1}, "high > 1"),
        ({"high": 2}, "two rungs"),
        ({"high": math.inf}, "finite"),
        ({"factor": 1}, "factor > 1"),
        ({"factor": None}, "factor must be given"),
    ],
)
def test_a_wrong_budget_is_refused(setting, says):
    with pytest.raises(SettingError, match=says):
        Budget(**{"unit": "epochs", "low": 1, "high": 27, "factor": 3} | setting)


# regression: each of these was wrong once
def test_budgets_beyond_sixty_three_bits():
    study = Study(LINE, seed=0, budget=Budget("FLOPs", 1e17, 1e20, factor=10))
    for _ in range(15):
        (trial,) = study.ask()
        study.tell(trial, trial.params["x"])
    assert {trial.budget for trial in study.trials} >= {1e17, 1e18}


def test_a_trial_is_a_record_whose_notes_change_nothing():
    study = Study(LINE)
    (trial,) = study.ask()
    study.annotate(trial, {"host": "n1", "gpus": [0]})
    study.trials[0].attributes["host"] = "n2"
    study.trials[0].attributes["gpus"].append(1)
    assert study.trials[0].attributes == {"host": "n1", "gpus": [0]}
