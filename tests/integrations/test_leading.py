"""One leader at a time, trials by their configuration, and attributes that any program may have written."""

import math
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from contextlib import closing

import optuna
import pytest
from optuna.storages import InMemoryStorage, JournalStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import TrialState

from deepbore import Real, Study
from deepbore.data.trial import Status
from deepbore.errors import DeepBoreError, SettingError, StudyLed
from deepbore.integrations import leading
from deepbore.integrations.leading import CLAIM, TERM, Claim, Lead
from deepbore.integrations.shared import Leader, StorageEvaluator
from deepbore.study.study import reseed
from deepbore.worker.shared import (
    ALONE,
    BEAT,
    DONE,
    LEADER,
    LOST,
    OUTCOME,
    PRUNE,
    QUEUE,
    REPORTS,
    STUDY,
    TRIAL,
    open_storage,
    work,
)
from harness import postgres

pytestmark = [pytest.mark.timeout(60), pytest.mark.usefixtures("quiet_optuna")]
SPACE = {"x": Real(0, 1)}
QUICK = {"poll": 0.02, "heartbeat": 0.2}
KINDS = ["sqlite", "memory", "journal", pytest.param("postgresql", marks=pytest.mark.slow)]


@pytest.fixture(params=KINDS)
def storage(request, tmp_path):
    """A storage of each kind that leaders and workers can share in one process."""
    if request.param == "postgresql":
        if why := postgres.missing():
            pytest.skip(why)
        with postgres.server() as url:
            yield open_storage(url, creates=True)
    elif request.param == "journal":
        yield JournalStorage(JournalFileBackend(str(tmp_path / "storage.log")))
    else:
        yield (
            InMemoryStorage() if request.param == "memory" else open_storage(f"sqlite:///{tmp_path}/s.db", creates=True)
        )


def study_of(folder, name="run", seed=0, **options):
    return Study(SPACE, seed=seed, journal=folder / f"{name}.jsonl", strategy="random", if_exists="load", **options)


def copied(folder, name, seed):
    """A study of the same run whose journal is a copy, and which proposes otherwise."""
    study_of(folder).close()  # which is there before it leads
    shutil.copy(folder / "run.jsonl", folder / f"{name}.jsonl")
    study = Study.load(folder / f"{name}.jsonl")
    reseed(study, seed)
    return study


def working(storage, objective=lambda params: params["x"], **settings):
    options = {"poll": 0.01, "patience": 20, "heartbeat": 10} | settings
    thread = threading.Thread(target=work, args=(objective, storage, "s"), kwargs=options, daemon=True)
    thread.start()
    return thread


def until(holds):
    while not holds():
        time.sleep(0.05)


def wrong(study):
    """Trials with the value of another configuration."""
    return [trial for trial in study.trials if trial.value is not None and trial.value != trial.params["x"]]


# --- one leads -------------------------------------------------------------------------------------------------------


def test_a_second_leader_is_told_who_leads_and_since_when(storage, tmp_path):
    second, first = copied(tmp_path, "copy", 7), study_of(tmp_path)
    leads = StorageEvaluator(storage, "s", first, **QUICK)
    with pytest.raises(StudyLed, match=rf"is led by .*:{os.getpid()}:.* \(since 20\d\d-\d\d-\d\d .* UTC"):
        StorageEvaluator(storage, "s", second, **QUICK)
    leads.close()
    StorageEvaluator(storage, "s", second, **QUICK).close()  # which nobody leads any more
    first.close()
    second.close()


def test_of_leaders_that_begin_at_once_one_leads(storage, tmp_path):
    studies = [copied(tmp_path, f"copy{seed}", seed) for seed in range(3)]
    gate, led, refused = threading.Barrier(3), [], []

    def begin(study):
        gate.wait()
        try:
            led.append(StorageEvaluator(storage, "s", study, **QUICK))
        except StudyLed as error:
            refused.append(error)

    threads = [threading.Thread(target=begin, args=(study,)) for study in studies]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(led), len(refused)) == (1, 2)
    led[0].close()


def test_a_run_that_has_ended_or_failed_lets_another_lead(tmp_path):
    storage = InMemoryStorage()
    with closing(study_of(tmp_path)) as study:
        with pytest.raises(SettingError, match="timeout"):
            Leader(storage, "s", study, **QUICK).run(3, timeout=-1)
        StorageEvaluator(storage, "s", study, heartbeat=1000)  # which nobody keeps
        working(storage)
        began = time.monotonic()
        Leader(storage, "s", study, **QUICK).run(3)
    assert time.monotonic() - began < 20  # waited for no sign of life
    claims = storage.get_study_system_attrs(storage.get_study_id_from_name("s"))
    assert {told for key, told in claims.items() if key.startswith(CLAIM)} == {None}


