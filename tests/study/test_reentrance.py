"""Calls that come within another call of the same thread, as of signal handlers, finalizers and callbacks."""

import gc
import os
import signal
import sys
import threading
from contextlib import contextmanager

import pytest
import torch
from lightning.pytorch import Callback

from deepbore import RandomSearch, Study
from deepbore.compute.torch_state import clean_torch_state
from deepbore.errors import StudyRunning
from plane import LINE, PLANE
from trainers import quiet_trainer

ACTS = {  # what comes in between -> whether it was done
    "annotate": (
        lambda study: study.annotate(0, {"preempted": True}),
        lambda study: study.trials[0].attributes == {"preempted": True},
    ),
    "tell": (lambda study: study.tell(1, 0.5), lambda study: study.trials[1].value == 0.5),
    "fail": (lambda study: study.tell(1, failed=True), lambda study: study.trials[1].status.name == "FAILED"),
    "add": (lambda study: study.add({"x": 0.9}, 3.0), lambda study: study.trials[2].value == 3.0),
    "enqueue": (lambda study: study.enqueue({"x": 0.7}), lambda study: study.ask()[0].params == {"x": 0.7}),
    "withdraw": (lambda study: study.withdraw(1), lambda study: study.trials[1].status.name == "WITHDRAWN"),
    "fix": (lambda study: study.fix({"x": 0.2}), lambda study: study.space.fixed == {"x": 0.2}),
}


@pytest.fixture
def study(tmp_path):
    study = Study(LINE, seed=0, journal=tmp_path / "run.jsonl")
    study.ask(2)
    return study


@contextmanager
def handling(act):
    """Within, SIGUSR1 is handled by an act."""
    before = signal.signal(signal.SIGUSR1, lambda *_: act())
    try:
        yield
    finally:
        signal.signal(signal.SIGUSR1, before)


@pytest.fixture
def during_fsync(monkeypatch):
    """Has something come in between while the disk is waited for, once."""

    def patch(act):
        def waits(file):
            monkeypatch.setattr(os, "fsync", fsync)
            act()
            return fsync(file)

        fsync = os.fsync
        monkeypatch.setattr(os, "fsync", waits)

    return patch


def check(study, *done):
    """The values that were told, and what came in between, are in memory and in the journal; writing goes on."""
    for each in done:
        assert each(study)
    study.close()
    again = Study.load(study.observations.journal.path)
    assert again.trials == study.trials
    study.tell(study.ask()[0], 7.0)


@pytest.mark.parametrize("name", ACTS)
def test_what_a_signal_handler_does_while_tell_writes_is_done_after_it(study, during_fsync, name):
    act, is_done = ACTS[name]
    during_fsync(lambda: signal.raise_signal(signal.SIGUSR1))
    with handling(lambda: act(study)):
        study.tell(0, 0.25)
    check(study, lambda study: study.trials[0].value == 0.25, is_done)


@pytest.mark.parametrize("name", ["annotate", "tell", "enqueue"])
def test_what_a_signal_handler_does_while_ask_searches_is_done_after_it(tmp_path, monkeypatch, name):
    def ranked(self, search, q):
        signal.raise_signal(signal.SIGUSR1)
        monkeypatch.undo()
        return self.ranked(search, q)

    act, is_done = ACTS[name]
    monkeypatch.setattr(RandomSearch, "ranked", ranked)
    study = Study(LINE, seed=0, journal=tmp_path / "run.jsonl", n_initial=2, candidates=RandomSearch(50))
    study.ask(2)
    study.add({"x": [0.1, 0.5, 0.8]}, [1.0, 2.0, 3.0])
    with handling(lambda: act(study)):
        (asked,) = study.ask()
    assert asked.id == 5
    check(study, is_done)


def test_what_is_asked_within_another_call_is_refused_and_leaves_both_or_none(study, during_fsync):
    during_fsync(lambda: signal.raise_signal(signal.SIGUSR1))
    with handling(study.ask), pytest.raises(StudyRunning, match="`ask` was called, as by a signal handler"):
        study.tell(0, 0.25)
    assert len(study.trials) == 2
    check(study, lambda study: study.trials[0].value is None)
    study.tell(0, 0.25)
    assert study.trials[0].value == 0.25


def test_a_finalizer_may_annotate_whenever_it_comes(study, during_fsync):
    class Worker:
        def __del__(self):
            study.annotate(0, {"worker": "closed"})

    worker = Worker()
    worker.itself = worker  # so that the collector finds it
    del worker
    during_fsync(gc.collect)
    study.tell(0, 0.25)
    check(study, lambda study: (study.trials[0].value, study.trials[0].attributes) == (0.25, {"worker": "closed"}))


def test_a_signal_handler_may_close_the_study_while_tell_writes(study, during_fsync):
    during_fsync(lambda: signal.raise_signal(signal.SIGUSR1))
    with handling(study.close):
        study.tell(0, 0.25)
    other = Study.load(study.observations.journal.path)
    other.tell(1, 0.5)  # the lock is free
    assert [trial.value for trial in other.trials] == [0.25, 0.5]


