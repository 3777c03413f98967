"""`Observations`: every configuration asked for or reported so far, with its outcome or what became of it."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, SupportsFloat

import numpy as np
import torch
from torch import Tensor

from deepbore.data import writing
from deepbore.data.adding import AddedTrials
from deepbore.data.budget import Budget
from deepbore.data.counts import check_counts, with_own_budget
from deepbore.data.directions import Direction, checked_directions
from deepbore.data.journal import Journal
from deepbore.data.outcomes import Outcome, Status, as_attributes, as_budget, as_outcome
from deepbore.data.preferences import check_told
from deepbore.data.repeats import first_rows
from deepbore.data.trial import Trial
from deepbore.errors import TrialError
from deepbore.space import SearchSpace

__all__ = ["Direction", "Observations", "Status", "Trial"]


class Observations(AddedTrials):
    """n rows that are only ever appended to and told; their buffers grow by doubling.

    A row has values, constraints, a budget, a task, a status, and perhaps attributes and the reason of a failure. A
    change is written to the journal before it takes effect, and an interrupt leaves both or none.

    Args:
        space: the search space.
        directions: "minimize" or "maximize" for each of the k >= 1 objective values; a single one may stand alone.
            Values are turned at the door and minimised within.
        journal: where each event is written before it takes effect; None for nowhere.
        budget: cheap fidelities: every row has a rung's budget, and configurations come again on larger ones.
        by_preference: whether trials are compared (`prefer`), and have utilities for values, to be maximised.

    Raises:
        SettingError: for another direction, or none; or for preferences with other directions than "maximize".

    Example:
        >>> from deepbore import Real, SearchSpace
        >>> observations = Observations(SearchSpace({"x": Real(0, 1)}), "maximize")
        >>> observations.add({"x": [0.25, 0.5]}, [1.0, 3.0])
        >>> observations.best.params, observations.best.value, observations.values.tolist()
        ({'x': 0.5}, 3.0, [[-1.0], [-3.0]])
    """

    def __init__(
        self,
        space: SearchSpace,
        directions: Sequence[Direction] | Direction = ("minimize",),
        journal: Journal | None = None,
        budget: Budget | None = None,
        by_preference: bool = False,
    ):
        super().__init__(space, checked_directions(directions), journal, budget, by_preference)

    def reserve(
        self,
        points: Tensor,
        budget: SupportsFloat | Sequence[SupportsFloat] | None = None,
        resume_from: Sequence[int] | None = None,
    ) -> list[int]:
        """Appends pending rows (q x d) and returns their numbers.

        Args:
            points: q x d.
            budget: what each of them may spend, one for all or q of them; None for the lowest rung, or where there are
                no budgets.
            resume_from: rows of the same configurations that the points continue, q; None if they begin anew.

        Raises:
            SettingError: for a budget that is no rung.
            TrialError: for an unknown row to continue.
        """
        self.settle()
        params = self.space.decode(points)
        points = self.space.encode(params)
        start, end = len(self), len(self) + len(points)
        spent = self._to_spend(budget, len(points))
        resumed = {start + i: self._checked(row) for i, row in enumerate(resume_from or ())}
        identities = self.identities(points)
        seen, firsts = first_rows(self._seen, identities, start)
        self._rows.write(
            points=points,
            values=math.nan,
            constraints=math.nan,
            tasks=0,
            status=int(Status.PENDING),
            budgets=torch.tensor([math.nan if each is None else each for each in spent], dtype=torch.float64),
            noise=math.nan,
            first=torch.tensor(firsts),
        )
        tally = self._tally.after_asking(np.arange(start, end))
        rows = zip(range(start, end), params, spent, strict=True)
        asked = (writing.asked(row, each, spends, resumed.get(row)) for row, each, spends in rows)

        def effect() -> None:
            self._seen.update(seen)
            self.resumed.update(resumed)
            self._tally, self._rows.n = tally, end

        self.commit(asked, effect)
        return list(range(start, end))

    def tell(
        self,
        row: int | Trial,
        outcome: Outcome | SupportsFloat | Sequence[SupportsFloat] | None = None,
        *,
        failed: bool = False,
        reason: str | None = None,
    ) -> None:
        """Gives a pending row its outcome; NaN and infinite values count as failed.

        Args:
            row: number of the trial, or the trial itself.
            outcome: an `Outcome`, or the objective value, or k of them, in the user's sign.
            failed: that there is no value.
            reason: why there is none.

        Raises:
            TrialError: for an unknown trial, one told before, or one of another run.
            ValueTypeError: for a value that is no number, or not as many values or constraints as there must be.
        """
        self.settle()
        row, given = self.tellable(row, outcome, failed=failed, reason=reason)
        self.commit([writing.told(row, given)], self._effect_of(row, given))

    def tellable(
        self,
        row: int | Trial,
        outcome: Outcome | SupportsFloat | Sequence[SupportsFloat] | None = None,
        *,
        failed: bool = False,
        reason: str | None = None,
    ) -> tuple[int, Outcome]:
        """The row and its outcome as they are told; raises errors as `tell` does, and changes nothing."""
        row = self.row_of(row)
        if self.status[row] != Status.PENDING:
            told = self.trial(row)
            raise TrialError(f"a trial is told once, but trial {row} is {told.status.name.lower()} with {told.value}.")
        given = Outcome.failure(reason) if failed else as_outcome(outcome)
        if given.has_failed:
            given = replace(given, reason=reason or given.reason)
        check_counts(given, self.k, self.constraints.shape[1])
        if self.by_preference:
            check_told(row, given)
        return row, with_own_budget(self.budget, row, float(self.budgets[row]), given)

    def annotate(self, row: int | Trial, attributes: Mapping[str, Any]) -> None:
        """Notes attributes of a row, whatever its status; they join, and replace, those that it has.

        Raises:
            TrialError: for an unknown trial, or one of another run.
            ValueTypeError: for anything but plain JSON data by name.
        """
        self.settle()
        row = self.row_of(row)
        noted = as_attributes(attributes)
        together = {**self._attributes.get(row, {}), **noted}
        if noted:
            self.commit([writing.annotated(row, noted)], lambda: self._attributes.update({row: together}))

    def fix(self, params: Mapping[str, Any]) -> None:
        """Lets parameters stand still in what is proposed from now on, and no others; see `SearchSpace.with_fixed`."""
        self.settle()
        space = self.space.with_fixed(params)

        def effect() -> None:
            self.space = space

        self.commit([writing.fixed(space.fixed)], effect)

    def to(self, device: torch.device | str) -> "Observations":
        """Moves the buffers to a device, for good."""
        self.settle()
        self._rows.to(device)
        return self

    # --- within ------------------------------------------------------------------------------------------------------

    def _to_spend(self, budget: SupportsFloat | Sequence[SupportsFloat] | None, q: int) -> list[float | None]:
        """What each of q rows may spend: a rung, where there are rungs; None where nothing is said."""
        if budget is None:
            return [None if self.budget is None else self.budget.low] * q
        each = [as_budget(one) for one in (budget if isinstance(budget, Sequence) else [budget] * q)]
        return [one if self.budget is None else self.budget.rungs[self.budget.rung_of(one)] for one in each]

    def _effect_of(self, row: int, outcome: Outcome) -> Callable[[], None]:
        """What telling an outcome changes: plain assignments, so that doing it twice is doing it once."""
        values = [value * sign for value, sign in zip(outcome.values, self._signs, strict=False)]
        constraints = outcome.constraints if all(map(math.isfinite, outcome.constraints)) else ()
        wide = self._rows.wide("constraints", len(constraints))
        noisy = self._rows.wide("noise", 0 if outcome.noise is None else 1)
        failed, feasible = outcome.has_failed, outcome.is_feasible
        attributes = {**self._attributes.get(row, {}), **outcome.attributes}
        rung = 0 if self.budget is None else self.budget.rung_of(float(self.budgets[row]))
        tally = self._tally.after_failing(row) if failed else self._tally.after_telling(row, values[0], feasible, rung)

        def effect() -> None:
            if constraints:
                wide[row] = wide.new_tensor(constraints)
                self._rows.replace("constraints", wide)
            if outcome.budget is not None:
                self.budgets[row] = outcome.budget
            if outcome.noise is not None:
                noisy[row] = outcome.noise
                self._rows.replace("noise", noisy)
            if outcome.attributes:
                self._attributes[row] = attributes
            if outcome.reason:
                self._reasons[row] = outcome.reason
            if not failed:
                self.values[row] = self.values.new_tensor(values)
            self.status[row] = int(outcome.status)
            self._tally = tally

        return effect
