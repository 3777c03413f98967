"""Noise on problems: its law, its scale and its seed."""

import pickle

import numpy as np
import pytest
import torch
from scipy import stats

import deepbore as db
from deepbore.data.outcome import Outcome
from deepbore.errors import SettingError
from deepbore.problems import Branin, Coco, Flat, Forrester, Noisy, Problem, Rosenbrock, TrainingRun, suites


def some(problem, n, seed=0):
    return problem.space.decode(problem.space.points.sample(n, torch.Generator().manual_seed(seed)))


def test_noise_is_of_the_seed_the_configuration_and_how_often_it_was_seen():
    here, there, other = (Coco("bbob-noisy", 107, 1, 2, seed=seed) for seed in (0, 0, 1))
    first, second = some(here, 2)
    values = [here(first), here(second), here(first)]
    assert [there(second), there(first), there(first)] == [values[1], values[0], values[2]]  # in another order
    assert values[0] != values[2]
    assert other(first) != values[0]
    assert pickle.loads(pickle.dumps(there))(second) == here(second)


def test_a_true_value_is_what_a_call_gives_where_there_is_no_noise():
    assert Branin().true_value({"x0": 3.0, "x1": 2.0}) == Branin()({"x0": 3.0, "x1": 2.0})
    assert Problem.true_value is Branin.true_value


CENTRE = {"x0": 2.5, "x1": 7.5}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "law"), [("normal", stats.norm()), ("student", stats.t(3, scale=3**-0.5)), ("cauchy", stats.cauchy())]
)
def test_noise_has_the_law_and_the_scale_it_says(kind, law):
    problem = Noisy(Branin(), scale=5.0, kind=kind)
    noise = np.array([problem(CENTRE) for _ in range(2000)]) - problem.true_value(CENTRE)
    assert stats.kstest(noise / 5.0, law.cdf).pvalue > 0.01
    if kind != "cauchy":
        assert law.std() == pytest.approx(1.0)
        assert noise.mean() == pytest.approx(0.0, abs=4 * 5.0 / 2000**0.5)


def test_noise_is_of_the_seed_and_new_at_each_evaluation():
    here, there, other = (Noisy(Branin(), scale=1.0, seed=seed) for seed in (0, 0, 1))
    values = [here(CENTRE), here(CENTRE)]
    assert values == [there(CENTRE), there(CENTRE)]
    assert len({*values, other(CENTRE), other(CENTRE)}) == 4
    fresh = pickle.loads(pickle.dumps(Noisy(Branin(), scale=1.0)))
    assert fresh(CENTRE) == values[0]


def test_a_noisy_problem_keeps_what_is_known_of_the_one_beneath():
    problem = Noisy(Branin(), scale=1.0)
    assert problem.true_value(CENTRE) == Branin()(CENTRE)
    assert (problem.optimum, problem.direction) == (Branin().optimum, "minimize")
    assert Noisy(TrainingRun("svm-iris"), scale=0.01).direction == "maximize"
    for settings in ({"scale": 0.0}, {"scale": 1.0, "kind": "uniform"}, {"scale": 1.0, "seed": -1}):
        with pytest.raises(SettingError):
            Noisy(Branin(), **settings)


def test_a_failure_beneath_noise_is_one():
    class Failing(Branin):
        def __call__(self, params):
            return Outcome.failure("out of memory")

    assert Noisy(Failing(), scale=1.0)({"x0": 0.0, "x1": 0.0}).reason == "out of memory"


@pytest.mark.slow
@pytest.mark.parametrize("name", suites.SPREADS)
def test_spreads_are_standard_deviations_over_the_space(name):
    problem = suites.problem(name)
    values = [problem(params) for params in some(problem, 2000)]
    assert suites.SPREADS[name] == pytest.approx(np.std(values), rel=0.1)


def test_the_seed_of_a_run_is_that_of_its_noise():
    first, second = (suites.problem("noisy/hartmann6-loud", seed=seed) for seed in (0, 1))
    params = some(first, 1)[0]
    assert first(params) != second(params)
    assert first.true_value(params) == second.true_value(params)
    assert first.scale == pytest.approx(0.5 * 0.384)
    assert suites.problem("bbob-noisy/f107/i01/d02", seed=3).seed == 3


@pytest.mark.parametrize(
    ("name", "kind", "scale"),
    [("noisy/forrester", Forrester, 0.05), ("noisy/rosenbrock4", Rosenbrock, 0.01), ("noise-only", Flat, 1.0)],
)
def test_the_papers_noise(name, kind, scale):
    problem = suites.problem(name, seed=2)
    assert isinstance(problem, Noisy)
    assert isinstance(problem.problem, kind)
    assert (problem.scale, problem.seed, problem.kind) == (scale, 2, "normal")


def test_noise_alone_is_the_same_everywhere():
    problem = suites.problem("noise-only")
    points = problem.space.decode(problem.space.points.sample(500, torch.Generator().manual_seed(0)))
    values = np.array([problem(params) for params in points])
    assert values.mean() == pytest.approx(0, abs=4 / 500**0.5)
    assert values.std() == pytest.approx(1, abs=0.15)
    assert {problem.true_value(params) for params in points} == {0.0}
    assert problem.regret(0.0) == 0.0


# regression: this was wrong once
def test_noise_keeps_constraints_and_refuses_several_objectives():
    plain = db.problems.PressureVessel()
    noisy = db.problems.Noisy(plain, 1.0)
    params = plain.space.decode(plain.space.points.sobol(1, seed=0))[0]
    beneath, outcome = plain(params), noisy(params)
    assert outcome.constraints == beneath.constraints
    assert outcome.values != beneath.values
    assert noisy.constraints == plain.constraints
    with pytest.raises(SettingError, match="one objective"):
        db.problems.Noisy(db.problems.ZDT(1), 0.1)