def test_a_handler_that_ends_the_program_leaves_both_or_none(study, during_fsync):
    def ends():
        study.annotate(1, {"ended": True})
        study.close()
        sys.exit(3)

    during_fsync(lambda: signal.raise_signal(signal.SIGUSR1))
    with handling(ends), pytest.raises(SystemExit):
        study.tell(0, 0.25)
    check(study, lambda study: (study.trials[0].value, study.trials[1].attributes) == (None, {"ended": True}))


def test_what_is_refused_later_is_logged(study, during_fsync, caplog):
    during_fsync(lambda: signal.raise_signal(signal.SIGUSR1))
    with handling(lambda: study.tell(0, 0.5)):
        study.tell(0, 0.25)
    assert study.trials[0].value == 0.25
    assert "`tell` was called within another call of the study, and refused: a trial is told once" in caplog.text


def test_a_handler_may_come_at_any_line(tmp_path):
    at, hit = 0, True
    while hit:
        at, hit = at + 13, False
        left = at
        study = Study(LINE, seed=0, journal=tmp_path / f"{at}.jsonl")
        study.ask(2)

        def trace(frame, event, arg):
            nonlocal left, hit
            if "/deepbore/" not in frame.f_code.co_filename or frame.f_code.co_filename.endswith("torch_state.py"):
                return None
            left -= event == "line"
            if event == "line" and left == 0:
                hit = True
                sys.settrace(None)
                study.annotate(0, {"a": 1})  # noqa: B023  # called at once
                study.tell(1, 0.5)  # noqa: B023
            return trace

        sys.settrace(trace)
        try:
            study.tell(0, 0.25)
        finally:
            sys.settrace(None)
        if hit:
            check(study, told_twice)
    assert at > 100


def told_twice(study):
    return [trial.value for trial in study.trials[:2]] == [0.25, 0.5] and study.trials[0].attributes == {"a": 1}


def test_callbacks_of_a_run_change_the_study_at_once(tmp_path):
    def notes(study, trial):
        study.annotate(trial, {"seen": trial.id})
        seen.append(study.trials[trial.id].attributes)

    seen = []
    Study(PLANE, seed=0, journal=tmp_path / "run.jsonl").optimize(lambda p: p["x"], 3, callbacks=[notes])
    assert seen == [{"seen": 0}, {"seen": 1}, {"seen": 2}]


def test_callbacks_of_a_trainer_enqueue_what_comes_next(tmp_path):
    class Enqueues(Callback):
        def on_train_epoch_start(self, trainer, module):
            if trainer.current_epoch == 0:
                study.enqueue({"x": 0.125, "y": 0.5})
                study.annotate(0, {"epoch": 0})

    study = Study(PLANE, seed=0, n_initial=3, journal=tmp_path / "run.jsonl")
    study.optimize(lambda p: p["x"], 6, trainer=quiet_trainer(callbacks=[Enqueues()]))
    assert {"x": 0.125, "y": 0.5} in [trial.params for trial in study.trials[3:5]]
    assert study.trials[0].attributes == {"epoch": 0}


def test_a_thread_that_closes_the_journal_of_a_run_takes_nothing_from_it(tmp_path):
    def closes(study, trial):
        thread = threading.Thread(target=study.close)
        thread.start()
        thread.join()

    study = Study(PLANE, seed=0, journal=tmp_path / "run.jsonl")
    study.optimize(lambda p: p["x"], 5, callbacks=[closes])
    study.close()
    assert Study.load(tmp_path / "run.jsonl").trials == study.trials


def test_a_handler_within_the_switch_of_the_default_dtype_neither_hangs_nor_changes_it():
    at, hit = 0, True
    torch.set_default_dtype(torch.float64)
    try:
        while hit:
            at, hit = at + 1, False
            left = at

            def trace(frame, event, arg):
                nonlocal left, hit
                if not frame.f_code.co_filename.endswith("torch_state.py"):
                    return None
                left -= event == "line"
                if event == "line" and left == 0:
                    hit = True
                    sys.settrace(None)
                    with clean_torch_state():
                        assert torch.get_default_dtype() == torch.float32
                return trace

            sys.settrace(trace)
            try:
                with clean_torch_state():
                    assert torch.get_default_dtype() == torch.float32
            finally:
                sys.settrace(None)
            assert torch.get_default_dtype() == torch.float64, f"line {at}"
    finally:
        torch.set_default_dtype(torch.float32)
    assert at > 20


@pytest.mark.parametrize("at", range(1, 5))
def test_an_interrupt_while_the_models_are_made_is_made_up_for(monkeypatch, at):
    def begun():
        study = Study(LINE, seed=0, n_initial=2)
        study.add({"x": [0.1, 0.5, 0.8]}, [1.0, 2.0, 3.0])
        return study

    def interrupted(self, *args, **settings):
        nonlocal count
        count += 1
        if count == at:
            raise KeyboardInterrupt
        return register(self, *args, **settings)

    count, register, study = 0, torch.nn.Module.register_buffer, begun()
    monkeypatch.setattr(torch.nn.Module, "register_buffer", interrupted)
    with pytest.raises(KeyboardInterrupt):
        study.ask()
    monkeypatch.undo()
    assert study.ask()[0].params == begun().ask()[0].params
