"""DeepBoreSampler where trials run side by side: in threads, in processes, and from a queue."""

import sys

import optuna
import pytest
from optuna.distributions import CategoricalDistribution, IntDistribution
from optuna.trial import TrialState

import forked
from deepbore.integrations.optuna import DeepBoreSampler

pytestmark = pytest.mark.usefixtures("quiet_optuna")

GRID = {"i": IntDistribution(0, 3), "c": CategoricalDistribution(["a", "b", "c"])}


def asked(study, n):
    return [study.ask(GRID) for _ in range(n)]


def distinct(trials):
    return len({tuple(sorted(trial.params.items())) for trial in trials})


def test_running_trials_are_not_proposed_again():
    study = optuna.create_study(sampler=DeepBoreSampler(seed=0, n_startup_trials=2))
    for value, trial in enumerate(asked(study, 1)):
        study.tell(trial, value)
    assert distinct(asked(study, 11)) == 11
    assert distinct(study.trials) == 12


def test_it_goes_on_where_a_finite_space_is_exhausted():
    study = optuna.create_study(sampler=DeepBoreSampler(seed=0, n_startup_trials=2))
    for _ in range(15):
        trial = study.ask(GRID)
        study.tell(trial, trial.params["i"])
    assert distinct(study.trials[:12]) == 12


@pytest.mark.parametrize("fixed", [{"i": 3}, {"i": 2}, {"i": 2, "c": "c"}])
def test_what_is_enqueued_takes_the_place_of_what_was_proposed(fixed):
    study = optuna.create_study(sampler=DeepBoreSampler(seed=0, n_startup_trials=2))
    study.tell(study.ask(GRID), 1.0)
    study.enqueue_trial(fixed)
    for trial in (study.ask(GRID) for _ in range(11)):
        study.tell(trial, trial.params["i"])
    assert fixed.items() <= study.trials[1].params.items()
    assert distinct(study.trials) == 12


def test_threads_propose_distinct_configurations():
    def objective(trial):
        return trial.suggest_int("x", 0, 999) + trial.suggest_int("y", 0, 999)

    study = optuna.create_study(sampler=DeepBoreSampler(seed=0, n_startup_trials=4))
    study.optimize(objective, n_trials=14, n_jobs=2)
    assert [trial.state for trial in study.trials] == [TrialState.COMPLETE] * 14
    assert distinct(study.trials) == 14


@pytest.mark.slow
def test_another_process_sees_what_is_proposed_before_it_is_asked_for(tmp_path):
    storage = f"sqlite:///{tmp_path / 'study.db'}"
    one = optuna.create_study(study_name="s", storage=storage, sampler=DeepBoreSampler(seed=0, n_startup_trials=1))
    other = optuna.load_study(study_name="s", storage=storage, sampler=DeepBoreSampler(seed=0, n_startup_trials=1))
    for _ in range(3):
        trial = one.ask(GRID)
        one.tell(trial, trial.params["i"])
    running = one.ask()
    running.suggest_int("i", 0, 3)  # all parameters are chosen now, but the storage has only this one
    proposals = [study.ask(GRID).params for study in (other, one, other, one, other, one, other, one)]
    everything = [*(trial.params for trial in one.trials if trial.number != running.number), running.relative_params]
    assert len(proposals) == 8
    assert len({tuple(sorted(params.items())) for params in everything}) == 12


@pytest.mark.parametrize("ends", [False, True])  # whether the other's trial has ended before one looks again
def test_of_two_processes_that_propose_the_same_at_once_one_gives_way(tmp_path, monkeypatch, ends):
    backend = optuna.storages.journal.JournalFileBackend(str(tmp_path / "journal.log"))
    storages = [optuna.storages.JournalStorage(backend) for _ in range(2)]
    one = optuna.create_study(study_name="s", storage=storages[0], sampler=DeepBoreSampler(seed=0, n_startup_trials=1))
    other = optuna.load_study(study_name="s", storage=storages[1], sampler=DeepBoreSampler(seed=0, n_startup_trials=1))
    for _ in range(3):
        trial = one.ask(GRID)
        one.tell(trial, trial.params["i"])
    first, others = storages[0].set_trial_system_attr, []

    def write(*args):
        if not others:  # after `one` has chosen and before it says so, the other chooses, too
            others.append(other.ask(GRID))
            if ends:
                other.tell(others[0], others[0].params["i"])
        first(*args)

    monkeypatch.setattr(storages[0], "set_trial_system_attr", write)
    asked_at_once = [one.ask(GRID), *others]
    assert distinct(asked_at_once) == 2
    assert distinct(asked(one, 7) + one.trials) == 12  # no row was lost


WORKER = """
import optuna
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
from deepbore.integrations.optuna import DeepBoreSampler
storage = JournalStorage(JournalFileBackend({path!r}))
sampler = DeepBoreSampler(seed={seed}, n_startup_trials=6)
study = optuna.create_study(study_name="s", storage=storage, sampler=sampler, load_if_exists=True)
study.optimize(lambda trial: (trial.suggest_float("x", 0, 1) - 0.3) ** 2, n_trials=10)
"""


@pytest.mark.slow
def test_two_processes_work_on_one_journal(tmp_path):
    path = str(tmp_path / "journal.log")
    workers = [forked.Popen([sys.executable, "-c", WORKER.format(path=path, seed=seed)]) for seed in (0, 1)]
    assert [worker.wait(timeout=120) for worker in workers] == [0, 0]
    backend = optuna.storages.journal.JournalFileBackend(path)
    study = optuna.load_study(study_name="s", storage=optuna.storages.JournalStorage(backend))
    assert [trial.state for trial in study.trials] == [TrialState.COMPLETE] * 20
    assert distinct(study.trials) == 20
    assert study.best_value < 1e-4
