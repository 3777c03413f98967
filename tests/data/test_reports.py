"""The values that trials report: curves, and what the others had at a step."""

import math
import pickle

import pytest
from hypothesis import given, settings, strategies as st

from deepbore import Outcome
from deepbore.data.reports import Others, Reports
from deepbore.errors import ValueTypeError

VALUE = st.sampled_from([1.0, 2.0, 2.0, 3.0, math.nan, math.inf])
REPORTED = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 6), VALUE), max_size=40)


def lowest_by_hand(curves, step, but):
    """From all that was reported, without an index."""
    found = []
    for row, curve in curves.items():
        until = [value for at, value in curve.items() if at <= step]
        if row != but and max(curve, default=-1) >= step and until:
            found.append(min(value if math.isfinite(value) else math.inf for value in until))
    return sorted(found)


@settings(max_examples=200)
@given(REPORTED, st.integers(0, 6), st.integers(0, 5))
def test_what_the_others_had_at_a_step_is_found_whatever_the_order_of_reports(reported, step, but):
    reports, curves = Reports(), {}
    for row, at, value in reported:
        reports.lowest(step, but)  # which makes the index that later reports keep up to date
        reports.add(row, {at: value})
        curves[row] = {each: known for each, known in curves.get(row, {}).items() if each < at} | {at: value}
        assert reports.lowest(step, but) == lowest_by_hand(curves, step, but)
    assert [len(curve) for curve in Others(reports, but)] == [len(each) for row, each in curves.items() if row != but]


def test_a_step_again_begins_the_curve_anew_from_there():
    reports = Reports(sign=-1.0)
    reports.add(0, {1: 0.1, 2: 0.2, 3: 0.3})
    reports.add(0, {2: 0.5})
    assert reports.of(0) == {1: 0.1, 2: 0.5}
    assert reports.curve(0).values == [-0.1, -0.5]
    assert (reports.curve(0).at(1.5), reports.curve(0).at(3), reports.curve(1).at(0)) == (-0.1, None, None)


def test_withdrawn_trials_are_compared_with_none_and_stay_in_the_history():
    reports = Reports()
    reports.add(0, {1: 0.1})
    reports.add(1, {1: 0.2})
    reports.withdraw([0])
    assert reports.lowest(1, but=2) == [0.2]
    assert reports.of(0) == {1: 0.1}
    assert pickle.loads(pickle.dumps(reports)).lowest(1, but=2) == [0.2]


@pytest.mark.parametrize("reports", [{-1: 0.5}, {"one": 0.5}, {1: "half"}, {math.nan: 0.5}, {True: 0.5}, [0.5]])
def test_reports_are_numbers_by_step(reports):
    with pytest.raises(ValueTypeError, match=r"step|reported value|reports"):
        Outcome(1.0, reports=reports)


def test_reports_of_an_outcome_ascend():
    assert list(Outcome(1.0, reports={3: 0.3, 1: 0.1, 2: math.inf}).reports) == [1, 2, 3]
    assert math.isnan(Outcome(1.0, reports={2: math.inf}).reports[2])
