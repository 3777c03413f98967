"""How a run ends: by a rule, with an objective that gives no values, or before it has begun."""

import math
import time
import warnings

import pytest
import torch

import deepbore
from deepbore import (
    ExecutorEvaluator,
    ExpectedImprovementBelow,
    NoImprovement,
    Ordinal,
    SearchSpace,
    Study,
    TargetReached,
    maximize,
    minimize,
)
from deepbore.data.outcome import Status
from deepbore.errors import ObjectiveError, SettingError
from deepbore.loop.stopping import StopRule
from objectives import bowl
from plane import DESIGN, PLANE, statuses

# --- the end ---------------------------------------------------------------------------------------------------------


def test_a_time_budget_counts_the_design_and_waits_for_the_running_trial():
    def slow(params):
        time.sleep(0.1)
        return bowl(params)

    result = minimize(slow, PLANE, None, timeout=0.35, n_initial=DESIGN, batch_size=50)
    assert 1 <= len([value for value in result.values if math.isfinite(value)]) <= 4
    assert statuses(result.study).count("PENDING") > 0  # of the batch: what had not begun
    n = len(result.study.trials)
    result.study.optimize(bowl, 0)  # and the next run begins with it
    assert statuses(result.study) == ["COMPLETE"] * n


@pytest.mark.parametrize(("run", "sign"), [(minimize, 1), (maximize, -1)])
def test_a_target_ends_a_run_at_once_and_the_next_before_it_begins(run, sign):
    rule = TargetReached(sign * 0.3)
    result = run(lambda params: sign * bowl(params), PLANE, 60, stop_when=rule, n_initial=DESIGN)
    reached = [sign * value <= 0.3 for value in result.values]
    assert reached == [False] * (len(reached) - 1) + [True]
    assert len(result.study.optimize(bowl, 5, stop_when=[rule]).values) == len(reached)


def test_no_improvement_counts_the_trials_since_the_best():
    values = iter([5.0, 4.0, 4.5, 4.0, math.nan, 3.0, 3.5, 3.1, 3.2, 9.0])
    with pytest.warns(RuntimeWarning, match="nan"):
        result = minimize(lambda params: next(values), PLANE, 10, stop_when=NoImprovement(3), n_initial=DESIGN)
    assert len(result.values) == 5
    result.study.optimize(lambda params: next(values), 5)
    assert (result.study.observations.n_complete, len(result.values)) == (9, 5)  # a result is a record


@pytest.mark.parametrize("task", [None, "before"])
def test_earlier_results_begin_the_count_of_no_improvement_anew(task):
    study = Study(PLANE, n_initial=DESIGN)
    for trial, value in zip(study.ask(3), (0.0, 1.0, 2.0), strict=True):
        study.tell(trial, value)
    study.add({"x": [0.3, 0.1, 0.2], "y": [-0.2, 0.5, 0.6]}, [5.0, 6.0, 7.0], task=task)
    study.optimize(lambda params: 3.0, 9, stop_when=NoImprovement(3))
    assert study.observations.n_asked == 3 + 3


@pytest.mark.slow
def test_a_run_ends_when_next_to_no_improvement_is_expected():
    hopeful, modest = ExpectedImprovementBelow(share=0.9, proposals=3), ExpectedImprovementBelow(share=1e-12)
    result = minimize(bowl, PLANE, 20, stop_when=hopeful, seed=0)
    assert len(result.values) == 12  # the design and two proposals: the third was not worth it
    assert len(minimize(bowl, PLANE, 13, stop_when=modest, seed=0).values) == 13
    plain = minimize(bowl, PLANE, 12, seed=0)
    assert plain.values.tolist() == result.values.tolist()  # a rule looks, and changes nothing


@pytest.mark.slow
def test_proposals_that_promise_too_little_count_in_a_row():
    class Moody(StopRule):
        proposals = 3

        def promises_too_little(self, state, points):
            return next(moods)

    moods = iter([True, True, False, True, False, True, True, True])
    result = minimize(bowl, PLANE, 20, stop_when=Moody(), n_initial=4)
    assert len(result.values) == 4 + 7


def test_a_batch_is_worth_it_where_one_of_its_points_is():
    study = Study(PLANE, seed=0, n_initial=DESIGN)
    study.optimize(bowl, 6)
    study.fit(2)
    points, rule = PLANE.sobol(50, seed=0), ExpectedImprovementBelow(share=1e-3)
    poor = torch.tensor([rule.promises_too_little(study._state, point[None]) for point in points])
    assert 5 < poor.sum() < 45
    assert rule.promises_too_little(study._state, points[poor])
    assert not rule.promises_too_little(study._state, points)


def test_a_run_that_goes_on_from_a_journal_ends_where_it_would_have_ended(tmp_path):
    def settings(name):
        return {"journal": tmp_path / name, "if_exists": "load", "n_initial": DESIGN, "seed": 5}

    whole = minimize(bowl, PLANE, 60, stop_when=NoImprovement(8), **settings("a"))
    cut = minimize(bowl, PLANE, len(whole.values) - 3, stop_when=NoImprovement(8), **settings("b"))
    cut.study.close()
    again = minimize(bowl, PLANE, 60, stop_when=NoImprovement(8), **settings("b"))
    assert 8 < len(again.values) == len(whole.values) < 60
    assert again.values.tolist() == whole.values.tolist()


