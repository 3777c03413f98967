"""The ranking of trials: one for studies, for the command line and for pictures. No torch.

Trials are ranked by feasibility, then by budget (the largest first), then by value, then by number. Trials of earlier
tasks are not compared with those of the run. For arrays of values see `deepbore.data.array_ranking`; for what a search
looks around, infeasible trials included, see `deepbore.data.centres`.
"""

import math
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any, NamedTuple, Protocol

import numpy as np

from deepbore.data.array_ranking import best_so_far, non_dominated
from deepbore.data.trial import Budget, Direction, Status, Trial, sign_of
from deepbore.errors import SettingError

Array = np.ndarray[Any, np.dtype[Any]]
Key = tuple[float, float]  # minus the budget (0 where there are none), and the value to minimise: the less the better


# --- among trials ----------------------------------------------------------------------------------------------------


def is_feasible(trial: Trial) -> bool:
    """Whether a trial has a value and violates no constraint."""
    return trial.value is not None and all(each <= 0 for each in trial.constraints or ())


def may_be_best(trial: Trial) -> bool:
    """Whether a trial is a feasible one of this run."""
    return trial.task is None and is_feasible(trial)


def require_one_objective(directions: Sequence[Direction], instead: str) -> None:
    """Raises SettingError, which names what to look at instead, for several objectives."""
    if len(directions) > 1:
        raise SettingError(f"a run with {len(directions)} objectives has no single best trial. Look at {instead}.")


def in_order(trials: Iterable[Trial], directions: tuple[Direction, ...]) -> dict[tuple[float, ...], Trial]:
    """Trials that may be the best, by their values to minimise, ascending; of equal ones the first."""
    signs = [sign_of(direction) for direction in directions]
    among = filter(may_be_best, trials)
    keyed = sorted(((*(s * v for s, v in zip(signs, t.values or (), strict=True)), -t.id), t) for t in among)
    return {tuple(values): trial for (*values, _), trial in keyed}


def best_among(trials: Sequence[Trial], direction: Direction, has_budget: bool) -> Array:
    """The value of the best trial after each (n), as `Ranking` finds it, in the user's sign; NaN before the first.

    Args:
        trials: n of one objective value, in the order of evaluation.
        direction: of the values.
        has_budget: whether the run has a budget.
    """
    sign = sign_of(direction)
    values = [sign * trial.value if trial.value is not None and may_be_best(trial) else math.nan for trial in trials]
    return sign * best_so_far(values, [trial.budget or 0.0 for trial in trials] if has_budget else None)


# --- among the rows of a ledger --------------------------------------------------------------------------------------


class Rows(Protocol):
    """What is ranked: n rows with k values to minimise; see `deepbore.data.ledger.Ledger`."""

    directions: tuple[Direction, ...]
    budget: Budget | None
    by_preference: bool
    finished: list[int | range]
    revision: int

    def __len__(self) -> int: ...
    @property
    def values(self) -> Array: ...
    @property
    def constraints(self) -> Array: ...
    @property
    def budgets(self) -> Array: ...
    @property
    def tasks(self) -> Array: ...
    @property
    def status(self) -> Array: ...


class _Leader(NamedTuple):
    """The best row after some entries of `Rows.finished`."""

    revision: int
    entries: int
    key: Key = (math.inf, math.inf)
    row: int = -1
    n_since: int = 0  # trials that were told since a better one was, or rows were imported


class Ranking:
    """The rows of a run in the order of merit. Nothing is ranked before it is asked for.

    Args:
        rows: of the run.
    """

    def __init__(self, rows: Rows):
        self.rows = rows
        self._leader: _Leader | None = None

    @property
    def best_row(self) -> int | None:
        """The best row; None while there is none.

        Raises:
            SettingError: with several objectives.
        """
        require_one_objective(self.rows.directions, "`study.pareto_front`")
        leader = self._current()
        return None if leader.row < 0 else leader.row

    @property
    def n_since_best(self) -> int:
        """How many trials were told, failures included, since a better one was, or earlier results were added."""
        return self._current().n_since

    @property
    def may_be_best(self) -> Array:
        """Which rows are feasible ones of this run, at the largest budget that has any (n booleans)."""
        rows = self.rows
        among: Array = self._feasible(slice(None)) & (rows.tasks == 0)
        if rows.budget is None or not among.any():
            return among
        found: Array = among & (rows.budgets == rows.budgets[among].max())
        return found

    @property
    def front_rows(self) -> Array:
        """Rows of this run that no other beats: of the feasible ones, or of all complete ones while none is."""
        rows = self.rows
        complete = (rows.status == Status.COMPLETE) & (rows.tasks == 0)
        feasible = complete & self._feasible(slice(None))
        among = np.flatnonzero(feasible if feasible.any() else complete)
        return among[non_dominated(rows.values[among])]

    def _feasible(self, part: slice | list[int]) -> Array:
        """Which of some rows are complete and violate no constraint (booleans)."""
        rows = self.rows
        found: Array = (rows.status[part] == Status.COMPLETE) & ~(rows.constraints[part] > 0).any(-1)
        return found

    def _current(self) -> _Leader:
        """The leader, brought up to date by the entries that are new."""
        rows, leader = self.rows, self._leader
        if leader is None or leader.revision != rows.revision:
            leader = _Leader(rows.revision, 0)
            if rows.by_preference:  # whose values change together; trials that were told have failed
                leader = self._best_of(range(len(rows)), leader)
        new = rows.finished[leader.entries :]
        for _, group in groupby(new, key=type):
            entries = list(group)
            for several in (each for each in entries if isinstance(each, range)):
                leader = self._best_of(several, leader)._replace(n_since=0)
            if told := [each for each in entries if isinstance(each, int)]:
                leader = self._after_telling(told, leader)
        self._leader = leader._replace(entries=leader.entries + len(new))
        return self._leader

    def _after_telling(self, told: list[int], leader: _Leader) -> _Leader:
        """The leader after some rows were told, one after the other."""
        rows, among = self.rows, self._feasible(told).tolist()
        budgets = rows.budgets[told].tolist() if rows.budget is not None else [0.0] * len(told)
        for row, counts, budget, value in zip(told, among, budgets, rows.values[told, 0].tolist(), strict=True):
            key = (-budget, value)
            n_since = 0 if counts and key < leader.key else leader.n_since + 1
            is_better = counts and (*key, row) < (*leader.key, leader.row)
            leader = leader._replace(n_since=n_since)
            leader = leader._replace(key=key, row=row) if is_better else leader
        return leader

    def _best_of(self, several: range, leader: _Leader) -> _Leader:
        """The best of a leader and some rows, the first of equal ones."""
        rows, part = self.rows, slice(several.start, several.stop)
        among = self._feasible(part) & (rows.tasks[part] == 0)
        if not among.any():
            return leader
        budget = 0.0
        if rows.budget is not None:
            budget = float(rows.budgets[part][among].max())
            among &= rows.budgets[part] == budget
        values = np.where(among, rows.values[part, 0], math.inf)
        place = int(values.argmin())
        key, row = (-budget, float(values[place])), several.start + place
        return leader._replace(key=key, row=row) if (*key, row) < (*leader.key, leader.row) else leader
