"""`StudyEntry`: a shared study in an Optuna storage, shown as the run that its trials tell of. Needs Optuna, no torch.

A command to it waits in the storage for its leader (`deepbore.worker.shared_inbox`), who has the journal. A study of
Optuna alone takes configurations that are enqueued, and notes, which are kept here.
"""

import hashlib
import math
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from deepbore.worker.shared import DONE, OUTCOME, STUDY, open_storage, reports_in, task_in  # isort: skip  # says what is missing
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.storages import BaseStorage
from optuna.study import get_all_study_names, load_study
from optuna.trial import FrozenTrial, TrialState

from deepbore.dashboard.commands import DONE_AT_ONCE, EVENTS
from deepbore.dashboard.runs import ENDED, RUNNING, STOPPED, Entry, Left, key_of
from deepbore.data.events import Enqueued
from deepbore.data.inbox import VERBS, Command
from deepbore.data.ledger import Ledger
from deepbore.data.log import Line, first_line
from deepbore.data.outcome import report_columns
from deepbore.data.replay import Reading
from deepbore.errors import DeepBoreError, JournalError, SettingError
from deepbore.text import visible
from deepbore.worker.shared_inbox import StorageInbox, answers_in, commands_in

EVERY = 2.0  # seconds between two looks at a storage
QUIET = 60.0  # seconds without news after which a study that is not done counts as stopped
WAITS_FOR_LEADER = "It waits in the storage until the leader of the study takes it up."
ALONE = (
    "Optuna alone leads this study, so trials can't be withdrawn, no parameter fixed, and no end wished for: that "
    "needs a leader, as by `deepbore lead`."
)
TOLD = (TrialState.COMPLETE, TrialState.FAIL, TrialState.PRUNED)


def studies_in(url: str) -> list[Entry]:
    """The studies in a storage.

    Raises:
        SettingError: for anything but the URL of an Optuna storage that can be read.
    """
    try:
        storage = open_storage(url)
        names = get_all_study_names(storage)
    except DeepBoreError:
        raise
    except Exception as error:  # of any database; its text may have the address, and so a password
        raise SettingError(
            f"the storage holds no studies, or can't be read ({type(error).__name__}). Name one in which a study is."
        ) from None
    return [StudyEntry(storage, url, storage.get_study_id_from_name(name), name) for name in names]


