"""`Ledger`: what a run knows, live and from its journal, as columns of NumPy and notes by row. No torch.

The events of a run change it (`deepbore.data.events`), by effects: a change is first computed beside what is there, and
then made by assignments that may be done twice. What configurations are as points, a ledger does not know: see
`deepbore.data.columns`.
"""

import math
import operator
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from copy import copy, deepcopy
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from deepbore.data.logged import Artifact, Metrics
from deepbore.data.outcome import Outcome, attributes_after, width_of, with_former
from deepbore.data.ranking import Ranking, in_order, require_one_objective
from deepbore.data.reports import Reports
from deepbore.data.trial import Budget, Direction, Span, Status, Trial, sign_of
from deepbore.errors import TrialError

ROOM = 16  # rows at the beginning
Array = np.ndarray[Any, np.dtype[Any]]
Effect = Callable[[], None]  # a change in memory: assignments that may be done twice
Pair = tuple[int, int]  # rows of the preferred trial and of the other one


# --- columns ---------------------------------------------------------------------------------------------------------


class Buffers:
    """Named arrays with n rows each, and room for more; they grow by doubling.

    Rows that are written beyond row n count only when n is set to include them: appending is one assignment, which an
    interrupt finds done or not done.

    Args:
        widths: name -> columns of a buffer (None for a vector), and its type.
    """

    def __init__(self, **widths: tuple[int | None, Any]):
        self.n = 0
        self._buffers = {
            name: np.empty(ROOM if width is None else (ROOM, width), dtype=dtype)
            for name, (width, dtype) in widths.items()
        }

    def __getitem__(self, name: str) -> Array:
        """The n rows of a buffer: a view, through which they are changed."""
        return self._buffers[name][: self.n]

    def take(self, rows: Array) -> "Buffers":
        """Copies of some rows, given by number."""
        part = Buffers()
        part.n, part._buffers = len(rows), {name: buffer[rows] for name, buffer in self._buffers.items()}
        return part

    def write(self, m: int, **rows: Array | float) -> None:
        """Writes m rows (arrays, or one number for all) beyond the end; setting `n` makes them count."""
        end, capacity = self.n + m, len(next(iter(self._buffers.values())))
        if end > capacity:
            capacity = max(end, 2 * capacity)
            self._buffers = {name: _grown(buffer, capacity) for name, buffer in self._buffers.items()}
        for name, each in rows.items():
            self._buffers[name][self.n : end] = each

    def wide(self, name: str, width: int) -> Array:
        """The whole buffer if it has this width, or for width 0; else a new one of NaN, for `replace`."""
        buffer = self._buffers[name]
        return buffer if width in (0, buffer.shape[1]) else np.full((len(buffer), width), math.nan)

    def replace(self, name: str, buffer: Array) -> None:
        """Exchanges a buffer."""
        self._buffers = {**self._buffers, name: buffer}


def _grown(buffer: Array, capacity: int) -> Array:
    larger = np.empty((capacity, *buffer.shape[1:]), dtype=buffer.dtype)
    larger[: len(buffer)] = buffer
    return larger


@dataclass(frozen=True)
class RunStatistics:
    """Counts of the rows so far.

    Attributes:
        pending: numbers of the pending rows, ascending.
        n_failed: rows that have failed.
        n_complete: rows that have values.
        n_pruned: rows that were pruned.
        n_withdrawn: rows that were withdrawn.
        n_earlier: rows of earlier tasks, without withdrawn ones.
    """

    pending: Array
    n_failed: int
    n_complete: int
    n_pruned: int
    n_withdrawn: int
    n_earlier: int

    @classmethod
    def of(cls, status: Array, tasks: Array) -> "RunStatistics":
        """The counts of rows with these status codes, and tasks (m each)."""
        counts = {each: int(np.count_nonzero(status == each)) for each in Status if each is not Status.PENDING}
        return cls(
            np.flatnonzero(status == Status.PENDING),
            counts[Status.FAILED],
            counts[Status.COMPLETE],
            counts[Status.PRUNED],
            counts[Status.WITHDRAWN],
            int(np.count_nonzero((tasks > 0) & (status != Status.WITHDRAWN))),
        )


# --- configurations --------------------------------------------------------------------------------------------------


