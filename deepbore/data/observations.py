"""`Observations`: every configuration asked for or reported so far, with its outcome."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from itertools import pairwise
from typing import Any, Generic, Self, SupportsFloat, TypeVar, overload

import numpy as np
import torch
from torch import Tensor

from deepbore.data.comparisons import Comparisons
from deepbore.data.imported import ImportedResults, differing_budgets
from deepbore.data.journal import Event, Journal, WriteAheadLog
from deepbore.data.journal_format import Pair, annotated, asked, corrected, fixed, preferred, reported, told, withdrawn
from deepbore.data.outcome import (
    Outcome,
    as_attributes,
    as_budget,
    as_outcome,
    as_reports,
    by_objective,
    check_correctable,
    check_corrected,
    check_counts,
    check_told,
    check_withdrawable,
    corrected_outcome,
    told_twice,
    with_own_budget,
)
from deepbore.data.pruned import likely_values
from deepbore.data.ranking import Ranking, in_order
from deepbore.data.replicates import AveragedValues, Replicates
from deepbore.data.reports import Reports
from deepbore.data.suspicion import Suspicion, suspicion
from deepbore.data.table import Effect, Table, as_numbers
from deepbore.data.times import append_lines, span_line, times_path
from deepbore.data.trial import Budget, Direction, Status, Trial, checked_directions, checked_names
from deepbore.errors import TrialError, ValueTypeError
from deepbore.space import SearchSpace

__all__ = ["Direction", "Observations", "Status", "Trial"]
T = TypeVar("T")


class _From(Generic[T]):
    """An attribute that is read from a collaborator, which has it under the same name.

    Args:
        part: attribute of the collaborator; a dotted one for a part of it.
    """

    def __init__(self, part: str):
        self.path = part.split(".")

    def __set_name__(self, owner: type, name: str) -> None:
        self.path.append(name)

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type) -> T: ...
    def __get__(self, instance: object | None, owner: type) -> Self | T:
        if instance is None:
            return self
        found: Any = instance
        for name in self.path:
            found = getattr(found, name)
        return found  # type: ignore[no-any-return]


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
        table: the rows as columns (`deepbore.data.table.Table`). Its columns and counts are attributes here, too.
        ranking: what is best among the rows; found when asked for (`deepbore.data.ranking.Ranking`).
        replicates: means over the evaluations of each configuration (`deepbore.data.replicates.Replicates`).
        comparisons: preferred pairs (`deepbore.data.comparisons.Comparisons`).
        write_ahead_log: the journal, written before the table changes (`deepbore.data.journal.WriteAheadLog`).
        n_asked: how many rows were reserved, told since or not.
        n_failed: how many trials have failed.
        n_complete: how many trials have a value.
        n_pruned: how many trials were pruned.
        n_withdrawn: how many trials were withdrawn.
        n_earlier: how many rows are of earlier tasks, without withdrawn ones.
        task_names: names of the earlier tasks, number 1 first.
        n_beaten: how many trials without a row here count as equal to the worst value when a threshold is found.
        n_since_best: how many trials were told, failures included, since a better one was, or results were added.
        sorted_values: first values to minimise of this run's complete trials, ascending.
        own_rows: numbers of the trials of this run, without withdrawn ones.
        revision: how often values that were told before have changed.
        reports: what the trials have reported, by row (`deepbore.data.reports.Reports`).

    Raises:
        SettingError: for another direction, or none; or for preferences with other directions than "maximize".

    Example:
        >>> from deepbore import Real, SearchSpace
        >>> observations = Observations(SearchSpace({"x": Real(0, 1)}), "maximize")
        >>> observations.add({"x": [0.25, 0.5]}, [1.0, 3.0])
        >>> observations.best.params, observations.best.value, observations.values.tolist()
        ({'x': 0.5}, 3.0, [[-1.0], [-3.0]])
    """

    space = _From[SearchSpace]("table")
    directions = _From[tuple[Direction, ...]]("table")
    budget = _From[Budget | None]("table")
    by_preference = _From[bool]("table")
    k = _From[int]("table")
    points = _From[Tensor]("table")
    values = _From[Tensor]("table")
    user_values = _From[Tensor]("table")
    constraints = _From[Tensor]("table")
    budgets = _From[Tensor]("table")
    tasks = _From[Tensor]("table")
    noise = _From[Tensor | None]("table")
    first_rows = _From[Tensor]("table")
    status = _From[Tensor]("table")
    feasible = _From[Tensor]("table")
    pending = _From[Tensor]("table")
    finished_rows = _From[Tensor]("table")
    pending_rows = _From[Tensor]("table")
    own_rows = _From[Tensor]("table")
    revision = _From[int]("table")
    reports = _From[Reports]("table")
    has_repeats = _From[bool]("table")
    n_left = _From[float]("table")
    resumed = _From[Mapping[int, int]]("table")
    to_user = _From[Callable[..., Any]]("table")
    unseen = _From[Callable[[Tensor], list[bool]]]("table")
    trials = _From[Callable[..., list[Trial]]]("table")
    row_of = _From[Callable[[int | Trial], int]]("table")
    n_asked = _From[int]("table.statistics")
    n_failed = _From[int]("table.statistics")
    n_complete = _From[int]("table.statistics")
    n_pruned = _From[int]("table.statistics")
    n_withdrawn = _From[int]("table.statistics")
    n_earlier = _From[int]("table.statistics")
    task_names = _From[tuple[str, ...]]("table.statistics")
    n_beaten = _From[int]("table.statistics")
    n_since_best = _From[int]("ranking")
    best_rows = _From[Callable[[int], Tensor]]("ranking")
    best_first = _From[Callable[[Tensor], Tensor]]("ranking")
    sorted_values = _From[np.ndarray]("replicates")
    commit = _From[Callable[[Iterable[Event], Callable[[], None]], None]]("write_ahead_log")
    complete_pending_write = _From[Callable[[], None]]("write_ahead_log")

    def __init__(
        self,
        space: SearchSpace,
        directions: Sequence[Direction] | Direction = ("minimize",),
        journal: Journal | None = None,
        budget: Budget | None = None,
        by_preference: bool = False,
        objectives: Sequence[str] = (),
    ):
        self.objectives = checked_names(objectives, directions)
        self.write_ahead_log = WriteAheadLog(journal)
        self._hold(Table(space, checked_directions(directions, by_preference), budget, by_preference))

    def _hold(self, table: Table, sorted_values: np.ndarray | None = None) -> None:
        self.table, self.ranking = table, Ranking(table)
        self.replicates, self.comparisons = Replicates(table, sorted_values), Comparisons(table)
        self._suspicion: tuple[tuple[object, ...], Suspicion] | None = None  # cached, with its key
        self._believed: tuple[tuple[object, ...], Self] | None = None

    def __len__(self) -> int:
        """n, pending and failed rows included."""
        return len(self.table)

    # --- what is read ------------------------------------------------------------------------------------------------

    @property
    def journal(self) -> Journal | None:
        """Where events are written; None for nowhere."""
        return self.write_ahead_log.journal

    @journal.setter
    def journal(self, journal: Journal | None) -> None:
        self.write_ahead_log.journal = journal

    @property
    def direction(self) -> Direction:
        """The direction of the first value."""
        return self.directions[0]

    @property
    def n_distinct(self) -> int:
        """How many distinct configurations stand in the rows of this run, without withdrawn ones."""
        return len(self.table.first_with)

    @property
    def preferences(self) -> tuple[Pair, ...]:
        """The comparisons in the order of telling: rows of the preferred trial and of the other one."""
        return self.comparisons.pairs

    @property
    def best(self) -> Trial | None:
        """The first feasible trial of this run with the best value, at the largest budget that has any; or None.

        Raises:
            SettingError: with several objectives.
        """
        row = self.ranking.best_row
        return None if row is None else self.trial(row)

    @property
    def front(self) -> list[Trial]:
        """The feasible trials of this run that no other beats in one value without being worse in another.

        They stand in the order of the first value, best first; of trials with equal values there is the first.
        """
        return list(in_order(self.trials(self.ranking.front_rows().tolist()), self.directions).values())

    @property
    def averaged(self) -> AveragedValues:
        """The first values, those of replicates averaged; see `deepbore.data.replicates.Replicates`."""
        return self.replicates.average()

    def trial(self, row: int) -> Trial:
        """The record of one row.

        Raises:
            TrialError: if there is no such row.
        """
        (trial,) = self.trials([self.table.checked(row)])
        return trial

    def attributes_of(self, row: int) -> Mapping[str, Any]:
        """What else the outcome of a row has brought, by name."""
        return self.table.attributes.get(row, {})

    def latest(self, row: int) -> int:
        """The row that continues a trial last; its own, if none does."""
        continued = {earlier: later for later, earlier in self.resumed.items()}
        while row in continued:
            row = continued[row]
        return row

    def of_task(self, task: int) -> "Observations":
        """The rows of one task alone, as observations that know of no other: to look at, not to change.

        Task 0 is this run, t the one named `task_names[t - 1]`. Withdrawn rows are left out. Where there are none, and
        no task is known, these observations as such.
        """
        if not self.task_names and not self.n_withdrawn:
            return self
        if task:
            return self.part(((self.tasks == task) & (self.status != Status.WITHDRAWN)).nonzero().squeeze(-1))
        rows = self.own_rows
        table = self.table.take(rows, self.table.first_with, n_asked=self.n_asked)
        return self._of(table, rows, self.sorted_values)

    @property
    def suspicion(self) -> Suspicion:
        """The trials of this run whose values others contradict; see `deepbore.data.suspicion`."""
        key = self.table.revision, len(self.table.finished)
        if self._suspicion is None or self._suspicion[0] != key:
            self._suspicion = key, suspicion(self._with_likely_values(self.table))
        return self._suspicion[1]

    @property
    def believed(self) -> Self:
        """The same rows as the models learn them: to label or to look at, not to change.

        Trials with suspicious values have failed, and pruned trials have the value that they would likely have had.
        These observations themselves if there are none of either.
        """
        suspicious = self.suspicion.rows
        if not suspicious and not self.n_pruned:
            return self
        table = self.table
        key = table.revision, len(table.finished), len(table), table.points.device, table.space
        if self._believed is None or self._believed[0] != key:
            table = self._with_likely_values(table.with_failures(suspicious) if suspicious else table)
            self._believed = key, self._of(table, torch.arange(len(table)))
        return self._believed[1]

    def _with_likely_values(self, table: Table) -> Table:
        """A table with the values that pruned trials would likely have had; see `deepbore.data.pruned`."""
        likely = likely_values(table) if self.n_pruned else {}
        return table.with_values(likely) if likely else table

    def part(self, rows: Tensor, n_beaten: int = 0) -> "Observations":
        """Some rows as observations that know of no others: to label or to look at, not to change.

        Args:
            rows: numbers of m rows, ascending, all of this run or all of one earlier task, none withdrawn.
            n_beaten: how many trials that are not among them thresholds count as equal to the worst value.
        """
        return self._of(self.table.take(rows, n_beaten=n_beaten), rows)

    def _of(self, table: Table, rows: Tensor, sorted_values: np.ndarray | None = None) -> Self:
        """Observations of a part of the table, with the comparisons of its rows."""
        part, pairs = copy(self), self.comparisons.pairs
        part._hold(table, sorted_values)
        if pairs:
            place = {row: place for place, row in enumerate(rows.tolist())}
            among = (pair for pair in pairs if place.keys() >= set(pair))
            part.comparisons.pairs = tuple((place[better], place[worse]) for better, worse in among)
        return part

    # --- what changes them -------------------------------------------------------------------------------------------

    def reserve(
        self,
        points: Tensor,
        budget: SupportsFloat | Sequence[SupportsFloat | None] | None = None,
        resume_from: Sequence[int | None] | None = None,
        effect: Effect | None = None,
    ) -> list[int]:
        """Appends pending rows (q x d) and returns their numbers.

        Args:
            points: q x d.
            budget: what each of them may spend, one for all or q of them; None for the lowest rung, or where there are
                no budgets.
            resume_from: rows of the same configurations that the points continue, q; None for what begins anew.
            effect: what changes with them: assignments that may be done twice.

        Raises:
            SettingError: for a budget that is no rung.
            TrialError: for an unknown row to continue.
        """
        self.complete_pending_write()
        params = self.space.decode(points)
        points = self.space.encode(params)
        new = range(len(self), len(self) + len(points))
        spent = self._to_spend(budget, len(points))
        earlier = zip(new, resume_from or (), strict=False)
        resumed = {row: self._resumable(row, before) for row, before in earlier if before is not None}
        append = self.table.stage_rows(
            points,
            self.table.statistics.after_asking(np.arange(new.start, new.stop)),
            status=Status.PENDING,
            budgets=torch.tensor([math.nan if each is None else each for each in spent], dtype=torch.float64),
            resumed=resumed,
        )

        def both() -> None:
            if effect is not None:
                effect()
            append()

        rows = zip(new, params, spent, strict=True)
        plain = ((row, self.space.plain(each), spends) for row, each, spends in rows)
        self.commit((asked(row, each, spends, resumed.get(row)) for row, each, spends in plain), both)
        return list(new)

    def _to_spend(self, budget: SupportsFloat | Sequence[SupportsFloat | None] | None, q: int) -> list[float | None]:
        """The budget of each of q rows: a rung, where there are rungs; None where none is given."""
        rungs, lowest = self.budget, None if self.budget is None else self.budget.low
        each = budget if isinstance(budget, Sequence) else [budget] * q
        given = [lowest if one is None else as_budget(one) for one in each]
        return [one if one is None or rungs is None else rungs.rungs[rungs.rung_of(one)] for one in given]

    def _resumable(self, row: int, before: int) -> int:
        """The earlier row that a new one continues; it may be as new."""
        return before if len(self) <= before < row else self.table.checked(before)

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
        self.complete_pending_write()
        row, given = self.tellable(row, outcome, failed=failed, reason=reason)
        if row in self.reports.live and not given.reports:
            given = replace(given, reports=self.reports.of(row))
        self.commit([told(row, given)], self.table.stage_outcome(row, given))

    def report(self, row: int | Trial, reports: Mapping[float, float]) -> None:
        """Keeps values of a pending trial by step; what it has reported from the first of these steps on goes.

        Raises:
            TrialError: for an unknown trial, one that is not pending, or one of another run.
            ValueTypeError: for values or steps that are no such numbers; or in a run of preferences, or of several
                objectives.
        """
        self.complete_pending_write()
        row, given = self.row_of(row), as_reports(reports)
        if self.status[row] != Status.PENDING:
            raise TrialError(
                f"a running trial reports, but trial {row} is {self.trial(row).status}. Ask for another trial."
            )
        if self.k > 1 or self.by_preference:
            what = "preferences" if self.by_preference else f"{self.k} objectives"
            raise ValueTypeError(f"what is reported belongs to one objective, but the study has {what}. Leave it out.")
        self.commit([reported(row, given)], lambda: self.reports.add(row, given))

    def note_times(self, row: int, began: float, ended: float) -> None:
        """Keeps when the evaluation of a row began and ended, in seconds since 1970, in a file beside the journal."""
        self.table.times[row] = span = round(began, 3), round(max(began, ended), 3)  # clocks are set back
        if self.journal is not None:
            append_lines(times_path(self.journal.path), [span_line(row, span)])

    def note_finished(self) -> None:
        """Keeps that a run has done what it was to do, in a file beside the journal."""
        if self.journal is not None:
            done = self.n_asked - len(self.pending_rows)
            append_lines(times_path(self.journal.path), [{"finished": done}])

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
            raise told_twice(self.trial(row))
        given = Outcome.failure(reason) if failed else by_objective(as_outcome(outcome), self.objectives)
        if given.has_failed:
            given = replace(given, reason=reason or given.reason)
        check_counts(given, self.k, self.constraints.shape[1])
        if self.by_preference:
            check_told(row, given)
        return row, with_own_budget(self.budget, row, float(self.budgets[row]), given)

    def withdraw(self, trials: int | Trial | Iterable[int | Trial], reason: str | None = None) -> None:
        """Takes trials back: they stay in the history, and count nowhere. All of them, or none.

        Args:
            trials: number of a trial, or the trial itself, or several of them; of any status and task.
            reason: why.

        Raises:
            TrialError: for an unknown trial, one that was withdrawn before, one of another run, or twice the same.
            ValueTypeError: for a reason that is no text.
        """
        self.complete_pending_write()
        several = [trials] if isinstance(trials, Trial) or not isinstance(trials, Iterable) else trials
        reason = Outcome.failure(reason).reason
        rows = sorted(self.row_of(each) for each in several)
        if twice := [row for row, after in pairwise(rows) if row == after]:
            raise TrialError(f"a trial is withdrawn once, but trial {twice[0]} was named twice. Name it once.")
        for trial in self.trials(rows):
            check_withdrawable(trial)
        if rows:
            self.commit([withdrawn(rows, reason)], self.comparisons.stage_without(rows, reason))

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
        self.complete_pending_write()
        row = self.row_of(row)
        check_correctable(self.trial(row), self.by_preference)
        known = self.table.outcomes([row])[row]
        if isinstance(value, Mapping):
            value = by_objective(as_outcome(value), self.objectives).values
        elif isinstance(value, Outcome):
            value = by_objective(value, self.objectives)
        given = corrected_outcome(known, value, constraints=constraints, failed=failed, noise=noise)
        check_corrected(known, given, self.k, self.table.width_without(self.table.no_rows.new_tensor([row])))
        given = with_own_budget(self.budget, row, float(self.budgets[row]), given)
        self.commit([corrected(row, given)], self.table.stage_correction(row, given))

    def prefer(self, pairs: Iterable[tuple[int | Trial, int | Trial]]) -> None:
        """Takes in comparisons, the preferred trial of each first; contradictory ones, too.

        All rows that have been compared have their utility for a value, fitted anew. A pending row is complete with its
        first comparison.

        Raises:
            TrialError: for an unknown trial, one that has failed, one of another run, or one compared with itself.
            SettingError: for a run of values.
        """
        self.complete_pending_write()
        rows = self.comparisons.checked(pairs)
        if rows:
            self.commit(map(preferred, rows), self.comparisons.stage(rows))

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
        self.append(ImportedResults.read(self.space, self.k, columns, values, constraints, budgets, task, noise))

    def append(self, results: ImportedResults) -> None:
        """Appends results that `ImportedResults.read` has checked."""
        if not len(results):
            return
        self.complete_pending_write()
        results = self.appendable(results)
        self.commit(results.events(self.space), results.stage(self.table))

    def appendable(self, results: ImportedResults) -> ImportedResults:
        """Earlier results with exact budgets; raises errors as `add` does, and changes nothing."""
        return results.checked(self.table)

    def has(self, results: ImportedResults) -> bool:
        """Whether rows of this run have the configurations and values of earlier results, one after the other."""
        return results.stand_in(self.table)

    def annotate(self, row: int | Trial, attributes: Mapping[str, Any]) -> None:
        """Adds attributes to a row, whatever its status; they replace those of the same names.

        Raises:
            TrialError: for an unknown trial, or one of another run.
            ValueTypeError: for anything but plain JSON data by name.
        """
        self.complete_pending_write()
        row = self.row_of(row)
        noted = as_attributes(attributes)
        together = {**self.attributes_of(row), **noted}
        if noted:
            self.commit([annotated(row, noted)], lambda: self.table.attributes.update({row: together}))

    def fix(self, params: Mapping[str, Any]) -> None:
        """Fixes parameters in later proposals; replaces earlier fixes. See `SearchSpace.with_fixed`."""
        self.complete_pending_write()
        space = self.space.with_fixed(params)

        def effect() -> None:
            self.table.space = space

        self.commit([fixed(space.plain(space.fixed))], effect)

    @contextmanager
    def holding(self, space: SearchSpace) -> Iterator[None]:
        """Within, these observations are of this space, which differs in what is fixed alone."""
        former = self.table.space
        self.table.space = space
        try:
            yield
        finally:
            self.table.space = former

    def to(self, device: torch.device | str) -> "Observations":
        """Moves the columns to a device, for good."""
        self.complete_pending_write()
        self.table.to(device)
        return self


def several_budgets(budgets: Any, known: Observations | None = None) -> str | None:
    """The complaint about budgets in a study without, where they differ; else None.

    Args:
        budgets: of new results: n, or one, NaN where none is known.
        known: results whose budgets count, too, but for those of earlier tasks.
    """
    given = np.atleast_1d(as_numbers([] if budgets is None else budgets, "budgets"))
    if known is not None and not np.isnan(given).all():
        given = np.append(given, known.budgets[known.tasks == 0].cpu().numpy())
    return differing_budgets(given)
