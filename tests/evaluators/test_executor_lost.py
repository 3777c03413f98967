"""Workers that are lost, evaluators that are shared, and what an objective may do to its process."""

import asyncio
import os
import signal
import threading
import time
import warnings
from concurrent.futures import BrokenExecutor, CancelledError, Future, ThreadPoolExecutor
from functools import partial

import pytest

import objectives
from deepbore import ExecutorEvaluator, MedianPruner, ProcessEvaluator, Study, minimize
from deepbore.data import notes
from deepbore.errors import EvaluatorError
from deepbore.evaluators.base import EvaluationWarning
from plane import LINE
from processes import fork, is_gone
from workers import PLANE, levels

pytestmark = pytest.mark.usefixtures("no_process_is_left")


class Hangs:
    """Hangs in some calls, until it is released."""

    def __init__(self, calls):
        self.calls, self.count, self.released = calls, 0, threading.Event()

    def __call__(self, params):
        self.count += 1
        if self.count in self.calls:
            self.released.wait(60)
        return params["x"]


def test_a_run_in_batches_goes_on_when_a_worker_of_an_executor_is_lost():
    objective = Hangs({3})
    with ThreadPoolExecutor(4) as threads:
        evaluator = ExecutorEvaluator(objective, threads, timeout=0.3)
        with pytest.warns(EvaluationWarning, match="timed out"):
            result = minimize(evaluator, LINE, 16, seed=0, batch_size=4)
        objective.released.set()
    assert len(result.values) == 16


def test_a_run_whose_workers_are_all_lost_still_ends_in_time():
    objective = Hangs({1, 2})
    study, started = Study(LINE, seed=0), time.monotonic()
    with ThreadPoolExecutor(2) as threads:
        with pytest.warns(RuntimeWarning):
            study.optimize(ExecutorEvaluator(objective, threads, timeout=0.3), 10, timeout=2.0, max_failures=None)
        ended = time.monotonic() - started
        objective.released.set()
    assert ended < 20  # the calls themselves would take a minute
    assert [trial.value for trial in study.trials] == [None, None]


def test_an_evaluator_serves_one_run_at_a_time():
    refused = threading.Event()

    def objective(params):
        refused.wait(30)
        return params["x"]

    with ThreadPoolExecutor(2) as threads:
        evaluator = ExecutorEvaluator(objective, threads)
        one = Study(LINE, seed=1)
        run = threading.Thread(target=one.optimize, args=(evaluator, 3), kwargs={"batch_size": 1})
        run.start()
        while evaluator.run is None:
            time.sleep(0.01)
        with pytest.raises(EvaluatorError, match="another run"):
            Study(LINE, seed=2).optimize(evaluator, 3)
        refused.set()
        run.join()
        assert len(one.trials) == 3
        assert all(trial.value in (None, trial.params["x"]) for trial in one.trials)
        other = Study(LINE, seed=2)
        other.optimize(evaluator, 3)  # the next one may have it
        assert [trial.value for trial in other.trials] == [trial.params["x"] for trial in other.trials]


@pytest.mark.slow
def test_a_worker_that_dies_between_two_trials_costs_neither():
    study = Study(LINE, seed=0)
    pause = [lambda *_: time.sleep(0.5)]  # in which the worker of the trial before dies
    study.optimize(ProcessEvaluator(objectives.dies_later, workers=1), 4, callbacks=pause)
    assert [trial.value for trial in study.trials] == [trial.params["x"] for trial in study.trials]


