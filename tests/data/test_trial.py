"""A trial's record, the rungs of a budget, and sequences of trials."""

import copy
import math
import pickle

import pytest
from hypothesis import given, strategies as st

from deepbore import Budget, Study
from deepbore.data.trial import Trial, Trials
from deepbore.errors import SettingError
from plane import LINE
from rungs import EPOCHS, run


@given(low=st.floats(0.01, 100), factor=st.floats(1.5, 5), count=st.integers(2, 6), more=st.floats(0, 0.3))
def test_rungs_go_from_low_by_the_factor_up_to_high(low, factor, count, more):
    rungs = Budget("seconds", low, low * factor ** (count - 1) * (1 + more), factor).rungs
    assert rungs == pytest.approx([low * factor**k for k in range(count)])


def test_whole_rungs_stay_whole():
    assert Budget("epochs", 1, 100).rungs == (1, 3, 9, 27, 81)
    assert Budget("epochs", 1, 100).top == 81
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


# --- sequences of trials ---------------------------------------------------------------------------------------------


class Reader:
    """Makes trials, and counts them."""

    def __init__(self):
        self.made = 0

    def __call__(self, rows):
        self.made += len(rows)
        return [Trial(row, {"x": row}) for row in rows]


def trials_of(n):
    reader = Reader()
    return Trials(reader, range(n)), reader


def test_a_million_trials_have_a_length_an_index_and_slices_and_only_those_that_are_read_are_made():
    trials, reader = trials_of(1_000_000)
    assert len(trials) == 1_000_000
    assert len(trials[10:]) == 999_990
    assert reader.made == 0
    assert (trials[-1].id, trials[7].id, trials[10:][-2:][0].id) == (999_999, 7, 999_998)
    assert next(reversed(trials)).id == 999_999
    assert Trial(3, {"x": 3}) in trials
    assert Trial(3, {"x": 4}) not in trials
    assert "3" not in trials
    assert trials.index(Trial(500_000, {"x": 500_000})) == 500_000
    assert reader.made < 5000
    with pytest.raises(IndexError):
        trials[1_000_000]
    with pytest.raises(ValueError, match="not in"):
        trials.index(Trial(3, {"x": 4}))


@given(st.integers(0, 8), st.slices(8))
def test_trials_are_what_a_list_of_them_is(n, part):
    trials, reader = trials_of(n)
    whole = reader(range(n))
    assert trials == whole
    assert whole == trials
    assert list(reversed(trials)) == whole[::-1]
    assert trials[part] == whole[part]
    assert list(trials[part]) == whole[part]
    assert trials + whole == whole + trials == [*whole, *whole]
    assert bool(trials) is bool(whole)
    assert (trials != whole[1:]) is (n > 0)
    assert pickle.loads(pickle.dumps(trials)) == whole
    assert repr(trials) == repr(whole) if n < 5 else "..., Trial(7" in repr(trials) or n < 8
    assert trials != "trials"


def test_the_trials_of_a_study_are_those_of_the_moment_with_what_is_known_when_they_are_read():
    study = Study(LINE)
    (one,) = study.ask()
    trials = study.trials
    study.ask()
    study.tell(one, 0.5)
    assert (len(trials), len(study.trials)) == (1, 2)
    assert trials[0].value == 0.5
    assert copy.deepcopy(trials) == [study.trials[0]]
    assert study.trials == list(study.trials)
