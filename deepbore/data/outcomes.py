"""`Outcome`: what an evaluation gave. Light to import: worker processes load it."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, SupportsFloat

from deepbore.errors import ValueTypeError


class Status(IntEnum):
    """What became of a trial."""

    COMPLETE = 0
    FAILED = 1
    PENDING = 2


@dataclass(frozen=True)
class Outcome:
    """What the evaluation of a configuration gave; a plain number is short for `Outcome(number)`.

    Args:
        values: the objective value, or k >= 1 of them, in the user's sign. NaN or an infinite one makes a failure.
        constraints: black-box constraints, feasible where all are <= 0.
        budget: what was spent on it, in the study's unit; None where there are no budgets.
        status: complete, or failed.
        reason: why there is no value; None if there is one.
        attributes: what else is worth keeping, by name: plain JSON data.

    Raises:
        ValueTypeError: for values, constraints or a budget that are no numbers.

    Example:
        >>> Outcome(0.25, constraints=[-1.0, 0.5]).is_feasible
        False
        >>> Outcome([1.0, float("nan")]).reason
        'its value is [1.0, nan]'
    """

    values: Any = ()
    constraints: Any = ()
    budget: float | None = None
    status: Status = Status.COMPLETE
    reason: str | None = None
    attributes: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        values = _numbers(self.values, "an objective value")
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "constraints", _numbers(self.constraints, "a constraint"))
        object.__setattr__(self, "budget", None if self.budget is None else as_number(self.budget, "a budget"))
        if self.status == Status.COMPLETE and not (values and all(map(math.isfinite, values))):
            shown = values[0] if len(values) == 1 else list(values)
            object.__setattr__(self, "status", Status.FAILED)
            object.__setattr__(self, "reason", self.reason or f"its value is {shown}")

    @classmethod
    def failure(cls, reason: str | None = None) -> "Outcome":
        """An evaluation without a value."""
        return cls(status=Status.FAILED, reason=reason)

    @property
    def has_failed(self) -> bool:
        """Whether there is no value."""
        return self.status == Status.FAILED

    @property
    def is_feasible(self) -> bool:
        """Whether there is a value and no constraint is violated."""
        return not self.has_failed and all(constraint <= 0 for constraint in self.constraints)


def as_outcome(returned: Any) -> Outcome:
    """What an objective has returned, as an outcome.

    Raises:
        ValueTypeError: for anything but an outcome, a number, or a sequence of numbers.
    """
    return returned if isinstance(returned, Outcome) else Outcome(returned)


def as_number(value: Any, what: str = "an objective value") -> float:
    """A number as a float.

    Raises:
        ValueTypeError: for anything but a real number that a float can hold.
    """
    if isinstance(value, (str, bytes, bool, type(None))):
        raise ValueTypeError(f"{what} must be a number, but got {value!r}. Tell failed=True if there is none.")
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise ValueTypeError(f"{what} must be one number, but got {value!r:.100}.") from None


def _numbers(values: SupportsFloat | Sequence[SupportsFloat], what: str) -> tuple[float, ...]:
    if isinstance(values, (list, tuple)) or getattr(values, "ndim", 0) == 1:
        return tuple(as_number(value, what) for value in values)  # type: ignore[union-attr]  # it is a sequence
    return (as_number(values, what),)
