"""`Centres`: the rows around which a search looks: those of the best configurations, best first."""

import math
from itertools import chain, product, zip_longest
from typing import TYPE_CHECKING

from deepbore.data.trial import Status

if TYPE_CHECKING:
    from torch import Tensor

    from deepbore.data.columns import Columns


class Centres:
    """The rows of a table in the order of merit, several objectives, tasks and budgets together.

    Infeasible rows are ranked by their violation, after the feasible ones (Deb 2000).

    Args:
        table: the rows.

    References:
        Deb, An efficient constraint handling method for genetic algorithms, CMAME 186 (2000).
    """

    def __init__(self, table: "Columns"):
        self.table = table

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
        tasks = range(len(self.table.ledger.task_names) + 1)
        ranked = [self._ranked(column, task, k) for task in tasks for column in range(self.table.k)]
        if len(ranked) == 1:
            return ranked[0]
        dealt = chain.from_iterable(zip_longest(*(rows.tolist() for rows in ranked)))
        return self.table.no_rows.new_tensor([row for row in dict.fromkeys(dealt) if row is not None][:k])

    def _ranked(self, column: int, task: int, k: int) -> "Tensor":
        """Rows of up to k complete trials of a task, best first by one value."""
        table = self.table
        value, c = table.values[:, column], table.constraints.shape[1]
        if not c and not table.ledger.task_names:
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
