"""`Tally`: what is counted along with the observations, so that no suggestion costs a look at all rows."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from deepbore.data.outcomes import Status


@dataclass(frozen=True)
class Tally:
    """Counts, the ranking and the best of the rows so far; each change makes a new one.

    Attributes:
        n_asked: rows that were reserved.
        pending: numbers of those that are not told yet, ascending.
        n_failed: rows that have failed.
        n_complete: rows that have values.
        n_earlier: rows of earlier tasks.
        sorted_values: first values to minimise of this run's complete rows, ascending.
        best: row and first value to minimise of this run's best feasible row, the first of equal ones; of those of the
            highest rung, where there are budgets.
        best_rung: the number of that rung; 0 where there are none.
        task_names: of the earlier tasks.
        n_since_best: trials that were told, failures included, since a better one was or rows were added.
        n_beaten: trials without a row here that thresholds count as equal to the worst value (see `RungLabels`).
    """

    n_asked: int = 0
    pending: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    n_failed: int = 0
    n_complete: int = 0
    n_earlier: int = 0
    sorted_values: np.ndarray = field(default_factory=lambda: np.empty(0))
    best: tuple[int, float] | None = None
    best_rung: int = 0
    task_names: tuple[str, ...] = ()
    n_since_best: int = 0
    n_beaten: int = 0

    def after_asking(self, rows: np.ndarray) -> "Tally":
        """With these rows reserved."""
        return replace(self, n_asked=self.n_asked + len(rows), pending=np.append(self.pending, rows))

    def after_failing(self, row: int) -> "Tally":
        """With one more failure."""
        return replace(self._without(row), n_failed=self.n_failed + 1, n_since_best=self.n_since_best + 1)

    def after_telling(self, row: int, value: float, is_feasible: bool, rung: int = 0) -> "Tally":
        """With one more row complete."""
        ranked = np.insert(self.sorted_values, np.searchsorted(self.sorted_values, value), value)
        told = replace(self._without(row), n_complete=self.n_complete + 1, sorted_values=ranked)
        is_better = is_feasible and (self.best is None or (-rung, value) < (-self.best_rung, self.best[1]))
        told = replace(told, n_since_best=0 if is_better else self.n_since_best + 1)
        return told._with_best(row, value, rung) if is_feasible else told

    def after_preferring(self, rows: np.ndarray, values: np.ndarray) -> "Tally":
        """With the values to minimise of all rows that were compared (m and m, m >= 1), and of no others."""
        best = int(values.argmin())
        return replace(
            self._without(rows),
            n_complete=len(rows),
            sorted_values=np.sort(values),
            best=(int(rows[best]), float(values[best])),
        )

    def after_adding(
        self, start: int, values: np.ndarray, feasible: np.ndarray, task: str | None, rungs: np.ndarray | None = None
    ) -> "Tally":
        """With m rows from elsewhere.

        Args:
            start: number of the first.
            values: first values to minimise, NaN for failures (m).
            feasible: whether no constraint is violated (m).
            task: name of the earlier task; None for this run.
            rungs: numbers of the rungs (m); None where there are no budgets.
        """
        complete = ~np.isnan(values)
        n_complete = self.n_complete + int(complete.sum())
        n_failed = self.n_failed + int((~complete).sum())
        counted = replace(self, n_failed=n_failed, n_complete=n_complete, n_since_best=0)
        if task is not None:
            counted, known = replace(counted, n_earlier=self.n_earlier + len(values)), task in self.task_names
            return counted if known else replace(counted, task_names=(*self.task_names, task))
        ranked = np.sort(np.concatenate([self.sorted_values, values[complete]]))
        together = replace(counted, sorted_values=ranked)
        among = complete & feasible
        if not among.any():
            return together
        rung = 0 if rungs is None else int(rungs[among].max())
        row = int(np.where(among if rungs is None else among & (rungs == rung), values, np.inf).argmin())
        return together._with_best(start + row, float(values[row]), rung)

    @classmethod
    def of_rows(cls, status: np.ndarray, values: np.ndarray, feasible: np.ndarray, **counted: Any) -> "Tally":
        """That of rows that are all of one task and one rung.

        Args:
            status: their codes (m).
            values: their first values to minimise, NaN where there is none (m).
            feasible: whether a row is complete and no constraint is violated (m).
            counted: attributes that these don't tell; `sorted_values`, where they are known.
        """
        complete = ~np.isnan(values)
        if "sorted_values" not in counted:
            counted["sorted_values"] = np.sort(values[complete])
        best = int(np.where(feasible, values, np.inf).argmin()) if feasible.any() else None
        return cls(
            pending=np.flatnonzero(status == Status.PENDING),
            n_failed=int((status == Status.FAILED).sum()),
            n_complete=int(complete.sum()),
            best=None if best is None else (best, float(values[best])),
            **counted,
        )

    def _without(self, rows: int | np.ndarray) -> "Tally":
        """With these rows pending no longer."""
        return replace(self, pending=self.pending[~np.isin(self.pending, rows)])

    def _with_best(self, row: int, value: float, rung: int) -> "Tally":
        """With this feasible row as the best, if it is."""
        better = self.best is None or (-rung, value, row) < (-self.best_rung, self.best[1], self.best[0])
        return replace(self, best=(row, value), best_rung=rung) if better else self
