"""`ProcessEvaluator`: processes of its own, and a GPU for each."""

import multiprocessing
import os
from functools import partial

import pytest

import learning
import objectives
from deepbore import MedianPruner, ProcessEvaluator, Study, minimize
from deepbore.errors import SettingError
from plane import LINE
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
    assert study.observations.n_pruned
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
