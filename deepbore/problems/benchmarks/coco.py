"""The functions of COCO, the benchmark for continuous optimisers, as problems.

They come with the package coco-experiment, which is imported when a problem is made.

References:
    Hansen, Auger, Ros, Mersmann, Tusar & Brockhoff, COCO: A Platform for Comparing Continuous Optimizers in a Black-Box
    Setting, Optimization Methods and Software, 2021.
"""

from contextlib import chdir
from tempfile import TemporaryDirectory
from typing import Any, ClassVar

import numpy as np

from deepbore.data.outcome import Outcome
from deepbore.problems.base import Array, VectorProblem, benchmark_package
from deepbore.problems.benchmarks.noise import Draws
from deepbore.space import Integer, Params, Real, SearchSpace
from deepbore.validation import one_of, whole

NOISE_FREE = (1, 8, 1, 8, 7, 10, 14, 17, 19, 21)  # the bbob function beneath f101-f103, f104-f106, ... f128-f130
MODERATE = 106  # the last function with moderate noise; those after it have severe noise
CAUCHY_SHIFT, TOLERANCE = 1000.0, 1.01e-8  # the least that a Cauchy function adds is level * SHIFT + TOLERANCE
DECADES = (0, -3, -1, -1, 0, -2, 0, -2, -2, -3, -2, -4, -1, 0, -1, 0, 1, 0, 1, -1, 0, 0, 1, -1)  # bbob-mixint's scales


