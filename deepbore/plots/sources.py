"""What charts are drawn of: a study, or the record of its journal; and which of many trials are shown."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Union

import numpy as np

from deepbore.data.ledger import Ledger
from deepbore.data.trial import Direction, Status, Trial, sign_of
from deepbore.errors import SettingError

if TYPE_CHECKING:
    from deepbore.study import Study

MOST = 3000  # trials that the page draws and lists


def require_study(study: Any) -> None:
    """Raises SettingError unless the argument is a study, or looks like one."""
    if not (hasattr(study, "observations") and hasattr(study, "state")):
        raise SettingError(f"what is drawn is a study, but got {study!r:.100}. Give `study`, or `result.study`.")


def record_of(study: "Study") -> Ledger:
    """The record of a study, as its journal would give it."""
    return study.observations.ledger.described(study.state.header())


def ledger_of(run: Union["Study", Ledger]) -> Ledger:
    """The record of a study, or the record itself. Raises SettingError for anything else."""
    if isinstance(run, Ledger):
        return run
    require_study(run)
    return record_of(run)


def of_objective(record: Ledger, j: int) -> Ledger:
    """The record with the j-th value in the place of the first."""
    names = names_of_values(record)
    header = {**record.header, "objectives": [names[j], *names[:j], *names[j + 1 :]]}
    return record.by_objective(j).described(header)


def withdrawn_values(record: Ledger) -> dict[int, tuple[float, ...]]:
    """The values that withdrawn trials had, by their ids."""
    gone = (trial for trial in record.trials if trial.status is Status.WITHDRAWN and trial.former)
    return {trial.id: trial.former[-1].values for trial in gone if trial.former[-1].values}


def names_of_values(record: Ledger) -> list[str]:
    """The names of the objectives, or "value", or "value 0", "value 1", ..."""
    given = record.header.get("objectives")
    if isinstance(given, list) and len(given) == record.k and all(isinstance(name, str) for name in given):
        return given
    return ["value"] if record.k == 1 else [f"value {j}" for j in range(record.k)]


def finished_trials(trials: Sequence[Trial]) -> list[Trial]:
    """The trials that are complete or have failed."""
    return [trial for trial in trials if trial.status in (Status.COMPLETE, Status.FAILED)]


def first_values(trials: Sequence[Trial]) -> np.ndarray:
    """The first value of each trial in the user's sign; NaN without one (n)."""
    return np.array([np.nan if trial.value is None else trial.value for trial in trials], dtype=float)


def some_of(trials: Sequence[Trial], direction: Direction, most: int = MOST) -> list[Trial]:
    """At most so many trials in order: a third the best, a third the newest, the others evenly."""
    return [trials[k] for k in thinned(sign_of(direction) * first_values(trials), most)]


def thinned(values: np.ndarray, most: int) -> np.ndarray:
    """The indices of at most so many values (to minimise, NaN for none), ascending: see `some_of`."""
    n, third = len(values), most // 3
    if n <= most:
        return np.arange(n)
    best = np.argsort(values, kind="stable")[:third]  # NaN is last
    return np.unique(np.concatenate([best, np.arange(n - third, n), np.arange(0, n, -(-n // third))]))
