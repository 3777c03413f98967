"""Costs of evaluations: told, kept, limited, and weighed against what may be gained."""

import json
import math
import time

import numpy as np
import pytest
import torch

from deepbore import Categorical, Outcome, Real, Study, minimize
from deepbore.data.trial import Status
from deepbore.errors import JournalError, SettingError, ValueTypeError
from deepbore.evaluators.base import EvaluationWarning

SPACE = {"x": Real(-1, 1), "y": Real(-1, 1)}
MIXED = {**SPACE, "kind": Categorical(["plain", "dear"])}


def loss(params):
    return (params["x"] - 0.3) ** 2 + (params["y"] + 0.2) ** 2


def price(params):
    return math.exp(2 * params["x"]) * (3 if params.get("kind") == "dear" else 1)


def two_valleys(params):
    """Two optima of equal depth, at x = -.5 and x = .5, of which the second costs twenty times as much."""
    return min((params["x"] - at) ** 2 for at in (-0.5, 0.5)) + 0.2 * params["y"] ** 2


def go_on(study, n, cost=price, of=loss):
    while len(study.trials) < n:
        (trial,) = study.ask()
        study.tell(trial, of(trial.params), cost=cost(trial.params))
    return [trial.params for trial in study.trials]


def test_costs_are_kept_with_every_outcome(tmp_path):
    study = Study(SPACE, journal=tmp_path / "run.jsonl")
    told, failed, pruned, unknown = study.ask(4)
    study.tell(told, 1.0, cost=2.5)
    study.tell(failed, failed=True, cost=np.float32(0.5))
    study.report(pruned, 0.3, 1)
    study.tell(pruned, pruned=True, cost=torch.tensor(1))
    study.tell(unknown, Outcome(3.0))
    kept = [2.5, 0.5, 1.0, None]
    assert [trial.cost for trial in study.trials] == kept
    assert study.trials[1].status is Status.FAILED
    assert study.to_frame()["cost"].tolist()[:3] == kept[:3]
    study.close()
    assert [trial.cost for trial in Study.load(tmp_path / "run.jsonl").trials] == kept


def test_what_was_spent_stays_spent(tmp_path):
    study = Study(SPACE, journal=tmp_path / "run.jsonl")
    one, two, three = study.ask(3)
    for trial in (one, two, three):
        study.tell(trial, 1.0, cost=2.0)
    study.withdraw(one)
    study.correct(two, 0.5)
    study.correct(three, Outcome(0.5, cost=7.0))
    study.close()
    for each in (study, Study.load(tmp_path / "run.jsonl")):
        assert [trial.cost for trial in each.trials] == [2.0, 2.0, 7.0]


@pytest.mark.parametrize("cost", [-1, math.nan, math.inf, "two", True, [1, 2]])
def test_a_cost_is_a_finite_number(cost):
    study = Study(SPACE)
    (trial,) = study.ask()
    with pytest.raises(ValueTypeError, match=r"a cost must be .*but got"):
        study.tell(trial, 1.0, cost=cost)
    assert study.trials[0].status is Status.PENDING


@pytest.mark.parametrize("limit", [0, -1, math.nan])
def test_a_limit_is_above_zero(limit):
    with pytest.raises(SettingError, match="cost_limit"):
        Study(SPACE, cost_limit=limit)


def test_a_run_ends_when_its_costs_are_spent():
    study = minimize(lambda p: Outcome(loss(p), cost=price(p)), SPACE, n_trials=None, cost_limit=30, seed=0).study
    costs = [trial.cost for trial in study.trials]
    assert sum(costs[:-1]) < 30 <= sum(costs)


def test_failures_cost_their_seconds_too():
    def fails(params):
        time.sleep(0.02)
        if params["x"] > 0:
            raise RuntimeError("diverged")
        return loss(params)

    with pytest.warns(EvaluationWarning, match="diverged"):
        study = minimize(fails, SPACE, n_trials=None, cost_limit=0.3, seed=0).study
    assert all(0.02 <= trial.cost < 1 for trial in study.trials)
    assert len(study.trials) <= 15


def test_seconds_are_told_where_they_are_what_ends_a_run(tmp_path):
    def cost_of(**ends):
        return minimize(loss, SPACE, seed=0, **ends).study.trials[0].cost

    assert cost_of(n_trials=3) is None
    assert cost_of(n_trials=3, timeout=60) is None  # which equal runs have alike
    assert cost_of(n_trials=None, timeout=0.5) is not None
    assert cost_of(n_trials=3, cost_limit=60) is not None


@pytest.mark.parametrize("ended", [4, 13, 20])
def test_a_resumed_run_goes_on_bit_for_bit(tmp_path, ended):
    whole = go_on(Study(MIXED, seed=3, cost_limit=60), 24)
    study = Study(MIXED, seed=3, cost_limit=60, journal=tmp_path / "run.jsonl")
    go_on(study, ended)
    study.close()
    assert go_on(Study.load(tmp_path / "run.jsonl"), 24) == whole


def test_the_limit_may_be_raised(tmp_path):
    def run(limit):
        priced = lambda params: Outcome(loss(params), cost=1.0)  # noqa: E731
        kept = {"journal": tmp_path / "run.jsonl", "if_exists": "load"}
        return len(minimize(priced, SPACE, n_trials=None, cost_limit=limit, seed=0, **kept).study.trials)

    assert [run(12), run(12), run(15)] == [12, 12, 15]


@pytest.mark.parametrize("limit", [-1, "much", None])
def test_a_hostile_limit_is_refused(tmp_path, limit):
    path = tmp_path / "run.jsonl"
    Study(SPACE, journal=path, cost_limit=3).close()
    first, *rest = path.read_text().splitlines()
    path.write_text("\n".join([json.dumps({**json.loads(first), "cost_limit": limit}), *rest]) + "\n")
    with pytest.raises(JournalError):
        Study.load(path)


def test_of_equal_gains_the_cheap_one_is_sought():
    dear = {"knowing": [], "unknowing": []}
    for seed in range(6):
        for how, limit in (("knowing", 200.0), ("unknowing", None)):
            study = Study(SPACE, seed=seed, **({} if limit is None else {"cost_limit": limit}))
            proposed = go_on(study, 30, cost=lambda params: math.exp(3 * params["x"]), of=two_valleys)[10:]
            dear[how].append(sum(params["x"] > 0 for params in proposed))
    assert sum(dear["knowing"]) < 0.7 * sum(dear["unknowing"]), dear  # where the design began in the dear one, it stays


def test_equal_costs_change_nothing():
    alike = go_on(Study(MIXED, seed=1, cost_limit=40), 20, cost=lambda params: 2.0)
    assert alike == go_on(Study(MIXED, seed=1), 20)
