"""A real dask cluster that is closed within a run."""

import pytest

from deepbore import ExecutorEvaluator, Study
from deepbore.errors import EvaluatorError
from workers import levels

distributed = pytest.importorskip("distributed", reason="dask is not installed")
pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]


def cluster(folder):
    return distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, local_directory=folder
    )


def test_a_cluster_that_is_closed_ends_the_run_and_no_trial_fails(tmp_path):
    study = Study(levels(8), seed=0)
    with cluster(tmp_path) as own, distributed.Client(own) as client:
        evaluator = ExecutorEvaluator(squares, client.get_executor())
        with pytest.raises(EvaluatorError):
            study.optimize(evaluator, 8, callbacks=[lambda *_: client.shutdown()])
    assert {trial.status.name for trial in study.trials} <= {"COMPLETE", "PENDING"}


def squares(params):
    return params["k"] ** 2
