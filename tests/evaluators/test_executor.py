"""Evaluation on several workers: real threads and real processes."""

import json
import os
import subprocess
import sys
import threading
import time
import types
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from multiprocessing import get_context

import numpy as np
import pytest
import torch

import learning
import objectives
from alone import alone
from deepbore import ExecutorEvaluator, MedianPruner, ProcessEvaluator, Study, minimize
from deepbore.errors import SettingError
from plane import LINE
from processes import ENV
from trainers import quiet_trainer
from workers import PLANE, SQUARES, events, levels, outcomes

pytestmark = pytest.mark.usefixtures("no_process_is_left")


def test_threads_evaluate_every_trial_once():
    with ThreadPoolExecutor(3) as threads:
        result = minimize(ExecutorEvaluator(objectives.square, threads), levels(8), n_trials=20, seed=0)
    assert outcomes(result.study) == SQUARES
    assert result.best_params == {"k": 4}


def test_a_process_pool_evaluates_every_trial_once():
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        result = minimize(ExecutorEvaluator(objectives.square, pool), levels(8), n_trials=20, seed=0)
        assert pool.submit(abs, -3).result() == 3  # the user's pool lives on
    assert outcomes(result.study) == SQUARES


def test_no_worker_waits_for_the_end_of_the_design():
    together = threading.Barrier(16)

    def meet(params):
        together.wait(timeout=30)  # all sixteen, though a design of ten is all that the classifier needs
        return params["k"]

    with ThreadPoolExecutor(16) as threads:
        result = minimize(ExecutorEvaluator(meet, threads), levels(40), n_trials=16, n_initial=10, batch_size=16)
    assert not any(trial.value is None for trial in result.study.trials)


@pytest.mark.slow
@alone
def test_dask_evaluates_every_trial_once(tmp_path):
    distributed = pytest.importorskip("distributed")
    cluster = distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, local_directory=tmp_path
    )
    with cluster, distributed.Client(cluster) as client:
        noted = partial(objectives.noted, folder=tmp_path)
        evaluator = ExecutorEvaluator(noted, client.get_executor())
        assert evaluator.workers == 2
        result = minimize(evaluator, levels(8), n_trials=8, seed=0)
        pids = {pid for k in range(8) for pid in (tmp_path / str(k)).read_text().split()}
        again = minimize(evaluator, levels(8), n_trials=8, seed=0)
        slow = ExecutorEvaluator(partial(objectives.slow_at_3, seconds=4.0), client.get_executor(), timeout=2.0)
        with pytest.warns(RuntimeWarning, match=r"timed out after 2 s"):
            late = minimize(slow, levels(8), n_trials=8, seed=0)
        reports = ExecutorEvaluator(learning.train, client.get_executor())
        pruned = minimize(reports, LINE, 12, pruner=MedianPruner(), n_initial=12, progress=False).study
    assert pruned.observations.ledger.statistics.n_pruned
    assert all(trial.reports for trial in pruned.trials)
    assert outcomes(result.study) == dict.fromkeys(range(8), 1)
    assert outcomes(again.study) == dict.fromkeys(range(8), 2)  # called again: not taken from dask's memory
    assert str(os.getpid()) not in pids
    assert outcomes(late.study) == SQUARES | {3: None}


@pytest.mark.slow
@pytest.mark.parametrize("make", [ExecutorEvaluator, lambda f, _: ProcessEvaluator(f, 1)])
def test_one_worker_gives_the_run_that_serial_evaluation_gives(make):
    with ThreadPoolExecutor(1) as thread:
        result = minimize(make(objectives.bowl, thread), PLANE, n_trials=15, seed=4)
    assert np.array_equal(result.values, minimize(objectives.bowl, PLANE, n_trials=15, seed=4).values)


def test_the_design_is_evaluated_by_all_workers_at_once():
    barrier = threading.Barrier(4, timeout=20)

    def meets(params):
        barrier.wait()  # until four are here
        return objectives.bowl(params)

    with ThreadPoolExecutor(4) as threads:
        study = Study(PLANE, seed=0, n_initial=4)
        result = study.optimize(ExecutorEvaluator(meets, threads), 4)
    assert np.isfinite(result.values).all()


def test_a_slow_evaluation_holds_nobody_up(tmp_path):
    others = threading.Semaphore(0)

    def first_waits_for_all_others(params):
        if params["k"] == slow:
            assert all(others.acquire(timeout=20) for _ in range(11)), "the run has waited"
        else:
            others.release()
        return params["k"]

    slow = levels(30).decode(levels(30).points.sobol(1, 0))[0]["k"]
    study = Study(levels(30), seed=0, n_initial=4, journal=tmp_path / "run.jsonl")
    with ThreadPoolExecutor(2) as threads:
        study.optimize(ExecutorEvaluator(first_waits_for_all_others, threads), 12)
    told = [event["trial"] for event in events(tmp_path / "run.jsonl", "told")]
    assert told[:10] == list(range(1, 11))  # the last one frees the slow one: they may come together
    assert set(told[10:]) == {0, 11}
    assert not events(tmp_path / "run.jsonl", "failed")


