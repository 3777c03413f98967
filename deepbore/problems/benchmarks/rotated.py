"""Synthetic functions whose lowest point is anywhere and whose axes are turned; the same where some are choices."""

import math
from collections.abc import Callable

import numpy as np

from deepbore.problems.base import Array, Problem, VectorProblem
from deepbore.problems.benchmarks.synthetic import levy, rosenbrock
from deepbore.space import Categorical, Integer, Params, Real, SearchSpace
from deepbore.validation import one_of, whole

CONDITION = 1e6  # of the ellipsoid: its steepest axis by its flattest
BY_CHANCE = 420.968746  # where Schwefel's function is lowest, on [-500, 500]


def ellipsoid(x: Array) -> Array:
    """sum_j 1e6^(j / (d - 1)) x_j^2."""
    return np.asarray(np.sum(CONDITION ** np.linspace(0, 1, x.shape[-1]) * x**2, axis=-1))


def rastrigin(x: Array) -> Array:
    """sum_j x_j^2 - 10 cos(2 pi x_j) + 10."""
    return np.asarray(np.sum(x**2 - 10 * np.cos(2 * math.pi * x) + 10, axis=-1))


def schwefel(x: Array) -> Array:
    """sum_j 418.98 - x_j sin(sqrt |x_j|) on [-500, 500]^d, and beyond 0.02 times the squared distance from it."""
    inside = x.clip(-500, 500)
    waves = np.sum(BY_CHANCE * math.sin(math.sqrt(BY_CHANCE)) - inside * np.sin(np.sqrt(np.abs(inside))), axis=-1)
    return np.asarray(waves + 0.02 * np.sum((x - inside) ** 2, axis=-1))


FORMULAS: dict[str, tuple[Callable[[Array], Array], float, float]] = {  # its lowest coordinates, and half its width
    "ellipsoid": (ellipsoid, 0.0, 5.0),
    "levy": (levy, 1.0, 10.0),
    "rastrigin": (rastrigin, 0.0, 5.12),
    "rosenbrock": (rosenbrock, 1.0, 2.0),
    "schwefel": (schwefel, BY_CHANCE, 500.0),
}


class Rotated(VectorProblem):
    """A function of u = c + s R (x - x*) on [-1, 1]^d: its lowest point x* and the rotation R are drawn by the seed.

    c are the coordinates of the function's lowest point, and s is half the width of its usual box. x* is uniform in
    [-0.7, 0.7]^d.

    Args:
        name: ellipsoid, levy, rastrigin, rosenbrock or schwefel.
        dim: d, >= 2.
        seed: of the lowest point and the rotation, >= 0.
        turned: whether there is a rotation.

    Raises:
        SettingError: for another name, dim or seed.

    Example:
        >>> problem = Rotated("rastrigin", 20)
        >>> lowest = dict(zip(problem.space.names, problem.lowest, strict=True))
        >>> round(problem(lowest), 9), problem.optimum
        (0.0, 0.0)
    """

    optimum = 0.0

    def __init__(self, name: str, dim: int, seed: int = 0, turned: bool = True):
        one_of(FORMULAS, name=name)
        whole(2, dim=dim)
        whole(0, seed=seed)
        super().__init__([(-1.0, 1.0)] * dim)
        self.formula, self.middle, self.scale = FORMULAS[name]
        generator = np.random.default_rng([seed, dim, *name.encode()])
        self.lowest = generator.uniform(-0.7, 0.7, dim)
        self.rotation = rotation(dim, generator) if turned else np.eye(dim)

    def value(self, x: Array) -> float:
        """The value at a vector (d)."""
        turned = self.rotation @ (x - self.lowest)
        return float(self.formula(self.middle + self.scale * turned)) + 0.0


class RotatedChoices(Problem):
    """`Rotated` where some parameters are whole numbers and choices: 30 reals, 10 numbers and 10 choices of 4.

    A choice stands for a coordinate, its options for places in [-1, 1] in an order that is drawn; a number from 0 to 9
    for ten equal steps. The lowest point lies on steps and options, so the optimum is 0.

    Args:
        name: as of `Rotated`.
        seed: of everything drawn, >= 0.

    Raises:
        SettingError: for another name or seed.

    Example:
        >>> problem = RotatedChoices("levy")
        >>> len(problem.space), round(problem(problem.lowest), 9)
        (50, 0.0)
    """

    optimum = 0.0

    def __init__(self, name: str, seed: int = 0):
        one_of(FORMULAS, name=name)
        whole(0, seed=seed)
        generator = np.random.default_rng([seed, 50, *name.encode()])
        reals: dict[str, Real | Integer | Categorical] = {f"x{i}": Real(-1, 1) for i in range(30)}
        numbers = {f"n{i}": Integer(0, 9) for i in range(10)}
        choices = {f"c{i}": Categorical(["a", "b", "c", "d"]) for i in range(10)}
        self.space = SearchSpace({**reals, **numbers, **choices})
        self.places = np.stack([generator.permutation(np.linspace(-1, 1, 4)) for _ in choices])
        self.lowest: Params = {
            **{key: float(generator.uniform(-0.7, 0.7)) for key in reals},
            **{key: int(generator.integers(1, 9)) for key in numbers},
            **{key: "abcd"[generator.integers(4)] for key in choices},
        }
        self.formula, self.middle, self.scale = FORMULAS[name]
        self.rotation = rotation(len(self.space), generator)

    def __call__(self, params: Params) -> float:
        """The value of a configuration."""
        turned = self.rotation @ (self.coordinates(params) - self.coordinates(self.lowest))
        return float(self.formula(self.middle + self.scale * turned)) + 0.0

    def coordinates(self, params: Params) -> Array:
        """A configuration -> its vector (50) in [-1, 1]."""
        reals = [params[f"x{i}"] for i in range(30)]
        numbers = [2 * params[f"n{i}"] / 9 - 1 for i in range(10)]
        choices = [places["abcd".index(params[f"c{i}"])] for i, places in enumerate(self.places)]
        return np.array([*reals, *numbers, *choices], dtype=np.float64)


def rotation(dim: int, generator: np.random.Generator) -> Array:
    """A uniformly random orthogonal matrix (d x d)."""
    q, r = np.linalg.qr(generator.normal(size=(dim, dim)))
    return np.asarray(q * np.sign(np.diagonal(r)))
