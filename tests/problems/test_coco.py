"""COCO's functions: values, noise, spaces and constraints are those of COCO."""

import pickle

import numpy as np
import pytest
import torch
from scipy import stats

from deepbore.errors import PointError, SettingError
from deepbore.problems import Coco
from deepbore.space import Real, SearchSpace
from deepbore.testing import check_problem


@pytest.mark.parametrize("function", [1, 8, 27])
def test_constrained_functions_are_cocos(function, tmp_path, monkeypatch):
    cocoex = pytest.importorskip("cocoex")
    ours = Coco("bbob-constrained", function, 2, 5)
    suite = cocoex.Suite("bbob-constrained", "instances: 2", f"function_indices: {function} dimensions: 5")
    theirs = suite.get_problem(0)
    others = [Coco("bbob-constrained", other, 1, 2) for other in (3, 30)]  # a suite that moves on frees its problems
    for params in ours.space.decode(ours.space.points.sample(3, torch.Generator().manual_seed(0))):
        x = list(params.values())
        outcome = ours(params)
        assert outcome.values == (float(theirs(x)),)
        assert outcome.constraints == tuple(theirs.constraint(x))
    monkeypatch.chdir(tmp_path)  # where COCO writes
    theirs._best_parameter("print")
    best = np.loadtxt("._bbob_problem_best_parameter.txt")
    assert max(theirs.constraint(best)) <= 1e-12
    assert ours.optimum == float(theirs(best)) < outcome.values[0]
    assert ours.constraints == theirs.number_of_constraints == len(outcome.constraints)
    assert ours(dict.fromkeys(params, 0.0)).is_feasible == (max(theirs.constraint(np.zeros(5))) <= 0)
    check_problem(others[0])


COCO_FUNCTIONS = [
    (suite, function, dimension)
    for suite, dimension in [("bbob", 2), ("bbob-mixint", 5), ("bbob-noisy", 3), ("bbob-largescale", 20)]
    for function in Coco.functions(suite)
]


def some(problem, n, seed=0):
    return problem.space.decode(problem.space.points.sample(n, torch.Generator().manual_seed(seed)))


def named(x):
    return {f"x{i}": value for i, value in enumerate(x)}


def best_of(problem, monkeypatch, tmp_path):
    """COCO's own best configuration, which it writes into the working directory."""
    monkeypatch.chdir(tmp_path)
    problem._function._best_parameter("print")
    best = np.loadtxt("._bbob_problem_best_parameter.txt").tolist()
    return {
        name: int(value) if parameter.kind == "integer" else value
        for (name, parameter), value in zip(problem.space.parameters.items(), best, strict=True)
    }


@pytest.mark.parametrize(("suite", "function", "dimension"), COCO_FUNCTIONS)
def test_a_coco_functions_optimum_is_0(suite, function, dimension, monkeypatch, tmp_path):
    for instance in (1, 4):
        problem = Coco(suite, function, instance, dimension)
        assert problem.true_value(best_of(problem, monkeypatch, tmp_path)) == pytest.approx(0.0, abs=1e-8)
        assert min(map(problem.true_value, some(problem, 5))) > 0


def test_a_coco_functions_values_are_cocos(monkeypatch, tmp_path):
    cocoex = pytest.importorskip("cocoex")
    theirs = cocoex.Suite("bbob-mixint", "instances: 2", "function_indices: 15 dimensions: 10").get_problem(0)
    ours = Coco("bbob-mixint", 15, 2, 10)
    lowest = theirs(list(best_of(ours, monkeypatch, tmp_path).values()))
    for params in some(ours, 10):
        assert ours(params) == pytest.approx(theirs(list(params.values())) - lowest, rel=1e-9)
        assert ours.true_value(params) == ours(params)


@pytest.mark.parametrize(("noisy", "free", "factor"), [(101, 1, 1), (112, 8, 1), (114, 7, 1), (125, 19, 0.1)])
def test_a_noisy_functions_true_value_is_that_of_the_function_without_noise(noisy, free, factor):
    problem, reference = Coco("bbob-noisy", noisy, 3, 5), Coco("bbob", free, 3, 5)
    for params in some(problem, 10):
        assert problem.true_value(params) == pytest.approx(factor * reference(params), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("function", [102, 107, 108, 109, 116, 130])
def test_the_noise_has_the_distribution_of_cocos(function):
    cocoex = pytest.importorskip("cocoex")
    wanted = f"function_indices: {function - 100} dimensions: 5"
    theirs = cocoex.Suite("bbob-noisy", "instances: 1", wanted).get_problem(0)
    ours, x = Coco("bbob-noisy", function, 1, 5), [1.0, -2.0, 0.5, 3.0, 0.0]
    without_noise = Coco("bbob-noisy", function, 1, 5).true_value(named(x))
    lowest = Coco("bbob", {116: 10, 130: 21}.get(function, 1), 1, 5)._lowest
    values = np.array([[ours(named(x)), theirs(x) - lowest] for _ in range(800)]).round(6)
    assert stats.ks_2samp(*values.T, method="asymp").pvalue > 0.01
    assert len(np.unique(values[:, 0])) > 50
    assert without_noise == ours.true_value(named(x))


def test_a_mixed_functions_space_is_cocos():
    space = Coco("bbob-mixint", 1, 1, 10).space
    highs = [parameter.high for parameter in space.parameters.values()]
    assert highs == [1, 1, 3, 3, 7, 7, 15, 15, 5, 5]
    assert [parameter.kind for parameter in space.parameters.values()] == ["integer"] * 8 + ["real"] * 2
    assert Coco("bbob", 1, 1, 3).space == SearchSpace({f"x{i}": Real(-5.0, 5.0) for i in range(3)})


def test_coco_goes_to_worker_processes():
    problem = Coco("bbob-largescale", 3, 1, 20)
    params = some(problem, 1)[0]
    assert pickle.loads(pickle.dumps(problem))(params) == problem(params)


@pytest.mark.parametrize(
    "settings", [("bob", 1, 1, 2), ("bbob", 25, 1, 2), ("bbob-noisy", 1, 1, 2), ("bbob", 1, 0, 2), ("bbob", 1, 1, 4)]
)
def test_a_coco_function_that_is_none_is_refused(settings):
    with pytest.raises(SettingError):
        Coco(*settings)
    with pytest.raises(PointError):
        Coco("bbob", 1, 1, 2)({"x0": 6.0, "x1": 0.0})
