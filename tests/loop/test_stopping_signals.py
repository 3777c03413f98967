"""Ctrl-C, SIGTERM and other processes: a run ends after its running trials, or at once, and nothing is lost."""

import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

import forked
from deepbore import (
    DeepEnsemble,
    ExecutorEvaluator,
    ProcessEvaluator,
    RandomSearch,
    Real,
    SearchSpace,
    Study,
    TargetReached,
    Training,
    minimize,
)
from deepbore.errors import JournalError
from deepbore.loop import lightning
from deepbore.loop.stopping import Interrupts
from deepbore.study import DistributedStudy, StopRule
from objectives import bowl
from plane import DESIGN, LINE, PLANE, SQUARE
from processes import ROOT, fork

ENV = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "tests")]), "OMP_NUM_THREADS": "1"}


def pressing(times, *signals):
    """An objective that presses so many times in its fourth call."""

    def objective(params):
        calls.append(params)
        if len(calls) == 4:
            for number in signals * times:
                signal.raise_signal(number)
        return bowl(params)

    calls: list[dict] = []
    return objective, calls


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize(("times", "told"), [(1, 4), (2, 3)])
def test_once_ends_after_the_running_trial_and_twice_at_once(number, times, told, capfd):
    objective, calls = pressing(times, number)
    study, before = Study(PLANE, n_initial=100), signal.getsignal(number)
    with pytest.raises(KeyboardInterrupt):
        study.optimize(objective, 20, batch_size=6)
    assert (len(calls), study.observations.ledger.statistics.n_complete) == (4, told)
    assert signal.getsignal(number) is before
    assert "once more ends it at once" in capfd.readouterr().err
    study.optimize(bowl, 0)  # what was not told is evaluated first
    assert (study.observations.ledger.statistics.n_complete, len(study.trials)) == (6, 6)


def test_once_waits_for_the_running_trials_also_while_the_classifier_proposes():
    is_pressed = threading.Event()

    class Presses(StopRule):
        def predicts_little_gain(self, state, points):
            signal.raise_signal(signal.SIGINT)
            is_pressed.set()
            return False

    def objective(params):
        calls.append(params)
        if len(calls) == 4:
            is_pressed.wait(10)
        return bowl(params)

    calls: list[dict] = []
    study = Study(PLANE, n_initial=4)
    with ThreadPoolExecutor(2) as pool, pytest.raises(KeyboardInterrupt):
        study.optimize(ExecutorEvaluator(objective, pool), 20, stop_when=Presses())
    assert [trial.status.name for trial in study.trials] == ["COMPLETE"] * 4
    assert is_pressed.is_set()


def test_handlers_of_ones_own_stay_and_are_called():
    heard = []
    before = signal.signal(signal.SIGINT, lambda *_: heard.append(1))
    try:
        objective, calls = pressing(1, signal.SIGINT)
        minimize(objective, PLANE, 6, n_initial=100)
        assert (heard, len(calls)) == ([1], 6)
    finally:
        signal.signal(signal.SIGINT, before)


def test_other_threads_leave_handlers_alone():
    seen = []

    def objective(params):
        seen.append(signal.getsignal(signal.SIGINT))
        return bowl(params)

    thread = threading.Thread(target=minimize, args=(objective, PLANE, 2), kwargs={"n_initial": 100})
    thread.start()
    thread.join()
    assert seen == [signal.default_int_handler] * 2


def test_a_forked_process_hears_signals_as_ever():
    with Interrupts() as interrupts, interrupts.gently():
        child = fork(partial(signal.raise_signal, signal.SIGTERM))
        _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status)
    assert os.WTERMSIG(status) == signal.SIGTERM
    assert not interrupts.pressed


