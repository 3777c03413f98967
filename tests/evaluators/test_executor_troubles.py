"""Evaluations that fail, hang or die, and what is left when a run ends: real deaths."""

import io
import multiprocessing
import os
import re
import signal
import sys
import threading
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from multiprocessing import get_context

import pytest

import deepbore as db
import forked
import objectives
from deepbore import ExecutorEvaluator, ProcessEvaluator, RandomSearch, SerialEvaluator, Study, minimize
from deepbore.cli.inspect import summary
from deepbore.data.outcome import Status
from deepbore.data.trial import Trial
from deepbore.errors import EvaluatorError, ObjectiveError, SettingError
from deepbore.evaluators import Timed
from plane import LINE, SQUARE
from processes import ROOT, is_gone
from workers import PLANE, SQUARES, events, levels, outcomes

pytestmark = pytest.mark.usefixtures("no_process_is_left")


# --- failures --------------------------------------------------------------------------------------------------------


def test_exceptions_deaths_and_timeouts_fail_their_own_trial_only(tmp_path):
    study = Study(levels(8), seed=0, journal=tmp_path / "run.jsonl")
    evaluator = ProcessEvaluator(partial(objectives.troubled, folder=tmp_path), workers=2, timeout=1.5)
    with pytest.warns(RuntimeWarning) as warned:
        study.optimize(evaluator, 20)
    assert outcomes(study) == SQUARES | dict.fromkeys([1, 2, 3, 4, 5])
    reasons = {study.trials[e["trial"]].params["k"]: e["reason"] for e in events(tmp_path / "run.jsonl", "failed")}
    died = "the worker process died (attempt 3)"
    assert reasons == {1: "RuntimeError: diverged", 2: died, 3: died, 4: "timed out after 1.5 s", 5: "MemoryError"}
    texts = [str(warning.message) for warning in warned]
    assert sorted(texts) == sorted(f"trial {t.id} failed with {t.params}: {reasons[t.params['k']]}"
                                   for t in study.trials if t.status is Status.FAILED)  # fmt: skip
    assert "8 trials, 5 failed" in summary(study.observations.ledger)
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
        minimize(ExecutorEvaluator(raises, thread, retries=2), levels(2), n_trials=2, seed=0, max_failures=None)
    assert sorted(calls) == [0, 0, 0, 1, 1, 1]


def test_what_is_not_finite_is_a_failure_with_a_reason_and_not_tried_again(tmp_path):
    study = Study(levels(6), seed=0, journal=tmp_path / "run.jsonl")
    says = {0: "RuntimeError: no licence", 3: "its value is nan", 5: "its value is inf"}
    for k in says:
        study.enqueue({"k": k})
    with ThreadPoolExecutor(2) as threads, pytest.warns(RuntimeWarning, match="no licence"):
        study.optimize(ExecutorEvaluator(objectives.answers_oddly, threads), 3, max_failures=None)
    reasons = {study.trials[e["trial"]].params["k"]: e["reason"] for e in events(tmp_path / "run.jsonl", "failed")}
    assert reasons.keys() == says.keys()
    assert all(text in reasons[k] for k, text in says.items())


@pytest.mark.parametrize(("k", "text"), [(1, "None"), (2, "'high'"), (4, "(1+2j)")])
def test_what_is_no_number_ends_the_run_and_is_tried_again_by_the_next(k, text):
    study = Study(levels(6), seed=0)
    study.enqueue({"k": k})
    with ThreadPoolExecutor(2) as threads, pytest.raises(ObjectiveError, match=re.escape(f"but returned {text}")):
        study.optimize(ExecutorEvaluator(objectives.answers_oddly, threads, workers=1), 1, max_failures=None)
    assert [trial.params for trial in study.pending] == [{"k": k}]


@pytest.mark.parametrize(("lost_retries", "says"), [(0, "the worker process died"), (1, r"died \(attempt 2\)")])
def test_a_process_pool_that_breaks_is_replaced_and_the_innocent_are_found(lost_retries, says):
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        evaluator = ExecutorEvaluator(objectives.dies_at_3, pool, lost_retries=lost_retries)
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


@pytest.mark.parametrize("wrapped", [False, True])
def test_a_run_goes_on_without_a_worker_that_hangs(tmp_path, wrapped):
    end = threading.Event()

    def hangs_at_3(params):
        if params["k"] == 3:
            end.wait(60)
        return params["k"]

    with ThreadPoolExecutor(2) as threads:
        evaluator = ExecutorEvaluator(hangs_at_3, threads, timeout=0.4)
        began = time.monotonic()
        with pytest.warns(RuntimeWarning, match="timed out"):
            minimize(Timed(evaluator, tmp_path / "times") if wrapped else evaluator, levels(8), 8, batch_size=2, seed=0)
        seconds = time.monotonic() - began
        end.set()
    assert seconds < 30


