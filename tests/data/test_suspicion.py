"""Suspicious values against hand-made landscapes."""

import numpy as np
import pytest

from deepbore import Budget, Real, SearchSpace
from deepbore.data.observations import Observations
from deepbore.data.suspicion import far_off_values, too_good_values as good_and_doubtful

SQUARE = SearchSpace({"x": Real(0, 1), "y": Real(0, 1)})


def bowl(x):
    return 0.3 + np.square(x - [0.3, 0.6]).sum(-1)


def too_good_values(x, values):
    return good_and_doubtful(x, values)[0]


def places(n, seed=0):
    return np.random.default_rng(seed).random((n, 2))


@pytest.mark.parametrize("wrong", [-10.0, -1e6, -1e300, 0.0])
@pytest.mark.parametrize("at", [1, 5, 20])
def test_one_value_beyond_all_others_is_suspicious(wrong, at):
    x = places(25)
    values = bowl(x)
    values[at] = wrong
    assert too_good_values(x, values).tolist() == [at]


def test_a_value_just_below_the_optimum_is_refuted_by_its_neighbours():
    x = np.concatenate([places(20), [[0.9, 0.1], [0.91, 0.11], [0.899, 0.1]]])
    values = bowl(x)
    values[20] = 0.2999
    assert too_good_values(x[:20], values[:20]).tolist() == []
    assert too_good_values(x, values).tolist() == [20]


def test_rows_beside_a_value_alone_confirm_it():
    x = np.concatenate([places(20), [[0.9, 0.1], [0.95, 0.15]]])
    values = np.append(bowl(x[:20]) + 1, [-2.0, -1.9])
    assert too_good_values(x, values).tolist() == []
    x, values = np.concatenate([x, [[0.905, 0.1]]]), np.append(values, 1.7)
    assert too_good_values(x, values).tolist()[:1] == [20]


@pytest.mark.parametrize("step", [1e-2, 1e-3])
def test_a_neighbour_that_comes_close_confirms_a_narrow_optimum(step):
    def needle(x):
        return bowl(x) - 5 * np.exp(-np.square((x - [0.8, 0.2]) / 0.02).sum(-1))

    x = np.concatenate([places(20), [[0.8, 0.205]]])
    assert too_good_values(x, needle(x)).tolist() == [20]
    x = np.concatenate([x, [[0.8 - step, 0.205 + step]]])
    assert too_good_values(x, needle(x)).tolist() == []


@pytest.mark.parametrize("seed", range(5))
def test_true_values_are_not_suspicious(seed):
    x = np.concatenate([places(15, seed), [0.3, 0.6] + 1e-3 * places(15, seed + 100), [[0.3, 0.6]]])
    for values in (bowl(x), np.square(bowl(x) - 0.3), np.round(bowl(x), 1), -np.square(bowl(x)), np.exp(9 * bowl(x))):
        assert not len(too_good_values(x, values))
        assert not len(far_off_values(x, values))


@pytest.mark.parametrize("seed", range(8))
def test_slopes_and_valleys_are_not_suspicious(seed):
    for x in (places(28, seed), np.concatenate([places(12, seed), [0.3, 0.6] + 0.1 * (places(24, seed) - 0.5)])):
        u, v = 4 * x.T - 2
        for values in ((x.sum(-1) - 0.9) ** 2, 100 * (u**2 - v) ** 2 + (1 - u) ** 2, np.log(bowl(x) - 0.299)):
            assert not len(far_off_values(x, values))


def test_equal_values_are_not_suspicious():
    x = places(20)
    assert not len(too_good_values(x, np.ones(20)))
    assert not len(far_off_values(x, np.ones(20)))


@pytest.mark.parametrize("diverged", [5.0, 1e6, 1e300])
def test_values_far_worse_than_good_neighbours_are_suspicious_and_walls_are_not(diverged):
    x = np.concatenate([places(15), [0.3, 0.6] + 0.1 * (places(20, 1) - 0.5)])
    values = bowl(x)
    values[[18, 30]] = diverged
    assert {18, 30} <= set(far_off_values(x, values).tolist())
    values = np.where(x[:, 0] > 0.5, diverged, bowl(x))  # a wall
    assert not len(far_off_values(x, values))


@pytest.mark.parametrize("share", [0.05, 0.15, 0.3])
@pytest.mark.parametrize("diverged", [4.0, 30.0, 1e30])
def test_values_that_diverge_by_chance_are_suspicious_however_many_they_are(share, diverged):
    found = told = 0
    for seed in range(10):
        x = np.concatenate([places(12, seed), [0.3, 0.6] + 0.1 * (places(24, seed + 50) - 0.5)])
        by_chance = np.random.default_rng(seed).random(36) < share
        suspicious = far_off_values(x, np.where(by_chance, diverged, bowl(x)))
        assert by_chance[suspicious].all()
        found, told = found + len(suspicious), told + by_chance.sum()
    assert found > 0.5 * told


def test_a_wall_stays_believed_where_runs_diverge_by_chance_as_well():
    caught = []
    for seed in range(10):
        x = np.concatenate([places(20, seed), [0.3, 0.6] + 0.2 * (places(20, seed + 50) - 0.5)])
        wall, by_chance = x[:, 0] > 0.6, np.random.default_rng(seed).random(40) < 0.1
        suspicious = far_off_values(x, np.where(wall | by_chance, 30.0, bowl(x)))
        assert wall[suspicious].sum() <= 1  # at its edge
        caught += np.isin(np.flatnonzero(by_chance & ~wall), suspicious).tolist()
    assert np.mean(caught) > 0.6


def test_each_objective_and_each_budget_is_looked_at_by_itself():
    x = places(12)
    params = {"x": x[:, 0], "y": x[:, 1]}
    two = np.stack([bowl(x), x[:, 0]], axis=-1)
    two[4, 1] = -50.0
    observations = Observations(SQUARE, ("minimize", "minimize"))
    observations.add(params, two)
    assert observations.suspicion.too_good == (4,)
    rungs = Observations(SQUARE, budget=Budget("epochs", 1, 9))
    values = np.where(np.arange(12) == 3, -50.0, bowl(x))
    rungs.add(params, values, budgets=[1] * 12)
    rungs.add(params, bowl(x) - 60, budgets=[3] * 12)  # of another scale
    assert rungs.suspicion.too_good == (3,)


def test_suspicious_trials_are_believed_to_have_failed_and_stay_as_they_were_told():
    x = places(12)
    observations = Observations(SQUARE, "maximize")
    observations.add({"x": x[:, 0], "y": x[:, 1]}, np.where(np.arange(12) == 2, 50.0, -bowl(x)))
    believed = observations.believed
    assert believed.best.id == int(np.where(np.arange(12) == 2, 9, bowl(x)).argmin())
    assert believed.ledger.statistics.n_failed == 1
    assert believed.ledger.statistics.n_complete == 11
    assert observations.best.id == 2
    assert observations.ledger.statistics.n_failed == 0
    assert observations.believed is believed
    params = {"x": [x[2, 0] + 0.005], "y": [x[2, 1]]}
    observations.add(params, [49.0])  # confirms it
    assert observations.believed is observations


def test_of_many_values_the_newest_are_not_measured_by_the_best_alone():
    x = np.random.default_rng(0).random((6000, 2))
    observations = Observations(SearchSpace({"x": Real(0, 1), "y": Real(0, 1)}))
    observations.add({"x": x[:, 0], "y": x[:, 1]}, np.square(x - 0.4).sum(1))
    assert not observations.suspicion