def test_numeric_libraries_have_a_share_of_the_threads_from_the_first_line_on(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    result = minimize(ProcessEvaluator(objectives.openmp_at_first, workers=2), levels(8), 2)
    assert set(result.values) == {1.0}
    assert "OMP_NUM_THREADS" not in os.environ


def test_a_cancelled_task_is_a_failed_trial():
    async def cancelled():
        asyncio.current_task().cancel()
        await asyncio.sleep(1)

    def objective(params):
        if len(study.trials) == 2:
            asyncio.run(cancelled())
        return params["x"]

    study = Study(PLANE, seed=0)
    with pytest.warns(EvaluationWarning, match="CancelledError"):
        study.optimize(objective, 4)
    assert [trial.value is None for trial in study.trials] == [False, True, False, False]


# --- lost is not failed ----------------------------------------------------------------------------------------------


class KilledWorker(Exception):
    """As dask has it; likewise the next ones."""


class WorkerCrashedError(Exception):
    """As Ray has it."""


class UncompletedJobError(Exception):
    """As submitit has it, for a job that was pre-empted."""


class CommClosedError(OSError):
    """As dask has it, too."""


class FutureCancelledError(CancelledError):
    """As dask has it for a future whose scheduler is gone."""


class Engine(ThreadPoolExecutor):
    """An engine that loses calls.

    Args:
        loses: number of the call, and its trial -> an error, "cancel", or None for a call that is well.
        after: seconds that an error takes.
    """

    def __init__(self, loses, after=0.0):
        super().__init__(4)
        self.loses, self.after, self.lock, self.count = loses, after, threading.Lock(), 0

    def submit(self, function, /, objective, trial, *more):
        with self.lock:
            self.count += 1
            trouble = self.loses(self.count, trial.id)
        if trouble is None:
            return super().submit(function, objective, trial, *more)
        future = Future()
        if trouble == "cancel":
            future.cancel()
            future.set_running_or_notify_cancel()
        elif isinstance(trouble, RuntimeError):
            raise trouble
        elif self.after:
            threading.Timer(self.after, future.set_exception, [trouble]).start()
        else:
            future.set_exception(trouble)
        return future


def x(params):
    return params["x"]


LOSSES = [
    KilledWorker("w1"),
    WorkerCrashedError(),
    UncompletedJobError(),
    CommClosedError(),
    BrokenPipeError(),
    "cancel",
]


@pytest.mark.parametrize("trouble", LOSSES, ids=str)
def test_what_an_engine_loses_is_tried_again_and_no_failure(trouble):
    with Engine(lambda call, _: trouble if call in (1, 4, 5) else None) as engine:
        study = Study(LINE, seed=0, n_initial=20)
        study.optimize(ExecutorEvaluator(x, engine, workers=2), 6)
    assert [trial.status.name for trial in study.trials] == ["COMPLETE"] * 6
    assert engine.count == 9


@pytest.mark.parametrize("trouble", [*LOSSES, FutureCancelledError()], ids=str)
def test_a_run_whose_engine_is_gone_ends_and_leaves_its_trials_pending(trouble, tmp_path):
    with Engine(lambda call, _: trouble if call > 3 else None) as engine:
        study = Study(LINE, seed=0, n_initial=20, journal=tmp_path / "run.jsonl")
        with pytest.raises(EvaluatorError, match=r"has lost trial \d.*stays pending"):
            study.optimize(ExecutorEvaluator(x, engine, workers=2), 12)
    names = [trial.status.name for trial in study.trials]
    assert names.count("COMPLETE") == 3
    assert names.count("PENDING") == len(names) - 3 > 0
    study.close()
    again = Study.load(tmp_path / "run.jsonl")
    again.optimize(x, 0)  # the next run evaluates them first
    assert [trial.value for trial in again.trials] == [trial.params["x"] for trial in study.trials]


def in_a_while(params):
    time.sleep(0.06)
    return params["x"]


def test_a_trial_that_is_lost_each_time_while_others_come_back_has_failed():
    with Engine(lambda _, trial: KilledWorker("of many") if trial == 2 else None, after=0.2) as engine:
        study = Study(LINE, seed=0, n_initial=20)
        with pytest.warns(EvaluationWarning, match=r"trial 2 failed .*KilledWorker: of many \(attempt 4\)"):
            study.optimize(ExecutorEvaluator(in_a_while, engine, workers=2, lost_retries=3, retries=5), 20)
    assert [trial.id for trial in study.trials if trial.value is None] == [2]


def test_a_trial_that_is_cancelled_each_time_has_not_failed():
    with Engine(lambda _, trial: "cancel" if trial == 2 else None) as engine:
        study = Study(LINE, seed=0, n_initial=20)
        with pytest.raises(EvaluatorError, match="CancelledError"):
            study.optimize(ExecutorEvaluator(x, engine, workers=2), 12)
    assert study.trials[2].status.name == "PENDING"


@pytest.mark.parametrize("trouble", [RuntimeError("closed"), BrokenExecutor("gone"), KeyboardInterrupt()], ids=repr)
def test_outcomes_that_come_beside_the_end_of_an_engine_are_kept(trouble):
    others = threading.Event()

    def objective(params):
        others.wait(10)
        return params["x"]

    def loses(call, _):
        if call < 4:
            return None
        others.set()
        time.sleep(0.2)  # until the others are done
        return trouble

    with Engine(loses) as engine:
        study = Study(LINE, seed=0, n_initial=20)
        with pytest.raises((EvaluatorError, KeyboardInterrupt)):
            study.optimize(ExecutorEvaluator(objective, engine, workers=4), 12)
    assert [trial.status.name for trial in study.trials] == ["COMPLETE"] * 3 + ["PENDING"]


def test_an_evaluator_of_an_engine_that_came_back_begins_anew():
    is_gone = True
    with Engine(lambda *_: "cancel" if is_gone else None) as engine:
        evaluator, study = ExecutorEvaluator(x, engine, workers=2), Study(LINE, seed=0, n_initial=20)
        with pytest.raises(EvaluatorError):
            study.optimize(evaluator, 4)
        is_gone = False
        study.optimize(evaluator, 4)
    assert all(trial.value == trial.params["x"] for trial in study.trials)


# --- an engine without workers ---------------------------------------------------------------------------------------


class Deserted(ThreadPoolExecutor):
    """An engine whose calls wait until there are workers, which come when it is told."""

    def __init__(self):
        super().__init__(2)
        self.come = threading.Event()

    def can_run(self):
        return self.come.is_set()

    def submit(self, function, /, *call):
        future = Future()

        def run():
            if future.set_running_or_notify_cancel():
                future.set_result(function(*call))

        threading.Thread(target=lambda: self.come.wait(30) and run(), daemon=True).start()
        return future


@pytest.fixture
def _impatient(monkeypatch):
    monkeypatch.setattr("deepbore.evaluators.executor.LOOK", 0.02)
    monkeypatch.setattr("deepbore.evaluators.executor.GRACE", 0.1)


@pytest.mark.usefixtures("_impatient")
@pytest.mark.parametrize("limits", [{"patience": 0.2}, {"timeout": 0.05}], ids=str)
def test_an_engine_without_workers_ends_the_run_and_no_trial_fails(limits):
    study = Study(LINE, seed=0)
    with warnings.catch_warnings(), Deserted() as engine:
        warnings.filterwarnings("ignore", "the Deserted has had no worker")
        with pytest.raises(EvaluatorError, match="pending"):
            study.optimize(ExecutorEvaluator(x, engine, workers=2, **limits), 4)
    assert {trial.status.name for trial in study.trials} == {"PENDING"}
    study.optimize(x, 0)
    assert [trial.value for trial in study.trials] == [trial.params["x"] for trial in study.trials]


@pytest.mark.usefixtures("_impatient")
def test_an_engine_that_has_no_workers_for_a_while_is_warned_of_once_and_waited_for():
    study, engine = Study(LINE, seed=0), Deserted()
    threading.Timer(0.5, engine.come.set).start()
    with pytest.warns(EvaluationWarning) as warned:
        study.optimize(ExecutorEvaluator(x, engine, workers=2, patience=None), 4)
    (says,) = (str(one.message) for one in warned)
    assert says.startswith("the Deserted has had no worker that could run a trial")
    assert [trial.value for trial in study.trials] == [trial.params["x"] for trial in study.trials]


# --- workers that die ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["fork", "session"])
def test_a_worker_that_dies_is_noticed_though_its_children_live_and_these_end_with_it(tmp_path, how):
    dies = partial(objectives.dies_with_children, folder=tmp_path, how=how)
    study, began = Study(LINE, seed=0), time.monotonic()
    study.optimize(ProcessEvaluator(dies, workers=1, lost_retries=1), 2)
    assert time.monotonic() - began < 100  # the children themselves would sleep for two minutes
    assert [trial.value for trial in study.trials] == [1.0, 1.0]
    assert is_gone(int((tmp_path / "child").read_text()))


def test_children_in_sessions_of_their_own_end_with_a_clean_run_and_with_a_killed_one(tmp_path):
    leaves = partial(objectives.leaves_a_daemon, folder=tmp_path)
    Study(LINE, seed=0).optimize(ProcessEvaluator(leaves, workers=1), 1)
    assert is_gone(int((tmp_path / "daemon").read_text()))
    (tmp_path / "daemon").unlink()

    def is_killed():
        killed = [lambda *_: os.kill(os.getpid(), signal.SIGKILL)]
        Study(LINE, seed=0).optimize(ProcessEvaluator(leaves, workers=1), 2, callbacks=killed)

    run = fork(is_killed)
    assert os.waitstatus_to_exitcode(os.waitpid(run, 0)[1]) == -signal.SIGKILL
    assert is_gone(int((tmp_path / "daemon").read_text()))


def reports_and_dies(params, trial):
    for step in range(1, 4):
        trial.report(params["x"] + step, step)
        trial.should_prune()
    os.kill(os.getpid(), signal.SIGKILL)


def reports_and_hangs(params, trial):
    for step in range(1, 4):
        trial.report(params["x"] + step, step)
        trial.should_prune()
    time.sleep(60)


def reports_to_whoever_looks_on(params, trial):
    notes.EVERY = 0.0
    for step in range(1, 4):
        trial.report(params["x"] + step, step)
    os.kill(os.getpid(), signal.SIGKILL)


def reports_at_the_second_attempt_only(params, trial):
    mark = os.path.join(os.environ["DEEPBORE_TEST_FOLDER"], str(trial.id))
    if not os.path.exists(mark):
        with open(mark, "w"):
            pass
        reports_and_dies(params, trial)
    trial.report(7.0, 1)
    return params["x"]


@pytest.mark.parametrize(
    ("objective", "settings"),
    [
        pytest.param(reports_and_dies, {"pruner": MedianPruner()}, id="killed"),
        pytest.param(reports_and_hangs, {"pruner": MedianPruner()}, id="timed out"),
        pytest.param(reports_to_whoever_looks_on, {}, id="without a pruner"),
    ],
)
def test_the_curve_of_a_trial_that_does_not_come_back_is_kept(objective, settings, tmp_path):
    path = tmp_path / "run.jsonl"
    limit = 2 if objective is reports_and_hangs else None
    evaluator = ProcessEvaluator(objective, workers=1, lost_retries=0, timeout=limit)
    with Study(LINE, seed=0, journal=path, **settings) as study, pytest.warns(EvaluationWarning):
        study.optimize(evaluator, 2, max_failures=None)
    for trial in [*study.trials, *Study.load(path).trials]:
        assert trial.status.name == "FAILED"
        assert dict(trial.reports) == {step: trial.params["x"] + step for step in (1, 2, 3)}
    assert not notes.running_path(path, 0).parent.exists()


def test_a_later_attempt_begins_its_curve_anew(tmp_path, monkeypatch):
    monkeypatch.setenv("DEEPBORE_TEST_FOLDER", str(tmp_path))
    study = Study(LINE, seed=0, pruner=MedianPruner())
    study.optimize(ProcessEvaluator(reports_at_the_second_attempt_only, workers=1), 1)
    assert [dict(trial.reports) for trial in study.trials] == [{1: 7.0}]


def test_a_call_that_hangs_in_a_thread_leaves_its_curve(tmp_path):
    over = threading.Event()

    def hangs(params, trial):
        trial.report(0.5, 1)
        trial.should_prune()
        over.wait(60)
        return 0.0

    study = Study(LINE, seed=0, pruner=MedianPruner())
    with ThreadPoolExecutor(2) as threads:
        with pytest.warns(EvaluationWarning, match="timed out"):
            study.optimize(ExecutorEvaluator(hangs, threads, timeout=0.3), 1, max_failures=None)
        over.set()
    assert [dict(trial.reports) for trial in study.trials] == [{1: 0.5}]
