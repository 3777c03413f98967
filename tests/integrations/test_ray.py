"""A real Ray cluster on this machine: trials, a worker that dies, a driver that goes on, and a shutdown."""

import os
import signal
import threading
import time
from functools import partial

import pytest

from alone import alone
from deepbore import ExecutorEvaluator, Real, SearchSpace, Study, minimize
from deepbore.errors import EvaluatorError, SettingError

ray = pytest.importorskip("ray", reason="Ray is not installed")
from deepbore.integrations.ray import RayExecutor  # noqa: E402  # it needs Ray

LINE = SearchSpace({"x": Real(0, 1)})
pytestmark = pytest.mark.slow  # a cluster takes some seconds to start


def dies_once(params, folder):
    """Kills its own process in the first call of all."""
    try:
        os.close(os.open(f"{folder}/died", os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return params["x"]
    return os.kill(os.getpid(), signal.SIGKILL)


def start():
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="error")


@alone
def test_trials_run_on_a_cluster_whose_workers_die_and_another_driver_continues(tmp_path):
    start()
    evaluator = ExecutorEvaluator(partial(dies_once, folder=str(tmp_path)), RayExecutor(workers=2, num_cpus=1))
    assert evaluator.workers == 2
    result = minimize(evaluator, LINE, 5, seed=0, journal=tmp_path / "run.jsonl")
    assert list(result.values) == [trial.params["x"] for trial in result.study.trials]  # none has failed
    assert (tmp_path / "died").exists()

    def ends(study, trial):
        raise InterruptedError

    study = Study.load(tmp_path / "run.jsonl")
    with pytest.raises(InterruptedError):
        study.optimize(evaluator, 5, callbacks=[ends])
    study.close()
    again = Study.load(tmp_path / "run.jsonl")
    again.optimize(evaluator, 10 - len(again.trials))
    assert [trial.value for trial in again.trials] == [trial.params["x"] for trial in again.trials]


def test_a_number_of_workers_is_needed():
    with pytest.raises(SettingError):
        RayExecutor(workers=0)


def sleeps_after(params, folder):
    """Returns at once in the first calls, and hangs in the later ones."""
    for number in range(2):
        try:
            os.close(os.open(f"{folder}/{number}", os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            continue
        return params["x"]
    time.sleep(100)
    return params["x"]


@alone
def test_what_no_node_has_and_a_shutdown_of_ray_end_the_run_and_no_trial_fails(tmp_path):
    start()
    evaluator = ExecutorEvaluator(partial(sleeps_after, folder=str(tmp_path)), RayExecutor(workers=2))
    never = ExecutorEvaluator(evaluator.objective, RayExecutor(workers=2, resources={"tpu": 1}), patience=1)
    with pytest.raises(EvaluatorError, match="no worker"):  # no node has one
        Study(LINE, seed=0).optimize(never, 2)

    study, ends = Study(LINE, seed=0), threading.Timer(0, ray.shutdown)

    def shut_down(study, trial):
        if len(list(tmp_path.iterdir())) == 2 and [each.status.name for each in study.trials].count("COMPLETE") == 2:
            ends.interval = 1
            ends.start()

    with pytest.raises(EvaluatorError, match="Ray was shut down"):
        study.optimize(evaluator, 10, callbacks=[shut_down])
    ends.join()
    assert [trial.status.name for trial in study.trials].count("COMPLETE") == 2
    assert {trial.status.name for trial in study.trials} == {"COMPLETE", "PENDING"}
    assert not ray.is_initialized()  # no other cluster was started in its place
