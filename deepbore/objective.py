"""One call of the objective, wherever it happens. Light to import: worker processes load only what they need."""

import math
from collections.abc import Callable
from typing import Any, SupportsFloat

from deepbore.errors import ValueTypeError

Objective = Callable[[dict[str, Any]], SupportsFloat]
Returned = tuple[float, str | None]  # a value and None, or NaN and the reason


def evaluate(objective: Any, params: dict[str, Any], trial: int, ticket: str = "") -> Returned:  # noqa: ARG001
    """The objective's value, or why there is none: an exception becomes words, which any engine can carry home.

    Args:
        objective: configuration -> value; one that says that it is `numbered` takes the trial's id, too.
        params: the configuration.
        trial: its id.
        ticket: tells two equal calls apart where an engine keeps results by their arguments, as dask does.
    """
    numbered = {"trial": trial} if getattr(objective, "numbered", False) else {}
    try:
        return as_number(objective(params, **numbered)), None
    except ValueTypeError as error:
        return math.nan, str(error)
    except (Exception, SystemExit) as error:  # whatever the user's code raises is a failed trial
        return math.nan, in_words(error)


def in_words(error: BaseException) -> str:
    """Its name, and what it says if it says something."""
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def as_number(value: Any) -> float:
    """An objective value as a float.

    Raises:
        ValueTypeError: for anything but a real number.
    """
    if isinstance(value, (str, bytes, bool, type(None))):
        raise ValueTypeError(
            f"an objective value must be a number, but got {value!r}. Tell failed=True if there is none."
        )
    try:
        return float(value)
    except (TypeError, ValueError):
        raise ValueTypeError(f"an objective value must be one number, but got {value!r}.") from None
