"""`Problem`: a space, an objective, its directions and, where it is known, the best possible value."""

import math
import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, cast, get_args, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from deepbore.data.observations import Direction
from deepbore.data.outcome import Outcome
from deepbore.data.trial import Budget, Trial
from deepbore.errors import MissingPackage, SettingError
from deepbore.names import did_you_mean
from deepbore.space import Params, Real, SearchSpace
from deepbore.validation import one_of
from deepbore.worker.objective import by_keywords, wants_trial
from deepbore.worker.target import function_at

Array = NDArray[np.float64]


class Problem(ABC):
    """An objective over a space, with its directions and its optimum.

    Attributes:
        space: where to search.
        directions: "minimize" or "maximize", one for each objective value, k >= 1.
        objectives: names of the values, k; empty where they have none.
        optimum: the best possible value of the only objective, in the user's sign; None if unknown. With constraints it
            is the best value of a feasible configuration.
        constraints: number of black-box constraints of an outcome, as far as it is declared.
        numbered: whether a call also takes the trial's id, as `trial`.
        isolated: whether `deepbore fit` always evaluates in worker processes, which end with all their children.

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
    objectives: tuple[str, ...] = ()
    optimum: float | None = None
    constraints: int = 0
    numbered: bool = False
    isolated: bool = False

    def __init_subclass__(cls, **settings: Any) -> None:
        """Reads `direction = "maximize"` in a class as `directions = ("maximize",)`."""
        super().__init_subclass__(**settings)
        if isinstance(declared := vars(cls).get("direction"), str):
            cls.directions = (as_direction(declared),)
            del cls.direction

    def __repr__(self) -> str:
        """Its class, and how many parameters it has: its arguments are its own affair."""
        n = len(self.space)
        return f"<{type(self).__name__} of {n} parameter{'s' * (n > 1)}>"

    @property
    def direction(self) -> Direction:
        """The direction of the first objective value. Set it where there is only one."""
        return self.directions[0]

    @direction.setter
    def direction(self, direction: Direction) -> None:
        self.directions = (as_direction(direction),)

    @abstractmethod
    def __call__(self, params: Params) -> float | Outcome:
        """The result of a configuration: its value in the user's sign, or an `Outcome`."""

    def true_value(self, params: Params) -> float:
        """The noiseless value of the only objective; that of a call, unless calls are noisy."""
        value = self(params)
        return float(value.values[0]) if isinstance(value, Outcome) else float(value)

    def prepare(self) -> None:  # most have nothing to check
        """Checks before a run that trials can be evaluated; raises SettingError if not."""

    def check_budget(self, budget: Budget) -> None:  # most accept any
        """Raises SettingError for a budget whose rungs cannot be spent; called before a run."""

    @overload
    def regret(self, values: float) -> float: ...

    @overload
    def regret(self, values: Sequence[float] | Array) -> Array: ...

    def regret(self, values: ArrayLike) -> float | Array:
        """The distance of values from the optimum: optimum - y to maximise, y - optimum to minimise.

        Args:
            values: one value or an array of any shape. NaN and infinite values, of failed trials, have infinite regret.

        Returns:
            Regrets >= 0 (clipped at 0): a float for one value, else an array of the same shape.

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
    """A problem on a box, whose parameters x0 ... x{d-1} form a vector.

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


