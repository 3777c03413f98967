"""Workers of a shared study, with a queue that this file fills: no leader, no torch."""

import sqlite3
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import optuna
import pytest
from optuna.trial import TrialState
from sqlalchemy import event

from deepbore.data.events import outcome_of
from deepbore.data.outcome import Outcome
from deepbore.data.trial import Trial
from deepbore.errors import EvaluatorError, MissingPackage, ObjectiveError, SettingError, TrialPruned
from deepbore.worker import shared
from deepbore.worker.shared import DONE, OUTCOME, QUEUE, STUDY, TRIAL, Worker, open_storage, task_of, trial_of, work

pytestmark = [pytest.mark.timeout(60), pytest.mark.usefixtures("quiet_optuna")]
QUICK = {"heartbeat": 0.1, "poll": 0.01}


class Queue:
    """A study in SQLite as a leader makes it."""

    def __init__(self, folder, names=("x",)):
        self.url = f"sqlite:///{folder}/storage.db"
        self.storage = open_storage(self.url, creates=True)
        self.study = optuna.create_study(storage=self.storage, study_name="shared")
        self.study.set_user_attr(STUDY, {"run": "1", "parameters": list(names), "prunes": True})
        self.study.set_user_attr(DONE, True)

    def add(self, *trials):
        for trial in trials:
            self.study.add_trial(
                optuna.trial.create_trial(state=TrialState.WAITING, system_attrs={TRIAL: task_of(trial)})
            )

    def work(self, objective, **settings):
        return work(objective, self.url, "shared", **QUICK | settings)

    @property
    def states(self):
        return [trial.state.name for trial in self.study.get_trials()]


@pytest.fixture
def queue(tmp_path):
    return Queue(tmp_path)


def test_every_trial_is_evaluated_and_told(queue):
    queue.add(*(Trial(row, {"x": row / 4}) for row in range(4)))
    assert queue.work(lambda params: params["x"] ** 2) == 4
    assert [trial.value for trial in queue.study.trials] == [0, 1 / 16, 1 / 4, 9 / 16]
    assert queue.work(lambda params: params["x"], patience=0.1) == 0  # and none is left


def test_a_worker_needs_no_torch(queue):
    queue.add(Trial(0, {"x": 0.5}))
    program = f"""
import sys
from deepbore.worker.shared import work
done = work(lambda params: params["x"], {queue.url!r}, "shared", propose_after=60)
print(done, *{{"torch", "lightning", "botorch", "scipy"}} & set(sys.modules))
"""
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert done.stdout.split() == ["1"]


def test_a_worker_that_may_propose_needs_torch_to_be_there(queue, monkeypatch):
    monkeypatch.setattr("deepbore.worker.shared.find_spec", lambda _name: None)
    with pytest.raises(MissingPackage, match="propose_after"):
        queue.work(abs, propose_after=60)


def test_the_outcome_comes_whole(queue):
    given = Outcome([1.5], constraints=[-1.0, 2.0], noise=0.1, attributes={"epochs": 7, "loss": float("nan")})
    queue.add(Trial(0, {"x": 0.5}))
    queue.work(lambda params: given)
    (trial,) = queue.study.trials
    assert outcome_of(trial.system_attrs[OUTCOME]) == given
    assert (trial.value, trial.system_attrs["constraints"]) == (1.5, [-1.0, 2.0])


def test_a_failure_is_told_with_its_reason(queue):
    queue.add(Trial(0, {"x": 0.5}))
    queue.work(lambda params: 1 / 0)
    (trial,) = queue.study.trials
    assert trial.state == TrialState.FAIL
    assert "ZeroDivisionError" in trial.user_attrs["reason"]
    assert "1 / 0" in outcome_of(trial.system_attrs[OUTCOME]).attributes["traceback"]


def test_an_objective_may_have_the_trial_and_report(queue):
    def train(params, trial):
        for step in range(3):
            trial.report(params["x"] + step, step)
        return trial.budget

    earlier = Trial(0, {"x": 0.5}, budget=1, attributes={"checkpoint": "0.pt"})
    queue.add(Trial(1, {"x": 0.5}, budget=3, resume_from=earlier))
    queue.work(train)
    (trial,) = queue.study.trials
    assert (trial.value, trial.intermediate_values) == (3, {0: 0.5, 1: 1.5, 2: 2.5})
    assert outcome_of(trial.system_attrs[OUTCOME]).reports == trial.intermediate_values
    assert trial_of(trial.system_attrs[TRIAL]).resume_from.attributes == {"checkpoint": "0.pt"}


