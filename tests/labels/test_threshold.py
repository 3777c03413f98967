"""One threshold and several: tau, gamma and its schedules, ties, failures, weights of improvement."""

import math

import numpy as np
import pytest
import torch
from hypothesis import assume, given, strategies as st

from deepbore import KernelPLS, Outcome, SeveralThresholds, Study
from deepbore.data.array_ranking import threshold
from deepbore.data.observations import Observations
from deepbore.errors import SettingError
from deepbore.labels import (
    DecayingGamma,
    EmphasiseChanges,
    ImprovementLabels,
    RankGradedLabels,
    ThresholdLabels,
    ValueGradedLabels,
)
from plane import LINE

numbers = st.floats(-1e6, 1e6)

gammas = st.floats(0.01, 0.99)


def told(values):
    observations = Observations(LINE)
    observations.add({"x": np.linspace(0, 1, len(values))}, values)
    return observations


@given(st.lists(numbers, min_size=2, max_size=60, unique=True), gammas)
def test_tau_is_the_smallest_value_that_gamma_of_all_reach(values, gamma):
    assume(gamma * len(values) <= len(values) - 1)  # else the guarantee of two classes lowers tau
    tau = threshold(np.sort(values), gamma)
    reached = sum(value <= tau for value in values) / len(values)
    below = sum(value < tau for value in values) / len(values)
    assert below < gamma + 1e-9
    assert reached >= gamma - 1e-9


@pytest.mark.slow
@given(st.lists(numbers, min_size=2, max_size=40, unique=True), gammas)
def test_one_new_observation_flips_at_most_one_label(values, gamma):
    before = ThresholdLabels(gamma)(told(values[:-1])).z[:, 0]
    after = ThresholdLabels(gamma)(told(values)).z[:, 0]
    assume(len(values) > 2)
    assert (before != after[:-1]).sum() <= 1


@pytest.mark.slow
@given(st.lists(st.sampled_from([1.0, 2.0, 3.0]), min_size=2, max_size=30), gammas)
def test_both_classes_exist_however_many_ties(values, gamma):
    for labelling in (
        ThresholdLabels(gamma),
        ValueGradedLabels(gamma, tail=0),
        RankGradedLabels(gamma),
        ImprovementLabels(gamma),
    ):
        labels = labelling(told(values))
        assert labels.separable == (len(set(values)) > 1)
        assert (labels.z > 0).any() or isinstance(labelling, ImprovementLabels)
        if labels.separable:
            assert (labels.z == 0).any()


def test_failures_are_class_0_and_enough_to_learn_from():
    labels = ThresholdLabels(0.5)(told([1.0, float("nan"), 1.0]))
    assert labels.z[:, 0].tolist() == [1, 0, 1]
    assert labels.separable
    assert not ThresholdLabels(0.5)(told([1.0, 1.0])).separable
    assert ThresholdLabels(0.5)(told([1.0, 2.0])).separable


def test_improvement_labels_give_the_loss_of_lfbo():
    values = np.array([0.0, 1.0, 3.0, 4.0, 7.0])
    labels = ImprovementLabels(0.6)(told(values))
    p = torch.tensor([0.9, 0.2, 0.4, 0.3, 0.6])
    loss = torch.nn.functional.binary_cross_entropy(p, labels.z[:, 0], weight=labels.weight, reduction="sum")
    gain = np.clip(3.0 - values, 0, None)  # tau is 3
    u = torch.tensor(gain / gain[gain > 0].mean())
    assert torch.isclose(loss, (-(u * p.log()) - (1 - p).log()).sum().float())  # positives weighted, all as negatives


@pytest.mark.parametrize(
    "labelling", [ThresholdLabels(0.4), ValueGradedLabels(0.4), RankGradedLabels(0.4), SeveralThresholds([0.2, 0.4])]
)
def test_improvement_is_measured_against_the_label_of_the_best_value(labelling):
    labels = labelling(told(np.arange(10.0)))
    assert labels.best == labels.z.max() == 1
    assert labels.metrics == {"tau": 3.0}


