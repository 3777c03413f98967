"""Tasks of the kind that people tune: how many, how wide, the same value again, and the parts of the suite."""

import math

import numpy as np
import pytest
import torch

from deepbore.errors import PointError, SettingError
from deepbore.problems import GroundRun, suites
from deepbore.problems.benchmarks.ground import KINDS, TASKS
from deepbore.problems.benchmarks.ground.networks import brackets, is_balanced

QUICK = ["others/hunters", "others/workshop", "boosting/lightgbm-friedman", "pipelines/models-party", "policies/pole"]


def test_there_are_forty_tasks_of_five_kinds_with_eight_parameters_or_more():
    assert {kind: len(tasks) for kind, tasks in KINDS.items()} == {
        "networks": 16,
        "boosting": 8,
        "pipelines": 6,
        "policies": 5,
        "others": 5,
    }
    assert min(len(task.space) for task in TASKS.values()) == 8


def test_each_kind_has_tasks_for_development_validation_and_held_out():
    parts = {half: suites.suite("ground", half=half) for half in ("development", "validation", "held_out")}
    assert sorted(name for part in parts.values() for name in part) == sorted(suites.suite("ground", half="all"))
    assert [len(part) for part in parts.values()] == [19, 15, 6]
    for part in parts.values():
        assert {name.split("/")[1] for name in part} == set(KINDS)


def test_other_suites_have_no_part_for_validation():
    assert suites.suite("networks", half="validation") == []


@pytest.mark.parametrize("name", QUICK)
def test_a_value_is_the_same_again_and_leaves_global_state_alone(name):
    problem = GroundRun(name)
    (params,) = problem.space.decode(problem.space.points.sobol(1, seed=3))
    torch.manual_seed(3)
    np.random.seed(3)
    first = problem(params)
    drawn = torch.rand(2).tolist(), np.random.random(2).tolist()
    torch.manual_seed(3)
    np.random.seed(3)
    assert (torch.rand(2).tolist(), np.random.random(2).tolist()) == drawn
    assert problem(params) == GroundRun(name)(params) == first


@pytest.mark.slow
@pytest.mark.parametrize("name", TASKS)
def test_every_task_can_be_run(name):
    problem = GroundRun(name)
    values = [problem(params) for params in problem.space.decode(problem.space.points.sobol(6, seed=1))]
    assert sum(math.isfinite(value) for value in values) >= 3
    assert len(set(values)) >= 2


def test_what_is_no_task_or_outside_the_space_is_refused():
    with pytest.raises(SettingError, match="name"):
        GroundRun("others/nothing")
    with pytest.raises(PointError, match="birth"):
        GroundRun("others/hunters")({"birth": 99.0})


def test_brackets_are_balanced_where_each_is_closed_by_its_own_kind():
    assert is_balanced([0, 1, 3, 2])
    assert not is_balanced([0, 1, 2, 3])
    assert not is_balanced([2, 0])
    assert not is_balanced([0])
    data = brackets(60)
    assert all(is_balanced(row.tolist()) == bool(y) for row, y in zip(data.x, data.y, strict=True))