def test_a_trial_ends_when_the_leader_says_so(queue):
    def train(params, trial):
        for step in range(5):
            trial.report(step, step)
            if step == 2:  # the leader's decision
                (found,) = queue.study.get_trials()
                queue.storage.set_trial_system_attr(found._trial_id, "deepbore:prune", True)
            if trial.should_prune():
                raise TrialPruned
        return 0

    queue.add(Trial(0, {"x": 0.5}))
    queue.work(train)
    (trial,) = queue.study.trials
    assert (trial.state, trial.intermediate_values) == (TrialState.PRUNED, {0: 0, 1: 1, 2: 2})
    assert outcome_of(trial.system_attrs[OUTCOME]).reports == {0: 0, 1: 1, 2: 2}


@pytest.mark.parametrize(
    ("objective", "words"),
    [
        (lambda params: not_defined, "not_defined"),  # noqa: F821
        (lambda params: params["y"], "'y', which is inactive"),
        (lambda params: None, "returned None"),
    ],
)
def test_a_mistake_in_the_program_ends_the_worker_and_not_the_trial(tmp_path, objective, words):
    queue = Queue(tmp_path, names=("x", "y"))
    queue.add(Trial(0, {"x": 0.5}))
    with pytest.raises(ObjectiveError, match=words):
        queue.work(objective)
    assert queue.states == ["WAITING"]
    assert queue.work(lambda params: params["x"]) == 1


def test_an_interrupted_worker_gives_its_trial_back(queue):
    def interrupted(params):
        raise KeyboardInterrupt

    queue.add(Trial(0, {"x": 0.5}))
    with pytest.raises(KeyboardInterrupt):
        queue.work(interrupted)
    assert queue.states == ["WAITING"]


def test_a_worker_that_is_told_to_end_gives_its_trial_back(queue, tmp_path):
    program = f"""
import pathlib, time
from deepbore.worker.shared import work

def train(params):
    pathlib.Path({str(tmp_path / "begun")!r}).touch()
    try:
        time.sleep(60)
    except KeyboardInterrupt:  # as Lightning's Trainer does
        return 0.5

work(train, {queue.url!r}, "shared")
"""
    queue.add(Trial(0, {"x": 0.5}))
    with subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.DEVNULL) as process:
        while not (tmp_path / "begun").exists():
            time.sleep(0.01)
        process.terminate()
        assert process.wait(30) != 0
    assert queue.states == ["WAITING"]


@pytest.mark.parametrize("says", [[], range(1, 41), range(11, 60)], ids=["nothing", "all", "old"])
def test_no_two_workers_have_the_same_trial(queue, says):
    queue.add(*(Trial(row, {"x": row}) for row in range(40)))
    queue.study.set_user_attr(QUEUE, list(says))

    def take(_):
        worker = Worker(abs, queue.url, "shared", 60, 3, 0.01)
        assert worker.connect(None)
        found = iter(worker.pop, None)
        return [trial.number for trial in found]

    with ThreadPoolExecutor(4) as threads:
        taken = [number for numbers in threads.map(take, range(4)) for number in numbers]
    assert sorted(taken) == list(range(40))


def test_what_a_worker_reads_does_not_grow_with_the_queue(queue):
    queue.add(*(Trial(row, {"x": row}) for row in range(40)))
    queue.study.set_user_attr(QUEUE, [trial._trial_id for trial in queue.study.get_trials()])
    read = []
    event.listen(queue.storage.engine, "after_cursor_execute", lambda *call: read.append(call[2]))
    worker = Worker(abs, queue.storage, "shared", 60, 3, 0.01)
    assert worker.connect(None)
    found = worker.pop()
    assert found.state == TrialState.RUNNING
    assert len(read) < 20
    assert not any("state IN" in statement for statement in read)  # all that wait


def test_of_two_workers_with_a_trial_the_first_one_counts(queue):
    queue.add(Trial(0, {"x": 0.5}))
    second_is_done = threading.Event()

    def slow(params):
        identity = queue.study.get_trials()[0]._trial_id
        queue.storage.set_trial_state_values(identity, TrialState.WAITING)  # as a leader that misses its beats
        queue.work(lambda params: 2)  # as another worker
        second_is_done.set()
        return 1

    assert queue.work(slow) == 1
    assert second_is_done.is_set()
    assert [trial.value for trial in queue.study.trials] == [2]


def test_a_worker_beats_while_it_evaluates(queue):
    seen = []

    def watched(params):
        for _ in range(100):
            mark = queue.study.get_trials()[0].system_attrs.get("deepbore:beat")
            if mark and mark["count"] not in seen:
                seen.append(mark["count"])
            if len(seen) > 2:
                return 0.0
            time.sleep(0.05)
        return 1.0

    queue.add(Trial(0, {"x": 0.5}))
    queue.work(watched)
    assert queue.study.best_value == 0


