"""Labels: thresholds, ties, failures, grades, weights, schedules."""

import math

import numpy as np
import pytest
import torch
from hypothesis import assume, given, strategies as st
from scipy.integrate import quad

from deepbore import KernelPLS, MLPClassifier, Real, SearchSpace, Study
from deepbore.data.array_ranking import threshold
from deepbore.data.observations import Observations
from deepbore.errors import SettingError
from deepbore.labels import (
    DecayingGamma,
    EmphasiseChanges,
    ImprovementLabels,
    LabelledObservations,
    RankGradedLabels,
    SeveralThresholds,
    ThresholdLabels,
    ValueGradedLabels,
    changed_rows,
    default_labels,
)
from deepbore.labels.grade import graded_by_value

SPACE = SearchSpace({"x": Real(0, 1)})
numbers = st.floats(-1e6, 1e6)
gammas = st.floats(0.01, 0.99)


def told(values):
    observations = Observations(SPACE)
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
    observations = Observations(SPACE, ["maximize"])
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


def test_new_and_flipped_rows_weigh_more():
    labelling = EmphasiseChanges(ThresholdLabels(0.5), boost=3.0)
    observations = told([1.0, 2.0, 3.0, 4.0])
    assert labelling(observations).weight.tolist() == [3, 3, 3, 3]
    observations.add({"x": [0.5]}, [1.5])
    assert labelling(observations).weight.tolist() == [1, 1, 1, 1, 3]
    observations.add({"x": [0.6]}, [0.5])  # 2.0 falls out of the best three
    assert labelling(observations).weight.tolist() == [1, 3, 1, 1, 1, 3]
    z = torch.tensor([[1.0], [0.0]])
    assert changed_rows(z[:1], z).tolist() == [False, True]


@pytest.mark.parametrize("gamma", [0, 1, 1.5, -0.1, math.nan, "half"])
def test_gamma_outside_its_range_is_refused(gamma):
    with pytest.raises(SettingError, match=f"0 < gamma < 1 must hold, but got gamma={gamma!r}"):
        ThresholdLabels(gamma)


def test_other_bad_settings_are_refused():
    for make in (
        lambda: DecayingGamma(0.1, 0.5),
        lambda: SeveralThresholds([]),
        lambda: SeveralThresholds([0.1, 1.2]),
        lambda: EmphasiseChanges(ThresholdLabels(), boost=0.5),
    ):
        with pytest.raises(SettingError):
            make()


# --- data module -----------------------------------------------------------------------------------------------------


def test_every_epoch_has_one_batch_with_the_labels_of_its_moment():
    data = LabelledObservations(told([3.0, 1.0, 2.0]), ThresholdLabels(0.3))
    loader = data.train_dataloader()
    assert len(loader) == 1
    assert next(iter(loader)).z[:, 0].tolist() == [0, 1, 0]
    data.observations.add({"x": [0.5]}, [0.0])
    assert next(iter(loader)).z[:, 0].tolist() == [0, 1, 0, 1]


def test_the_default_labels_are_those_of_the_classifiers_loss():
    for head, kind, gamma in ((KernelPLS, ValueGradedLabels, 0.5), (MLPClassifier, ThresholdLabels, 0.25)):
        study = Study(SPACE, classifier=head(), n_initial=2)
        for trial, value in zip(study.ask(2), (1.0, 2.0), strict=True):
            study.tell(trial, value)
        study.ask()
        assert isinstance(study.labels, kind)
        assert study.labels.gamma == gamma
    assert default_labels(estimates_labels=False, gamma=0.1).gamma == 0.1


def test_pending_trials_weigh_next_to_nothing():
    study = Study(SPACE, n_initial=4, seed=3)
    told, pending = study.ask(4), study.ask(3)
    for trial in told:
        study.tell(trial, trial.params["x"])
    weight = default_labels(estimates_labels=True)(study.observations).weight
    assert weight[:4].tolist() == [1] * 4
    assert weight[4:].max() < 1e-5
    assert len(pending) == 3


def test_a_proportion_may_be_a_number_of_another_library():
    assert ValueGradedLabels(np.float32(0.25)).proportion(10) == 0.25
