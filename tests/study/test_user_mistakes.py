"""Mistakes in a program end its run, and leave the trial pending; failures of a configuration do not."""

import argparse
import logging
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from types import SimpleNamespace

import pytest

from deepbore import Categorical, ExecutorEvaluator, ProcessEvaluator, Real, SearchSpace, Study, maximize, minimize
from deepbore.errors import ObjectiveError, SettingError, ValueTypeError

pytestmark = pytest.mark.filterwarnings("ignore::deepbore.evaluators.base.EvaluationWarning")

BRANCHES = SearchSpace(
    {
        "lr": Real(0, 1),
        "optimizer": Categorical(["sgd", "adam"]),
        "momentum": Real(0, 1, when={"optimizer": ["sgd"]}),
    }
)
INACTIVE = "reads 'momentum', which is inactive under optimizer='adam'"


def train(lr, optimizer, momentum):
    return lr + momentum


def train_without(lr, optimizer):
    return lr


def by_key(params):
    return params["lr"] + params["momentum"]


def by_attribute(params):
    return SimpleNamespace(**params).momentum


def by_argument(params):
    return train(**params)


def too_few_arguments(params):
    return train_without(**params)


def as_attribute(params):
    return params.lr


def undefined(params):
    return no_such_name  # noqa: F821


def missing_module(params):
    import no_such_module

    return no_such_module.f(params)


MISTAKES = [
    (by_key, INACTIVE),
    (by_attribute, INACTIVE),
    (by_argument, INACTIVE),
    (too_few_arguments, "unexpected keyword argument 'momentum'"),
    (as_attribute, "has no attribute 'lr'"),
    (undefined, "no_such_name"),
    (missing_module, "no_such_module"),
]


@pytest.mark.parametrize(("objective", "says"), MISTAKES, ids=[each.__name__ for each, _ in MISTAKES])
@pytest.mark.parametrize("threads", [0, 2])
def test_a_mistake_in_the_program_ends_the_run_and_its_trial_stays_pending(objective, says, threads, tmp_path):
    study = Study(BRANCHES, seed=0, journal=tmp_path / "run.jsonl")
    with ThreadPoolExecutor(max(1, threads)) as pool:
        evaluator = ExecutorEvaluator(objective, pool) if threads else objective
        with pytest.raises(ObjectiveError, match=says):
            study.optimize(evaluator, 12)
    assert study.observations.ledger.statistics.n_failed == 0
    pending = [trial.params for trial in study.pending]
    assert pending
    study.close()
    again = Study.load(tmp_path / "run.jsonl")
    seen = []
    again.optimize(lambda params: seen.append(params) or params.get("momentum", 0.0), 0)
    assert seen == pending
    assert not again.pending
    again.close()


def reads_another_name(params):
    return params["learning_rate"]


def reads_it_in_a_helper(params):
    def loss(config):
        return 2.0 * config["lrr"]

    return loss(params)


@pytest.mark.parametrize(
    ("objective", "says"),
    [(reads_another_name, "'learning_rate'"), (reads_it_in_a_helper, r"'lrr'\. Did you mean 'lr'\?")],
)
def test_a_name_that_the_space_never_has_ends_the_run_at_the_first_trial(objective, says):
    study = Study(BRANCHES, seed=0)
    with pytest.raises(ObjectiveError, match=f"reads what is no parameter: {says}"):
        study.optimize(objective, 30)
    assert len(study.trials) == len(study.pending) == 1


def by_names(lr, optimizer, momentum=0.0):
    return lr + momentum + len(optimizer)


def by_names_and_trial(lr, *, optimizer, trial, momentum=0.0):
    trial.report(lr, 1)
    return lr + momentum + len(optimizer)


def with_the_rest(lr, optimizer, **rest):
    return lr + sum(rest.values()) + len(optimizer)


@pytest.mark.parametrize("objective", [by_names, by_names_and_trial, with_the_rest])
def test_parameters_may_be_taken_by_their_names(objective):
    expected = minimize(lambda p: p["lr"] + p.get("momentum", 0.0) + len(p["optimizer"]), BRANCHES, 12, seed=1)
    assert minimize(objective, BRANCHES, 12, seed=1).values.tolist() == expected.values.tolist()
    with ThreadPoolExecutor(2) as pool:
        assert len(minimize(ExecutorEvaluator(objective, pool), BRANCHES, 3, seed=1).values) == 3