def test_a_batch_of_all_workers_is_batch_synchronous(tmp_path):
    study = Study(PLANE, n_initial=3, journal=tmp_path / "run.jsonl")
    with ThreadPoolExecutor(3) as threads:
        study.optimize(ExecutorEvaluator(objectives.bowl, threads), 11, batch_size=3)
    kinds = [json.loads(line)["event"][0] for line in (tmp_path / "run.jsonl").read_text().splitlines()[1:]]
    assert "".join(kinds) == "aaattt" * 3 + "aatt"


def test_a_batch_larger_than_the_number_of_workers_waits_its_turn():
    study = Study(PLANE, n_initial=4)
    with ThreadPoolExecutor(2) as threads:
        study.optimize(ExecutorEvaluator(objectives.bowl, threads), 10, batch_size=3)
    assert study.observations.ledger.statistics.n_complete == len(study.observations) == 10


def test_what_is_outstanding_when_the_trainer_ends_the_run_is_waited_for():
    def slow(params):
        time.sleep(0.2)
        return objectives.bowl(params)

    study = Study(PLANE, n_initial=4)
    with ThreadPoolExecutor(4) as threads:
        study.optimize(ExecutorEvaluator(slow, threads), None, trainer=quiet_trainer(max_epochs=2))
    assert 4 < len(study.observations) == study.observations.ledger.statistics.n_complete


def test_an_objective_that_cannot_be_sent_is_refused_before_the_run():
    lock = threading.Lock()
    with pytest.raises(SettingError, match=r"can be pickled.*top level of a module"):
        ProcessEvaluator(lambda params: lock)
    with ProcessPoolExecutor(1) as pool, pytest.raises(SettingError, match="can be pickled"):
        ExecutorEvaluator(lambda params: lock, pool)


@pytest.mark.slow
def test_lambdas_and_closures_reach_worker_processes():
    factor = 2.0
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        for evaluator in (
            ProcessEvaluator(lambda params: factor * params["x"], workers=1),
            ExecutorEvaluator(lambda params: factor * params["x"], pool),
        ):
            trials = Study(PLANE, seed=0).optimize(evaluator, 2, progress=False).study.trials
            assert [trial.value for trial in trials] == [factor * trial.params["x"] for trial in trials]


CONSOLE = """
import deepbore
class Scaled:
    def __init__(self, by): self.by = by
    def __call__(self, params): return helper(params) * self.by
def helper(params): return params["x"]
study = deepbore.minimize(Scaled(3.0), {"x": deepbore.Real(0, 1)}, 2, workers=2, progress=False).study
print(all(trial.value == 3.0 * trial.params["x"] for trial in study.trials))
"""


@pytest.mark.slow
def test_what_a_console_has_defined_reaches_worker_processes():
    command = [sys.executable, "-c", CONSOLE]
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=ENV, timeout=300)
    assert done.stdout.strip() == "True", done.stderr


def test_an_objective_that_a_worker_cannot_import_is_refused_before_the_run(monkeypatch):
    ephemeral = types.ModuleType("ephemeral")
    exec("def objective(params): return 0.0", vars(ephemeral))
    monkeypatch.setitem(sys.modules, "ephemeral", ephemeral)
    study = Study(PLANE)
    with pytest.raises(SettingError, match=r"No module named 'ephemeral'.*Define it in a module"):
        study.optimize(ProcessEvaluator(ephemeral.objective), 5)
    assert study.trials == []


def test_what_a_worker_imports_is_light():
    heavy = "import sys, deepbore.worker; sys.exit(bool({'torch', 'numpy', 'lightning'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", heavy], check=False).returncode == 0


def test_each_process_gets_its_share_of_threads(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    before = torch.get_num_threads()
    torch.set_num_threads(6)
    try:
        values = minimize(ProcessEvaluator(objectives.threads, workers=2), PLANE, n_trials=4).values
    finally:
        torch.set_num_threads(before)
    assert set(values) == {3.0}


class Inline(Executor):
    """An executor that doesn't say how many workers it has."""


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: ProcessEvaluator(objectives.bowl, workers=0), "workers >= 1 must hold, but got workers=0"),
        (lambda: ProcessEvaluator(objectives.bowl, timeout=0), "timeout > 0 must hold"),
        (lambda: ProcessEvaluator(objectives.bowl, retries=-1), "retries >= 0 must hold"),
        (lambda: ExecutorEvaluator(objectives.bowl, Inline()), "workers must be given, because Inline"),
    ],
)
def test_bad_settings_are_refused(make, says):
    with pytest.raises(SettingError, match=says):
        make()