class FunctionProblem(Problem):
    """Your own function as a problem.

    In a configuration file, where it needs no class_path:

        problem:
          function: my_module.objective
          space:
            lr: {type: real, low: 1.0e-5, high: 0.1, log: true}

    Args:
        function: takes a configuration (dict) and returns its value or an `Outcome`; a second argument named `trial`
            receives the trial, with its budget. Or its import path, as "my_module.objective" or "train.py:objective";
            modules in the current working directory are found first, as by `python -m`.
        space: the space, or its declaration as `SearchSpace.from_dict` takes it.
        direction: "minimize" or "maximize".
        optimum: best possible value, finite; None if unknown.
        directions: of several objectives one each, in place of direction; {"loss": "minimize", "size": "minimize"}
            names them.

    Raises:
        SettingError: for a function that cannot be imported or called, or another setting that breaks these rules.
        SpaceError: for a declaration that makes no valid space.

    Example:
        >>> problem = FunctionProblem(lambda params: params["x"] ** 2, {"x": {"type": "real", "low": -1, "high": 1}})
        >>> problem({"x": 0.5})
        0.25
    """

    def __init__(
        self,
        function: str | Callable[..., float | Outcome],
        space: dict[str, Any] | SearchSpace,
        direction: Direction = "minimize",
        optimum: float | None = None,
        directions: Sequence[Direction] | dict[str, Direction] | None = None,
    ):
        if optimum is not None and not math.isfinite(optimum):
            raise SettingError(f"optimum must be finite, but got {optimum}. Use None where it is unknown.")
        self.function = imported(function) if isinstance(function, str) else function
        if not callable(self.function):
            raise SettingError(f"function must be callable, but got {function!r}. Give a function of a configuration.")
        self.space = space if isinstance(space, SearchSpace) else SearchSpace.from_dict(space)
        if directions is None:
            self.directions = (as_direction(direction),)
        else:
            several = directions.values() if isinstance(directions, dict) else directions
            self.directions = tuple(as_direction(each) for each in several)
            self.objectives = tuple(directions) if isinstance(directions, dict) else ()
        self.optimum = optimum

    def __call__(self, params: Params, trial: Trial | None = None) -> float | Outcome:
        """The function's result for a configuration, unchanged."""
        beside = {"trial": trial} if wants_trial(self.function) else {}
        return self.function(**params, **beside) if by_keywords(self.function) else self.function(params, **beside)


def as_direction(direction: str) -> Direction:
    """A checked direction.

    Raises:
        SettingError: unless it is "minimize" or "maximize".
    """
    one_of(get_args(Direction), direction=direction)
    return cast(Direction, direction)


def benchmark_package(module: str, package: str, extra: str = "benchmarks") -> Any:
    """A module of an optional package.

    Args:
        module: to be imported.
        package: as it is called where it is installed from.
        extra: of deepbore, with which the package comes.

    Raises:
        MissingPackage: if it cannot be imported.
    """
    try:
        return import_module(module)
    except ImportError as error:
        way_out = f"pip install 'deepbore[{extra}]'"
        raise MissingPackage(f"this problem needs the package {package}, but: {error}. Run: {way_out}") from error


def imported(path: str) -> Callable[..., float | Outcome]:
    """The function at an import path such as "my_module.objective", or in a file, "train.py:objective".

    Raises:
        SettingError: if the path names no module and function, or the module cannot be imported.
    """
    if ":" in path:
        try:
            return cast(Callable[..., float | Outcome], function_at(path))
        except Exception as error:  # the module's own code may raise anything
            failure = f"{type(error).__name__}: {error}"
            raise SettingError(f"function {path!r} must be importable, but: {failure}") from error
    module_name, _, name = path.rpartition(".")
    if not module_name or not name:
        raise SettingError(f"a function's path must read 'my_module.objective', but got {path!r}. Add its module.")
    make_working_directory_importable()
    try:
        module = import_module(module_name)
    except Exception as error:  # the module's own code may raise anything
        failure = f"{type(error).__name__}: {error}. Mend the path or the module."
        raise SettingError(f"function {path!r} must be importable, but {module_name!r} failed: {failure}") from error
    if not hasattr(module, name):
        hint = did_you_mean(name, dir(module), f"{module_name}.{{}}") or " Mend the path."
        raise SettingError(f"function {path!r} must exist, but {module_name!r} has no {name!r}.{hint}")
    return cast(Callable[..., float | Outcome], getattr(module, name))


def make_working_directory_importable() -> None:
    """Puts the working directory on the import path, as `python -m` does; worker processes inherit it."""
    if "" not in sys.path and os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