@pytest.mark.slow
def test_a_call_that_has_timed_out_and_then_breaks_the_pool_is_suspected_beside_the_one_that_runs():
    with ProcessPoolExecutor(2) as pool:
        evaluator = ExecutorEvaluator(objectives.dies_late_at_0, pool, timeout=0.5)
        evaluator.submit(Trial(0, {"k": 0}))
        assert evaluator.collect()[0].outcome.reason == "timed out after 0.5 s"
        evaluator.timeout = 60.0
        evaluator.submit(Trial(1, {"k": 1}))
        found = []
        while evaluator.outstanding:
            found += evaluator.collect()
        evaluator.close()
    assert [one.outcome.values for one in found] == [(1.0,)]


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
        minimize(ProcessEvaluator(objective, workers=1, timeout=1.0), levels(2), n_trials=1, max_failures=None)
    assert is_gone(int((tmp_path / "grandchild").read_text()))


def test_the_progress_bar_shows_failures(capsys):
    def fails(params):
        raise ValueError

    with pytest.warns(RuntimeWarning, match="ValueError"):
        Study(PLANE).optimize(SerialEvaluator(fails), 3, progress=True, max_failures=None)
    assert "failed=3" in capsys.readouterr().err


def _dies():
    raise RuntimeError("no GPU")


def test_an_engine_that_is_broken_for_good_ends_the_run():
    with ThreadPoolExecutor(1, initializer=_dies) as threads:
        evaluator = ExecutorEvaluator(objectives.bowl, threads)
        with pytest.raises(EvaluatorError, match="ThreadPoolExecutor is broken"):
            minimize(evaluator, PLANE, n_trials=3)


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


def test_ctrl_c_while_waiting_leaves_no_process(tmp_path, monkeypatch):
    said = io.StringIO()  # capsys, which reads and then empties, may miss what another thread writes
    monkeypatch.setattr(sys, "stderr", said)

    def interrupt_when_both_run():
        while len(list(tmp_path.iterdir())) < 2:
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGINT)
        while "once more ends it at once" not in said.getvalue():  # two before it has heard one are one
            time.sleep(0.05)
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
    path = os.pathsep.join([str(ROOT / "tests"), str(ROOT)])
    run = forked.Popen([sys.executable, str(script)], env={**os.environ, "PYTHONPATH": path})
    while not (tmp_path / "4").exists() or not (tmp_path / "4").read_text().strip():
        assert run.poll() is None
        time.sleep(0.05)
    run.kill()
    run.wait()
    assert is_gone(int((tmp_path / "4").read_text()))


# regression: each of these was wrong once
@pytest.mark.slow
def test_an_executor_of_a_pool_that_broke_goes_on_in_the_next_run(tmp_path):
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        evaluator = db.ExecutorEvaluator(partial(dies_once, tmp_path / "died"), pool, retries=1)
        study = db.Study(SQUARE, seed=0)
        for _ in range(2):
            study.optimize(evaluator, 2)
    assert [trial.status.name for trial in study.trials] == ["COMPLETE"] * 4


@pytest.mark.slow
def test_the_pool_in_its_place_takes_as_few_tasks_a_process(tmp_path):
    with ProcessPoolExecutor(1, mp_context=get_context("spawn"), max_tasks_per_child=1) as pool:
        evaluator = db.ExecutorEvaluator(partial(own_process, tmp_path / "died"), pool)
        trials = db.minimize(evaluator, SQUARE, 4, seed=0).study.trials
    values = [trial.value for trial in trials if trial.value is not None]
    assert len(set(values)) == len(values) == 4  # what was lost is tried again


def dies_once(mark, params):
    if not mark.exists():
        mark.touch()
        os._exit(1)
    return params["x"]


def own_process(mark, params):
    dies_once(mark, params)
    return os.getpid()


def test_an_executor_that_was_shut_down_is_named(tmp_path):
    threads = ThreadPoolExecutor(1)
    threads.shutdown()
    with pytest.raises(EvaluatorError, match="ThreadPoolExecutor takes no more trials"):
        minimize(ExecutorEvaluator(lambda params: params["x"], threads), LINE, 3)


def statuses(study):
    return [trial.status for trial in study.trials]


@pytest.mark.usefixtures("no_process_is_left")
def test_a_worker_that_comes_later_and_cannot_load_the_objective_ends_the_run(tmp_path, monkeypatch):
    module = tmp_path / "edited_meanwhile.py"
    module.write_text('import time\ndef f(p):\n    time.sleep(60 * (p["x"] > 0.9))\n    return p["x"]\n')
    monkeypatch.syspath_prepend(tmp_path)
    from edited_meanwhile import f

    def edit(study, trial):
        module.write_text('def f(p):\n    return p["x"\n')

    study = Study(LINE, seed=0)
    for x in (0.1, 0.95, 0.2):
        study.enqueue({"x": x})
    evaluator = ProcessEvaluator(f, workers=1, timeout=0.5)
    with pytest.warns(RuntimeWarning, match="timed out"), pytest.raises(SettingError, match="import the objective"):
        study.optimize(evaluator, 12, callbacks=[edit])
    assert statuses(study)[:3] == [Status.COMPLETE, Status.FAILED, Status.PENDING]
    assert Status.FAILED not in statuses(study)[2:]
    module.write_text('def f(p):\n    return p["x"]\n')
    study.optimize(evaluator, 0)  # what was left
    assert Status.PENDING not in statuses(study)
