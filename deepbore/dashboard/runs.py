"""`Shelf`: the runs below the folders that were given, each with a name, a key for addresses, and its state."""

import hashlib
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

from deepbore.dashboard.following import Follower
from deepbore.data.inbox import VERBS, Inbox, Mail
from deepbore.data.ledger import Ledger
from deepbore.data.log import times_path
from deepbore.data.notes import finished_with, last_report, running_reports
from deepbore.data.ranking import is_feasible
from deepbore.data.runs import N_TRIALS, Run, runs_in
from deepbore.data.trial import Status
from deepbore.errors import DeepBoreError, JournalError
from deepbore.plots.style import number
from deepbore.text import visible
from deepbore.validation import as_path

SHOWN_NOTE = 300  # characters of a note in the list of runs
RESCAN = 5.0  # seconds between two looks for new runs
WAITS = "It waits until the run takes it up, which is when its next trial ends."
WAITS_FOR_START = "The run is not going on: it waits for its next start."
RUNNING, ENDED, STOPPED, DEAD, UNREADABLE = "running", "ended", "stopped", "dead", "unreadable"


class Commands(Protocol):
    """The commands to a run, wherever they are kept."""

    def mail(self) -> Mail:
        """Those that wait, what became of others, and what is none."""


@dataclass(frozen=True)
class Left:
    """A command that was left for a run.

    Attributes:
        id: of the command.
        says: when it is taken up, in words.
    """

    id: str
    says: str


class Entry(Protocol):
    """A run on the shelf, wherever it is kept.

    Attributes:
        key: stands for it in addresses.
        name: for people.
        lock: held while it is read, or shown.
    """

    key: str
    name: str
    lock: threading.RLock

    @property
    def journal(self) -> Path | None:
        """Its file; None where it is kept elsewhere."""

    @property
    def ledger(self) -> Ledger | None:
        """What is known of it; None while nothing is."""

    @property
    def version(self) -> int:
        """A number that changes with whatever a page shows."""

    @property
    def error(self) -> str:
        """Why it can't be read; empty while it can."""

    @property
    def share_read(self) -> float:
        """How much of it was read, from 0 to 1."""

    @property
    def configuration(self) -> str:
        """Its settings as text; empty if there are none."""

    @property
    def state(self) -> str:
        """Running, ended, stopped, dead or unreadable."""

    @property
    def changed(self) -> float:
        """When it last changed, in seconds since 1970."""

    @property
    def inbox(self) -> Commands:
        """The commands to it."""

    @property
    def verbs(self) -> tuple[str, ...]:
        """What it can be asked to do."""

    @property
    def why(self) -> str:
        """Why it can't be asked for more; empty where it can be asked for all."""

    def put(self, verb: str, said: Mapping[str, Any]) -> Left:
        """Leaves a command, which was checked.

        Args:
            verb: what to do.
            said: what that needs, as plain data.
        """

    def look(self) -> bool:
        """Reads what is new, for a moment; whether there may be more."""


def key_of(text: str) -> str:
    """A short key for a place; it says nothing of the place."""
    return hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()[:12]


class JournalEntry:
    """A run in a folder, or a journal alone.

    Args:
        run: where it is.
        root: the folder that was given; the journal must lie within.
    """

    verbs, why = VERBS, ""

    def __init__(self, run: Run, root: Path):
        self.run, self.root, self.lock = run, root, threading.RLock()
        self.journal: Path = run.journal.absolute()
        self.key, self.name = key_of(str(self.journal)), _name(run, root)
        self._follower = Follower(self.journal)
        self._locked: bool | None = None
        self._running: dict[int, float] = {}
        self._extra = 0
        self._inbox_changed = (0.0, 0.0)

    @property
    def ledger(self) -> Ledger | None:
        return self._follower.ledger

    @property
    def version(self) -> int:
        return self._follower.version + self._extra

    @property
    def error(self) -> str:
        return self._follower.error

    @property
    def share_read(self) -> float:
        return self._follower.share_read

    @property
    def configuration(self) -> str:
        try:
            return self.run.configuration
        except JournalError:
            return ""

    @property
    def inbox(self) -> Inbox:
        return Inbox(self.journal, None if self.ledger is None else self.ledger.header.get("id"))

    def put(self, verb: str, said: Mapping[str, Any]) -> Left:
        return Left(self.inbox.put(verb, **said), WAITS if self.state == RUNNING else WAITS_FOR_START)

    def look(self) -> bool:
        """Reads what is new, unless the journal has come to lie outside of its folder."""
        with self.lock:
            return self._look()

    def _look(self) -> bool:
        if not self._is_inside:
            self._follower.error = "the journal lies outside of the folder that was given, and is not read."
            return False
        more = self._follower.look()
        locked = self._is_locked()
        self._extra += locked != self._locked
        self._locked = locked
        self._note_reports()
        changed = Inbox(self.journal, None).changed
        self._extra += changed != self._inbox_changed
        self._inbox_changed = changed
        return more

    @property
    def _is_inside(self) -> bool:
        """Whether the journal lies within the folder that was given; one at a loop of links does not."""
        try:
            return self.journal.resolve().is_relative_to(self.root)
        except (OSError, RuntimeError):
            return False

    def _note_reports(self) -> None:
        """Reads what running trials have reported, where their file is new."""
        ledger, last = self.ledger, last_report(self.journal)
        if ledger is None or self._running.get(-1, 0.0) == last:
            return
        self._running[-1] = last
        for row in ledger.statistics.pending.tolist():
            if said := running_reports(self.journal, row):
                ledger.reports.add(row, said)
                self._extra += 1

    def _is_locked(self) -> bool | None:
        try:
            return Run(self.run.path).is_locked
        except DeepBoreError:
            return False

    @property
    def state(self) -> str:
        """Running while a process writes it; else ended, stopped, or dead if it has left trials without an outcome."""
        if self.error:
            return UNREADABLE
        if self._locked:
            return RUNNING
        ledger = self.ledger
        if ledger is None or self.share_read < 1:
            return STOPPED
        n_pending = len(ledger.statistics.pending)
        if n_pending:
            return DEAD
        wanted = self._wanted
        return ENDED if isinstance(wanted, int) and ledger.n_asked >= wanted else STOPPED

    @property
    def _wanted(self) -> Any:
        """How many trials the run was to have, as far as that is known."""
        loop = self._settings.get("loop")
        if isinstance(loop, Mapping):
            return loop.get("n_trials", N_TRIALS)
        return finished_with(times_path(self.journal))

    @cached_property
    def _settings(self) -> Mapping[str, Any]:
        with suppress(DeepBoreError):
            return self.run.settings
        return {}

    @property
    def changed(self) -> float:
        with suppress(OSError):
            return max(self.journal.stat(follow_symlinks=False).st_mtime, self._running.get(-1, 0.0))
        return 0.0


