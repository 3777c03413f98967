"""Synthetic problems with known optima, all minimised: pure formulas, and thin classes around them.

Formulas take vectors (... x d, natural units) and give values (...). Optima are exact to double precision: closed
forms, or found by Newton's method in 40 digits from the known minimisers. Texts often round them (Hartmann's to
-3.86278 and -3.32237).

References:
    Surjanovic & Bingham, Virtual Library of Simulation Experiments, sfu.ca/~ssurjano/optimization.html.
    Forrester, Sobester & Keane, Engineering Design via Surrogate Modelling, 2008 (for `forrester`).
    Tiao et al., BORE: Bayesian Optimization by Density-Ratio Estimation, ICML 2021 (figure 1, for `sine_parabola`).
"""

import math
from collections.abc import Callable
from typing import ClassVar

import numpy as np

from deepbore.problems.base import Array, Problem, VectorProblem
from deepbore.space import Categorical, Condition, Params, Real, SearchSpace
from deepbore.validation import one_of, whole

# --- formulas --------------------------------------------------------------------------------------------------------

HARTMANN_ALPHA = np.array([1.0, 1.2, 3.0, 3.2])
HARTMANN_A = {
    3: np.array([[3, 10, 30], [0.1, 10, 35], [3, 10, 30], [0.1, 10, 35]]),
    6: np.array(
        [
            [10, 3, 17, 3.5, 1.7, 8],
            [0.05, 10, 17, 0.1, 8, 14],
            [3, 3.5, 1.7, 10, 17, 8],
            [17, 8, 0.05, 10, 0.1, 14],
        ]
    ),
}
HARTMANN_P = {
    3: 1e-4 * np.array([[3689, 1170, 2673], [4699, 4387, 7470], [1091, 8732, 5547], [381, 5743, 8828]]),
    6: 1e-4
    * np.array(
        [
            [1312, 1696, 5569, 124, 8283, 5886],
            [2329, 4135, 8307, 3736, 1004, 9991],
            [2348, 1451, 3522, 2883, 3047, 6650],
            [4047, 8828, 8732, 5743, 1091, 381],
        ]
    ),
}


def branin(x: Array) -> Array:
    """(x1 - 5.1 / (4 pi^2) x0^2 + 5 / pi x0 - 6)^2 + 10 (1 - 1 / (8 pi)) cos(x0) + 10."""
    x0, x1 = x[..., 0], x[..., 1]
    valley = x1 - 5.1 / (4 * math.pi**2) * x0**2 + 5 / math.pi * x0 - 6
    return np.asarray(valley**2 + 10 * (1 - 1 / (8 * math.pi)) * np.cos(x0) + 10)


def six_hump_camel(x: Array) -> Array:
    """(4 - 2.1 x0^2 + x0^4 / 3) x0^2 + x0 x1 + (4 x1^2 - 4) x1^2."""
    x0, x1 = x[..., 0], x[..., 1]
    return np.asarray((4 - 2.1 * x0**2 + x0**4 / 3) * x0**2 + x0 * x1 + (4 * x1**2 - 4) * x1**2)


def forrester(x: Array) -> Array:
    """(6 x0 - 2)^2 sin(12 x0 - 4)."""
    x0 = x[..., 0]
    return np.asarray((6 * x0 - 2) ** 2 * np.sin(12 * x0 - 4))


def sine_parabola(x: Array) -> Array:
    """sin(3 x0) + x0^2 - 0.7 x0."""
    x0 = x[..., 0]
    return np.asarray(np.sin(3 * x0) + x0**2 - 0.7 * x0)


def flat(x: Array) -> Array:
    """0 everywhere."""
    return np.zeros(x.shape[:-1])


def hartmann(x: Array) -> Array:
    """-sum_i alpha_i exp(-sum_j A_ij (x_j - P_ij)^2), for d = 3 or 6."""
    d = x.shape[-1]
    distance = np.sum(HARTMANN_A[d] * (x[..., None, :] - HARTMANN_P[d]) ** 2, axis=-1)  # ... x 4
    return np.asarray(-np.sum(HARTMANN_ALPHA * np.exp(-distance), axis=-1))


def ackley(x: Array) -> Array:
    """-20 exp(-0.2 sqrt(mean_j x_j^2)) - exp(mean_j cos(2 pi x_j)) + 20 + e."""
    bowl = -20 * np.exp(-0.2 * np.sqrt(np.mean(x**2, axis=-1)))
    ripples = -np.exp(np.mean(np.cos(2 * math.pi * x), axis=-1))
    return np.asarray(bowl + ripples + 20 + math.e)


def rosenbrock(x: Array) -> Array:
    """sum_j 100 (x_{j+1} - x_j^2)^2 + (1 - x_j)^2, j = 0 ... d - 2."""
    here, after = x[..., :-1], x[..., 1:]
    return np.asarray(np.sum(100 * (after - here**2) ** 2 + (1 - here) ** 2, axis=-1))


