"""Labels of several objectives: a column each, or one by weights or fronts."""

import math
import sys
from time import process_time

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st

from deepbore import Real, SearchSpace, Study
from deepbore.data.array_ranking import crowding, fronts, non_dominated
from deepbore.data.observations import Observations
from deepbore.errors import SettingError
from deepbore.labels import ChebyshevLabels, NonDominationLabels, ObjectiveLabels, ValueGradedLabels, front_rows
from deepbore.labels.objectives import reference_values, simplex_point
from plane import LINE, SQUARE
from trading_off import BOTH, told


def test_the_best_labels_are_those_of_the_feasible_front():
    values = [[0.0, 4.0], [1.0, 1.0], [4.0, 0.0], [3.0, 3.0], [0.0, 0.0]]
    observations = told(values, constraints=[-1.0, -1.0, -1.0, -1.0, 1.0])
    assert front_rows(observations).tolist() == [0, 1, 2]
    labels = ObjectiveLabels(2)(observations)
    assert torch.equal(labels.best[1:].float(), labels.z[[0, 1, 2]])
    assert labels.constraints.shape == (5, 1)
    assert labels.metrics == {"front_size": 3}


@pytest.mark.parametrize("values", [[[2.0, 5.0]], [[2.0, 5.0]] * 4, [[2.0, 5.0]] * 9 + [[3.0, 9.0]]])
def test_where_most_trials_are_alike_gains_begin_below_their_label(values):
    best = ObjectiveLabels(2)(told(values)).best
    assert ((best[0] > 0) & (best[0] < 1)).all()
    assert (best[1:] == 1).all()


@pytest.mark.parametrize("reference", [[1.0], [1.0, 2.0, 3.0], 1.0, "ab", [1.0, math.nan], [1.0, "2"], []])
def test_a_reference_has_a_number_for_each_objective(reference):
    with pytest.raises(SettingError, match="reference must be 2 finite numbers"):
        ObjectiveLabels(2, reference)


@pytest.mark.slow
@given(st.floats(1e-3, 1e3), st.floats(-100, 100))
@settings(max_examples=20)
def test_the_units_of_an_objective_do_not_matter(scale, shift):
    values = np.random.default_rng(0).random((15, 2))
    moved = values * [1, scale] + [0, shift]
    for make in (lambda: ObjectiveLabels(2), ChebyshevLabels, NonDominationLabels):
        assert torch.allclose(make()(told(values.tolist())).z, make()(told(moved.tolist())).z, atol=1e-4)


def test_values_a_million_times_worse_leave_the_others_apart():
    x = np.linspace(0, 1, 20)
    one, other = np.where(x < 0.1, 1e6, x), 1 - x  # two of the first ten
    z = ObjectiveLabels(2)(told(np.stack([one, other], -1).tolist())).z[:, 0]
    assert z[1] == z.min() >= 0
    assert z[2:].max() - z[2:].min() > 0.3


def test_each_objective_keeps_its_order_and_direction():
    values = np.random.default_rng(1).random((20, 2))
    z = ObjectiveLabels(2)(told(values.tolist(), directions=BOTH)).z
    assert (z[:, 0].argsort(descending=True).numpy() == values[:, 0].argsort()).all()
    assert (z[:, 1].argsort().numpy() == values[:, 1].argsort()).all()


def test_chebyshev_weights_fill_the_simplex_and_change_with_each_row():
    points = torch.stack([simplex_point(n, 3) for n in range(512)])
    assert torch.allclose(points.sum(-1), torch.ones(512, dtype=torch.float64))
    assert torch.allclose(points.mean(0), torch.full((3,), 1 / 3, dtype=torch.float64), atol=0.01)
    assert (points >= 0).all()
    observations = told(np.random.default_rng(0).random((15, 2)).tolist())
    labels = ChebyshevLabels()
    once = labels(observations).z
    assert torch.equal(once, labels(observations).z)  # looking changes nothing
    observations.reserve(SQUARE.points.sample(1, torch.Generator().manual_seed(3)))
    assert not torch.equal(once, labels(observations).z[:-1])


