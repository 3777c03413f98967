"""Synthetic spaces of choices: where the best configuration is, and what is easily missed."""

import pytest
import torch

from deepbore.errors import SettingError
from deepbore.problems import Choices, suites
from deepbore.problems.benchmarks.choices import FAMILIES, ROUGH


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("seed", [0, 1])
def test_the_best_configuration_has_the_optimum_and_all_others_are_worse(family, seed):
    problem = Choices(family, seed)
    assert problem(problem.best) == problem.optimum == 0
    points = problem.space.points.sample(300, torch.Generator().manual_seed(seed))
    assert min(problem(params) for params in problem.space.decode(points)) > 0


@pytest.mark.parametrize("family", FAMILIES)
def test_seeds_move_the_best_configuration(family):
    assert Choices(family, 0).best == Choices(family, 0).best
    assert Choices(family, 0).best != Choices(family, 1).best


def test_the_best_branch_is_the_narrowest_one():
    problem = Choices("narrowest", 3)
    space, arms = problem.space, problem.choices["model"]
    drawn = space.decode(space.points.sample(2000, torch.Generator().manual_seed(0)))
    trained = {name: [arm.bowl(each) < 1 for each in drawn if each["model"] == name] for name, arm in arms.items()}
    share = {name: sum(found) / len(found) for name, found in trained.items()}
    assert share["m0"] < share["m1"] < share["m2"] < share["m3"]
    assert arms["m0"].offset < arms["m1"].offset < arms["m2"].offset < arms["m3"].offset


def test_parameters_of_a_choice_within_a_choice_need_both():
    problem = Choices("nested")
    points = problem.space.points.sample(200, torch.Generator().manual_seed(0))
    for params in problem.space.decode(points):
        assert ("kernel" in params) == (params["model"] == "m0")
        assert ("k1_x" in params) == (params.get("kernel") == "k1")


def test_levels_of_two_choices_interact():
    problem = Choices("thirty", 2)
    best = problem.best
    one, other = (next(k for k in problem.choices[name] if k != best[name]) for name in ("one", "other"))

    def value(**changed):
        return problem(best | changed)

    assert abs(value(one=one, other=other) - value(one=one) - value(other=other)) > 1e-3


def test_values_are_rough_but_not_by_more_than_said():
    problem = Choices("optimizers")
    values = [problem(problem.best | {"x0": problem.best["x0"] + k / 1000}) for k in range(-90, 91)]
    assert max(values) - min(values) < 2 * ROUGH + 0.3 * 0.09**2 + 1e-9
    turns = sum((b - a) * (c - b) < 0 for a, b, c in zip(values, values[1:], values[2:], strict=False))
    assert turns >= 1


def test_the_suite_has_ten_of_each_family():
    names = suites.suite("choices", half="all")
    assert len(names) == 10 * len(FAMILIES)
    made = suites.problem("choices/two-4")
    assert isinstance(made, Choices)
    assert made.best == Choices("two", 4).best


@pytest.mark.parametrize(("family", "seed"), [("five", 0), ("two", -1)])
def test_another_family_or_seed_is_refused(family, seed):
    with pytest.raises(SettingError):
        Choices(family, seed)
