"""What the events of a journal say, for all who read one. Light to import: looking at a run needs no torch."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from deepbore.data.budget import Budget
from deepbore.data.lines import Event
from deepbore.data.outcomes import Outcome, Status
from deepbore.errors import JournalError


def header_of(created: Event) -> dict[str, Any]:
    """What the first line says of the run; in version 0.1 it named one "direction".

    Raises:
        LookupError, TypeError: for what declares no run.
    """
    header = {name: each for name, each in created.items() if name != "event"}
    header["directions"] = header["directions"] if "directions" in header else [header["direction"]]
    if not isinstance(header["seed"], int):
        raise TypeError(f"the seed must be a whole number, but got {header['seed']!r}.")
    return header


def budget_of(header: Mapping[str, Any]) -> Budget | None:
    """The budget that a header declares; None where there is none."""
    return Budget(**header["budget"]) if "budget" in header else None


def outcome_of(event: Event) -> Outcome:
    """The outcome that a line "told" or "failed" gives a trial.

    Raises:
        ValueError: for a told value that is not finite.
    """
    status = Status.COMPLETE if event["event"] == "told" else Status.FAILED
    values = event["values"] if "values" in event else event.get("value", ())
    parts = {name: event[name] for name in ("constraints", "budget", "noise", "reason", "attributes") if name in event}
    outcome = Outcome(values, status=status, **parts)
    if outcome.status != status:
        raise ValueError(f"what is told must be a finite number, but got {values}.")
    return outcome


@contextmanager
def declaring(path: Path) -> Iterator[None]:
    """Turns whatever a damaged first line leads to into a JournalError."""
    try:
        yield
    except Exception as error:
        raise JournalError(f"line 1 of {path} declares no run: {type(error).__name__}: {error}") from error


@contextmanager
def playing(path: Path, line: int) -> Iterator[None]:
    """Turns whatever an event out of place leads to into a JournalError."""
    try:
        yield
    except Exception as error:
        raise JournalError(
            f"an event does not fit, at line {line} of {path}: {type(error).__name__}: {error}"
        ) from error
