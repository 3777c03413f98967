"""When trials began and ended: a file beside the journal, which has no times, so that equal runs have equal journals.

    {"trial": 3, "began": 1763786712.25, "ended": 1763786719.5}
    {"finished": 20}

Times are in seconds since 1970. The last kind of line is written where a run has done what it was to do, with the
number of trials that were done by then. The file is optional: nothing depends on it. Light to import.
"""

import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from deepbore.data.journal import content_of
from deepbore.errors import JournalError

LONGEST = 2**26  # bytes
LATEST = 1e11  # seconds since 1970, in the year 5138: the clock of a computer says less
Span = tuple[float, float]


def times_path(journal: Path) -> Path:
    """The file of a journal: run.jsonl -> run.jsonl.times."""
    return journal.with_name(f"{journal.name}.times")


def times_of(path: Path) -> dict[int, Span]:
    """When each trial began and ended; empty where that was not kept. Lines that say nothing are passed over."""
    found = {}
    for said in lines_of(path):
        try:
            row, span = int(said["trial"]), (float(said["began"]), float(said["ended"]))
        except (ValueError, LookupError, TypeError, OverflowError):
            continue
        if all(0 <= moment < LATEST for moment in span):
            found[row] = span
    return found


def finished_with(path: Path) -> int | None:
    """How many trials were done when the latest run had done what it was to do; None where that was not kept."""
    said = [each["finished"] for each in lines_of(path) if isinstance(each.get("finished"), int)]
    return said[-1] if said else None


def append_lines(path: Path, lines: Iterable[dict[str, Any]]) -> None:
    """Appends lines; where that can't be done, there are none."""
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    try:
        with open(os.open(path, flags, 0o666), "a", encoding="utf-8") as file:  # no link, and no pipe that nobody reads
            file.write("".join(f"{json.dumps(line)}\n" for line in lines))
    except OSError:
        return


def span_line(row: int, span: Span) -> dict[str, Any]:
    """The line of a trial."""
    return {"trial": row, "began": round(span[0], 3), "ended": round(span[1], 3)}


def lines_of(path: Path, largest: int = LONGEST) -> Iterator[dict[str, Any]]:
    """The objects in a file of JSON lines that can be read; none of one that has more bytes."""
    try:
        lines = content_of(path, largest).decode("utf-8").splitlines()
    except (OSError, UnicodeDecodeError, JournalError):
        return
    for line in lines:
        try:
            said = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(said, dict):
            yield said
