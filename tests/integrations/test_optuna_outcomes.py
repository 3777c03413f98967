"""DeepBoreSampler under constraints, and for several objectives."""

import math
import pickle

import numpy as np
import pytest
from optuna.samplers import RandomSampler

from deepbore import RandomForest
from deepbore.data.array_ranking import hypervolume
from deepbore.errors import ValueTypeError
from deepbore.integrations.optuna import DeepBoreSampler
from optuna_objectives import bowl, branches, front, optimised

pytestmark = pytest.mark.usefixtures("quiet_optuna")


# --- constraints -----------------------------------------------------------------------------------------------------


def corner(trial):
    """The sum of two numbers, which must be 1 at least; the best is 1, on the border."""
    return trial.suggest_float("x", 0, 1) + trial.suggest_float("y", 0, 1)


def corner_with_constraint(trial):
    value = corner(trial)
    trial.set_constraint("at least 1", 1 - value)
    return value


def at_least_1(trial):
    return (1 - sum(trial.params.values()),)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("objective", "settings"), [(corner, {"constraints_func": at_least_1}), (corner_with_constraint, {})]
)
@pytest.mark.parametrize("sign", [1, -1], ids=["minimise", "maximise"])
def test_trials_that_violate_a_constraint_are_bad_ones(objective, settings, sign):
    direction = "minimize" if sign == 1 else "maximize"
    sampler = DeepBoreSampler(seed=0, **settings)
    study = optimised(lambda trial: sign * objective(trial), 30, sampler, direction=direction)
    assert 1 <= sign * study.best_value < 1.02  # Optuna's best trial is a feasible one
    # on the border one in two is outside by a little; without constraints all would be outside by much
    assert sum(sign * trial.value < 0.98 for trial in study.trials[10:]) < 8


def in_a_disc(trial):
    trial.suggest_float("x", 0, 1), trial.suggest_float("y", 0, 1)
    return 0.0


def outside_of_the_disc(trial):
    distance = math.dist((trial.params["x"], trial.params["y"]), (0.7, 0.2))
    return [distance - 0.02, -1.0]


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_what_is_feasible_is_found_where_it_is_rare(direction):
    study = optimised(in_a_disc, 25, DeepBoreSampler(seed=0, constraints_func=outside_of_the_disc), direction=direction)
    feasible = [max(outside_of_the_disc(trial)) <= 0 for trial in study.trials]
    assert not any(feasible[:10])  # 1.3 of 1000 points are
    assert any(feasible[10:])


@pytest.mark.parametrize(("returned", "says"), [([math.nan], "NaN"), (["a"], "number"), (None, "number")])
def test_constraints_that_are_no_numbers_are_refused(returned, says):
    sampler = DeepBoreSampler(seed=0, constraints_func=lambda trial: returned)
    with pytest.raises(ValueTypeError, match=says):
        optimised(bowl, 1, sampler)


def test_a_sampler_with_constraints_can_be_pickled():
    sampler = pickle.loads(pickle.dumps(DeepBoreSampler(seed=0, constraints_func=at_least_1)))
    study = optimised(corner, 3, sampler)
    assert all("0" in trial.constraints for trial in study.trials)


# --- several objectives ----------------------------------------------------------------------------------------------


def dominated(study):
    """Share of the unit square that the front dominates."""
    return hypervolume(np.array([[a, -b] for a, b in (trial.values for trial in study.best_trials)]), (1.0, 1.0))


@pytest.mark.slow
def test_of_several_objectives_it_finds_the_front():
    both = {"directions": ["minimize", "maximize"]}
    ours = dominated(optimised(front, 35, **both))
    assert ours > 0.4  # of 0.5
    assert ours > 1.5 * dominated(optimised(front, 35, RandomSampler(seed=0), **both))


@pytest.mark.slow
def test_several_objectives_go_with_failures_constraints_conditions_and_copies():
    def objective(trial):
        if trial.number % 7 == 3:
            raise ArithmeticError
        trial.set_constraint("c", 0.2 - trial.suggest_float("x", 0, 1))
        return trial.params["x"], branches(trial)

    study = optimised(objective, 16, DeepBoreSampler(seed=0, n_startup_trials=4), directions=["minimize", "minimize"])
    again = pickle.loads(pickle.dumps(study))
    for each in (study, again):
        each.optimize(objective, n_trials=6, catch=(ArithmeticError,))
    assert [trial.params for trial in again.trials] == [trial.params for trial in study.trials]
    assert all(trial.params["x"] >= 0.2 for trial in study.best_trials)


def test_any_head_goes_with_several_objectives():
    sampler = DeepBoreSampler(seed=0, n_startup_trials=3, classifier=lambda: RandomForest(trees=10))
    assert len(optimised(front, 8, sampler, directions=["minimize", "maximize"]).best_trials) >= 1