def test_the_best_label_of_improvement_labels_is_less_than_1():
    labels = ImprovementLabels(0.6)(told([0.0, 1.0, 3.0, 4.0, 7.0]))
    assert labels.best == labels.z.max() == pytest.approx(1.2 / 2.2)  # u = 3 / 2.5


def test_tau_is_told_in_the_users_sign():
    observations = Observations(LINE, ["maximize"])
    observations.add({"x": [0.1, 0.5, 0.9]}, [1.0, 5.0, 3.0])
    assert ThresholdLabels(0.5)(observations).metrics == {"tau": 3.0}


def test_several_thresholds_are_one_column_each():
    values = np.arange(20.0)
    for scale in (1.0, 1 / 7):  # in single precision a seventh is another number, and the row at tau no longer good
        z = SeveralThresholds([0.1, 0.5])(told(scale * values)).z
        assert z.sum(0).tolist() == [2, 10]


@pytest.mark.parametrize(("n", "gamma"), [(0, 0.5), (50, 0.3), (10_000, 0.1)])
def test_gamma_decays_to_its_floor(n, gamma):
    assert DecayingGamma(0.5, 0.1, half_life=50)(n) == pytest.approx(gamma)


def test_a_schedule_drives_the_threshold():
    labelling = ThresholdLabels(DecayingGamma(0.5, 0.1, half_life=20))
    assert labelling(told(np.arange(20.0))).z.sum() == 6  # ceil(0.3 * 20)


@pytest.mark.parametrize("gamma", [0, 1, 1.5, -0.1, math.nan, "half"])
def test_gamma_outside_its_range_is_refused(gamma):
    with pytest.raises(SettingError, match=f"0 < gamma < 1 must hold, but got gamma={gamma!r}"):
        ThresholdLabels(gamma)


def test_other_bad_settings_are_refused():
    for make in (
        lambda: DecayingGamma(0.1, 0.5),
        lambda: DecayingGamma(half_life=0),
        lambda: SeveralThresholds([]),
        lambda: SeveralThresholds([0.1, 1.2]),
        lambda: SeveralThresholds([0.0, 0.5]),
        lambda: SeveralThresholds([None]),
        lambda: EmphasiseChanges(None),
        lambda: EmphasiseChanges(KernelPLS()),
        lambda: EmphasiseChanges(ThresholdLabels(), boost=0.5),
    ):
        with pytest.raises(SettingError):
            make()


def test_a_proportion_may_be_a_number_of_another_library():
    assert ValueGradedLabels(np.float32(0.25)).proportion(10) == 0.25


def test_the_best_label_of_several_columns_is_that_of_a_row():
    study = Study(LINE, labels=SeveralThresholds(), classifier=KernelPLS())
    for trial in study.ask(8):  # what is better by value is infeasible
        study.tell(trial, Outcome(trial.params["x"], constraints=[0.5 - trial.params["x"]]))
    labels = SeveralThresholds()(study.observations)
    feasible = labels.z[study.observations.feasible].mean(-1)
    assert labels.best == pytest.approx(float(feasible.max()))
    assert labels.best < labels.z[study.observations.feasible].max()


@pytest.mark.parametrize("name", ["start", "floor", "half_life"])
def test_no_part_of_a_schedule_may_be_none(name):
    with pytest.raises(SettingError, match=f"{name} must be given"):
        DecayingGamma(**{name: None})


def test_a_schedule_begins_with_balanced_classes_and_has_lost_half_of_the_way_after_fifty():
    assert [DecayingGamma()(n) for n in (0, 50, 100)] == pytest.approx([0.5, 0.3, 0.2])
    assert DecayingGamma(0.3, 0.3)(70) == pytest.approx(0.3)  # one that falls nowhere


@pytest.mark.parametrize("gamma", [0.0, 1.0, 1.2])
def test_each_of_several_proportions_is_checked(gamma):
    with pytest.raises(SettingError, match=f"0 < gammas < 1 must hold, but got gammas={gamma}"):
        SeveralThresholds([0.1, gamma])
