"""One call of the objective, wherever it happens. Light to import: worker processes load only what they need."""

import ast
import inspect
import linecache
import re
import signal
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from reprlib import Repr
from typing import TYPE_CHECKING, Any, Protocol, SupportsFloat

from deepbore.data.outcome import Mistake, Outcome, Status, WrongReturn, as_outcome
from deepbore.data.trial import Trial
from deepbore.errors import NeverLogged, StudyRunning, ValueTypeError
from deepbore.worker.reporting import Reporting

Value = SupportsFloat | Sequence[SupportsFloat] | Mapping[str, SupportsFloat] | Outcome  # what an objective returns


if TYPE_CHECKING:

    class Objective(Protocol):
        """What is optimised: a function of a configuration, or what can be called like one, in one of three forms.

            def train(params): ...  # a dict: name -> native value
            def train(params, trial): ...  # and the `deepbore.Trial`, to report to; its name counts
            def train(lr, units): ...  # the parameters by their names

        It returns a number, one for each objective, a dict of them by their names, or an `Outcome`. A number is what
        has `__float__`: numbers of NumPy and tensors of one element, too. Type checkers see what is returned; that
        the arguments fit the space is checked before the first trial.
        """

        def __call__(self, *args: Any, **kwargs: Any) -> Value:
            """The value of a configuration."""

else:  # what a configuration names: jsonargparse wants the signature of a protocol's __call__ to the letter
    Objective = Callable[..., Any]

VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
LONGEST_TRACEBACK = 4000
LONGEST_ENTRY = 500  # of a traceback: a message of 50 MB is one entry
QUOTED = re.compile(r"'(\w+)'")
SHORT = Repr()
SHORT.maxstring = SHORT.maxother = 100


class UnknownName(Mistake):
    """A mistake in the program, which has read a name from the configuration that it has not."""


class NoValue(Mistake):
    """A mistake in the program, which has returned what is no value."""


def evaluate(objective: Any, trial: Trial, ticket: str = "") -> Outcome:  # noqa: ARG001  # for the engine
    """The outcome of one call of the objective: an exception becomes text, which any engine can send back.

    The objective gets a copy of the configuration: if it changes it, a retry begins with the original all the same.
    What it reports by `trial.report`, and logs by `trial.log`, comes with the outcome.

    Args:
        objective: configuration -> value or outcome. One with a second argument named `trial` is given the trial; one
            with a true attribute `numbered`, its id. One that takes several other arguments, as train(lr, units), is
            given the parameters by their names.
        trial: what is to be evaluated.
        ticket: distinguishes two equal calls where an engine caches results by their arguments, as dask does.

    Returns:
        The outcome: a failure, with a reason of at most 2000 characters, if the objective raised or returned anything
        but numbers. Of an exception `attributes["traceback"]` keeps the last 4000 characters of the traceback.
        A pruned trial if it raised `TrialPruned`, that of Optuna included.
    """
    given = Reporting.of(trial) or Reporting()
    reporting = Reporting(given.judge, given.send, given.artifacts)  # of this attempt alone
    return reporting.completed(_evaluated(objective, replace(trial, reporter=reporting)))


def _evaluated(objective: Any, trial: Trial) -> Outcome:
    params = dict(trial.params)
    try:
        beside = beside_params(objective, trial)
        returned = objective(**params, **beside) if by_keywords(objective) else objective(params, **beside)
        return read("the objective", returned)
    except (NeverLogged, ValueTypeError) as error:  # no failure of this configuration: there are no values at all
        return WrongReturn.failure(str(error))
    except BaseException as error:  # every exception is a failed trial, unless it ends programs
        if not isinstance(error, (Exception, SystemExit)) and type(error).__name__ != "CancelledError":  # asyncio's
            raise
        if isinstance(error, SystemExit) and comes_from_a_signal(error):  # as of Ray, which ends its workers so
            raise
        if any(each.__name__ == "TrialPruned" for each in type(error).__mro__):
            return Outcome.pruned(str(error) or None)
        failure = Outcome.failure(in_words(error))
        if (missing := missing_if_mistake(error, params)) is not None:
            failure = Mistake(status=failure.status, reason=failure.reason, missing=missing)
        if isinstance(error, KeyError) and missing and reads_from(error, params):
            failure = UnknownName(status=failure.status, reason=failure.reason, missing=missing)
        return replace(failure, attributes={"traceback": _last_lines(error)})


