"""`Observations`: every configuration asked for or reported so far, with its outcome."""

import logging
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Self, SupportsFloat

import numpy as np
import torch
from torch import Tensor

from deepbore.data.centres import Centres
from deepbore.data.columns import Columns
from deepbore.data.events import (
    Annotated,
    Asked,
    Attached,
    Corrected,
    Enqueued,
    Event,
    Fixed,
    Logged,
    Noted,
    Preferred,
    Reported,
    Timed,
    Told,
    Withdrawn,
    as_numbers,
    correctable,
    require_comparing,
    staged_rows,
)
from deepbore.data.imported import ImportedResults, differing_budgets
from deepbore.data.ledger import Effect, Ledger, Pair
from deepbore.data.log import Log, WriteAheadLog
from deepbore.data.logged import LOGGED, Artifact, Logged as Carried, with_metrics
from deepbore.data.outcome import (
    Outcome,
    as_attributes,
    as_budget,
    as_outcome,
    as_reports,
    by_objective,
    corrected_outcome,
    told_twice,
)
from deepbore.data.pruned import likely_values
from deepbore.data.replicates import AveragedValues, Replicates
from deepbore.data.suspicion import Suspicion, suspicion
from deepbore.data.trial import Budget, Direction, Status, Trial, checked_directions, checked_names
from deepbore.errors import DeprecatedUse
from deepbore.space import SearchSpace

__all__ = ["Direction", "Observations", "Status", "Trial"]
FORMER = {  # part -> names that were attributes of the observations, too, until version 0.4
    "columns": "user_values tasks first_rows finished_rows pending_rows own_rows has_repeats n_left to_user unseen "
    "row_of",
    "ledger": "by_preference revision reports n_asked task_names n_beaten ranking",
    "ledger.notes": "resumed costs",
    "ledger.statistics": "n_failed n_complete n_pruned n_withdrawn n_earlier",
    "ledger.ranking": "n_since_best",
    "centres": "best_rows best_first",
    "replicates": "sorted_values",
    "write_ahead_log": "complete_pending_write",
}
PART_OF = {name: part for part, names in FORMER.items() for name in names.split()}
log = logging.getLogger(__name__)


