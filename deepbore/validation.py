"""Ranges of settings: one rule, one message. None means "not given" and passes."""

import inspect
import math
import numbers
import os
import re
from collections.abc import Callable, Collection
from datetime import timedelta
from pathlib import Path
from typing import Any

from deepbore.errors import DeepBoreError, SettingError

DATABASES = r"sqlite|postgres|mysql|mariadb|oracle|mssql|redis|mongodb|grpc|journal"
ADDRESS = re.compile(rf"([A-Za-z][\w+.-]+)://|((?:{DATABASES}|s3|gs|gcs|abfs|https?|ftp|file)\w*(?:\+\w+)?):/")


def required(**settings: Any) -> None:
    """Raises SettingError for a setting that is None."""
    for name, value in settings.items():
        if value is None:
            raise SettingError(f"{name} must be given, but got {name}=None.")


def at_least(least: float, **settings: Any) -> None:
    """Raises SettingError unless every setting is a number >= least.

    Example:
        >>> at_least(1, trees=0)
        Traceback (most recent call last):
        deepbore.errors.SettingError: trees >= 1 must hold, but got trees=0.
    """
    _check(f"{{name}} >= {least} must hold", lambda value: value >= least, settings)


def above(bound: float, **settings: Any) -> None:
    """Raises SettingError unless every setting is a number > bound."""
    _check(f"{{name}} > {bound} must hold", lambda value: value > bound, settings)


def below(bound: float, **settings: Any) -> None:
    """Raises SettingError unless every setting is a number < bound."""
    _check(f"{{name}} < {bound} must hold", lambda value: value < bound, settings)


def between(low: float, high: float, **settings: Any) -> None:
    """Raises SettingError unless every setting is a number in the open interval (low, high)."""
    _check(f"{low} < {{name}} < {high} must hold", lambda value: low < value < high, settings)


def within(low: float, high: float, **settings: Any) -> None:
    """Raises SettingError unless every setting is a number in the closed interval [low, high]."""
    _check(f"{low} <= {{name}} <= {high} must hold", lambda value: low <= value <= high, settings)


def up_to(low: float, high: float, **settings: Any) -> None:
    """Raises SettingError unless every setting is a number in the half-open interval (low, high]."""
    _check(f"{low} < {{name}} <= {high} must hold", lambda value: low < value <= high, settings)


def whole(least: int, **settings: Any) -> None:
    """Raises SettingError unless every setting is a whole number >= least; bool is none."""
    for name, value in settings.items():
        if value is not None and (isinstance(value, bool) or not isinstance(value, numbers.Integral)):
            raise SettingError(f"{name} must be a whole number >= {least}, but got {name}={value!r}.")
    at_least(least, **settings)


def one_of(choices: Collection[Any], **settings: Any) -> None:
    """Raises SettingError unless every setting is one of the choices."""
    for name, value in settings.items():
        if not any(value == choice and type(value) is type(choice) for choice in choices):
            raise SettingError(f"{name} must be one of {sorted(choices, key=str)}, but got {name}={value!r}.")


def of_kind(kind: type, **settings: Any) -> None:
    """Raises SettingError unless every setting is an instance of this class of deepbore."""
    for name, value in settings.items():
        if value is None or isinstance(value, kind):
            continue
        is_class = isinstance(value, type) and issubclass(value, kind)
        hint = f"{value.__name__}()" if is_class else f"one of deepbore.{kind.__module__.split('.')[1]}"
        article = "an" if kind.__name__[0] in "AEIOU" else "a"
        raise SettingError(f"{name} must be {article} {kind.__name__}, but got {value!r:.100}. Give {hint}.")


def as_path(place: str | os.PathLike[str], what: str, error: type[DeepBoreError] = SettingError) -> Path:
    """The path of a file or a folder, with `~` for the user's home.

    Args:
        place: as it was given.
        what: it is the path of, for the message: "a journal".
        error: of an address.

    Raises:
        DeepBoreError: for an address, such as of a database or a bucket, which would become a folder of that name.

    Example:
        >>> as_path("s3://data/run", "a journal")
        Traceback (most recent call last):
        deepbore.errors.SettingError: a journal is a file on this machine, but got the address 's3://data/run'. Give ...
    """
    text = os.fspath(place)
    if (found := ADDRESS.match(text)) is None:
        return Path(os.path.expanduser(text))  # a user who is unknown stays a name
    scheme = found[1] or found[2]
    way = "Give a path, and copy the file."
    if scheme == "file":
        way = "Give the path alone."
    elif re.match(DATABASES, scheme):
        way = (
            "Give a path; a study in a database is led by `deepbore lead --storage URL --study NAME`, or "
            "deepbore.integrations.shared.Leader(URL, name, study)."
        )
    raise error(f"{what} is a file on this machine, but got the address {text!r:.200}. {way}")


def seconds(time: float | timedelta | None) -> float | None:
    """A `timedelta` as seconds; anything else as it is."""
    return time.total_seconds() if isinstance(time, timedelta) else time


def refusal(function: Callable[..., Any], *args: Any, **named: Any) -> str | None:
    """Why a function can't be called with these arguments; None if it can, or if its signature is unknown."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # as of some built-in functions
        return None
    try:
        signature.bind(*args, **named)
    except TypeError as error:
        return str(error)
    return None


def _check(rule: str, holds: Callable[[Any], bool], settings: dict[str, Any]) -> None:
    for name, value in settings.items():
        if value is not None and not (_is_number(value) and holds(value)):
            what = "" if _is_number(value) else ", which is no number"
            raise SettingError(f"{rule.format(name=name)}, but got {name}={value!r}{what}.")


def _is_number(value: Any) -> bool:
    """Whether it is a real number; bool and NaN are none."""
    is_nan = isinstance(value, float) and math.isnan(value)  # np.float64 is a float, too
    return isinstance(value, numbers.Real) and not isinstance(value, bool) and not is_nan
