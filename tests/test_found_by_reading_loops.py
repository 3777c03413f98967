"""Runs that somebody's code, Ctrl-C or a death ends unexpectedly: defects found by attacking the loop."""

import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from contextlib import closing

import pytest
from lightning.pytorch import Callback

from deepbore import Categorical, Integer, KernelPLS, MLPClassifier, Real, SearchSpace, Study, minimize
from deepbore.evaluators import SerialEvaluator
from test_found_by_reading import SQUARE
from trainers import quiet_trainer

LINE = SearchSpace({"x": Real(0, 1)})
LOWEST = 0.3


def valley(params):
    return (params["x"] - LOWEST) ** 2


def banana(params):
    return (params["y"] - params["x"] ** 2) ** 2 / 10 + (params["x"] - LOWEST) ** 2


def proposed(study):
    return [trial.params for trial in study.trials]


class Killed(BaseException):
    pass


# --- somebody's code -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("at", [1, 4])  # in the design, and beyond
def test_an_exhausted_iterator_in_a_callback_is_an_error(at):
    def exhausted(study, trial):
        if trial.id == at:
            next(iter([]))

    study = Study(LINE, seed=0, n_initial=3)
    with pytest.raises(RuntimeError, match="StopIteration"):
        study.optimize(valley, 10, callbacks=[exhausted])
    assert len(study.trials) == at + 1
    study.optimize(valley, 3)
    assert len(study.trials) == at + 4


@pytest.mark.parametrize("method", ["fit", "posterior"])
def test_an_exhausted_iterator_in_a_classifier_is_an_error(method):
    def exhausted(*_):
        next(iter([]))

    classifier = type("Mine", (KernelPLS,), {method: exhausted})()
    with pytest.raises(RuntimeError, match="StopIteration"):
        minimize(valley, LINE, 8, n_initial=3, classifier=classifier)


class Cluster(SerialEvaluator):
    """A cluster that can't be reached at first, be it to leave it."""

    is_up = False

    def submit(self, trial):
        if not self.is_up:
            raise ConnectionError("away")
        super().submit(trial)

    def close(self):
        if not self.is_up:
            raise ConnectionError("still away")
        super().close()


def test_an_evaluator_that_can_not_be_closed_once_serves_the_next_run():
    cluster, study = Cluster(valley), Study(LINE, n_initial=2)
    with pytest.raises(ConnectionError, match="still away"):
        study.optimize(cluster, 3)
    cluster.is_up = True
    study.optimize(cluster, 3)
    assert len(study.trials) == 3 + 1  # the one that could not be submitted


def test_a_trainer_that_stops_while_the_classifier_learns_leaves_no_training_behind():
    class Timer(Callback):
        def on_train_batch_end(self, trainer, *_):
            trainer.should_stop = trainer.current_epoch == 3

    whole, part = (Study(SQUARE, seed=0, n_initial=4, classifier=MLPClassifier()) for _ in range(2))
    whole.optimize(banana, 12)
    part.optimize(banana, 12, trainer=quiet_trainer(max_epochs=-1, callbacks=[Timer()]))
    assert 4 < len(part.trials) < 12
    part.optimize(banana, 12 - len(part.trials))
    assert proposed(part) == proposed(whole)


@pytest.mark.parametrize("n", [16, 22])  # the last of 25 are drawn at random
def test_a_run_that_fails_in_its_design_draws_the_rest_as_if_it_had_not(n, monkeypatch):
    space = SearchSpace({"a": Integer(1, 5), "b": Categorical(list("uvwxy"))})
    whole, part = (Study(space, seed=0, n_initial=25) for _ in range(2))
    reserve = type(part.observations).reserve

    def full(observations, points, *args, **kwargs):
        if len(observations) == n:
            raise OSError("no space left")
        return reserve(observations, points, *args, **kwargs)

    whole.optimize(lambda params: params["a"], 25)
    monkeypatch.setattr(type(part.observations), "reserve", full)
    with pytest.raises(OSError, match="no space left"):
        part.optimize(lambda params: params["a"], 25)
    monkeypatch.undo()
    part.optimize(lambda params: params["a"], 25 - n)
    assert proposed(part) == proposed(whole)


