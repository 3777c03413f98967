"""`ProcessEvaluator`: processes of its own, and a GPU for each."""

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from functools import partial

import pytest

import learning
import objectives
from deepbore import Categorical, MedianPruner, ProcessEvaluator, Real, Study, minimize
from deepbore.errors import SettingError
from plane import LINE
from processes import ENV
from workers import PLANE

pytestmark = pytest.mark.usefixtures("no_process_is_left")


@pytest.mark.slow
def test_own_processes_are_reused_and_differ_from_this_one():
    study = Study(PLANE, seed=0)
    evaluator = ProcessEvaluator(objectives.pid, workers=2)
    first, second = (set(study.optimize(evaluator, 6).values[-6:]) for _ in range(2))
    assert len(study.trials) == 12
    assert max(len(first), len(second)) <= 2
    assert not {os.getpid()} & first
    assert not first & second  # each run ends its processes


def test_each_worker_sees_a_gpu_of_its_own(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "7")
    study = Study(PLANE, seed=0)
    evaluator = ProcessEvaluator(objectives.gpu, workers=2, devices=[3, "4"])
    values = study.optimize(evaluator, 8, batch_size=2).values
    assert set(values) == {3.0, 4.0}
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "7"
    assert set(study.optimize(ProcessEvaluator(objectives.gpu, workers=1), 1).values[-1:]) == {7.0}


def test_a_worker_that_takes_the_place_of_another_has_its_gpu(tmp_path, caplog):
    evaluator = ProcessEvaluator(partial(objectives.gpu_after_a_crash, folder=tmp_path), workers=1, devices=[5])
    result = Study(PLANE, seed=0).optimize(evaluator, 4)
    assert [trial.value for trial in result.study.trials] == [5.0] * 4  # lost is not failed
    assert caplog.text.count("the worker process died") == 2


@pytest.mark.parametrize("devices", [[], "0,1", 0, [True], [0.5], [None]])
def test_what_is_no_list_of_gpus_is_refused(devices):
    with pytest.raises(SettingError, match="devices must be a list of GPUs"):
        ProcessEvaluator(objectives.gpu, devices=devices)


def test_worker_processes_report_and_are_told_to_end():
    study = Study(LINE, pruner=MedianPruner(), n_initial=12)
    study.optimize(ProcessEvaluator(learning.train, workers=2), 12, progress=False)
    assert study.observations.ledger.statistics.n_pruned
    assert all(len(trial.reports) in range(1, learning.EPOCHS + 1) for trial in study.trials)
    for trial in study.trials:
        assert trial.reports == {step: learning.loss(trial.params, step) for step in trial.reports}


# regression: an AssertionError of multiprocessing said "daemonic processes are not allowed to have children"
def test_in_a_daemonic_process_workers_are_refused(monkeypatch):
    made = ProcessEvaluator(objectives.bowl, workers=2)
    monkeypatch.setitem(multiprocessing.current_process()._config, "daemon", True)
    for call in (
        lambda: ProcessEvaluator(objectives.bowl, workers=2),
        lambda: minimize(objectives.bowl, PLANE, 2, workers=2, progress=False),
        made.open,
    ):
        with pytest.raises(SettingError, match="Give workers=1"):
            call()
    assert len(minimize(objectives.bowl, PLANE, 2, workers=1, progress=False).values) == 2


# regression: the standard library takes its default start method for good with the first process of any context
@pytest.mark.parametrize("before", [None, "spawn", "fork"])
def test_a_program_may_still_choose_its_start_method(before):
    had = multiprocessing.get_start_method(allow_none=True)
    if before not in (None, *multiprocessing.get_all_start_methods()):
        pytest.skip("this system has no such method")
    try:
        multiprocessing.set_start_method(before, force=True)
        evaluator = ProcessEvaluator(objectives.bowl, workers=1)
        evaluator.open()
        evaluator.close()
        assert multiprocessing.get_start_method(allow_none=True) == before
    finally:
        multiprocessing.set_start_method(had, force=True)


AS_WINDOWS = """
import os
if hasattr(os, "setpgrp"):
    del os.setpgrp, os.killpg
"""
SLOW = """
import sys, time, deepbore

def slow(params):
    open(sys.argv[1] + "/began", "a").close()
    time.sleep(3)
    return params["x"]

if __name__ == "__main__":
    space, journal = {"x": deepbore.Real(0, 1)}, sys.argv[1] + "/run.jsonl"
    deepbore.minimize(slow, space, 8, workers=2, progress=False, journal=journal)
"""


