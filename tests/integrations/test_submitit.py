"""submitit's real executors: jobs as processes of this machine."""

import os
import signal
import time
from functools import partial

import pytest

from deepbore import ExecutorEvaluator, Real, SearchSpace, Study, minimize
from deepbore.errors import SettingError
from deepbore.evaluators.base import EvaluationWarning
from deepbore.integrations.submitit import SubmititExecutor

submitit = pytest.importorskip("submitit", reason="submitit is not installed")
LINE = SearchSpace({"x": Real(0, 1)})


def dies_once(params, folder):
    """Kills its own process in the first call of all."""
    try:
        os.close(os.open(f"{folder}/died", os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return params["x"]
    return os.kill(os.getpid(), signal.SIGKILL)


def fails(params):
    raise ValueError("no loss")


@pytest.fixture
def local(tmp_path):
    executor = submitit.LocalExecutor(folder=tmp_path / "logs")
    executor.update_parameters(timeout_min=2)
    return executor


@pytest.mark.slow
def test_a_job_that_dies_is_submitted_again_and_no_failure(local, tmp_path):
    evaluator = ExecutorEvaluator(partial(dies_once, folder=tmp_path), SubmititExecutor(local, 2, poll=0.05))
    result = minimize(evaluator, LINE, 4, seed=0)
    assert list(result.values) == [trial.params["x"] for trial in result.study.trials]
    assert (tmp_path / "died").exists()


def test_each_trial_is_a_job(tmp_path):
    executor = submitit.DebugExecutor(folder=tmp_path)
    evaluator = ExecutorEvaluator(_x, SubmititExecutor(executor, 3, poll=0.01))
    assert evaluator.workers == 3
    result = minimize(evaluator, LINE, 5, seed=0)
    assert list(result.values) == [trial.params["x"] for trial in result.study.trials]


def test_a_failure_is_one_of_the_objective(tmp_path):
    executor = SubmititExecutor(submitit.DebugExecutor(folder=tmp_path), 1, poll=0.01)
    study = Study(LINE, seed=0)
    with pytest.warns(EvaluationWarning, match="ValueError: no loss"):
        study.optimize(ExecutorEvaluator(fails, executor), 1, max_failures=None)


class Job:
    def __init__(self):
        self.was_cancelled = False

    def done(self):
        return False

    def cancel(self):
        self.was_cancelled = True


class Never:
    """An executor whose jobs never begin."""

    def __init__(self):
        self.jobs = []

    def submit(self, *_):
        self.jobs.append(Job())
        return self.jobs[-1]


def test_what_waits_in_the_queue_at_the_end_is_cancelled():
    never = Never()
    evaluator = ExecutorEvaluator(_x, SubmititExecutor(never, 2, poll=0.01), timeout=0.1)
    with pytest.warns(EvaluationWarning, match="timed out"):
        Study(LINE, seed=0).optimize(evaluator, 2, timeout=0.2, max_failures=None)
    for _ in range(500):
        if all(job.was_cancelled for job in never.jobs):
            return
        time.sleep(0.01)
    raise AssertionError("the jobs still wait")


def test_what_is_no_executor_of_submitit_is_refused(tmp_path):
    with pytest.raises(SettingError, match="AutoExecutor"):
        SubmititExecutor(submitit.DebugExecutor, 2)
    with pytest.raises(SettingError, match="poll"):
        SubmititExecutor(Never(), 2, poll=0)
    with pytest.raises(SettingError, match="SubmititExecutor"):  # it takes trials, and gives jobs
        ExecutorEvaluator(_x, submitit.DebugExecutor(folder=tmp_path), workers=2)


def _x(params):
    return params["x"]
