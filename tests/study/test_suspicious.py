"""One wrong value, and runs that diverge, do not mislead a study."""

import math
import random
import re
import statistics

import pytest

from deepbore import (
    BoTorchBatch,
    Budget,
    Categorical,
    Condition,
    Integer,
    NoImprovement,
    Ordinal,
    Outcome,
    Real,
    SearchSpace,
    Study,
    TargetReached,
)
from deepbore.data.replay import read_record
from deepbore.evaluators.base import SuspiciousValue
from deepbore.plots.history_chart import History
from deepbore.problems import Branin

SQUARE = SearchSpace({"x": Real(0, 1), "y": Real(0, 1)})
WRONG = 5  # the trial


def regret(params):
    return (params["x"] - 0.3) ** 2 + (params["y"] - 0.6) ** 2


def run(study, n, outcome):
    """n trials; the regrets of all but the wrong one."""
    for _ in range(n):
        (trial,) = study.ask()
        study.tell(trial, outcome(trial))
    return [regret(trial.params) for trial in study.trials if trial.id != WRONG]


def wrong_once(value, true=regret):
    return lambda trial: value if trial.id == WRONG else true(trial.params)


@pytest.mark.parametrize("value", [-10.0, -1e6, -0.001])
def test_one_wrong_value_does_not_mislead_a_run(value):
    study = Study(SQUARE, seed=0)
    with pytest.warns(SuspiciousValue, match=re.escape(f"trial 5, {value:g}, is better")) as warned:
        assert min(run(study, 28, wrong_once(value))) < 1e-5
    assert len(warned) == 1
    assert "study.withdraw(5)" in str(warned[0].message)
    assert [trial.id for trial in study.suspicious] == [WRONG]
    assert study.best_trial.id == WRONG
    assert study.recommended.id != WRONG
    study.withdraw(WRONG)
    assert not study.suspicious


@pytest.mark.filterwarnings("ignore::deepbore.evaluators.base.SuspiciousValue")
def test_a_value_just_below_the_optimum_is_doubted_and_a_trial_beside_it_tells():
    def branin(params):
        return Branin()({"x0": 15 * params["x"] - 5, "x1": 15 * params["y"]})

    study = Study(SQUARE, seed=0)
    run(study, 17, wrong_once(Branin().optimum - 1.1, branin))
    assert study.observations.suspicion.doubtful == (WRONG,)
    assert not study.suspicious
    run(study, 1, wrong_once(0, branin))
    assert [trial.id for trial in study.suspicious] == [WRONG]
    assert (study.observations.points[17] - study.observations.points[WRONG]).abs().max() < 0.011


@pytest.mark.parametrize("joint", [False, True])
def test_trials_beside_a_value_keep_the_constraints_that_the_search_was_given(joint):
    within = BoTorchBatch(joint, restarts=2, samples=300, inequality_constraints=[((0, 1), (1.0, 1.0), 1.19)])
    study = Study(SQUARE, seed=0, candidates=within)
    points = [{"x": x, "y": y} for x in (0.6, 0.8, 0.95) for y in (0.65, 0.75, 0.85, 0.95)]
    points.append({"x": 0.598, "y": 0.598})
    study.add({name: [each[name] for each in points] for name in "xy"}, [*map(regret, points[:-1]), -50.0])
    trials = [study.ask()[0] for _ in range(2)]
    assert study.observations.suspicion.too_good == (12,)
    assert all(max(abs(trial.params[name] - 0.598) for name in "xy") < 0.011 for trial in trials)
    assert all(trial.params["x"] + trial.params["y"] >= 1.19 - 1e-6 for trial in trials)


@pytest.mark.filterwarnings("ignore::deepbore.evaluators.base.SuspiciousValue")
def test_one_wrong_value_does_not_mislead_a_run_that_maximises_two_values_under_a_constraint():
    study = Study(SQUARE, seed=0, directions=["maximize", "minimize"])
    run(study, 14, wrong_once((9.0, 9.0), lambda params: (-regret(params), params["x"])))
    assert [trial.id for trial in study.suspicious] == [WRONG]
    assert study.pareto_front[0].id in {trial.id for trial in study.trials}


def test_trials_beside_a_value_confirm_it_if_it_is_true():
    def needle(params):
        return regret(params) - 3 * math.exp(-1e3 * ((params["x"] - 0.96) ** 2 + (params["y"] - 0.04) ** 2))

    study = Study(SQUARE, seed=0)
    study.add({"x": [0.97], "y": [0.05]}, [needle({"x": 0.97, "y": 0.05})])
    run(study, 9, lambda trial: needle(trial.params))
    assert [trial.id for trial in study.suspicious] == [0]
    run(study, 1, lambda trial: needle(trial.params))
    assert not study.suspicious
    assert max(abs(study.trials[10].params[name] - study.trials[0].params[name]) for name in "xy") < 0.011


@pytest.mark.filterwarnings("ignore::deepbore.evaluators.base.SuspiciousValue")
def test_runs_that_diverge_by_chance_do_not_mislead_a_run():
    stream = random.Random(1)
    study = Study(SQUARE, seed=1)
    run(study, 30, lambda trial: 1e9 if stream.random() < 0.2 else regret(trial.params))
    assert min(trial.value for trial in study.trials) < 1e-4
    assert all(trial.value == 1e9 for trial in study.suspicious)