SCRIPT = """
import pathlib, sys, time
import deepbore

def objective(params):
    pathlib.Path("calls").open("a").write("x")
    while not pathlib.Path("go").exists():
        time.sleep(0.02)
    return params["x"] ** 2

if __name__ == "__main__":
    space = deepbore.SearchSpace({"x": deepbore.Real(-1, 1)})
    run = {"journal": "run.jsonl", "if_exists": "load", "n_initial": 50}
    workers = int(sys.argv[1])
    evaluator = deepbore.ProcessEvaluator(objective, workers) if workers else objective
    try:
        print(len(deepbore.minimize(evaluator, space, 12, **run).values))
    except KeyboardInterrupt:
        print("interrupted")
"""


def started(tmp_path, workers):
    """A run in a process of its own, whose first trials go on until there is a file "go"."""
    (tmp_path / "run.py").write_text(SCRIPT)
    command = [sys.executable, "run.py", str(workers)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = forked.Popen(command, cwd=tmp_path, env=ENV, text=True, start_new_session=True, **pipes)
    deadline = time.monotonic() + 240
    while not (tmp_path / "calls").exists() or len((tmp_path / "calls").read_text()) < max(1, workers):
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return process


@pytest.mark.slow
@pytest.mark.parametrize(("workers", "number"), [(0, signal.SIGINT), (0, signal.SIGTERM), (2, signal.SIGTERM)])
def test_a_run_that_a_cluster_ends_keeps_its_running_trials_and_goes_on(tmp_path, workers, number):
    process = started(tmp_path, workers)
    children = subprocess.run(["pgrep", "-P", str(process.pid)], capture_output=True, text=True, check=False)
    for pid in [process.pid, *(map(int, children.stdout.split()) if number == signal.SIGTERM else ())]:
        os.kill(pid, number)  # as a cluster does: all processes of the job
    time.sleep(0.5)
    (tmp_path / "go").touch()
    shown, errors = process.communicate(timeout=120)
    assert shown == "interrupted\n", errors
    path, space = tmp_path / "run.jsonl", SearchSpace({"x": Real(-1, 1)})
    assert [trial.status.name for trial in Study.load(path).trials] == ["COMPLETE"] * max(1, workers)
    again = minimize(lambda params: params["x"] ** 2, space, 12, journal=path, if_exists="load", n_initial=50)
    assert again.study.observations.ledger.statistics.n_complete == 12


@pytest.mark.slow
def test_several_processes_on_one_journal_are_refused_with_what_to_use_instead(tmp_path):
    process = started(tmp_path, 0)
    path = tmp_path / "run.jsonl"
    kept = path.read_bytes()
    words = (
        r"ProcessEvaluator\(objective, workers=n\), ExecutorEvaluator, or, on several machines, DDP or DistributedStudy"
    )
    space = SearchSpace({"x": Real(-1, 1)})
    with pytest.raises(JournalError, match=words):
        minimize(lambda params: 1.0, space, 12, journal=path, if_exists="load")
    with pytest.raises(JournalError, match=words):
        Study.load(path).ask()
    assert path.read_bytes() == kept
    (tmp_path / "go").touch()
    assert process.communicate(timeout=120)[0] == "12\n"


def test_a_forked_copy_of_a_study_is_refused_with_what_to_use_instead(tmp_path):
    study = Study(PLANE, journal=tmp_path / "run.jsonl", n_initial=100)
    (trial,) = study.ask()

    def tells():
        with pytest.raises(JournalError) as refused:
            study.tell(trial, 1.0)
        (tmp_path / "refused").write_text(str(refused.value))

    os.waitpid(fork(tells), 0)
    assert "ProcessEvaluator(objective, workers=n)" in (tmp_path / "refused").read_text()
    study.tell(trial, 2.0)
    study.close()
    assert Study.load(tmp_path / "run.jsonl").best_trial.value == 2.0


def test_a_worker_that_hears_ctrl_c_too_leaves_its_trial_pending():
    def interrupted(params):
        raise KeyboardInterrupt

    study = Study(PLANE, n_initial=100)
    with ThreadPoolExecutor(1) as pool, pytest.raises(KeyboardInterrupt):
        study.optimize(ExecutorEvaluator(interrupted, pool), 3)
    assert [trial.status.name for trial in study.trials] == ["PENDING"]


def test_a_worker_leaves_sigterm_to_its_parent(tmp_path):
    import objectives

    evaluator = ProcessEvaluator(objectives.signals_itself, 1)
    assert minimize(evaluator, SearchSpace({"k": Real(0, 1)}), 1).best_value == 1.0


POOL = """
import os, subprocess, sys, time
from concurrent.futures import ProcessPoolExecutor
from deepbore import ExecutorEvaluator, Real, SearchSpace, Study

def objective(params):
    print("begun", flush=True)
    subprocess.run([sys.executable, "-c", "import time; time.sleep(5)"])
    return params["x"]

if __name__ == "__main__":
    pool = ProcessPoolExecutor(3)
    list(pool.map(time.sleep, [0.5] * 3))  # all three are there, and two will be idle
    try:
        Study(SearchSpace({"x": Real(0, 1)}), journal="run.jsonl").optimize(ExecutorEvaluator(objective, pool), 1)
    except KeyboardInterrupt:
        os._exit(130)  # a pool whose idle workers were interrupted may never shut down
"""


@pytest.mark.slow
def test_ctrl_c_that_reaches_a_process_pool_makes_no_failure_of_a_running_trial(tmp_path):
    (tmp_path / "program.py").write_text(POOL)
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
    program = [sys.executable, "program.py"]
    with forked.Popen(program, cwd=tmp_path, env=ENV, start_new_session=True, **pipes) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        time.sleep(0.5)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does
        process.wait(timeout=60)
    assert process.returncode == 130
    assert [trial.status.name for trial in Study.load(tmp_path / "run.jsonl").trials] == ["PENDING"]


# regression: Ctrl-C is SystemExit
def test_a10_except_keyboard_interrupt_runs():
    def pressed(params):
        signal.raise_signal(signal.SIGINT)
        return bowl(params)

    try:
        minimize(pressed, PLANE, 9, n_initial=DESIGN)
    except KeyboardInterrupt:
        return
    pytest.fail("no KeyboardInterrupt")


LOWEST = 0.3


def valley(params):
    return (params["x"] - LOWEST) ** 2


def banana(params):
    return (params["y"] - params["x"] ** 2) ** 2 / 10 + (params["x"] - LOWEST) ** 2


# regression: each of these was wrong once
def test_an_error_while_an_interrupt_is_handled_is_that_error():
    def fails(study, trial):
        raise RuntimeError("the database is down")

    study = Study(LINE, n_initial=2)
    try:
        raise KeyboardInterrupt
    except KeyboardInterrupt:  # finish what is pending
        with pytest.raises(RuntimeError, match="the database is down"):
            study.optimize(valley, 3, callbacks=[fails])


def test_ctrl_c_while_another_thread_has_the_study_is_an_interrupt():
    study = Study(SQUARE, seed=0, n_initial=5)
    held = threading.Event()

    def holds():
        with study._lock:  # as a call that takes long does
            held.set()
            time.sleep(0.6)

    def objective(params):
        if len(study.trials) == 3:
            threading.Thread(target=holds).start()
            held.wait()
            for timer in timers:
                timer.start()
        return banana(params)

    timers = [threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT)) for seconds in (0.1, 0.3)]
    with pytest.raises(KeyboardInterrupt):  # noqa: PT012  # the second may come when the run has ended
        try:
            study.optimize(objective, 15)
        finally:
            for timer in timers:
                timer.join()
    assert len(study.ask()) == 1


