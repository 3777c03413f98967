"""Two robot hands that push two objects on a table, simulated by Box2D.

The package Box2D is imported when the problem is made.
"""

import math
from typing import Any

import numpy as np

from deepbore.problems.base import Array, VectorProblem, benchmark_package
from deepbore.problems.benchmarks.noise import Draws
from deepbore.space import Params
from deepbore.validation import at_least, whole

BOUNDS = [(-5.0, 5.0)] * 2 + [(-10.0, 10.0)] * 2 + [(2.0, 30.0), (0.0, 2 * math.pi)]  # of one hand, but for its spin
VELOCITIES = [2, 3, 8, 9]  # of the parameters
STARTS, GOALS = np.array([[0.0, 2.0], [0.0, -2.0]]), np.array([[4.0, 3.5], [-4.0, 3.5]])  # of the objects
STEP, ITERATIONS = 0.01, 10  # seconds; of Box2D's solver, for velocities and for positions
STEPS_PER_DURATION, COASTING = 10, 100  # steps
GAIN = 30.0  # of the controller, in 1 / s


class RobotPushing(VectorProblem):
    """How much nearer to their goals two hands push two objects, in m, maximised (14 parameters; BORE K.3).

    | parameters | hand 1 | hand 2 | bounds |
    |---|---|---|---|
    | place at the start, x and y | x0, x1 | x6, x7 | -5 to 5 |
    | wanted velocity, x and y | x2, x3 | x8, x9 | -10 to 10 |
    | duration of the push, in tenths of a second | x4 | x10 | 2 to 30 |
    | angle at the start | x5 | x11 | 0 to 2 pi |
    | wanted spin | x12 | x13 | -5 to 5 |

    The value is 0 if no hand touches an object, as at four of ten random points, and at most 11.0727, with both objects
    at their goals; it is unknown whether that is reachable, so the optimum is None. In the original each call adds
    normal noise with the standard deviation 0.01 to the wanted velocities: `noise=0.01`.

    Args:
        noise: standard deviation of the noise on the four wanted velocities, >= 0.
        seed: of the noise, >= 0; see `Draws`.

    Raises:
        SettingError: for settings outside these ranges.
        MissingPackage: without Box2D.

    Example:
        >>> problem = RobotPushing()
        >>> middle = {name: (p.low + p.high) / 2 for name, p in problem.space.parameters.items()}
        >>> problem(middle), problem.direction
        (0.0, 'maximize')

    References:
        Wang, Gehring, Kohli & Jegelka, Batched Large-Scale Bayesian Optimization in High-Dimensional Spaces, AISTATS
        2018; github.com/zi-w/Ensemble-Bayesian-Optimization.
    """

    directions = ("maximize",)

    def __init__(self, noise: float = 0.0, seed: int = 0):
        at_least(0, noise=noise)
        whole(0, seed=seed)
        benchmark_package("Box2D", "Box2D")
        super().__init__([*BOUNDS, *BOUNDS, (-5.0, 5.0), (-5.0, 5.0)])
        self.noise, self.seed = float(noise), seed
        self._draws = Draws(self.space, "robot pushing", seed)

    def __call__(self, params: Params) -> float:
        """The reward of a configuration, with new noise. Raises PointError as `vector` does."""
        x = self.vector(params)
        if self.noise > 0:
            x[VELOCITIES] += self.noise * self._draws(params).standard_normal(len(VELOCITIES))
        return self.value(x)

    def true_value(self, params: Params) -> float:
        """The reward without noise. Raises PointError as `vector` does."""
        return self.value(self.vector(params))

    def value(self, x: Array) -> float:
        """The reward without noise at a vector (14)."""
        ends = _pushed(x)
        return float(np.sum(np.linalg.norm(GOALS - STARTS, axis=1)) - np.sum(np.linalg.norm(GOALS - ends, axis=1)))


def _pushed(x: Array) -> Array:
    """A vector (14) -> the final places of the objects (2 x 2)."""
    box2d = benchmark_package("Box2D", "Box2D")
    world = box2d.b2World(gravity=(0, 0), doSleep=True)
    table = world.CreateStaticBody(position=(0, 0), shapes=box2d.b2PolygonShape(box=(500, 500)))
    # Box2D solves contacts and joints in the order of the bodies: another order gives other values
    square, disc = box2d.b2PolygonShape(box=(0.5, 0.5)), box2d.b2CircleShape(radius=1)
    objects = [
        _body(world, table, shape, start, density=0.05, friction=0.01, force=5)
        for shape, start in zip((square, disc), STARTS, strict=True)
    ]
    hands = [
        _body(
            world, table, box2d.b2PolygonShape(box=(1, 0.3)), x[i : i + 2], x[i + 5], density=0.1, friction=0.1, force=2
        )
        for i in (0, 6)
    ]
    commands = [
        (int(STEPS_PER_DURATION * x[i + 4]), x[i + 2 : i + 4].tolist(), float(x[j])) for i, j in ((0, 12), (6, 13))
    ]
    for step in range(max(steps for steps, _, _ in commands) + COASTING):
        for hand, (steps, velocity, spin) in zip(hands, commands, strict=True):
            if step < steps:
                _push(hand, box2d.b2Vec2(velocity), spin)
        world.Step(STEP, ITERATIONS, ITERATIONS)
    return np.array([body.position for body in objects], dtype=np.float64)


def _body(
    world: Any,
    table: Any,
    shape: Any,
    place: Array,
    angle: float = 0.0,
    *,
    density: float,
    friction: float,
    force: float,
) -> Any:
    """A new body with friction on the table."""
    body = world.CreateDynamicBody(position=place.tolist(), angle=float(angle))
    body.CreateFixture(shape=shape, density=density, friction=friction)
    world.CreateFrictionJoint(bodyA=table, bodyB=body, maxForce=force, maxTorque=2)
    return body


def _push(hand: Any, velocity: Any, spin: float) -> None:
    """A step of the controller: towards the wanted velocity and spin, by the hand's mass."""
    hand.ApplyTorque(hand.mass * (spin - hand.angularVelocity) * GAIN, wake=True)
    hand.ApplyForce(hand.mass * (velocity - hand.linearVelocity) * GAIN, hand.position, wake=True)