# --- deaths ----------------------------------------------------------------------------------------------------------


def without_the_last(path, n):
    """A journal as it is if the process dies between the snapshot of n trials and their lines."""
    lines = path.read_bytes().splitlines(keepends=True)
    assert all(b'"asked"' in line for line in lines[-n:])
    path.write_bytes(b"".join(lines[:-n]))


def test_an_enqueued_configuration_of_many_digits_is_asked_once(tmp_path):
    with closing(Study(LINE, seed=0, journal=tmp_path / "run.jsonl")) as study:
        study.enqueue({"x": 1 / 3})
        study.ask()
    without_the_last(tmp_path / "run.jsonl", 1)
    first, second = Study.load(tmp_path / "run.jsonl").ask(2)
    assert first.params["x"] == pytest.approx(1 / 3)
    assert second.params["x"] != pytest.approx(1 / 3)


def test_proposals_that_a_death_has_lost_wait_however_often_a_run_is_loaded(tmp_path):
    whole, part = (Study(LINE, seed=0, n_initial=3, journal=tmp_path / f"{name}.jsonl") for name in "ab")
    for study in (whole, part):
        for trial in study.ask(3):
            study.tell(trial, valley(trial.params))
        study.ask(3)
        study.close()
    without_the_last(tmp_path / "b.jsonl", 3)
    for _ in range(3):  # one trial a job
        with closing(Study.load(tmp_path / "b.jsonl")) as job:
            (trial,) = job.ask()
            job.tell(trial, valley(trial.params))
    assert proposed(Study.load(tmp_path / "b.jsonl")) == proposed(whole)


@pytest.mark.parametrize("make", [MLPClassifier, KernelPLS])
def test_a_run_that_dies_with_a_queue_goes_on_as_if_it_had_not(tmp_path, make):
    def enqueues(study, trial):
        if trial.id == 6:
            for k in (0.2, 0.5, 0.8):
                study.enqueue({"x": k, "y": k})

    def dies(params):
        if len(study.trials) == 8:  # with one more in the queue
            raise Killed
        return banana(params)

    whole = Study(SQUARE, seed=0, n_initial=4, classifier=make())
    whole.optimize(banana, 13, callbacks=[enqueues])
    study = Study(SQUARE, seed=0, n_initial=4, classifier=make(), journal=tmp_path / "run.jsonl")
    with pytest.raises(Killed):
        study.optimize(dies, 13, callbacks=[enqueues])
    study.close()
    again = Study.load(tmp_path / "run.jsonl", classifier=make(), n_initial=4)
    again.optimize(banana, 13 - len(again.trials), callbacks=[enqueues])
    assert proposed(again) == proposed(whole)


OTHER = """
import sys
from deepbore import Study
from deepbore.errors import JournalError
try:
    Study.load(sys.argv[1]).optimize(lambda params: print("evaluated"), 3)
except JournalError as error:
    print(error)
"""


@pytest.mark.slow
def test_a_run_is_refused_before_it_evaluates_what_another_process_is_at(tmp_path):
    study = Study(LINE, seed=0, n_initial=3, journal=tmp_path / "run.jsonl")
    study.ask()
    code = [sys.executable, "-c", OTHER, str(tmp_path / "run.jsonl")]
    said = subprocess.run(code, capture_output=True, text=True, check=True).stdout
    assert "another" in said
    assert "evaluated" not in said


# --- Ctrl-C, and threads ---------------------------------------------------------------------------------------------


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
            for seconds in (0.1, 0.3):
                threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT)).start()
        return banana(params)

    with pytest.raises(KeyboardInterrupt):
        study.optimize(objective, 15)
    assert len(study.ask()) == 1


def test_runs_that_overlap_in_threads_leave_the_filters_of_warnings_as_they_were():
    before = list(warnings.filters)

    def run(k):
        minimize(lambda params: time.sleep(0.02 * k) or params["x"], LINE, 4 + 2 * k, n_initial=2)

    threads = [threading.Thread(target=run, args=(k,)) for k in (1, 2, 3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert warnings.filters == before
