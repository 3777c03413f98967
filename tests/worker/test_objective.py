"""One evaluation: what an objective may return and raise. No study, no space."""

import os
import signal
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest
import torch

import objectives
from deepbore import ExecutorEvaluator, ProcessEvaluator, SerialEvaluator, minimize
from deepbore.data.outcome import Mistake, Outcome
from deepbore.data.trial import Trial
from deepbore.worker.objective import evaluate
from evaluating import evaluated
from plane import LINE
from processes import is_gone


@pytest.mark.parametrize(
    ("returned", "shown"),
    [(None, "None"), ("0.5", "'0.5'"), (["a", "b"], "['a', 'b']"), ({"a"}, "{'a'}"), (True, "True")],
)
def test_what_an_objective_must_not_return_is_a_failure_that_says_so(returned, shown):
    (outcome,) = evaluated(SerialEvaluator(lambda params: returned), {"k": 0})
    assert outcome.reason == f"the objective must return a number, several, or an Outcome, but returned {shown}"
    assert outcome.has_failed


def test_an_outcome_that_the_objective_returns_comes_as_it_is():
    given = Outcome([1.0, 2.0], constraints=[-1.0], budget=3.0, attributes={"epoch": 7})
    assert evaluated(SerialEvaluator(lambda params: given), {"k": 0}) == [given]
    failed = Outcome.failure("diverged")
    assert evaluated(SerialEvaluator(lambda params: failed), {"k": 0}) == [failed]


def test_a_retry_gets_the_configuration_that_was_asked_for(tmp_path):
    objective = partial(objectives.changes_its_params, folder=tmp_path)
    with ThreadPoolExecutor(1) as thread:
        (by_thread,) = evaluated(ExecutorEvaluator(objective, thread, retries=1), {"k": 5})
    (by_process,) = evaluated(ProcessEvaluator(objective, 1, retries=1), {"k": 6})
    assert (by_thread.values, by_process.values) == ((1.0,), (4.0,))
    trial = Trial(0, {"k": 7})
    serial = SerialEvaluator(objective)
    serial.submit(trial)
    assert serial.collect()[0].trial.params == trial.params == {"k": 7}


class SpeechlessError(Exception):
    """Cannot say what it is."""

    def __str__(self):
        raise RuntimeError("speechless")


def test_an_exception_that_cannot_be_shown_fails_its_trial_only():
    def raises(params):
        if params["k"] == 0:
            raise SpeechlessError
        return params["k"]

    with ThreadPoolExecutor(2) as threads:
        for evaluator in (SerialEvaluator(raises), ExecutorEvaluator(raises, threads)):
            failed, fine = evaluated(evaluator, {"k": 0}, {"k": 1})
            assert failed.reason == "SpeechlessError: it can't be shown, because its __str__ raises"
            assert fine.values == (1.0,)


def test_a_huge_message_is_cut():
    def raises(params):
        raise ValueError("the loss is inf " + 50_000_000 * "!")

    (outcome,) = evaluated(SerialEvaluator(raises), {"k": 0})
    assert len(outcome.reason) == 2000
    assert outcome.reason.startswith("ValueError: the loss is inf !!!")
    assert outcome.reason.endswith("!...")
    assert len(outcome.attributes["traceback"]) < 4000
    assert "in raises" in outcome.attributes["traceback"]


def test_the_end_of_the_traceback_is_kept():
    def sinks(depth):
        if depth == 0:
            raise OSError("disk full")
        sinks_again(depth - 1)

    def sinks_again(depth):
        sinks(depth)

    (outcome,) = evaluated(SerialEvaluator(lambda params: sinks(30)), {"k": 0})
    assert outcome.reason == "OSError: disk full"
    assert outcome.attributes["traceback"].endswith("OSError: disk full\n")
    assert 3000 < len(outcome.attributes["traceback"]) <= 4000


def test_processes_that_an_objective_has_left_end_with_a_clean_exit(tmp_path):
    objective = partial(objectives.leaves_a_process, folder=tmp_path)
    assert evaluated(ProcessEvaluator(objective, 1), {"k": 4})[0].values == (0.0,)
    assert is_gone(int((tmp_path / "grandchild").read_text()))


@pytest.mark.usefixtures("no_process_is_left")
def test_a_default_device_that_an_objective_sets_is_taken_back():
    def objective(params):
        torch.set_default_device("meta")
        return params["x"] ** 2

    result = minimize(objective, LINE, 14, seed=0)
    assert len(result.values) == 14
    assert torch.empty(0).device == torch.device("cpu")


def ends_by_a_signal(params):
    """Is stopped at its second call as Ray stops its workers: by a signal whose handler exits."""
    if params["k"] == 1:
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(1)
    sys.exit("the program's own")


# regression: the run ended with the advice to fix the objective
def test_a_signal_that_ends_a_worker_is_no_mistake_of_the_objective():
    former = signal.signal(signal.SIGTERM, lambda number, frame: sys.exit("from outside"))
    try:
        with pytest.raises(SystemExit, match="from outside"):
            evaluate(ends_by_a_signal, Trial(0, {"k": 1}))
        assert isinstance(evaluate(ends_by_a_signal, Trial(0, {"k": 0})), Mistake)
    finally:
        signal.signal(signal.SIGTERM, former)
