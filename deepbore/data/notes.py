"""Notes: events that no run depends on, as lines of files beside the journal. Light to import: workers load it.

    run.jsonl.times         {"trial": 3, "began": 1763786712.25, "ended": 1763786719.5}
                            {"finished": 20}
    run.jsonl.running/17    {"steps": [1.0, 2.0], "values": [0.5, 0.25]}

Of a line with "began" `deepbore.data.events.Timed` is the event, of one with "steps" `Reported`. They are not in the
journal: equal runs have equal journals, a journal has one writer, and running trials report from other processes. They
are not synced, which is most of what a line of the journal costs. Where a note can't be written there is none. Lines
that say nothing are passed over.

Times are in seconds since 1970. `finished` is written where a run has done what it was to do, with the number of trials
that were done by then. A running trial has a file of its own, which is removed with its outcome. A trial that
reports for less than two seconds has none. The journal has what a trial has reported with its outcome.
"""

import json
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from deepbore.data.journal import content_of
from deepbore.data.log import append_lines
from deepbore.data.outcome import report_columns, reports_of
from deepbore.data.reports import Reports
from deepbore.errors import JournalError

LONGEST = 2**26  # bytes of a file of notes
LARGEST = 2**22  # bytes of the file of a running trial that is read: about a hundred thousand reports
EVERY = 2.0  # seconds between two writes of a running trial


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


# --- times -----------------------------------------------------------------------------------------------------------


def finished_with(path: Path) -> int | None:
    """How many trials were done when the latest run had done what it was to do; None where that was not kept."""
    said = [each["finished"] for each in lines_of(path) if isinstance(each.get("finished"), int)]
    return said[-1] if said else None


# --- reports of running trials ---------------------------------------------------------------------------------------


def running_path(journal: Path, row: int) -> Path:
    """The file of a running trial: run.jsonl -> run.jsonl.running/17."""
    return journal.with_name(f"{journal.name}.running") / str(row)


class RunningReports:
    """Writes what a trial reports, a few times a minute; in any process that sees the folder of the journal.

    Args:
        path: the file: see `running_path`.
    """

    def __init__(self, path: Path):
        self.path = path
        self._unsent: dict[float, float] = {}
        self._written = time.monotonic()

    def __call__(self, step: float, value: float) -> None:
        if self._unsent and step <= next(reversed(self._unsent)):  # the curve begins anew
            self._unsent = {each: kept for each, kept in self._unsent.items() if each < step}
        self._unsent[step] = value
        if time.monotonic() - self._written >= EVERY:
            with suppress(OSError):  # another machine, perhaps
                self.path.parent.mkdir(exist_ok=True)
            append_lines(self.path, [report_columns(self._unsent)])
            self._unsent, self._written = {}, time.monotonic()

    def written(self) -> dict[float, float]:
        """What has come into the file, by ascending step."""
        return reports_in(self.path)

    def __getstate__(self) -> dict[str, Any]:
        return {"path": self.path}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]  # anew, in another process


def running_reports(journal: Path, row: int) -> dict[float, float]:
    """What a running trial has reported, by ascending step; empty where that is not known."""
    return reports_in(running_path(journal, row))


def reports_in(path: Path) -> dict[float, float]:
    """The reports in the file of a trial, by ascending step; empty for what is no such file, or too large.

    Anybody may have written it: lines that are no reports are passed over.
    """
    found = Reports()
    if path.parent.is_symlink():
        return {}
    for said in lines_of(path, LARGEST):
        with suppress(LookupError, TypeError, ValueError, OverflowError):
            found.add(0, reports_of(said))
    return found.of(0)


def last_report(journal: Path) -> float:
    """When a running trial's reports were last written, in seconds since 1970; 0 if there are none."""
    try:
        with os.scandir(running_path(journal, 0).parent) as files:
            return max((each.stat(follow_symlinks=False).st_mtime for each in files), default=0.0)
    except OSError:
        return 0.0


def forget_reports(journal: Path, row: int) -> None:
    """Removes the file of a trial that has ended, and with the last one their folder."""
    path = running_path(journal, row)
    with suppress(OSError):  # there is none
        path.unlink()
        path.parent.rmdir()
