"""Fixtures of several files on pictures."""

import numpy as np
import pytest

from deepbore import Outcome, Study
from pictured import DOTTED
from plane import SQUARE


@pytest.fixture(scope="module")
def limited(tmp_path_factory):
    """A study in which infeasible trials have better values than the best feasible one, and its journal."""
    path = tmp_path_factory.mktemp("limited") / "run.jsonl"
    study = Study(SQUARE, seed=0, direction="maximize", journal=path)
    study.optimize(lambda p: Outcome(p["x"] - p["y"], constraints=[p["x"] - 0.3, 0.6 - p["y"]]), 20, progress=False)
    study.fit()
    study.close()
    return study, path


@pytest.fixture(scope="module")
def dotted():
    study = Study(DOTTED, seed=0)
    study.optimize(lambda p: sum(k * (value - 0.4) ** 2 for k, value in enumerate(p.values(), 1)), 15, progress=False)
    study.fit()
    return study


@pytest.fixture
def after_a_task():
    study = Study(SQUARE, seed=0)
    xs = np.linspace(0, 1, 40).tolist()
    study.add({"x": xs, "y": xs}, [1000 + x for x in xs], task="old")
    for _ in range(12):
        (trial,) = study.ask()
        study.tell(trial, (trial.params["x"] - 0.3) ** 2 + trial.params["y"])
    study.fit()
    return study
