"""What running trials have reported so far: a file for each, beside the journal, which has it with the outcome.

They are for whoever looks on (`deepbore watch`), and for the curve of a trial that is lost with its worker. Each is
removed with the outcome of its trial. A trial that reports for less than two seconds has none.

    run.jsonl.running/17
        {"steps": [1.0, 2.0], "values": [0.5, 0.25]}

Light to import: worker processes load it.
"""

import os
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from deepbore.data.outcome import report_columns, reports_of
from deepbore.data.times import append_lines, lines_of

LARGEST = 2**22  # bytes of a file that is read: about a hundred thousand reports
EVERY = 2.0  # seconds between two writes of a trial


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
    found = dict[float, float]()
    if path.parent.is_symlink():
        return found
    for said in lines_of(path, LARGEST):
        with suppress(LookupError, TypeError, ValueError, OverflowError):
            later = reports_of(said)
            if found and later and next(iter(later)) <= next(reversed(found)):  # the curve begins anew
                first = next(iter(later))
                found = {step: value for step, value in found.items() if step < first}
            found |= later
    return found


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
