"""Searches for a policy: against episodes that are played step by step."""

import math

import gymnasium
import numpy as np
import pytest
from gymnasium.envs.box2d.lunar_lander import heuristic

from deepbore.errors import PointError, SettingError
from deepbore.problems import PolicySearch, suites
from deepbore.problems.benchmarks.control import TASKS


def some(problem, seed=0):
    return np.random.default_rng(seed).uniform(-1, 1, len(problem.space))


def played(simulator, act, starts=5):
    """The mean sum of rewards of what acts on what it sees, a number at a time."""
    sums = []
    for seed in range(starts):
        seen, _ = simulator.reset(seed=seed)
        sums.append(0.0)
        for _ in range(10_000):
            seen, reward, ended, late, _ = simulator.step(act([float(each) for each in seen]))
            sums[-1] += float(reward)
            if ended or late:
                break
    return math.fsum(sums) / starts


def unit(weights, seen):
    return math.fsum(w * s for w, s in zip(weights, [*seen, 1.0], strict=True))


def test_the_greatest_output_of_a_linear_policy_acts():
    acrobot = PolicySearch("acrobot")
    x = some(acrobot)
    rows, theirs = x.reshape(3, 7), gymnasium.make("Acrobot-v1")
    assert acrobot.value(x) == played(theirs, lambda seen: int(np.argmax([unit(row, seen) for row in rows])))


def test_outputs_are_cut_off_at_the_greatest_actions():
    lander = PolicySearch("lander")
    x = some(lander, 1)

    def thrust(seen):
        return np.array([max(-1, min(1, unit(row, seen))) for row in x.reshape(2, 9)], dtype=np.float32)

    theirs = gymnasium.make("LunarLander-v3", continuous=True)
    assert lander.value(x) == pytest.approx(played(theirs, thrust), rel=1e-9)


def test_a_layer_of_tanh_lies_between():
    pendulum = PolicySearch("pendulum")
    x = some(pendulum)
    first, second = x[:32].reshape(8, 4), x[32:]

    def torque(seen):
        hidden = [math.tanh(unit(row, seen)) for row in first]
        return np.array([2 * max(-1, min(1, unit(second, hidden)))], dtype=np.float32)

    assert pendulum.value(x) == pytest.approx(played(gymnasium.make("Pendulum-v1"), torque), rel=1e-6)


@pytest.mark.parametrize("name", TASKS)
def test_a_value_depends_on_the_weights_alone(name):
    problem = PolicySearch(name)
    params = dict(zip(problem.space.names, some(problem).tolist(), strict=True))
    value = problem(params)
    np.random.seed(3)  # what a simulator might draw from
    assert problem(params) == PolicySearch(name)(params) == suites.problem(f"control/{name}")(params) == value
    assert problem.direction == "maximize"
    assert problem.optimum is None


def test_a_lander_that_is_steered_by_what_it_sees_is_better_than_one_that_is_not():
    """Gymnasium's own controller lands: what is searched for is there to be found."""
    simulator = gymnasium.make("LunarLander-v3", continuous=True)
    steered = played(simulator, lambda seen: heuristic(simulator.unwrapped, seen))
    lander = PolicySearch("lander")
    assert steered > 200 > max(lander.value(some(lander, seed)) for seed in range(5))


def test_bad_names_and_weights_are_refused():
    with pytest.raises(SettingError, match="acrobot"):
        PolicySearch("rover")
    problem = PolicySearch("acrobot")
    with pytest.raises(PointError, match="x3"):
        problem({**dict.fromkeys(problem.space.names, 0.0), "x3": 1.5})
