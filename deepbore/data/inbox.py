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
NEEDS: dict[str, dict[str, type]] = {"withdraw": {"trials": list}, "enqueue": {"params": dict}, "fix": {"params": dict}}
KEPT = ("run", "verb", "passed", "answer")  # of what was said: what the inboxes keep for themselves
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

    @classmethod
    def of(cls, id: str, said: Mapping[str, Any]) -> "Command":  # as `Command.id`
        """The command of an id, which begins with its time, 0 where it does not, and of all that was said."""
        at = id.partition("-")[0]
        return cls(id, said["verb"], said, int(at) / 1e9 if at.isascii() and at.isdigit() else 0.0)

    @property
    def wish(self) -> dict[str, Any]:
        """What the verb needs, without what the inboxes keep for themselves."""
        return {name: each for name, each in self.said.items() if name not in KEPT}


@dataclass(frozen=True)
class Mail:
    """What an inbox holds, read at one time.

    Attributes:
        waiting: the commands that wait, in their order.
        malformed: what waits and is no command, in words: its name, and what is wrong with it.
        answers: what became of the latest commands, the latest one last.
    """

    waiting: list[Command]
    malformed: list[str]
    answers: list[dict[str, Any]]


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

    def put(self, verb: str, *, id: str = "", **said: Any) -> str:  # as `Command.id`
        """Leaves a command; its id.

        Args:
            verb: what to do.
            id: of the command, from `command_id`; empty for a new one.
            said: what it needs, as plain data.

        Raises:
            JournalError: if the folder can't be written or is a link, or too many wait.
        """
        refuse_link(self.folder)
        content = json.dumps({"run": self.run_id, "verb": verb, **said}, allow_nan=False).encode()
        if len(content) > LONGEST:
            raise JournalError(f"a command must have at most {LONGEST:,} bytes, but has {len(content):,}.")
        if len(self._names()) >= MOST:
            raise JournalError(f"{MOST} commands wait in {self.folder} already. Start the run, or delete the folder.")
        name = id or command_id()
        try:
            self.folder.mkdir(exist_ok=True)
        except OSError as error:
            raise JournalError(f"{self.folder} can't be made ({error}).") from error
        replace_file(self.folder / name, content)
        return name

    def mail(self, most: int = 20) -> Mail:
        """All that is here, with so many answers."""
        found = {name: self._read(name) for name in self._names()}
        waiting = [each for each in found.values() if isinstance(each, Command)]
        malformed = [f"{name}: {each}" for name, each in found.items() if isinstance(each, str)]
        return Mail(waiting, malformed, self.answers(most))

    def take(self, do: Callable[[Command], object]) -> int:
        """Has each command done, in their order, and keeps what became of it; how many there were.

        Each is removed before it is done, so that none is done twice; one that can't be removed is not done.

        Args:
            do: does a command; a `DeepBoreError` refuses it.
        """
        names = self._names()
        for name in names:
            command = self._read(name)
            try:
                (self.folder / name).unlink()
            except OSError:
                continue
            if isinstance(command, Command):
                self._answer(name, command.verb, self._refusal(command, do))
            elif command is not None:
                self._answer(name, "a malformed command", command)
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
            return f"what it says does not fit this run ({type(error).__name__}: {error})."
        return None

    def _answer(self, name: str, verb: str, refused: str | None) -> None:
        append_lines(self.answers_path, [{"id": name, "verb": verb, "refused": refused, "at": round(time.time(), 3)}])

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

    def _read(self, name: str) -> Command | str | None:
        """A command, or what is wrong with it; None where it is gone."""
        try:
            said = json.loads(content_of(self.folder / name, LONGEST))
        except FileNotFoundError:
            return None
        except (OSError, JournalError):
            return f"its file can't be read, or has more than {LONGEST:,} bytes."
        except (ValueError, RecursionError):
            return "its file has no JSON."
        wrong = wrong_with(said)
        return wrong or Command.of(name, said)


def wrong_with(said: Any) -> str:
    """What is wrong with a command, in words; empty for one that its verb can look at."""
    if not isinstance(said, Mapping):
        return f"it must be a mapping with a verb, but is {said!r:.60}."
    verb = said.get("verb")
    if verb not in VERBS:
        return f"its verb must be one of {', '.join(VERBS)}, but is {verb!r:.60}."
    for name, kind in NEEDS.get(verb, {}).items():
        if not isinstance(said.get(name), kind):
            there = f"is {said[name]!r:.60}" if name in said else "is missing"
            return f"{name!r} of a command to {verb} must be a {'list' if kind is list else 'mapping'}, but {there}."
    return ""


def command_id() -> str:
    """A new id of a command, by which commands are in their order."""
    return f"{time.time_ns()}-{secrets.token_hex(4)}"


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
