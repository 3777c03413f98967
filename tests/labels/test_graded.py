"""Grades by value and by rank: the mean of all thresholds, and what is worse than tau."""

import math

import numpy as np
import pytest
import torch
from hypothesis import assume, given, strategies as st
from scipy.integrate import quad

from deepbore import ThresholdLabels
from deepbore.data.array_ranking import threshold
from deepbore.data.observations import Observations
from deepbore.data.replicates import MOST
from deepbore.errors import SettingError
from deepbore.labels import ImprovementLabels, RankGradedLabels, ValueGradedLabels
from deepbore.labels.grade import graded_by_value
from plane import LINE


def observed(x, values, noise=None):
    observations = Observations(LINE)
    observations.add({"x": x}, values, noise=noise)
    return observations


numbers = st.floats(-1e6, 1e6)

gammas = st.floats(0.01, 0.99)


def told(values):
    observations = Observations(LINE)
    observations.add({"x": np.linspace(0, 1, len(values))}, values)
    return observations


@given(st.lists(numbers, min_size=3, max_size=40, unique=True), gammas)
def test_grades_by_value_are_the_mean_of_all_threshold_labels(values, gamma):
    tau, best = threshold(np.sort(values), gamma), min(values)
    assume(tau - best > 1e-3)
    thresholds = best + (np.arange(20_000) + 0.5) / 20_000 * (tau - best)  # the midpoint rule for the integral
    expected = [(value <= thresholds).mean() for value in values]
    grades = graded_by_value(torch.tensor(values, dtype=torch.float64), best, tau)
    assert np.allclose(grades, expected, atol=1e-4)


@given(st.lists(st.floats(-10, 10), min_size=3, max_size=40, unique=True), gammas, st.floats(0.05, 5))
def test_thresholds_beyond_tau_thin_out_with_the_square_of_their_distance(values, gamma, tail):
    tau, best = threshold(np.sort(values), gamma), min(values)
    assume(tau - best > 0.5)
    scaled = (np.array(values) - best) / (tau - best)  # 0 at the best, 1 at tau

    def share_reached(y):  # the integral of the weights of all thresholds >= y, by quadrature
        good = quad(lambda t: 1.0, min(y, 1), 1)[0]
        bad = quad(lambda b: tail**2 / (tail + b) ** 2, max(y - 1, 0), math.inf)[0]
        return (good + bad) / (1 + tail)

    grades = graded_by_value(torch.tensor(values, dtype=torch.float64), best, tau, tail)
    assert np.allclose(grades, [share_reached(y) for y in scaled], atol=1e-6)


def test_what_is_worse_than_tau_keeps_its_order_and_a_failure_is_worse_still():
    z = ValueGradedLabels()(told([0.0, 1.0, 2.0, 10.0, 1e6, float("nan")])).z[:, 0]
    assert (z.diff() < 0).all()
    assert z[0] == 1
    assert z[-1] == 0


@pytest.mark.parametrize("tail", [-0.1, math.inf, float("nan")])
def test_a_tail_outside_its_range_is_refused(tail):
    with pytest.raises(SettingError, match="tail"):
        ValueGradedLabels(tail=tail)


def test_grades_by_rank_ignore_monotone_transformations():
    values = np.random.default_rng(0).normal(size=50)
    plain, bent = (RankGradedLabels(0.5)(told(v)).z for v in (values, np.exp(3 * values)))
    assert torch.equal(plain, bent)
    assert plain.max() == 1
    assert (plain > 0).sum() == 25


ELSEWHERE = np.linspace(0, 0.9, 30)


def with_one(value: float, times: int) -> Observations:
    """Thirty configurations, and one that has been evaluated so many times (NaN: it fails)."""
    observations = Observations(LINE)
    observations.add({"x": [*ELSEWHERE, *[1.0] * times]}, [*ELSEWHERE, *[value] * times])
    return observations


# regression: each of these was wrong once
@pytest.mark.parametrize("value", [-1.0, 0.31, 5.0], ids=["best", "middling", "worst"])
@pytest.mark.parametrize("labels", [ValueGradedLabels(), ThresholdLabels()], ids=["graded", "hard"])
def test_a_configuration_moves_no_threshold_however_often_it_is_evaluated(labels, value):
    once, often = (labels(with_one(value, times)) for times in (1, 40))
    assert often.metrics["tau"] == once.metrics["tau"]
    assert np.array_equal(often.z[:31], once.z[:31])


def test_no_row_is_worth_more_than_a_hundred_others():
    labels = ValueGradedLabels()(with_one(-1.0, 300))
    assert labels.weight.sum() == pytest.approx(30 + MOST, abs=0.01)


def test_failures_of_one_configuration_are_one_row():
    once, often = (ValueGradedLabels()(with_one(np.nan, times)) for times in (1, 300))
    assert often.weight.sum() == pytest.approx(float(once.weight.sum()), abs=0.01)
    assert int((often.weight > 0.5).sum()) == 31


@pytest.mark.parametrize("unit", [1e-34, 1e-20, 1e200])
def test_what_a_noisy_value_is_worth_does_not_depend_on_the_unit(unit):
    noise = [3.0, 0.0, 2.0, 0.5, 1.0]

    def weights(unit):
        observations = Observations(LINE)
        values, deviations = [unit * y for y in (3, 1, 2, 5, 4)], [unit * s for s in noise]
        observations.add({"x": [0.1, 0.3, 0.5, 0.7, 0.9]}, values, noise=deviations)
        return ValueGradedLabels()(observations).weight.tolist()

    assert weights(unit) == pytest.approx(weights(1.0), rel=1e-6)


def line(*values, noise=None):
    """Observations with these values, at points of their own."""
    return observed(torch.linspace(0.1, 0.9, len(values)).tolist(), list(values), noise)


@pytest.mark.parametrize("labelling", [ImprovementLabels(0.5), ValueGradedLabels(0.5)])
def test_a_value_that_is_mostly_noise_sets_no_scale_of_labels(labelling):
    values = [1.0, 2, 3, 4, 5, 6, 7, 8]
    alone, beside = (labelling(line(*values, *more, noise=[0.1] * 8 + [10.0] * len(more))) for more in ((), (-1000.0,)))
    assert torch.allclose(beside.z[:8], alone.z)
    assert beside.best == pytest.approx(alone.best)


def test_where_the_good_ones_are_tied_they_are_told_from_the_rest():
    labels = ValueGradedLabels(0.5)(line(1.0, 1.0, 1.0, 2.0))
    assert labels.z[:, 0].tolist() == [1, 1, 1, 0]
    assert labels.weight.tolist() == [1, 1, 1, 1]
