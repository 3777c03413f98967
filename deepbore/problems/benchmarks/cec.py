"""The functions of the competitions at the Congress on Evolutionary Computation, as problems.

They come with the package opfunu, which is imported when a problem is made.

References:
    Liang, Qu & Suganthan, Problem Definitions and Evaluation Criteria for the CEC 2014 Special Session and Competition
    on Single Objective Real-Parameter Numerical Optimization, 2013; Wu, Mallipeddi & Suganthan, the same of 2017, 2016;
    Yue, Price, Suganthan et al., the same of 2020, 2019. Van Thieu, Opfunu: An Open-source Python Library for
    Optimization Benchmark Functions, Journal of Open Research Software, 2024.
"""

from typing import ClassVar

import numpy as np

from deepbore.problems.base import Array, VectorProblem, benchmark_package
from deepbore.validation import one_of


class Cec(VectorProblem):
    """A shifted and rotated function of a competition, a hybrid of several or a composition; minimised.

    Their values and optima are as opfunu has them: the optimum of a function is 100 times its number in 2014 and 2017.

    Args:
        year: of the competition: 2014, 2017 or 2020, whose ten functions are a choice of those before.
        function: its number in opfunu: 1 to 30 in 2014, to 29 in 2017, where the second of the competition was
            withdrawn, and to 10 in 2020.
        dimension: number of parameters, one for which the competition has rotations: 10, 30, 50 or 100.

    Raises:
        SettingError: for settings outside these ranges.
        MissingPackage: without opfunu.

    Example:
        >>> problem = Cec(2020, function=1)  # doctest: +SKIP
        >>> len(problem.space), problem.optimum  # doctest: +SKIP
        (10, 100.0)
    """

    FUNCTIONS: ClassVar[dict[int, int]] = {2014: 30, 2017: 29, 2020: 10}  # how many each year has
    DIMENSIONS = (10, 30, 50, 100)

    def __init__(self, year: int, function: int, dimension: int = 10):
        one_of(self.FUNCTIONS, year=year)
        one_of(range(1, self.FUNCTIONS[year] + 1), function=function)
        one_of(self.DIMENSIONS, dimension=dimension)
        module = benchmark_package(f"opfunu.cec_based.cec{year}", "opfunu", extra="heldout")
        self._function = getattr(module, f"F{function}{year}")(ndim=dimension)
        super().__init__([(float(low), float(high)) for low, high in self._function.bounds])
        self.optimum = float(self._function.f_global)

    def value(self, x: Array) -> float:
        """The value at a vector (d)."""
        return float(self._function.evaluate(np.asarray(x)))
