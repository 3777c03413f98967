"""What is best: found when somebody asks, and the same as by looking at all trials."""

import math

import pytest
import torch
from hypothesis import given, settings, strategies as st

from deepbore import Budget, Ordinal, Outcome, SearchSpace
from deepbore.data.observations import Observations
from deepbore.data.ranking import Ranking, may_be_best
from deepbore.data.replicates import Replicates
from deepbore.data.trial import Status

SPACE = SearchSpace({"x": Ordinal(list(range(9)))})
VALUES = st.sampled_from([1.0, 2.0, 2.0, 3.0, float("nan")])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("ask"), st.integers(0, 8), st.sampled_from([1, 3, 9])),
        st.tuples(st.just("tell"), VALUES, st.sampled_from([-1.0, 1.0])),
        st.tuples(st.just("add"), st.lists(VALUES, min_size=1, max_size=3), st.sampled_from([1, 3, 9])),
        st.tuples(st.just("look"), st.none(), st.none()),
    ),
    max_size=25,
)


def take(observations, step, given, other):
    """One step; `tell` is for the trial that was asked for last."""
    if step == "ask":
        budget = None if observations.budget is None else other
        observations.reserve(SPACE.encode([{"x": given}]), budget)
    elif step == "tell" and len(waiting := observations.columns.pending_rows):
        observations.tell(int(waiting[-1]), Outcome(given, constraints=[other]))
    elif step == "add":
        budgets = None if observations.budget is None else other
        constraints = [[-1.0]] * len(given)
        observations.add({"x": list(range(len(given)))}, given, constraints=constraints, budgets=budgets)


def best_trial(trials, has_budget):
    """The first feasible trial with the best value, at the largest budget that has any; by a look at all of them."""
    among = filter(may_be_best, trials)
    return min(among, key=lambda each: (-(each.budget or 0) if has_budget else 0, each.value), default=None)


def since_best(observations, steps):
    """How many trials were told since a better one was, step by step."""
    n, before = 0, None
    for step in steps:
        known = len(observations.columns.finished_rows)
        take(observations, *step)
        if len(observations.columns.finished_rows) == known:
            continue
        best = best_trial(observations.trials(), observations.budget is not None)
        key = None if best is None else (-(best.budget or 0) if observations.budget else 0, best.value)
        n = 0 if step[0] == "add" or (key is not None and (before is None or key < before)) else n + 1
        before = key
    return n


@pytest.mark.parametrize("budget", [None, Budget("epochs", 1, 9)])
@given(steps=STEPS)
@settings(max_examples=60, deadline=None)
def test_the_best_and_how_long_ago_it_was_are_those_of_a_look_at_all_trials(budget, steps):
    observations, again = Observations(SPACE, budget=budget), Observations(SPACE, budget=budget)
    for step in steps:
        take(observations, *step)
        if step[0] == "look":
            _ = observations.best, observations.replicates.sorted_values
    expected = best_trial(observations.trials(), budget is not None)
    assert observations.best == expected
    assert observations.ledger.ranking.n_since_best == since_best(again, steps)
    own = observations.values[:, 0]
    assert observations.replicates.sorted_values.tolist() == own[~own.isnan()].sort().values.tolist()
    candidates = [trial.id for trial in observations.trials() if may_be_best(trial)]
    if budget is not None and candidates:
        largest = max(observations.trial(row).budget for row in candidates)
        candidates = [row for row in candidates if observations.trial(row).budget == largest]
    assert observations.may_be_best.nonzero().squeeze(-1).tolist() == candidates


def test_nothing_is_ranked_when_a_trial_is_told(monkeypatch):
    observations = Observations(SPACE)
    rows = observations.reserve(SPACE.encode([{"x": k} for k in range(3)]))

    def refuse(self):
        raise AssertionError("ranked")

    with monkeypatch.context() as patched:
        patched.setattr(Ranking, "_current", refuse)
        patched.setattr(Replicates, "average", refuse)
        for row in rows:
            observations.tell(row, float(row))
        observations.add({"x": [5]}, [-1.0])
    assert (observations.best.id, observations.ledger.ranking.n_since_best) == (3, 0)
    assert observations.centres.best_rows(2).tolist() == [3, 0]


def test_infeasible_rows_come_after_all_feasible_ones_by_their_violation():
    observations = Observations(SPACE)
    observations.add({"x": list(range(4))}, [0.0, 1.0, 2.0, 3.0], constraints=[[2.0], [1.0], [-1.0], [0.0]])
    assert observations.centres.best_rows(4).tolist() == [2, 3, 1, 0]
    assert observations.centres.best_first(torch.tensor([0, 1, 2, 3])).tolist() == [2, 3, 1, 0]
    assert observations.front_rows.tolist() == [2]
    assert observations.best.id == 2
    assert observations.trial(0).status is Status.COMPLETE
    assert not math.isnan(observations.trial(0).value)