def levy(x: Array) -> Array:
    """sin^2(pi w_0) + sum_{j < d-1} (w_j - 1)^2 (1 + 10 sin^2(pi w_j + 1)) + (w_{d-1} - 1)^2 (1 + sin^2(2 pi w_{d-1})).

    Here w_j = 1 + (x_j - 1) / 4.
    """
    w = 1 + (x - 1) / 4
    before, last = w[..., :-1], w[..., -1]
    first = np.sin(math.pi * w[..., 0]) ** 2
    middle = np.sum((before - 1) ** 2 * (1 + 10 * np.sin(math.pi * before + 1) ** 2), axis=-1)
    return np.asarray(first + middle + (last - 1) ** 2 * (1 + np.sin(2 * math.pi * last) ** 2))


def michalewicz(x: Array) -> Array:
    """-sum_j sin(x_j) sin^(2 m)((j + 1) x_j^2 / pi), j = 0 ... d - 1, with m = 10."""
    count = np.arange(1, x.shape[-1] + 1)
    return np.asarray(-np.sum(np.sin(x) * np.sin(count * x**2 / math.pi) ** 20, axis=-1))


# --- problems --------------------------------------------------------------------------------------------------------


class Synthetic(VectorProblem):
    """A problem whose values are those of a `formula`: vectors (... x d) -> values (...)."""

    formula: Callable[[Array], Array]

    def value(self, x: Array) -> float:
        """The formula's value at a vector (d)."""
        return float(self.formula(x))


class Branin(Synthetic):
    """Two dimensions, three equal minima: `branin` on [-5, 10] x [0, 15].

    Example:
        >>> Branin()({"x0": 0, "x1": 6})
        19.602112642270264
    """

    formula = staticmethod(branin)
    optimum = 10 / (8 * math.pi)  # the square is 0 and the cosine -1 at x0 = -pi, pi and 3 pi

    def __init__(self) -> None:
        super().__init__([(-5.0, 10.0), (0.0, 15.0)])


class SixHumpCamel(Synthetic):
    """Two dimensions, six local minima, two of them global: `six_hump_camel` on [-3, 3] x [-2, 2].

    Example:
        >>> SixHumpCamel()({"x0": 0, "x1": 0})
        0.0
    """

    formula = staticmethod(six_hump_camel)
    optimum = -1.0316284534898774

    def __init__(self) -> None:
        super().__init__([(-3.0, 3.0), (-2.0, 2.0)])


class Forrester(Synthetic):
    """One dimension, one local and one global minimum: `forrester` on [0, 1].

    Example:
        >>> round(Forrester()({"x0": 0.75725}), 4)
        -6.0207
    """

    formula = staticmethod(forrester)
    optimum = -6.020740055767083

    def __init__(self) -> None:
        super().__init__([(0.0, 1.0)])


class SineParabola(Synthetic):
    """One dimension, one local and one global minimum: `sine_parabola` on [-1, 2] (BORE's figure 1).

    The paper gives no domain; this is the usual one. The figure's noise has the standard deviation 0.2:
    `Noisy(SineParabola(), 0.2)`.

    Example:
        >>> round(SineParabola()({"x0": -0.3594}), 4)
        -0.5004
    """

    formula = staticmethod(sine_parabola)
    optimum = -0.500359627666571

    def __init__(self) -> None:
        super().__init__([(-1.0, 2.0)])


class Flat(Synthetic):
    """0 everywhere on [0, 1]^d; with `Noisy(Flat(2), 1.0)` values are noise alone.

    Args:
        dim: number of parameters d, >= 1.

    Raises:
        SettingError: for another dim.

    Example:
        >>> Flat(1)({"x0": 0.5})
        0.0
    """

    formula = staticmethod(flat)
    optimum = 0.0

    def __init__(self, dim: int):
        whole(1, dim=dim)
        super().__init__([(0.0, 1.0)] * dim)


class Hartmann(Synthetic):
    """Four Gaussian wells: `hartmann` on [0, 1]^d.

    Args:
        dim: number of parameters d, 3 or 6.

    Raises:
        SettingError: for another dim.

    Example:
        >>> Hartmann(6).space.names
        ['x0', 'x1', 'x2', 'x3', 'x4', 'x5']
    """

    formula = staticmethod(hartmann)
    OPTIMA: ClassVar[dict[int, float]] = {3: -3.8627797873326625, 6: -3.322368011415515}

    def __init__(self, dim: int):
        one_of(self.OPTIMA, dim=dim)
        super().__init__([(0.0, 1.0)] * dim)
        self.optimum = self.OPTIMA[dim]


class Ackley(Synthetic):
    """Many ripples around a narrow hole at 0: `ackley` on [-32.768, 32.768]^d.

    Args:
        dim: number of parameters d, >= 1.

    Raises:
        SettingError: for another dim.

    Example:
        >>> round(Ackley(2)({"x0": 1, "x1": 1}), 4)
        3.6254
    """

    formula = staticmethod(ackley)
    optimum = 0.0

    def __init__(self, dim: int):
        whole(1, dim=dim)
        super().__init__([(-32.768, 32.768)] * dim)