@pytest.mark.parametrize(
    "end", [{"timeout": 0.2}, {"callbacks": [lambda study, _: study.stop()]}, {"stop_when": TargetReached(2.0)}]
)
def test_nothing_begins_after_a_parallel_run_is_over(end):
    began = []

    def objective(params):
        began.append(time.monotonic())
        time.sleep(0.3)
        return params["x"]

    with ThreadPoolExecutor(1) as pool:
        Study(LINE, seed=0).optimize(ExecutorEvaluator(objective, pool), 10, batch_size=5, **end)
    assert len(began) == 1


def test_an_interrupt_that_lightning_stumbles_over_is_an_interrupt():
    def stumbling():
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt:
            raise RuntimeError("Please call iter(combined_loader) first.")  # noqa: B904  # as Lightning does

    with pytest.raises(KeyboardInterrupt), lightning._interruptible():
        stumbling()
    with pytest.raises(RuntimeError, match="mine"), lightning._interruptible():
        raise RuntimeError("mine")


# --- SIGTERM at the doors that train networks by a Trainer -----------------------------------------------------------


class Terminated(RandomSearch):
    """Gets SIGTERM while it searches."""

    def ranked(self, search, q):
        os.kill(os.getpid(), signal.SIGTERM)
        return super().ranked(search, q)


