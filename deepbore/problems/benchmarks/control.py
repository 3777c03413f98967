"""Searches for a policy: the weights by which a simulated machine is controlled, in 18 to 100 dimensions.

The simulators are those of the package gymnasium, which is imported when the problem is made, not before.
"""

import os
from dataclasses import dataclass
from typing import Any

import numpy as np

from deepbore.problems.base import Array, VectorProblem, benchmark_package
from deepbore.validation import one_of


@dataclass(frozen=True)
class Task:
    """What is to be controlled, and how.

    Attributes:
        simulator: its name in gymnasium.
        observations: how many numbers the policy sees.
        actions: how many numbers it gives.
        hidden: units of its hidden layer; 0 for none.
        starts: how many episodes it is tried in; each begins as the seed 0, 1, ... of the simulator says.
        options: of the simulator, by name.
    """

    simulator: str
    observations: int
    actions: int
    hidden: int = 0
    starts: int = 5
    options: tuple[tuple[str, Any], ...] = ()

    @property
    def layers(self) -> list[tuple[int, int]]:
        """Inputs, with a constant one, and outputs of each layer."""
        if not self.hidden:
            return [(self.observations + 1, self.actions)]
        return [(self.observations + 1, self.hidden), (self.hidden + 1, self.actions)]


TASKS = {
    "acrobot": Task("Acrobot-v1", observations=6, actions=3),
    "lander": Task("LunarLander-v3", observations=8, actions=2, options=(("continuous", True),)),
    "pendulum": Task("Pendulum-v1", observations=3, actions=1, hidden=8),
    "walker": Task("BipedalWalker-v3", observations=24, actions=4, starts=1),
}


class PolicySearch(VectorProblem):
    """The sum of rewards of a policy in a simulator, the mean over fixed starts, maximised.

    | name | d | what is to be done | the policy |
    |---|---|---|---|
    | acrobot | 21 | swing a double pendulum up by its middle joint, soon | linear, the greatest output acts |
    | lander | 18 | land a spacecraft between two flags | linear |
    | pendulum | 41 | swing a pendulum up by a weak motor, and hold it there | 8 hidden units |
    | walker | 100 | walk on two legs over rough ground | linear |

    A policy is linear in what it sees and a constant, or has a layer of tanh between; its outputs are cut off at the
    greatest actions. The parameters x0 ... x{d-1} are its weights, from -1 to 1, layer by layer, those of an output
    together, the constant's last. Values depend on the parameters alone; the best possible ones are unknown. An
    evaluation takes milliseconds to a second.

    Args:
        name: of the task.

    Raises:
        SettingError: for another name.
        MissingPackage: without gymnasium, pygame-ce or Box2D.

    Example:
        >>> problem = PolicySearch("acrobot")
        >>> problem(dict.fromkeys(problem.space.names, 0.0)), problem.direction  # it never swings up
        (-500.0, 'maximize')

    References:
        Towers et al., Gymnasium: a standard interface for reinforcement learning environments, 2024;
        gymnasium.farama.org.
    """

    directions = ("maximize",)

    def __init__(self, name: str):
        one_of(TASKS, name=name)
        self.task = TASKS[name]
        super().__init__([(-1.0, 1.0)] * sum(rows * columns for rows, columns in self.task.layers))
        self._simulator().close()  # a package that is missing is missed now

    def value(self, x: Array) -> float:
        """The mean sum of rewards at a vector (d)."""
        layers = self.layers(x)
        simulator = self._simulator()
        try:
            return float(np.mean([_rewards(simulator, layers, seed) for seed in range(self.task.starts)]))
        finally:
            simulator.close()

    def layers(self, x: Array) -> list[Array]:
        """A vector (d) -> the weights of each layer (outputs x inputs, the constant's last)."""
        ends = np.cumsum([rows * columns for rows, columns in self.task.layers])[:-1]
        parts = zip(np.split(x, ends), self.task.layers, strict=True)
        return [part.reshape(columns, rows) for part, (rows, columns) in parts]

    def _simulator(self) -> Any:
        os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")  # it is imported, though nothing is drawn
        make = benchmark_package("gymnasium", "gymnasium").make
        benchmark_package("Box2D", "Box2D")
        benchmark_package("pygame", "pygame-ce")
        return make(self.task.simulator, **dict(self.task.options))


def _rewards(simulator: Any, layers: list[Array], seed: int) -> float:
    """The sum of the rewards of one episode."""
    seen, _ = simulator.reset(seed=seed)
    total, is_over = 0.0, False
    while not is_over:
        seen, reward, has_ended, is_late, _ = simulator.step(_action(simulator.action_space, layers, seen))
        total, is_over = total + float(reward), has_ended or is_late
    return total


def _action(actions: Any, layers: list[Array], seen: Array) -> Any:
    """What the policy does where it sees this."""
    outputs = np.asarray(seen, dtype=np.float64)
    for number, weights in enumerate(layers):
        outputs = weights[:, :-1] @ (np.tanh(outputs) if number else outputs) + weights[:, -1]
    if hasattr(actions, "high"):
        return (outputs.clip(-1, 1) * actions.high).astype(np.float32)
    return int(outputs.argmax())
