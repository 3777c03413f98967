"""`GroundTask`: what is tuned, and what makes the function of a configuration."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from deepbore.problems.base import benchmark_package
from deepbore.space import Categorical, Condition, Integer, Ordinal, Params, Real

Tunable = Real | Integer | Ordinal | Categorical
Function = Callable[[Params], float]


@dataclass(frozen=True)
class GroundTask:
    """A space, and what makes its function.

    Attributes:
        space: the parameters by name.
        make: loads the data and returns the function of a configuration, to minimise. It may raise, or give NaN: a
            failed trial.
    """

    space: Mapping[str, Tunable]
    make: Callable[[], Function]


def within(parent: str, value: Any, parameters: Mapping[str, Tunable]) -> dict[str, Tunable]:
    """Parameters that are active only where a choice has a value (or one of a list of values)."""
    return {name: replace(each, when=Condition(parent, value)) for name, each in parameters.items()}


def sklearn(path: str, **arguments: Any) -> Any:
    """A class or function of scikit-learn, called with some arguments, as "svm.SVC"."""
    module, name = path.rsplit(".", 1)
    return getattr(benchmark_package(f"sklearn.{module}", "scikit-learn"), name)(**arguments)
