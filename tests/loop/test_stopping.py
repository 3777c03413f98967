"""How a run ends: by a rule, a time, a target, or with its space."""

import gc
import math
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor

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
from deepbore.errors import ObjectiveError, SettingError
from deepbore.loop.stopping import StopRule
from objectives import bowl
from plane import DESIGN, LINE, PLANE, statuses


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
    assert (result.study.observations.ledger.statistics.n_complete, len(result.values)) == (
        9,
        5,
    )  # a result is a record


@pytest.mark.parametrize("task", [None, "before"])
def test_earlier_results_begin_the_count_of_no_improvement_anew(task):
    study = Study(PLANE, n_initial=DESIGN)
    for trial, value in zip(study.ask(3), (0.0, 1.0, 2.0), strict=True):
        study.tell(trial, value)
    study.add({"x": [0.3, 0.1, 0.2], "y": [-0.2, 0.5, 0.6]}, [5.0, 6.0, 7.0], task=task)
    study.optimize(lambda params: 3.0, 9, stop_when=NoImprovement(3))
    assert study.observations.ledger.n_asked == 3 + 3


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

        def predicts_little_gain(self, state, points):
            return next(moods)

    moods = iter([True, True, False, True, False, True, True, True])
    result = minimize(bowl, PLANE, 20, stop_when=Moody(), n_initial=4)
    assert len(result.values) == 4 + 7


def test_a_rule_with_the_former_name_of_its_method_warns_and_works():
    with pytest.warns(DeprecationWarning, match="predicts_little_gain"):

        class Former(StopRule):
            def promises_too_little(self, state, points):
                return True

    assert Former().predicts_little_gain(None, None)


def test_a_batch_is_worth_it_where_one_of_its_points_is():
    study = Study(PLANE, seed=0, n_initial=DESIGN)
    study.optimize(bowl, 6)
    study.fit(2)
    points, rule = PLANE.points.sobol(50, seed=0), ExpectedImprovementBelow(share=1e-3)
    poor = torch.tensor([rule.predicts_little_gain(study._state, point[None]) for point in points])
    assert 5 < poor.sum() < 45
    assert rule.predicts_little_gain(study._state, points[poor])
    assert not rule.predicts_little_gain(study._state, points)


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
    assert (study.observations.ledger.n_asked, len(study.trials)) == (5, 10)


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


def broken(_params):
    raise ValueError("a typo")


# regression: each of these was wrong once
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:trial .* failed")
def test_a_mended_objective_goes_on_with_the_journal_of_the_broken_one(tmp_path):
    gc.disable()  # what holds the study is not found by chance
    try:
        with pytest.raises(ObjectiveError):
            minimize(broken, LINE, 50, journal=tmp_path / "run.jsonl")
        result = minimize(lambda params: params["x"], LINE, 22, journal=tmp_path / "run.jsonl", if_exists="load")
        again = minimize(lambda params: params["x"], LINE, 24, journal=tmp_path / "run.jsonl", if_exists="load")
    finally:
        gc.enable()
    assert (len(result.values), len(again.values)) == (22, 24)


def test_a_run_without_hope_stays_ended_when_its_script_is_run_again(tmp_path):
    lengths = [
        len(
            minimize(
                lambda params: params["x"] ** 2,
                LINE,
                100,
                stop_when=ExpectedImprovementBelow(0.01, proposals=4),
                journal=tmp_path / "run.jsonl",
                if_exists="load",
            ).values
        )
        for _ in range(3)
    ]
    assert lengths == lengths[:1] * 3


@pytest.mark.slow
def test_another_rule_counts_for_itself(tmp_path):
    study = Study(LINE, seed=0)
    study.optimize(lambda params: params["x"] ** 2, 100, stop_when=ExpectedImprovementBelow(0.3, proposals=3))
    ended = len(study.trials)
    study.optimize(lambda params: params["x"] ** 2, 100, stop_when=ExpectedImprovementBelow(1e-3, proposals=3))
    assert len(study.trials) > ended


def test_no_improvement_counts_from_when_the_best_trial_was_told():
    told, others, first = [], threading.Event(), threading.Event()

    def objective(params):
        if params["x"] != 0.5:
            if others.is_set():
                first.wait(60)  # the others do not run ahead on a busy machine
            return 1 + params["x"]
        others.wait(60)  # the first trial is told late
        return 0.0

    def look(study, trial):
        told.append(trial.id)
        if len(told) == 3:
            others.set()
        if trial.id == 0:
            first.set()

    study = Study(LINE, seed=0, n_initial=30)
    study.enqueue({"x": 0.5})
    with ThreadPoolExecutor(2) as threads:
        evaluator = ExecutorEvaluator(objective, threads)
        study.optimize(evaluator, 30, stop_when=NoImprovement(5), callbacks=[look])
    late = told.index(0)
    assert 3 <= late <= 4
    assert len(told) in (late + 1 + 5, late + 1 + 6)  # one more may run when the rule is met


# regression: it ended a run whose first evaluations had failed, with nothing to compare the next ones with
@pytest.mark.parametrize("lacks", ["a value", "a feasible value"])
@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.filterwarnings("ignore::deepbore.evaluators.base.EvaluationWarning")
def test_a_rule_that_compares_with_nothing_ends_no_run(lacks, k):
    calls = []

    def objective(params):
        calls.append(1)
        is_early = len(calls) <= 5
        if lacks == "a value":
            return math.nan if is_early else 1.0
        return deepbore.Outcome(1.0, constraints=[1.0 if is_early else -1.0])

    rules = [NoImprovement(k)]
    minimize(objective, PLANE, 20, stop_when=rules, strategy="random", max_failures=None, progress=False)
    assert len(calls) == 5 + 1 + k
    calls.clear()
    minimize(objective, PLANE, 4, stop_when=rules, strategy="random", max_failures=None, progress=False)
    assert len(calls) == 4