def test_earlier_results_that_are_added_meanwhile_are_not_counted_as_trials():
    study = Study(PLANE, n_initial=DESIGN)

    def add(study, trial):
        study.add({"x": trial.params["y"], "y": trial.params["x"]}, 1.0)

    study.optimize(bowl, 5, callbacks=[add])
    assert (study.observations.n_asked, len(study.trials)) == (5, 10)


# --- objectives that give no values ----------------------------------------------------------------------------------


@pytest.mark.parametrize("returned", [None, [1.0, "a"], "0.5", {"loss": 1.0}, [1.0, 2.0]])
def test_a_wrong_type_ends_a_run_with_the_first_evaluation(tmp_path, returned):
    path, calls = tmp_path / "run.jsonl", []
    with pytest.warns(RuntimeWarning), pytest.raises(ObjectiveError, match=r"ends with its first evaluation.*but "):
        minimize(lambda params: calls.append(1) or returned, PLANE, 50, journal=path)
    assert len(calls) == 1
    assert statuses(Study.load(path)) == ["FAILED"]


def test_a_wrong_type_later_is_a_failed_trial():
    def forgets(params):
        return bowl(params) if len(calls) == 1 else None

    calls = [1]
    with pytest.warns(RuntimeWarning, match="must return a number"):
        result = minimize(forgets, PLANE, 3, n_initial=DESIGN, callbacks=[lambda study, trial: calls.append(1)])
    assert statuses(result.study) == ["COMPLETE", "FAILED", "FAILED"]


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


# --- settings at the door --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"timeout": 0}, "timeout > 0"),
        ({"timeout": "1h"}, "timeout > 0"),
        ({"timeout": math.nan}, "timeout > 0"),
        ({"max_failures": 0}, "max_failures >= 1"),
        ({"max_failures": 2.5}, "whole number"),
        ({"progress": "yes"}, "progress must be one of"),
        ({"callbacks": bowl}, r"list of functions of \(study, trial\)"),
        ({"callbacks": [3]}, "list of functions"),
        ({"callbacks": None}, "list of functions"),
        ({"stop_when": NoImprovement}, r"Give NoImprovement\(trials=20\)"),
        ({"stop_when": 20}, "stop_when must be a rule"),
        ({"stop_when": [bowl]}, "stop_when must be a rule"),
        ({"stop_when": None}, "stop_when must be a rule"),
        ({"batch_size": 0}, "batch_size >= 1"),
        ({"batch_size": None}, "batch_size must be given"),
        ({"n_trials": 0}, "n_trials >= 1"),
        ({"n_trials": None}, "something else that ends the run"),
        ({"n_trials": 5.0}, "whole number"),
        ({"objective": 5}, "Give the function"),
        ({"objective": ExecutorEvaluator}, r"Give ExecutorEvaluator\(objective\)"),
        ({"device": "tpu9"}, "device"),
        ({"if_exists": "append"}, "if_exists must be one of"),
        (
            {"stop_when": ExpectedImprovementBelow(0.1), "classifier": deepbore.MLPClassifier()},
            "ExpectedImprovementBelow needs a classifier",
        ),
    ],
)
def test_bad_settings_are_refused_before_a_journal_is_begun(tmp_path, settings, says):
    path = tmp_path / "run.jsonl"
    given = {"objective": bowl, "space": PLANE, "n_trials": 5, "journal": path, **settings}
    with pytest.raises(SettingError, match=says):
        minimize(**given)
    assert not path.exists()


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: NoImprovement(0), "trials >= 1"),
        (lambda: NoImprovement(None), "trials must be given"),
        (lambda: NoImprovement(2.5), "whole number"),
        (lambda: TargetReached(math.nan), "< value <"),
        (lambda: TargetReached(-math.inf), "< value <"),
        (lambda: TargetReached("low"), "< value <"),
        (lambda: ExpectedImprovementBelow(0), "0 < share < 1"),
        (lambda: ExpectedImprovementBelow(5), "0 < share < 1"),
        (lambda: ExpectedImprovementBelow(0.1, proposals=0), "proposals >= 1"),
    ],
)
def test_rules_are_checked_when_they_are_made(make, says):
    with pytest.raises(SettingError, match=says):
        make()


def test_rules_about_the_best_value_need_one_objective():
    class Sum(deepbore.ValueGradedLabels):
        objectives = 2

    study = Study(PLANE, directions=["minimize", "minimize"], labels=Sum())
    for rule in (NoImprovement(3), TargetReached(1)):
        with pytest.raises(SettingError, match="needs one objective"):
            study.optimize(bowl, 3, stop_when=rule)


def test_a_finite_space_ends_a_run_by_itself():
    space = SearchSpace({"k": Ordinal([1, 2, 3])})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(minimize(lambda params: params["k"], space, None, n_initial=3).values) == 3
