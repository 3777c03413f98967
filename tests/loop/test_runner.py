"""From reserved rows to outcomes: objectives that fail, and evaluations that never began."""

import math
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from deepbore import ExecutorEvaluator, Outcome, Study, minimize
from deepbore.data.outcome import Status
from deepbore.errors import ObjectiveError
from objectives import bowl
from plane import DESIGN, LINE, PLANE, statuses


@pytest.mark.parametrize("returned", [{"loss": 1.0}, [1.0, 2.0]])
def test_a_wrong_number_of_values_ends_a_run_with_the_first_evaluation(tmp_path, returned):
    path, calls = tmp_path / "run.jsonl", []
    with pytest.warns(RuntimeWarning), pytest.raises(ObjectiveError, match=r"ends with its first evaluation.*but "):
        minimize(lambda params: calls.append(1) or returned, PLANE, 50, journal=path)
    assert len(calls) == 1
    assert statuses(Study.load(path)) == ["FAILED"]


@pytest.mark.parametrize("returned", [None, [1.0, "a"], "0.5", True])
@pytest.mark.parametrize("before", [0, 1, 5])
def test_what_is_no_value_ends_a_run_at_once_and_is_not_learned(tmp_path, returned, before):
    def forgets(params):
        calls.append(params)
        return bowl(params) if len(calls) <= before else returned

    calls = []
    with pytest.raises(ObjectiveError, match=r"must return a number.*stays pending.*it may return float"):
        minimize(forgets, PLANE, 50, n_initial=DESIGN, journal=tmp_path / "run.jsonl", progress=False)
    assert statuses(Study.load(tmp_path / "run.jsonl")) == ["COMPLETE"] * before + ["PENDING"]


@pytest.mark.filterwarnings("ignore:trial")
@pytest.mark.parametrize(("setting", "n_calls"), [({}, 20), ({"max_failures": 3}, 3), ({"max_failures": None}, 30)])
def test_an_objective_that_always_fails_does_not_use_the_budget_up(tmp_path, setting, n_calls):
    def broken(params):
        calls.append(params)
        raise ZeroDivisionError("in the third layer")

    path, calls, error = tmp_path / "run.jsonl", [], None
    try:
        minimize(broken, PLANE, 30, journal=path, n_initial=DESIGN, **setting)
    except ObjectiveError as raised:
        error = str(raised)
    assert len(calls) == n_calls
    assert statuses(Study.load(path)) == ["FAILED"] * n_calls
    if n_calls < 30:
        assert f"all of its {n_calls} evaluations have failed" in error
        assert "ZeroDivisionError: in the third layer" in error
        assert "in broken" in error  # the traceback


def test_one_success_is_enough_to_go_on():
    values = iter([math.nan] * 3 + [1.0] + [math.nan] * 9)
    with pytest.warns(RuntimeWarning, match="nan"):
        assert len(minimize(lambda p: next(values), PLANE, 13, max_failures=4, n_initial=DESIGN).values) == 13


def test_the_traceback_of_a_failed_trial_is_kept_and_shown(tmp_path):
    def sometimes(params):
        if params["x"] < 0:
            raise ValueError("too low")
        return bowl(params)

    path = tmp_path / "run.jsonl"
    with pytest.warns(RuntimeWarning, match="too low"):
        study = minimize(sometimes, PLANE, 8, journal=path, n_initial=DESIGN).study
    for trials in (study.trials, Study.load(path).trials):
        failed = [trial for trial in trials if trial.status is Status.FAILED]
        assert failed
        assert all("in sometimes" in trial.traceback for trial in failed)
        assert all(trial.traceback is None for trial in trials if trial not in failed)


# regression: each of these was wrong once
def test_what_an_engine_would_not_take_is_evaluated_by_the_next_run():
    class Away(ThreadPoolExecutor):
        calls = 0

        def submit(self, *call, **settings):
            self.calls += 1
            if self.calls == 2:
                raise RuntimeError("engine away")
            return super().submit(*call, **settings)

    study = Study(LINE, n_initial=4)
    with Away(4) as pool, pytest.raises(RuntimeError, match="engine away"):
        study.optimize(ExecutorEvaluator(lambda p: p["x"], pool, workers=4), 4, batch_size=4)
    study.optimize(lambda p: p["x"], 0)
    assert [trial.status for trial in study.trials] == [Status.COMPLETE] * 4


@pytest.mark.parametrize("at", [1, 2, 3])
def test_what_ctrl_c_left_reserved_and_not_begun_is_evaluated_by_the_next_run(monkeypatch, at):
    study = Study(LINE, n_initial=2)
    elsewhere = study.ask()[0]
    reserve, calls = study.observations.reserve, iter(range(1, 9))

    def interrupted(*rows, **settings):
        reserved = reserve(*rows, **settings)
        if next(calls) == at:
            raise KeyboardInterrupt
        return reserved

    with monkeypatch.context() as patch:
        patch.setattr(study.observations, "reserve", interrupted)
        with pytest.raises(KeyboardInterrupt):
            study.optimize(lambda p: p["x"], 5)
    study.optimize(lambda p: p["x"], 0)
    assert study.pending == [elsewhere]
    assert len(study.trials) == 1 + at


@pytest.mark.parametrize("named", [{}, {"cost": 7.0}])
def test_a_trial_costs_its_seconds_unless_its_outcome_names_a_cost(named):
    def slow(params):
        time.sleep(0.01)
        return Outcome(params["x"], **named)

    study = Study(LINE, cost_limit=100)
    study.optimize(slow, 3)
    for trial in study.trials:
        assert trial.cost == pytest.approx(named.get("cost", trial.duration), abs=2e-3)
        assert trial.cost >= 0.01