class Overheard(DeepEnsemble):
    """Gets SIGTERM while it is trained."""

    def training_step(self, batch, batch_idx=0):
        os.kill(os.getpid(), signal.SIGTERM)
        return super().training_step(batch, batch_idx)


def learned(**parts):
    study = Study(LINE, seed=0, n_initial=3, **parts)
    study.add({"x": [0.1, 0.4, 0.8]}, [3.0, 1.0, 2.0])
    return study


def small(kind=DeepEnsemble, **settings):
    return kind(members=1, hidden=(4,), training=Training(steps=2), **settings)


def sampled():
    import optuna

    from deepbore.integrations.optuna import DeepBoreSampler

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    sampler = DeepBoreSampler(classifier=lambda: small(Overheard))
    optuna.create_study(sampler=sampler).optimize(lambda trial: trial.suggest_float("x", 0, 1), 14)


def distributed():
    study = DistributedStudy(LINE, n_initial=3, classifier=small(Overheard))
    for trial in study.ask(3):
        study.tell({trial.id: trial.params["x"]})
    study.ask()


DOORS = {
    "ask, searching": lambda: learned(classifier=small(), candidates=Terminated(10)).ask(),
    "ask, training": lambda: learned(classifier=small(Overheard)).ask(),
    "fit": lambda: learned(classifier=small(Overheard)).fit(2),
    "recommended": lambda: learned(classifier=small(Overheard)).recommended,
    "DistributedStudy": distributed,
    "sampler": sampled,
}


def ending_of(act):
    """How a forked process ends that does this; it has no handlers but Python's."""
    return os.waitstatus_to_exitcode(os.waitpid(fork(act), 0)[1])


@pytest.mark.parametrize("door", DOORS)
def test_sigterm_ends_a_program_while_a_network_is_trained(door):
    assert ending_of(DOORS[door]) == -signal.SIGTERM


@pytest.mark.parametrize("door", ["ask, searching", "ask, training", "fit"])
def test_sigterm_goes_to_the_programs_own_handler_while_a_network_is_trained(door):
    heard = []
    before = signal.signal(signal.SIGTERM, lambda *_: heard.append(1))
    try:
        handler = signal.getsignal(signal.SIGTERM)
        DOORS[door]()
        assert set(heard) == {1}
        assert signal.getsignal(signal.SIGTERM) is handler
    finally:
        signal.signal(signal.SIGTERM, before)
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


def test_a_handler_that_raises_while_a_network_is_trained_ends_the_call_by_that_error():
    def ends(*_):
        raise SystemExit(7)

    before = signal.signal(signal.SIGTERM, ends)
    try:
        study = learned(classifier=small(Overheard))
        with pytest.raises(SystemExit) as ended:
            study.ask()
        assert ended.value.code == 7
        assert len(study.trials) == 3
    finally:
        signal.signal(signal.SIGTERM, before)


def test_sigterm_that_a_program_ignores_is_ignored_while_a_network_is_trained():
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        assert len(learned(classifier=small(Overheard)).ask()) == 1
        assert signal.getsignal(signal.SIGTERM) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGTERM, before)
