"""`take_up`: a study does what was left for it in the inbox beside its journal."""

import logging
import math
from collections.abc import Callable
from typing import Any, Protocol

from deepbore.data.inbox import Command, Inbox, numbered
from deepbore.data.observations import Observations
from deepbore.errors import SettingError
from deepbore.loop.state import RunState

log = logging.getLogger(__name__)
OF_ONE_RANK = ("stop", "note")  # what a run on several ranks takes up: the first one keeps the journal


class Noted(Protocol):
    """Trials that take notes: `deepbore.study.study.StudyTrials`."""

    def note(self, text: Any = None, trial: Any = None, tags: Any = None) -> None:
        """Replaces a note, and tags."""


class Changeable(Protocol):
    """What commands change: a `deepbore.Study`."""

    @property
    def observations(self) -> Observations:
        """All trials."""

    @property
    def state(self) -> RunState:
        """All that the run knows."""

    def withdraw(self, trial: Any, reason: str | None = None) -> None:
        """Takes trials back."""

    def enqueue(self, params: Any) -> None:
        """Queues a configuration."""

    def fix(self, params: Any) -> None:
        """Fixes parameters."""

    @property
    def trials(self) -> Noted:
        """Its trials."""

    def stop(self) -> None:
        """Ends the run."""


def take_up(study: Changeable, ranks: int = 1, began: float = math.inf) -> None:
    """Does the commands that wait for a study; those that are refused are answered so, and logged.

    Args:
        study: with a journal, or without, for which there are none.
        ranks: how many processes propose together.
        began: when `optimize` began, in seconds since 1970: an older wish to stop was for another run.
    """
    journal = study.observations.journal
    if journal is None:
        return

    def do(command: Command) -> None:
        log.info("%s, as the inbox of the run asks for", command.verb)
        if ranks > 1 and command.verb not in OF_ONE_RANK:
            raise SettingError(
                f"a run on {ranks} ranks is not changed while it goes on. Stop it, and then {command.verb}."
            )
        if command.verb == "stop" and not (study.state.is_running and command.at >= began):
            raise SettingError("the run that was to stop is over.")
        VERBS[command.verb](study, command)

    Inbox(journal.path, journal.run_id).take(do)


def _withdraw(study: Changeable, command: Command) -> None:
    study.withdraw(list(numbered(command.said)), command.said.get("reason") or None)


def _note(study: Changeable, command: Command) -> None:
    study.trials.note(command.said.get("note"), command.said.get("trial"), command.said.get("tags"))


VERBS: dict[str, Callable[[Changeable, Command], None]] = {
    "withdraw": _withdraw,
    "enqueue": lambda study, command: study.enqueue(dict(command.said["params"])),
    "fix": lambda study, command: study.fix(dict(command.said["params"])),
    "note": _note,
    "stop": lambda study, _: study.stop(),
}