@pytest.mark.parametrize(
    ("objective", "says"),
    [
        (lambda lr, units: lr, "needs units, which the space has not"),
        (lambda lr, optimizer: lr, "takes no momentum"),
        (lambda *, rate: rate, "needs rate"),
    ],
)
def test_an_objective_by_other_names_is_refused_before_it_is_called(objective, says, tmp_path):
    with pytest.raises(
        SettingError, match=says + r".*has lr, optimizer, momentum\. Give lambda params: .*\(\*\*params\)"
    ):
        minimize(objective, BRANCHES, 12, journal=tmp_path / "run.jsonl")
    assert not (tmp_path / "run.jsonl").exists()
    with pytest.raises(SettingError, match=says):
        Study(BRANCHES).optimize(objective, 12)


def test_a_value_beside_a_failure_is_refused():
    study = Study(BRANCHES, seed=0)
    trial = study.ask_one()
    for given in ({"value": 1.0}, {"value": [0.5]}, {"noise": 0.1}):
        with pytest.raises(ValueTypeError, match="failed=True is all of an outcome, but came with"):
            study.tell(trial, failed=True, **given)
    assert study.pending == [trial]
    study.tell(trial, float("nan"), failed=True)
    assert study.observations.ledger.statistics.n_failed == 1


DIRECTIONS = [
    (minimize, {"direction": "maximize"}, TypeError, r"its direction in its name.*maximize\("),
    (maximize, {"direction": "minimize"}, TypeError, r"its direction in its name.*minimize\("),
    (minimize, {"directions": "maximize"}, SettingError, r"all its directions say 'maximize'\. Call maximize\("),
    (minimize, {"directions": ["maximize"]}, SettingError, r"all its directions say 'maximize'\. Call maximize\("),
    (maximize, {"directions": {"a": "minimize", "b": "minimize"}}, SettingError, r"say 'minimize'\. Call minimize\("),
]


@pytest.mark.parametrize(("door", "options", "error", "says"), DIRECTIONS)
def test_a_direction_that_contradicts_the_door_is_refused(door, options, error, says):
    seen = []
    with pytest.raises(error, match=says):
        door(seen.append, BRANCHES, 3, **options)
    assert seen == []


@pytest.mark.parametrize("door", [minimize, maximize])
def test_objectives_may_have_different_directions(door):
    both = door(lambda p: (p["lr"], -p["lr"]), BRANCHES, 3, directions=["minimize", "maximize"], progress=False)
    assert both.study.observations.directions == ("minimize", "maximize")


# regression: the trial failed, and the classifier learned to avoid its configuration
@pytest.mark.parametrize("call", ["ask_one", "fit", "optimize"])
def test_an_objective_that_calls_its_running_study_is_a_mistake(call):
    study = Study(BRANCHES, seed=0)
    arguments = {"optimize": (as_attribute, 1)}.get(call, ())
    with pytest.raises(ObjectiveError, match="StudyRunning: while `optimize` runs"):
        study.optimize(lambda params: getattr(study, call)(*arguments), 3)
    assert study.observations.ledger.statistics.n_failed == 0
    assert len(study.pending) == 1


@pytest.mark.slow
def test_a_mistake_in_a_worker_ends_the_run():
    study = Study(BRANCHES, seed=0)
    with pytest.raises(ObjectiveError, match=INACTIVE):
        study.optimize(ProcessEvaluator(by_key, workers=1, retries=1), 12)
    assert study.observations.ledger.statistics.n_failed == 0


FAILURES = {
    "a key that is no parameter": lambda: {}["epoch"],
    "a key of an active parameter": lambda: {}["lr"],
    "another attribute": lambda: SimpleNamespace().loss,
    "a wrong type": lambda: 1 + "1",
    "a required integer": lambda: "x" * 2.0,
    "a wrong value": lambda: float("x"),
}


@pytest.mark.parametrize("fails", FAILURES.values(), ids=FAILURES)
def test_a_failure_of_a_configuration_is_a_failed_trial(fails):
    def objective(params):
        return fails() if params["lr"] > 0.5 else params["lr"]

    study = Study(BRANCHES, seed=0)
    study.optimize(objective, 6)
    assert 0 < study.observations.ledger.statistics.n_failed < 6


@pytest.mark.parametrize("n", [1, 2, 10])
@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_run_of_failures_ends_with_an_error_however_short(n, value):
    with pytest.raises(ObjectiveError, match=f"all of its {n} evaluations have failed"):
        minimize(lambda params: value, BRANCHES, n_trials=n, seed=0)


def test_failures_after_a_value_or_without_a_limit_end_without_an_error():
    study = Study(BRANCHES, seed=0)
    study.optimize(lambda params: float("nan"), 2, max_failures=None)
    study.add({"lr": 0.1, "optimizer": "adam", "momentum": None}, 1.0)
    study.optimize(lambda params: float("nan"), 2)
    assert study.observations.ledger.statistics.n_failed == 4


