"""Pruned trials are graded among those that got as far, and are never the best."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st

from deepbore import Budget, Ordinal, Outcome, Real, SearchSpace, ThresholdLabels, ValueGradedLabels
from deepbore.data.observations import Observations
from deepbore.data.pruned import likely_values
from deepbore.data.trial import Status
from deepbore.labels import LabelledBatch
from plane import LINE


def told(trials, space=LINE, **about):
    """Observations of trials: the reports of each, and its value, None for one that was pruned."""
    observations = Observations(space, **about)
    points = torch.linspace(0, 1, len(trials), dtype=torch.float64)[:, None]
    observations.reserve(points)
    for row, (curve, value) in enumerate(trials):
        outcome = Outcome.pruned() if value is None else Outcome(value)
        observations.tell(row, Outcome(outcome.values, status=outcome.status, reports=dict(enumerate(curve, 1))))
    return observations


def test_a_pruned_trial_has_in_the_end_the_place_that_it_had_at_its_step():
    curves = [([5.0, 4.0], 1.0), ([6.0, 5.0], 2.0), ([8.0, 7.0], 4.0)]
    observations = told([*curves, ([7.0], None), ([10.0], None), ([1.0], None)])
    likely = likely_values(observations.columns)
    assert likely[3] == pytest.approx(3.0)  # between 6 and 8 as between 2 and 4
    assert likely[4] == pytest.approx(4.0 + 2.0 * 3 / 3)  # beyond 8 in the ratio of the ranges
    assert likely[5] == 2.0  # the best of all at its step, but never the best


def test_of_ties_at_its_step_it_has_the_worst_place():
    complete = [([1.0], 0.0), ([1.0], 1.0), ([1.0], 2.0), ([5.0], 4.0)]
    assert likely_values(told([*complete, ([1.0], None)]).columns) == {4: 2.0}


def test_trials_that_were_pruned_later_are_compared_with_too():
    complete = [([5.0, 4.0, 3.0], 1.0), ([6.0, 5.0, 4.0], 2.0)]
    observations = told([*complete, ([7.0, 6.0], None), ([6.5], None)])
    assert likely_values(observations.columns) == {2: pytest.approx(3.0), 3: pytest.approx(2.5)}


def test_what_is_not_known_stays_unknown():
    observations = told([([], None), ([1.0], None)])
    assert likely_values(observations.columns) == {}
    assert observations.believed.values.isnan().all()
    batch = LabelledBatch.of(observations.believed, ValueGradedLabels())
    assert not batch.separable
    assert not batch.failures.any()


def test_a_curve_that_has_diverged_is_worse_than_all():
    observations = told([([1.0], 0.0), ([2.0], 1.0), ([float("nan")], None), ([3.0], None)])
    likely = likely_values(observations.columns)
    assert likely[2] >= likely[3] > 1.0


CURVE = st.lists(st.floats(-1e6, 1e6, allow_nan=False), min_size=1, max_size=4)
TRIALS = st.lists(st.tuples(CURVE, st.none() | st.floats(-1e6, 1e6, allow_nan=False)), min_size=2, max_size=12)


@pytest.mark.parametrize("labelling", [ValueGradedLabels(), ThresholdLabels()])
@settings(max_examples=50)
@given(TRIALS)
def test_labels_of_pruned_trials_are_grades_and_the_best_is_another(labelling, trials):
    observations = told(trials)
    batch = LabelledBatch.of(observations.believed, labelling)
    pruned = observations.status == Status.PRUNED
    complete = observations.status == Status.COMPLETE
    assert ((batch.z >= 0) & (batch.z <= 1)).all()
    assert not (batch.failures & pruned).any()
    assert int(observations.ledger.statistics.n_pruned) == int(pruned.sum())
    if complete.any():
        assert observations.best.status is Status.COMPLETE
        assert observations.best.value == observations.values[complete].min()
        if pruned.any():
            assert batch.z[pruned].max() <= batch.z[complete].max()
            assert not (batch.may_be_best & pruned).any()


def test_grades_keep_the_order_of_values_at_a_step():
    rng = np.random.default_rng(0)
    complete = [([x, x / 2], x / 4) for x in rng.uniform(1, 2, 9)]
    worse = np.sort(rng.uniform(2, 4, 5))
    observations = told([*complete, *(([x], None) for x in worse)])
    z = LabelledBatch.of(observations.believed, ValueGradedLabels()).z[9:, 0]
    assert (z.diff() < 0).all()
    assert z.max() < 0.5


def test_budgets_are_compared_each_with_its_own():
    space = SearchSpace({"k": Ordinal(list(range(8)))})
    observations = Observations(space, budget=Budget("epochs", 1, 3))
    points = space.encode([{"k": k} for k in range(8)])
    observations.reserve(points[:4])
    observations.reserve(points[4:], budget=3)
    for row in range(8):
        reports, shift = {0.5: float(row)}, 100.0 * (row >= 4)
        outcome = Outcome.pruned() if row % 4 == 3 else Outcome(row + shift)
        observations.tell(row, Outcome(outcome.values, status=outcome.status, reports=reports))
    assert likely_values(observations.columns) == {3: pytest.approx(3.0), 7: pytest.approx(107.0)}


def test_several_objectives_have_no_pruned_trials():
    observations = Observations(SearchSpace({"x": Real(0, 1)}), ["minimize", "minimize"])
    observations.reserve(torch.zeros(1, 1, dtype=torch.float64))
    with pytest.raises(TypeError, match="one objective"):
        observations.tell(0, Outcome.pruned())
