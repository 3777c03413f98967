"""CMA-ES: against two other implementations, and against its own formulas written out."""

import math

import cma
import cmaes
import numpy as np
import pytest
import torch

from deepbore.problems.benchmarks.rotated import Rotated
from deepbore.strategies.cma_es import CMAES, recombination, reflected


def middle(d):
    return torch.full((d,), 0.5, dtype=torch.float64)


def bowl(x):
    return float(np.sum(10 ** np.arange(len(x)) * (np.asarray(x) - 0.4) ** 2))


def test_mean_and_weights_are_those_of_pycma_in_every_generation():
    theirs = cma.CMAEvolutionStrategy(np.full(4, 0.5), 0.05, {"seed": 3, "verbose": -9, "CMA_active": False})
    ours = CMAES(middle(4), 0.05)
    assert ours.size == theirs.popsize
    weights = np.array(theirs.sp.weights.positive_weights)
    assert np.allclose(recombination(ours.size).numpy(), weights / weights.sum())
    for _ in range(20):
        asked = theirs.ask()
        values = [bowl(x) for x in asked]
        theirs.tell(asked, values)
        ours.adapt(torch.tensor(np.array(asked)), torch.tensor(values, dtype=torch.float64))
        assert np.allclose(ours.mean.numpy(), theirs.mean, rtol=0, atol=1e-14)
        assert ours.sigma == pytest.approx(theirs.sigma, rel=0.35)  # its rates differ a little from the tutorial's


def test_the_first_scale_and_the_paths_are_those_of_the_package_cmaes():
    theirs = cmaes.CMA(mean=np.full(5, 0.5), sigma=0.1, seed=1)
    ours = CMAES(middle(5), 0.1)
    asked = [theirs.ask() for _ in range(theirs.population_size)]
    values = [bowl(x) for x in asked]
    theirs.tell(list(zip(asked, values, strict=True)))
    ours.adapt(torch.tensor(np.array(asked)), torch.tensor(values, dtype=torch.float64))
    assert ours.sigma == pytest.approx(theirs._sigma, rel=1e-9)
    assert np.allclose(ours.scale_path.numpy(), theirs._p_sigma)
    assert np.allclose(ours.path.numpy(), theirs._pc)


def test_the_covariance_is_its_formula_a_step_at_a_time():
    ours, d = CMAES(middle(3), 0.1), 3
    points = torch.rand(7, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    values = torch.arange(7, dtype=torch.float64).flip(0)
    ours.adapt(points, values)
    best = points.flip(0)[:3].numpy()
    w = np.log(4) - np.log([1, 2, 3])
    w = w / w.sum()
    mass = 1 / np.sum(w**2)
    steps = (best - 0.5) / 0.1
    slow = (4 + mass / d) / (d + 4 + 2 * mass / d)
    one = 2 / ((d + 1.3) ** 2 + mass)
    several = min(1 - one, 2 * (0.25 + mass + 1 / mass - 2) / ((d + 2) ** 2 + mass))
    path = math.sqrt(slow * (2 - slow) * mass) * (w @ steps)
    if not np.allclose(ours.path.numpy(), path):  # the path rests while the scale grows fast
        path = np.zeros(3)
        one_kept = one * slow * (2 - slow)
    else:
        one_kept = 0.0
    expected = (1 - one - several + one_kept) * np.eye(d) + one * np.outer(path, path)
    expected += several * sum(w[i] * np.outer(steps[i], steps[i]) for i in range(3))
    assert np.allclose(ours.covariance.numpy(), expected)


def spent(name, d, seed, most=6000):
    """Evaluations until 1e-6, of ours."""
    problem, ours = Rotated(name, d, seed), CMAES(middle(d), 0.25)
    generator, count = torch.Generator().manual_seed(seed), 0
    while count < most and not ours.has_converged:
        points = ours.offspring(ours.size, generator)
        values = torch.tensor([problem.value(2 * x - 1) for x in points.numpy()], dtype=torch.float64)
        ours.adapt(points, values)
        count += len(points)
        if float(values.min()) < 1e-6:
            return count
    return most


def spent_by_pycma(name, d, seed, most=6000):
    problem = Rotated(name, d, seed)
    options = {"bounds": [0, 1], "seed": seed + 1, "verbose": -9}
    theirs, count = cma.CMAEvolutionStrategy(np.full(d, 0.5), 0.25, options), 0
    while count < most and not theirs.stop():
        asked = theirs.ask()
        values = [problem.value(2 * x - 1) for x in asked]
        theirs.tell(asked, values)
        count += len(asked)
        if min(values) < 1e-6:
            return count
    return most


@pytest.mark.parametrize("name", ["levy", "ellipsoid"])
def test_it_needs_about_as_many_evaluations_as_pycma(name):
    d = {"levy": 8, "ellipsoid": 4}[name]
    ratios = [spent(name, d, seed) / spent_by_pycma(name, d, seed) for seed in range(12)]
    assert 0.6 < float(np.median(ratios)) < 1.6, ratios


def test_offspring_have_the_covariance_and_stay_in_the_cube():
    ours = CMAES(middle(3), 0.01)
    ours.covariance = torch.tensor([[2.0, 0.9, 0], [0.9, 1.0, 0], [0, 0, 0.1]], dtype=torch.float64)
    drawn = ours.offspring(40_000, torch.Generator().manual_seed(0))
    assert torch.allclose(drawn.mT.cov() / 1e-4, ours.covariance, atol=0.05)
    wide = CMAES(middle(3), 5.0).offspring(1000, torch.Generator().manual_seed(0))
    assert 0 <= float(wide.min()) < float(wide.max()) <= 1
    assert reflected(torch.tensor([[-0.25, 1.25, 2.5]])).tolist() == [[0.25, 0.75, 0.5]]


def test_failures_are_the_worst_and_a_generation_of_them_moves_nothing_to_nan():
    ours = CMAES(middle(2), 0.1)
    points = ours.offspring(6, torch.Generator().manual_seed(0))
    ours.adapt(points, torch.tensor([math.inf, 1.0, math.inf, 0.0, 2.0, math.inf], dtype=torch.float64))
    rank = points[[3, 1, 4]]
    assert torch.allclose(ours.mean, recombination(6) @ rank)
    ours.adapt(ours.offspring(6, torch.Generator().manual_seed(1)), torch.full((6,), math.inf, dtype=torch.float64))
    assert bool(ours.mean.isfinite().all())
    assert not ours.has_converged


def test_equal_values_and_steps_of_no_length_have_converged():
    ours = CMAES(middle(2), 0.1)
    ours.adapt(ours.offspring(6, torch.Generator().manual_seed(0)), torch.ones(6, dtype=torch.float64))
    assert ours.has_converged
    assert CMAES(middle(2), 1e-13).has_converged
    assert not CMAES(middle(2), 1e-3).has_converged


def test_a_state_goes_on_to_the_digit():
    one = CMAES(middle(4), 0.2)
    for seed in range(3):
        points = one.offspring(one.size, torch.Generator().manual_seed(seed))
        one.adapt(points, points.square().sum(1))
    other = CMAES.of(one.state_dict())
    for each in (one, other):
        points = each.offspring(each.size, torch.Generator().manual_seed(9))
        each.adapt(points, points.square().sum(1))
    assert torch.equal(one.covariance, other.covariance)
    assert one.sigma == other.sigma
    assert torch.equal(one.mean, other.mean)
