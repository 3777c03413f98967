"""Robot pushing against the original program."""

import json
import math
import pickle
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import deepbore
from deepbore.errors import MissingPackage, PointError, SettingError
from deepbore.problems import RobotPushing

SHARED = Path(deepbore.__file__).parents[2] / "shared" / "problems"


@cache
def golden(name):
    path = SHARED / f"{name}_golden.json"
    if not path.exists():
        pytest.skip("the original programs' values are not beside this checkout")
    return json.loads(path.read_text())


def named(x):
    return {f"x{i}": float(value) for i, value in enumerate(x)}


FREE = [-4, 0, 0, -5, 3, 0, 4, 0, 0, 5, 3, 0, 0, 0]  # hands that touch nothing

PUSH = [0, 0.4, 0, 4, 5, 0, 4, 4, 0, 5, 3, 0, 0, 0]  # hand 1 pushes the square away from the table's middle


def test_rewards_are_those_of_the_original():
    problem = RobotPushing()
    bounds = [(parameter.low, parameter.high) for parameter in problem.space.parameters.values()]
    np.testing.assert_allclose(bounds, np.transpose(golden("robot_push")["bounds"]))
    for case in golden("robot_push")["cases"]:
        x = np.array(case["x"])
        x[[2, 3, 8, 9]] += case["noise"]
        assert problem.value(x) == pytest.approx(case["y"], abs=1e-3), case["name"]  # 1e-9 with the same compiler


def test_what_is_not_touched_gives_nothing():
    assert RobotPushing()(named(FREE)) == 0.0


def test_the_reward_is_what_the_objects_come_nearer_to_their_goals():
    pushed_up = RobotPushing()(named(PUSH))
    assert 0 < pushed_up < math.hypot(4, 1.5)  # the square's way to its goal
    down = [0, 3.6, 0, -4, *PUSH[4:]]
    assert RobotPushing()(named(down)) < 0


def test_a_call_repeats_and_the_problem_goes_to_worker_processes():
    problem = RobotPushing()
    values = [problem(named(PUSH)), problem(named(PUSH)), pickle.loads(pickle.dumps(problem))(named(PUSH))]
    assert len(set(values)) == 1


def test_the_wanted_velocities_have_noise_of_the_seed():
    here, there, other = (RobotPushing(noise=0.01, seed=seed) for seed in (0, 0, 1))
    values = [here(named(PUSH)), here(named(PUSH))]
    assert values == [there(named(PUSH)), there(named(PUSH))]
    assert len({*values, other(named(PUSH)), here.true_value(named(PUSH))}) == 4
    assert values == pytest.approx([here.true_value(named(PUSH))] * 2, abs=0.1)
    assert here.true_value(named(PUSH)) == RobotPushing()(named(PUSH))


def test_impossible_settings_of_robot_pushing_are_refused(monkeypatch):
    for settings in ({"noise": -0.1}, {"noise": math.nan}, {"seed": -1}, {"seed": 0.5}):
        with pytest.raises(SettingError):
            RobotPushing(**settings)
    with pytest.raises(PointError):
        RobotPushing()(named([*FREE[:-1], 6.0]))
    monkeypatch.setitem(sys.modules, "Box2D", None)
    with pytest.raises(MissingPackage, match=r"Box2D.*pip install 'deepbore\[benchmarks\]'"):
        RobotPushing()
