"""Policy search: the weights of a policy that controls a simulated machine, in 18 to 108 dimensions.

The simulators are those of the package gymnasium, which is imported when the problem is made.
"""

import os
from dataclasses import dataclass
from typing import Any

import numpy as np

from deepbore.problems.base import Array, VectorProblem, benchmark_package
from deepbore.validation import one_of


@dataclass(frozen=True)
class Task:
    """A simulated machine and the shape of its policy.

    Attributes:
        simulator: its name in gymnasium.
        observations: number of inputs of the policy.
        actions: number of its outputs.
        hidden: units of its hidden layer; 0 for none.
        starts: number of episodes, which begin with the seeds 0, 1, ... of the simulator.
        options: of the simulator, by name.
        packages: that it needs beside gymnasium: what is imported, and what it is installed as.
    """

    simulator: str
    observations: int
    actions: int
    hidden: int = 0
    starts: int = 5
    options: tuple[tuple[str, Any], ...] = ()
    packages: tuple[tuple[str, str], ...] = (("Box2D", "Box2D"), ("pygame", "pygame-ce"))

    @property
    def layers(self) -> list[tuple[int, int]]:
        """Inputs, a constant included, and outputs of each layer."""
        if not self.hidden:
            return [(self.observations + 1, self.actions)]
        return [(self.observations + 1, self.hidden), (self.hidden + 1, self.actions)]


TASKS = {
    "acrobot": Task("Acrobot-v1", observations=6, actions=3),
    "lander": Task("LunarLander-v3", observations=8, actions=2, options=(("continuous", True),)),
    "pendulum": Task("Pendulum-v1", observations=3, actions=1, hidden=8),
    "walker": Task("BipedalWalker-v3", observations=24, actions=4, starts=1),
}
MUJOCO = (("mujoco", "gymnasium[mujoco]"), ("imageio", "gymnasium[mujoco]"))
LOCOMOTION = {
    "swimmer": Task("Swimmer-v5", observations=8, actions=2, starts=1, packages=MUJOCO),
    "hopper": Task("Hopper-v5", observations=11, actions=3, starts=3, packages=MUJOCO),
    "cheetah": Task("HalfCheetah-v5", observations=17, actions=6, starts=1, packages=MUJOCO),
}


class PolicySearch(VectorProblem):
    """The sum of rewards of a policy in a simulator, the mean over fixed starts, maximised.

    | name | d | task | policy |
    |---|---|---|---|
    | acrobot | 21 | swing a double pendulum up by its middle joint, soon | linear, the greatest output acts |
    | lander | 18 | land a spacecraft between two flags | linear |
    | pendulum | 41 | swing a pendulum up by a weak motor, and hold it there | 8 hidden units |
    | walker | 100 | walk on two legs over rough ground | linear |
    | swimmer | 18 | three links that swim forwards (MuJoCo) | linear |
    | hopper | 36 | one leg that hops forwards (MuJoCo) | linear |
    | cheetah | 108 | two legs that run forwards (MuJoCo) | linear |

    A policy is linear in the observations and a constant, or has a hidden layer of tanh; its outputs are clipped at the
    greatest actions. The parameters x0 ... x{d-1} are its weights, from -1 to 1, layer by layer and output by output,
    that of the constant last. Values depend on the parameters alone; the optima are unknown. An evaluation takes
    milliseconds to a second.

    Args:
        name: of the task.

    Raises:
        SettingError: for another name.
        MissingPackage: without gymnasium, and pygame-ce and Box2D or mujoco.

    Example:
        >>> problem = PolicySearch("acrobot")
        >>> problem(dict.fromkeys(problem.space.names, 0.0)), problem.direction  # it never swings up
        (-500.0, 'maximize')

    References:
        Mania, Guy & Recht, Simple random search provides a competitive approach to reinforcement learning, 2018 (linear
        policies of MuJoCo's machines). Towers et al., Gymnasium: a standard interface for reinforcement learning
        environments, 2024; gymnasium.farama.org.
    """

    directions = ("maximize",)

    def __init__(self, name: str):
        tasks = TASKS | LOCOMOTION
        one_of(tasks, name=name)
        self.task = tasks[name]
        super().__init__([(-1.0, 1.0)] * sum(rows * columns for rows, columns in self.task.layers))
        self._simulator().close()  # raises now if a package is missing

    def value(self, x: Array) -> float:
        """The mean sum of rewards at a vector (d)."""
        layers = self.layers(x)
        simulator = self._simulator()
        try:
            return float(np.mean([_rewards(simulator, layers, seed) for seed in range(self.task.starts)]))
        finally:
            simulator.close()

    def layers(self, x: Array) -> list[Array]:
        """A vector (d) -> the weights of each layer (outputs x inputs, that of the constant last)."""
        ends = np.cumsum([rows * columns for rows, columns in self.task.layers])[:-1]
        parts = zip(np.split(x, ends), self.task.layers, strict=True)
        return [part.reshape(columns, rows) for part, (rows, columns) in parts]

    def _simulator(self) -> Any:
        os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")  # gymnasium imports pygame, though nothing is drawn
        make = benchmark_package("gymnasium", "gymnasium").make
        for module, package in self.task.packages:
            benchmark_package(module, package)
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
    """The action of the policy after an observation."""
    outputs = np.asarray(seen, dtype=np.float64)
    for number, weights in enumerate(layers):
        outputs = weights[:, :-1] @ (np.tanh(outputs) if number else outputs) + weights[:, -1]
    if hasattr(actions, "high"):
        return (outputs.clip(-1, 1) * actions.high).astype(np.float32)
    return int(outputs.argmax())
