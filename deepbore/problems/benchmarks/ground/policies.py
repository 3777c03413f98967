"""Five policies of gymnasium's simulators: controllers with few weights, and learning by trial and error."""

import os
from collections.abc import Callable
from typing import Any

import numpy as np

from deepbore.problems.base import benchmark_package
from deepbore.problems.benchmarks.ground.task import Function, GroundTask, within
from deepbore.space import Categorical, Integer, Params, Real

Policy = Callable[[Any], Any]  # what is seen -> what is done


def simulator(name: str, **settings: Any) -> Any:
    """A simulator of gymnasium by its name."""
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
    return benchmark_package("gymnasium", "gymnasium").make(name, **settings)


def rewards(machine: Any, policy: Policy, starts: int, price: Callable[[Any], float]) -> float:
    """The mean sum of rewards over some starts, less a price of each state."""
    total = 0.0
    for seed in range(starts):
        seen, _ = machine.reset(seed=seed)
        is_over = False
        while not is_over:
            seen, reward, ended, late, _ = machine.step(policy(seen))
            total, is_over = total + float(reward) - price(seen), ended or late
    return total / starts


def controlled(
    name: str,
    starts: int,
    space: dict[str, Any],
    policy: Callable[[Params], Policy],
    price: Callable[[Any], float] = lambda _: 0.0,
) -> GroundTask:
    """A controller, and the negative of its mean sum of rewards less a price of each state."""

    def make() -> Function:
        machine = simulator(name)
        return lambda params: -rewards(machine, policy(params), starts, price)

    return GroundTask(space, make)


def balance(params: Params) -> Policy:
    """A linear controller of the cart and its pole that sees each state late and filtered."""
    weights = np.array([params[name] for name in ("position", "speed", "angle", "turn")])
    filtered, last = np.zeros(4), 0

    def act(seen: Any) -> int:
        nonlocal filtered, last
        filtered = params["filter"] * filtered + (1 - params["filter"]) * seen
        push = float(weights @ filtered) + params["bias"] + params["shake"] * (-1) ** last
        last = last if abs(push) < params["dead"] else int(push > 0)
        return last

    return act


def swing_up(params: Params) -> Policy:
    """A pendulum by energy far from the top, and by feedback near it."""

    def act(seen: Any) -> list[float]:
        cosine, sine, speed = (float(each) for each in seen)
        angle = np.arctan2(sine, cosine)
        if abs(angle) < params["near"]:
            torque = -params["proportional"] * angle - params["derivative"] * speed - params["sine"] * sine
        else:
            energy = speed**2 / 2 + params["weight"] * (cosine - 1) - params["goal"]
            torque = -params["pump"] * energy * np.tanh(params["sharpness"] * speed) + params["push"] * sine
        return [float(np.clip(torque, -2, 2))]

    return act


def climb(params: Params) -> Policy:
    """A car in a valley: pushes with its speed, less in some places."""

    def act(seen: Any) -> list[float]:
        place, speed = float(seen[0]), float(seen[1])
        push = params["gain"] * np.tanh(speed / params["scale"]) + params["lean"] * (place - params["centre"])
        if place > params["late"]:
            push *= params["ease"]
        return [float(np.clip(push + params["bias"], -1, 1)) if abs(push) > params["idle"] else 0.0]

    return act


def double(params: Params) -> Policy:
    """A double pendulum whose middle joint is pushed by a linear function of angles and speeds."""
    names = ("cos1", "sin1", "cos2", "sin2", "speed1", "speed2")

    def act(seen: Any) -> int:
        push = sum(params[name] * float(each) for name, each in zip(names, seen, strict=True)) + params["bias"]
        return 1 if abs(push) < params["dead"] else int(2 * (push > 0))

    return act


def learned(name: str, episodes: int, **settings: Any) -> GroundTask:
    """A table of action values that is learned in a small world; the negative of the mean reward of the last fifth."""
    space = {
        "method": Categorical(["q", "sarsa", "expected", "lambda"]),
        **within("method", "lambda", {"trace": Real(0.0, 0.98)}),
        "rate": Real(1e-3, 1.0, log=True),
        "rate_decay": Real(1e-4, 1.0, log=True),
        "discount": Real(0.7, 0.9999),
        "exploration": Categorical(["greedy", "softmax"]),
        **within("exploration", "greedy", {"epsilon": Real(1e-3, 1.0, log=True), "epsilon_decay": Real(0.8, 1.0)}),
        **within("exploration", "softmax", {"heat": Real(1e-3, 10.0, log=True), "cooling": Real(0.8, 1.0)}),
        "initial": Real(-10.0, 10.0),
        "steps": Integer(20, 100, log=True),
    }

    def make() -> Function:
        machine = simulator(name, **settings)
        return lambda params: -learn(machine, params, episodes)

    return GroundTask(space, make)


