"""Workers that propose while no leader lives, and the leader that comes back: in threads, on SQLite."""

import json
import threading
import time
from contextlib import closing

import optuna
import pytest
from optuna.trial import TrialState

from deepbore import Budget, Categorical, Integer, Real, SearchSpace, Study
from deepbore.data.outcome import Outcome
from deepbore.data.trial import Status
from deepbore.errors import SettingError
from deepbore.integrations.alone import Sampled
from deepbore.integrations.shared import Leader, StorageEvaluator
from deepbore.worker.shared import ALONE, BEAT, LEADER, TRIAL, Proposals, Worker, is_own, open_storage, work

SPACE = SearchSpace(
    {
        "x": Real(0, 1),
        "k": Integer(8, 64, step=8),
        "kind": Categorical(["a", "b", None, True]),
        "y": Real(1e-4, 1, log=True, when={"kind": "a"}),
        "z": Real(0, 1),
    },
    constraints=["x + z <= 1"],
)
pytestmark = [pytest.mark.timeout(60), pytest.mark.usefixtures("quiet_optuna")]
QUICK = {"heartbeat": 5, "poll": 0.01, "propose_after": 0.05}
BRIEF = {"poll": 0.02, "heartbeat": 0.01}  # of a leader: three missing signs of life are soon over


def value(params):
    return (params["x"] - 0.3) ** 2 + params["k"] / 100 + (params["kind"] != "b")


def study_of(folder, space=SPACE, **options):
    return Study(space, seed=0, journal=folder / "run.jsonl", if_exists="load", n_initial=4, **options)


def begun(url, folder, n_trials=None, **options):
    """A study whose leader was there, and is gone, with this as the number of trials in all."""
    with closing(study_of(folder, **options)) as study:
        StorageEvaluator(url, "shared", study, n_trials=n_trials, **BRIEF)


def lead(url, folder, n_trials, objective=value, workers=1, **options):
    """A leader with workers that propose nothing; the trials of its study in the end."""
    threads = [
        threading.Thread(target=work, args=[objective, url, "shared"], kwargs={"poll": 0.01, "patience": 30})
        for _ in range(workers)
    ]
    for thread in threads:
        thread.start()
    with closing(study_of(folder, **options)) as study:
        Leader(url, "shared", study, **BRIEF).run(n_trials, progress=False)
        trials = list(study.trials)
    for thread in threads:
        thread.join()
    return trials


def stored(url):
    return optuna.load_study(study_name="shared", storage=open_storage(url)).trials


def told(folder):
    events = [json.loads(line) for line in (folder / "run.jsonl").read_text().splitlines()]
    return [event["trial"] for event in events if event["event"] in ("told", "failed", "pruned")]


def check(url, folder, trials):
    """Each trial of the storage is in the study once, with its configuration and outcome, and none besides."""
    assert sorted(told(folder)) == [trial.id for trial in trials]
    assert {trial.state.is_finished() for trial in stored(url)} == {True}
    there = [(each.system_attrs[TRIAL]["params"], each.value) for each in stored(url) if TRIAL in each.system_attrs]
    here = [(trial.params, trial.value) for trial in trials]
    assert sorted(map(repr, there)) == sorted(map(repr, here))


def test_a_worker_waits_unless_it_is_told_to_propose(url, tmp_path):
    begun(url, tmp_path)
    time.sleep(0.1)
    assert work(value, url, "shared", patience=0.3, poll=0.01) == 0


def test_a_worker_without_a_leader_proposes_in_its_space_and_the_next_leader_has_its_trials(url, tmp_path):
    begun(url, tmp_path)
    assert work(value, url, "shared", n_trials=7, **QUICK) == 7
    assert all(is_own(trial) for trial in stored(url))
    trials = lead(url, tmp_path, 10)
    assert len(trials) == 10
    check(url, tmp_path, trials)
    assert [trial.attributes.get("storage_trial") for trial in trials] == [*range(7), None, None, None]
    assert len(lead(url, tmp_path, 12)) == 12  # a later leader takes nothing in twice
    check(url, tmp_path, list(Study.load(tmp_path / "run.jsonl").trials))


def test_workers_end_at_the_number_of_trials_of_the_study(url, tmp_path):
    begun(url, tmp_path, n_trials=5)
    assert work(value, url, "shared", patience=1, **QUICK) == 5
    assert len(lead(url, tmp_path, 5)) == 5


def test_trials_beyond_the_number_of_the_study_are_taken_in_all_the_same(url, tmp_path):
    begun(url, tmp_path)
    work(value, url, "shared", n_trials=4, **QUICK)
    trials = lead(url, tmp_path, 2)
    assert len(trials) == 4
    check(url, tmp_path, trials)


def test_a_leader_that_only_seemed_dead_takes_trials_in_as_well(url, tmp_path):
    with closing(study_of(tmp_path)) as study:
        silent = StorageEvaluator(url, "shared", study, **BRIEF)
        assert work(value, url, "shared", n_trials=3, **QUICK) == 3
        later = threading.Thread(target=work, args=[value, url, "shared"], kwargs={"poll": 0.01, "patience": 30})
        later.start()
        study.optimize(silent, 2, progress=False)
        silent.end()
        trials = list(study.trials)
    later.join()
    assert sum("storage_trial" in trial.attributes for trial in trials) == 3
    check(url, tmp_path, trials)


def test_nobody_proposes_beside_a_leader_that_lives(url, tmp_path):
    def slow(params):
        time.sleep(0.2)
        return value(params)

    threads = [threading.Thread(target=work, args=[slow, url, "shared"], kwargs=QUICK | {"patience": 30}) for _ in "ab"]
    for thread in threads:
        thread.start()
    with closing(study_of(tmp_path)) as study:
        Leader(url, "shared", study, poll=0.02, heartbeat=0.3).run(6, progress=False)
    for thread in threads:
        thread.join()
    assert not any(map(is_own, stored(url)))