class Natives(Protocol):
    """The configurations of the rows, in the plain values of journals."""

    def params(self, rows: Sequence[int]) -> list[dict[str, Any]]:
        """Those of some rows, in their order."""

    def keep(self, row: int, params: Sequence[Mapping[str, Any]]) -> None:
        """Takes those of rows from this one on."""

    def keep_columns(self, row: int, columns: Mapping[str, Sequence[Any]], n: int) -> None:
        """Takes those of n rows from this one on, by the names of parameters; None where one is inactive."""


class KeptNatives:
    """Configurations as a journal has them: one by one, or by columns of many.

    Args:
        optional: names of the parameters for which None says that they are inactive, and is none of their values.
    """

    def __init__(self, optional: frozenset[str] = frozenset()):
        self.optional = optional
        self._single: dict[int, dict[str, Any]] = {}
        self._blocks: dict[int, tuple[Mapping[str, Sequence[Any]], int]] = {}  # first row -> columns, and their length

    def keep(self, row: int, params: Sequence[Mapping[str, Any]]) -> None:
        """Takes those of rows from this one on."""
        self._single.update({row + place: dict(each) for place, each in enumerate(params)})

    def keep_columns(self, row: int, columns: Mapping[str, Sequence[Any]], n: int) -> None:
        """Takes those of n rows from this one on; columns of numbers alone as arrays, which need less room."""
        self._blocks[row] = {name: _compact(each) for name, each in columns.items()}, n

    def params(self, rows: Sequence[int]) -> list[dict[str, Any]]:
        """Those of some rows, in their order."""
        starts, last, block = sorted(self._blocks), -1, dict[str, Sequence[Any]]()
        found = []
        for row in rows:
            if row in self._single:
                found.append(self._single[row])
                continue
            start = starts[bisect_right(starts, row) - 1]
            if start != last:  # rows that follow one another are mostly of one block
                last, block = start, {name: _listed(column) for name, column in self._blocks[start][0].items()}
            named = ((name, column[row - start]) for name, column in block.items())
            found.append({name: each for name, each in named if not (each is None and name in self.optional)})
        return found

    def segments(self) -> "list[tuple[int, list[dict[str, Any]] | Mapping[str, Sequence[Any]]]]":
        """All of them in order, each with its first row: several one by one, or columns."""
        found: list[tuple[int, list[dict[str, Any]] | Mapping[str, Sequence[Any]]]] = []
        row = 0
        while row in self._single or row in self._blocks:
            if row in self._blocks:
                columns, n = self._blocks[row]
                found.append((row, columns))
                row += n
            else:
                some = [self._single[row]]
                while row + len(some) in self._single:
                    some.append(self._single[row + len(some)])
                found.append((row, some))
                row += len(some)
        return found


def _compact(column: Sequence[Any]) -> Sequence[Any]:
    """A column as an array, if that gives back the same numbers."""
    kinds = set(map(type, column))
    if kinds == {float} or (kinds == {int} and max(map(abs, column)) < 2**63):
        return np.array(column, dtype=np.float64 if kinds == {float} else np.int64)  # type: ignore[return-value]
    return column


def _listed(column: Sequence[Any]) -> Sequence[Any]:
    """A column with numbers of Python's."""
    return column.tolist() if isinstance(column, np.ndarray) else column


# --- the ledger ------------------------------------------------------------------------------------------------------


@dataclass
class Notes:
    """What only some rows have, by row, and what is of the whole run.

    Attributes:
        resumed: row -> the row that it continues.
        attributes: row -> further data of its outcome, by name.
        reasons: row -> the reason of its failure, or why it was withdrawn.
        former: row -> its outcomes that no longer count: those before each correction, and the one that was withdrawn.
        costs: row -> what its evaluation has cost, where that is known, withdrawn since or not.
        times: row -> when its evaluation began and ended, in seconds since 1970, where that is known.
        metrics: row -> what it has logged and is not optimised: name -> step -> value.
        artifacts: row -> what it has made.
    """

    resumed: dict[int, int] = field(default_factory=dict)
    attributes: dict[int, Mapping[str, Any]] = field(default_factory=dict)
    reasons: dict[int, str] = field(default_factory=dict)
    former: dict[int, tuple[Outcome, ...]] = field(default_factory=dict)
    costs: dict[int, float] = field(default_factory=dict)
    times: dict[int, Span] = field(default_factory=dict)
    metrics: dict[int, Metrics] = field(default_factory=dict)
    artifacts: dict[int, tuple[Artifact, ...]] = field(default_factory=dict)

    def take(self, rows: Array) -> "Notes":
        """Those of some rows (ascending), by their place among these."""
        return Notes(**{name: _among(rows, notes) for name, notes in vars(self).items()})

    def note_reason(self, row: int, reason: str | None) -> None:
        """Replaces the reason of a row."""
        self.reasons.pop(row, None)
        if reason:
            self.reasons[row] = reason


