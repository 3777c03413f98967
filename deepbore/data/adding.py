"""`AddedTrials`: the part of the observations that takes in earlier results."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch

from deepbore.data.added import Added
from deepbore.data.compared import ComparedTrials
from deepbore.data.counts import check_width
from deepbore.data.outcomes import Status
from deepbore.data.preferences import refuse_values
from deepbore.data.repeats import first_rows


class AddedTrials(ComparedTrials):
    """Trials that were not asked for: earlier results of this run, or of another task."""

    def add(
        self,
        columns: Mapping[str, Any],
        values: Any,
        *,
        constraints: Any = None,
        budgets: Any = None,
        task: str | None = None,
        noise: Any = None,
    ) -> None:
        """Appends earlier results, one or a million at once.

        Args:
            columns: name -> n native values (a dict of columns or a DataFrame); or one configuration.
            values: n values in the user's sign (n x k for several objectives; one, or k, for one configuration). NaN
                and infinite ones count as failed.
            constraints: n x c (c for one configuration); NaN in rows that have none.
            budgets: n, or one for all; NaN in rows that have none, which stands for the highest rung, if there are any.
            task: name of the earlier task that they are of. Its values are not compared with this run's, and its
                configurations may come again. None for this run.
            noise: standard deviations of the values, n, or one for all; NaN in rows that have none. Of one objective.

        Raises:
            PointError: for configurations outside the space.
            ShapeError: if there is not one value for each row.
            ValueTypeError: for what should be a number and is none, or another number of constraints than before.
            SettingError: for a budget that is no rung of this run, or a task beside budgets.

        Example:
            >>> from deepbore import Real, SearchSpace
            >>> from deepbore.data.observations import Observations
            >>> observations = Observations(SearchSpace({"x": Real(0, 1), "y": Real(0, 1)}))
            >>> observations.add({"x": 0.5, "y": 0.1}, 2.0)
            >>> observations.add({"x": [0.1, 0.2], "y": [0.3, 0.4]}, [1.0, float("nan")], task="last year")
            >>> observations.tasks.tolist(), observations.n_failed, observations.best.value
            ([0, 1, 1], 1, 2.0)
        """
        self.append(Added.read(self.space, self.k, columns, values, constraints, budgets, task, noise))

    def append(self, added: Added) -> None:
        """Appends what `Added.read` has checked."""
        if not len(added):
            return
        self.settle()
        added = self.appendable(added)
        self.commit(added.events(self.space), self._effect_of_adding(added))

    def appendable(self, added: Added) -> Added:
        """Earlier results with exact budgets; raises errors as `add` does, and changes nothing."""
        if self.budget is not None:
            added = added.on_rungs(self.budget)
        check_width(added.width, 0, self.constraints.shape[1])
        if self.by_preference:
            raise refuse_values("earlier results were added")
        return added

    def has(self, added: Added) -> bool:
        """Whether rows of this run have the configurations and values of earlier results, one after the other."""
        points, values = added.points.to(self.points.device), added.values * self._signs
        starts = (self.points == points[:1]).all(-1).nonzero().squeeze(-1).tolist() if len(added) else []
        blocks = (slice(start, start + len(added)) for start in starts if start + len(added) <= len(self))
        return any(
            torch.equal(self.points[rows], points)
            and np.array_equal(self.values[rows].cpu().numpy(), values, equal_nan=True)
            and not bool(self.tasks[rows].any())
            for rows in blocks
        )

    # --- within ------------------------------------------------------------------------------------------------------

    def _effect_of_adding(self, added: Added) -> Callable[[], None]:
        """What adding changes; the rows are written at once, where nobody sees them until they count."""
        start, end, own = len(self), len(self) + len(added), added.task is None
        values = added.values * self._signs
        rungs = None if self.budget is None else added.rungs(self.budget)
        tally = self._tally.after_adding(start, values[:, 0], added.feasible, added.task, rungs)
        identities = self.identities(added.points) if own else []
        seen, firsts = first_rows(self._seen, identities, start) if own else ({}, range(start, end))
        task = 0 if own else 1 + tally.task_names.index(str(added.task))
        status = torch.from_numpy(np.where(np.isnan(values[:, 0]), int(Status.FAILED), int(Status.COMPLETE)))
        budgets = math.nan if added.budgets is None else torch.from_numpy(added.budgets)
        self._rows.write(
            points=added.points,
            values=torch.from_numpy(values),
            budgets=budgets,
            tasks=task,
            status=status,
            constraints=math.nan,
            noise=math.nan,
            first=torch.tensor(firsts),
        )
        wide = self._rows.wide("constraints", added.width)
        if added.constraints is not None:
            wide[start:end] = torch.from_numpy(added.constraints).to(wide)
        noisy = self._rows.wide("noise", 0 if added.noise is None else 1)
        if added.noise is not None:
            noisy[start:end, 0] = torch.from_numpy(added.noise).to(noisy)

        def effect() -> None:
            self._rows.replace("constraints", wide)
            self._rows.replace("noise", noisy)
            self._seen.update(seen)
            self._tally, self._rows.n = tally, end

        return effect