MIXED = SearchSpace(
    {
        "x": Real(0, 1),
        "n": Integer(1, 64, log=True),
        "kind": Categorical(list("abc")),
        "size": Ordinal([1, 2, 4, 8]),
    }
)
CONDITIONAL = SearchSpace(
    {
        "model": Categorical(["a", "b"]),
        "x": Real(0, 1, when=Condition("model", "a")),
        "rate": Real(1e-5, 1, log=True, when=Condition("model", "b")),
        "y": Real(0, 1),
    }
)


def mixed(params):
    level = {"a": 0.3, "b": 0.0, "c": 0.2}[params["kind"]] + 0.05 * (params["size"] != 4)
    return (params["x"] - 0.37) ** 2 + 0.02 * (math.log2(params["n"]) - 4) ** 2 + level


def conditional(params):
    own = (params["x"] - 0.3) ** 2 + 0.1 if params["model"] == "a" else 0.1 * (math.log10(params["rate"]) + 2) ** 2
    return (params["y"] - 0.6) ** 2 + own


def diverging(loss, share=0.2, seed=0):
    """An outcome of each trial: by chance what a run that diverges ends with, otherwise that of `loss`."""
    stream = random.Random(seed)
    return lambda trial, bad: bad if stream.random() < share else loss(trial.params)


@pytest.mark.filterwarnings("ignore::deepbore.evaluators.base.SuspiciousValue")
@pytest.mark.parametrize(("space", "loss", "bad"), [(MIXED, mixed, 1e6), (CONDITIONAL, conditional, 30.0)])
def test_runs_that_diverge_by_chance_do_not_mislead_a_search_among_choices(space, loss, bad):
    ends = []
    for seed in range(5):
        study, outcome, told = Study(space, seed=seed), diverging(loss, seed=seed), []
        for _ in range(32):
            (trial,) = study.ask()
            told.append(outcome(trial, bad))
            study.tell(trial, told[-1])
        ends.append(min(told))
        assert {trial.value for trial in study.suspicious} <= {bad}
    assert statistics.median(ends) < 5e-3, ends


@pytest.mark.filterwarnings("ignore::deepbore.evaluators.base.SuspiciousValue")
def test_runs_that_diverge_by_chance_do_not_mislead_a_search_under_a_constraint():
    study, outcome, feasible = Study(SQUARE, seed=0), diverging(lambda params: params["x"] + params["y"]), []
    for _ in range(26):
        (trial,) = study.ask()
        value, violation = outcome(trial, 1e6), 0.35 - min(trial.params["x"], trial.params["y"])
        study.tell(trial, Outcome(value, constraints=[violation]))
        feasible += [value] if violation <= 0 else []
    assert min(feasible) < 0.75  # 0.7 is the least
    assert {trial.value for trial in study.suspicious} == {1e6}


@pytest.mark.filterwarnings("ignore::deepbore.evaluators.base.SuspiciousValue")
def test_runs_that_diverge_by_chance_do_not_mislead_a_search_for_a_front():
    def two(params):
        return params["x"] ** 2 + 0.1 * params["y"], (params["x"] - 1) ** 2 + 0.1 * params["y"]

    study, outcome = Study(SQUARE, seed=0, directions=["minimize", "minimize"]), diverging(two)
    for _ in range(26):
        (trial,) = study.ask()
        study.tell(trial, outcome(trial, (30.0, 30.0)))
    front = [trial.values for trial in study.pareto_front]
    assert len(front) >= 8
    assert sum(max(values) < 30 and min(values) >= 0 for values in front) == len(front)
    assert {trial.values for trial in study.suspicious} == {(30.0, 30.0)}
    assert max(math.sqrt(a) + math.sqrt(b) for a, b in front) < 1.1  # 1 on the front


@pytest.mark.filterwarnings("ignore::deepbore.evaluators.base.SuspiciousValue")
@pytest.mark.parametrize("rule", [TargetReached(-1.0), NoImprovement(16)])
def test_a_suspicious_value_ends_no_run(rule):
    study, told = Study(SQUARE, seed=0), []

    def objective(params):
        told.append(params)
        return -10.0 if len(told) == 12 else regret(params)

    study.optimize(objective, 23, stop_when=rule)
    assert len(study.trials) == 23


@pytest.mark.filterwarnings("ignore::deepbore.evaluators.base.SuspiciousValue")
def test_a_suspicious_trial_is_not_promoted():
    study = Study(SQUARE, seed=0, budget=Budget("epochs", 1, 9))
    study.add({"x": [i / 12 for i in range(12)], "y": [0.5] * 12},
              [-10.0 if i == 0 else 0.1 + i / 12 for i in range(12)], budgets=[1] * 12)  # fmt: skip
    assert [trial.resume_from.id for trial in study.ask(4) if trial.resume_from] == [1, 2, 3, 4]


@pytest.mark.filterwarnings("ignore::deepbore.evaluators.base.SuspiciousValue")
def test_a_run_with_a_suspicious_value_resumes_exactly_and_its_record_says_why(tmp_path):
    found = []
    for stop in (None, 12):
        path = tmp_path / f"{stop}.jsonl"
        study = Study(SQUARE, seed=2, journal=path)
        run(study, stop or 16, wrong_once(-10.0))
        if stop:
            study.close()
            study = Study.load(path)
            run(study, 16 - stop, wrong_once(-10.0))
        found.append([trial.params for trial in study.trials])
        study.close()
    assert found[0] == found[1]
    record = read_record(path)
    assert "better than" in record.trials[WRONG].suspicious
    assert History.of(record).axis.low > -1
