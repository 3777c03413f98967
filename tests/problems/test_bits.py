"""Binary parameters whose effects depend on each other: where the best configuration is, and what the families are."""

import itertools

import numpy as np
import pytest
import torch

from deepbore.errors import SettingError
from deepbore.problems import Bits, suites
from deepbore.problems.benchmarks import bits
from deepbore.problems.benchmarks.bits import BIT_FAMILIES


@pytest.mark.parametrize("family", BIT_FAMILIES)
def test_no_configuration_is_better_than_the_best_one(family):
    problem = Bits(family, 1)
    assert problem(problem.best) == problem.optimum == 0
    flipped = [problem.best | {name: 1 - level} for name, level in problem.best.items()]
    drawn = problem.space.decode(problem.space.points.sample(300, torch.Generator().manual_seed(0)))
    assert min(problem(params) for params in flipped) >= 0
    assert min(problem(params) for params in drawn) > 0
    assert Bits(family, 1).best == problem.best != Bits(family, 2).best


@pytest.mark.parametrize("family", BIT_FAMILIES)
def test_what_a_parameter_changes_depends_on_others(family):
    function = BIT_FAMILIES[family](np.random.default_rng(0))
    start = np.zeros((1, 18))
    pairs = itertools.combinations(range(18), 2)

    def value(*ones):
        changed = start.copy()
        changed[:, list(ones)] = 1
        return float(function(changed)[0])

    together = [abs(value(i, j) - value(i) - value(j) + value()) for i, j in pairs]
    assert max(together) > 1e-3


def test_values_of_pairs_by_hand(monkeypatch):
    monkeypatch.setattr(bits, "COUNT", 3)
    effects = np.random.default_rng(5).standard_normal((3, 3))
    fading = np.exp(-np.array([[0, 1, 4], [1, 0, 1], [4, 1, 0]]) / 10)
    function = bits.quadratic(np.random.default_rng(5))
    for x in itertools.product((0.0, 1.0), repeat=3):
        expected = -sum(x[i] * x[j] * effects[i, j] * fading[i, j] for i in range(3) for j in range(3))
        assert function(np.array([x]))[0] == pytest.approx(expected, abs=1e-12)


def test_the_suite_has_eight_of_each_family_in_two_halves():
    names = suites.suite("bits", half="all")
    assert len(names) == 24
    assert not set(suites.suite("bits")) & set(suites.suite("bits", half="held_out"))
    assert suites.problem("bits/clauses-4").best == Bits("clauses", 4).best


@pytest.mark.parametrize(("family", "seed"), [("sorting", 0), ("clauses", -1)])
def test_what_is_not_there_is_refused(family, seed):
    with pytest.raises(SettingError):
        Bits(family, seed)
