"""`amend`: writes events to the journal of a run that no process leads. No torch."""

from collections.abc import Callable
from pathlib import Path

from deepbore.data.events import Event
from deepbore.data.journal import Journal
from deepbore.data.ledger import Ledger
from deepbore.data.replay import ledger_of


def amend(path: Path, *events: Callable[[Ledger], Event]) -> Ledger:
    """Writes events to a journal, each checked as it comes to it; the ledger after them.

    Args:
        path: of the journal.
        events: functions of the ledger that return an event.

    Raises:
        JournalInUse: while another process writes it.
        JournalError: for a missing or damaged journal.
        TrialError, ValueTypeError: for an event that does not fit.
    """
    journal = Journal(path)
    try:
        ledger = ledger_of(journal.path, journal.read())
        for event in events:
            new = event(ledger)
            effect = new.stage(ledger)
            journal.write(new.line())
            effect()
    finally:
        journal.close()
    return ledger
