"""`Inbox`: commands to a run that another process leads, as a journal has one writer: a folder beside the journal.

Whoever commands puts a file there, whole or not at all; the leader takes them up in their order, when a trial ends and
at each `ask`, each at most once, and says in a file of its own what became of them:

    run.jsonl.inbox/1764392011123456789-3f2a41c0   {"run": "...", "verb": "withdraw", "trials": [3]}
    run.jsonl.answers                              {"id": "...", "verb": "withdraw", "refused": null, "at": 1764392012}

They are plain data, and each verb checks its own: they can do no more than the verbs of a study. Light to import.
"""

import json
import os
import re
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deepbore.data.journal import content_of, refuse_link, replace_file
from deepbore.data.log import append_lines
from deepbore.data.notes import lines_of
from deepbore.errors import DeepBoreError, JournalError

LONGEST = 2**18  # bytes of a command
MOST = 1000  # commands that may wait
VERBS = ("withdraw", "enqueue", "fix", "note", "stop")
_NAME = re.compile(r"\d{1,20}-[0-9a-f]{8}")


@dataclass(frozen=True)
class Command:
    """What a run is asked to do.

    Attributes:
        id: of the command.
        verb: what to do.
        said: all that was said, as plain data.
        at: when it was said, in seconds since 1970.
    """

    id: str
    verb: str
    said: Mapping[str, Any]
    at: float


class Inbox:
    """The commands to the run of a journal.

    Args:
        journal: the file.
        run_id: of the run, which a command must name: one for another run that stood here is refused.
    """

    def __init__(self, journal: Path, run_id: str | None):
        self.folder = journal.with_name(f"{journal.name}.inbox")
        self.answers_path = journal.with_name(f"{journal.name}.answers")
        self.run_id = run_id

    def put(self, verb: str, **said: Any) -> str:
        """Leaves a command; its id.

        Raises:
            JournalError: if the folder can't be written or is a link, or too many wait.
        """
        refuse_link(self.folder)
        content = json.dumps({"run": self.run_id, "verb": verb, **said}, allow_nan=False).encode()
        if len(content) > LONGEST:
            raise JournalError(f"a command must have at most {LONGEST:,} bytes, but has {len(content):,}.")
        if len(self._names()) >= MOST:
            raise JournalError(f"{MOST} commands wait in {self.folder} already. Start the run, or delete the folder.")
        name = f"{time.time_ns()}-{secrets.token_hex(4)}"
        try:
            self.folder.mkdir(exist_ok=True)
        except OSError as error:
            raise JournalError(f"{self.folder} can't be made ({error}).") from error
        replace_file(self.folder / name, content)
        return name

    def waiting(self) -> list[Command]:
        """The commands that wait, in their order."""
        return [each for name in self._names() if (each := self._read(name)) is not None]

    def take(self, do: Callable[[Command], object]) -> int:
        """Has each command done, in their order, and keeps what became of it; how many there were.

        Each is removed before it is done, so that none is done twice; one that can't be removed is not done.

        Args:
            do: does a command; a `DeepBoreError` refuses it.
        """
        names = self._names()
        for name in names:
            command = self._read(name)
            is_removed = False
            with suppress(OSError):
                (self.folder / name).unlink()
                is_removed = True
            if command is not None and is_removed:
                self._answer(command, self._refusal(command, do))
        return len(names)

    def _refusal(self, command: Command, do: Callable[[Command], object]) -> str | None:
        """Has a command done; why it was refused."""
        if command.said.get("run") != self.run_id:
            return "it was for another run, whose journal stood here."
        try:
            do(command)
        except DeepBoreError as error:
            return str(error)
        except (LookupError, TypeError, ValueError, AttributeError) as error:  # it is malformed
            return f"it is malformed: {type(error).__name__}: {error}"
        return None

    def _answer(self, command: Command, refused: str | None) -> None:
        line = {"id": command.id, "verb": command.verb, "refused": refused, "at": round(time.time(), 3)}
        append_lines(self.answers_path, [line])

    def answers(self, most: int = 20) -> list[dict[str, Any]]:
        """What became of the latest commands, the latest one last."""
        return [each for each in lines_of(self.answers_path) if isinstance(each.get("id"), str)][-most:]

    @property
    def changed(self) -> tuple[float, float]:
        """When commands and answers last changed, in seconds since 1970; 0 where there are none."""
        return _modified(self.folder), _modified(self.answers_path)

    def _names(self) -> list[str]:
        if self.folder.is_symlink():
            return []
        try:
            with os.scandir(self.folder) as found:
                return sorted(each.name for each in found if _NAME.fullmatch(each.name))
        except OSError:  # there is none
            return []

    def _read(self, name: str) -> Command | None:
        try:
            said = json.loads(content_of(self.folder / name, LONGEST))
            return (
                Command(name, said["verb"], said, int(name.partition("-")[0]) / 1e9) if said["verb"] in VERBS else None
            )
        except (OSError, JournalError, ValueError, LookupError, TypeError, RecursionError):
            return None


def _modified(path: Path) -> float:
    try:
        return os.stat(path, follow_symlinks=False).st_mtime
    except OSError:
        return 0.0


def numbered(said: Mapping[str, Any]) -> Iterator[int]:
    """The numbers of trials that a command names. Raises TypeError for what is none."""
    for each in said["trials"]:
        if isinstance(each, bool) or not isinstance(each, int):
            raise TypeError(f"trials are named by whole numbers, but got {each!r:.50}.")
        yield each