def references(values):
    """Behind the worst value of the front by a tenth of its extent, and not before three quarters of all values."""
    front = values[non_dominated(values)]
    usual = np.sort(values, axis=0)[math.ceil(0.75 * len(values)) - 1]
    return np.maximum(front.max(0) + 0.1 * np.ptp(front, axis=0), usual)


@pytest.mark.parametrize("seed", range(3))
def test_chebyshev_labels_are_those_of_the_greatest_weighted_loss_and_a_little_of_the_sum(seed):
    values = np.random.default_rng(seed).normal(size=(12, 2)) * [1, 50] + [5, -300]
    weights = simplex_point(12, 2).numpy()
    losses = weights * (values - values.min(0)) / (references(values) - values.min(0))
    scalarised = losses.max(-1) + 0.05 * losses.sum(-1)
    labels, expected = ChebyshevLabels()(told(values.tolist())), ValueGradedLabels()(of_several(scalarised[:, None]))
    assert torch.allclose(labels.z, expected.z, atol=1e-6)
    assert labels.metrics == {}


def test_a_gain_counts_from_the_reference_on():
    values = np.random.default_rng(4).normal(size=(12, 2))
    given, found = (ObjectiveLabels(2, each)(told(values.tolist())) for each in (references(values).tolist(), None))
    assert torch.allclose(given.best, found.best)
    assert torch.allclose(found.best[0], torch.full((2,), 2 / 3, dtype=torch.float64))  # tail 2: two thirds lie beyond


def test_objectives_tell_nothing_apart_where_all_trials_are_alike_and_none_has_failed():
    assert not ObjectiveLabels(2)(told([[1.0, 2.0]] * 3)).separable
    assert ObjectiveLabels(2)(told([[1.0, 2.0], [1.0, 3.0]])).separable
    assert ObjectiveLabels(2)(told([[1.0, 2.0], [math.nan, math.nan]])).separable


def test_where_most_values_are_the_best_one_or_too_far_apart_the_reference_is_the_worst_value():
    tied = torch.tensor([[2.0, 5.0]] * 9 + [[3.0, 9.0]])
    assert reference_values(tied[:1], tied).tolist() == [3, 9]
    assert reference_values(tied[:1], tied[:9]).tolist() == [4, 10]  # nothing is known of their extent
    far = torch.tensor([[1.7e308, -1.7e308], [-1.7e308, 1.7e308], [0.0, 1.0]], dtype=torch.float64)
    assert reference_values(far, far).tolist() == [1.7e308, 1.7e308]


def test_one_objective_has_all_of_the_weight():
    assert simplex_point(7, 1).tolist() == [1]


def test_of_trials_whose_worst_objective_is_alike_the_one_with_the_better_other_is_better():
    observations = told([[1.0, 0.0], [0.0, 1.0], [1.0, 0.1], [0.1, 1.0]])
    for number in range(20):  # with each row the weights are others
        z = ChebyshevLabels()(observations).z[:, 0]
        assert z[0] > z[2]
        assert z[1] > z[3]
        observations.reserve(SQUARE.points.sample(1, torch.Generator().manual_seed(number)))


def test_non_domination_labels_of_equal_trials_have_nothing_to_tell_apart():
    assert not NonDominationLabels()(told([[1.0, 2.0]] * 3)).separable
    assert NonDominationLabels()(told([[1.0, 2.0], [1.0, 2.0], [1.0, 3.0]])).separable
    assert NonDominationLabels()(told([[1.0, 2.0], [math.nan, math.nan]])).separable


def test_non_domination_labels_peel_front_after_front():
    z = NonDominationLabels(gamma=1.0)(told([[0, 2], [1, 1], [2, 0], [2, 2], [3, 3]])).z[:, 0]
    assert z[:3].min() > z[3] > z[4]
    assert z[1] < z[0]  # it has less room than the ends


TENTHS = {"x": [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]}


