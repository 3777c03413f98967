"""`StudyEntry`: a shared study in an Optuna storage, shown as the run that its trials tell of. Needs Optuna, no torch.

It is read alone: a shared study is changed by its leader, or by Optuna's own tools.
"""

import hashlib
import math
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from deepbore.worker.shared import DONE, OUTCOME, TRIAL, open_storage, reports_in  # isort: skip  # says what is missing
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.storages import BaseStorage
from optuna.study import get_all_study_names
from optuna.trial import FrozenTrial, TrialState

from deepbore.dashboard.runs import ENDED, RUNNING, STOPPED, Entry, key_of
from deepbore.data.ledger import Ledger
from deepbore.data.log import Line, first_line
from deepbore.data.outcome import report_columns
from deepbore.data.replay import Reading
from deepbore.errors import DeepBoreError, SettingError
from deepbore.text import visible

EVERY = 2.0  # seconds between two looks at a storage
QUIET = 60.0  # seconds without news after which a study that is not done counts as stopped
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
        self._looked, self._seen, self._is_done = -math.inf, "", False

    @property
    def state(self) -> str:
        """Running while there is news, ended when its leader has said so, else stopped."""
        if self._is_done:
            return ENDED
        return RUNNING if time.time() - self.changed < QUIET else STOPPED

    def look(self) -> bool:
        """Reads the study, unless the last look was just now."""
        if time.monotonic() - self._looked < EVERY:
            return False
        self._looked = time.monotonic()
        try:
            trials = self._storage.get_all_trials(self._id, deepcopy=False)
            self._is_done = bool(self._storage.get_study_system_attrs(self._id).get(DONE))
            seen = _mark(trials)
            if seen != self._seen or self.ledger is None:
                directions = [each.name.lower() for each in self._storage.get_study_directions(self._id)]
                ledger = ledger_of(trials, directions)  # a new one: whoever reads the former one is not disturbed
                with self.lock:
                    self.ledger, self._seen = ledger, seen
                    self.changed = _latest(trials)
                    self.version += 1
            self.error = ""
        except Exception as error:  # of any database; its text may have the address, and so a password
            said = (
                str(error) if isinstance(error, DeepBoreError) else f"the storage can't be read: {type(error).__name__}"
            )
            self.version += said != self.error
            self.error = said
        return False


def _mark(trials: list[FrozenTrial]) -> str:
    """A text that changes with the trials."""
    about = [(each.number, each.state.value, len(each.intermediate_values), len(each.system_attrs)) for each in trials]
    return hashlib.blake2b(repr(about).encode(), digest_size=8).hexdigest()


def _latest(trials: list[FrozenTrial]) -> float:
    times = [each for trial in trials for each in (trial.datetime_start, trial.datetime_complete) if each is not None]
    return max((each.timestamp() for each in times), default=0.0)


# --- as a run --------------------------------------------------------------------------------------------------------


def ledger_of(trials: list[FrozenTrial], directions: list[str]) -> Ledger:
    """The ledger of a study's trials: what its journal would say.

    Args:
        trials: of the study, by number.
        directions: "minimize" or "maximize" for each value.
    """
    space = _space_of(trials)
    reading = Reading(first_line({"space": space, "directions": directions, "seed": 0, "recipe": {}}))
    for row, trial in enumerate(sorted(trials, key=lambda each: each.number)):
        for line in _lines(row, trial, space, len(directions)):
            reading.take(line)
        if trial.datetime_start is not None and trial.datetime_complete is not None:
            span = trial.datetime_start.timestamp(), trial.datetime_complete.timestamp()
            reading.ledger.notes.times[row] = span
    return reading.ledger


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
    task = trial.system_attrs.get(TRIAL)
    given = task.get("params") if isinstance(task, Mapping) else None
    params = {**(given if isinstance(given, Mapping) else {}), **trial.params}
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
