"""Evaluation on several workers: real threads, real processes, real deaths."""

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
import types
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pytest
import torch
from lightning.pytorch import Trainer

import objectives
from deepbore import (
    ExecutorEvaluator,
    Ordinal,
    ProcessEvaluator,
    RandomSearch,
    Real,
    SearchSpace,
    SerialEvaluator,
    Study,
    minimize,
)
from deepbore.cli.summary import summary
from deepbore.data.outcomes import Status
from deepbore.data.trial import Trial
from deepbore.errors import EvaluatorError, SettingError
from deepbore.loop.lightning import quiet
from processes import is_gone

PLANE = SearchSpace({"x": Real(-1, 1), "y": Real(-1, 1)})
SQUARES = {k: (k - 4) ** 2 for k in range(8)}


def levels(n):
    return SearchSpace({"k": Ordinal(list(range(n)))})


def outcomes(study):
    """k -> value, None for failures."""
    return {trial.params["k"]: trial.value for trial in study.trials}


def events(path, kind):
    written = [json.loads(line) for line in Path(path).read_text().splitlines()]
    return [event for event in written if event["event"] == kind]


@pytest.fixture(autouse=True)
def no_process_is_left():
    yield
    assert all(is_gone(process.pid) for process in multiprocessing.active_children())


# --- engines ---------------------------------------------------------------------------------------------------------


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


def test_own_processes_are_reused_and_differ_from_this_one():
    study = Study(PLANE, seed=0)
    evaluator = ProcessEvaluator(objectives.pid, workers=2)
    first, second = (set(study.optimize(evaluator, 6).values[-6:]) for _ in range(2))
    assert len(study.trials) == 12
    assert max(len(first), len(second)) <= 2
    assert not {os.getpid()} & first
    assert not first & second  # each run ends its processes


@pytest.mark.slow
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
    assert outcomes(result.study) == dict.fromkeys(range(8), 1)
    assert outcomes(again.study) == dict.fromkeys(range(8), 2)  # called again: not taken from dask's memory
    assert str(os.getpid()) not in pids
    assert outcomes(late.study) == SQUARES | {3: None}


@pytest.mark.parametrize("make", [ExecutorEvaluator, lambda f, _: ProcessEvaluator(f, 1)])
def test_one_worker_gives_the_run_that_serial_evaluation_gives(make):
    with ThreadPoolExecutor(1) as thread:
        result = minimize(make(objectives.bowl, thread), PLANE, n_trials=15, seed=4)
    assert np.array_equal(result.values, minimize(objectives.bowl, PLANE, n_trials=15, seed=4).values)


# --- who waits for whom ----------------------------------------------------------------------------------------------


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

    slow = levels(30).decode(levels(30).sobol(1, 0))[0]["k"]
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
    assert study.observations.n_complete == len(study.observations) == 10


def test_what_is_outstanding_when_the_trainer_ends_the_run_is_waited_for():
    def slow(params):
        time.sleep(0.2)
        return objectives.bowl(params)

    study = Study(PLANE, n_initial=4)
    with ThreadPoolExecutor(4) as threads, quiet():
        trainer = Trainer(
            max_epochs=2,
            logger=False,
            accelerator="cpu",
            enable_checkpointing=False,
            enable_progress_bar=False,
        )
        study.optimize(ExecutorEvaluator(slow, threads), None, trainer=trainer)
    assert 4 < len(study.observations) == study.observations.n_complete


# --- failures --------------------------------------------------------------------------------------------------------


def test_exceptions_deaths_and_timeouts_fail_their_own_trial_only(tmp_path):
    study = Study(levels(8), seed=0, journal=tmp_path / "run.jsonl")
    evaluator = ProcessEvaluator(partial(objectives.troubled, folder=tmp_path), workers=2, timeout=1.5)
    with pytest.warns(RuntimeWarning) as warned:
        study.optimize(evaluator, 20)
    assert outcomes(study) == SQUARES | dict.fromkeys([1, 2, 3, 4, 5])
    reasons = {study.trials[e["trial"]].params["k"]: e["reason"] for e in events(tmp_path / "run.jsonl", "failed")}
    died = "the worker process died"
    assert reasons == {1: "RuntimeError: diverged", 2: died, 3: died, 4: "timed out after 1.5 s", 5: "MemoryError"}
    texts = [str(warning.message) for warning in warned]
    assert sorted(texts) == sorted(f"trial {t.id} failed with {t.params}: {reasons[t.params['k']]}"
                                   for t in study.trials if t.status is Status.FAILED)  # fmt: skip
    assert "8 trials, 5 failed" in summary(study.observations)
    assert Study.load(tmp_path / "run.jsonl").trials == study.trials
    assert is_gone(int((tmp_path / "4").read_text()))


