"""A leader and its workers, in threads; as processes that are killed they run in tests/scripts/test_shared_kills.py."""

import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager

import optuna
import pytest
from optuna.trial import TrialState
from sqlalchemy import event

from deepbore import Budget, Categorical, Integer, MedianPruner, Real, SearchSpace, Study
from deepbore.data.notes import running_path, running_reports
from deepbore.data.outcome import Outcome
from deepbore.data.trial import Status
from deepbore.errors import SettingError, StudyLed, TrialPruned
from deepbore.evaluators.base import EvaluationWarning
from deepbore.integrations.shared import Leader, StorageEvaluator
from deepbore.worker.shared import BEAT, DONE, TRIAL, Worker, open_storage, work

SPACE = SearchSpace({"x": Real(0, 1), "k": Integer(1, 64, log=True), "kind": Categorical(["a", "b"])})
pytestmark = [pytest.mark.timeout(60), pytest.mark.usefixtures("quiet_optuna")]  # a leader waits for workers
QUICK = {"heartbeat": 10, "poll": 0.01}


def value(params):
    return (params["x"] - 0.3) ** 2 + params["k"] / 100


def leader(url, folder, name="shared", space=SPACE, poll=0.02, ahead=0.05, **options):
    study = Study(space, **{"seed": 0, "journal": folder / "run.jsonl", "if_exists": "load"} | options)
    return Leader(url, name, study, ahead=ahead, poll=poll)


@contextmanager
def workers(url, objective=value, n=2, **settings):
    done = []
    threads = [
        threading.Thread(target=lambda: done.append(work(objective, url, "shared", patience=30, **QUICK | settings)))
        for _ in range(n)
    ]
    for thread in threads:
        thread.start()
    yield done
    for thread in threads:
        thread.join()


def stored(url):
    return optuna.load_study(study_name="shared", storage=open_storage(url)).trials


def test_workers_evaluate_what_the_leader_asks_for(url, tmp_path):
    with workers(url) as done:
        result = leader(url, tmp_path).run(13)
    assert sum(done) == 13
    study = result.study
    assert [trial.value for trial in study.trials] == [value(trial.params) for trial in study.trials]
    study.close()
    kept = {trial.system_attrs[TRIAL]["id"]: trial for trial in stored(url)}
    assert len(kept) == 13
    for trial in Study.load(tmp_path / "run.jsonl").trials:
        assert (kept[trial.id].value, kept[trial.id].params) == (trial.value, trial.params)


def test_a_leader_continues_what_another_one_has_begun(url, tmp_path):
    first = leader(url, tmp_path)
    with workers(url) as done:
        first.run(6)
    assert sum(done) == 6
    first.study.close()
    with workers(url):
        result = leader(url, tmp_path).run(12)
    assert (len(result.values), len(stored(url))) == (12, 12)


def test_a_trial_that_is_lost_with_its_worker_waits_again_and_has_not_failed(url, tmp_path):
    lost = Worker(value, url, "shared", 0.1, 3, 0.01)

    def dies():
        assert lost.connect(None)
        while (found := lost.pop()) is None:
            time.sleep(0.01)
        lost.storage.set_trial_system_attr(found._trial_id, BEAT, {**lost.mark, "count": 0})

    thread = threading.Thread(target=dies)
    thread.start()

    def begin_later(params):
        thread.join()
        return value(params)

    with workers(url, begin_later, n=1):
        result = leader(url, tmp_path).run(5)
    assert {trial.status for trial in result.study.trials} == {Status.COMPLETE}
    assert sorted(trial.system_attrs.get("deepbore:lost", 0) for trial in stored(url)) == [0, 0, 0, 0, 1]
    assert len(stored(url)) == 5


def test_a_trial_that_kills_its_workers_has_failed_in_the_end(url, tmp_path):
    def kills(study_has_ended):
        worker = Worker(value, url, "shared", 0.05, 1, 0.01)
        assert worker.connect(None)
        taken = set()
        while not study_has_ended.is_set():
            found = worker.pop()
            if found is not None and found.number in {0, *taken}:
                taken.add(found.number)
                worker.storage.set_trial_system_attr(found._trial_id, BEAT, {**worker.mark, "count": time.time()})
            elif found is not None:
                worker.evaluate(found)
            time.sleep(0.01)

    ended = threading.Event()
    thread = threading.Thread(target=kills, args=[ended])
    thread.start()
    with pytest.warns(EvaluationWarning, match="2 workers died"):
        result = leader(url, tmp_path).run(3)
    ended.set()
    thread.join()
    assert sorted(trial.status.name for trial in result.study.trials) == ["COMPLETE", "COMPLETE", "FAILED"]


def test_what_users_enqueue_in_the_storage_is_tried_next(url, tmp_path):
    chosen = {"x": 0.25, "k": 8, "kind": "b"}
    lead = leader(url, tmp_path)
    enqueued = optuna.create_study(storage=open_storage(url, creates=True), study_name="shared")
    enqueued.enqueue_trial(chosen)
    enqueued.enqueue_trial(chosen)  # twice, as a value that is noisy
    optuna.load_study(storage=open_storage(url), study_name="shared").enqueue_trial({"x": 7, "k": 8, "kind": "b"})
    with workers(url):
        result = lead.run(6)
    assert [trial.params for trial in result.study.trials].count(chosen) == 2
    assert len(stored(url)) == 7  # the trials of the user, and one that was refused
    assert [trial.value for trial in stored(url)[:2]] == [value(chosen)] * 2
    assert stored(url)[2].state == TrialState.FAIL
    assert "refused" in stored(url)[2].user_attrs["reason"]


