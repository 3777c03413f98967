"""DeepBoreSampler: Optuna's own suite of tests for samplers, and what users of Optuna expect of one."""

import copy
import logging
import pickle
import re
import runpy
import subprocess
import sys

import numpy as np
import optuna
import pytest
from optuna.distributions import FloatDistribution
from optuna.samplers import RandomSampler
from optuna.testing import pytest_samplers
from optuna.trial import TrialState

from deepbore import DeepEnsemble, ThompsonBatch, Training
from deepbore.errors import SettingError
from deepbore.integrations.optuna import DeepBoreSampler
from optuna_objectives import bowl, branches, front, optimised
from processes import ROOT

EXAMPLE = ROOT / "examples" / "optuna_sampler.py"

UNIT = FloatDistribution(0, 1)

pytestmark = pytest.mark.usefixtures("quiet_optuna")


# --- Optuna's suite --------------------------------------------------------------------------------------------------


class Ours:
    @pytest.fixture
    def sampler(self):
        return lambda: DeepBoreSampler(seed=0, n_startup_trials=3)


class TestBasic(Ours, pytest_samplers.BasicSamplerTestCase):
    pass


@pytest.mark.slow
class TestRelative(Ours, pytest_samplers.RelativeSamplerTestCase):
    pass


class TestMultiObjective(Ours, pytest_samplers.MultiObjectiveSamplerTestCase):
    pass


# --- optimisation ----------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_it_beats_random_search():
    for seed in range(3):
        ours = optimised(bowl, 25, DeepBoreSampler(seed=seed)).best_value
        assert ours < 0.01 * optimised(bowl, 25, RandomSampler(seed=seed)).best_value


@pytest.mark.slow
def test_it_maximises():
    study = optimised(lambda trial: -bowl(trial), 25, direction="maximize")
    assert study.best_value > -1e-3


@pytest.mark.slow
def test_a_network_learns_as_well():
    sampler = DeepBoreSampler(seed=0, classifier=lambda: DeepEnsemble(training=Training(steps=30)), gamma=0.3)
    assert optimised(bowl, 25, sampler).best_value < optimised(bowl, 25, RandomSampler(seed=0)).best_value


class Spy(DeepBoreSampler):
    """Notes what is sampled apart from the rest."""

    def sample_independent(self, study, trial, name, distribution):
        self.__dict__.setdefault("alone", []).append((trial.number, name))
        return super().sample_independent(study, trial, name, distribution)


@pytest.mark.slow
def test_one_classifier_learns_all_branches():
    sampler = Spy(seed=0)
    study = optimised(branches, 30, sampler)
    assert study.best_value < 1e-3
    assert {name for _, name in sampler.alone} == {"branch", "x", "y"}
    assert len(sampler.alone) == 3  # the first trial's two, and the other branch's when it is first met
    assert sum(trial.params["branch"] == "two" for trial in study.trials[10:]) > 10


@pytest.mark.slow
def test_the_region_that_fails_is_left():
    def objective(trial):
        x, y = trial.suggest_float("x", 0, 1), trial.suggest_float("y", 0, 1)
        if x > 0.5:
            raise ArithmeticError
        return (y - 0.5) ** 2 + (x - 0.3) ** 2

    study = optimised(objective, 30)
    failed = [trial.state == TrialState.FAIL for trial in study.trials]
    assert sum(failed[:10]) >= 4
    assert sum(failed[10:]) <= 3


@pytest.mark.slow
def test_pruned_trials_are_worse_than_complete_ones():
    def objective(trial):
        x = trial.suggest_float("x", 0, 1)
        trial.report(-1.0, step=0)
        if x < 0.5:
            raise optuna.TrialPruned
        return (x - 0.8) ** 2

    study = optimised(objective, 25)
    pruned = [trial.state == TrialState.PRUNED for trial in study.trials]
    assert sum(pruned[:10]) >= 4
    assert sum(pruned[10:]) <= 3


# --- state -----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_same_seed_gives_the_same_suggestions():
    one, same, other = (
        [t.params for t in optimised(branches, 14, DeepBoreSampler(seed=seed)).trials] for seed in (3, 3, 4)
    )
    assert one == same
    assert one != other


@pytest.mark.slow
def test_a_pickled_sampler_goes_on_the_same():
    study = optimised(bowl, 13)
    restored = copy.deepcopy(study)
    restored.sampler = pickle.loads(pickle.dumps(study.sampler))
    for one in (study, restored):
        one.optimize(bowl, n_trials=3)
    assert [trial.params for trial in study.trials] == [trial.params for trial in restored.trials]


