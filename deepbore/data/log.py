"""A log: its lines, where they are kept (`Log`), and the write-ahead order over it. No torch.

A line of a journal is strict JSON and ends in a checksum that chains it to the line before:

    {"event": "told", "trial": 3, "value": 0.25, "crc": "5d0c2a1f"}

The checksum is the CRC-32 of the line without it, continued from that of the line before (0 for the first). So no line
can be changed, lost, doubled or moved unnoticed; only whole lines at the end can be missing. Journals of version 0.1
(format 1) have no checksums.
"""

import json
import os
import re
import uuid
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

VERSION = 2
JOURNAL = "journal.jsonl"  # in the directory of a run
Line = dict[str, Any]  # an event as plain data; its name is under "event"
_SEAL = ', "crc": "%08x"}'
_SEAL_SIZE = len(_SEAL % 0)
_LEFT = re.compile(rb'\{"event": "added", "left": (\d+)')


def first_line(header: Line) -> Line:
    """The event of a new run, which is the first line of a journal; its "id" is made if the header has none."""
    return {"event": "created", "version": VERSION, "id": uuid.uuid4().hex, **header}


def written(event: Line, version: int, crc: int) -> tuple[bytes, int]:
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


def parsed(line: bytes) -> Line | None:
    """The event in a line, without its checksum; None if it is no JSON object with an event."""
    try:
        event = _DECODER.decode(line.decode())
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


_DECODER = json.JSONDecoder(parse_constant=_refuse)


# --- where they are kept ---------------------------------------------------------------------------------------------


@runtime_checkable
class Log(Protocol):
    """Where the lines of a run are kept, in their order: a `Journal`, or a database of your own.

    A log has one writer at a time, and no line in it ever changes. The first line says of which run it is.

    Attributes:
        path: a name for the files beside it, such as the snapshot; its folder exists.
        run_id: "id" of the first line; None before that was read or written, and in version 0.1.
    """

    path: Path
    run_id: str | None

    @property
    def position(self) -> int | None:
        """A number that each `append` makes larger, once its lines are kept for good; None before the first look."""

    def open(self) -> None:
        """Takes the lock of the writer, if this one has not got it; it may be called again and again.

        Raises:
            JournalError: if another writes.
        """

    def append(self, lines: Iterable[Line]) -> None:
        """Keeps lines for good: all of them, or none if that fails or is interrupted.

        Raises:
            JournalError: if they can't be kept.
        """

    def read(self) -> Iterator[Line]:
        """The lines, oldest first; without those that an `append` left that did not come to its end.

        Raises:
            JournalError: for a log that is missing or damaged.
        """

    def close(self) -> None:
        """Leaves the log to another writer."""


class WriteAheadLog:
    """A log, or none, to which an event is written before memory changes; an interrupt leaves both or none.

    Args:
        journal: where events are written; None for nowhere.
    """

    def __init__(self, journal: Log | None):
        self.journal = journal
        self._pending: tuple[Callable[[], None], int | None] | None = None  # an effect, and where the journal ended

    def commit(self, events: Iterable[Line], effect: Callable[[], None]) -> None:
        """Writes events to the journal, then changes memory; an interrupt leaves both or none.

        Args:
            events: what to write.
            effect: assignments that may be done twice.
        """
        if self.journal is not None:
            self.journal.open()
        try:
            self._pending = effect, None if self.journal is None else self.journal.position
            if self.journal is not None:
                self.journal.append(events)
            self.complete_pending_write()
        except BaseException:
            self.complete_pending_write()
            raise

    def note(self, line: Line) -> None:
        """Appends a line, unsynced, to the times beside the journal; see `deepbore.data.notes`."""
        if self.journal is not None:
            append_lines(times_path(self.journal.path), [line])

    @property
    def is_interrupted(self) -> bool:
        """Whether a change is under way, or was left so by an interrupt."""
        return self._pending is not None

    def complete_pending_write(self) -> None:
        """Completes an interrupted change whose events are in the journal; drops one whose events are not."""
        if self._pending is None:
            return
        effect, before = self._pending
        if self.journal is None or self.journal.position != before:
            effect()
        self._pending = None


def times_path(journal: Path) -> Path:
    """The file of a journal: run.jsonl -> run.jsonl.times."""
    return journal.with_name(f"{journal.name}.times")


def append_lines(path: Path, lines: Iterable[dict[str, Any]]) -> None:
    """Appends lines; where that can't be done, there are none."""
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    try:
        with open(os.open(path, flags, 0o666), "a", encoding="utf-8") as file:  # no link, and no pipe that nobody reads
            file.write("".join(f"{json.dumps(line)}\n" for line in lines))
    except OSError:
        return
