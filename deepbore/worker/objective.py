"""One call of the objective, wherever it happens. Light to import: worker processes load only what they need."""

from collections.abc import Callable
from typing import Any

from deepbore.data.outcomes import Outcome, as_outcome
from deepbore.errors import ValueTypeError

Objective = Callable[[dict[str, Any]], Any]  # configuration -> a number, several, or an Outcome


def evaluate(objective: Any, params: dict[str, Any], trial: int, ticket: str = "") -> Outcome:  # noqa: ARG001
    """What the objective gives: an exception becomes words, which any engine can carry home.

    Args:
        objective: configuration -> value or outcome; one that says that it is `numbered` takes the trial's id, too.
        params: the configuration.
        trial: its id.
        ticket: tells two equal calls apart where an engine keeps results by their arguments, as dask does.
    """
    numbered = {"trial": trial} if getattr(objective, "numbered", False) else {}
    try:
        return as_outcome(objective(params, **numbered))
    except ValueTypeError as error:
        return Outcome.failure(str(error))
    except (Exception, SystemExit) as error:  # whatever the user's code raises is a failed trial
        return Outcome.failure(in_words(error))


def in_words(error: BaseException) -> str:
    """Its name, and what it says if it says something."""
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