def test_a_worker_leaves_alone_what_no_leader_has_looked_at(queue):
    queue.study.enqueue_trial({"x": 0.5})
    assert queue.work(lambda params: 1, patience=0.1) == 0
    assert queue.states == ["WAITING"]


def test_a_worker_waits_for_storage_and_leader_and_trials(tmp_path, queue):
    missing = f"sqlite:///{tmp_path}/missing.db"
    assert work(abs, missing, "shared", patience=0.2, **QUICK) == 0
    assert work(abs, queue.url, "another", patience=0.1, **QUICK) == 0
    queue.study.set_user_attr(DONE, False)
    assert queue.work(abs, patience=0.1) == 0


def test_a_worker_that_starts_before_the_leader_of_a_study_that_was_done_waits_for_it(queue):
    def continued():
        queue.study.set_user_attr(DONE, False)
        queue.add(Trial(0, {"x": 0.5}))
        while queue.states != ["COMPLETE"]:
            time.sleep(0.01)
        queue.study.set_user_attr(DONE, True)

    leader = threading.Timer(0.3, continued)
    leader.start()
    assert queue.work(lambda params: params["x"]) == 1
    leader.join()


@pytest.mark.parametrize(
    "settings", [{"heartbeat": 0}, {"retries": -1}, {"poll": None}, {"n_trials": 0}, {"storage": "study.db"}]
)
def test_settings_outside_their_range_are_refused(queue, settings):
    given = {"storage": queue.url, "study": "shared", **settings}
    with pytest.raises(SettingError):
        work(abs, **given)


def test_patience_begins_when_a_worker_is_connected(queue, monkeypatch):
    queue.add(Trial(0, {"x": 0.5}))
    real, calls = shared.open_storage, []

    def slowly(place):
        calls.append(place)
        if len(calls) < 4:
            raise ConnectionError("not yet")
        time.sleep(0.6)
        return real(place)

    monkeypatch.setattr(shared, "open_storage", slowly)
    assert queue.work(lambda params: params["x"], patience=0.5) == 1


@contextmanager
def locked(queue, seconds):
    """While this runs the database is locked for so many seconds by another program."""
    other = sqlite3.connect(queue.url.removeprefix("sqlite:///"), isolation_level=None, check_same_thread=False)
    other.execute("BEGIN EXCLUSIVE")

    def unlock():
        time.sleep(seconds)
        other.execute("ROLLBACK")
        other.close()

    thread = threading.Thread(target=unlock)
    thread.start()
    yield
    thread.join()


@pytest.mark.parametrize(
    ("waits", "seconds"), [(0.2, 2.0), pytest.param(None, 65.0, marks=[pytest.mark.slow, pytest.mark.timeout(200)])]
)
def test_a_worker_outlives_a_locked_database(queue, waits, seconds, monkeypatch):
    """Longer than SQLite itself waits, `LOCKED`; while a trial is taken, and while its outcome is told."""
    if waits is not None:
        monkeypatch.setattr(shared, "LOCKED", waits)
    queue.add(*(Trial(row, {"x": row}) for row in range(3)))
    taken = []

    def objective(params):
        if not taken:
            taken.append(locked(queue, seconds))
            taken[0].__enter__()
        return params["x"]

    with locked(queue, seconds):
        assert queue.work(objective) == 3
    taken[0].__exit__(None, None, None)
    assert queue.states == ["COMPLETE"] * 3
    assert [trial.value for trial in queue.study.get_trials()] == [0, 1, 2]


DEEP = "[" * 100_000 + "]" * 100_000


@pytest.mark.parametrize("written", [DEEP, '{"a":' * 50_000, "no JSON"], ids=["deep", "deep and cut", "no JSON"])
@pytest.mark.parametrize("table", ["study_user_attributes", "trial_system_attributes", "trial_user_attributes"])
def test_what_can_not_be_read_in_the_storage_is_refused(queue, table, written):
    queue.add(Trial(0, {"x": 0.5}))
    owner = "study_id" if table.startswith("study") else "trial_id"
    with sqlite3.connect(queue.url.removeprefix("sqlite:///")) as other:
        other.execute(f"INSERT INTO {table}({owner}, key, value_json) VALUES (1, 'note', ?)", (written,))
    other.close()
    with pytest.raises(EvaluatorError, match=r"holds what can't be read.*Remove that attribute"):
        queue.work(lambda params: params["x"])