def test_what_fails_once_is_tried_again(tmp_path):
    evaluator = ProcessEvaluator(partial(objectives.troubled, folder=tmp_path, healed=2), 2, timeout=1.5, retries=1)
    result = minimize(evaluator, levels(8), n_trials=20, seed=0)
    assert outcomes(result.study) == SQUARES
    calls = {k: len((tmp_path / str(k)).read_text().splitlines()) for k in range(8)}
    assert calls == dict.fromkeys(range(8), 1) | dict.fromkeys([1, 2, 3, 4, 5], 2)


def test_retries_end(tmp_path):
    calls = []

    def raises(params):
        calls.append(params["k"])
        raise OSError("gone")

    with ThreadPoolExecutor(1) as thread, pytest.warns(RuntimeWarning, match=r"OSError: gone \(attempt 3\)"):
        minimize(ExecutorEvaluator(raises, thread, retries=2), levels(2), n_trials=2, seed=0)
    assert sorted(calls) == [0, 0, 0, 1, 1, 1]


def test_what_is_no_number_is_a_failure_with_a_reason_and_not_tried_again(tmp_path):
    study = Study(levels(6), seed=0, journal=tmp_path / "run.jsonl")
    study.enqueue({"k": 0})  # an ordinary failure: if the first answer of all is no number, the run ends
    with pytest.warns(RuntimeWarning, match="no licence"):
        study.optimize(objectives.answers_oddly, 1)
    with ThreadPoolExecutor(2) as threads, pytest.warns(RuntimeWarning, match="failed"):
        study.optimize(ExecutorEvaluator(objectives.answers_oddly, threads), 5)
    reasons = {study.trials[e["trial"]].params["k"]: e["reason"] for e in events(tmp_path / "run.jsonl", "failed")}
    says = ["SystemExit: no licence", "None", "'high'", "its value is nan", "(1+2j)", "its value is inf"]
    assert all(text in reasons[k] for k, text in enumerate(says))


@pytest.mark.parametrize(("retries", "says"), [(0, "the worker process died"), (1, r"died \(attempt 2\)")])
def test_a_process_pool_that_breaks_is_replaced_and_the_innocent_are_found(retries, says):
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        evaluator = ExecutorEvaluator(objectives.dies_at_3, pool, retries=retries)
        with pytest.warns(RuntimeWarning, match=rf"\{{'k': 3\}}: .*{says}$"):
            study = minimize(evaluator, levels(8), n_trials=8, seed=0).study
    assert outcomes(study) == SQUARES | {3: None}


def test_a_thread_that_is_out_of_time_is_lost_until_it_returns():
    running = []

    def slow_at_3(params):
        running.append(params["k"])
        time.sleep(0.8 if params["k"] == 3 else 0.0)
        running.remove(params["k"])
        if running:
            raise AssertionError("the worker is still busy")
        return objectives.square(params)

    with ThreadPoolExecutor(1) as thread:
        evaluator = ExecutorEvaluator(slow_at_3, thread, timeout=0.4)
        with pytest.warns(RuntimeWarning) as warned:
            study = minimize(evaluator, levels(8), n_trials=8, seed=0).study
    assert outcomes(study) == SQUARES | {3: None}
    texts = " | ".join(str(warning.message) for warning in warned)
    assert "{'k': 3}: timed out after 0.4 s" in texts
    assert "every worker is still busy" in texts


def test_waiting_for_a_worker_is_not_counted_as_its_time():
    def slow(params):
        time.sleep(0.25)
        return params["k"]

    with ThreadPoolExecutor(1) as thread:
        evaluator = ExecutorEvaluator(slow, thread, timeout=0.6)
        for k in range(4):
            evaluator.submit(Trial(k, {"k": k}))
        assert (evaluator.outstanding, evaluator.free) == (4, -3)
        found = [one for _ in range(4) for one in evaluator.collect()]
    assert [one.outcome.values for one in found] == [(0.0,), (1.0,), (2.0,), (3.0,)]
    assert evaluator.collect() == []


