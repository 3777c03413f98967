"""`Journal`: the append-only file that a run is kept in, one strict JSON record a line."""

import json
import logging
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from deepbore.errors import JournalError

VERSION = 1
Event = dict[str, Any]
log = logging.getLogger(__name__)


class Journal:
    """An append-only file of events. Each is on the disk (fsync) before `write` returns.

    The first line is the event "created", with the version of the format and what the writer adds (the space and
    the direction); then come "asked", "told", "failed", "added" and "enqueued".

    There is one writer at a time: the first event takes a lock (a file beside the journal), which `close` or the
    death of the process releases. Reading needs no lock.

    Args:
        path: the file; it and its folder are made with the first event.

    Raises:
        JournalError: if the file can't be written, or another writes it.
    """

    def __init__(self, path: str | os.PathLike[str]):
        self.path = Path(path)
        self._lock = FileLock(f"{self.path}.lock", thread_local=False)
        self.run_id: str | None = None
        self._size: int | None = None  # bytes when it was last read or written here

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

    @property
    def position(self) -> int | None:
        """Bytes that are written for good, from the first `open` on: equal before and after what was not written."""
        return self._size

    # --- writing -----------------------------------------------------------------------------------------------------

    def write(self, event: Event) -> None:
        """Appends one event."""
        self.write_all([event])

    def write_all(self, events: Iterable[Event]) -> None:
        """Appends several events with one fsync: all of them, or none if that fails."""
        lines = "".join(json.dumps(event, allow_nan=False) + "\n" for event in events)
        try:
            self._append(lines.encode())
        except OSError as error:
            raise JournalError(
                f"the journal {self.path} can't be written ({error}). Free the disk or name another. Not written: "
                f"{lines[:200].strip()}"
            ) from error

    def open(self) -> None:
        """Takes the lock, as the first `write` does by itself.

        Raises:
            JournalError: if another holds it, the file has grown since it was read, or the folder can't be written.
        """
        if self._lock.is_locked:
            return
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._lock.acquire(timeout=0)
        except Timeout:
            raise JournalError(
                f"another process, or another study in this one, writes the journal {self.path}. Wait for its end, "
                "close the other study, or name another file."
            ) from None
        except OSError as error:
            raise JournalError(f"the journal {self.path} can't be written ({error}). Name another file.") from error
        if self._size is not None and self._size != self._size_now():
            self.close()
            raise JournalError(f"another has written to {self.path} since it was read. Load it again to go on.")
        self._size = self._size_now()

    def close(self) -> None:
        """Leaves the journal to another writer."""
        self._lock.release()

    def _append(self, lines: bytes) -> None:
        self.open()
        self._end_torn_line()
        before = self._size_now()
        with self.path.open("ab", buffering=0) as file:
            try:
                written = file.write(lines)
                while written < len(lines):
                    written += file.write(lines[written:])
                os.fsync(file.fileno())
            except OSError:
                file.truncate(before)
                raise
        self._size = before + len(lines)

    def _size_now(self) -> int:
        return self.path.stat().st_size if self.path.exists() else 0

    def _end_torn_line(self) -> None:
        """Cuts off half a line that a crash has left, so that the next event starts on its own."""
        if not self._size_now():
            return
        with self.path.open("rb+") as file:
            file.seek(-1, os.SEEK_END)
            if file.read(1) != b"\n":
                whole = self.path.read_bytes()
                file.truncate(whole.rfind(b"\n") + 1)

    # --- reading -----------------------------------------------------------------------------------------------------

    def read(self) -> Iterator[Event]:
        """The events, oldest first; half a last line, left by a crash, is passed over with a warning.

        Raises:
            JournalError: for a missing or empty file, a damaged line or an unknown version.
        """
        try:
            content = self.path.read_bytes()
        except (OSError, ValueError) as error:
            raise JournalError(f"the journal {self.path} can't be read ({error}).") from error
        self._size = len(content)
        *whole, torn = content.split(b"\n")
        if not whole:
            raise JournalError(f"the journal {self.path} is empty: it holds no run.")
        if torn:
            log.warning("the last line of %s is torn, as by a crash, and is passed over: %.80r", self.path, torn)
        for number, line in enumerate(whole, 1):
            yield self._parsed(line, number)

    def _parsed(self, line: bytes, number: int) -> Event:
        try:
            event = json.loads(line.decode(), parse_constant=_refuse)
        except (ValueError, RecursionError):
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


def _refuse(constant: str) -> None:
    """NaN and the infinities are no JSON."""
    raise ValueError(constant)