class Observations:
    """n rows that are only ever appended to, told, corrected and withdrawn.

    A row has values, constraints, a budget, a task, a status, and perhaps attributes and the reason of a failure. A
    change is written to the journal before it takes effect, and an interrupt leaves both or none. What learns sees
    `of_task(0)`, which has no withdrawn rows.

    Args:
        space: the search space.
        directions: "minimize" or "maximize" for each of the k >= 1 objective values; a single one may stand alone.
            Values of maximised objectives are negated on input.
        journal: where each event is written before it takes effect; None for nowhere.
        budget: cheap fidelities: every row has a rung's budget, and configurations come again on larger ones.
        by_preference: whether trials are compared (`prefer`), and have utilities for values, to be maximised.
        objectives: names of the values, k; empty where they have none.

    Attributes:
        ledger: what was asked and told, and its counts (`deepbore.data.ledger.Ledger`).
        columns: the rows as tensors (`deepbore.data.columns.Columns`).
        centres: rows to search around (`deepbore.data.centres.Centres`).
        replicates: means over the evaluations of each configuration (`deepbore.data.replicates.Replicates`).
        write_ahead_log: the journal, written before the ledger changes (`deepbore.data.log.WriteAheadLog`).

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
        journal: Log | None = None,
        budget: Budget | None = None,
        by_preference: bool = False,
        objectives: Sequence[str] = (),
    ):
        self.objectives = checked_names(objectives, directions)
        self.write_ahead_log = WriteAheadLog(journal)
        self._hold(Columns(space, Ledger(checked_directions(directions, by_preference), budget, by_preference)))

    def _hold(self, columns: Columns, sorted_values: np.ndarray | None = None) -> None:
        self.columns, self.ledger, self.centres = columns, columns.ledger, Centres(columns)
        self.replicates = Replicates(columns, sorted_values)
        self._suspicion: tuple[tuple[object, ...], Suspicion] | None = None  # cached, with its key
        self._believed: tuple[tuple[object, ...], Self] | None = None

    @classmethod
    def of(cls, space: SearchSpace, ledger: Ledger) -> Self:
        """The observations of a ledger that a journal has filled, not yet connected to it.

        Raises:
            PointError: for a configuration outside the space.
        """
        objectives = ledger.header.get("objectives", ())
        found = cls(space, ledger.directions, None, ledger.budget, ledger.by_preference, objectives)
        found._hold(Columns.of(space, ledger))
        found.columns.space = space.with_fixed(ledger.fixed) if ledger.fixed else space
        return found

    def __len__(self) -> int:
        """n, pending and failed rows included."""
        return len(self.ledger)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """An attribute that has moved to a part, with a DeprecationWarning."""
            if name not in PART_OF:
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name)
            moved = f"{PART_OF[name]}.{name}"
            warnings.warn(f"observations.{name} is now observations.{moved}.", DeprecatedUse, stacklevel=2)
            return attrgetter(moved)(self)

    # --- the rows, for labellings and strategies ---------------------------------------------------------------------

    @property
    def space(self) -> SearchSpace:
        """The search space."""
        return self.columns.space

    @property
    def directions(self) -> tuple[Direction, ...]:
        """The direction of each value."""
        return self.ledger.directions

    @property
    def k(self) -> int:
        """How many values an outcome has."""
        return self.ledger.k

    @property
    def budget(self) -> Budget | None:
        """What a trial may spend; None where there are no budgets."""
        return self.ledger.budget

    @property
    def points(self) -> Tensor:
        """Configurations as points of the search space (n x d)."""
        return self.columns.points

    @property
    def values(self) -> Tensor:
        """Values to minimise (n x k); NaN where a trial is pending, failed or withdrawn."""
        return self.columns.values

    @property
    def constraints(self) -> Tensor:
        """Black-box constraints (n x c), kept where <= 0; NaN in rows that have none."""
        return self.columns.constraints

    @property
    def budgets(self) -> Tensor:
        """Budgets (n); NaN where there is none."""
        return self.columns.budgets

    @property
    def noise(self) -> Tensor | None:
        """Standard deviations of the values (n), NaN in rows that have none told; None while no row has."""
        return self.columns.noise

    @property
    def status(self) -> Tensor:
        """`Status` codes (n)."""
        return self.columns.status

    @property
    def feasible(self) -> Tensor:
        """Whether a trial is complete and no constraint is violated (n booleans)."""
        return self.columns.feasible

    @property
    def pending(self) -> Tensor:
        """Which trials were asked for and not told (n booleans)."""
        return self.columns.pending

    def trials(self, rows: Sequence[int] | None = None) -> list[Trial]:
        """The records of some rows, in their order, or of all."""
        return self.columns.trials(rows)

    # --- what is found in them ---------------------------------------------------------------------------------------

    @property
    def journal(self) -> Log | None:
        """Where events are written; None for nowhere."""
        return self.write_ahead_log.journal

    @journal.setter
    def journal(self, journal: Log | None) -> None:
        self.write_ahead_log.journal = journal

    @property
    def direction(self) -> Direction:
        """The direction of the first value."""
        return self.directions[0]

    @property
    def n_distinct(self) -> int:
        """How many distinct configurations stand in the rows of this run, without withdrawn ones."""
        return len(self.columns.first_with)

    @property
    def preferences(self) -> tuple[Pair, ...]:
        """The comparisons in the order of telling: rows of the preferred trial and of the other one."""
        return tuple(self.ledger.pairs)

    @property
    def best(self) -> Trial | None:
        """The first feasible trial of this run with the best value, at the largest budget that has any; or None.

        Raises:
            SettingError: with several objectives.
        """
        row = self.ledger.ranking.best_row
        return None if row is None else self.trial(row)

    @property
    def front(self) -> list[Trial]:
        """The feasible trials of this run that no other beats in one value without being worse in another.

        They stand in the order of the first value, best first; of trials with equal values there is the first.
        """
        return self.trials([trial.id for trial in self.ledger.front])

    @property
    def front_rows(self) -> Tensor:
        """Rows of this run that no other beats: of the feasible ones, or of all complete ones while none is."""
        return torch.from_numpy(self.ledger.ranking.front_rows).to(self.columns.device)

    @property
    def may_be_best(self) -> Tensor:
        """Which rows are feasible ones of this run, at the largest budget that has any (n booleans)."""
        return torch.from_numpy(self.ledger.ranking.may_be_best).to(self.columns.device)

    @property
    def averaged(self) -> AveragedValues:
        """The first values, those of replicates averaged; see `deepbore.data.replicates.Replicates`."""
        return self.replicates.average()

    def trial(self, row: int) -> Trial:
        """The record of one row.

        Raises:
            TrialError: if there is no such row.
        """
        (trial,) = self.trials([self.ledger.checked(row)])
        return trial

    def attributes_of(self, row: int) -> Mapping[str, Any]:
        """What else the outcome of a row has brought, by name."""
        return self.ledger.notes.attributes.get(row, {})

    def latest(self, row: int) -> int:
        """The row that continues a trial last; its own, if none does."""
        continued = {earlier: later for later, earlier in self.ledger.notes.resumed.items()}
        while row in continued:
            row = continued[row]
        return row

    def of_task(self, task: int) -> "Observations":
        """The rows of one task alone, as observations that know of no other: to look at, not to change.

        Task 0 is this run, t the one named `task_names[t - 1]`. Withdrawn rows are left out. Where there are none, and
        no task is known, these observations as such.
        """
        if not self.ledger.task_names and not self.ledger.statistics.n_withdrawn:
            return self
        if task:
            return self.part(((self.columns.tasks == task) & (self.status != Status.WITHDRAWN)).nonzero().squeeze(-1))
        rows = self.columns.own_rows
        return self._of(
            self.columns.take(rows, self.columns.first_with, n_asked=self.ledger.n_asked), self.replicates.sorted_values
        )

    @property
    def suspicion(self) -> Suspicion:
        """The trials of this run whose values others contradict; see `deepbore.data.suspicion`."""
        key = self.ledger.revision, len(self.ledger.finished)
        if self._suspicion is None or self._suspicion[0] != key:
            self._suspicion = key, suspicion(self._with_likely_values(self.columns))
        return self._suspicion[1]

    @property
    def believed(self) -> Self:
        """The same rows as the models learn them: to label or to look at, not to change.

        Trials with suspicious values have failed, and pruned trials have the value that they would likely have had.
        These observations themselves if there are none of either.
        """
        suspicious = self.suspicion.rows
        if not suspicious and not self.ledger.statistics.n_pruned:
            return self
        columns = self.columns
        key = self.ledger.revision, len(self.ledger.finished), len(self), columns.device, columns.space
        if self._believed is None or self._believed[0] != key:
            columns = self._with_likely_values(columns.with_failures(suspicious) if suspicious else columns)
            self._believed = key, self._of(columns)
        return self._believed[1]

    def _with_likely_values(self, columns: Columns) -> Columns:
        """The rows with the values that pruned trials would likely have had; see `deepbore.data.pruned`."""
        likely = likely_values(columns) if self.ledger.statistics.n_pruned else {}
        return columns.with_values(likely) if likely else columns

    def part(self, rows: Tensor, n_beaten: int = 0) -> "Observations":
        """Some rows as observations that know of no others: to label or to look at, not to change.

        Args:
            rows: numbers of m rows, ascending, all of this run or all of one earlier task, none withdrawn.
            n_beaten: how many trials that are not among them thresholds count as equal to the worst value.
        """
        return self._of(self.columns.take(rows, n_beaten=n_beaten))

    def _of(self, columns: Columns, sorted_values: np.ndarray | None = None) -> Self:
        """Observations of these rows."""
        part = copy(self)
        part._hold(columns, sorted_values)
        return part

    # --- what changes them -------------------------------------------------------------------------------------------

    def enter(self, events: Iterable[Event], effect: Effect, *beside: Effect) -> None:
        """Writes events to the journal, then changes memory; an interrupt leaves both or none.

        Args:
            events: what has happened.
            effect: what that changes in the ledger, made last.
            beside: what changes with it: assignments that may be done twice.
        """

        def all_of_it() -> None:
            for each in (*beside, effect):
                each()

        self.write_ahead_log.commit((event.line() for event in events), all_of_it)

    def reserve(
        self,
        points: Tensor,
        budget: SupportsFloat | Sequence[SupportsFloat] | None = None,
        resume_from: Sequence[int] | None = None,
        effect: Effect | None = None,
    ) -> list[int]:
        """Appends pending rows (q x d) and returns their numbers.

        Args:
            points: q x d.
            budget: what each of them may spend, one for all or q of them; None for the lowest rung, or where there are
                no budgets.
            resume_from: rows of the same configurations that the points continue, q; None if they begin anew.
            effect: what changes with them: assignments that may be done twice.

        Raises:
            SettingError: for a budget that is no rung.
            TrialError: for an unknown row to continue.
        """
        self.write_ahead_log.complete_pending_write()
        params = self.space.decode(points)
        new = range(len(self), len(self) + len(points))
        earlier: Sequence[int | None] = resume_from or [None] * len(points)
        rows = zip(new, params, self._to_spend(budget, len(points)), earlier, strict=True)
        asked = [Asked(row, self.space.points.plain(each), spends, before) for row, each, spends, before in rows]
        append, place = staged_rows(self.ledger, asked), self.columns.stage_rows(self.space.encode(params))
        self.enter(asked, append, place, *([] if effect is None else [effect]))
        return list(new)

    def _to_spend(self, budget: SupportsFloat | Sequence[SupportsFloat] | None, q: int) -> list[float | None]:
        """The budget of each of q rows: a rung, where there are rungs; None where none is given."""
        if budget is None:
            return [None if self.budget is None else self.budget.low] * q
        each = [as_budget(one) for one in (budget if isinstance(budget, Sequence) else [budget] * q)]
        return [one if self.budget is None else self.budget.rungs[self.budget.rung_of(one)] for one in each]

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
        self.write_ahead_log.complete_pending_write()
        row, told = self.tellable(row, outcome, failed=failed, reason=reason)
        others, told = _apart(row, told)
        event = Told(row, told)
        effect = event.stage(self.ledger)
        self.enter([*others, event], effect, *(each.stage(self.ledger) for each in others))

    def report(self, row: int | Trial, reports: Mapping[float, float]) -> None:
        """Keeps values of a pending trial by step; what it has reported from the first of these steps on goes.

        Raises:
            TrialError: for an unknown trial, one that is not pending, or one of another run.
            ValueTypeError: for values or steps that are no such numbers; or in a run of preferences, or of several
                objectives.
        """
        self.write_ahead_log.complete_pending_write()
        event = Reported(self.columns.row_of(row), as_reports(reports))
        self.enter([event], event.stage(self.ledger))

    def note_times(self, row: int, began: float, ended: float) -> None:
        """Keeps when the evaluation of a row began and ended, in seconds since 1970, in a file beside the journal."""
        event = Timed.at(row, began, ended)
        event.stage(self.ledger)()
        self.write_ahead_log.note(event.line())

    def note_finished(self) -> None:
        """Keeps that a run has done what it was to do, in a file beside the journal."""
        self.write_ahead_log.note({"finished": self.ledger.n_asked - len(self.columns.pending_rows)})

    def tellable(
        self,
        row: int | Trial,
        outcome: Outcome | SupportsFloat | Sequence[SupportsFloat] | None = None,
        *,
        failed: bool = False,
        reason: str | None = None,
    ) -> tuple[int, Outcome]:
        """The row and its outcome as they are told; raises errors as `tell` does, and changes nothing."""
        row = self.columns.row_of(row)
        if self.ledger.status[row] != Status.PENDING:
            raise told_twice(self.trial(row))
        given = Outcome.failure(reason) if failed else by_objective(as_outcome(outcome), self.objectives)
        if given.has_failed:
            given = replace(given, reason=reason or given.reason)
        return row, Told(row, given).normal(self.ledger).outcome

    def withdraw(self, trials: int | Trial | Iterable[int | Trial], reason: str | None = None) -> None:
        """Takes trials back: they stay in the history, and count nowhere. All of them, or none.

        Args:
            trials: number of a trial, or the trial itself, or several of them; of any status and task.
            reason: why.

        Raises:
            TrialError: for an unknown trial, one that was withdrawn before, one of another run, or twice the same.
            ValueTypeError: for a reason that is no text.
        """
        self.write_ahead_log.complete_pending_write()
        several = [trials] if isinstance(trials, Trial) or not isinstance(trials, Iterable) else trials
        reason = Outcome.failure(reason).reason
        event = Withdrawn(sorted(self.columns.row_of(each) for each in several), reason)
        if event.rows:
            effect = event.stage(self.ledger)
            self.enter([event], effect, self.columns.stage_withdrawal(event.rows))

    def correct(
        self,
        row: int | Trial,
        value: Outcome | SupportsFloat | Sequence[SupportsFloat] | None = None,
        *,
        constraints: Sequence[SupportsFloat] | None = None,
        failed: bool = False,
        noise: SupportsFloat | None = None,
    ) -> None:
        """Replaces the outcome of a trial that was told or added; what is not given stays. See `Study.correct`.

        Raises:
            TrialError: for an unknown trial, one that is pending or withdrawn, or one of another run.
            ValueTypeError: for what is no such number, or nothing at all, or in a run of preferences.
        """
        self.write_ahead_log.complete_pending_write()
        known = correctable(self.ledger, row := self.columns.row_of(row))
        if isinstance(value, Mapping):
            value = by_objective(as_outcome(value), self.objectives).values
        elif isinstance(value, Outcome):
            value = by_objective(value, self.objectives)
        given = corrected_outcome(known, value, constraints=constraints, failed=failed, noise=noise)
        event = Corrected(row, given).normal(self.ledger)
        self.enter([event], event.stage(self.ledger))

    def prefer(self, pairs: Iterable[tuple[int | Trial, int | Trial]]) -> None:
        """Takes in comparisons, the preferred trial of each first; contradictory ones, too.

        All rows that have been compared have their utility for a value, fitted anew. A pending row is complete with its
        first comparison.

        Raises:
            TrialError: for an unknown trial, one that has failed, one of another run, or one compared with itself.
            SettingError: for a run of values.
        """
        self.write_ahead_log.complete_pending_write()
        require_comparing(self.ledger)
        events = [Preferred(self.columns.row_of(better), self.columns.row_of(worse)) for better, worse in pairs]
        for event in events:
            event.check(self.ledger)
        if events:
            self.enter(events, self.ledger.stage_pairs([event.pair for event in events]))

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
            >>> observations.columns.tasks.tolist(), observations.ledger.statistics.n_failed, observations.best.value
            ([0, 1, 1], 1, 2.0)
        """
        about = {"constraints": constraints, "budgets": budgets, "task": task, "noise": noise}
        self.append(ImportedResults.read(self.space, self.k, columns, values, **about))

    def append(self, results: ImportedResults) -> None:
        """Appends results that `ImportedResults.read` has checked."""
        if not len(results):
            return
        self.write_ahead_log.complete_pending_write()
        results = self.appendable(results)
        place = self.columns.stage_rows(results.points, results.block.task is not None)
        effect = results.block.stage(self.ledger)
        self.enter(results.events(self.space), effect, place)

    def appendable(self, results: ImportedResults) -> ImportedResults:
        """Earlier results with exact budgets; raises errors as `add` does, and changes nothing."""
        block = results.block.on_rungs(self.budget)
        block.check(self.ledger)
        return replace(results, block=block)

    def has(self, results: ImportedResults) -> bool:
        """Whether rows of this run have the configurations and values of earlier results, one after the other."""
        return results.stand_in(self.columns)

    def annotate(self, row: int | Trial, attributes: Mapping[str, Any]) -> None:
        """Adds attributes to a row, whatever its status; they replace those of the same names.

        Raises:
            TrialError: for an unknown trial, or one of another run.
            ValueTypeError: for anything but plain JSON data by name.
        """
        self.write_ahead_log.complete_pending_write()
        event = Annotated(self.columns.row_of(row), as_attributes(attributes))
        if event.attributes:
            self.enter([event], event.stage(self.ledger))

    def log(self, row: int | Trial, given: Mapping[str, float], step: float | None = None) -> None:
        """Adds metrics that are not optimised to a row, whatever its status, at a step: None for after the last.

        Raises:
            TrialError: for an unknown trial, or one of another run.
            ValueTypeError: for a step that is no number >= 0.
        """
        self.write_ahead_log.complete_pending_write()
        row = self.columns.row_of(row)
        known = self.ledger.notes.metrics.get(row, {})
        after = with_metrics(known, given, step)
        new = {name: {at: y for at, y in after[name].items() if at not in known.get(name, {}) or at == step}
               for name in given}  # fmt: skip
        event = Logged(row, new)
        self.enter([event], event.stage(self.ledger))

    def attach(self, row: int | Trial, artifact: Artifact) -> None:
        """Adds what a trial has made. Raises TrialError for an unknown trial, or one of another run."""
        self.write_ahead_log.complete_pending_write()
        event = Attached(self.columns.row_of(row), (artifact,))
        self.enter([event], event.stage(self.ledger))

    def note(self, row: int | Trial | None, note: str | None, tags: tuple[str, ...] | None) -> None:
        """Replaces the note and the tags of a row, or of the run: None leaves them.

        Raises:
            TrialError: for an unknown trial, or one of another run.
            ValueTypeError: for what is too long, or no text.
        """
        self.write_ahead_log.complete_pending_write()
        event = Noted(None if row is None else self.columns.row_of(row), note, tags)
        self.enter([event], event.stage(self.ledger))

    def fix(self, params: Mapping[str, Any]) -> None:
        """Fixes parameters in later proposals; replaces earlier fixes. See `SearchSpace.with_fixed`."""
        self.write_ahead_log.complete_pending_write()
        space = self.space.with_fixed(params)

        def effect() -> None:
            self.columns.space = space

        event = Fixed(space.points.plain(space.fixed))
        self.enter([event], event.stage(self.ledger), effect)

    def enqueue(self, params: Mapping[str, Any], effect: Effect) -> None:
        """Keeps a configuration, or a part of one, in plain values, that is queued; and what changes with it."""
        event = Enqueued(params)
        self.enter([event], event.stage(self.ledger), effect)

    @contextmanager
    def holding(self, space: SearchSpace) -> Iterator[None]:
        """Within, these observations are of this space, which differs in what is fixed alone."""
        former = self.columns.space
        self.columns.space = space
        try:
            yield
        finally:
            self.columns.space = former

    def to(self, device: torch.device | str) -> "Observations":
        """Moves the columns to a device, for good."""
        self.write_ahead_log.complete_pending_write()
        self.columns.to(device)
        return self


