"""Your own function as a problem, also from a configuration file."""

import math
import os
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any, cast

from deepbore.data.observations import Direction
from deepbore.data.outcome import Outcome
from deepbore.data.trial import Trial
from deepbore.errors import SettingError
from deepbore.problems.base import Problem, as_direction
from deepbore.space import Params, SearchSpace
from deepbore.worker.objective import wants_trial


class FunctionProblem(Problem):
    """A function of a configuration, over a space.

    In a configuration file:

        class_path: deepbore.problems.FunctionProblem
        init_args:
          function: my_module.objective
          space:
            lr: {type: real, low: 1.0e-5, high: 0.1, log: true}

    Args:
        function: takes a configuration (dict) and returns its value, or an `Outcome`; a second argument named `trial`
            is given the trial, with its budget. Or where to import it from, as "my_module.objective". Modules in the
            current working directory are found first, as by `python -m`.
        space: the space, or its declaration as `SearchSpace.from_dict` takes it.
        direction: "minimize" or "maximize".
        optimum: best possible value, finite; None if unknown.

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
    ):
        if optimum is not None and not math.isfinite(optimum):
            raise SettingError(f"optimum must be finite, but got {optimum}. Use None where it is unknown.")
        self.function = imported(function) if isinstance(function, str) else function
        if not callable(self.function):
            raise SettingError(f"function must be callable, but got {function!r}. Give a function of a configuration.")
        self.space = space if isinstance(space, SearchSpace) else SearchSpace.from_dict(space)
        self.directions = (as_direction(direction),)
        self.optimum = optimum

    def __call__(self, params: Params, trial: Trial | None = None) -> float | Outcome:
        """What the function gives for a configuration, as it is."""
        return self.function(params, trial=trial) if wants_trial(self.function) else self.function(params)


def imported(path: str) -> Callable[..., float | Outcome]:
    """The function at an import path such as "my_module.objective".

    Raises:
        SettingError: if the path names no module and function, or the module cannot be imported.
    """
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
        raise SettingError(f"function {path!r} must exist, but {module_name!r} has no {name!r}. Mend the path.")
    return cast(Callable[..., float | Outcome], getattr(module, name))


def make_working_directory_importable() -> None:
    """A console script, unlike `python -m`, starts without it; worker processes inherit the entry."""
    if "" not in sys.path and os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