def test_outcomes_of_all_kinds_are_taken_in(url, tmp_path):
    def train(params, trial):
        assert trial.id < 0
        trial.report(0.5, 1)
        if trial.id == -1:
            raise RuntimeError("diverged")
        return Outcome(value(params), constraints=[params["x"] - 0.5], attributes={"epochs": 3})

    begun(url, tmp_path)
    work(train, url, "shared", n_trials=3, **QUICK)
    with pytest.warns(match="diverged"):
        failed, *others = lead(url, tmp_path, 3)
    assert (failed.status, failed.reason) == (Status.FAILED, "RuntimeError: diverged")
    for trial in others:
        assert trial.constraints == (trial.params["x"] - 0.5,)
        assert (trial.attributes["epochs"], dict(trial.reports)) == (3, {1: 0.5})


def dead(url, folder, **settings):
    """A trial that a worker has proposed, and died with."""
    worker = Worker(value, url, "shared", 0.05, 3, 0.01, 0.01)
    assert worker.connect(None)
    found = None
    while found is None:
        assert worker.pop() is None
        found = worker.propose()
        time.sleep(0.01)
    return found


def test_a_trial_whose_worker_died_waits_again_for_a_worker_of_the_next_leader(url, tmp_path):
    begun(url, tmp_path)
    found = dead(url, tmp_path)
    trials = lead(url, tmp_path, 3)
    assert trials[0].params == found.system_attrs[TRIAL]["params"]
    assert stored(url)[0].system_attrs["deepbore:lost"] == 1
    check(url, tmp_path, trials)


def test_a_trial_whose_worker_died_before_it_proposed_is_none(url, tmp_path):
    begun(url, tmp_path)
    storage = open_storage(url)
    mark = {"worker": "gone", "every": 0.01, "retries": 3, "count": 0}
    unborn = optuna.trial.create_trial(state=TrialState.RUNNING, system_attrs={BEAT: mark})
    storage.create_new_trial(storage.get_study_id_from_name("shared"), unborn)
    trials = lead(url, tmp_path, 4)
    assert len(trials) == 4
    assert stored(url)[0].state == TrialState.FAIL
    check(url, tmp_path, trials)


@pytest.mark.parametrize("event", ["enqueued", "asked", "told"])
def test_a_leader_that_dies_while_it_takes_trials_in_is_followed_by_one_that_goes_on(url, tmp_path, event):
    begun(url, tmp_path)
    work(value, url, "shared", n_trials=2, **QUICK)
    lead(url, tmp_path, 2)
    path = tmp_path / "run.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    last = max(place for place, line in enumerate(lines) if json.loads(line)["event"] == event)
    path.write_text("".join(lines[: last + 1]))
    for snapshot in tmp_path.glob("run.*"):
        if snapshot != path and snapshot.suffix != ".lock":
            snapshot.unlink()
    trials = lead(url, tmp_path, 4)
    assert len(trials) == 4
    check(url, tmp_path, trials)


def test_equal_configurations_are_as_many_trials(url, tmp_path):
    space = SearchSpace({"n": Integer(1, 2)})
    begun(url, tmp_path, space=space)
    work(lambda params: params["n"], url, "shared", n_trials=5, **QUICK)  # of two configurations
    with closing(study_of(tmp_path, space=space)) as study:
        Leader(url, "shared", study, **BRIEF).run(5, progress=False)
        trials = list(study.trials)
    assert len(trials) == 5
    check(url, tmp_path, trials)


def test_workers_of_a_study_with_a_budget_wait_and_say_so(url, tmp_path, caplog):
    begun(url, tmp_path, budget=Budget("epochs", 1, 9))
    assert work(value, url, "shared", **QUICK, patience=0.5) == 0
    (said,) = [record.getMessage() for record in caplog.records if "no leader" in record.getMessage()]
    assert "budget" in said


def test_workers_of_a_leader_that_gives_no_signs_wait(url, tmp_path):
    begun(url, tmp_path)
    storage = open_storage(url)
    storage.set_study_user_attr(storage.get_study_id_from_name("shared"), LEADER, None)  # as before version 0.3
    assert work(value, url, "shared", **QUICK, patience=0.5) == 0


def test_two_workers_propose_different_configurations(url, tmp_path):
    begun(url, tmp_path, n_trials=10)
    threads = [threading.Thread(target=work, args=[value, url, "shared"], kwargs=QUICK | {"patience": 5}) for _ in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    there = [repr(trial.system_attrs[TRIAL]["params"]) for trial in stored(url)]
    assert 10 <= len(there) <= 11  # both may have begun the last one
    assert len(set(there)) == len(there)


def test_a_proposal_that_fails_leaves_no_trial_open(url, tmp_path, monkeypatch):
    begun(url, tmp_path)
    storage = open_storage(url)
    study_id = storage.get_study_id_from_name("shared")
    sampled = Sampled(storage, "shared", storage.get_study_user_attrs(study_id)[ALONE]["space"])
    proposals = Proposals(sampled, study_id)
    monkeypatch.setattr(sampled.study.sampler, "sample_relative", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        proposals.propose({"worker": "me", "every": 1, "retries": 3}, None)
    (trial,) = stored(url)
    assert trial.state == TrialState.FAIL


def test_settings_outside_their_range_are_refused(url, tmp_path):
    with pytest.raises(SettingError, match="propose_after"):
        work(value, url, "shared", propose_after=0)
    with closing(study_of(tmp_path)) as study, pytest.raises(SettingError, match="heartbeat"):
        StorageEvaluator(url, "shared", study, heartbeat=0)
