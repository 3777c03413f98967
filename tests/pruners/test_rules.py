"""The pruners, on curves that are made by hand."""

import math

import pytest
import torch

from deepbore import Budget, MedianPruner, PatientPruner, Pruner, SuccessiveHalvingPruner
from deepbore.component import describe, make
from deepbore.data.observations import Observations
from deepbore.data.reports import Others, Reports
from deepbore.errors import SettingError
from deepbore.loop.promotions import Promotions
from plane import LINE

ALWAYS = MedianPruner(startup_trials=1)


def judged(pruner, own, *others):
    """Whether a trial is ended at its last report, given the values of all at steps 1, 2, ..."""
    reports = Reports()
    for row, values in enumerate([own, *others]):
        reports.add(row, dict(enumerate(values, 1)))
    return pruner.should_prune(reports.curve(0), Others(reports, 0))


@pytest.mark.parametrize(
    ("own", "ends"),
    [
        ([3.0, 2.5], True),  # the median of the others is 2
        ([3.0, 2.0], False),
        ([1.0, 9.0], False),  # its best value so far counts
        ([math.inf, math.inf], True),
        ([3.0, 2.5, 2.5], False),  # only one has got so far: too few
    ],
)
def test_worse_than_the_median_at_the_same_step(own, ends):
    others = [3.0, 1.0], [3.0, 2.0], [3.0, 3.0, 1.0], [9.0]
    assert judged(MedianPruner(startup_trials=3), own, *others) is ends


def test_no_trial_is_ended_before_enough_others_or_within_the_warm_up():
    others = [[1.0, 1.0]] * 4
    assert not judged(MedianPruner(), [9.0, 9.0], *others)
    assert judged(MedianPruner(startup_trials=4), [9.0, 9.0], *others)
    assert not judged(MedianPruner(startup_trials=4, warmup_steps=2), [9.0, 9.0], *others)


@pytest.mark.parametrize(
    ("own", "others", "ends"),
    [
        ([5.0], [], False),  # the first one goes on
        ([5.0], [[4.0], [6.0]], True),  # one of three: the best
        ([5.0], [[6.0], [7.0]], False),
        ([5.0, 9.0], [[4.0], [6.0]], False),  # judged at rung 1 before
        ([5.0, 5.0, 5.0], [[4.0], [6.0]], False),  # the first one at rung 3
        ([5.0, 5.0, 5.0], [[4.0, 4.0, 4.0], [6.0]], True),
        ([5.0], [[4.0], [6.0], [7.0], [8.0], [9.0]], False),  # two of six
        ([5.0], [[4.0], [4.0], [7.0], [8.0], [9.0]], True),
    ],
)
def test_the_best_third_goes_on_at_each_rung(own, others, ends):
    assert judged(SuccessiveHalvingPruner(), own, *others) is ends


@pytest.mark.parametrize("n", range(3, 14))
@pytest.mark.parametrize("factor", [2, 3, 4])
def test_as_many_go_on_as_a_budget_promotes(n, factor):
    """The rule is the same, but that one goes on at least, where a budget waits."""
    observations = Observations(LINE, budget=Budget("epochs", 1, 16, factor))
    observations.reserve(torch.linspace(0, 1, n, dtype=torch.float64)[:, None])
    for row in range(n):
        observations.tell(row, float(row))
    reports = Reports()
    for row in range(n):
        reports.add(row, {1: float(row)})
    pruner = SuccessiveHalvingPruner(factor=factor)
    stay = [row for row in range(n) if not pruner.should_prune(reports.curve(row), Others(reports, row))]
    promoted = [each.row for each in Promotions(observations).first(n)]
    assert stay == (promoted or [0])


def test_what_stands_still_ends_if_another_pruner_agrees():
    still, better = [3.0, 2.0, 2.0, 2.5], [3.0, 2.0, 1.9, 2.5]
    assert judged(PatientPruner(patience=2), still)
    assert not judged(PatientPruner(patience=2), better)
    assert not judged(PatientPruner(patience=4), still)
    assert judged(PatientPruner(patience=2, min_delta=0.2), better)
    assert judged(PatientPruner(ALWAYS, patience=2), still, [1.0] * 4)
    assert not judged(PatientPruner(ALWAYS, patience=2), still, [5.0] * 4)


@pytest.mark.parametrize(
    "pruner", [MedianPruner(3), SuccessiveHalvingPruner(2, factor=4), PatientPruner(MedianPruner(), patience=3)]
)
def test_pruners_are_written_down_and_made_again(pruner):
    again = make(describe(pruner), Pruner)
    assert describe(again) == describe(pruner)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: MedianPruner(startup_trials=0),
        lambda: MedianPruner(warmup_steps=-1),
        lambda: SuccessiveHalvingPruner(low=0),
        lambda: SuccessiveHalvingPruner(factor=1),
        lambda: PatientPruner(patience=0),
        lambda: PatientPruner(MedianPruner),
    ],
)
def test_settings_outside_their_range_are_refused(wrong):
    with pytest.raises(SettingError):
        wrong()
