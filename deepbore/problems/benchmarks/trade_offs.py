"""Test problems of several objectives: ZDT, DTLZ2, WFG and COCO's pairs, and a real trade-off."""

import math
from typing import Any

import numpy as np

from deepbore.data.observations import Direction
from deepbore.data.outcome import Outcome
from deepbore.errors import SettingError
from deepbore.problems.base import Array, VectorProblem, benchmark_package
from deepbore.problems.benchmarks.digits import TRAINING, Digits, count_parameters
from deepbore.space import Params
from deepbore.validation import one_of, whole


class Objectives(VectorProblem):
    """A problem on a box with several values of a vector, all minimised.

    Attributes:
        reference: the reference point of hypervolumes, one number for each objective.
    """

    reference: tuple[float, ...]

    def __call__(self, params: Params) -> Outcome:
        """The values of a configuration. Raises PointError as `vector` does."""
        return Outcome(self.values(self.vector(params)))

    def values(self, x: Array) -> list[float]:
        """The values at a vector (d)."""
        raise NotImplementedError

    def value(self, x: Array) -> float:
        """The first value at a vector (d)."""
        return self.values(x)[0]


class ZDT(Objectives):
    """ZDT1 (convex front), ZDT2 (concave) and ZDT3 (in five pieces): minimised on [0, 1]^d, optimal with x1 ... at 0.

    Args:
        number: 1, 2 or 3.
        dimension: d >= 2.

    References:
        Zitzler, Deb & Thiele, Comparison of multiobjective evolutionary algorithms: empirical results, 2000.
    """

    directions = ("minimize", "minimize")
    reference = (11.0, 11.0)

    def __init__(self, number: int, dimension: int = 6):
        one_of((1, 2, 3), number=number)
        whole(2, dimension=dimension)
        super().__init__([(0.0, 1.0)] * dimension)
        self.number = number

    def values(self, x: Array) -> list[float]:
        first, g = float(x[0]), 1 + 9 * float(x[1:].mean())
        if self.number == 2:
            return [first, g * (1 - (first / g) ** 2)]
        waves = first / g * math.sin(10 * math.pi * first) if self.number == 3 else 0.0
        return [first, g * (1 - math.sqrt(first / g) - waves)]


class DTLZ2(Objectives):
    """k objectives whose front is the part of the unit sphere with positive coordinates: minimised on [0, 1]^d.

    Args:
        objectives: k >= 2.
        dimension: d >= k; the last d - k + 1 parameters are best at 1/2.

    References:
        Deb, Thiele, Laumanns & Zitzler, Scalable test problems for evolutionary multiobjective optimization, 2005.
    """

    def __init__(self, objectives: int = 3, dimension: int = 6):
        whole(2, objectives=objectives)
        whole(objectives, dimension=dimension)
        super().__init__([(0.0, 1.0)] * dimension)
        minimize: Direction = "minimize"
        self.directions = (minimize,) * objectives
        self.reference = (1.1,) * objectives

    def values(self, x: Array) -> list[float]:
        k = len(self.directions)
        radius = 1 + float(np.square(x[k - 1 :] - 0.5).sum())
        angles = x[: k - 1] * math.pi / 2
        found = []
        for j in range(k):
            cosines = float(np.cos(angles[: k - 1 - j]).prod())
            found.append(radius * cosines * (math.sin(angles[k - 1 - j]) if j else 1.0))
        return found


class WFG(Objectives):
    """One of nine problems with shifted, biased and dependent parameters, by pymoo.

    Minimised on [0, 2] x [0, 4] x ... x [0, 2 d]: WFG1 has a flat and biased front, WFG2 one in pieces, WFG3 nearly a
    line, WFG4 many local fronts, WFG5 deceptive ones; the rest are not separable.

    Args:
        number: 1 to 9.
        objectives: k >= 2.
        dimension: d, even, >= 4 + 2 and >= 2 (k - 1) + 2; the first 4, or 2 (k - 1) if that is more, are the position
            along the front, the others the distance from it.

    Raises:
        SettingError: for settings outside their ranges.
        MissingPackage: without pymoo.

    References:
        Huband, Hingston, Barone & While, A review of multiobjective test problems and a scalable test problem toolkit,
        2006.
    """

    def __init__(self, number: int, objectives: int = 2, dimension: int = 6):
        one_of(range(1, 10), number=number)
        whole(2, objectives=objectives)
        position = max(4, 2 * (objectives - 1))
        whole(position + 2, dimension=dimension)
        if dimension % 2:
            raise SettingError(f"dimension must be even for WFG, but got dimension={dimension}.")
        super().__init__([(0.0, 2.0 * (i + 1)) for i in range(dimension)])
        family = benchmark_package("pymoo.problems.many.wfg", "pymoo")
        self._problem = getattr(family, f"WFG{number}")(dimension, objectives, k=position)
        minimize: Direction = "minimize"
        self.directions = (minimize,) * objectives
        self.reference = tuple(2.2 * (j + 1) for j in range(objectives))  # a tenth beyond the front's worst, 2 j

    def values(self, x: Array) -> list[float]:
        return [float(each) for each in self._problem.evaluate(x)]


class CocoBiobjective(Objectives):
    """A pair of COCO's functions, both minimised on [-5, 5]^d: its suite bbob-biobj.

    Args:
        function: its number in the suite, 1 to 55.
        instance: number of the shifts and rotations, 1 to 5.
        dimension: 2, 3, 5, 10, 20 or 40.

    Raises:
        SettingError: for what the suite does not have.
        MissingPackage: without coco-experiment.

    References:
        Brockhoff, Auger, Hansen & Tusar, Using well-understood single-objective functions in multiobjective black-box
        optimization test suites, 2022.
    """

    directions = ("minimize", "minimize")

    def __init__(self, function: int, instance: int = 1, dimension: int = 5):
        one_of(range(1, 56), function=function)
        one_of(range(1, 6), instance=instance)
        one_of((2, 3, 5, 10, 20, 40), dimension=dimension)
        super().__init__([(-5.0, 5.0)] * dimension)
        which = f"dimensions: {dimension} function_indices: {function}"
        self._suite = benchmark_package("cocoex", "coco-experiment").Suite(
            "bbob-biobj", f"instances: {instance}", which
        )
        self._pair = self._suite.get_problem(0)
        self.reference = tuple(map(float, self._pair.largest_fvalues_of_interest))
        self._which = function, instance, dimension

    def __reduce__(self) -> tuple[Any, ...]:  # COCO's objects cannot be pickled
        return type(self), self._which

    def values(self, x: Array) -> list[float]:
        return [float(each) for each in self._pair(x)]


class DigitsTradeOff(Digits):
    """Error on held-out digits and the size of the network, both minimised.

    As `Digits`, but the values are the share of misclassified held-out images and the logarithm (to base 10) of the
    number of weights and biases.

    Args:
        epochs: as of `Digits`.
        seed: as of `Digits`.

    Raises:
        SettingError: for settings outside their ranges.
        MissingPackage: without scikit-learn.
    """

    directions = ("minimize", "minimize")
    reference = (0.9, 5.5)

    def __call__(self, params: Params) -> Outcome:
        """Error and size. Raises PointError for a configuration outside the space."""
        wrong = self.held_out_scores(params).argmax(-1) != self.labels[TRAINING:]
        return Outcome([float(wrong.double().mean()), math.log10(count_parameters(params))])
