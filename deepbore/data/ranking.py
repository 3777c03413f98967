"""The ranking of trials, and of the rows of a table. Light to import: looking at a run of one objective needs no NumPy.

Trials are ranked by feasibility, then by budget (the largest first), then by value, then by number. Infeasible trials
are ranked by their violation (Deb 2000). Trials of earlier tasks are not compared with those of the run. For arrays of
values see `deepbore.data.array_ranking`.

References:
    Deb, An efficient constraint handling method for genetic algorithms, CMAME 186 (2000).
"""

import math
from collections.abc import Iterable, Sequence
from itertools import chain, groupby, product, zip_longest
from typing import TYPE_CHECKING, NamedTuple

from deepbore.data.trial import Direction, Status, Trial, sign_of
from deepbore.errors import SettingError

if TYPE_CHECKING:
    import numpy as np
    from torch import Tensor

    from deepbore.data.table import Table

Key = tuple[float, float]  # minus the budget (0 where there are none), and the value to minimise: the less the better


# --- among trials ----------------------------------------------------------------------------------------------------


def is_feasible(trial: Trial) -> bool:
    """Whether a trial has a value and violates no constraint."""
    return trial.value is not None and all(each <= 0 for each in trial.constraints or ())


def may_be_best(trial: Trial) -> bool:
    """Whether a trial is a feasible one of this run."""
    return trial.task is None and is_feasible(trial)


def best_trial(trials: Iterable[Trial], directions: tuple[Direction, ...], has_budget: bool) -> Trial | None:
    """The first trial with the least key; None while there is none that may be the best.

    Args:
        trials: of one run.
        directions: of their values.
        has_budget: whether the run has a budget; without one, what outcomes say of theirs ranks no trial.

    Raises:
        SettingError: with several objectives.
    """
    require_one_objective(directions, "its front (`deepbore best`)")
    sign = sign_of(directions[0])

    def key(trial: Trial) -> Key:
        return -(trial.budget or 0.0) if has_budget else 0.0, sign * (trial.value or 0.0)

    return min(filter(may_be_best, trials), key=key, default=None)


def require_one_objective(directions: Sequence[Direction], instead: str) -> None:
    """Raises SettingError, which names what to look at instead, for several objectives."""
    if len(directions) > 1:
        raise SettingError(f"a run with {len(directions)} objectives has no single best trial. Look at {instead}.")


def front(trials: Iterable[Trial], directions: tuple[Direction, ...]) -> list[Trial]:
    """The trials that no other beats in one value without being worse in another, by their first value.

    Args:
        trials: of one run; only those that may be the best count.
        directions: of their values.
    """
    ranked = in_order(trials, directions)
    if not ranked:
        return []
    import numpy as np

    from deepbore.data.array_ranking import non_dominated

    on_front = non_dominated(np.array(list(ranked)))
    return [trial for trial, stays in zip(ranked.values(), on_front, strict=True) if stays]


def in_order(trials: Iterable[Trial], directions: tuple[Direction, ...]) -> dict[tuple[float, ...], Trial]:
    """Trials that may be the best, by their values to minimise, ascending; of equal ones the first."""
    signs = [sign_of(direction) for direction in directions]
    among = filter(may_be_best, trials)
    keyed = sorted(((*(s * v for s, v in zip(signs, t.values or (), strict=True)), -t.id), t) for t in among)
    return {tuple(values): trial for (*values, _), trial in keyed}


def best_among(trials: Sequence[Trial], direction: Direction, has_budget: bool) -> "np.ndarray":
    """The value of the best trial after each (n), as `best_trial` finds it, in the user's sign; NaN before the first.

    Args:
        trials: n of one objective value, in the order of evaluation.
        direction: of the values.
        has_budget: whether the run has a budget.
    """
    from deepbore.data.array_ranking import best_so_far  # NumPy

    sign = sign_of(direction)
    values = [sign * trial.value if trial.value is not None and may_be_best(trial) else math.nan for trial in trials]
    return sign * best_so_far(values, [trial.budget or 0.0 for trial in trials] if has_budget else None)