@pytest.mark.slow
def test_copies_differ_once_they_are_reseeded():
    study = optimised(bowl, 13)
    copies = [copy.deepcopy(study) for _ in range(2)]
    for one in copies:
        one.sampler.reseed_rng()
        one.optimize(bowl, n_trials=1)
    assert copies[0].trials[-1].params != copies[1].trials[-1].params
    assert len({one.sampler.sample_independent(one, None, "z", UNIT) for one in copies}) == 2


@pytest.mark.slow
def test_the_classifier_is_kept_while_the_space_stays():
    made = []

    def make():
        made.append(DeepEnsemble(training=Training(steps=5)))
        return made[-1]

    study = optimised(bowl, 15, DeepBoreSampler(seed=0, n_startup_trials=3, classifier=make))
    study.enqueue_trial({"x": 0.0, "lr": 1e-3})
    study.optimize(bowl, n_trials=3)
    assert len(made) == 1


@pytest.mark.slow
def test_one_sampler_serves_one_study_after_another():
    sampler = DeepBoreSampler(seed=0, n_startup_trials=3)
    for objective in (bowl, branches, bowl):
        assert len(optimised(objective, 8, sampler).trials) == 8
    assert len(optimised(front, 8, sampler, directions=["minimize", "maximize"]).trials) == 8


# --- refusals --------------------------------------------------------------------------------------------------------


def test_parts_that_do_not_go_with_several_objectives_are_refused():
    sampler = DeepBoreSampler(candidates=ThompsonBatch())  # takes one score, not one for each objective
    study = optuna.create_study(directions=["minimize", "minimize"], sampler=sampler)
    study.optimize(front, n_trials=1)
    with pytest.raises(SettingError, match="ThompsonBatch"):
        study.ask({"x": UNIT})


def test_bad_settings_are_refused():
    with pytest.raises(SettingError, match="n_startup_trials >= 1"):
        DeepBoreSampler(n_startup_trials=0)
    with pytest.raises(SettingError, match="gamma"):
        DeepBoreSampler(gamma=2)


def test_a_missing_optuna_is_named():
    code = "import sys; sys.modules['optuna'] = None; import deepbore.integrations.optuna"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False).stderr
    assert "MissingPackage" in told
    assert "deepbore[optuna]" in told


# --- the example -----------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_example_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(EXAMPLE), run_name="__main__")
    found = re.search(r"best of 30 trials: (\S+) with", capsys.readouterr().out)
    assert found is not None
    assert float(found[1]) < 0.1
    assert (tmp_path / "optuna_journal.log").exists()


@pytest.mark.slow
@pytest.mark.parametrize("seed", [np.int64(4), -4, 2**40])
def test_a_seed_is_any_whole_number(seed):
    runs = [optuna.create_study(sampler=DeepBoreSampler(seed=seed, n_startup_trials=3)) for _ in range(2)]
    for study in runs:
        study.optimize(lambda trial: trial.suggest_float("x", 0, 1), 6)
    assert [trial.params for trial in runs[0].trials] == [trial.params for trial in runs[1].trials]


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"seed": "a"}, r"seed must be a whole number, -2\*\*63 <= seed < 2\*\*63, but got seed='a'"),
        (
            {"classifier": DeepEnsemble()},
            "classifier must make a new classifier whenever the space changes",
        ),
        ({"classifier": "KernelPLS"}, "classifier must make a new classifier"),
    ],
)
def test_what_a_sampler_can_not_use_is_refused_at_once(settings, says):
    with pytest.raises(SettingError, match=says):
        DeepBoreSampler(**settings)


# regression: Optuna's constraints are ignored without a word
@pytest.mark.slow
def test_c9_optunas_constraints_are_learned():
    optuna = pytest.importorskip("optuna")
    from deepbore.integrations.optuna import DeepBoreSampler

    def corner(trial):
        value = trial.suggest_float("x", 0, 1) + trial.suggest_float("y", 0, 1)
        trial.set_constraint("at least 1", 1 - value)
        return value

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(sampler=DeepBoreSampler(seed=0))
    study.optimize(corner, n_trials=22)
    assert sum(trial.value < 1 for trial in study.trials[10:]) < 12  # in version 0.1 all of them
    assert 1 <= study.best_value < 1.05


# regression: this was wrong once
def test_optuna_says_nothing_of_a_classifier_that_the_user_never_gave(caplog):
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(sampler=DeepBoreSampler(seed=0))

    def objective(trial):
        return (trial.suggest_float("x", 0, 1) - 0.3) ** 2 + trial.suggest_float("y", 0, 1)

    with caplog.at_level(logging.WARNING):
        study.optimize(objective, 12)
        study.enqueue_trial({"x": 0.25})  # and y as it comes, not as it was proposed
        study.optimize(objective, 2)
    assert not [record for record in caplog.records if "another run" in record.message]
