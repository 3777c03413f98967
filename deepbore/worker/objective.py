"""One call of the objective, wherever it happens. Light to import: worker processes load only what they need."""

import inspect
import re
import traceback
from collections.abc import Callable
from dataclasses import replace
from reprlib import Repr
from typing import Any

from deepbore.data.outcome import Mistake, Outcome, WrongReturn, as_outcome
from deepbore.data.trial import Trial
from deepbore.errors import NeverLogged, StudyRunning, ValueTypeError
from deepbore.worker.reporting import Reporting

Objective = Callable[..., Any]  # of a configuration, and perhaps the trial -> a number, several, or an Outcome

LONGEST_TRACEBACK = 4000
LONGEST_ENTRY = 500  # of a traceback: a message of 50 MB is one entry
QUOTED = re.compile(r"'(\w+)'")
SHORT = Repr()
SHORT.maxstring = SHORT.maxother = 100


def evaluate(objective: Any, trial: Trial, ticket: str = "") -> Outcome:  # noqa: ARG001  # for the engine
    """The outcome of one call of the objective: an exception becomes text, which any engine can send back.

    The objective gets a copy of the configuration: if it changes it, a retry begins with the original all the same.
    What it reports by `trial.report` comes with the outcome.

    Args:
        objective: configuration -> value or outcome. One with a second argument named `trial` is given the trial; one
            with a true attribute `numbered`, its id.
        trial: what is to be evaluated.
        ticket: distinguishes two equal calls where an engine caches results by their arguments, as dask does.

    Returns:
        The outcome: a failure, with a reason of at most 2000 characters, if the objective raised or returned anything
        but numbers. Of an exception `attributes["traceback"]` keeps the last 4000 characters of the traceback.
        A pruned trial if it raised `TrialPruned`, that of Optuna included.
    """
    given = Reporting.of(trial) or Reporting()
    reporting = Reporting(given.judge, given.send)  # of this attempt alone
    outcome = _evaluated(objective, replace(trial, reporter=reporting))
    return replace(outcome, reports=reporting.reports) if reporting.reports and not outcome.reports else outcome


def _evaluated(objective: Any, trial: Trial) -> Outcome:
    params = dict(trial.params)
    try:
        return read("the objective", objective(params, **beside_params(objective, trial)))
    except (NeverLogged, ValueTypeError) as error:  # no failure of this configuration: there are no values at all
        return WrongReturn.failure(str(error))
    except BaseException as error:  # every exception is a failed trial, unless it ends programs
        if not isinstance(error, (Exception, SystemExit)) and type(error).__name__ != "CancelledError":  # asyncio's
            raise
        if any(each.__name__ == "TrialPruned" for each in type(error).__mro__):
            return Outcome.pruned(str(error) or None)
        failure = Outcome.failure(in_words(error))
        if (missing := missing_if_mistake(error, params)) is not None:
            failure = Mistake(status=failure.status, reason=failure.reason, missing=missing)
        return replace(failure, attributes={"traceback": _last_lines(error)})


def missing_if_mistake(error: BaseException, params: dict[str, Any]) -> tuple[str, ...] | None:
    """The names that a program has looked for in vain, if its error is likely a mistake in it; None for other errors.

    Without names it is a mistake whatever else the configuration has: a name that is not defined, a module that is
    missing, a call that the running study refuses, an attribute of the configuration, a call with other arguments than
    a function takes.
    """
    names: tuple[str, ...] | None = None
    if isinstance(error, (NameError, ImportError, StudyRunning)):
        names = ()
    elif isinstance(error, KeyError):
        names = tuple(key for key in error.args[:1] if isinstance(key, str)) or None
    elif isinstance(error, AttributeError):
        names = () if error.obj is params else (error.name,) if error.name else None
    elif isinstance(error, TypeError):
        named = tuple(QUOTED.findall(str(error)))  # as of train(**params)
        is_surplus = "unexpected keyword argument" in str(error) and named[-1:] and named[-1] in params
        is_call = error.__traceback__ is None or error.__traceback__.tb_next is None  # of the objective itself
        names = () if is_surplus or is_call else named or None if "required" in str(error) else None
    return names


def beside_params(objective: Any, trial: Trial) -> dict[str, Any]:
    """The arguments of an objective beside the configuration: none, the trial's id, or the trial, as `trial`."""
    if getattr(objective, "numbered", False):
        return {"trial": trial.id}
    return {"trial": trial} if wants_trial(objective) else {}


def wants_trial(objective: Any) -> bool:
    """Whether a function has, after its first argument, one that is named `trial`."""
    try:
        return "trial" in list(inspect.signature(objective).parameters)[1:]
    except (TypeError, ValueError):  # such as for built-in functions
        return False


def takes_trial(objective: Any) -> bool:
    """Whether it is given the trial, or its id, beside the configuration."""
    return bool(getattr(objective, "numbered", False) or wants_trial(getattr(objective, "function", objective)))


def in_words(error: BaseException) -> str:
    """The name of an error, and its message, if it has one (its `__str__` may raise, too)."""
    name = type(error).__name__
    try:
        said = str(error)
    except Exception:
        said = "it can't be shown, because its __str__ raises"
    return f"{name}: {said}" if said else name


def read(who: str, returned: Any) -> Outcome:
    """A returned value as an outcome: a failure if it is none."""
    try:
        return as_outcome(returned)
    except ValueTypeError:
        rule = f"{who} must return a number, several, or an Outcome"
        return WrongReturn.failure(f"{rule}, but returned {SHORT.repr(returned)}")


def _last_lines(error: BaseException) -> str:
    """The end of the traceback, with each entry shortened, a huge message included."""
    inner = error.__traceback__.tb_next if error.__traceback__ else None  # without this file
    entries = [entry[:LONGEST_ENTRY] for entry in traceback.format_exception(type(error), error, inner)]
    return "".join(entries)[-LONGEST_TRACEBACK:]