# --- among the rows of a table ---------------------------------------------------------------------------------------


class _Leader(NamedTuple):
    """The best row after some entries of `Table.finished`."""

    revision: int
    entries: int
    key: Key = (math.inf, math.inf)
    row: int = -1
    n_since: int = 0  # trials that were told since a better one was, or rows were imported


class Ranking:
    """The rows of a table in the order of merit. Nothing is ranked before it is asked for.

    Args:
        table: the rows.
    """

    def __init__(self, table: "Table"):
        self.table = table
        self._leader: _Leader | None = None

    @property
    def best_row(self) -> int | None:
        """The best row; None while there is none.

        Raises:
            SettingError: with several objectives.
        """
        require_one_objective(self.table.directions, "`study.pareto_front`")
        leader = self._current()
        return None if leader.row < 0 else leader.row

    @property
    def n_since_best(self) -> int:
        """How many trials were told, failures included, since a better one was, or earlier results were added."""
        return self._current().n_since

    @property
    def may_be_best(self) -> "Tensor":
        """Which rows are feasible ones of this run, at the largest budget that has any (n booleans)."""
        table = self.table
        among = table.feasible & (table.tasks == 0)
        if table.budget is None or not bool(among.any()):
            return among
        return among & (table.budgets == table.budgets[among].max())

    def _current(self) -> _Leader:
        """The leader, brought up to date by the entries that are new."""
        table, leader = self.table, self._leader
        if leader is None or leader.revision != table.revision:
            leader = _Leader(table.revision, 0)
            if table.by_preference:  # whose values change together; trials that were told have failed
                leader = self._best_of(range(len(table)), leader)
        new = table.finished[leader.entries :]
        for _, group in groupby(new, key=type):
            entries = list(group)
            for rows in (each for each in entries if isinstance(each, range)):
                leader = self._best_of(rows, leader)._replace(n_since=0)
            if told := [each for each in entries if isinstance(each, int)]:
                leader = self._after_telling(told, leader)
        self._leader = leader._replace(entries=leader.entries + len(new))
        return self._leader

    def _after_telling(self, rows: list[int], leader: _Leader) -> _Leader:
        """The leader after some rows were told, one after the other."""
        table, at = self.table, self.table.no_rows.new_tensor(rows)
        among = (table.status[at] == Status.COMPLETE) & ~(table.constraints[at] > 0).any(-1)
        budgets = table.budgets[at].tolist() if table.budget is not None else [0.0] * len(rows)
        for row, counts, budget, value in zip(rows, among.tolist(), budgets, table.values[at, 0].tolist(), strict=True):
            key = (-budget, value)
            n_since = 0 if counts and key < leader.key else leader.n_since + 1
            is_better = counts and (*key, row) < (*leader.key, leader.row)
            leader = leader._replace(n_since=n_since)
            leader = leader._replace(key=key, row=row) if is_better else leader
        return leader

    def _best_of(self, rows: range, leader: _Leader) -> _Leader:
        """The best of a leader and some rows, the first of equal ones."""
        table, part = self.table, slice(rows.start, rows.stop)
        among = (table.status[part] == Status.COMPLETE) & ~(table.constraints[part] > 0).any(-1)
        among &= table.tasks[part] == 0
        if not bool(among.any()):
            return leader
        budget = 0.0
        if table.budget is not None:
            budgets = table.budgets[part]
            budget = float(budgets[among].max())
            among &= budgets == budget
        values = table.values[part, 0].masked_fill(~among, math.inf)
        place = int(values.argmin())
        key, row = (-budget, float(values[place])), rows.start + place
        return leader._replace(key=key, row=row) if (*key, row) < (*leader.key, leader.row) else leader

    # --- several rows ------------------------------------------------------------------------------------------------

    def best_rows(self, k: int) -> "Tensor":
        """Rows of up to k distinct configurations, those of the best complete trials, best first: centres of a search.

        Several objectives, and earlier tasks, whose values can't be compared, take turns: the best row in each, the
        second best in each, ..., this run's first value first.
        """
        table = self.table
        n_complete = table.statistics.n_complete
        k = looked_at = min(k, n_complete)
        if table.budget is not None:
            return table.distinct(self._by_budget(k))[:k]
        rows = self._dealt(k)
        if not table.has_repeats:
            return rows
        while len(distinct := table.distinct(rows)) < k and looked_at < n_complete:
            looked_at = min(2 * looked_at, n_complete)
            rows = self._dealt(looked_at)
        return distinct[:k]

    def best_first(self, rows: "Tensor") -> "Tensor":
        """Complete rows (m) in the order of merit: feasible ones by their first value, then the others."""
        violation = self._violation()[rows]
        violated = violation > 0
        merit = violation.where(violated, self.table.values[rows, 0])
        order = merit.argsort(stable=True)
        if bool(violated.any()):
            order = order[violated[order].long().argsort(stable=True)]
        return rows[order]

    def front_rows(self) -> "Tensor":
        """Rows of this run that no other beats: of the feasible ones, or of all complete ones while none is."""
        from deepbore.data.array_ranking import non_dominated  # NumPy

        table = self.table
        complete = (table.status == Status.COMPLETE) & (table.tasks == 0)
        feasible = complete & table.feasible
        rows = (feasible if bool(feasible.any()) else complete).nonzero().squeeze(-1)
        on_front = non_dominated(table.values[rows].cpu().numpy())
        return rows[rows.new_tensor(on_front.nonzero()[0])]

    def _by_budget(self, k: int) -> "Tensor":
        """At least k rows, if there are any: feasible ones of the largest budgets first, then infeasible ones."""
        table = self.table
        assert table.budget is not None
        feasible, complete = table.feasible, table.status == Status.COMPLETE
        found = table.no_rows
        for wanted, rung in product((feasible, complete & ~feasible), reversed(table.budget.rungs)):
            if len(table.distinct(found)) >= k:
                break
            there = (wanted & (table.budgets == rung)).nonzero().squeeze(-1)
            found = found.new_tensor([*found.tolist(), *self.best_first(there)[: 2 * k].tolist()])
        return found

    def _dealt(self, k: int) -> "Tensor":
        """As `best_rows`, without budgets, of trials that may have the same configuration."""
        tasks = range(len(self.table.statistics.task_names) + 1)
        ranked = [self._ranked(column, task, k) for task in tasks for column in range(self.table.k)]
        if len(ranked) == 1:
            return ranked[0]
        dealt = chain.from_iterable(zip_longest(*(rows.tolist() for rows in ranked)))
        return self.table.no_rows.new_tensor([row for row in dict.fromkeys(dealt) if row is not None][:k])

    def _ranked(self, column: int, task: int, k: int) -> "Tensor":
        """Rows of up to k complete trials of a task, best first by one value."""
        table = self.table
        value, c = table.values[:, column], table.constraints.shape[1]
        if not c and not table.statistics.task_names:
            return table.least_values(column, k)
        own, feasible = table.tasks == task, table.feasible
        rows = table.least(value.masked_fill(~(own & feasible), math.inf), k)
        if not c or len(rows) == k:
            return rows
        others = own & ~feasible & value.isfinite()
        violated = self._violation(task).masked_fill(~others, math.inf)
        return rows.new_tensor([*rows.tolist(), *table.least(violated, k - len(rows)).tolist()])

    def _violation(self, task: int = 0) -> "Tensor":
        """By how much each row of a task violates all constraints together, 0 where that is not known (n), finite.

        Each constraint counts by its median violation, so that its unit does not matter.
        """
        table = self.table
        of_task = (table.tasks == task)[:, None]
        violated = table.constraints.masked_fill(~of_task, 0.0).clamp(min=0).nan_to_num()
        units = [column[column > 0].median() if bool((column > 0).any()) else 1.0 for column in violated.T]
        return (violated / violated.new_tensor(units)).sum(-1).nan_to_num()
