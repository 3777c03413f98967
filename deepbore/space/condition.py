"""`Condition`: when a parameter is active."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from deepbore.errors import SpaceError


@dataclass(frozen=True)
class Condition:
    """The parameter that carries this condition is active only where `parent` has one of `values`.

    Args:
        parent: name of a parameter with levels (integer, ordinal or categorical).
        values: one value of the parent, or a list of them.

    Raises:
        SpaceError: if the parent is no name, or no value is given.

    Example:
        >>> Condition("optimizer", "sgd").values
        ('sgd',)
    """

    parent: str
    values: Any

    def __post_init__(self) -> None:
        if not isinstance(self.parent, str):
            raise SpaceError(f'a condition names its parent first, as in Condition("optimizer", "sgd"), not {self}.')
        object.__setattr__(self, "values", _listed(self.values))
        if not self.values:
            raise SpaceError(f"a condition needs a value of its parent, but {self.parent!r} got none.")


def _listed(values: Any) -> tuple[Any, ...]:
    """One value or several as a tuple of Python's own; sets in an order that is the same in every process."""
    if isinstance(values, (set, frozenset)):
        values = sorted(values, key=lambda value: (type(value).__name__, repr(value)))
    if isinstance(values, np.ndarray):
        values = np.atleast_1d(values).tolist()
    several = values if isinstance(values, (list, tuple, range)) else [values]
    return tuple(value.item() if isinstance(value, np.generic) else value for value in several)