class StudyEntry:
    """A study in a storage.

    Args:
        storage: where it is.
        url: of the storage, which is not shown: it may have a password.
        study_id: in the storage.
        name: of the study.
    """

    journal: Path | None = None
    share_read, configuration = 1.0, ""

    def __init__(self, storage: BaseStorage, url: str, study_id: int, name: str):
        self._storage, self._id, self.lock = storage, study_id, threading.RLock()
        self.key, self.name = key_of(f"{url}\n{study_id}"), visible(name)
        self.ledger: Ledger | None = None
        self.version, self.error, self.changed = 0, "", 0.0
        self._looked, self._seen, self._is_done, self._is_led = -math.inf, "", False, False
        self._rows: dict[int, int] = {}  # the number of a trial in commands -> its row

    @property
    def state(self) -> str:
        """Running while there is news, ended when its leader has said so, else stopped."""
        if self._is_done:
            return ENDED
        return RUNNING if time.time() - self.changed < QUIET else STOPPED

    @property
    def inbox(self) -> StorageInbox:
        return StorageInbox(self._storage, self._id)

    @property
    def verbs(self) -> tuple[str, ...]:
        return VERBS if self._is_led else ("enqueue", "note")

    @property
    def why(self) -> str:
        return "" if self._is_led else ALONE

    def put(self, verb: str, said: Mapping[str, Any]) -> Left:
        """Leaves a command for the leader; without one, a note is kept here, and Optuna enqueues.

        Raises:
            JournalError: if the storage can't be written.
            SettingError: for a trial that the leader knows by no number yet.
        """
        try:
            return self._put(verb, said)
        except DeepBoreError:
            raise
        except Exception as error:  # of any database; its text may have the address, and so a password
            raise JournalError(f"the storage can't be written ({type(error).__name__}). Try again.") from None
        finally:
            self._looked = -math.inf

    def _put(self, verb: str, said: Mapping[str, Any]) -> Left:
        if self._is_led:
            return Left(self.inbox.put(verb, **self._by_leader(said)), WAITS_FOR_LEADER)
        if verb == "note":
            return Left(self.inbox.put(verb, is_done=True, **said), DONE_AT_ONCE)
        name = self._storage.get_study_name_from_id(self._id)
        load_study(study_name=name, storage=self._storage).enqueue_trial(dict(said["params"]))
        return Left("", "It waits in the storage until a worker takes it up.")

    def _by_leader(self, said: Mapping[str, Any]) -> dict[str, Any]:
        """A command with trials by the numbers that the leader knows them by, in place of the storage's."""
        numbers = {row: known for known, row in self._rows.items()}
        named = [*said.get("trials", ()), *([said["trial"]] if "trial" in said else [])]
        if missing := [row for row in named if row not in numbers]:
            raise SettingError(
                f"the leader of the study has no number for trial {missing[0]}, which a worker has proposed by itself, "
                "or nobody has taken up. Change it in the run folder of the leader."
            )
        found = dict(said)
        if "trials" in said:
            found["trials"] = [numbers[row] for row in said["trials"]]
        if "trial" in said:
            found["trial"] = numbers[said["trial"]]
        return found

    def look(self) -> bool:
        """Reads the study, unless the last look was just now."""
        if time.monotonic() - self._looked < EVERY:
            return False
        self._looked = time.monotonic()
        try:
            self._read()
            self.error = ""
        except Exception as error:  # of any database; its text may have the address, and so a password
            said = (
                str(error) if isinstance(error, DeepBoreError) else f"the storage can't be read: {type(error).__name__}"
            )
            self.version += said != self.error
            self.error = said
        return False

    def _read(self) -> None:
        trials = self._storage.get_all_trials(self._id, deepcopy=False)
        told = self._storage.get_study_user_attrs(self._id)
        commands = commands_in(self._storage.get_study_system_attrs(self._id))
        self._is_done, self._is_led = bool(told.get(DONE)), STUDY in told
        seen = _mark(trials, commands)
        if seen == self._seen and self.ledger is not None:
            return
        directions = [each.name.lower() for each in self._storage.get_study_directions(self._id)]
        rows = _rows_of(trials, self._is_led)
        ledger = ledger_of(trials, directions, [_by_row(each, rows) for each in commands])
        with self.lock:  # a new ledger: whoever reads the former one is not disturbed
            self.ledger, self._seen, self._rows = ledger, seen, rows
            self.changed = max(_latest(trials), *(each.at for each in commands), 0.0)
            self.version += 1


def _rows_of(trials: list[FrozenTrial], is_led: bool) -> dict[int, int]:
    """The number of a trial in commands -> its row here, where these are known."""
    if not is_led:
        return {trial.number: trial.number for trial in trials}
    tasks = {trial.number: task_in(trial) for trial in trials}
    return {task["id"]: row for row, task in tasks.items() if task is not None and task["id"] >= 0}


def _by_row(command: Command, rows: Mapping[int, int]) -> Command:
    """A command with its trials as rows of the ledger; those that are not known here are left out."""
    said = dict(command.said)
    if command.verb == "withdraw":
        said["trials"] = [rows[each] for each in said["trials"] if each in rows]
    if said.get("trial") is not None:
        said["trial"] = rows.get(said["trial"], -1)
    return Command(command.id, command.verb, said, command.at)


def _mark(trials: list[FrozenTrial], commands: list[Command]) -> str:
    """A text that changes with the trials, and with what was asked for."""
    about = [(each.number, each.state.value, len(each.intermediate_values), len(each.system_attrs)) for each in trials]
    asked = [(each.id, repr(each.said)) for each in commands]
    return hashlib.blake2b(repr((about, asked)).encode(), digest_size=8).hexdigest()