def test_a_budget_is_passed_on_with_what_is_continued(url, tmp_path):
    def train(params, trial):
        begun = trial.resume_from.attributes["epochs"] if trial.resume_from else 0
        return Outcome(value(params) + 1 / trial.budget, attributes={"epochs": trial.budget, "begun": begun})

    with workers(url, train):
        result = leader(url, tmp_path, budget=Budget("epochs", 1, 9)).run(16)
    promoted = [trial for trial in result.study.trials if trial.budget > 1]
    assert promoted
    assert all(trial.attributes["begun"] == trial.budget / 3 for trial in promoted)


# regression: steps that are not whole, as of several validations an epoch, were not seen before the trial had ended
@pytest.mark.parametrize("unit", [1, 0.0625])
def test_a_pruner_ends_trials_of_workers(url, tmp_path, unit):
    def train(params, trial):
        for step in range(15):
            trial.report(params["x"], step * unit + unit)
            if trial.should_prune():
                raise TrialPruned
            time.sleep(0.05)
        return params["x"]

    space = SearchSpace({"x": Real(0, 1)})
    with workers(url, train):
        result = leader(url, tmp_path, space=space, n_initial=20, pruner=MedianPruner(startup_trials=2)).run(6)
    pruned = [trial for trial in result.study.trials if trial.status is Status.PRUNED]
    assert pruned
    assert all(0 < len(trial.reports) < 15 for trial in pruned)
    assert {trial.state for trial in stored(url)} == {TrialState.COMPLETE, TrialState.PRUNED}


def test_several_objectives_and_constraints(url, tmp_path):
    def both(params):
        return Outcome([params["x"], -params["x"]], constraints=[params["x"] - 0.9])

    with workers(url, both):
        result = leader(url, tmp_path, directions=["minimize", "maximize"]).run(5)
    assert all(trial.constraints == (trial.params["x"] - 0.9,) for trial in result.study.trials)
    assert stored(url)[3].values == list(result.study.trials[3].values)


def test_more_trials_wait_the_more_workers_there_are(url, tmp_path):
    together = threading.Barrier(5, timeout=40)

    def meet(params):
        together.wait()  # until five are here
        return value(params)

    with workers(url, meet, n=5):
        result = leader(url, tmp_path, n_initial=10).run(10)
    assert len(result.values) == 10
    assert {trial.status for trial in result.study.trials} == {Status.COMPLETE}


def test_a_leader_without_trials_to_give_does_not_keep_the_storage_busy(url, tmp_path):
    reads = []

    def watched(params, trial):
        if trial.id < 3:
            return value(params)
        before = len(reads)
        time.sleep(1)
        reads.append(len(reads) - before)
        return value(params)

    storage = open_storage(url, creates=True)
    event.listen(storage.engine, "begin", reads.append)
    with workers(url, watched, n=1):
        leader(storage, tmp_path, poll=0.2).run(4)  # the last one lasts
    (within,) = (each for each in reads if isinstance(each, int))
    assert within < 15  # five looks


def test_a_leader_that_ends_tells_the_workers_and_a_later_one_has_them_wait(url, tmp_path):
    with workers(url):
        leader(url, tmp_path).run(3)
    assert optuna.load_study(storage=open_storage(url), study_name="shared").user_attrs[DONE]


def test_one_process_leads(url, tmp_path):
    with workers(url, n=1):
        first = leader(url, tmp_path)
        first.run(2)
    held = StorageEvaluator(url, "shared", first.study, heartbeat=0.2)
    with pytest.raises(StudyLed, match="is led by"):  # though this process may open the journal again
        leader(url, tmp_path).run(3)
    held.close()


def test_workers_behind_optunas_proxy(url, tmp_path):
    pytest.importorskip("grpc")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    open_storage(url, creates=True)
    program = "import sys; from optuna.storages import *; from deepbore.worker.shared import open_storage; "
    program += "run_grpc_proxy_server(open_storage(sys.argv[1]), host='127.0.0.1', port=int(sys.argv[2]))"
    with subprocess.Popen([sys.executable, "-W", "ignore", "-c", program, url, str(port)]) as proxy:
        with workers(f"grpc://127.0.0.1:{port}") as done:
            result = leader(url, tmp_path).run(5)
        proxy.kill()
    assert sum(done) == 5
    assert [trial.value for trial in result.study.trials] == [value(trial.params) for trial in result.study.trials]


def test_a_study_of_another_run_is_refused(url, tmp_path):
    with workers(url, n=1):
        leader(url, tmp_path).run(2)
    (tmp_path / "other").mkdir()
    with pytest.raises(SettingError, match="another run"):
        leader(url, tmp_path / "other").run(2)


def test_settings_that_can_not_be_are_refused(url, tmp_path):
    with pytest.raises(SettingError, match="journal"):
        Leader(url, "shared", Study(SPACE))
    for settings in ({"ahead": 0}, {"ahead": 1.5}, {"poll": 0}):
        with pytest.raises(SettingError):
            leader(url, tmp_path, **settings).run(2)


def test_what_running_trials_of_workers_have_reported_is_beside_the_journal(url, tmp_path, monkeypatch):
    monkeypatch.setattr("deepbore.data.notes.EVERY", 0.0)
    journal = tmp_path / "run.jsonl"

    def train(params, trial):
        trial.report(0.5, 1)
        trial.report(0.25, 2)
        ends = time.monotonic() + 30
        while running_reports(journal, trial.id) != {1: 0.5, 2: 0.25} and time.monotonic() < ends:
            time.sleep(0.01)
        return float(time.monotonic() < ends)

    with workers(url, train, n=1):
        result = leader(url, tmp_path).run(2)
    assert result.values.tolist() == [1, 1]
    assert not running_path(journal, 0).exists()
