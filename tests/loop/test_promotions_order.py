"""Who is promoted, from the trials alone: a few cases by hand and at random."""

import itertools
import math
import random

import pytest

from deepbore import Budget, Categorical, Real, SearchSpace, Study
from deepbore.data.observations import Observations
from deepbore.loop.promotions import Promotions, best_of_rung
from plane import LINE

EPOCHS = Budget("epochs", 1, 9)


def told(rows):
    """Observations of (x, budget, value), None for a failure."""
    observations = Observations(LINE, budget=EPOCHS)
    for x, budget, value in rows:
        observations.add({"x": x}, math.nan if value is None else value, budgets=budget)
    return observations


def by_hand(rows):
    """Row and next budget of all that is promoted, one rung after another."""
    found = []
    for low, up in ((3, 9), (1, 3)):
        rung = [(value, row) for row, (_, budget, value) in enumerate(rows) if budget == low]
        top = sorted(one for one in rung if one[0] is not None)[: len(rung) // 3]
        tried = {x for x, budget, _ in rows if budget == up}
        for _, row in top:
            if rows[row][0] not in tried:
                found.append((row, up))
                tried.add(rows[row][0])
    return found


@pytest.mark.parametrize("seed", range(12))
def test_the_best_third_of_each_rung_is_promoted_once_the_highest_rung_first(seed):
    stream = random.Random(seed)
    values = [*range(100), *[None] * 30]
    stream.shuffle(values)
    rows = [(stream.randint(0, 6) / 8, stream.choice([1, 1, 3, 9]), value) for value in values[: 5 + 3 * seed]]
    found, expected = Promotions(told(rows)), by_hand(rows)
    assert len(found) == len(expected)
    assert [tuple(each) for each in found.first(100)] == expected
    for q in range(4):
        assert [tuple(each) for each in found.first(q)] == expected[:q]
    for row in range(len(rows)):
        assert [tuple(each) for each in found.first(1, of=row)] == [each for each in expected if each[0] == row]


def test_there_is_something_to_promote_in_most_of_these_cases():
    assert by_hand([(0.1, 1, 3), (0.2, 1, 2), (0.3, 1, None)]) == [(1, 3)]


def test_without_a_budget_nothing_is_promoted():
    observations = Observations(LINE)
    observations.add({"x": [0.1, 0.2, 0.3]}, [1.0, 2.0, 3.0])
    assert len(Promotions(observations)) == 0
    assert Promotions(observations).first(3) == []


@pytest.mark.parametrize("n", range(1, 8))
def test_pending_trials_are_no_results(n):
    study = Study(LINE, budget=EPOCHS, n_initial=50, seed=0)
    trials = study.ask(9)
    for trial in trials[:n]:
        study.tell(trial, -float(trial.id))
    best = best_of_rung(study.observations, EPOCHS, 1)
    assert best.tolist() == list(range(n))[::-1][: n // 3]


def test_a_share_of_a_factor_that_is_no_whole_number_is_rounded_down():
    budget = Budget("epochs", 1, 6.25, factor=2.5)
    for n, count in ((4, 1), (5, 2), (7, 2), (10, 4)):
        observations = Observations(LINE, budget=budget)
        observations.add({"x": [k / 16 for k in range(n)]}, list(map(float, range(n))), budgets=[1] * n)
        assert len(best_of_rung(observations, budget, 1)) == count


def test_configurations_with_other_values_than_the_fixed_ones_wait():
    space = SearchSpace({"x": Real(0, 1), "o": Categorical(["a", "b"])})
    observations = Observations(space, budget=EPOCHS)
    for k, o in zip(range(6), itertools.cycle("ab"), strict=False):
        observations.add({"x": k / 8, "o": o}, float(k), budgets=1)
    assert [each.row for each in Promotions(observations).first(9)] == [0, 1]
    observations.fix({"o": "b"})
    assert [each.row for each in Promotions(observations).first(9)] == [1]