def _latest(trials: list[FrozenTrial]) -> float:
    times = [each for trial in trials for each in (trial.datetime_start, trial.datetime_complete) if each is not None]
    return max((each.timestamp() for each in times), default=0.0)


# --- as a run --------------------------------------------------------------------------------------------------------


def ledger_of(trials: list[FrozenTrial], directions: list[str], commands: Sequence[Command] = ()) -> Ledger:
    """The ledger of a study's trials: what its journal would say.

    Args:
        trials: of the study, by number.
        directions: "minimize" or "maximize" for each value.
        commands: to the study, with rows for trials; those that were done change what is shown.
    """
    space = _space_of(trials)
    reading = Reading(first_line({"space": space, "directions": directions, "seed": 0, "recipe": {}}))
    for row, trial in enumerate(sorted(trials, key=lambda each: each.number)):
        for line in _lines(row, trial, space, len(directions)):
            reading.take(line)
        if trial.datetime_start is not None and trial.datetime_complete is not None:
            span = trial.datetime_start.timestamp(), trial.datetime_complete.timestamp()
            reading.ledger.notes.times[row] = span
    done = {each["id"] for each in answers_in(commands) if not each.get("refused")}
    for command in commands:
        if command.id in done:
            _show_done(reading, command)
    return reading.ledger


def _show_done(reading: Reading, command: Command) -> None:
    """Has what a command has changed in the study, which its leader's journal has, in the ledger, too."""
    with suppress(DeepBoreError, LookupError, TypeError, ValueError):  # any program may have written it
        event = EVENTS[command.verb](reading.ledger, command.said)
        if event is not None and not isinstance(event, Enqueued):  # which is a trial of the storage
            reading.take(event.line())


def _space_of(trials: list[FrozenTrial]) -> dict[str, dict[str, Any]]:
    space: dict[str, dict[str, Any]] = {}
    for trial in trials:
        for name, each in trial.distributions.items():
            space.setdefault(name, _declared(each))
    return space


def _declared(distribution: BaseDistribution) -> dict[str, Any]:
    """A distribution as the declaration of a parameter."""
    if isinstance(distribution, CategoricalDistribution):
        return {"type": "categorical", "choices": list(distribution.choices)}
    assert isinstance(distribution, FloatDistribution | IntDistribution)
    kind = "integer" if isinstance(distribution, IntDistribution) else "real"
    low, high = distribution.low, distribution.high
    return {"type": kind, "low": low, "high": high if high > low else low + 1, "log": distribution.log}


def _lines(row: int, trial: FrozenTrial, space: Mapping[str, Any], k: int) -> Iterator[Line]:
    """The lines of a trial."""
    task = task_in(trial)
    params = {**(task["params"] if task is not None else {}), **trial.params}
    yield {"event": "asked", "trial": row, "params": {name: each for name, each in params.items() if name in space}}
    reports = reports_in(trial)
    if trial.state not in TOLD:
        if reports and k == 1:
            yield {"event": "reported", "trial": row, **report_columns(reports)}
        return
    told = trial.system_attrs.get(OUTCOME)
    line = dict(told) if isinstance(told, Mapping) and "event" in told else _by_state(trial)
    if reports and k == 1:
        line.setdefault("reports", report_columns(reports))
    yield {**line, "trial": row}


def _by_state(trial: FrozenTrial) -> Line:
    """The outcome that a worker of Optuna's has told."""
    values = [float(each) for each in trial.values or ()]
    if trial.state == TrialState.COMPLETE and all(map(math.isfinite, values)):
        return {"event": "told", "values": values}
    if trial.state == TrialState.PRUNED:
        return {"event": "pruned"}
    return {"event": "failed", "reason": str(trial.user_attrs.get("reason") or "")}
