"""A journal's file as it is found: which lines are whole and undamaged, and the events in them."""

import logging
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO

from deepbore.data import lines
from deepbore.data.lines import VERSION, Event
from deepbore.errors import JournalError

log = logging.getLogger(__name__)
_CREATED = b'{"event": "created"'  # a journal begins so


@dataclass(frozen=True)
class Survey:
    """What is known of a journal's file.

    Attributes:
        file: its device and inode.
        run_id: what the first line calls the run; None in version 0.1.
        version: of the format.
        size: bytes of the whole lines.
        crc: checksum that the next line goes on from.
        torn: bytes after the whole lines, left by a crash.
    """

    file: tuple[int, int]
    run_id: str | None
    version: int = VERSION
    size: int = 0
    crc: int = 0
    torn: int = 0


def survey(path: Path) -> Survey:
    """Looks through a journal, and warns of what a crash has left at its end.

    Raises:
        JournalError: for a missing or empty file, a damaged line or an unknown version.
    """
    try:
        with path.open("rb") as file:
            return _survey(path, file)
    except (OSError, ValueError) as error:
        raise JournalError(f"the journal {path} can't be read ({error}).") from error


def holds_anything(path: Path) -> bool:
    """Whether a file is there with more in it than half of the first line of a journal, as a crash may have left it.

    Raises:
        JournalError: if nobody can know.
    """
    try:
        if not path.is_file():
            return False
        with path.open("rb") as file:
            first = file.readline()
    except (OSError, ValueError) as error:
        raise JournalError(f"the journal {str(path)!r} can't be read ({error}). Name another file.") from error
    return not (_CREATED.startswith(first) or (first.startswith(_CREATED) and not first.endswith(b"\n")))


def events(path: Path, found: Survey) -> Iterator[Event]:
    """The events in the whole lines.

    Raises:
        JournalError: for a line that is no event.
    """
    position = 0
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            position += len(line)
            if position > found.size:
                return
            yield _event(path, number, line)


def identity(status: os.stat_result) -> tuple[int, int]:
    """What tells a file from others."""
    return status.st_dev, status.st_ino


def _survey(path: Path, file: BinaryIO) -> Survey:
    status = os.fstat(file.fileno())
    found = _begun(path, file.readline(), identity(status))
    file.seek(0)
    position, crc = 0, 0
    for number, line in enumerate(file, 1):
        if not line.endswith(b"\n"):
            _check_torn(path, number, line, crc, found.version)
            break
        crc = _checked(path, number, line, crc, found.version)
        position += len(line)
        if not lines.left(line):  # what was added at once counts when all of it is there
            found = replace(found, size=position, crc=crc)
        if position >= status.st_size:  # another may be writing the next line just now
            break
    found = replace(found, torn=max(0, status.st_size - found.size))
    if found.torn:
        file.seek(found.size)
        log.warning("the end of %s is torn, as by a crash, and is passed over: %.80r", path, file.read(80))
    return found


def _begun(path: Path, line: bytes, file: tuple[int, int]) -> Survey:
    """What the first line says."""
    if not line.endswith(b"\n"):
        raise JournalError(f"the journal {path} holds no run: its first line is missing, or torn as by a crash.")
    created = _event(path, 1, line)
    version, run_id = created.get("version"), created.get("id")
    known = isinstance(run_id, str) if version == VERSION else version == 1
    if created["event"] != "created" or not known or isinstance(version, bool):
        raise JournalError(f"{path} must begin with the event 'created', version 1 or {VERSION}, not {line[:80]!r}.")
    return Survey(file, run_id, int(version or 0))


def _checked(path: Path, number: int, line: bytes, crc: int, version: int) -> int:
    """The checksum of a line."""
    if version == 1:
        return crc
    found = lines.checksum(line[:-1], crc)
    if found is None:
        raise JournalError(
            f"line {number} of {path} is damaged, or one before it was lost: its checksum does not fit: {line[:80]!r}."
        )
    return found


def _check_torn(path: Path, number: int, line: bytes, crc: int, version: int) -> None:
    """Raises JournalError for a last line that is whole, but for the end of line."""
    if version > 1 and lines.checksum(line[:-1], crc) is not None:
        raise JournalError(f"line {number} of {path} is damaged: it ends in {line[-1:]!r}.")


def _event(path: Path, number: int, line: bytes) -> Event:
    event = lines.parsed(line)
    if event is None:
        raise JournalError(f"line {number} of {path} must be a JSON object with an event, but is {line[:80]!r}.")
    return event