@pytest.mark.slow
def test_running_trials_outlive_a_ctrl_c_that_reaches_their_workers(tmp_path):
    (tmp_path / "sitecustomize.py").write_text(AS_WINDOWS)
    (tmp_path / "slow.py").write_text(SLOW)
    paths = os.pathsep.join([str(tmp_path), ENV["PYTHONPATH"]])
    command = [sys.executable, str(tmp_path / "slow.py"), str(tmp_path)]
    run = subprocess.Popen(command, env=ENV | {"PYTHONPATH": paths}, start_new_session=True, stderr=subprocess.PIPE)
    deadline = time.monotonic() + 120
    while not (tmp_path / "began").exists() and run.poll() is None and time.monotonic() < deadline:
        time.sleep(0.1)
    time.sleep(1.0)
    os.killpg(run.pid, signal.SIGINT)  # as a console does: to all processes in it
    said = run.communicate(timeout=120)[1]
    trials = Study.load(tmp_path / "run.jsonl").trials
    assert trials, said
    assert {trial.status.name for trial in trials} == {"COMPLETE"}, said


def script(folder):
    """How a script ended that is started from its folder."""
    command = [sys.executable, "script.py"]
    return subprocess.run(command, check=False, cwd=folder, env=ENV, capture_output=True, text=True, timeout=300)


UNGUARDED = """
import deepbore

def f(params):
    return params["x"]

{before}deepbore.minimize(f, {{"x": deepbore.Real(0, 1)}}, 2, workers=2, progress=False)
"""


@pytest.mark.slow
@pytest.mark.parametrize("before", ["", "print(__name__)\n", "if True:\n    ", "for _ in range(1):\n    "])
def test_a_script_without_a_guard_is_one_message_that_names_it(tmp_path, before):
    (tmp_path / "script.py").write_text(UNGUARDED.format(before=before))
    done = script(tmp_path)
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last.startswith("deepbore.errors.SettingError: worker processes import the script")
    assert '`if __name__ == "__main__":`' in last
    assert done.stderr.count("Traceback") == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    "guarded",
    [
        'if __name__ == "__main__":\n    ',
        'if "__main__" == __name__:\n    ',
        'main = __name__ == "__main__"\nmain and ',
    ],
)
def test_a_script_with_a_guard_of_any_form_runs(tmp_path, guarded):
    (tmp_path / "script.py").write_text(UNGUARDED.format(before=guarded))
    done = script(tmp_path)
    assert done.returncode == 0, done.stderr


NOTEBOOK = """
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
import deepbore

class Layer:
    def __init__(self, n):
        self.n = n

def double(x):
    return 2 * x

def train(params):
    return params["layer"].n + params["x"] + params["act"](1) + params["size"][0]

space = {
    "layer": deepbore.Categorical({"a": Layer(1), "b": Layer(2)}),
    "act": deepbore.Categorical({"double": double, "abs": abs, "same": lambda x: x}),
    "size": deepbore.Categorical({"one": [1], "two": [2, 2]}),
    "x": deepbore.Real(0, 1),
}
settings = {"n_trials": 6, "seed": 0, "progress": False}
expected = list(deepbore.minimize(train, space, **settings).values)
assert list(deepbore.minimize(train, space, workers=1, **settings).values) == expected
with ProcessPoolExecutor(1, get_context("spawn")) as pool:
    assert list(deepbore.minimize(deepbore.ExecutorEvaluator(train, pool), space, **settings).values) == expected
"""


def test_choices_that_a_notebook_has_defined_reach_workers():
    done = subprocess.run([sys.executable, "-c", NOTEBOOK], capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stderr


def test_choices_that_can_not_be_sent_are_refused_with_the_way_out():
    space = {"lock": Categorical({"a": threading.Lock(), "b": threading.Lock()}), "x": Real(0, 1)}
    with pytest.raises(SettingError, match=r"choices that are objects.*can't be pickled.*Give names"):
        minimize(ProcessEvaluator(objectives.pid, workers=1), space, 3, seed=0, progress=False)
