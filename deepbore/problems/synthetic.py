"""Synthetic problems with known optima: thin classes around `deepbore.problems.formulas`. All are minimised.

Optima are the true ones to double precision: closed forms, or found by Newton's method in 40 digits from the known
minimisers. Texts often round them (Hartmann's to -3.86278 and -3.32237).

References:
    Surjanovic & Bingham, Virtual Library of Simulation Experiments, sfu.ca/~ssurjano/optimization.html.
"""

import math
from collections.abc import Callable
from typing import ClassVar

from deepbore.checks import one_of, whole
from deepbore.problems import formulas
from deepbore.problems.base import Array, VectorProblem


class Synthetic(VectorProblem):
    """A problem whose values come from a `formula`, which takes vectors (... x d) and gives values (...)."""

    formula: Callable[[Array], Array]

    def value(self, x: Array) -> float:
        """The formula's value at a vector (d)."""
        return float(self.formula(x))


class Branin(Synthetic):
    """Two dimensions, three equal minima: `formulas.branin` on [-5, 10] x [0, 15].

    Example:
        >>> Branin()({"x0": 0, "x1": 6})
        19.602112642270264
    """

    formula = staticmethod(formulas.branin)
    optimum = 10 / (8 * math.pi)  # the square is 0 and the cosine -1 at x0 = -pi, pi and 3 pi

    def __init__(self) -> None:
        super().__init__([(-5.0, 10.0), (0.0, 15.0)])


class SixHumpCamel(Synthetic):
    """Two dimensions, six local minima, two of them global: `formulas.six_hump_camel` on [-3, 3] x [-2, 2].

    Example:
        >>> SixHumpCamel()({"x0": 0, "x1": 0})
        0.0
    """

    formula = staticmethod(formulas.six_hump_camel)
    optimum = -1.0316284534898774

    def __init__(self) -> None:
        super().__init__([(-3.0, 3.0), (-2.0, 2.0)])


class Forrester(Synthetic):
    """One dimension, one local and one global minimum: `formulas.forrester` on [0, 1].

    Example:
        >>> round(Forrester()({"x0": 0.75725}), 4)
        -6.0207
    """

    formula = staticmethod(formulas.forrester)
    optimum = -6.020740055767083

    def __init__(self) -> None:
        super().__init__([(0.0, 1.0)])


class SineParabola(Synthetic):
    """One dimension, one local and one global minimum: `formulas.sine_parabola` on [-1, 2] (BORE's figure 1).

    The text has no domain; this is the one on which the function is usually shown. The figure's noise has the standard
    deviation 0.2: `Noisy(SineParabola(), 0.2)`.

    Example:
        >>> round(SineParabola()({"x0": -0.3594}), 4)
        -0.5004
    """

    formula = staticmethod(formulas.sine_parabola)
    optimum = -0.500359627666571

    def __init__(self) -> None:
        super().__init__([(-1.0, 2.0)])


class Flat(Synthetic):
    """0 everywhere on [0, 1]^d: with noise on it, `Noisy(Flat(2), 1.0)`, there is nothing to find but noise.

    Args:
        dim: number of parameters d, >= 1.

    Raises:
        SettingError: for another dim.

    Example:
        >>> Flat(1)({"x0": 0.5})
        0.0
    """

    formula = staticmethod(formulas.flat)
    optimum = 0.0

    def __init__(self, dim: int):
        whole(1, dim=dim)
        super().__init__([(0.0, 1.0)] * dim)


class Hartmann(Synthetic):
    """Four Gaussian wells: `formulas.hartmann` on [0, 1]^d.

    Args:
        dim: number of parameters d, 3 or 6.

    Raises:
        SettingError: for another dim.

    Example:
        >>> Hartmann(6).space.names
        ['x0', 'x1', 'x2', 'x3', 'x4', 'x5']
    """

    formula = staticmethod(formulas.hartmann)
    OPTIMA: ClassVar[dict[int, float]] = {3: -3.8627797873326625, 6: -3.322368011415515}

    def __init__(self, dim: int):
        one_of(self.OPTIMA, dim=dim)
        super().__init__([(0.0, 1.0)] * dim)
        self.optimum = self.OPTIMA[dim]


class Ackley(Synthetic):
    """Many ripples around a narrow hole at 0: `formulas.ackley` on [-32.768, 32.768]^d.

    Args:
        dim: number of parameters d, >= 1.

    Raises:
        SettingError: for another dim.

    Example:
        >>> round(Ackley(2)({"x0": 1, "x1": 1}), 4)
        3.6254
    """

    formula = staticmethod(formulas.ackley)
    optimum = 0.0

    def __init__(self, dim: int):
        whole(1, dim=dim)
        super().__init__([(-32.768, 32.768)] * dim)


class Rosenbrock(Synthetic):
    """A flat curved valley with its lowest point at (1, ..., 1): `formulas.rosenbrock` on [-5, 10]^d.

    Args:
        dim: number of parameters d, >= 2.

    Raises:
        SettingError: for another dim.

    Example:
        >>> Rosenbrock(2)({"x0": 1, "x1": 2})
        100.0
    """

    formula = staticmethod(formulas.rosenbrock)
    optimum = 0.0

    def __init__(self, dim: int):
        whole(2, dim=dim)
        super().__init__([(-5.0, 10.0)] * dim)


class Levy(Synthetic):
    """Waves on a bowl with its lowest point at (1, ..., 1): `formulas.levy` on [-10, 10]^d.

    Args:
        dim: number of parameters d, >= 1.

    Raises:
        SettingError: for another dim.

    Example:
        >>> round(Levy(1)({"x0": 5}), 4)
        1.0
    """

    formula = staticmethod(formulas.levy)
    optimum = 0.0

    def __init__(self, dim: int):
        whole(1, dim=dim)
        super().__init__([(-10.0, 10.0)] * dim)


class Michalewicz(Synthetic):
    """Steep valleys between plateaus, d! local minima: `formulas.michalewicz` on [0, pi]^d, with m = 10.

    Args:
        dim: number of parameters d, >= 1. The optimum is known for 2, 5 and 10.

    Raises:
        SettingError: for another dim.

    Example:
        >>> Michalewicz(5).optimum, Michalewicz(3).optimum
        (-4.687658179088146, None)
    """

    formula = staticmethod(formulas.michalewicz)
    OPTIMA: ClassVar[dict[int, float]] = {2: -1.8013034100985525, 5: -4.687658179088146, 10: -9.660151715641341}

    def __init__(self, dim: int):
        whole(1, dim=dim)
        super().__init__([(0.0, math.pi)] * dim)
        self.optimum = self.OPTIMA.get(dim)