@pytest.mark.parametrize("timeout", [timedelta(milliseconds=200), 0.2])
def test_a_timeout_may_be_a_timedelta(timeout):
    study = Study(BRANCHES, seed=0)
    study.optimize(lambda params: params["lr"], None, timeout=timeout, stop_when=[])
    assert study.observations.ledger.n_asked
    with ThreadPoolExecutor(1) as pool:
        assert ExecutorEvaluator(by_key, pool, timeout=timedelta(minutes=1)).timeout == 60


@pytest.mark.parametrize("timeout", ["5", True, timedelta(0), [5]])
def test_another_timeout_is_refused_in_true_words(timeout):
    says = "which is no number" if not isinstance(timeout, timedelta) else r"timeout=0\.0"
    with pytest.raises(SettingError, match=says):
        minimize(lambda params: 1.0, BRANCHES, n_trials=2, timeout=timeout)


# --- values from elsewhere -------------------------------------------------------------------------------------------


def test_rows_outside_a_narrowed_space_may_be_dropped(tmp_path, caplog):
    caplog.set_level(logging.WARNING)
    narrow = SearchSpace({"lr": Real(0.01, 0.1), "optimizer": Categorical(["sgd", "adam"])})
    columns = {"lr": [0.05, 0.5, 0.1, 0.02], "optimizer": ["sgd", "sgd", "adam", "lion"]}
    study = Study(narrow)
    with pytest.raises(ValueError, match=r"row 1, parameter 'lr': values must lie in \[0.01, 0.1\], but got 0.5"):
        study.add(columns, [1.0, 2.0, 3.0, 4.0])
    study.add(columns, [1.0, 2.0, 3.0, 4.0], outside="drop", noise=[0.1, 0.2, 0.3, 0.4])
    assert [(trial.value, trial.noise) for trial in study.trials] == [(1.0, 0.1), (3.0, 0.3)]
    assert "2 of 4 results are outside the space" in caplog.text
    study.add({"lr": 5.0, "optimizer": "sgd"}, 1.0, outside="drop")
    assert len(study.observations) == 2
    with pytest.raises(SettingError, match="outside must be one of"):
        study.add(columns, [1.0, 2.0, 3.0, 4.0], outside="other")
    file = tmp_path / "earlier.csv"
    file.write_text("lr,optimizer,value\n0.05,sgd,1\n5,sgd,2\n0.07,lion,3\n0.1,adam,4\n")
    study.add_csv(file, outside="drop")
    assert [trial.value for trial in study.trials[2:]] == [1.0, 4.0]
    file.write_text("lr,optimizer,value\nfast,sgd,1\n")
    with pytest.raises(ValueError, match=r"line 2 of .*, column 'lr': a value must be a number"):
        study.add_csv(file, outside="drop")


def test_rows_that_constraints_forbid_may_be_dropped(tmp_path):
    study = Study(SearchSpace({"a": Real(0, 1), "b": Real(0, 1)}, constraints=["a < b"]))
    study.add({"a": [0.1, 0.9, 0.2], "b": [0.5, 0.5, 0.3]}, [1.0, 2.0, 3.0], outside="drop")
    assert [trial.value for trial in study.trials] == [1.0, 3.0]
    file = tmp_path / "earlier.csv"
    file.write_text("a,b,value\n0.3,0.2,1\n0.3,0.4,2\n")
    study.add_csv(file, outside="drop")
    assert [trial.value for trial in study.trials[2:]] == [2.0]


def exits(params):
    sys.exit("no licence")


def exits_silently(params):
    raise SystemExit


def exits_in_a_parser(params):
    argparse.ArgumentParser().parse_args(["--unknown"])


def exits_later(params):
    if params["x"] > 0.9:
        sys.exit(3)
    return params["x"]


@pytest.mark.parametrize("objective", [exits, exits_silently, exits_in_a_parser, exits_later])
@pytest.mark.parametrize("door", ["here", "threads", "processes"])
def test_an_exit_of_the_program_ends_the_run_and_loses_nothing(objective, door, tmp_path, capsys):
    space, path = SearchSpace({"x": Real(0, 1)}), tmp_path / "run.jsonl"
    with ThreadPoolExecutor(1) as threads:
        evaluator = {
            "here": lambda: objective,
            "threads": lambda: ExecutorEvaluator(objective, threads),
            "processes": lambda: ProcessEvaluator(objective, workers=1),
        }[door]()
        with pytest.raises(ObjectiveError, match=r"ends the whole program \(SystemExit.*stays pending.*raises another"):
            minimize(evaluator, space, 20, seed=0, journal=path)
    kept = Study.load(path)
    (pending,) = kept.pending
    assert all(trial.value == trial.params["x"] for trial in kept.trials[: pending.id])
    kept.optimize(lambda params: params["x"], 1)
    assert kept.trials[pending.id].value == pending.params["x"]
