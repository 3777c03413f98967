"""A user's program, as type checkers see it: `test_typing.py` runs them over it, and asks what they have found."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import assert_type

import numpy as np

import deepbore
from deepbore import (
    Budget,
    Categorical,
    Integer,
    KernelPLS,
    MedianPruner,
    NoImprovement,
    Outcome,
    ProcessEvaluator,
    Real,
    Result,
    SearchSpace,
    Study,
    Trial,
    TrialPruned,
    maximize,
    minimize,
)
from deepbore.evaluators import Evaluator, Objective
from deepbore.space import Params

SPACE = SearchSpace({"lr": Real(1e-5, 0.1, log=True), "units": Integer(8, 512), "act": Categorical(["relu", "tanh"])})


def plain(params: Params) -> float:
    """The plain form: a dict in, a number out."""
    return float(params["lr"]) ** 2


def reporting(params: dict[str, float], trial: Trial) -> float:
    """The form that reports, and may be pruned."""
    for epoch in range(5):
        trial.report(params["lr"], step=epoch)
        if trial.should_prune():
            raise TrialPruned
    return params["lr"]


def by_names(lr: float, units: int, act: str) -> np.float64:
    """Each parameter by its name, and a number of NumPy."""
    return np.float64(lr * units * len(act))


def two_values(params: Params) -> dict[str, float]:
    """Two objectives by their names."""
    return {"loss": float(params["lr"]), "size": float(params["units"])}


def full(params: Params) -> Outcome:
    """An outcome, with what it cost."""
    return Outcome(float(params["lr"]), cost=2.0)


class Model:
    """An object that is called."""

    def __call__(self, params: Params) -> Sequence[float]:
        return [float(params["lr"])]


def look(study: Study, trial: Trial) -> None:
    """A callback."""
    best = study.best_trial
    assert_type(best, Trial | None)
    if best is not None and trial.id == best.id:
        study.annotate(trial, {"new best": study.best_value})


objectives: list[Objective] = [plain, reporting, by_names, two_values, full, Model()]
result = minimize(plain, SPACE, 20, seed=0, workers=2, stop_when=NoImprovement(trials=5), callbacks=[look])
assert_type(result, Result)
assert_type(result.best_value, float)
assert_type(result.best_params, Params)
assert_type(result.best_trial, Trial | None)
assert_type(result.study, Study)
assert_type(result.pareto_front, list[Trial])
assert_type(maximize(reporting, {"lr": Real(0, 1)}, 9, pruner=MedianPruner(), budget=Budget("epochs", 1, 9)), Result)
minimize(two_values, SPACE, 9, directions={"loss": "minimize", "size": "minimize"}, journal=Path("run.jsonl"))
evaluator: Evaluator = ProcessEvaluator(by_names, workers=4)
with Study(SPACE, direction="maximize", classifier=KernelPLS(noisy=True), if_exists="load", journal="b.jsonl") as study:
    assert_type(study, Study)
    assert_type(study.ask(3), list[Trial])
    asked = study.ask_one()
    assert_type(asked, Trial)
    assert_type(asked.params, Params)
    study.tell(asked, full(asked.params))
    assert_type(study.best_params, Params)
    assert_type(study.best_value, float)
    assert_type([trial.value for trial in study.trials], list[float | None])
    assert_type(study.optimize(evaluator, 5, timeout=60.0), Result)
make: Callable[[str], Study] = Study.load
assert_type(Study.load("run.jsonl"), Study)
assert_type(deepbore.__version__, str)