# regression: each of these was wrong once
def test_trade_offs_between_values_as_far_apart_as_can_be_are_graded():
    values = [1e308, 1.2e308, -1e308, -1.2e308, 0.0, 1.5e308]
    far, near = (Observations(LINE, ["minimize"] * 2) for _ in range(2))
    far.add(TENTHS, [[value, -value] for value in values])
    near.add(TENTHS, [[value / 1e308, -value / 1e308] for value in values])
    labels = ChebyshevLabels()(far)
    assert torch.allclose(labels.z, ChebyshevLabels()(near).z)
    assert math.isfinite(labels.best)
    assert labels.z.max() > 0


def diagonal(n):
    """n configurations along the diagonal, as columns."""
    return {name: np.linspace(0, 1, n).tolist() for name in "xy"}


@pytest.mark.parametrize("constant", [1.0, 1e15, 1e17, -1e17])
def test_an_objective_that_never_changes_has_the_same_grades_at_any_size(constant):
    study = Study(SQUARE, directions=["minimize", "minimize"])
    study.add(diagonal(4), [[constant, value] for value in (0.3, 0.1, 0.2, 0.4)])
    z = ObjectiveLabels(2)(study.observations).z
    assert z[:, 0].tolist() == [1] * 4


def test_the_greatest_number_there_is_may_be_the_penalty_of_an_objective():
    study = Study(SQUARE, directions=["minimize", "minimize"])
    study.add(diagonal(4), [[0.1, sys.float_info.max], [1, 2], [2, 1], [3, 3]])
    z = ObjectiveLabels(2)(study.observations).z[:, 1]
    assert z.isfinite().all()
    assert z[0] < z[1:].min()


def of_several(values):
    """Observations with these values (n x k, to minimise)."""
    observations = Observations(SearchSpace({"x": Real(0, 1)}), ["minimize"] * values.shape[1])
    observations.add({"x": np.linspace(0, 1, len(values))}, values)
    return observations


def peeled(values):
    """The fronts of distinct rows, by their definition."""
    left, found = np.arange(len(values)), []
    while len(left):
        found.append(left[non_dominated(values[left])])
        left = np.setdiff1d(left, found[-1])
    return found


@pytest.mark.parametrize("gamma", [0.05, 0.5, 1.0])
@pytest.mark.parametrize(("n", "k", "levels"), [(1, 2, 3), (60, 1, 9), (200, 2, 1000), (200, 2, 6), (200, 3, 5)])
def test_fronts_that_are_not_looked_at_have_labels_of_0_all_the_same(n, k, levels, gamma):
    values = np.random.default_rng(n + k + levels).integers(0, levels, (n, k)).astype(float)
    distinct, which, count = np.unique(values, axis=0, return_inverse=True, return_counts=True)
    order = np.concatenate([each[np.argsort(-crowding(distinct[each]), kind="stable")] for each in peeled(distinct)])
    rank = np.empty(len(distinct))
    rank[order] = np.cumsum(count[order]) - count[order]
    expected = np.clip(1 - rank[which.reshape(-1)] / (gamma * n), 0, None)
    labels = NonDominationLabels(gamma)(of_several(values))
    assert labels.z[:, 0].numpy() == pytest.approx(expected, abs=1e-7)
    assert labels.separable == (len(distinct) > 1)


@pytest.mark.parametrize("enough", [0, 1, 5, 40])
def test_fronts_of_two_values_are_those_that_are_peeled_one_by_one(enough):
    values = np.random.default_rng(0).integers(0, 7, (40, 2)).astype(float)  # equal rows stand or fall together
    every = peeled(values)
    wanted = int((np.cumsum([0, *map(len, every[:-1])]) < enough).sum())
    assert [each.tolist() for each in fronts(values, enough)] == [each.tolist() for each in every[:wanted]]


def test_many_rows_of_two_values_are_ranked_at_once():
    values, seconds = np.random.default_rng(0).random((20_000, 2)), []
    for n in (2000, 20_000):
        observations = of_several(values[:n])
        times = []
        for _ in range(3):
            begun = process_time()
            NonDominationLabels()(observations)
            times.append(process_time() - begun)
        seconds.append(min(times))
    assert seconds[1] < 40 * seconds[0]  # of all pairs there are a hundred times as many
