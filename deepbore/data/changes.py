"""`Changes`: what changes is written down first."""

from collections.abc import Callable, Iterable

from deepbore.data.journal import Event, Journal


class Changes:
    """What keeps a journal: a change is written to it before it takes effect, and an interrupt leaves both or none.

    Args:
        journal: where events are written; None for nowhere.
    """

    def __init__(self, journal: Journal | None):
        self.journal = journal
        self._unsettled: tuple[Callable[[], None], int | None] | None = None

    def commit(self, events: Iterable[Event], effect: Callable[[], None]) -> None:
        """Writes events to the journal, then lets them take effect; an interrupt leaves both or none.

        Args:
            events: what to write.
            effect: assignments that may be done twice.
        """
        if self.journal is not None:
            self.journal.open()
        try:
            self._unsettled = effect, None if self.journal is None else self.journal.position
            if self.journal is not None:
                self.journal.write_all(events)
            self.settle()
        except BaseException:
            self.settle()
            raise

    def settle(self) -> None:
        """Completes a change whose events are in the journal, and forgets one whose events are not."""
        if self._unsettled is None:
            return
        effect, before = self._unsettled
        if self.journal is None or self.journal.position != before:
            effect()
        self._unsettled = None
