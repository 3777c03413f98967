"""The format of a journal: events to lines of text and back, without torch.

A line is strict JSON and ends in a checksum that chains it to the line before:

    {"event": "told", "trial": 3, "value": 0.25, "crc": "5d0c2a1f"}

The checksum is the CRC-32 of the line without it, continued from that of the line before (0 for the first). So no line
can be changed, lost, doubled or moved unnoticed; only whole lines at the end can be missing. Journals of version 0.1
(format 1) have no checksums.
"""

import json
import math
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from deepbore.data.outcome import Outcome, as_reports
from deepbore.data.trial import Budget, Status
from deepbore.errors import JournalError

VERSION = 2
JOURNAL = "journal.jsonl"  # in the directory of a run
Event = dict[str, Any]
Pair = tuple[int, int]  # rows of the preferred trial and of the other one
_SEAL = ', "crc": "%08x"}'
_SEAL_SIZE = len(_SEAL % 0)
_LEFT = re.compile(rb'\{"event": "added", "left": (\d+)')


# --- lines -----------------------------------------------------------------------------------------------------------


def written(event: Event, version: int, crc: int) -> tuple[bytes, int]:
    """An event as a line, and the checksum that the next line continues.

    Raises:
        ValueError, TypeError: for what strict JSON can't carry.
    """
    body = json.dumps(event, allow_nan=False)
    if version == 1:
        return f"{body}\n".encode(), crc
    crc = zlib.crc32(body.encode(), crc)
    return f"{body[:-1]}{_SEAL % crc}\n".encode(), crc


def checksum(line: bytes, crc: int) -> int | None:
    """The checksum of a line without its end of line, continued from the one before; None if the line has another."""
    body = line[:-_SEAL_SIZE] + b"}"
    crc = zlib.crc32(body, crc)
    return crc if line.endswith((_SEAL % crc).encode()) else None