def comes_from_a_signal(error: SystemExit) -> bool:
    """Whether a handler of a signal has ended the program, and not the objective that ran at that moment."""
    handlers = [signal.getsignal(each) for each in signal.valid_signals()]
    codes = [getattr(getattr(each, "__func__", each), "__code__", None) for each in handlers]
    return any(frame.f_code in codes for frame, _ in traceback.walk_tb(error.__traceback__))


def reads_from(error: KeyError, params: dict[str, Any]) -> bool:
    """Whether it was the configuration that had no such key: by the line of the program, where that can be read."""
    innermost = list(traceback.walk_tb(error.__traceback__))[-1][0]
    (entry,) = traceback.extract_tb(error.__traceback__)[-1:]
    if entry.colno is None or entry.end_colno is None or entry.lineno != entry.end_lineno or not entry.line:
        return False
    line = linecache.getline(entry.filename, entry.lineno or 0).encode()[entry.colno : entry.end_colno].decode()
    with suppress(SyntaxError):
        read = ast.parse(line.strip(), mode="eval").body
        if isinstance(read, ast.Subscript) and isinstance(read.value, ast.Name):
            known = innermost.f_globals | innermost.f_locals
            return known.get(read.value.id) is params
    return False


def missing_if_mistake(error: BaseException, params: dict[str, Any]) -> tuple[str, ...] | None:
    """The names that a program has looked for in vain, if its error is likely a mistake in it; None for other errors.

    Without names it is a mistake whatever else the configuration has: a name that is not defined, a module that is
    missing, a call that the running study refuses, an attribute of the configuration, a call with other arguments than
    a function takes, an exit of the whole program.
    """
    names: tuple[str, ...] | None = None
    if isinstance(error, (NameError, ImportError, StudyRunning, SystemExit)):
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


def by_keywords(objective: Any) -> bool:
    """Whether a function takes each parameter by its name, train(lr, units), and not all of them in a dict."""
    parameters = _parameters_of(objective)
    if parameters is None or isinstance(objective, type) or getattr(objective, "numbered", False):
        return False
    needed = [each for each in parameters if each.default is each.empty and each.kind not in VARIADIC]
    if any(each.kind is each.POSITIONAL_ONLY for each in needed):
        return False
    own = [each for each in needed if each.name != "trial"]
    return len(own) > 1 or any(each.kind is each.KEYWORD_ONLY for each in own)


def keywords_of(objective: Any) -> tuple[set[str], set[str] | None]:
    """The names that such a function needs, and those that it may be given; None for any."""
    parameters = [each for each in _parameters_of(objective) or () if each.name != "trial"]
    named = [each for each in parameters if each.kind not in VARIADIC]
    takes_any = any(each.kind is each.VAR_KEYWORD for each in parameters)
    needed = {each.name for each in named if each.default is each.empty}
    return needed, None if takes_any else {each.name for each in named}


def _parameters_of(objective: Any) -> list[inspect.Parameter] | None:
    """The parameters of a function; None where they are unknown, such as for built-in functions."""
    try:
        return list(inspect.signature(objective).parameters.values())
    except (TypeError, ValueError):
        return None


def wants_trial(objective: Any) -> bool:
    """Whether a function has, after its first argument, one that is named `trial`."""
    return any(each.name == "trial" for each in (_parameters_of(objective) or [])[1:])


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
    """A returned value as an outcome; a mistake of the program if it is none."""
    try:
        return as_outcome(returned)
    except ValueTypeError:
        reason = f"{who} must return a number, several, or an Outcome, but returned {SHORT.repr(returned)}"
        return NoValue(status=Status.FAILED, reason=reason)


def _last_lines(error: BaseException) -> str:
    """The end of the traceback, with each entry shortened, a huge message included."""
    inner = error.__traceback__.tb_next if error.__traceback__ else None  # without this file
    entries = [entry[:LONGEST_ENTRY] for entry in traceback.format_exception(type(error), error, inner)]
    return "".join(entries)[-LONGEST_TRACEBACK:]