class Ledger:
    """n rows: outcomes as columns, counts, notes by row, the queue, and comparisons.

    Args:
        directions: "minimize" or "maximize" for each of the k values.
        budget: what a trial may spend; None where there are no budgets.
        by_preference: whether trials are compared, and have utilities for values.
        natives: the configurations of the rows.

    Attributes:
        header: what the first line of the journal says of the run; empty in a run that is live.
        signs: 1 for each value that is minimised, -1 where it is maximised; values are kept with this sign.
        notes: what only some rows have.
        n_asked: how many rows were reserved, told since or not.
        task_names: of the earlier tasks.
        n_beaten: trials outside of these rows that thresholds count as equal to the worst value (see `RungLabels`).
        finished: rows in the order in which they were told; a range for rows that were imported at once.
        revision: how often values that were told before have changed.
        version: how often anything has changed.
        ranking: what is best among the rows; found when asked for.
        reports: what the trials have reported, by row.
        queue: configurations, or parts of them, that are enqueued and not asked for yet.
        pairs: rows of the preferred trial and of the other one, for each comparison.
        fixed: the parameters that are fixed last.
        remarks: row -> the note to it; None -> the note to the run.
        tags: row -> its tags; None -> those of the run.
    """

    def __init__(
        self,
        directions: tuple[Direction, ...],
        budget: Budget | None = None,
        by_preference: bool = False,
        natives: Natives | None = None,
    ):
        self.directions, self.budget, self.by_preference = directions, budget, by_preference
        self.natives: Natives = KeptNatives() if natives is None else natives
        self.header: dict[str, Any] = {}
        self.signs = np.array([sign_of(direction) for direction in directions])
        self._columns = Buffers(
            values=(len(directions), np.float64),
            constraints=(0, np.float64),
            budgets=(None, np.float64),
            tasks=(None, np.int32),
            status=(None, np.int8),
            noise=(0, np.float64),
        )
        self.notes = Notes()
        self.n_asked = self.n_beaten = self.revision = self.version = 0
        self.task_names: tuple[str, ...] = ()
        self.finished: list[int | range] = []
        self.reports = Reports(sign_of(directions[0]))
        self.queue: list[Mapping[str, Any]] = []
        self.pairs: list[Pair] = []
        self.fixed: Mapping[str, Any] = {}
        self.remarks: dict[int | None, str] = {}
        self.tags: dict[int | None, tuple[str, ...]] = {}
        self.ranking = Ranking(self)
        self._fitted = 0  # the revision that utilities are of
        self._statistics: tuple[int, RunStatistics] | None = None  # and the version that they are of
        self._trials: tuple[int, list[Trial]] | None = None  # likewise

    def __len__(self) -> int:
        """n, pending and failed rows included."""
        return self._columns.n

    @property
    def k(self) -> int:
        """How many values an outcome has."""
        return len(self.directions)

    @property
    def direction(self) -> Direction:
        """The direction of the first value."""
        return self.directions[0]

    @property
    def space(self) -> dict[str, dict[str, Any]]:
        """The parameters that the header declares: name -> type, bounds, ...; see `SearchSpace.to_dict`."""
        return {name: each for name, each in self.header.get("space", {}).items() if isinstance(each, dict)}

    def described(self, header: dict[str, Any]) -> "Ledger":
        """The same ledger with the header of its run: to look at, not to change."""
        found = copy(self)
        found.header = header
        return found

    def with_records_of(self, rows: Sequence[int]) -> "Ledger":
        """The same ledger, whose `trials` are those of some rows alone: to draw a part of a long run at little cost.

        Counts, columns and the best trial stay those of all rows.

        Args:
            rows: their numbers, ascending.
        """
        found = copy(self)
        found._trials = found.version, self.records(rows)
        return found

    # --- columns -----------------------------------------------------------------------------------------------------

    @property
    def values(self) -> Array:
        """Values to minimise (n x k); NaN where a trial is pending, failed or withdrawn."""
        if self.by_preference and self._fitted != self.revision:
            self._fit_utilities()
        return self._columns["values"]

    @property
    def constraints(self) -> Array:
        """Black-box constraints (n x c), kept where <= 0; NaN in rows that have none. The first outcome fixes c."""
        return self._columns["constraints"]

    @property
    def budgets(self) -> Array:
        """Budgets (n); NaN where there is none."""
        return self._columns["budgets"]

    @property
    def tasks(self) -> Array:
        """Numbers of the tasks (n): 0 for this run, t for the earlier one named `task_names[t - 1]`."""
        return self._columns["tasks"]

    @property
    def status(self) -> Array:
        """`Status` codes (n)."""
        return self._columns["status"]

    @property
    def noise(self) -> Array | None:
        """Standard deviations of the values (n), NaN in rows that have none told; None while no row has."""
        noise = self._columns["noise"]
        return noise[:, 0] if noise.shape[1] else None

    @property
    def statistics(self) -> RunStatistics:
        """Counts of the rows; found anew when something has changed."""
        if self._statistics is None or self._statistics[0] != self.version:
            self._statistics = self.version, RunStatistics.of(self.status, self.tasks)
        return self._statistics[1]

    def _fit_utilities(self) -> None:
        """Gives all rows that have been compared their utilities, fitted anew."""
        from deepbore.data.comparisons import compared_utilities  # SciPy, for these runs only

        if self.pairs:
            rows, utilities = compared_utilities(self.pairs)
            self._columns["values"][rows, 0] = -utilities
        self._fitted = self.revision

    # --- rows --------------------------------------------------------------------------------------------------------

    def checked(self, row: Any) -> int:
        """The number of a row.

        Raises:
            TrialError: if there is no such row.
        """
        try:
            if isinstance(row, bool):
                raise TypeError
            row = operator.index(row)
        except TypeError:
            raise TrialError(f"a trial is named by its id, a whole number, but got {row!r:.200}.") from None
        if not 0 <= row < len(self):
            known = f"trials 0 ... {len(self) - 1} exist" if len(self) else "no trial exists yet"
            raise TrialError(f"{known}, but got {row}. Tell what `ask` gave, or `add` it.")
        return int(row)

    def status_of(self, row: int) -> Status:
        """The status of a row."""
        return Status(int(self.status[row]))

    def outcome(self, row: int) -> Outcome | None:
        """The outcome of a row, without budget and attributes; None for one that is pending or withdrawn."""
        if not self.status_of(row).is_told:
            return None
        trial = self.trial(row)
        values, constraints = trial.values or (), trial.constraints or ()
        return Outcome(values, constraints, status=trial.status, reason=trial.reason, noise=trial.noise)

    def width_without(self, rows: Sequence[int]) -> int:
        """c, the number of constraints, as far as rows other than these have any; else 0."""
        return self._width("constraints", rows)

    def _width(self, name: str, rows: Sequence[int]) -> int:
        """How many columns of a buffer are filled in rows other than these: all, or none."""
        buffer = self._columns[name]
        has_any: Array = np.logical_or.reduce(~np.isnan(buffer), axis=-1)
        has_any[list(rows)] = False
        return buffer.shape[1] if has_any.any() else 0

    def trial(self, row: int) -> Trial:
        """The record of one row.

        Raises:
            TrialError: if there is no such row.
        """
        return self.records([self.checked(row)])[0]

    @property
    def trials(self) -> list[Trial]:
        """The records of all rows, made anew when something has changed."""
        if self._trials is None or self._trials[0] != self.version:
            self._trials = self.version, self.records(range(len(self)))
        return self._trials[1]

    def records(
        self,
        rows: Sequence[int],
        params: Sequence[dict[str, Any]] | None = None,
        identities: Sequence[Any] | None = None,
    ) -> list[Trial]:
        """The records of some rows, in their order.

        Args:
            rows: their numbers.
            params: their configurations; None for those in plain values.
            identities: keys of these; None where they are not known.
        """
        at, noise = np.asarray(rows, dtype=np.int64), self.noise
        columns = (
            self.natives.params(rows) if params is None else params,
            [None] * len(rows) if identities is None else identities,
            self.status[at].tolist(),
            (self.values[at] * self.signs).tolist(),
            self.constraints[at].tolist(),
            self.budgets[at].tolist(),
            self.tasks[at].tolist(),
            [math.nan] * len(rows) if noise is None else noise[at].tolist(),
        )
        found: dict[int, Trial] = {}
        for row, *told in zip(rows, *columns, strict=True):
            found[row] = self._record(row, told, found)
        return list(found.values())

    def _record(self, row: int, columns: Sequence[Any], known: Mapping[int, Trial]) -> Trial:
        """The record of a row, by what the columns have of it, and by the records that are made."""
        params, identity, code, values, constraints, budget, task, noise = columns
        notes, status = self.notes, Status(code)
        told = tuple(values) if status is Status.COMPLETE else None
        began, ended = notes.times.get(row, (None, None))
        trial = Trial(
            row,
            params,
            told[0] if told else None,
            status,
            told,
            tuple(constraints) if constraints and not math.isnan(constraints[0]) else None,
            self._plain_budget(budget),
            self.task_names[task - 1] if task else None,
            deepcopy(notes.attributes[row]) if row in notes.attributes else {},  # a change in a record changes nothing
            notes.reasons.get(row),
            identity,
            self._continued(row, known),
            None if math.isnan(noise) else noise,
            (),
            self.reports.of(row),
            None,
            began,
            ended,
            notes.costs.get(row),
        )
        if row in notes.metrics or row in notes.artifacts or row in self.remarks or row in self.tags:
            trial = replace(
                trial,
                metrics=deepcopy(notes.metrics.get(row, {})),
                artifacts=notes.artifacts.get(row, ()),
                note=self.remarks.get(row, ""),
                tags=self.tags.get(row, ()),
            )
        return with_former(trial, notes.former[row]) if row in notes.former else trial

    def _plain_budget(self, budget: float) -> float | None:
        """A budget as it was declared; None where there is none."""
        if math.isnan(budget):
            return None
        return budget if self.budget is None else self.budget.plain(budget)

    def _continued(self, row: int, known: Mapping[int, Trial]) -> Trial | None:
        """The trial that a row continues, a known one where possible; None for a new trial."""
        if (before := self.notes.resumed.get(row)) is None:
            return None
        return known[before] if before in known else self.trial(before)

    @property
    def best(self) -> Trial | None:
        """The first feasible trial of this run with the best value; None while there is none.

        With cheap fidelities it is the best at the largest budget at which any trial is feasible.

        Raises:
            SettingError: with several objectives.
        """
        require_one_objective(self.directions, "its front (`deepbore best`)")
        row = self.ranking.best_row
        return None if row is None else self.trial(row)

    @property
    def front(self) -> list[Trial]:
        """The feasible trials of this run that no other beats in one value without being worse in another.

        They stand in the order of the first value, best first; of trials with equal values there is the first.
        """
        return list(in_order(self.records(self.ranking.front_rows.tolist()), self.directions).values())

    # --- changes -----------------------------------------------------------------------------------------------------

    def stage_rows(
        self,
        m: int,
        *,
        status: Array | Status,
        budgets: Array | float = math.nan,
        values: Array | float = math.nan,
        constraints: Array | None = None,
        noise: Array | None = None,
        task: str | None = None,
        resumed: Mapping[int, int] | None = None,
        imported: bool = False,
    ) -> Effect:
        """Writes m rows beyond the end, where they do not count yet.

        Args:
            m: how many.
            status: one code for each row, or for all.
            budgets: m, or one for all; NaN where there is none.
            values: to minimise, m x k, or one for all; NaN where there is none.
            constraints: m x c; None if no row has any.
            noise: standard deviations (m); None if no row has any.
            task: name of the earlier task; None for this run.
            resumed: row -> the row that it continues.
            imported: whether the rows have their outcomes.
        """
        start, end, told = len(self), len(self) + m, len(self.finished)
        names = self.task_names if task is None or task in self.task_names else (*self.task_names, task)
        number = 0 if task is None else 1 + names.index(task)
        self._columns.write(m, values=values, budgets=budgets, status=status, tasks=number)
        self._columns.write(m, constraints=math.nan, noise=math.nan)
        wide = self._columns.wide("constraints", 0 if constraints is None else constraints.shape[1])
        if constraints is not None:
            wide[start:end] = constraints
        noisy = self._columns.wide("noise", 0 if noise is None else 1)
        if noise is not None:
            noisy[start:end, 0] = noise
        n_asked, version = self.n_asked + (0 if imported else m), self.version + 1

        def effect() -> None:
            self._columns.replace("constraints", wide)
            self._columns.replace("noise", noisy)
            self.notes.resumed.update(resumed or {})
            if imported:
                self.finished[told:] = [range(start, end)]
            self.n_asked, self.task_names, self._columns.n, self.version = n_asked, names, end, version

        return effect

    def stage_outcome(self, row: int, outcome: Outcome) -> Effect:
        """The outcome of a pending row."""
        values = [value * sign for value, sign in zip(outcome.values, self.signs, strict=False)]
        wide = self._columns.wide("constraints", width := width_of(outcome))
        noisy = self._columns.wide("noise", 0 if outcome.noise is None else 1)
        notes, told, version = self.notes, len(self.finished), self.version + 1
        attributes = {**notes.attributes.get(row, {}), **outcome.attributes}

        def effect() -> None:
            if width:
                wide[row] = outcome.constraints
                self._columns.replace("constraints", wide)
            if outcome.budget is not None:
                self.budgets[row] = outcome.budget
            if outcome.noise is not None:
                noisy[row] = outcome.noise
                self._columns.replace("noise", noisy)
            if outcome.attributes:
                notes.attributes[row] = attributes
            if outcome.reason:
                notes.reasons[row] = outcome.reason
            if outcome.cost is not None:
                notes.costs[row] = outcome.cost
            if outcome.reports:
                self.reports.replace(row, outcome.reports)
            self.reports.live.discard(row)
            if outcome.has_value:
                self._columns["values"][row] = values
            self.status[row] = outcome.status
            self.finished[told:] = [row]
            self.version = version

        return effect

    def stage_correction(self, row: int, outcome: Outcome) -> Effect:
        """Another outcome of a row that was told."""
        values = [value * sign for value, sign in zip(outcome.values, self.signs, strict=False)]
        noise = () if outcome.noise is None else (outcome.noise,)
        beside = {"constraints": outcome.constraints[: width_of(outcome)], "noise": noise}
        columns = {name: self._with_rows(name, [row], numbers) for name, numbers in beside.items()}
        notes, known = self.notes, self.outcome(row)
        attributes = attributes_after(notes.attributes.get(row, {}), outcome)
        former = notes.former.get(row, ()) if known is None else (*notes.former.get(row, ()), known)
        revision, version = self.revision + 1, self.version + 1

        def effect() -> None:
            for name, buffer in columns.items():
                self._columns.replace(name, buffer)
            self._columns["values"][row] = values if outcome.has_value else math.nan
            self.status[row] = outcome.status
            notes.former[row] = former
            notes.note_reason(row, outcome.reason)
            if outcome.cost is not None:
                notes.costs[row] = outcome.cost
            if outcome.budget is not None:
                self.budgets[row] = outcome.budget
            if outcome.reports:
                self.reports.replace(row, outcome.reports)
            notes.attributes[row] = attributes
            self.revision, self.version = revision, version

        return effect

    def stage_withdrawal(self, rows: Sequence[int], reason: str | None = None) -> Effect:
        """Rows that no longer count; comparisons with them go, and what was compared with nothing else is pending."""
        gone, notes = set(rows), self.notes
        pairs = [pair for pair in self.pairs if gone.isdisjoint(pair)]
        alone = sorted({row for pair in self.pairs for row in pair} - {row for pair in pairs for row in pair} - gone)
        status = self.status.copy()
        status[list(rows)], status[alone] = Status.WITHDRAWN, Status.PENDING
        columns = {name: self._with_rows(name, rows, ()) for name in ("constraints", "noise")}
        told = {row: outcome for row in rows if (outcome := self.outcome(row)) is not None}
        kept = {row: each for row, each in told.items() if each.has_failed or not self.by_preference}
        former = {row: (*notes.former.get(row, ()), each) for row, each in kept.items()}  # utilities are not told
        finished = [each for each in self.finished if not _is_gone(each, status)]
        revision, version = self.revision + 1, self.version + 1

        def effect() -> None:
            for name, buffer in columns.items():
                self._columns.replace(name, buffer)
            self._columns["values"][[*rows, *alone]] = math.nan
            self.status[:] = status
            self.pairs, self.finished = pairs, finished
            notes.former.update(former)
            self.reports.withdraw(rows)
            for row in rows:
                notes.note_reason(row, reason)
            self.revision, self.version = revision, version

        return effect

    def stage_pairs(self, pairs: Sequence[Pair]) -> Effect:
        """Comparisons, which change the utilities of all rows that have been compared."""
        at, revision, version = len(self.pairs), self.revision + 1, self.version + 1

        def effect() -> None:
            self.pairs[at:] = pairs
            self.status[[row for pair in pairs for row in pair]] = Status.COMPLETE
            self.revision, self.version = revision, version

        return effect

    def stage(self, change: Effect) -> Effect:
        """Another change of notes, reports or the queue: an effect that counts as one."""
        version = self.version + 1

        def effect() -> None:
            change()
            self.version = version

        return effect

    def _with_rows(self, name: str, rows: Sequence[int], numbers: Sequence[float]) -> Array:
        """A buffer with these numbers in some rows, NaN for none; without columns if no row has any then."""
        width = self._width(name, rows)
        buffer = self._columns.wide(name, len(numbers) or width).copy()
        if not numbers and not width:
            return buffer[:, :0]
        buffer[list(rows)] = numbers if numbers else math.nan
        return buffer

    # --- parts -------------------------------------------------------------------------------------------------------

    def take(self, rows: Array, n_asked: int = 0, n_beaten: int = 0) -> "Ledger":
        """Some rows as a ledger that knows of no others: to look at, not to change.

        Args:
            rows: numbers of m rows, ascending, all of this run or all of one earlier task, none withdrawn.
            n_asked: how many rows the run has asked for.
            n_beaten: how many trials that are not among them thresholds count as equal to the worst value.
        """
        part = self._copy(rows)
        part.tasks[:] = 0
        part.notes, part.finished, part.revision = self.notes.take(rows), [range(len(rows))], 0
        part.reports = self.reports.take(rows.tolist() if self.reports else ())
        part.task_names, part.n_asked, part.n_beaten = (), n_asked, n_beaten
        place = {row: place for place, row in enumerate(rows.tolist())} if self.pairs else {}
        among = [pair for pair in self.pairs if place.keys() >= set(pair)]
        part.pairs = [(place[better], place[worse]) for better, worse in among]
        part._fitted = 0  # the utilities are those by all comparisons
        return part

    def with_failures(self, rows: Sequence[int]) -> "Ledger":
        """The same rows, of which some complete ones have failed: to look at, not to change."""
        part = self._copy(np.arange(len(self)))
        part.values[list(rows)], part.status[list(rows)] = math.nan, Status.FAILED
        return part

    def with_values(self, values: Mapping[int, float]) -> "Ledger":
        """The same rows, of which some have these values to minimise: to look at, not to change."""
        part = self._copy(np.arange(len(self)))
        part.values[list(values), 0] = list(values.values())
        return part

    def by_objective(self, j: int) -> "Ledger":
        """The same rows with the j-th value in the place of the first: to look at, not to change."""
        part, order = self._copy(np.arange(len(self))), [j, *(i for i in range(self.k) if i != j)]
        part._columns.replace("values", part._columns["values"][:, order])
        part.directions, part.signs = tuple(self.directions[i] for i in order), self.signs[order]
        return part

    def _copy(self, rows: Array) -> "Ledger":
        """Some rows, in columns of their own."""
        if self.by_preference and self._fitted != self.revision:
            self._fit_utilities()
        part = copy(self)
        part._columns, part.ranking = self._columns.take(rows), Ranking(part)
        part._statistics = part._trials = None
        return part


def _is_gone(finished: int | range, status: Array) -> bool:
    """Whether a row, or each of several, is withdrawn, by the status codes (n)."""
    rows = finished if isinstance(finished, int) else slice(finished.start, finished.stop)
    return bool(np.all(status[rows] == Status.WITHDRAWN))


def _among(rows: Array, notes: Mapping[int, Any]) -> dict[int, Any]:
    """Notes by row, of some rows alone, by their place among these (ascending)."""
    numbers = np.fromiter(notes, dtype=np.int64, count=len(notes))
    places, found = np.searchsorted(rows, numbers).tolist(), np.isin(numbers, rows).tolist()
    return {place: each for place, each, is_in in zip(places, notes.values(), found, strict=True) if is_in}