def test_an_evaluator_leads_again_in_its_next_run(tmp_path):
    storage = InMemoryStorage()
    with closing(study_of(tmp_path)) as study:
        evaluator = StorageEvaluator(storage, "s", study, **QUICK)
        working(storage)
        study.optimize(evaluator, 2)
        study.optimize(evaluator, 2)
        assert (len(study.trials), wrong(study)) == (4, [])
        StorageEvaluator(storage, "s", study, **QUICK).close()


def test_a_leader_that_slept_learns_that_another_one_leads(tmp_path, monkeypatch):
    storage = InMemoryStorage()
    second, first = copied(tmp_path, "copy", 7), study_of(tmp_path)
    sleeps = StorageEvaluator(storage, "s", first, **QUICK)
    sleeps._right._beats.end()  # as with a machine that was suspended
    taken = StorageEvaluator(storage, "s", second, **QUICK)
    working(storage)
    with pytest.raises(StudyLed, match="has taken over"):
        first.optimize(sleeps, 3)
    second.optimize(taken, 3)
    assert (len(second.trials), wrong(second)) == (3, [])


def test_a_claim_whose_process_was_killed_waits_for_nobody(tmp_path):
    url = f"sqlite:///{tmp_path}/s.db"
    program = (
        "import sys, time; from pathlib import Path; from deepbore import Real, Study; "
        "from deepbore.integrations.shared import StorageEvaluator; "
        "study = Study({'x': Real(0, 1)}, seed=0, journal=sys.argv[2] + '/run.jsonl', strategy='random'); "
        "kept = StorageEvaluator(sys.argv[1], 's', study, heartbeat=1000); print('leads', flush=True); time.sleep(60)"
    )
    leader = subprocess.Popen([sys.executable, "-c", program, url, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert leader.stdout.readline() == "leads\n"
    with pytest.raises(DeepBoreError):  # the journal, or the claim
        StorageEvaluator(url, "s", study_of(tmp_path), **QUICK)
    leader.send_signal(signal.SIGKILL)  # and is not waited for
    deadline = time.monotonic() + 20
    while True:
        try:
            with closing(study_of(tmp_path)) as study:
                if not leading.machine():
                    pytest.skip("this system does not say which process has ended")
                StorageEvaluator(url, "s", study, **QUICK).close()
            break
        except DeepBoreError:  # it takes a moment until its lock is free
            assert time.monotonic() < deadline
            time.sleep(0.05)
    leader.wait()


@pytest.mark.parametrize(
    "told",
    [
        "a text",
        [],
        7,
        {},
        {"every": "often", "leads": True},
        {"every": -1.0},
        {"every": math.inf, "since": 1e30},
        {"machine": leading.machine(), "pid": "1", "started": 5},
        {"since": math.nan, "leader": None},
    ],
)
def test_a_malformed_claim_holds_nobody_up_for_long(told, monkeypatch):
    monkeypatch.setattr(leading, "LEADS", 0.05)
    monkeypatch.setattr(leading.Claim.__dataclass_fields__["every"], "default", 0.05)
    monkeypatch.setattr(leading.Claim, "every", 0.05)
    monkeypatch.setattr(leading.Claim.__init__, "__defaults__", ("nobody", 0.0, 0.05, False, "", 0, ""))
    storage = InMemoryStorage()
    study = optuna.create_study(study_name="s", storage=storage)
    storage.set_study_system_attr(study._study_id, CLAIM + "x", told)
    storage.set_study_system_attr(study._study_id, TERM, told)
    assert str(Claim.of(told))
    lead = Lead(storage, study._study_id, "s", 0.05)
    lead.check()
    lead.release()


def test_process_numbers_are_compared_on_one_machine_only():
    mine = Claim("me", 0.0, 10.0, True, leading.machine(), os.getpid(), leading.begun(os.getpid()))
    assert not mine.is_gone
    if not leading.machine():
        return
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        began = leading.begun(ended.pid)
    gone = Claim("it", 0.0, 10.0, True, leading.machine(), ended.pid, began)
    assert gone.is_gone
    assert not Claim("it", 0.0, 10.0, True, "another machine", ended.pid, began).is_gone
    assert Claim("it", 0.0, 10.0, True, leading.machine(), os.getpid(), "1").is_gone  # its number is another's now


# --- trials by their configuration -----------------------------------------------------------------------------------


def test_a_trial_of_the_storage_is_ours_if_its_configuration_is(storage, tmp_path):
    second, first = copied(tmp_path, "copy", 7), study_of(tmp_path)
    for study in (first, second):
        working(storage)
        Leader(storage, "s", study, **QUICK).run(4)
    assert (len(first.trials), len(second.trials)) == (4, 4)
    assert [each.params for each in first.trials] != [each.params for each in second.trials]
    assert wrong(first) == wrong(second) == []
    first.close()
    second.close()


def test_what_a_crossed_leader_left_waiting_is_not_taken_for_ours(tmp_path):
    storage = InMemoryStorage()
    second, first = copied(tmp_path, "copy", 7), study_of(tmp_path)
    Leader(storage, "s", first, ahead=3, **QUICK).run(4, timeout=0.2)  # and no worker
    assert {trial.state for trial in storage.get_all_trials(0)} == {TrialState.WAITING}
    working(storage)
    Leader(storage, "s", second, **QUICK).run(4)
    assert (len(second.trials), wrong(second)) == (4, [])
    second.close()
    working(storage)
    Leader(storage, "s", first, **QUICK).run(4)
    assert (len(first.trials), wrong(first)) == (4, [])


# --- what waits has a way back ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("ends", ["timeout", "stop"])
def test_a_leader_ends_without_workers_and_its_trials_go_to_the_next(storage, tmp_path, ends):
    study = study_of(tmp_path)
    if ends == "timeout":
        Leader(storage, "s", study, ahead=3, **QUICK).run(6, timeout=0.3)
    else:
        threading.Thread(target=lambda: (until(lambda: study.trials), study.stop()), daemon=True).start()
        Leader(storage, "s", study, ahead=3, **QUICK).run(6)
    left = {trial.id: trial.params for trial in study.trials}
    assert left
    assert {trial.status for trial in study.trials} == {Status.PENDING}
    study.close()
    assert work(lambda params: 0.0, storage, "s", patience=0.1, poll=0.01) == 0  # they are the next leader's
    working(storage)
    with closing(study_of(tmp_path)) as study:
        Leader(storage, "s", study, **QUICK).run(6)
        assert {trial.id: trial.params for trial in study.trials if trial.id in left} == left
        assert (len(study.trials), wrong(study), len(storage.get_all_trials(storage.get_study_id_from_name("s")))) == (
            6,
            [],
            6,
        )


def test_a_leader_that_stops_waits_for_the_trials_that_run(tmp_path):
    storage, running = InMemoryStorage(), threading.Event()

    def slow(params):
        running.set()
        time.sleep(0.5)
        return params["x"]

    thread = working(storage, slow)
    with closing(study_of(tmp_path)) as study:
        threading.Thread(target=lambda: (running.wait(), study.stop()), daemon=True).start()
        Leader(storage, "s", study, ahead=2, **QUICK).run(20)
        assert [trial.value for trial in study.trials if trial.status is Status.COMPLETE] == [
            study.trials[0].params["x"]
        ]
    thread.join()


# --- attributes of strangers -----------------------------------------------------------------------------------------

ODD = [None, "a text", 7, -1, True, [], [None], {}, {"id": 0}, {"every": "x", "worker": 3, "retries": []}]
LINES = [
    {"trial": 0, "value": 1.0},
    {"event": "told", "trial": 0, "value": "nan?"},
    {"event": "told", "trial": 0, "values": [1.0, 2.0]},
    {"event": "told", "trial": 0, "value": 1.0, "constraints": "x"},
    {"event": "told", "trial": 0, "value": 1.0, "reports": {"steps": [2, 1], "values": [1, 1]}},
    {"event": "told", "trial": 0, "value": 1.0, "budget": "three"},
    {"event": "told", "trial": 0, "value": 1.0, "noise": -1},
    {"event": "told", "trial": 0, "value": 1.0, "attributes": 7},
    {"event": "told", "trial": 0, "value": {}},
    {"event": "told", "trial": 5, "value": 1.0},
    {"event": "pruned", "trial": 0, "reports": {"steps": 3}},
    {"event": "failed", "trial": 0, "reason": {"a": 1}},
]


class Stranger:
    """A worker of another program, which writes attributes of its own into the first trial that it takes."""

    def __init__(self, storage, trial=(), study=(), state=TrialState.COMPLETE, values=(1.0,)):
        self.storage, self.trial, self.study, self.state, self.values = storage, dict(trial), dict(study), state, values
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self):
        self._thread.start()

    def __exit__(self, *_):
        self._ended.set()
        self._thread.join()

    def _run(self):
        while not self._ended.wait(0.02):
            try:
                study_id = self.storage.get_study_id_from_name("s")
            except KeyError:
                continue
            for key, told in self.study.items():
                self.storage.set_study_user_attr(study_id, key, told)
            for trial in self.storage.get_all_trials(study_id, states=(TrialState.WAITING,)):
                self._finish(trial)

    def _finish(self, trial):
        try:
            if not self.storage.set_trial_state_values(trial._trial_id, TrialState.RUNNING):
                return
            for key, told in self.trial.items() if trial.number == 0 else ():
                self.storage.set_trial_system_attr(trial._trial_id, key, told)
            state = self.state if trial.number == 0 else TrialState.COMPLETE
            values = None if state != TrialState.COMPLETE else self.values if trial.number == 0 else (1.0,)
            self.storage.set_trial_state_values(trial._trial_id, state, values)
        except optuna.exceptions.UpdateFinishedTrialError:
            return


def led(storage, folder, **options):
    """The study after a leader, and after the next one."""
    for n in (2, 3):
        study = study_of(folder)
        Leader(storage, "s", study, **QUICK).run(n, **options)
        study.close()
    return Study.load(folder / "run.jsonl")


@pytest.mark.parametrize("line", [*ODD, *LINES], ids=repr)
@pytest.mark.filterwarnings("ignore::deepbore.evaluators.base.EvaluationWarning")
def test_a_malformed_outcome_fails_its_own_trial_with_the_reason(line, tmp_path):
    storage = InMemoryStorage()
    with Stranger(storage, trial={OUTCOME: line}):
        study = led(storage, tmp_path)
    assert [trial.status for trial in study.trials] == [Status.FAILED, Status.COMPLETE, Status.COMPLETE]
    assert "in the storage is malformed" in study.trials[0].reason
    study.close()


@pytest.mark.parametrize("values", [(1.0,), (math.inf,), (-math.inf,)])
@pytest.mark.filterwarnings("ignore::deepbore.evaluators.base.EvaluationWarning")
def test_values_of_optunas_own_workers_are_taken_or_fail_their_trial(values, tmp_path):
    storage = InMemoryStorage()
    with Stranger(storage, values=values):
        study = led(storage, tmp_path)
    assert study.trials[0].status is (Status.COMPLETE if values == (1.0,) else Status.FAILED)
    assert len(study.trials) == 3
    study.close()


@pytest.mark.parametrize("told", ODD, ids=repr)
@pytest.mark.parametrize("name", [TRIAL, BEAT, LOST, PRUNE, REPORTS, "fixed_params", "constraints"])
def test_no_attribute_of_a_trial_ends_a_leader(name, told, tmp_path):
    storage = InMemoryStorage()
    with Stranger(storage, trial={name: told}):
        study = led(storage, tmp_path)
    assert [trial.value for trial in study.trials] == [1.0] * 3
    study.close()


@pytest.mark.parametrize("told", ODD, ids=repr)
@pytest.mark.parametrize("name", [STUDY, QUEUE, ALONE, LEADER, DONE])
def test_no_attribute_of_a_study_ends_a_leader_or_a_worker(name, told, tmp_path):
    if name == STUDY and told == {"run": None}:
        pytest.skip("that is another run")
    storage = InMemoryStorage()
    with Stranger(storage, study={name: told}), closing(study_of(tmp_path)) as study:
        for n in (2, 3):
            Leader(storage, "s", study, **QUICK).run(n)
        assert [trial.value for trial in study.trials] == [1.0] * 3
        study_id = storage.get_study_id_from_name("s")
        if name not in (STUDY, DONE):
            storage.set_study_user_attr(study_id, DONE, False)
        work(lambda params: 1.0, storage, "s", patience=0.1, poll=0.01, propose_after=0.01, heartbeat=10)


@pytest.mark.parametrize("told", ODD, ids=repr)
def test_a_malformed_task_fails_its_trial_and_not_the_worker(told, tmp_path):
    storage = InMemoryStorage()
    study = optuna.create_study(study_name="s", storage=storage)
    study.set_user_attr(STUDY, {"run": "1", "parameters": ["x"], "prunes": False})
    study.set_user_attr(DONE, True)
    for task in (told, {"id": 1, "params": {"x": 0.5}}):
        study.add_trial(optuna.trial.create_trial(state=TrialState.WAITING, system_attrs={TRIAL: task}))
    work(lambda params: params["x"], storage, "s", poll=0.01, heartbeat=10)
    assert [trial.state for trial in study.trials] == [TrialState.FAIL, TrialState.COMPLETE]
    assert study.trials[1].value == 0.5


@pytest.mark.parametrize("told", [None, "a text", 7, [], {"x": "a"}, {"y": 1}, {"x": 7}, {"x": None}], ids=repr)
def test_what_is_enqueued_and_no_configuration_fails_by_itself(told, tmp_path):
    storage = InMemoryStorage()
    with closing(study_of(tmp_path)) as study:
        leader = Leader(storage, "s", study, **QUICK)
        made = optuna.create_study(study_name="s", storage=storage)
        made.add_trial(optuna.trial.create_trial(state=TrialState.WAITING, system_attrs={"fixed_params": told}))
        working(storage)
        leader.run(2)
        assert (len(study.trials), wrong(study)) == (2, [])
    assert made.trials[0].state is TrialState.FAIL
    assert "refused" in made.trials[0].user_attrs["reason"]
