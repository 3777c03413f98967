"""`StorageInbox`: commands to a shared study, which wait in its storage for its leader. Light to import.

A command is a system attribute of the study under a name of its own, so that nobody writes over another's:

    deepbore:command:1764392011123456789-3f2a41c0   {"verb": "withdraw", "trials": [3], "passed": null, "answer": null}

The leader passes it on to the inbox beside its journal (`deepbore.data.inbox`), from which its study takes it up, and
says here what became of it. `passed` is the name of it there, and is written first, so that none is done twice.
"""

import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from deepbore.data.inbox import LONGEST, MOST, Command, Inbox, Mail, command_id, wrong_with
from deepbore.errors import DeepBoreError, JournalError

if TYPE_CHECKING:
    from optuna.storages import BaseStorage

COMMAND = "deepbore:command:"  # begins the names of the study's system attributes that hold one command each
EVERY = 2.0  # seconds between two looks of a leader
LOST = "its leader ended before it took it up, and the next one goes on from a copy of the journal."


class StorageInbox:
    """The commands to a study of a storage.

    Args:
        storage: the storage.
        study_id: of the study in it.
    """

    def __init__(self, storage: "BaseStorage", study_id: int):
        self._read = partial(storage.get_study_system_attrs, study_id)
        self._write = partial(storage.set_study_system_attr, study_id)

    def put(self, verb: str, *, is_done: bool = False, **said: Any) -> str:
        """Leaves a command; its id.

        Args:
            verb: what to do.
            is_done: whether it is done by being here, as a note to a study without a leader.
            said: what it needs, as plain data.

        Raises:
            JournalError: for one that is too long, or if too many wait.
        """
        if len(repr(said)) > LONGEST:
            raise JournalError(f"a command must have at most {LONGEST:,} characters, but has {len(repr(said)):,}.")
        if len(self.waiting()) >= MOST:
            raise JournalError(f"{MOST} commands wait in the storage already. Start the leader of the study.")
        name = command_id()
        answer = _answer(None) if is_done else None
        self._write(COMMAND + name, {**said, "verb": verb, "passed": None, "answer": answer})
        return name

    def waiting(self) -> list[Command]:
        """The commands that wait for an answer, in their order."""
        return self.mail().waiting

    def mail(self, most: int = 20) -> Mail:
        """All that is here, with so many answers: the storage is read once."""
        attributes = self._read()
        commands = commands_in(attributes)
        named = {key.removeprefix(COMMAND): said for key, said in attributes.items() if key.startswith(COMMAND)}
        malformed = [f"{name:.60}: {wrong}" for name, said in named.items() if (wrong := wrong_with(said))]
        return Mail([each for each in commands if not is_answered(each)], malformed, answers_in(commands)[-most:])

    def mark(self, command: Command, **more: Any) -> None:
        """Writes something down about a command."""
        self._write(COMMAND + command.id, {**command.said, **more})

    def answer(self, command: Command, refused: str | None) -> None:
        """Says what became of a command."""
        self.mark(command, answer=_answer(refused))


def _answer(refused: str | None) -> dict[str, Any]:
    return {"refused": refused, "at": round(time.time(), 3)}


def commands_in(attributes: Mapping[str, Any]) -> list[Command]:
    """The commands among the system attributes of a study, in their order, without what is none."""
    found = []
    for key, said in attributes.items():
        name = key.removeprefix(COMMAND)
        if name == key or wrong_with(said):
            continue
        found.append(Command.of(name, said))
    return sorted(found, key=lambda each: each.id)


def is_answered(command: Command) -> bool:
    """Whether it was said what became of a command."""
    return isinstance(command.said.get("answer"), Mapping)


def answers_in(commands: Sequence[Command]) -> list[dict[str, Any]]:
    """What became of commands, as `Inbox.answers` says it, by the time of the answers."""
    told = [{**each.said["answer"], "id": each.id, "verb": each.verb} for each in commands if is_answered(each)]
    return sorted(told, key=lambda each: each["at"] if isinstance(each.get("at"), int | float) else 0.0)


class Passing:
    """Passes commands on, from the storage of a study to the inbox beside the journal of its leader, and answers back.

    Args:
        outer: in the storage.
        inner: beside the journal.
    """

    def __init__(self, outer: StorageInbox, inner: Inbox):
        self.outer, self.inner = outer, inner
        self._looked: float | None = None

    def look(self, every: float = EVERY) -> None:
        """Passes on what is new, unless the last look was less than so many seconds ago."""
        is_first = self._looked is None
        if self._looked is not None and time.monotonic() - self._looked < every:
            return
        self._looked = time.monotonic()
        waiting = self.outer.waiting()
        if not waiting:
            return
        mail = self.inner.mail(MOST)
        answers = {each["id"]: each for each in mail.answers}
        inside = {each.id for each in mail.waiting}
        for command in waiting:
            passed = command.said.get("passed")
            if passed is None:
                self._pass_on(command, is_first)
            elif passed in answers:
                refused = answers[passed].get("refused")
                self.outer.answer(command, None if refused is None else str(refused))
            elif passed not in inside:
                self.outer.answer(command, LOST)

    def _pass_on(self, command: Command, is_first: bool) -> None:
        if command.verb == "stop" and is_first:
            self.outer.answer(command, "the run that was to stop is over.")
            return
        name = command_id()
        self.outer.mark(command, passed=name)
        try:
            self.inner.put(command.verb, id=name, **command.wish)
        except (DeepBoreError, TypeError, ValueError) as error:
            self.outer.answer(command, str(error))
