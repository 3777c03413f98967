"""`Follower`: the ledger of a journal that another process may be writing: each look reads only what is new."""

import json
import os
import time
from collections.abc import Callable
from pathlib import Path

from deepbore.data.journal import LONGEST_LINE, Chain, identity, open_regular, refuse_link
from deepbore.data.ledger import Ledger
from deepbore.data.log import Line, left, times_path
from deepbore.data.replay import Reading, declaring, replaying
from deepbore.data.trial import LATEST
from deepbore.errors import JournalError

CHUNK = 2**17  # bytes that are read at once
HEAD = 1024  # bytes at the beginning of a file by which it is known again
DELAY = 0.05  # seconds of reading after which others have their turn


class Tail:
    """The whole lines that were added to a file since the last look.

    Args:
        path: of the file, which is no link.
    """

    def __init__(self, path: Path):
        self.path = path
        self.position = 0
        self._file: tuple[int, int] | None = None
        self._written = 0  # when the file was last written, at the latest check of its head
        self._head = b""

    @property
    def is_replaced(self) -> bool:
        """Whether the file is another one than at the last look, shorter than what was read, or begins otherwise."""
        status = os.stat(self.path, follow_symlinks=False)
        if self._file is None:
            return False
        if identity(status) != self._file or status.st_size < self.position:
            return True
        if status.st_mtime_ns == self._written:
            return False
        self._written = status.st_mtime_ns
        with open_regular(refuse_link(self.path), follow=False) as file:
            return file.read(len(self._head)) != self._head

    def lines(self, most: int = CHUNK) -> list[bytes]:
        """The next whole lines, of about so many bytes in all; none where nothing is new.

        Raises:
            JournalError: for a link, anything but a regular file, or a line that is too long.
            OSError: if it can't be read.
        """
        with open_regular(refuse_link(self.path), follow=False) as file:
            self._file = identity(os.fstat(file.fileno()))
            file.seek(self.position)
            found = file.read(most)
            if found and b"\n" not in found:
                found += file.readline(LONGEST_LINE)
        whole = found[: found.rfind(b"\n") + 1]
        if len(found) > LONGEST_LINE and not whole:
            raise JournalError(f"a line of {self.path} must have at most {LONGEST_LINE:,} bytes, but has more.")
        if not self.position:
            self._head = whole[:HEAD]
        self.position += len(whole)
        return whole.splitlines(keepends=True)


class Follower:
    """The ledger of a run, kept up with its journal.

    Lines are checked as by `read_record`: their checksums, and that each event fits. A line that is half written waits
    for the next look. A journal that was replaced, or cut by its writer, is read anew.

    Args:
        path: of the journal.

    Attributes:
        ledger: what was read so far; None before the first line.
        error: why the journal can't be read; empty while it can.
        version: a number that changes with whatever is new.
    """

    def __init__(self, path: Path):
        self.path = path
        self.ledger: Ledger | None = None
        self.error, self.version = "", 0
        self._begin()

    def _begin(self) -> None:
        self._tail, self._times = Tail(self.path), Tail(times_path(self.path))
        self._reading: Reading | None = None
        self._chain = Chain(self.path)
        self._block: list[tuple[int, Line]] = []  # of rows that were added at once, of which some are still to come

    @property
    def share_read(self) -> float:
        """How much of the journal was read, from 0 to 1."""
        try:
            size = os.stat(self.path, follow_symlinks=False).st_size
        except OSError:
            return 1.0
        return min(1.0, self._tail.position / size) if size else 1.0

    def look(self, seconds: float = DELAY, give_way: Callable[[], bool] = lambda: False) -> bool:
        """Reads what is new, for about so many seconds at most; whether there may be more.

        Args:
            seconds: after which it ends.
            give_way: whether it should end before.
        """
        end, version = time.monotonic() + seconds, self.version
        try:
            if self._tail.is_replaced:
                self._begin()
                self.ledger = None
                self.version += 1
            while lines := self._tail.lines():
                self._take(lines)
                self.version += 1
                if time.monotonic() > end or give_way():
                    return True
            self._note_times()
            self.error = ""
        except (OSError, JournalError) as error:
            self._fail(error)
        return self.version != version and self.share_read < 1.0

    def _fail(self, error: Exception) -> None:
        """Keeps the reason; the next look begins anew, as the writer may have taken back what was read."""
        said = f"the journal can't be read ({error})" if isinstance(error, OSError) else str(error)
        self.version += said != self.error
        self.error = said
        self._begin()

    def _take(self, lines: list[bytes]) -> None:
        for raw in lines:
            line = self._chain.event(raw)
            self._block.append((self._chain.number, line))
            if left(raw):  # what was added at once counts when all of it is there
                continue
            for number, each in self._block:
                self._apply(number, each)
            self._block = []

    def _apply(self, number: int, line: Line) -> None:
        if self._reading is None:
            with declaring(self.path):
                self._reading = Reading(line)
            self.ledger = self._reading.ledger
            return
        with replaying(self.path, number):
            self._reading.take(line)

    def _note_times(self) -> None:
        """Reads when trials began and ended, as far as that is kept."""
        if self.ledger is None:
            return
        try:
            lines = self._times.lines(2**26)
        except (OSError, JournalError):  # there is none
            return
        for raw in lines:
            try:
                said = json.loads(raw)
                row, span = int(said["trial"]), (float(said["began"]), float(said["ended"]))
            except (ValueError, LookupError, TypeError, OverflowError, RecursionError):
                continue
            if all(0 <= moment < LATEST for moment in span):
                self.ledger.notes.times[row] = span
                self.version += 1
