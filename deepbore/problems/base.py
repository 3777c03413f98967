"""What every problem is: a space, an objective, its directions and, where it is known, the best possible value."""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from importlib import import_module
from typing import Any, cast, get_args, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deepbore.checks import one_of
from deepbore.data.observations import Direction
from deepbore.data.outcome import Outcome
from deepbore.data.trial import Budget
from deepbore.errors import MissingPackage, SettingError
from deepbore.space import Params, Real, SearchSpace

Array = NDArray[np.float64]


class Problem(ABC):
    """Something to optimise, with what is known about it.

    Attributes:
        space: where to search.
        directions: "minimize" or "maximize", one for each objective value, k >= 1.
        optimum: the best possible value of the only objective, in the user's sign; None if unknown. With constraints it
            is the best value of a feasible configuration.
        constraints: how many black-box constraints an outcome has, as far as the problem says it.
        numbered: whether a call takes the trial's id, too, as `trial`.
        isolated: whether `deepbore fit` always evaluates in worker processes, which are ended with all they have
            started.

    Example:
        >>> class Parabola(Problem):
        ...     space = SearchSpace({"x": Real(-1, 1)})
        ...     directions = ("maximize",)
        ...
        ...     def __call__(self, params):
        ...         return 1 - params["x"] ** 2
        >>> Parabola().direction
        'maximize'
    """

    space: SearchSpace
    directions: tuple[Direction, ...] = ("minimize",)
    optimum: float | None = None
    constraints: int = 0
    numbered: bool = False
    isolated: bool = False

    def __init_subclass__(cls, **settings: Any) -> None:
        """Takes `direction = "maximize"` in a class for `directions = ("maximize",)`."""
        super().__init_subclass__(**settings)
        if isinstance(declared := vars(cls).get("direction"), str):
            cls.directions = (as_direction(declared),)
            del cls.direction

    @property
    def direction(self) -> Direction:
        """The direction of the first objective value. Set it where there is only one."""
        return self.directions[0]

    @direction.setter
    def direction(self, direction: Direction) -> None:
        self.directions = (as_direction(direction),)

    @abstractmethod
    def __call__(self, params: Params) -> float | Outcome:
        """What a configuration gives: its value in the user's sign, or an outcome with more to it."""

    def true_value(self, params: Params) -> float:
        """The value of the only objective without noise: what a call gives, where calls have none."""
        value = self(params)
        return float(value.values[0]) if isinstance(value, Outcome) else float(value)

    def prepare(self) -> None:  # most have nothing to look at
        """Looks before a run whether trials can be evaluated at all; raises SettingError if not."""

    def check_budget(self, budget: Budget) -> None:  # most can spend any
        """Raises SettingError for a budget whose rungs can't be spent; asked before a run."""

    @overload
    def regret(self, values: float) -> float: ...

    @overload
    def regret(self, values: Sequence[float] | Array) -> Array: ...

    def regret(self, values: ArrayLike) -> float | Array:
        """How far values are from the best possible one: optimum - y to maximise, y - optimum to minimise.

        Args:
            values: one value or an array of any shape. NaN and infinite ones, the failed, have infinite regret.

        Returns:
            Regrets >= 0 (rounding below 0 is cut off): a float for one value, else an array of the same shape.

        Raises:
            SettingError: if the optimum is unknown, or there are several objectives.

        Example:
            >>> from deepbore.problems import Levy
            >>> Levy(2).regret([0.5, 0.0, float("nan")])
            array([0.5, 0. , inf])
        """
        name = type(self).__name__
        if len(self.directions) > 1:
            raise SettingError(
                f"regret is of one objective, but {name} has {len(self.directions)}. Compare its values."
            )
        if self.optimum is None:
            raise SettingError(f"regret needs a known optimum, but {name}'s is None. Compare plain values instead.")
        y = np.asarray(values, dtype=np.float64)
        distance = self.optimum - y if self.direction == "maximize" else y - self.optimum
        regret = np.where(np.isfinite(y), np.maximum(distance, 0.0), math.inf)
        return float(regret) if regret.ndim == 0 else regret


class VectorProblem(Problem):
    """A problem on a box, whose parameters x0 ... x{d-1} make one vector.

    Args:
        bounds: (low, high) of each parameter, d pairs, in natural units.
    """

    def __init__(self, bounds: Sequence[tuple[float, float]]):
        self.space = SearchSpace({f"x{i}": Real(low, high) for i, (low, high) in enumerate(bounds)})

    @abstractmethod
    def value(self, x: Array) -> float:
        """The value at a vector (d)."""

    def __call__(self, params: Params) -> float | Outcome:
        """The value of a configuration. Raises PointError as `vector` does."""
        return float(self.value(self.vector(params)))

    def vector(self, params: Params) -> Array:
        """Configuration -> vector (d), in the order of the names.

        Raises:
            PointError: for an unknown or missing parameter, or a value outside its bounds.
        """
        self.space.encode([params])  # checks names and bounds
        return np.array([params[name] for name in self.space.names], dtype=np.float64)


def as_direction(direction: str) -> Direction:
    """A direction itself, if it is one.

    Raises:
        SettingError: for anything but "minimize" and "maximize".
    """
    one_of(get_args(Direction), direction=direction)
    return cast(Direction, direction)


def benchmark_package(module: str, package: str) -> Any:
    """An optional module, imported now.

    Raises:
        MissingPackage: if it cannot be imported.
    """
    try:
        return import_module(module)
    except ImportError as error:
        way_out = "pip install 'deepbore[benchmarks]'"
        raise MissingPackage(f"this problem needs the package {package}, but: {error}. Run: {way_out}") from error
