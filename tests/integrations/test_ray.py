"""A real Ray cluster on this machine: trials, a worker that dies, and a driver that goes on."""

import os
import signal
from functools import partial

import pytest

from deepbore import ExecutorEvaluator, Real, SearchSpace, Study, minimize
from deepbore.errors import SettingError

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
def _cluster():
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="error")
    yield
    ray.shutdown()


@pytest.mark.usefixtures("_cluster")
@pytest.mark.timeout(120)
def test_trials_run_on_a_cluster_whose_workers_die_and_another_driver_continues(tmp_path):
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