class Coco(VectorProblem):
    """A function of one of COCO's suites, minus its lowest value: minimised, with its optimum at 0.

    - bbob, bbob-largescale: continuous, on [-5, 5]^d.
    - bbob-mixint: four parameters of five are whole numbers, from 0 to 1, 3, 7 and 15, and come first; the rest are
      continuous.
    - bbob-noisy, f101 to f130: ten functions of bbob with noise: Gaussian or uniform, which multiply the distance from
      the optimum, or Cauchy outliers.
    - bbob-constrained: 1 to 9 plus 9/2 of the dimension black-box constraints, and an `Outcome` with COCO's value, not
      shifted; `optimum` is the value at COCO's best feasible point.

    COCO restarts its random numbers with each problem, which gives the i-th evaluation of every run the same noise.
    Here noise is drawn by COCO's formulas from `seed` instead (see `Draws`).

    Args:
        suite: bbob, bbob-mixint, bbob-noisy, bbob-largescale or bbob-constrained.
        function: its number in the suite: 1 to 24, 101 to 130 in bbob-noisy, or 1 to 54 in bbob-constrained.
        instance: number of the shift and rotation, >= 1.
        dimension: number of parameters, one of the suite's `DIMENSIONS`.
        seed: of the noise, >= 0.

    Raises:
        SettingError: for settings outside these ranges.
        MissingPackage: without coco-experiment.

    Example:
        >>> problem = Coco("bbob", function=1, instance=1, dimension=2)
        >>> round(problem({"x0": 1.2528, "x1": -1.1568}), 6), problem.optimum  # 1 from the lowest point of the sphere
        (1.0, 0.0)

    References:
        Tusar, Brockhoff & Hansen, Mixed-Integer Benchmark Problems for Single- and Bi-Objective Optimization, GECCO
        2019 (bbob-mixint). Finck, Hansen, Ros & Auger, Real-Parameter Black-Box Optimization Benchmarking 2010:
        Presentation of the Noisy Functions (bbob-noisy). Varelas et al., A Comparative Study of Large-Scale Variants of
        CMA-ES, PPSN 2018 (bbob-largescale). Dufosse, Hansen, Brockhoff, Sampaio, Atamna & Auger, Building Scalable Test
        Problems for Benchmarking Constrained Optimizers, 2022 (bbob-constrained).
    """

    DIMENSIONS: ClassVar[dict[str, tuple[int, ...]]] = {
        "bbob": (2, 3, 5, 10, 20, 40),
        "bbob-mixint": (5, 10, 20, 40, 80, 160),
        "bbob-noisy": (2, 3, 5, 10, 20, 40),
        "bbob-largescale": (20, 40, 80, 160, 320, 640),
        "bbob-constrained": (2, 3, 5, 10, 20, 40),
    }

    def __init__(self, suite: str, function: int, instance: int, dimension: int, seed: int = 0):
        one_of(self.DIMENSIONS, suite=suite)
        one_of(self.functions(suite), function=function)
        one_of(self.DIMENSIONS[suite], dimension=dimension)
        whole(1, instance=instance)
        whole(0, seed=seed)
        self.suite, self.function, self.instance, self.dimension, self.seed = suite, function, instance, dimension, seed
        self._function = self._load()
        whole_numbers = self._function.number_of_integer_variables
        bounds = list(zip(self._function.lower_bounds.tolist(), self._function.upper_bounds.tolist(), strict=True))
        self.space = SearchSpace(
            {
                f"x{i}": Integer(int(low), int(high)) if i < whole_numbers else Real(low, high)
                for i, (low, high) in enumerate(bounds)
            }
        )
        self.constraints = int(self._function.number_of_constraints)
        self._lowest = 0.0 if self.constraints else self._lowest_value()
        self.optimum = self._best_feasible_value() if self.constraints else 0.0
        self._draws = Draws(self.space, f"{suite} {function} {instance}", seed)

    @classmethod
    def functions(cls, suite: str) -> range:
        """The numbers of a suite's functions."""
        return {"bbob-noisy": range(101, 131), "bbob-constrained": range(1, 55)}.get(suite, range(1, 25))

    @property
    def is_noisy(self) -> bool:
        """Whether evaluations have noise."""
        return self.suite == "bbob-noisy"

    def __call__(self, params: Params) -> float | Outcome:
        """The value of a configuration, with new noise in bbob-noisy, and an outcome in bbob-constrained.

        Raises PointError as `vector` does.
        """
        value = self.true_value(params)
        if self.constraints:
            return Outcome(value, constraints=self._function.constraint(self.vector(params)).tolist())
        return with_noise(value, self.function, self.dimension, self._draws(params)) if self.is_noisy else value

    def true_value(self, params: Params) -> float:
        """The value without noise. Raises PointError as `vector` does."""
        return self.value(self.vector(params))

    def value(self, x: Array) -> float:
        """The value without noise at a vector (d)."""
        return (self._without_noise(x) if self.is_noisy else float(self._function(x))) - self._lowest

    def _without_noise(self, x: Array) -> float:
        """The value of a Cauchy function without an outlier: the one that repeats, as most calls have none."""
        seen: set[float] = set()
        while (value := float(self._function(x))) not in seen:
            seen.add(value)
        return value

    def _load(self) -> Any:
        """COCO's problem; of bbob-noisy that with Cauchy noise, the last of each three, which can be removed."""
        number = self.function if not self.is_noisy else _cauchy(self.function) - 100  # filters count from 1
        package = benchmark_package("cocoex", "coco-experiment")
        wanted = f"function_indices: {number} dimensions: {self.dimension}"
        return package.Suite(self.suite, f"instances: {self.instance}", wanted).get_problem(0)

    def _lowest_value(self) -> float:
        """COCO's lowest value, a function of function and instance alone, on the scale of the suite."""
        bare = benchmark_package("cocoex.bare_problem", "coco-experiment").BareProblem
        if self.is_noisy:
            constant = CAUCHY_SHIFT * noise_level(self.function) + TOLERANCE
            return float(bare("bbob", NOISE_FREE[(self.function - 101) // 3], 2, self.instance).best_value() + constant)
        lowest = float(bare("bbob", self.function, 2, self.instance).best_value())
        return lowest * 10.0 ** DECADES[self.function - 1] if self.suite == "bbob-mixint" else lowest

    def _best_feasible_value(self) -> float:
        """The value at COCO's best feasible point, which it prints into a file of the working directory."""
        with TemporaryDirectory() as folder, chdir(folder):
            self._function._best_parameter("print")
            return float(self._function(np.loadtxt("._bbob_problem_best_parameter.txt")))

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_function"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._function = self._load()


def with_noise(value: float, function: int, dimension: int, generator: np.random.Generator) -> float:
    """A value with the noise of a function of bbob-noisy (Finck et al., section on noise models).

    COCO adds no noise to values below 1e-8; this does.

    Args:
        value: above the lowest one, >= 0.
        function: 101 to 130, in turn with Gaussian, uniform and Cauchy noise.
        dimension: number of parameters.
        generator: draws the noise.
    """
    level = noise_level(function)
    kind = (function - 101) % 3
    if kind == 0:
        return value * float(np.exp(level * generator.normal()))
    if kind == 1:
        factor, power = generator.uniform() ** level, level * (0.49 + 1 / dimension) * generator.uniform()
        return value * float(factor * max(1.0, (1e9 / (max(value, 0.0) + 1e-99)) ** power))
    is_outlier = generator.uniform() < (0.05 if function <= MODERATE else 0.2)
    outlier = generator.normal() / abs(generator.normal()) if is_outlier else 0.0
    return value + level * float(max(0.0, CAUCHY_SHIFT + outlier))


def noise_level(function: int) -> float:
    """The scale of the noise of a function of bbob-noisy."""
    return 0.01 if function <= MODERATE else 1.0


def _cauchy(function: int) -> int:
    """The function with Cauchy noise that has the same noiseless values as one of bbob-noisy."""
    return function + (103 - function) % 3
