"""`Journal`: the append-only file that a run is kept in, one strict JSON record a line."""

import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from deepbore.errors import JournalError

VERSION = 1
Event = dict[str, Any]


class Journal:
    """An append-only file of events. Each is on the disk (fsync) before `write` returns.

    The first line is the event "created", with the version of the format and what the writer adds (the space and
    the direction); then come "asked", "told", "failed" and "added".

    Args:
        path: the file; it and its folder are made with the first event.

    Raises:
        JournalError: if the file can't be written.
    """

    def __init__(self, path: str | os.PathLike[str]):
        self.path = Path(path)

    @classmethod
    def begin(cls, path: str | os.PathLike[str], header: Event) -> "Journal":
        """A new journal, its first line written.

        Args:
            path: the file, which must not hold a run.
            header: what the event "created" says of the run.

        Raises:
            JournalError: if the file holds a run already, or can't be written.
        """
        journal = cls(path)
        if journal.path.exists() and journal.path.stat().st_size:
            raise JournalError(f"{journal.path} holds a run already. Go on with Study.load, or name another file.")
        journal.write({"event": "created", "version": VERSION, **header})
        return journal

    def write(self, event: Event) -> None:
        """Appends one event."""
        self.write_all([event])

    def write_all(self, events: Iterable[Event]) -> None:
        """Appends several events with one fsync."""
        lines = "".join(json.dumps(event, allow_nan=False) + "\n" for event in events)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._end_torn_line()
            with self.path.open("a", encoding="utf-8") as file:
                file.write(lines)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise JournalError(
                f"the journal {self.path} can't be written ({error}). Free the disk or name another."
            ) from error

    def _end_torn_line(self) -> None:
        """Cuts off half a line that a crash has left, so that the next event starts on its own."""
        if not self.path.exists() or not self.path.stat().st_size:
            return
        with self.path.open("rb+") as file:
            file.seek(-1, os.SEEK_END)
            if file.read(1) != b"\n":
                whole = self.path.read_bytes()
                file.truncate(whole.rfind(b"\n") + 1)

    def read(self) -> Iterator[Event]:
        """The events, oldest first; half a last line, left by a crash, is passed over.

        Raises:
            JournalError: for a missing file, a damaged line or an unknown version.
        """
        try:
            text = self.path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise JournalError(f"the journal {self.path} can't be read ({error}).") from error
        *whole, _torn = text.split("\n")
        for number, line in enumerate(whole, 1):
            yield self._parsed(line, number)

    def _parsed(self, line: str, number: int) -> Event:
        try:
            event = json.loads(line)
        except ValueError:
            event = None
        if not isinstance(event, dict) or "event" not in event:
            raise JournalError(
                f"line {number} of {self.path} must be a JSON object with an event, but is {line[:80]!r}."
            )
        if number == 1 and (event["event"] != "created" or event.get("version") != VERSION):
            raise JournalError(
                f"{self.path} must begin with the event 'created', version {VERSION}, not {line[:80]!r}."
            )
        return event