def test_processes_that_an_objective_has_started_are_killed_with_it(tmp_path):
    objective = partial(objectives.starts_a_process_and_hangs, folder=tmp_path)
    with pytest.warns(RuntimeWarning, match="timed out"):
        minimize(ProcessEvaluator(objective, workers=1, timeout=1.0), levels(2), n_trials=1)
    assert is_gone(int((tmp_path / "grandchild").read_text()))


def test_the_progress_bar_shows_failures(capsys):
    def fails(params):
        raise ValueError

    with pytest.warns(RuntimeWarning, match="ValueError"):
        Study(PLANE).optimize(SerialEvaluator(fails), 3, progress=True)
    assert "failed=3" in capsys.readouterr().err


# --- the end ---------------------------------------------------------------------------------------------------------


class RaisesLater(RandomSearch):
    """Raises when it is asked a third time."""

    asked = 0

    def ranked(self, search, q):
        self.asked += 1
        if self.asked == 3:
            raise RuntimeError("lost")
        return super().ranked(search, q)


def test_an_exception_leaves_no_process_and_keeps_trials_pending(tmp_path):
    study = Study(levels(20), seed=0, candidates=RaisesLater())
    study.add({"k": list(range(10))}, list(range(10)))
    evaluator = ProcessEvaluator(partial(objectives.first_hangs, folder=tmp_path), workers=2)
    with pytest.raises(RuntimeError, match="lost"):
        study.optimize(evaluator, 8)
    assert multiprocessing.active_children() == []
    assert is_gone(int((tmp_path / "first").read_text()))
    assert evaluator.outstanding == 0
    *others, last = sorted(trial.status for trial in study.trials[10:])
    assert set(others) == {Status.COMPLETE}
    assert last is Status.PENDING


def test_ctrl_c_while_waiting_leaves_no_process(tmp_path):
    def interrupt_when_both_run():
        while len(list(tmp_path.iterdir())) < 2:
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.2)
        os.kill(os.getpid(), signal.SIGINT)  # once would wait for the running trials

    study = Study(PLANE, seed=0)
    evaluator = ProcessEvaluator(partial(objectives.leaves_its_pid_and_hangs, folder=tmp_path), workers=2)
    handler = signal.getsignal(signal.SIGINT)
    threading.Thread(target=interrupt_when_both_run, daemon=True).start()
    with pytest.raises(KeyboardInterrupt):
        study.optimize(evaluator, 8)
    assert signal.getsignal(signal.SIGINT) is handler
    assert multiprocessing.active_children() == []
    assert all(is_gone(path.name) for path in tmp_path.iterdir())
    assert [trial.status for trial in study.trials] == [Status.PENDING] * 2


@pytest.mark.slow
def test_workers_end_with_a_run_that_is_killed(tmp_path):
    script = tmp_path / "run.py"
    script.write_text(
        "import functools, objectives\n"
        "from deepbore.evaluators import ProcessEvaluator\n"
        "from deepbore.data.observations import Trial\n"
        "if __name__ == '__main__':\n"
        f"    evaluator = ProcessEvaluator(functools.partial(objectives.troubled, folder={str(tmp_path)!r}), 2)\n"
        "    evaluator.submit(Trial(0, {'k': 4}))\n"
        "    evaluator.collect()\n"
    )
    path = os.pathsep.join([str(Path(__file__).parent), str(Path(__file__).parents[1])])
    run = subprocess.Popen([sys.executable, str(script)], env={**os.environ, "PYTHONPATH": path})
    while not (tmp_path / "4").exists() or not (tmp_path / "4").read_text().strip():
        assert run.poll() is None
        time.sleep(0.05)
    run.kill()
    run.wait()
    assert is_gone(int((tmp_path / "4").read_text()))


# --- settings --------------------------------------------------------------------------------------------------------


def test_an_objective_that_cannot_be_sent_is_refused_before_the_run():
    with pytest.raises(SettingError, match=r"can be pickled.*top level of a module"):
        ProcessEvaluator(lambda params: 0.0)
    with ProcessPoolExecutor(1) as pool, pytest.raises(SettingError, match="can be pickled"):
        ExecutorEvaluator(lambda params: 0.0, pool)


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


def _dies():
    raise RuntimeError("no GPU")


def test_an_engine_that_is_broken_for_good_ends_the_run():
    with ThreadPoolExecutor(1, initializer=_dies) as threads:
        evaluator = ExecutorEvaluator(objectives.bowl, threads)
        with pytest.raises(EvaluatorError, match="ThreadPoolExecutor is broken"):
            minimize(evaluator, PLANE, n_trials=3)
