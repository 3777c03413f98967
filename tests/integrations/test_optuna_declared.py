"""`DeepBoreSampler(space=...)`: a space that is known before any trial."""

import numpy as np
import optuna
import pytest
from optuna.trial import TrialState

from deepbore import Categorical, Integer, Library, Normal, Real, SearchSpace
from deepbore.errors import SpaceError
from deepbore.integrations.optuna import PROPOSED, DeepBoreSampler, suggest

pytestmark = pytest.mark.usefixtures("quiet_optuna")
SPACE = SearchSpace(
    {
        "kind": Categorical({"one": [1], "two": [2, 3]}),
        "n": Integer(8, 64, step=8),
        "a": Real(0, 1),
        "b": Real(0, 1),
        "rate": Real(1e-5, 1e-1, log=True, when={"kind": "two"}),
    },
    constraints=["a + b <= 1"],
)


def value(params):
    return (params["a"] - 0.6) ** 2 + (params["b"] - 0.4) ** 2 + params["n"] / 640 + len(params["kind"])


def run(space, n, **settings):
    study = optuna.create_study(sampler=DeepBoreSampler(seed=0, space=space, **settings))
    study.optimize(lambda trial: value(suggest(trial, space)), n_trials=n)
    return study


def test_all_parameters_are_proposed_from_the_first_trial_on_and_none_is_forbidden():
    study = run(SPACE, 20, n_startup_trials=5)
    assert {trial.state for trial in study.trials} == {TrialState.COMPLETE}  # what is forbidden would be pruned
    assert all(trial.system_attrs[PROPOSED] == trial.params for trial in study.trials)
    assert all(("rate" in trial.params) == (trial.params["kind"] == "two") for trial in study.trials)
    assert study.best_params["kind"] == "one"
    assert study.best_value < 1.1


def test_a_fixed_parameter_is_not_asked_for():
    study = run(SPACE.with_fixed({"n": 16}), 8, n_startup_trials=4)
    assert not any("n" in trial.params for trial in study.trials)
    assert {trial.state for trial in study.trials} == {TrialState.COMPLETE}


def test_trials_outside_the_space_and_unfinished_ones_are_ignored():
    study = optuna.create_study(sampler=DeepBoreSampler(seed=0, space=SPACE, n_startup_trials=2))
    study.enqueue_trial({"a": 0.9, "b": 0.9, "kind": "one", "n": 8})  # forbidden
    study.optimize(lambda trial: value(suggest(trial, SPACE)), n_trials=6)
    study.tell(study.ask(), state=TrialState.FAIL)
    study.optimize(lambda trial: value(suggest(trial, SPACE)), n_trials=2)
    assert [trial.state.name for trial in study.trials] == ["PRUNED", *["COMPLETE"] * 5, "FAIL", *["COMPLETE"] * 2]


def test_a_dict_of_parameters_will_do():
    sampler = DeepBoreSampler(seed=0, space={"x": Real(0, 1)})
    study = optuna.create_study(sampler=sampler)
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=3)
    assert all(PROPOSED in trial.system_attrs for trial in study.trials)


def test_a_space_that_optuna_can_not_say_is_refused(tmp_path):
    np.save(tmp_path / "features.npy", np.eye(3))
    with pytest.raises(SpaceError, match="'molecule'"):
        DeepBoreSampler(space={"molecule": Library(str(tmp_path / "features.npy"))})


def test_a_declared_space_has_priors_which_the_design_is_drawn_from():
    believed = Real(0, 1, prior=Normal(0.6, 0.02))
    study = run(SearchSpace({**SPACE.parameters, "a": believed}, constraints=["a + b <= 1"]), 8)
    near = [abs(trial.params["a"] - 0.6) < 0.08 for trial in study.trials]
    assert near[:3] == [True] * 3  # the fourth is uniform
    assert sum(near) >= 6
