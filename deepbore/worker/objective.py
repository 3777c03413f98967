"""One call of the objective, wherever it happens. Light to import: worker processes load only what they need."""

import inspect
import traceback
from collections.abc import Callable
from dataclasses import replace
from reprlib import Repr
from typing import Any

from deepbore.data.outcome import Outcome, WrongReturn, as_outcome
from deepbore.data.trial import Trial
from deepbore.errors import NeverLogged, ValueTypeError

Objective = Callable[..., Any]  # configuration, and perhaps the trial -> a number, several, or an Outcome

LONGEST_TRACEBACK = 4000
LONGEST_ENTRY = 500  # of a traceback: a message of 50 MB is one entry
SHORT = Repr()
SHORT.maxstring = SHORT.maxother = 100


def evaluate(objective: Any, trial: Trial, ticket: str = "") -> Outcome:  # noqa: ARG001  # for the engine
    """What the objective gives: an exception becomes words, which any engine can carry home.

    The objective gets a copy of the configuration: if it changes it, a retry begins with the original all the same.

    Args:
        objective: configuration -> value or outcome. One with a second argument named `trial` is given the trial; one
            that says that it is `numbered`, its id.
        trial: what is to be evaluated.
        ticket: tells two equal calls apart where an engine keeps results by their arguments, as dask does.

    Returns:
        The outcome: a failure, with a reason of at most 2000 characters, if the objective raised or returned anything
        but numbers. Of an exception `attributes["traceback"]` keeps the last 4000 characters of the traceback.
    """
    try:
        return read("the objective", objective(dict(trial.params), **beside_params(objective, trial)))
    except (NeverLogged, ValueTypeError) as error:  # no failure of this configuration: there are no values at all
        return WrongReturn.failure(str(error))
    except BaseException as error:  # whatever the user's code raises is a failed trial, but for what ends programs
        if not isinstance(error, (Exception, SystemExit)) and type(error).__name__ != "CancelledError":  # asyncio's
            raise
        return replace(Outcome.failure(in_words(error)), attributes={"traceback": _last_lines(error)})


def beside_params(objective: Any, trial: Trial) -> dict[str, Any]:
    """What an objective is given beside the configuration: nothing, the trial's id, or the trial, as `trial`."""
    if getattr(objective, "numbered", False):
        return {"trial": trial.id}
    return {"trial": trial} if wants_trial(objective) else {}


def wants_trial(objective: Any) -> bool:
    """Whether a function has, after its first argument, one that is named `trial`."""
    try:
        return "trial" in list(inspect.signature(objective).parameters)[1:]
    except (TypeError, ValueError):  # such as of what is built in
        return False


def takes_trial(objective: Any) -> bool:
    """Whether it is given the trial, or its id, beside the configuration."""
    return bool(getattr(objective, "numbered", False) or wants_trial(getattr(objective, "function", objective)))


def in_words(error: BaseException) -> str:
    """Its name, and what it says if it says something (and can: its `__str__` may raise, too)."""
    name = type(error).__name__
    try:
        said = str(error)
    except Exception:
        said = "it can't be shown, because its __str__ raises"
    return f"{name}: {said}" if said else name


def read(who: str, returned: Any) -> Outcome:
    """What somebody has returned, as an outcome: a failure where it is none."""
    try:
        return as_outcome(returned)
    except ValueTypeError:
        rule = f"{who} must return a number, several, or an Outcome"
        return WrongReturn.failure(f"{rule}, but returned {SHORT.repr(returned)}")


def _last_lines(error: BaseException) -> str:
    """The end of the traceback, where the fault is; within it each entry is cut, a huge message included."""
    inner = error.__traceback__.tb_next if error.__traceback__ else None  # without this file
    entries = [entry[:LONGEST_ENTRY] for entry in traceback.format_exception(type(error), error, inner)]
    return "".join(entries)[-LONGEST_TRACEBACK:]
