"""A real Ray cluster on this machine: trials, a worker that dies, a cluster that is gone, and a driver that goes on."""

import os
import signal
from functools import partial

import pytest

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


@pytest.fixture
def cluster():
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="error")
    yield
    ray.shutdown()


def test_trials_run_on_a_cluster_whose_workers_and_itself_may_die(cluster, tmp_path):
    executor = RayExecutor(workers=2, num_cpus=1)
    objective = partial(dies_once, folder=str(tmp_path))
    result = minimize(ExecutorEvaluator(objective, executor), LINE, 6, seed=0, journal=tmp_path / "run.jsonl")
    assert list(result.values) == [trial.params["x"] for trial in result.study.trials]
    assert (tmp_path / "died").exists()

    study = Study.load(tmp_path / "run.jsonl")
    with pytest.raises(EvaluatorError):
        study.optimize(ExecutorEvaluator(objective, executor), 6, callbacks=[lambda *_: ray.shutdown()])
    assert not [trial for trial in study.trials if trial.status.name == "FAILED"]
    study.close()
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="error")
    again = Study.load(tmp_path / "run.jsonl")
    left = 12 - len(again.trials)
    again.optimize(ExecutorEvaluator(objective, RayExecutor(workers=2)), left)
    assert [trial.value for trial in again.trials] == [trial.params["x"] for trial in again.trials]
    with pytest.raises(SettingError):
        RayExecutor(workers=0)