def learn(machine: Any, params: Params, episodes: int) -> float:
    """The mean sum of rewards over the last fifth of the episodes, those that take too long included."""
    stream = np.random.default_rng(0)
    states, actions = int(machine.observation_space.n), int(machine.action_space.n)
    table = np.full((states, actions), float(params["initial"]))
    sums: list[float] = []
    for episode in range(episodes):
        rate = params["rate"] / (1 + params["rate_decay"] * episode)
        trace, total, is_over = np.zeros_like(table), 0.0, False
        state, _ = machine.reset(seed=episode)
        action = int(stream.choice(actions, p=chances(table[state], params, episode)))
        for _ in range(params["steps"]):
            after, reward, is_over, _, _ = machine.step(action)
            odds = chances(table[after], params, episode)
            following = int(stream.choice(actions, p=odds))
            ahead = {"q": table[after].max(), "expected": float(odds @ table[after])}
            value = ahead.get(params["method"], table[after, following])
            error = reward + (0.0 if is_over else params["discount"] * value) - table[state, action]
            if params["method"] == "lambda":
                trace *= params["discount"] * params["trace"]
                trace[state, action] = 1.0
                table += rate * error * trace
            else:
                table[state, action] += rate * error
            state, action, total = after, following, total + float(reward)
            if is_over:
                break
        sums.append(total if is_over else total - params["steps"])
    return float(np.mean(sums[-max(1, episodes // 5) :]))


def chances(values: Any, params: Params, episode: int) -> Any:
    """The probabilities of the actions."""
    if params["exploration"] == "greedy":
        share = params["epsilon"] * params["epsilon_decay"] ** episode
        odds = np.full(len(values), share / len(values))
        odds[values.argmax()] += 1 - share
        return odds / odds.sum()
    scaled = (values - values.max()) / max(params["heat"] * params["cooling"] ** episode, 1e-6)
    odds = np.exp(np.maximum(scaled, -700.0))
    return odds / odds.sum()


def weights(*names: str, span: float = 3.0) -> dict[str, Real]:
    """Weights of a policy, by the names of what it sees."""
    return {name: Real(-span, span) for name in names}


TASKS: dict[str, GroundTask] = {
    "pole": controlled(
        "CartPole-v1",
        3,
        {
            **weights("position", "speed", "angle", "turn"),
            "bias": Real(-0.5, 0.5),
            "filter": Real(0.0, 0.95),
            "shake": Real(0.0, 1.0),
            "dead": Real(1e-3, 1.0, log=True),
        },
        balance,
        lambda seen: float(abs(seen[0]) / 2.4 + abs(seen[2]) / 0.21) / 2,  # off the middle, or leaning
    ),
    "pendulum": controlled(
        "Pendulum-v1",
        3,
        {
            "near": Real(0.05, 1.5),
            "proportional": Real(0.0, 20.0),
            "derivative": Real(0.0, 5.0),
            "sine": Real(-5.0, 5.0),
            "weight": Real(1.0, 20.0),
            "goal": Real(-5.0, 5.0),
            "pump": Real(-2.0, 2.0),
            "sharpness": Real(0.1, 10.0, log=True),
            "push": Real(-2.0, 2.0),
        },
        swing_up,
    ),
    "valley": controlled(
        "MountainCarContinuous-v0",
        2,
        {
            "gain": Real(-2.0, 2.0),
            "scale": Real(1e-3, 1.0, log=True),
            "lean": Real(-2.0, 2.0),
            "centre": Real(-1.2, 0.6),
            "late": Real(-1.2, 0.6),
            "ease": Real(0.0, 1.5),
            "bias": Real(-0.5, 0.5),
            "idle": Real(1e-3, 1.0, log=True),
        },
        climb,
    ),
    "acrobot": controlled(
        "Acrobot-v1",
        1,
        {
            **weights("cos1", "sin1", "cos2", "sin2", "speed1", "speed2"),
            "bias": Real(-1.0, 1.0),
            "dead": Real(1e-3, 3.0, log=True),
        },
        double,
    ),
    "cliff": learned("CliffWalking-v1", 40),
}
