"""`ObservationsView`: what can be read of observations."""

import math
import operator
from collections.abc import Hashable, Mapping
from copy import copy
from hashlib import blake2b
from itertools import chain, zip_longest
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from deepbore.compute.numerics import smallest
from deepbore.data.budget import Budget
from deepbore.data.buffers import Buffers, least
from deepbore.data.directions import Direction, sign_of
from deepbore.data.merit import total_violation
from deepbore.data.preferences import Pair, check_directions
from deepbore.data.reading import trials_of
from deepbore.data.repeats import Averages, distinct_rows, first_among
from deepbore.data.rows import Rows
from deepbore.data.rungs import best_by_budget
from deepbore.data.tally import Tally
from deepbore.data.trial import Trial
from deepbore.errors import SettingError, TrialError
from deepbore.space import SearchSpace

LONGEST_IDENTITY = 64  # bytes that are kept as they are; of longer ones a digest without known collisions


class ObservationsView(Rows):
    """The reading half of `Observations`: rows of the buffers, what is counted along, and records of trials.

    Args:
        space: the search space.
        directions: "minimize" or "maximize" for each of the k values.
        budget: what a trial may spend; None where there are no budgets.
        by_preference: whether trials are compared, and have utilities for values.
    """

    def __init__(
        self,
        space: SearchSpace,
        directions: tuple[Direction, ...],
        budget: Budget | None = None,
        by_preference: bool = False,
    ):
        if by_preference:
            check_directions(directions)
        self.space, self.directions, self.budget = space, directions, budget
        self.by_preference = by_preference
        self._signs = [sign_of(direction) for direction in directions]
        self._rows = Buffers(
            points=(len(space), torch.float64),
            values=(len(directions), torch.float64),
            constraints=(0, torch.float64),
            budgets=(None, torch.float64),
            tasks=(None, torch.int32),
            status=(None, torch.int8),
            noise=(0, torch.float64),
            first=(None, torch.int64),
        )
        self._tally = Tally()
        self._seen: dict[Hashable, int] = {}  # configurations of this run, and the first row of each
        self._pairs: tuple[Pair, ...] = ()
        self.resumed: dict[int, int] = {}  # row -> the row that it continues
        self._attributes: dict[int, Mapping[str, Any]] = {}
        self._reasons: dict[int, str] = {}
        self.averages: Averages | None = None  # what `evaluated` goes on from

    # --- what is counted along ------------------------------------------------------------------------------

    @property
    def k(self) -> int:
        """How many values an outcome has."""
        return len(self.directions)

    @property
    def direction(self) -> Direction:
        """The direction of the first value."""
        return self.directions[0]

    @property
    def n_asked(self) -> int:
        """How many rows were reserved, told since or not."""
        return self._tally.n_asked

    @property
    def pending_rows(self) -> Tensor:
        """Numbers of the trials that were asked for and not told, in order."""
        return torch.from_numpy(self._tally.pending).to(self.points.device)

    @property
    def n_since_best(self) -> int:
        """How many trials were told, failures included, since a better one was, or earlier results were added."""
        return self._tally.n_since_best

    @property
    def n_failed(self) -> int:
        """How many trials have failed."""
        return self._tally.n_failed

    @property
    def n_complete(self) -> int:
        """How many trials have a value."""
        return self._tally.n_complete

    @property
    def n_distinct(self) -> int:
        """How many distinct configurations stand in the rows of this run."""
        return len(self._seen)

    @property
    def has_repeats(self) -> bool:
        """Whether a configuration stands in several rows of this run."""
        if len(self._seen) == len(self):  # one row each: the usual case costs nothing
            return False
        return bool((self.first_rows != torch.arange(len(self), device=self.first_rows.device)).any())

    @property
    def preferences(self) -> tuple[Pair, ...]:
        """The comparisons in the order of telling: rows of the preferred trial and of the other one."""
        return self._pairs

    @property
    def n_left(self) -> float:
        """How many configurations of the space no trial of this run has had; infinite unless it is finite."""
        if not self.space.is_fixed or math.isinf(self.space.cardinality):
            return self.space.cardinality - self.n_distinct
        own = self.points[self.tasks == 0]
        return self.space.cardinality - len(set(self.space.identify(own[self.space.permitted(own)])))

    @property
    def task_names(self) -> tuple[str, ...]:
        """Names of the earlier tasks, number 1 first."""
        return self._tally.task_names

    @property
    def n_earlier(self) -> int:
        """How many rows are of earlier tasks."""
        return self._tally.n_earlier

    @property
    def sorted_values(self) -> np.ndarray:
        """First values to minimise of this run's complete trials, ascending."""
        return self._tally.sorted_values

    @property
    def n_beaten(self) -> int:
        """How many trials without a row here count as equal to the worst value when a threshold is found."""
        return self._tally.n_beaten

    @property
    def best(self) -> Trial | None:
        """The first feasible trial of this run with the best value, at the largest budget that has any; or None.

        Raises:
            SettingError: with several objectives.
        """
        if self.k > 1:
            raise SettingError(
                f"a run with {self.k} objectives has no single best trial. Look at `study.pareto_front`."
            )
        return None if self._tally.best is None else self.trial(self._tally.best[0])

    # --- looking closer ----------------------------------------------------------------------------------------------

    def best_rows(self, k: int) -> Tensor:
        """Rows of up to k distinct configurations, those of the best complete trials, best first: centres of a search.

        Feasible trials come before infeasible ones, and these in the order of their violation (Deb 2000). Several
        objectives, and earlier tasks, whose values can't be compared, take turns: the best row in each, the second
        best in each, ..., this run's first value first. Larger budgets come before smaller ones.

        References:
            Deb, An efficient constraint handling method for genetic algorithms, CMAME 186 (2000).
        """
        k = min(k, self.n_complete)
        if self.budget is not None:
            return best_by_budget(self, self.budget, k)
        looked_at, rows = k, self._best(k)
        if not self.has_repeats:
            return rows
        while len(distinct := distinct_rows(rows, self.first_rows)) < k and looked_at < self.n_complete:
            looked_at = min(2 * looked_at, self.n_complete)
            rows = self._best(looked_at)
        return distinct[:k]

    def _best(self, k: int) -> Tensor:
        """As `best_rows`, without budgets, of trials that may have the same configuration."""
        tasks = range(len(self.task_names) + 1)
        ranked = [self._ranked(column, task, k) for task in tasks for column in range(self.k)]
        if len(ranked) == 1:
            return ranked[0]
        dealt = chain.from_iterable(zip_longest(*(rows.tolist() for rows in ranked)))
        distinct = [row for row in dict.fromkeys(dealt) if row is not None][:k]
        return torch.tensor(distinct, dtype=torch.long, device=self.values.device)

    def of_task(self, task: int) -> Self:
        """The rows of one task alone, as observations that know of no other: to look at, not to change.

        Task 0 is this run, t the one named `task_names[t - 1]`. Where no task is known, these observations as such.
        """
        if not self.task_names:
            return self
        rows = (self.tasks == task).nonzero().squeeze(-1)
        names = ("n_asked", "n_since_best", "sorted_values") if task == 0 else ()
        part = self.part(rows, **{name: getattr(self, name) for name in names})
        part._seen = self._seen if task == 0 else {}
        return part

    def part(self, rows: Tensor, **counted: Any) -> Self:
        """Some rows as observations that know of no others: to label or to look at, not to change.

        Args:
            rows: numbers of m rows, ascending, all of this run or all of one earlier task.
            counted: what the rows don't tell of their `Tally`, or tell at a cost.
        """
        part = copy(self)
        part._rows = self._rows.take(rows)
        part.tasks.zero_()
        part.first_rows.copy_(first_among(rows, part.first_rows))
        status, values, feasible = (each.cpu().numpy() for each in (part.status, part.values[:, 0], part.feasible))
        part._tally = Tally.of_rows(status, values, feasible, **counted)
        part.averages, part._seen = None, {}  # what comes again is looked for among these rows
        part._attributes, part._reasons = _among(rows, self._attributes), _among(rows, self._reasons)
        return part

    def trial(self, row: int) -> Trial:
        """The record of one row.

        Raises:
            TrialError: if there is no such row.
        """
        return trials_of(self, [self._checked(row)])[0]

    def trials(self) -> list[Trial]:
        """The records of all rows, read together."""
        return trials_of(self, range(len(self)))

    def attributes_of(self, row: int) -> Mapping[str, Any]:
        """What else the outcome of a row has brought, by name."""
        return self._attributes.get(row, {})

    def reason_of(self, row: int) -> str | None:
        """Why a row has no value, where that was told."""
        return self._reasons.get(row)

    def to_user(self, value: Any, column: int | slice = 0) -> Any:
        """A minimised value (or array of them) of one objective, or of several, in the user's sign."""
        return value * self._signs[column]

    def unseen(self, points: Tensor) -> list[bool]:
        """Whether each point's configuration (n x d) stands in no row of this run yet."""
        return [identity not in self._seen for identity in self.identities(points)]

    def identities(self, points: Tensor) -> list[Hashable]:
        """What tells configurations apart, in few bytes: a million of them are kept (n)."""
        return [
            blake2b(each, digest_size=16).digest() if isinstance(each, bytes) and len(each) > LONGEST_IDENTITY else each
            for each in self.space.identify(points)
        ]

    # --- within ------------------------------------------------------------------------------------------------------

    def _checked(self, row: int) -> int:
        try:
            if isinstance(row, bool):
                raise TypeError
            row = operator.index(row)
        except TypeError:
            raise TrialError(f"a trial is named by its id, a whole number, but got {row!r:.200}.") from None
        if not 0 <= row < len(self):
            known = f"trials 0 ... {len(self) - 1} exist" if len(self) else "no trial exists yet"
            raise TrialError(f"{known}, but got {row}. Tell what `ask` gave, or `add` it.")
        return row

    def _ranked(self, column: int, task: int, k: int) -> Tensor:
        """Rows of up to k complete trials of a task, best first by one value."""
        value, c = self.values[:, column], self.constraints.shape[1]
        if not c and not self.task_names:
            return smallest(value, k)
        own, feasible = self.tasks == task, self.feasible
        rows = least(torch.where(own & feasible, value, math.inf), k)
        if not c or len(rows) == k:
            return rows
        violation = total_violation(self, task)
        others = own & ~feasible & value.isfinite()
        return torch.cat([rows, least(torch.where(others, violation, math.inf), k - len(rows))])


def _among(rows: Tensor, notes: Mapping[int, Any]) -> dict[int, Any]:
    """Notes by row, of some rows alone, by their place among these (ascending)."""
    numbers = torch.tensor(list(notes), dtype=torch.long, device=rows.device)
    found = torch.isin(numbers, rows).tolist()
    places = torch.searchsorted(rows, numbers).tolist()
    return {place: each for place, each, is_in in zip(places, notes.values(), found, strict=True) if is_in}