class Rosenbrock(Synthetic):
    """A flat curved valley with its lowest point at (1, ..., 1): `rosenbrock` on [-5, 10]^d.

    Args:
        dim: number of parameters d, >= 2.

    Raises:
        SettingError: for another dim.

    Example:
        >>> Rosenbrock(2)({"x0": 1, "x1": 2})
        100.0
    """

    formula = staticmethod(rosenbrock)
    optimum = 0.0

    def __init__(self, dim: int):
        whole(2, dim=dim)
        super().__init__([(-5.0, 10.0)] * dim)


class Levy(Synthetic):
    """Waves on a bowl with its lowest point at (1, ..., 1), or elsewhere: `levy` on [-10, 10]^d.

    Args:
        dim: number of parameters d, >= 1.
        seed: of the lowest point, drawn uniformly from [-5, 5]^d, >= 0; None for (1, ..., 1), next to the centre.

    Raises:
        SettingError: for another dim or seed.

    Example:
        >>> round(Levy(1)({"x0": 5}), 4)
        1.0
        >>> problem = Levy(20, seed=0)
        >>> round(problem(dict(zip(problem.space.names, problem.lowest, strict=True))), 9)
        0.0
    """

    optimum = 0.0

    def __init__(self, dim: int, seed: int | None = None):
        whole(1, dim=dim)
        if seed is not None:
            whole(0, seed=seed)
        super().__init__([(-10.0, 10.0)] * dim)
        self.lowest = np.ones(dim) if seed is None else np.random.default_rng(seed).uniform(-5, 5, dim)

    def formula(self, x: Array) -> Array:
        """The values at vectors (... x d)."""
        return levy(x - (self.lowest - 1))


class Michalewicz(Synthetic):
    """Steep valleys between plateaus, d! local minima: `michalewicz` on [0, pi]^d, with m = 10.

    Args:
        dim: number of parameters d, >= 1. The optimum is known for 2, 5 and 10.

    Raises:
        SettingError: for another dim.

    Example:
        >>> Michalewicz(5).optimum, Michalewicz(3).optimum
        (-4.687658179088146, None)
    """

    formula = staticmethod(michalewicz)
    OPTIMA: ClassVar[dict[int, float]] = {2: -1.8013034100985525, 5: -4.687658179088146, 10: -9.660151715641341}

    def __init__(self, dim: int):
        whole(1, dim=dim)
        super().__init__([(0.0, math.pi)] * dim)
        self.optimum = self.OPTIMA.get(dim)


OFFSET = 0.1  # mean of the exponential distribution of the models' least values


class Branches(Problem):
    """A choice between k models, each a bowl in d parameters of its own: which is the deepest, and where is its least?

        f(model, x) = b_model + sum_j s_j (x_j - o_j)^2 + 3/10 |x_0 - o_0| |x_1 - o_1|,    x in [0, 1]^d

    where o is uniform in [0, 1]^d and s uniform in [1/2, 5/2]^d for each model, and the least values b are
    exponentially distributed, shifted to a minimum of 0. A run that stays in the first good branch refines the wrong
    model.

    Args:
        models: k >= 2.
        parameters: d >= 2 of each model.
        seed: of the bowls, >= 0.

    Raises:
        SettingError: for a number below its minimum.

    Example:
        >>> problem = Branches(models=3, parameters=2)
        >>> problem.space.names
        ['model', 'm0_x0', 'm0_x1', 'm1_x0', 'm1_x1', 'm2_x0', 'm2_x1']
        >>> problem({"model": "m1", "m1_x0": 0.5, "m1_x1": 0.5}) > problem.optimum
        True
    """

    optimum = 0.0

    def __init__(self, models: int = 6, parameters: int = 3, seed: int = 0):
        whole(2, models=models, parameters=parameters)
        whole(0, seed=seed)
        stream = np.random.default_rng([models, parameters, seed])
        self.places = stream.random((models, parameters))
        self.scales = 0.5 + 2 * stream.random((models, parameters))
        least = stream.exponential(OFFSET, models)
        self.offsets = least - least.min()
        self.names = [[f"m{k}_x{j}" for j in range(parameters)] for k in range(models)]
        space: dict[str, Categorical | Real] = {"model": Categorical([f"m{k}" for k in range(models)])}
        for k, names in enumerate(self.names):
            space |= {name: Real(0, 1, when=Condition("model", f"m{k}")) for name in names}
        self.space = SearchSpace(space)

    def __call__(self, params: Params) -> float:
        """The depth of a model's bowl at a configuration."""
        k = int(str(params["model"])[1:])
        away = np.array([params[name] for name in self.names[k]]) - self.places[k]
        return float(self.offsets[k] + self.scales[k] @ away**2 + 0.3 * abs(away[0] * away[1]))
