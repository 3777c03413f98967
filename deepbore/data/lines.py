"""The lines of a journal: plain data to text and back, without torch.

A line is strict JSON and ends in a checksum that chains it to the line before:

    {"event": "told", "trial": 3, "value": 0.25, "crc": "5d0c2a1f"}

The checksum is the CRC-32 of the line without it, continued from that of the line before (0 for the first). So no line
can be changed, lost, doubled or moved unnoticed; only whole lines at the end can be missing. Journals of version 0.1
(format 1) have no checksums.
"""

import json
import re
import uuid
import zlib
from typing import Any

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
