"""Grades of black-box constraints: borders, scales, units, and what is unknown."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st

import cases
from constrained import disc, some_rows
from deepbore import Study, ValueGradedLabels
from deepbore.data.observations import Observations
from deepbore.labels import LabelledBatch
from deepbore.labels.constraints import graded
from plane import LINE, SQUARE


def test_a_grade_is_a_half_on_the_border_and_keeps_distances_up_to_the_last_tenth():
    column = torch.tensor([0.0, math.nan, *range(-5, 5), 1000.0], dtype=torch.float64)  # ten sizes above 0, nine to 5
    grades = graded(column[:, None])[:, 0].tolist()
    assert grades == pytest.approx([1 / 2, math.nan, *(1 / 2 - c / 20 for c in range(-5, 5)), 5 / 4000], nan_ok=True)


@pytest.mark.parametrize("by", [1e-300, 1e-17, 1e-12])
def test_what_is_violated_is_graded_below_a_half_by_however_little(by):
    grades = graded(torch.tensor([[by], [-by], [1.0]], dtype=torch.float64))[:, 0]
    assert (grades < 0.5).tolist() == [True, False, True]


@pytest.mark.parametrize("slack", [1e-3, 1e-9])
def test_one_row_that_barely_keeps_a_constraint_does_not_make_violations_penalties(slack):
    violated = torch.linspace(0.05, 1.5, 20, dtype=torch.float64)
    barely, well = (graded(torch.cat([violated, violated.new_tensor([-by])])[:, None]) for by in (slack, 0.05))
    assert torch.equal(barely[:-1], well[:-1])


def test_penalties_among_few_violations_do_not_hide_how_far_these_are():
    c = torch.tensor([0.1, 0.2, 0.3, 0.4, 0.5, 1e6, 1e6, 1e6], dtype=torch.float64)  # none is kept
    grades = graded(c[:, None])[:, 0]
    assert grades[0] - grades[4] > 0.05


def test_the_scale_of_many_rows_is_found_from_some_of_them():
    column = torch.randn(200_001, 1, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    scale = float(column.abs().quantile(0.9))
    grades = graded(column)[:, 0]
    near = column[:, 0].abs() < scale / 2
    assert torch.allclose(grades[near], 0.5 - column[near, 0] / scale / 4, atol=0.01)


@given(
    st.lists(st.floats(-1e6, 1e6).filter(lambda c: c == 0 or abs(c) > 1e-6), min_size=1, max_size=20),
    st.floats(1e-3, 1e3),
)
@settings(max_examples=50)
def test_the_unit_of_a_constraint_does_not_matter_and_its_order_stays(values, unit):
    column = torch.tensor(values, dtype=torch.float64)[:, None]
    grades = graded(column)
    assert torch.allclose(grades, graded(unit * column), atol=1e-9)
    assert ((grades >= 0) & (grades <= 1)).all()
    assert torch.equal(grades >= 0.5, column <= 0)
    order = column[:, 0].argsort()
    assert (grades[order, 0].diff() <= 1e-12).all()


@pytest.mark.parametrize("name", cases.LABELLINGS)
def test_labels_grade_all_values_and_improve_on_the_best_feasible_one(name):
    labelling = cases.LABELLINGS[name]()
    if labelling.objectives != 1 or labelling.outputs > 1:
        pytest.skip("grades several values, or has a column for each threshold")
    with_constraints, without = some_rows(), some_rows(objective=lambda params: disc(params).values[0])
    labels, plain = labelling(with_constraints), cases.LABELLINGS[name]()(without)
    assert torch.equal(labels.z, plain.z)
    feasible = with_constraints.feasible
    assert float(labels.best) == pytest.approx(float(labels.z[feasible].max()))
    assert torch.equal((labels.constraints >= 0.5).all(-1), feasible)
    assert plain.constraints is None


def test_what_is_unknown_has_no_grade_and_failures_are_far_outside_while_nothing_is_feasible():
    observations = Observations(SQUARE)
    columns = {"x": [0.1, 0.2, 0.3], "y": [0.9, 0.8, 0.7]}
    observations.add(columns, [1.0, 2.0, math.nan], constraints=[[1.0], [2.0], [math.nan]])
    observations.reserve(SQUARE.points.sobol(1, seed=0))
    grades = ValueGradedLabels()(observations).constraints[:, 0].tolist()
    assert grades[2] == 0.0
    assert math.isnan(grades[3])
    observations.add({"x": 0.9, "y": 0.1}, 3.0, constraints=[-1.0])
    grades = ValueGradedLabels()(observations).constraints[:, 0].tolist()
    assert math.isnan(grades[2])
    assert grades[4] > 0.5


# regression: each of these was wrong once
def test_a_row_whose_constraints_are_unknown_is_feasible_for_all_or_for_none():
    observations = Observations(LINE)
    observations.add({"x": [0.1, 0.2, 0.3]}, [3.0, 2.0, 1.0], constraints=[[-1.0], [-1.0], [2.0]])
    observations.add({"x": [0.5]}, [-5.0])
    batch = LabelledBatch.of(observations, ValueGradedLabels())
    assert batch.may_be_best.tolist() == observations.feasible.tolist() == [True, True, False, True]
    assert batch.z[batch.may_be_best].max() == batch.best


def diagonal(n):
    """n configurations along the diagonal, as columns."""
    return {name: np.linspace(0, 1, n).tolist() for name in "xy"}


@pytest.mark.slow
@pytest.mark.parametrize("has_plain_rows", [False, True])
def test_rows_without_constraints_do_not_make_failures_look_feasible(has_plain_rows):
    study = Study(SQUARE, seed=0, n_initial=6)
    if has_plain_rows:
        study.add({"x": [0.8, 0.9], "y": [0.5, 0.1]}, [1.0, 2.0])
    failed = 0
    for number in range(18):
        (trial,) = study.ask()
        x, y = trial.params["x"], trial.params["y"]
        if x < 0.3:
            study.tell(trial, failed=True)
            failed += number >= 8
        else:
            study.tell(trial, x, constraints=[x - 0.25 + 0.5 * abs(y - 0.9)])
    assert failed < 7


@pytest.mark.slow
def test_a_large_penalty_in_many_trials_leaves_the_border_where_it_is():
    study = Study(SQUARE, seed=1)
    for _ in range(35):
        (trial,) = study.ask()
        x, y = trial.params["x"], trial.params["y"]
        study.tell(trial, x + y, constraints=[1e6 if x < 0.3 else 0.6 - y])
    assert study.best_trial.value < 1  # the optimum is .9


def test_a_violated_constraint_is_never_graded_as_kept():
    study = Study(SQUARE, seed=0)
    penalties = [[1e17] if row % 2 else [0.5] for row in range(20)]
    study.add(diagonal(20), np.arange(20.0).tolist(), constraints=penalties)
    study.ask()
    assert not study.observations.feasible.any()
    assert not study._state.feasibility.has_feasible


@pytest.mark.parametrize("unit", [1e-9, 1.0, 1e6])
def test_the_unit_of_a_constraint_does_not_matter_where_none_is_kept(unit):
    study = Study(SQUARE, seed=0)
    violations = [[unit * 1.0, 5.0], [unit * 4.0, 1.0], [unit * 9.0, 0.1]]
    study.add({"x": [0.1, 0.5, 0.9], "y": [0.1, 0.5, 0.9]}, [1.0, 2.0, 3.0], constraints=violations)
    assert study.observations.centres.best_rows(3).tolist() == [1, 2, 0]  # by 1/4 + 5, 1 + 1, 9/4 + .1 medians
