"""Outcomes of every kind, where two of them meet, and spaces at their edges: each did something else once."""

import sys

import numpy as np
import pytest
import torch

from deepbore import Budget, Categorical, Integer, Ordinal, Real, SearchSpace, Study
from deepbore.candidates import LocalSearch, RelaxedSearch
from deepbore.classifiers import MLPClassifier, Relaxed
from deepbore.errors import SpaceError, TableError
from deepbore.labels import ObjectiveLabels
from deepbore.loop.metrics import progress

PLANE = SearchSpace({"x": Real(0, 1), "y": Real(0, 1)})


def diagonal(n):
    """n configurations along the diagonal, as columns."""
    return {name: np.linspace(0, 1, n).tolist() for name in "xy"}


# --- constraints -----------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("has_plain_rows", [False, True])
def test_rows_without_constraints_do_not_make_failures_look_feasible(has_plain_rows):
    study = Study(PLANE, seed=0, n_initial=6)
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
    study = Study(PLANE, seed=1)
    for _ in range(35):
        (trial,) = study.ask()
        x, y = trial.params["x"], trial.params["y"]
        study.tell(trial, x + y, constraints=[1e6 if x < 0.3 else 0.6 - y])
    assert study.best_trial.value < 1  # the optimum is .9


def test_a_violated_constraint_is_never_graded_as_kept():
    study = Study(PLANE, seed=0)
    penalties = [[1e17] if row % 2 else [0.5] for row in range(20)]
    study.add(diagonal(20), np.arange(20.0).tolist(), constraints=penalties)
    study.ask()
    assert not study.observations.feasible.any()
    assert not study._state.feasibility.found


@pytest.mark.parametrize("unit", [1e-9, 1.0, 1e6])
def test_the_unit_of_a_constraint_does_not_matter_where_none_is_kept(unit):
    study = Study(PLANE, seed=0)
    violations = [[unit * 1.0, 5.0], [unit * 4.0, 1.0], [unit * 9.0, 0.1]]
    study.add({"x": [0.1, 0.5, 0.9], "y": [0.1, 0.5, 0.9]}, [1.0, 2.0, 3.0], constraints=violations)
    assert study.observations.best_rows(3).tolist() == [1, 2, 0]  # by 1/4 + 5, 1 + 1, 9/4 + .1 medians


def first_promoted(unit):
    """The configuration that is promoted first where nothing is feasible and the first constraint is in this unit."""
    study = Study(PLANE, seed=0, budget=Budget("epochs", 1, 9), n_initial=6)
    for _ in range(16):
        (trial,) = study.ask()
        x, y = trial.params["x"], trial.params["y"]
        if trial.budget > 1:
            return x, y
        study.tell(trial, x, constraints=[unit * (1 + x), 2 - x + y])
    return None


@pytest.mark.parametrize("unit", [1e-9, 1.0, 1e9])
def test_the_unit_of_a_constraint_does_not_matter_to_promotions(unit):
    assert first_promoted(unit) == pytest.approx(first_promoted(1.0), abs=1e-6)


# --- noise, earlier tasks, several objectives ------------------------------------------------------------------------


@pytest.mark.parametrize("has_task", [False, True])
def test_noise_of_an_earlier_task_does_not_weigh_this_runs_values(has_task):
    study = Study(PLANE, seed=0)
    study.add({"x": [0.1, 0.1, 0.9, 0.5], "y": [0.1, 0.1, 0.9, 0.5]}, [0.0, 10, 6, 20], noise=[10, 0.1, 1, 1])
    if has_task:
        study.add(diagonal(9), (1e6 * np.linspace(0, 1, 9)).tolist(), noise=[1e5] * 9, task="old")
    assert study.recommended.params["x"] == 0.9  # 0 +- 10 and 10 +- .1 have a mean of 10


def test_an_earlier_task_makes_no_front_feasible():
    study = Study(PLANE, directions=["minimize", "minimize"], seed=0)
    study.add({"x": [0.1, 0.9], "y": [0.1, 0.5]}, [[1, 2], [2, 1]], task="old")
    for trial in study.ask(6):
        study.tell(trial, [trial.params["x"], trial.params["y"]], constraints=[1.0])
    assert study.pareto_front == []
    assert progress(study.observations)["hypervolume"] == 0