def _apart(row: int, outcome: Outcome) -> tuple[list[Event], Outcome]:
    """The events of what a trial has logged, which an outcome may carry, and the outcome without it."""
    if LOGGED not in outcome.attributes:
        return [], outcome
    rest = {name: each for name, each in outcome.attributes.items() if name != LOGGED}
    try:
        carried = Carried.taken_from(outcome.attributes)
    except (LookupError, TypeError, ValueError, AttributeError) as error:  # of a worker of another version
        log.warning("what trial %d has logged is lost: %s", row, error)
        return [], replace(outcome, attributes=rest)
    events: list[Event] = [Logged(row, carried.metrics)] if carried.metrics else []
    events += [Attached(row, carried.artifacts)] if carried.artifacts else []
    return events, replace(outcome, attributes=rest)


def several_budgets(budgets: Any, known: Observations | None = None) -> str | None:
    """The complaint about budgets in a study without, where they differ; else None.

    Args:
        budgets: of new results: n, or one, NaN where none is known.
        known: results whose budgets count, too, but for those of earlier tasks.
    """
    given = np.atleast_1d(as_numbers([] if budgets is None else budgets, "budgets"))
    if known is not None and not np.isnan(given).all():
        given = np.append(given, known.budgets[known.columns.tasks == 0].cpu().numpy())
    return differing_budgets(given)
