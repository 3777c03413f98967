"""`Log`: where the events of a run are kept; and the write-ahead order over it: first the log, then memory."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Protocol, runtime_checkable

from deepbore.data.lines import Line


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