def test_results_of_several_budgets_of_an_earlier_task_come_from_a_file_as_from_columns(tmp_path):
    (tmp_path / "old.csv").write_text("x,y,value,budget\n.1,.2,1,1\n.3,.4,2,9\n")
    study = Study(PLANE)
    study.add_csv(tmp_path / "old.csv", task="old")
    assert len(study.observations) == 2
    with pytest.raises(TableError, match="several budgets"):
        Study(PLANE).add_csv(tmp_path / "old.csv")


@pytest.mark.parametrize("constant", [1.0, 1e15, 1e17, -1e17])
def test_an_objective_that_never_changes_has_the_same_grades_at_any_size(constant):
    study = Study(PLANE, directions=["minimize", "minimize"])
    study.add(diagonal(4), [[constant, value] for value in (0.3, 0.1, 0.2, 0.4)])
    z = ObjectiveLabels(2)(study.observations).z
    assert z[:, 0].tolist() == [1] * 4


def test_the_greatest_number_there_is_may_be_the_penalty_of_an_objective():
    study = Study(PLANE, directions=["minimize", "minimize"])
    study.add(diagonal(4), [[0.1, sys.float_info.max], [1, 2], [2, 1], [3, 3]])
    z = ObjectiveLabels(2)(study.observations).z[:, 1]
    assert z.isfinite().all()
    assert z[0] < z[1:].min()


# --- spaces ----------------------------------------------------------------------------------------------------------


def test_a_wide_space_whose_parameters_all_stand_still_has_one_configuration():
    still = {f"x{number}": 0.5 for number in range(10)}
    study = Study(SearchSpace({name: Real(0, 1) for name in still}), seed=0)
    study.fix(still)
    assert study.ask()[0].params == still


def test_choices_beyond_all_floats_may_be_compared():
    space = SearchSpace({"n": Ordinal([1, 10**400]), "m": Integer(1, 100)}, constraints=["n + m > 5"])
    assert space.cardinality == 100 + 96


def test_steps_of_whole_numbers_may_be_as_fine_as_whole_numbers_are():
    assert Integer(0, 2**32 - 1, step=1) == Integer(0, 2**32 - 1)
    even = Integer(-4 * 10**14, 4 * 10**14, step=2)
    values = [-4 * 10**14, 2, 4 * 10**14 - 2]
    assert even.decode(even.encode(values)) == values
    with pytest.raises(SpaceError, match="high must be low plus a multiple"):
        Integer(0, 4 * 10**14 + 1, step=2)


def test_a_parameter_may_be_called_as_a_relaxed_category_is():
    space = SearchSpace({"c": Categorical(["a", "b", "c"]), "c, 0": Real(0, 1)})
    parts = {"classifier": Relaxed(MLPClassifier()), "candidates": RelaxedSearch(LocalSearch())}
    study = Study(space, seed=0, n_initial=4, **parts)
    study.optimize(lambda params: params["c, 0"], 6, progress=False)
    assert len(study.trials) == 6


def test_more_parameters_than_sobols_sequence_has_begin_at_random():
    space = SearchSpace({f"x{number}": Real(0, 1) for number in range(21202)})
    first, all_three = space.sobol(2, seed=1), space.sobol(3, seed=1)
    assert torch.equal(first, all_three[:2])
    assert torch.equal(space.sobol(1, seed=1, skip=2), all_three[2:])


@pytest.mark.slow
@pytest.mark.parametrize("beside", [{}, {"x": Real(0, 1)}])
def test_a_scarce_rule_is_counted_by_its_own_parameters(beside):
    whole = {"a": Integer(1, 3000), "b": Integer(1, 3000)}
    space = SearchSpace({**beside, **whole}, constraints=["a * b == 2999 * 2998"])
    drawn = space.decode(space.sample(20, torch.Generator().manual_seed(0)))
    assert {(params["a"], params["b"]) for params in drawn} == {(2999, 2998), (2998, 2999)}
    with pytest.raises(SpaceError, match="no configuration meets"):
        SearchSpace({**beside, **whole}, constraints=["a * b == 2999 * 2998", "a > b + 1"])


@pytest.mark.parametrize("kind", [Ordinal, Categorical])
def test_true_and_one_are_two_choices_between_parameters_too(kind):
    assert kind([True, 2]) != kind([1, 2])
    assert {kind([1, 2]), kind((1.0, 2))} == {kind([1, 2])}
