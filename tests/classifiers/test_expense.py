"""What evaluations are expected to cost."""

import math
from dataclasses import replace

import pytest
import torch
from scipy.stats import spearmanr

from deepbore import Categorical, KernelPLS, Real, SearchSpace
from deepbore.acquisition import LogExpectedImprovement
from deepbore.candidates import Search
from deepbore.classifiers.expense import Expense, log_costs, share_left
from deepbore.data.observations import Observations
from deepbore.data.outcome import Outcome
from deepbore.labels import LabelledBatch

SPACE = SearchSpace({"x": Real(0, 1), "y": Real(0, 1), "kind": Categorical(["a", "b"])})


def price(params):
    return math.exp(3 * params["x"]) * (4 if params["kind"] == "b" else 1)


def priced(n, cost=price):
    observations = Observations(SPACE)
    rows = observations.reserve(SPACE.points.sobol(n, seed=0))
    for row in rows:
        params = observations.trial(row).params
        observations.tell(row, Outcome(params["y"], cost=cost(params)))
    return observations


def expense(observations, exponent=1.0):
    return Expense.learned(observations, exponent, torch.Generator().manual_seed(0))


def unbounded(factor):
    return replace(factor, least=-math.inf)


def test_costs_are_learned_by_their_logarithms():
    factor = expense(priced(40))
    points = SPACE.points.sobol(200, seed=9)
    truth = torch.tensor([-math.log(price(params)) for params in SPACE.decode(points)], dtype=torch.float64)
    learned = unbounded(factor).log_factor(points)
    assert spearmanr(learned, truth).statistic > 0.98
    gap = (learned - learned.mean()) - (truth - truth.mean())
    assert gap.abs().mean() < 0.15


def test_the_exponent_is_that_of_the_factor():
    observations, points = priced(30), SPACE.points.sobol(20, seed=9)
    half, whole = (expense(observations, exponent).log_factor(points) for exponent in (0.5, 1.0))
    torch.testing.assert_close(2 * half, whole)


def test_what_is_cheaper_than_the_best_trial_is_not_preferred_to_it():
    observations = priced(40)
    factor, points = expense(observations), SPACE.points.sobol(200, seed=9)
    best = observations.trial(int(observations.centres.best_rows(1)[0]))
    free = unbounded(factor).log_factor(points)
    own = float(unbounded(factor).log_factor(SPACE.encode([best.params]))[0])
    held = factor.log_factor(points)
    assert float(held.max() - own) < 0.1
    cheaper = free > held + 1e-9
    assert 0 < int(cheaper.sum()) < 200
    torch.testing.assert_close(held[~cheaper], free[~cheaper])


@pytest.mark.parametrize(
    ("n", "cost", "exponent"),
    [(4, price, 1.0), (30, lambda params: 2.0, 1.0), (30, lambda params: 0.0, 1.0), (30, price, 0.0)],
    ids=["few", "alike", "free", "spent"],
)
def test_costs_that_say_nothing_have_no_factor(n, cost, exponent):
    assert expense(priced(n, cost), exponent) is None


def test_free_evaluations_have_a_logarithm():
    rows, logs = log_costs({3: 0.0, 5: 1.0, 7: 100.0})
    assert rows.tolist() == [3, 5, 7]
    assert logs.tolist() == pytest.approx([math.log(1e-3 * 50.5), 0.0, math.log(100)])


def test_what_is_left_falls_from_the_design_on():
    costs = dict(enumerate([5.0, 5.0, 10.0, 20.0]))
    shares = [share_left(dict(list(costs.items())[:n]), 50.0, 2) for n in range(5)]
    assert shares == pytest.approx([1.0, 1.0, 1.0, 0.75, 0.25])
    assert share_left(costs, 30.0, 2) == 0.0
    assert share_left(costs, 8.0, 2) == 0.0


def test_the_gradient_is_that_of_the_values():
    observations = priced(30)
    model = KernelPLS()
    model.bind(SPACE)
    grades = torch.rand(30, 1, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    model.learn(LabelledBatch(observations.points, grades, torch.ones(30, dtype=torch.float64)))
    search = Search(
        LogExpectedImprovement().resolved(model),
        model,
        observations,
        torch.Generator().manual_seed(0),
        expense=expense(observations, 0.7),
    )
    points = SPACE.points.sobol(5, seed=4).double()
    found, step = search.gradient(points), 1e-5
    for column in (0, 1):
        ahead, behind = points.clone(), points.clone()
        ahead[:, column] += step
        behind[:, column] -= step
        slope = (search.value(ahead) - search.value(behind)) / (2 * step)
        torch.testing.assert_close(found[:, column], slope, rtol=1e-3, atol=1e-4)
