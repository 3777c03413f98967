"""A real dask cluster that is closed within a run, one that loses all workers, and one whose worker is killed."""

import os
import signal
import time
from functools import partial

import pytest

from alone import alone
from deepbore import ExecutorEvaluator, Study
from deepbore.errors import EvaluatorError
from workers import levels

distributed = pytest.importorskip("distributed", reason="dask is not installed")
pytestmark = pytest.mark.slow


def cluster(folder):
    return distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, local_directory=folder
    )


@alone
def test_a_cluster_that_is_closed_ends_the_run_and_no_trial_fails(tmp_path):
    study = Study(levels(8), seed=0)
    with cluster(tmp_path) as own, distributed.Client(own) as client:
        evaluator = ExecutorEvaluator(squares, client.get_executor())
        with pytest.raises(EvaluatorError):
            study.optimize(evaluator, 8, callbacks=[lambda *_: client.shutdown()])
    assert {trial.status.name for trial in study.trials} <= {"COMPLETE", "PENDING"}


@alone
def test_a_cluster_without_workers_ends_the_run_and_no_trial_fails(tmp_path):
    study = Study(levels(8), seed=0)
    with cluster(tmp_path) as own, distributed.Client(own) as client:
        evaluator = ExecutorEvaluator(squares, client.get_executor(), patience=1)
        with pytest.raises(EvaluatorError, match="no worker"):
            study.optimize(evaluator, 8, callbacks=[lambda *_: own.scale(0)])
    assert {trial.status.name for trial in study.trials} == {"COMPLETE", "PENDING"}


@alone
def test_a_trial_whose_worker_is_killed_is_evaluated_again_and_no_failure(tmp_path):
    study = Study(levels(8), seed=0)
    with cluster(tmp_path) as own, distributed.Client(own) as client:
        evaluator = ExecutorEvaluator(partial(kills_once, folder=tmp_path), client.get_executor())
        study.optimize(evaluator, 6, timeout=90)
    assert (tmp_path / "killed").read_text() == "2"
    assert [trial.value for trial in study.trials] == [trial.params["k"] ** 2 for trial in study.trials]


def kills_once(params, trial, folder):
    if trial.id == 2 and not (folder / "killed").exists():
        (folder / "killed").write_text("2")
        time.sleep(0.5)
        os.kill(os.getpid(), signal.SIGKILL)
    return params["k"] ** 2


def squares(params):
    return params["k"] ** 2
