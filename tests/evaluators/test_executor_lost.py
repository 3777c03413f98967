"""Workers that are lost, evaluators that are shared, and what an objective may do to its process."""

import asyncio
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

import objectives
from deepbore import ExecutorEvaluator, ProcessEvaluator, Study, minimize
from deepbore.errors import EvaluatorError
from deepbore.evaluators.warning import EvaluationWarning
from plane import LINE
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
            study.optimize(ExecutorEvaluator(objective, threads, timeout=0.3), 10, timeout=2.0)
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