def parsed(line: bytes) -> Event | None:
    """The event in a line, without its checksum; None if it is no JSON object with an event."""
    try:
        event = json.loads(line.decode(), parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None
    if not isinstance(event, dict) or not isinstance(event.get("event"), str):
        return None
    event.pop("crc", None)
    return event


def left(line: bytes) -> int:
    """The number of rows that following lines add to those of this line, all imported at once."""
    found = _LEFT.match(line)
    return int(found[1]) if found else 0


def _refuse(constant: str) -> None:
    """NaN and the infinities are no JSON."""
    raise ValueError(constant)


# --- events that are read --------------------------------------------------------------------------------------------


def header_of(created: Event) -> dict[str, Any]:
    """The header of a run, from its first event; version 0.1 named one "direction".

    Raises:
        LookupError, TypeError: for an event that declares no run.
    """
    header = {name: each for name, each in created.items() if name != "event"}
    header["directions"] = header["directions"] if "directions" in header else [header["direction"]]
    for name, kept in {"space": header["space"], "recipe": header.get("recipe", {})}.items():
        if not isinstance(kept, dict):
            raise TypeError(f"the {name} must be a mapping, but got {kept!r:.100}.")
    if not isinstance(header["seed"], int):
        raise TypeError(f"the seed must be a whole number, but got {header['seed']!r}.")
    return header


def budget_of(header: Mapping[str, Any]) -> Budget | None:
    """The budget that a header declares; None where there is none."""
    return Budget(**header["budget"]) if "budget" in header else None


def outcome_of(event: Event) -> Outcome:
    """The outcome in an event "told", "failed", "pruned" or "corrected".

    Raises:
        ValueError: for a told value that is not finite.
    """
    has_failed = event["event"] == "failed" or event.get("failed") is True
    status = Status.FAILED if has_failed else Status.PRUNED if _is_pruned(event) else Status.COMPLETE
    values = event["values"] if "values" in event else event.get("value", ())
    parts: dict[str, Any] = {
        name: event[name] for name in ("constraints", "budget", "noise", "reason", "attributes") if name in event
    }
    if "reports" in event:
        parts["reports"] = reports_of(event["reports"])
    outcome = Outcome(values, status=status, **parts)
    if outcome.status != status:
        raise ValueError(f"what is told must be a finite number, but got {values}.")
    return outcome


def _is_pruned(event: Event) -> bool:
    return event["event"] == "pruned" or event.get("pruned") is True


def reports_of(columns: Mapping[str, Any]) -> dict[float, float]:
    """Reported values by step, from two columns; null stands for what is not finite.

    Raises:
        LookupError, TypeError, ValueError: for anything else.
    """
    values = [math.nan if value is None else value for value in columns["values"]]
    reports = as_reports(dict(zip(columns["steps"], values, strict=True)))
    if list(reports) != columns["steps"]:
        raise ValueError(f"steps must ascend, but are {columns['steps']!r:.100}.")
    return reports


def imported_by(event: Event, names: Sequence[str]) -> dict[str, Any]:
    """Columns, values and more of an event "added"; in version 0.1 it was one row, with "params" and "value".

    Args:
        event: of imported rows.
        names: of the parameters.
    """
    if "params" in event:
        params = {name: event["params"].get(name) for name in [*names, *event["params"]]}
        return {"columns": {name: [each] for name, each in params.items()}, "values": [event["value"]]}
    optional = ("constraints", "budgets", "task", "noise")
    about = {name: event[name] for name in optional if event.get(name) is not None}
    if not isinstance(about.get("task", ""), str):
        raise TypeError(f"a task must be a text, but got {about['task']!r:.100}.")
    return {"columns": event["columns"], "values": event["values"], **about}


@contextmanager
def declaring(path: Path) -> Iterator[None]:
    """Raises a JournalError for any error that a damaged first line leads to."""
    try:
        yield
    except Exception as error:
        raise JournalError(f"line 1 of {path} declares no run: {type(error).__name__}: {error}") from error


@contextmanager
def replaying(path: Path, line: int) -> Iterator[None]:
    """Raises a JournalError that names the line for any error that its event leads to."""
    try:
        yield
    except Exception as error:
        raise JournalError(
            f"an event does not fit, at line {line} of {path}: {type(error).__name__}: {error}"
        ) from error


# --- events that are written -----------------------------------------------------------------------------------------


def asked(row: int, params: Mapping[str, Any], budget: float | None, resume_from: int | None) -> Event:
    """The event of a new pending trial."""
    spends = {"budget": budget, "resume_from": resume_from}
    return {"event": "asked", "trial": row, "params": dict(params)} | {
        name: each for name, each in spends.items() if each is not None
    }


def told(row: int, outcome: Outcome) -> Event:
    """The event of an outcome; empty parts are left out."""
    if outcome.has_failed:
        event: Event = {"event": "failed", "trial": row}
    elif outcome.status is Status.PRUNED:
        event = {"event": "pruned", "trial": row}
    elif len(outcome.values) == 1:
        event = {"event": "told", "trial": row, "value": outcome.values[0]}
    else:
        event = {"event": "told", "trial": row, "values": list(outcome.values)}
    if all(map(math.isfinite, outcome.constraints)):
        event["constraints"] = list(outcome.constraints)
    rest = {
        "budget": outcome.budget,
        "noise": outcome.noise,
        "reason": outcome.reason,
        "attributes": outcome.attributes,
        "reports": report_columns(outcome.reports) if outcome.reports else None,
    }
    return {name: each for name, each in {**event, **rest}.items() if each not in (None, "", [], {})}


def report_columns(reports: Mapping[float, float]) -> dict[str, list[Any]]:
    """Reported values as two columns; null stands for what is not finite."""
    values = [value if math.isfinite(value) else None for value in reports.values()]
    return {"steps": list(reports), "values": values}


def reported(row: int, reports: Mapping[float, float]) -> Event:
    """The event of values that a running trial has reported."""
    return {"event": "reported", "trial": row, **report_columns(reports)}


def corrected(row: int, outcome: Outcome) -> Event:
    """The event of an outcome in place of the one that was told."""
    flag = {Status.FAILED: {"failed": True}, Status.PRUNED: {"pruned": True}}.get(outcome.status, {})
    return {**told(row, outcome), "event": "corrected", **flag}


def withdrawn(rows: Sequence[int], reason: str | None) -> Event:
    """The event of trials that no longer count: one line, so that all of them are withdrawn or none."""
    return {"event": "withdrawn", "trials": list(rows), **({"reason": reason} if reason else {})}


def preferred(pair: Pair) -> Event:
    """The event of a comparison."""
    return {"event": "preferred", "better": pair[0], "worse": pair[1]}


def enqueued(params: Mapping[str, Any]) -> Event:
    """The event of a configuration that is queued for the next ask."""
    return {"event": "enqueued", "params": dict(params)}


def fixed(params: Mapping[str, Any]) -> Event:
    """The event of parameters that are fixed in later proposals."""
    return {"event": "fixed", "params": dict(params)}


def annotated(row: int, attributes: Mapping[str, Any]) -> Event:
    """The event of attributes that are added to a trial."""
    return {"event": "annotated", "trial": row, "attributes": dict(attributes)}
