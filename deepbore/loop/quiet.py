"""`quiet`: Lightning without its tips; `in_caller_state`: objectives and callbacks, within a run, as outside of it."""

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from deepbore.compute.torch_state import caller_torch_state

LAUNCHER = "lightning.fabric.strategies.launchers.subprocess_script"
LOGGERS = ("lightning.pytorch", "lightning.fabric", LAUNCHER)


class QuietScope(NamedTuple):
    """The changes made by one `quiet` context.

    Attributes:
        levels: the levels of the loggers before the first context.
        filter: the warning filter that it has added. It is inserted and removed individually: runs may overlap in
            several threads, and `warnings.catch_warnings` would make Python repeat warnings that are shown once.
    """

    levels: list[int]
    filter: Any


QUIET_SCOPES: list[QuietScope] = []  # active contexts, the oldest first
with warnings.catch_warnings():
    warnings.filterwarnings("ignore", module="lightning")
    IGNORED: Any = warnings.filters[0]


@contextmanager
def quiet() -> Iterator[None]:
    """A context without the tips of Lightning, which are for other kinds of training, but with errors of ranks."""
    own = QuietScope(QUIET_SCOPES[0].levels if QUIET_SCOPES else _levels(), (*IGNORED,))
    QUIET_SCOPES.append(own)
    _filters().insert(0, own.filter)
    _set_levels([logging.ERROR, logging.ERROR, logging.INFO])
    try:
        yield
    finally:
        QUIET_SCOPES[:] = [each for each in QUIET_SCOPES if each is not own]
        _remove_filters([own])
        if not QUIET_SCOPES:
            _set_levels(own.levels)


@contextmanager
def in_caller_state() -> Iterator[None]:
    """A context, within a run, with the global state of the caller: for objectives, which may train, and callbacks."""
    with caller_torch_state():
        if not QUIET_SCOPES:
            yield
            return
        levels = _levels()
        _set_levels(QUIET_SCOPES[0].levels)
        _remove_filters(QUIET_SCOPES)
        try:
            yield
        finally:
            _remove_filters(QUIET_SCOPES)  # another thread may have inserted them again
            _filters()[:0] = [each.filter for each in QUIET_SCOPES]
            _set_levels(levels)


def _filters() -> list[Any]:
    return warnings.filters  # type: ignore[return-value]  # typed as a sequence, but a list


def _remove_filters(hushed: list[QuietScope]) -> None:
    """Removes filters of warnings."""
    _filters()[:] = [each for each in _filters() if not any(each is other.filter for other in hushed)]


def _levels() -> list[int]:
    return [logging.getLogger(name).level for name in LOGGERS]


def _set_levels(levels: list[int]) -> None:
    for name, level in zip(LOGGERS, levels, strict=True):
        logging.getLogger(name).setLevel(level)