def _name(run: Run, root: Path) -> str:
    """The path below the folder that was given; the run's own name where it was given itself."""
    path = run.path.absolute()
    inside = path.relative_to(root) if path.is_relative_to(root) and path != root else Path()
    return visible(str(inside).removesuffix(".jsonl") if inside.parts else run.name)


# --- all of them -----------------------------------------------------------------------------------------------------


@dataclass
class Shelf:
    """All runs that are shown, by key; new ones are found as they begin.

    Attributes:
        roots: folders of runs, run folders or journals, resolved.
        others: entries that are kept elsewhere, as in a storage.
        entries: key -> run.
        scanned: when it looked for new runs, in seconds of a clock of its own.
    """

    roots: list[Path]
    others: list[Entry] = field(default_factory=list)
    entries: dict[str, Entry] = field(default_factory=dict)
    scanned: float = -RESCAN

    @classmethod
    def of(cls, paths: Iterable[str], others: Iterable[Entry] = ()) -> "Shelf":
        """The runs at some paths.

        Raises:
            JournalError: for a path at which there is nothing.
        """
        roots = []
        for each in paths:
            path = as_path(each, "a run or a folder of runs", JournalError)
            if not path.exists():
                raise JournalError(f"{path} is no run, journal or folder of runs. Name one that exists.")
            roots.append(path.resolve())
        shelf = cls(roots, list(others))
        shelf.scan()
        return shelf

    def scan(self) -> bool:
        """Looks for new runs, if the last look was some seconds ago; whether there are any."""
        if time.monotonic() - self.scanned < RESCAN:
            return False
        self.scanned, before = time.monotonic(), len(self.entries)
        for entry in (*self._in_folders(), *self.others):
            self.entries.setdefault(entry.key, entry)
        return len(self.entries) > before

    def _in_folders(self) -> Iterator[Entry]:
        for root in self.roots:
            if root.is_file():
                yield JournalEntry(Run(root), root)
                continue
            with suppress(JournalError):  # a folder that is gone
                yield from (JournalEntry(run, root) for run in runs_in(root))


def row_of(entry: Entry) -> dict[str, Any]:
    """The line of a run in the list, as plain data."""
    row: dict[str, Any] = {"key": entry.key, "name": entry.name, "state": entry.state, "changed": entry.changed}
    row |= {"read": round(entry.share_read, 2), "error": visible(entry.error), "trials": 0, "best": "–", "value": None}
    if (ledger := entry.ledger) is None:
        return row
    statistics = ledger.statistics
    counts = {"running": len(statistics.pending), "failed": statistics.n_failed, "pruned": statistics.n_pruned}
    row |= {"trials": len(ledger), "counts": {name: n for name, n in counts.items() if n}}
    row |= {
        "note": visible(ledger.remarks.get(None, "")[:SHOWN_NOTE]),
        "tags": [visible(each) for each in ledger.tags.get(None, ())],
    }
    row |= {"direction": ledger.direction if ledger.k == 1 else "", "comparable": ledger.k == 1}
    return row | _best(ledger)


def _best(ledger: Ledger) -> dict[str, Any]:
    if ledger.k > 1:
        return (
            {"best": f"{len(ledger.ranking.front_rows)} on the front"} if len(ledger) <= 5000 else {"best": "a front"}
        )
    row = ledger.ranking.best_row
    trial = None if row is None else ledger.trial(row)
    if trial is None or trial.status is not Status.COMPLETE or not is_feasible(trial):
        return {}
    return {"best": number(trial.value, 5), "value": trial.value, "best_trial": trial.id}
