"""What docstrings and guides promise of searches and heads where values are fixed, forbidden, pending or missing."""

import pytest

from deepbore import (
    BoTorchBatch,
    MultiStartLBFGS,
    Real,
    SearchSpace,
    Study,
)

SQUARE = SearchSpace({"x": Real(0, 1), "y": Real(0, 1)})


def bowl(params):
    return sum((value - 0.3) ** 2 for value in params.values())


def go_on(study, n, objective=bowl):
    asked = []
    for _ in range(n):
        (trial,) = study.ask()
        study.tell(trial, objective(trial.params))
        asked.append(trial.params)
    return asked


# --- what is fixed during a run --------------------------------------------------------------------------------------


@pytest.mark.parametrize("search", [MultiStartLBFGS(), BoTorchBatch(), BoTorchBatch(joint=True)])
def test_searches_by_gradients_go_on_where_a_value_is_fixed_during_the_run(search):
    study = Study(SQUARE, seed=0, candidates=search)
    go_on(study, 12)
    study.fix({"x": 0.5})
    asked = go_on(study, 3)
    assert [params["x"] for params in asked] == [0.5] * 3
    assert min(abs(params["y"] - 0.3) for params in asked) < 0.05


def test_searches_by_gradients_start_where_what_is_fixed_breaks_no_constraint():
    space = SearchSpace({"x": Real(0, 1), "y": Real(0, 1)}, constraints=["x + y <= 1"])
    study = Study(space, seed=0, candidates=MultiStartLBFGS())
    go_on(study, 12)
    study.fix({"x": 0.9})  # the best rows so far have y > 0.1
    assert all(params["y"] <= 0.1 + 1e-9 for params in go_on(study, 3))
