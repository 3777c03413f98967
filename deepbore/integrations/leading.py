"""`Lead`: the right to lead a study of a storage. One process has it at a time, by a claim and signs of life."""

import logging
import math
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from deepbore.errors import StudyLed
from deepbore.worker.shared import MISSED, Beats, patiently, process_name

if TYPE_CHECKING:
    from optuna.storages import BaseStorage

CLAIM = "deepbore:claim:"  # begins the names of the study's system attributes that hold one claim each
TERM = "deepbore:term"  # the system attribute that says who was the latest to lead
LEADS = 10.0  # seconds between two signs of life of a leader
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Claim:
    """What a process says that leads, or would.

    Attributes:
        leader: its name.
        since: when it began, in seconds since 1970, by its clock.
        every: seconds between two signs of life.
        leads: whether it does; else it looks whether another one does.
        machine: what its process numbers are unique in; empty where that is not known.
        pid: the number of its process.
        started: when that process began, in ticks of its machine.
    """

    leader: str = "a process that did not say its name"
    since: float = 0.0
    every: float = LEADS
    leads: bool = False
    machine: str = ""
    pid: int = 0
    started: str = ""

    @classmethod
    def of(cls, told: object) -> "Claim":
        """The claim in an attribute, which any program may have written: what is of another type has its default."""
        given = told if isinstance(told, Mapping) else {}
        plain = cls()
        right = {
            each.name: given[each.name]
            for each in fields(cls)
            if type(given.get(each.name)) is type(getattr(plain, each.name))
        }
        claim = replace(plain, **right)
        return claim if 0 < claim.every < math.inf else replace(claim, every=LEADS)

    def __str__(self) -> str:
        """The leader, and since when."""
        try:
            since = f"{datetime.fromtimestamp(self.since, UTC):%Y-%m-%d %H:%M:%S} UTC"
        except (ValueError, OverflowError, OSError):  # of a clock beyond the year 9999
            since = "a time that is none"
        return f"{self.leader} (since {since}, by its clock)"

    @property
    def is_gone(self) -> bool:
        """Whether its process ran on this machine, and certainly has ended."""
        if not self.machine or self.machine != machine():
            return False
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return True
        except OSError:  # it is another user's
            return False
        return begun(self.pid) != self.started


def machine() -> str:
    """What process numbers are unique in: a boot of a machine, and a name space of it; empty off Linux."""
    with suppress(OSError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot} {os.readlink('/proc/self/ns/pid')}" if boot else ""
    return ""


def begun(pid: int) -> str:
    """When a process has begun, in ticks; empty for one that is dead and only not waited for, or where no one says."""
    with suppress(OSError):
        told = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        state, *others = told.rpartition(")")[2].split()
        return "" if state in "ZX" else others[18]
    return ""


class Lead:
    """The right to lead a study of a storage.

    A claim is a system attribute of the study under a name of its own, so that nobody writes over another's. Each
    process writes its claim before it reads the others': of two, one at least sees the other. Whoever began later
    withdraws; whoever began first waits to see whether the other one had looked before. A leader without a sign of life
    for `MISSED` of its beats is dead, by the clock of who looks on; one whose process has ended on this machine is dead
    at once. What seemed dead and was not learns from `check` that there is a later leader.

    Args:
        storage: the storage.
        study_id: of the study in it.
        name: of the study, for messages.
        every: seconds between two signs of life.

    Raises:
        StudyLed: while another process leads.
    """

    def __init__(self, storage: "BaseStorage", study_id: int, name: str, every: float):
        self.storage, self.study_id, self.name = storage, study_id, name
        self.key, pid = CLAIM + uuid4().hex, os.getpid()
        self.claim = Claim(process_name(), time.time(), every, False, machine(), pid, begun(pid))
        self.term = 0
        self._seen: dict[str, tuple[object, float]] = {}  # by name: a claim as it was at first, and when
        self._said: dict[str, Any] = asdict(self.claim)
        self._beats = Beats(partial(storage.set_study_system_attr, study_id, self.key), self._said)
        self._write(self.key, self._said)
        self._beats.begin()
        try:
            self._take()
        except BaseException:
            self.release()
            raise

    def check(self) -> None:
        """Raises StudyLed if another process has begun to lead since, as after a long sleep of this machine."""
        last = self._attributes().get(TERM)
        if isinstance(last, Mapping) and isinstance(last.get("term"), int) and last["term"] > self.term:
            raise StudyLed(
                f"this process leads the study {self.name!r} no more: it gave no sign of life, and {Claim.of(last)} "
                "has taken over. What was told is in its journal. Load the study from the journal that leads now."
            )

    def release(self) -> None:
        """Lets another process lead; a process that was forked from this one does nothing."""
        if os.getpid() != self.claim.pid:
            return
        self._beats.end()
        try:
            self.storage.set_study_system_attr(self.study_id, self.key, None)
        except Exception as error:  # the next leader waits until signs of life are missing
            log.warning("the claim of this leader was not taken back: %s", error.__cause__ or error)

    # --- within ------------------------------------------------------------------------------------------------------

    def _take(self) -> None:
        """Waits until no other process claims to lead, and says that this one does."""
        is_first = True
        while others := list(self._others()):
            for each, has_changed in others:
                if has_changed and (each.leads or self._is_before(each)):
                    raise StudyLed(
                        f"the study {self.name!r} of this storage is led by {each}. One process leads at a time: end "
                        "that one first, or give another name."
                    )
            if is_first:
                log.warning("waiting to see whether %s still leads the study %r", others[0][0], self.name)
            is_first = False
            time.sleep(min(1.0, max(0.01, min(each.every for each, _ in others) / 4)))
        last = self._attributes().get(TERM)
        before = last.get("term", 0) if isinstance(last, Mapping) else 0
        self.term = 1 + (before if isinstance(before, int) else 0)
        self._said["leads"] = True
        self._write(self.key, {**self._said, "count": -1})
        self._write(TERM, {**self._said, "term": self.term})

    def _is_before(self, other: Claim) -> bool:
        return (other.since, other.leader) < (self.claim.since, self.claim.leader)

    def _others(self) -> Iterator[tuple[Claim, bool]]:
        """The claims of others that may live, and whether they have given a sign of life since the first look."""
        now = time.monotonic()
        for key, told in self._attributes().items():
            if not key.startswith(CLAIM) or key == self.key or told is None:
                continue
            claim = Claim.of(told)
            first, since = self._seen.setdefault(key, (told, now))
            has_changed = told != first
            if claim.is_gone or (not has_changed and now - since > MISSED * claim.every):
                self._write(key, None)
            else:
                yield claim, has_changed

    def _attributes(self) -> dict[str, Any]:
        return patiently(self.storage.get_study_system_attrs, self.study_id)

    def _write(self, key: str, told: object) -> None:
        patiently(self.storage.set_study_system_attr, self.study_id, key, told)
