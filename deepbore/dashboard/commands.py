"""What a reader asks for: withdraw, enqueue, fix, note and stop, checked, and passed on to the one writer of the run.

A run that a process leads takes commands up from the inbox beside its journal (`deepbore.data.inbox`). Without a leader
a withdrawal or a note is written to the journal at once; what is enqueued or fixed waits in the inbox for the next
start, which has the search space to check it. Those to a shared study wait in its storage for its leader.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from deepbore.dashboard.runs import RUNNING, UNREADABLE, Entry
from deepbore.data.amending import amend
from deepbore.data.declared import Declared
from deepbore.data.events import Enqueued, Event, Fixed, Noted, Withdrawn
from deepbore.data.inbox import VERBS, numbered
from deepbore.data.ledger import Ledger
from deepbore.errors import JournalInUse, SettingError, ValueTypeError

DONE_AT_ONCE = "Done."


@dataclass(frozen=True)
class Answer:
    """What became of a command.

    Attributes:
        says: in words.
        id: of the command in the inbox; empty for one that is done.
    """

    says: str
    id: str = ""


def command(entry: Entry, said: Any) -> Answer:
    """Passes a command on.

    Args:
        entry: the run.
        said: "verb", and what it needs, as plain data from anybody.

    Raises:
        SettingError, TrialError, ValueTypeError: for what is no command, or does not fit the run.
        JournalError: if nothing can be written.
    """
    if not isinstance(said, Mapping) or said.get("verb") not in VERBS:
        raise SettingError(f"a command has a verb, one of {', '.join(VERBS)}, but got {said!r:.100}.")
    if said["verb"] not in entry.verbs:
        raise SettingError(entry.why)
    with entry.lock:
        more, ledger, state = entry.look(), entry.ledger, entry.state
        if ledger is None or state == UNREADABLE or more:
            raise SettingError("the run can't be changed while it is not read. Try again when it is.")
        event = EVENTS[said["verb"]](ledger, said)
    return _passed_on(entry, said, event, state == RUNNING)


def _passed_on(entry: Entry, said: Mapping[str, Any], event: Event | None, goes_on: bool) -> Answer:
    """Leaves a command in the inbox, or writes its event where no process leads the run."""
    at_once = entry.journal is not None and not goes_on
    if at_once and event is None:
        raise SettingError("the run is not going on, so there is nothing to stop.")
    if at_once and not isinstance(event, Enqueued | Fixed):
        assert entry.journal is not None
        assert event is not None
        made = event
        with suppress(JournalInUse):  # it has begun in the meantime
            amend(entry.journal, lambda _: made)
            return Answer(DONE_AT_ONCE)
    left = entry.put(said["verb"], _plain(said["verb"], said))
    return Answer(left.says, left.id)


FIELDS = {
    "withdraw": ("trials", "reason"),
    "enqueue": ("params",),
    "fix": ("params",),
    "note": ("note", "trial", "tags"),
}


def _plain(verb: str, said: Mapping[str, Any]) -> dict[str, Any]:
    """What a command needs, and nothing else."""
    return {name: said[name] for name in FIELDS.get(verb, ()) if said.get(name) is not None}


# --- each verb -------------------------------------------------------------------------------------------------------


def _withdrawn(ledger: Ledger, said: Mapping[str, Any]) -> Event:
    reason = said.get("reason")
    if reason is not None and not isinstance(reason, str):
        raise ValueTypeError(f"a reason is a text, but got {reason!r:.100}.")
    try:
        rows = sorted(numbered(said))
    except (LookupError, TypeError) as error:
        raise ValueTypeError(f"trials are named by a list of whole numbers ({error}).") from None
    if not rows:
        raise ValueTypeError("a withdrawal names at least one trial, but got none.")
    event = Withdrawn(rows, reason or None)
    event.check(ledger)
    return event


def _enqueued(ledger: Ledger, said: Mapping[str, Any]) -> Event:
    return _checked(ledger, Enqueued(_params(ledger, said, least=1)))


def _fixed(ledger: Ledger, said: Mapping[str, Any]) -> Event:
    return _checked(ledger, Fixed(_params(ledger, said, least=0)))


def _noted(ledger: Ledger, said: Mapping[str, Any]) -> Event:
    tags = said.get("tags")
    if tags is not None and not isinstance(tags, list):
        raise ValueTypeError(f"tags are a list of texts, but got {tags!r:.100}.")
    event = Noted(said.get("trial"), said.get("note"), None if tags is None else tuple(dict.fromkeys(map(str, tags))))
    event.check(ledger)
    return event


EVENTS: dict[str, Callable[[Ledger, Mapping[str, Any]], Event | None]] = {
    "withdraw": _withdrawn,
    "enqueue": _enqueued,
    "fix": _fixed,
    "note": _noted,
    "stop": lambda _ledger, _said: None,
}


def _params(ledger: Ledger, said: Mapping[str, Any], least: int) -> dict[str, Any]:
    """Parameters that are declared, within their bounds, as far as a journal says these."""
    params = said.get("params")
    if not isinstance(params, Mapping) or len(params) < least:
        raise ValueTypeError(f"parameters are given by name, at least {least}, but got {params!r:.100}.")
    for name, value in params.items():
        declared = ledger.space.get(name, {})
        low, high = declared.get("low"), declared.get("high")
        if _is_number(value) and _is_number(low) and _is_number(high) and not low <= value <= high:
            raise ValueTypeError(f"{name!r:.60} must be in [{low}, {high}], but got {value}.")
        if declared.get("type") == "integer" and isinstance(value, float) and not value.is_integer():
            raise ValueTypeError(f"{name!r:.60} must be a whole number, but got {value}.")
    return dict(params)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _checked(ledger: Ledger, event: Event) -> Event:
    """An event whose parameters are declared ones. Raises SettingError for others."""
    try:
        Declared(ledger.header).check(event)
    except ValueError as error:
        raise SettingError(str(error)) from None
    return event
