"""`Table`: the rows of a run as columns that grow, with counts and notes beside them."""

import math
import operator
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from copy import copy, deepcopy
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Any

import numpy as np
import torch
from torch import Tensor

from deepbore.compute.numerics import smallest
from deepbore.data.outcome import Outcome, as_number, attributes_after, width_of, with_former
from deepbore.data.reports import Reports
from deepbore.data.trial import Budget, Direction, Status, Trial, sign_of
from deepbore.errors import TrialError, ValueTypeError
from deepbore.space import SearchSpace
from deepbore.space.parameters.scale import without_gradients

ROOM = 16  # rows at the beginning
LONGEST_IDENTITY = 64  # bytes that are kept as they are; of longer ones a digest without known collisions
MANY, KEPT = 100_000, 1000  # rows from which those with the least values are kept, and how many of them
Effect = Callable[[], None]  # a change in memory: assignments that may be done twice


# --- columns ---------------------------------------------------------------------------------------------------------


class Buffers:
    """Named tensors with n rows each, and room for more; they grow by doubling.

    Rows that are written beyond row n count only when n is set to include them: appending is one assignment, which an
    interrupt finds done or not done.

    Args:
        widths: name -> columns of a buffer (None for a vector), and its type.
    """

    def __init__(self, **widths: tuple[int | None, torch.dtype]):
        self.n = 0
        self._buffers = {
            name: torch.empty(ROOM if width is None else (ROOM, width), dtype=dtype)
            for name, (width, dtype) in widths.items()
        }

    def __getitem__(self, name: str) -> Tensor:
        """The n rows of a buffer: a view, through which they are changed."""
        return self._buffers[name][: self.n]

    def take(self, rows: Tensor) -> "Buffers":
        """Copies of some rows, given by number."""
        part = Buffers()
        part.n, part._buffers = len(rows), {name: buffer[rows] for name, buffer in self._buffers.items()}
        return part

    def write(self, **rows: Tensor | float) -> None:
        """Writes rows (m x width, or one number for all) beyond the end; setting `n` makes them count."""
        end = self.n + next(len(each) for each in rows.values() if isinstance(each, Tensor))
        if end > self._capacity:
            capacity = max(end, 2 * self._capacity)
            self._buffers = {name: _grown(buffer, capacity) for name, buffer in self._buffers.items()}
        for name, each in rows.items():
            buffer = self._buffers[name]
            buffer[self.n : end] = each.to(buffer) if isinstance(each, Tensor) else each

    def wide(self, name: str, width: int) -> Tensor:
        """The whole buffer if it has this width, or for width 0; else a new one of NaN, for `replace`."""
        buffer = self._buffers[name]
        return buffer if width in (0, buffer.shape[1]) else buffer.new_full((len(buffer), width), math.nan)

    def replace(self, name: str, buffer: Tensor) -> None:
        """Exchanges a buffer."""
        self._buffers = {**self._buffers, name: buffer}

    def to(self, device: torch.device | str) -> None:
        """Moves the buffers to a device."""
        self._buffers = {name: buffer.to(device) for name, buffer in self._buffers.items()}

    @property
    def _capacity(self) -> int:
        return len(next(iter(self._buffers.values())))


def _grown(buffer: Tensor, capacity: int) -> Tensor:
    larger = buffer.new_empty(capacity, *buffer.shape[1:])
    larger[: len(buffer)] = buffer
    return larger


def as_numbers(values: Any, what: str = "objective values") -> np.ndarray:
    """Numbers as a float64 array of the same shape; None becomes NaN.

    Raises:
        ValueTypeError: for anything but numbers.
    """
    values = without_gradients(values)
    try:
        array = np.asarray(values)
    except (TypeError, ValueError):
        raise ValueTypeError(f"{what} must be numbers, one for each row, but got {_begin(values)}.") from None
    if array.dtype.kind in "fiu":
        return array.astype(np.float64)
    if array.dtype.kind != "O":
        raise ValueTypeError(f"{what} must be numbers, but got {_begin(values)}.")
    each = [math.nan if value is None else as_number(value, what) for value in array.ravel()]
    return np.array(each, dtype=np.float64).reshape(array.shape)


def _begin(values: Any) -> str:
    return f"{list(values)[:3]!r} ..." if isinstance(values, Iterable) else f"{values!r:.100}"


# --- counts ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RunStatistics:
    """Counts of the rows so far; each change makes a new record.

    Attributes:
        n_asked: rows that were reserved, told since or not.
        pending: numbers of the pending rows, ascending.
        n_failed: rows that have failed.
        n_complete: rows that have values.
        n_pruned: rows that were pruned.
        n_withdrawn: rows that were withdrawn.
        n_earlier: rows of earlier tasks, without withdrawn ones.
        task_names: of the earlier tasks.
        n_beaten: trials outside of these rows that thresholds count as equal to the worst value (see `RungLabels`).
    """

    n_asked: int = 0
    pending: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    n_failed: int = 0
    n_complete: int = 0
    n_pruned: int = 0
    n_withdrawn: int = 0
    n_earlier: int = 0
    task_names: tuple[str, ...] = ()
    n_beaten: int = 0

    def after_asking(self, rows: np.ndarray) -> "RunStatistics":
        """With these rows reserved."""
        return replace(self, n_asked=self.n_asked + len(rows), pending=np.append(self.pending, rows))

    def after_telling(self, row: int, status: Status) -> "RunStatistics":
        """With one row complete, failed or pruned."""
        counted = {Status.COMPLETE: "n_complete", Status.FAILED: "n_failed", Status.PRUNED: "n_pruned"}[status]
        more: dict[str, Any] = {counted: getattr(self, counted) + 1}
        return replace(self, pending=self.pending[self.pending != row], **more)

    def after_comparing(self, rows: np.ndarray) -> "RunStatistics":
        """With these rows (m) complete, and no others."""
        return replace(self, pending=self.pending[~np.isin(self.pending, rows)], n_complete=len(rows))

    def after_importing(self, failed: np.ndarray, task: str | None) -> "RunStatistics":
        """With m rows from elsewhere.

        Args:
            failed: which of them have failed (m booleans).
            task: name of the earlier task; None for this run.
        """
        n_failed = int(failed.sum())
        counted = replace(self, n_failed=self.n_failed + n_failed, n_complete=self.n_complete + len(failed) - n_failed)
        if task is None:
            return counted
        names = self.task_names if task in self.task_names else (*self.task_names, task)
        return replace(counted, n_earlier=self.n_earlier + len(failed), task_names=names)

    def after_revising(self, status: np.ndarray, tasks: np.ndarray) -> "RunStatistics":
        """With other status codes (n) of the rows, which are of these tasks (n)."""
        kept = {"n_asked": self.n_asked, "task_names": self.task_names, "n_beaten": self.n_beaten}
        n_earlier = int(((tasks > 0) & (status != Status.WITHDRAWN)).sum())
        return self.of_rows(status, n_earlier=n_earlier, **kept)

    @classmethod
    def of_rows(cls, status: np.ndarray, **counted: Any) -> "RunStatistics":
        """The counts of rows with these status codes (m); and other counts, by name."""
        return cls(
            pending=np.flatnonzero(status == Status.PENDING),
            n_failed=int((status == Status.FAILED).sum()),
            n_complete=int((status == Status.COMPLETE).sum()),
            n_pruned=int((status == Status.PRUNED).sum()),
            n_withdrawn=int((status == Status.WITHDRAWN).sum()),
            **counted,
        )


# --- the table -------------------------------------------------------------------------------------------------------


class Table:
    """n rows: points and outcomes as columns, counts, and notes by row. What changes them is staged as an `Effect`.

    Args:
        space: the search space.
        directions: "minimize" or "maximize" for each of the k values.
        budget: what a trial may spend; None where there are no budgets.
        by_preference: whether trials are compared, and have utilities for values.

    Attributes:
        signs: 1 for each value that is minimised, -1 where it is maximised; values are kept with this sign.
        statistics: the counts.
        first_with: identity of a configuration -> the first row of this run that has it.
        resumed: row -> the row that it continues.
        attributes: row -> further data of its outcome, by name.
        reasons: row -> the reason of its failure, or why it was withdrawn.
        former: row -> its outcomes that no longer count: those before each correction, and the one that was withdrawn.
        finished: rows in the order in which they were told; a range for rows that were imported at once.
        revision: how often values that were told before have changed.
        reports: what the trials have reported, by row.
        times: row -> when its evaluation began and ended, in seconds since 1970, where that is known.
    """

    def __init__(
        self,
        space: SearchSpace,
        directions: tuple[Direction, ...],
        budget: Budget | None = None,
        by_preference: bool = False,
    ):
        self.space, self.directions, self.budget, self.by_preference = space, directions, budget, by_preference
        self.signs = [sign_of(direction) for direction in directions]
        self._columns = Buffers(
            points=(len(space), torch.float64),
            values=(len(directions), torch.float64),
            constraints=(0, torch.float64),
            budgets=(None, torch.float64),
            tasks=(None, torch.int32),
            status=(None, torch.int8),
            noise=(0, torch.float64),
            first=(None, torch.int64),
        )
        self.statistics = RunStatistics()
        self.first_with: dict[Hashable, int] = {}
        self.resumed: dict[int, int] = {}
        self.attributes: dict[int, Mapping[str, Any]] = {}
        self.reasons: dict[int, str] = {}
        self.former: dict[int, tuple[Outcome, ...]] = {}
        self.finished: list[int | range] = []
        self.revision = 0
        self.reports = Reports(self.signs[0])
        self.times: dict[int, tuple[float, float]] = {}
        self._least: dict[int, tuple[int, int, Tensor]] = {}  # of a column: revision, entries of `finished`, and rows

    def __len__(self) -> int:
        """n, pending and failed rows included."""
        return self._columns.n

    @property
    def k(self) -> int:
        """How many values an outcome has."""
        return len(self.directions)

    # --- columns -----------------------------------------------------------------------------------------------------

    @property
    def points(self) -> Tensor:
        """n x d."""
        return self._columns["points"]

    @property
    def values(self) -> Tensor:
        """Values to minimise (n x k); NaN where a trial is pending, failed or withdrawn."""
        return self._columns["values"]

    @property
    def user_values(self) -> Tensor:
        """Values in the user's sign (n x k); NaN where a trial is pending, failed or withdrawn."""
        return self.values * self.values.new_tensor(self.signs)

    @property
    def constraints(self) -> Tensor:
        """Black-box constraints (n x c), kept where <= 0; NaN in rows that have none. The first outcome fixes c."""
        return self._columns["constraints"]

    @property
    def budgets(self) -> Tensor:
        """Budgets (n); NaN where there is none."""
        return self._columns["budgets"]

    @property
    def tasks(self) -> Tensor:
        """Numbers of the tasks (n): 0 for this run, t for the earlier one named `task_names[t - 1]`."""
        return self._columns["tasks"]

    @property
    def noise(self) -> Tensor | None:
        """Standard deviations of the values (n), NaN in rows that have none told; None while no row has."""
        noise = self._columns["noise"]
        return noise[:, 0] if noise.shape[1] else None

    @property
    def first_rows(self) -> Tensor:
        """For each row the first one of this run with the same configuration (n).

        Rows of earlier tasks, and withdrawn ones, stand alone.
        """
        return self._columns["first"]

    @property
    def status(self) -> Tensor:
        """`Status` codes (n)."""
        return self._columns["status"]

    @property
    def has_value(self) -> Tensor:
        """Which rows have a value (n booleans): complete ones, and pruned ones that were given a likely one."""
        return self._has_value(slice(None))

    def own_with_value(self, part: slice) -> Tensor:
        """Which rows of a part of the table are of this run and have a value (booleans)."""
        return self._has_value(part) & (self.tasks[part] == 0)

    def _has_value(self, part: slice) -> Tensor:
        complete = self.status[part] == Status.COMPLETE
        if not self.statistics.n_pruned:
            return complete
        return complete | ((self.status[part] == Status.PRUNED) & ~self.values[part, 0].isnan())

    @property
    def feasible(self) -> Tensor:
        """Whether a trial is complete and no constraint is violated (n booleans)."""
        return (self.status == Status.COMPLETE) & ~(self.constraints > 0).any(-1)

    @property
    def pending(self) -> Tensor:
        """Which trials were asked for and not told (n booleans)."""
        none = torch.zeros(len(self), dtype=torch.bool, device=self.points.device)
        return none.index_fill_(0, self.pending_rows, True)

    @property
    def finished_rows(self) -> Tensor:
        """Numbers of the trials that are complete, failed or pruned, in order."""
        return ((self.status != Status.PENDING) & (self.status != Status.WITHDRAWN)).nonzero().squeeze(-1)

    @property
    def own_rows(self) -> Tensor:
        """Numbers of the trials of this run, without withdrawn ones, in order."""
        return ((self.tasks == 0) & (self.status != Status.WITHDRAWN)).nonzero().squeeze(-1)

    @property
    def pending_rows(self) -> Tensor:
        """Numbers of the trials that were asked for and not told, in order."""
        return torch.from_numpy(self.statistics.pending).to(self.points.device)

    @property
    def has_repeats(self) -> bool:
        """Whether a configuration stands in several rows of this run."""
        if len(self.first_with) == len(self):  # one row each: the usual case costs nothing
            return False
        return bool((self.first_rows != torch.arange(len(self), device=self.first_rows.device)).any())

    @property
    def n_left(self) -> float:
        """How many configurations of the space no trial of this run has; infinite unless it is finite."""
        if not self.space.is_fixed or math.isinf(self.space.cardinality):
            return self.space.cardinality - len(self.first_with)
        own = self.points[self.own_rows]
        return self.space.cardinality - len(set(self.space.identify(own[self.space.permitted(own)])))

    def to_user(self, value: Any, column: int | slice = 0) -> Any:
        """A minimised value (or array of them) of one objective, or of several, in the user's sign."""
        return value * self.signs[column]

    def told_since(self, entries: int) -> Tensor:
        """Rows that were told, or imported, after so many entries of `finished` (m), in this order."""
        new = self.finished[entries:]
        rows = [np.arange(each.start, each.stop) if isinstance(each, range) else np.array([each]) for each in new]
        return torch.from_numpy(np.concatenate(rows)).to(self.points.device)

    # --- rows and configurations -------------------------------------------------------------------------------------

    def checked(self, row: int) -> int:
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
        return row

    def row_of(self, trial: int | Trial) -> int:
        """The row of a trial, given by itself or by its number.

        Raises:
            TrialError: for an unknown trial, or one of another run.
        """
        if not isinstance(trial, Trial):
            return self.checked(trial)
        row = self.checked(trial.id)
        if trial.identity is not None and self.first_with.get(trial.identity) == int(self.first_rows[row]):
            return row
        (own,) = self.trials([row])
        known = trial.identity is not None
        if (own.identity != trial.identity) if known else (own.params != trial.params):
            raise TrialError(
                f"a trial is told to the run that gave it, but here trial {trial.id} has {own.params}, and not "
                f"{trial.params}. Results from elsewhere are added by `add`."
            )
        return row

    def identities(self, points: Tensor) -> list[Hashable]:
        """The identity of each point's configuration (n x d -> n), in few bytes: a million of them are kept."""
        return [
            blake2b(each, digest_size=16).digest() if isinstance(each, bytes) and len(each) > LONGEST_IDENTITY else each
            for each in self.space.identify(points)
        ]

    def unseen(self, points: Tensor) -> list[bool]:
        """Whether each point's configuration (n x d) stands in no row of this run, or in withdrawn ones only."""
        return [identity not in self.first_with for identity in self.identities(points)]

    def least(self, key: Tensor, k: int) -> Tensor:
        """Rows of the k least finite keys (n), or fewer, the least first."""
        rows = smallest(key, min(k, len(key)))
        return rows[key[rows] < math.inf]

    def least_values(self, column: int, k: int) -> Tensor:
        """Rows of the k least values of a column, or fewer, the least first.

        Of many rows they are kept, and brought up to date by those that are new.
        """
        key = self.values[:, column]
        if len(self) < MANY:
            return self.least(key, k)
        revision, entries, rows = self._least.get(column, (self.revision, 0, self.no_rows))
        if revision != self.revision or len(rows) < k or rows.device != key.device:
            rows = self.least(key, max(k, KEPT))
        elif entries < len(self.finished):
            rows = torch.cat([rows, self.told_since(entries)])
            rows = rows[self.least(key[rows], KEPT)]
        self._least[column] = self.revision, len(self.finished), rows
        return rows[:k]

    def distinct(self, rows: Tensor) -> Tensor:
        """Of some rows (m) the first with each configuration, in their order."""
        return distinct_rows(rows, self.first_rows)

    @property
    def no_rows(self) -> Tensor:
        """Numbers of no rows, on the device of the columns."""
        return self.first_rows[:0]

    def trials(self, rows: Sequence[int] | None = None) -> list[Trial]:
        """The records of some rows, in their order, or of all; they are decoded together."""
        rows = range(len(self)) if rows is None else rows
        at = torch.tensor(rows, dtype=torch.long, device=self.points.device)
        points, noise = self.points[at], self.noise
        columns = (
            self.space.decode(points),
            self.identities(points),
            [Status(status) for status in self.status[at].tolist()],
            self.to_user(self.values[at].cpu().numpy(), slice(None)).tolist(),
            self.constraints[at].tolist(),
            self.budgets[at].tolist(),
            self.tasks[at].tolist(),
            [math.nan] * len(rows) if noise is None else noise[at].tolist(),
        )
        found: dict[int, Trial] = {}
        for row, *told in zip(rows, *columns, strict=True):
            params, identity, status, values, constraints, budget, task, deviation = told
            known = tuple(values) if status is Status.COMPLETE else None
            trial = Trial(
                row,
                params,
                known[0] if known else None,
                status,
                known,
                tuple(constraints) if constraints and not math.isnan(constraints[0]) else None,
                self._plain_budget(budget),
                self.statistics.task_names[task - 1] if task else None,
                deepcopy(self.attributes.get(row, {})),  # a trial is a record: a change in it changes nothing here
                self.reasons.get(row),
                identity,
                self._continued(row, found),
                None if math.isnan(deviation) else deviation,
                (),
                self.reports.of(row),
                None,
                *self.times.get(row, ()),
            )
            found[row] = with_former(trial, self.former.get(row, ()))
        return list(found.values())

    def outcomes(self, rows: Sequence[int]) -> dict[int, Outcome]:
        """The outcomes of those of some rows that were told, without budgets and attributes."""
        told = (trial for trial in self.trials(rows) if trial.status.is_told)
        return {
            each.id: Outcome(each.values or (), each.constraints or (), None, each.status, each.reason, {}, each.noise)
            for each in told
        }

    def width_without(self, rows: Tensor) -> int:
        """c, the number of constraints, as far as rows other than these (m) have any; else 0."""
        return self._width("constraints", rows)

    def _width(self, name: str, rows: Tensor) -> int:
        """How many columns of a buffer are filled in rows other than these (m): all, or none."""
        buffer = self._columns[name]
        return buffer.shape[1] if bool((~buffer.isnan()).any(-1).index_fill(0, rows, False).any()) else 0

    def _plain_budget(self, budget: float) -> float | None:
        """A budget as it was declared; None where there is none."""
        if math.isnan(budget):
            return None
        return budget if self.budget is None else self.budget.plain(budget)

    def _continued(self, row: int, known: Mapping[int, Trial]) -> Trial | None:
        """The trial that a row continues, a known one where possible; None for a new trial."""
        if (before := self.resumed.get(row)) is None:
            return None
        return known[before] if before in known else self.trials([before])[0]

    # --- changes -----------------------------------------------------------------------------------------------------

    def stage_rows(
        self,
        points: Tensor,
        statistics: RunStatistics,
        *,
        status: Tensor | Status,
        task: int = 0,
        budgets: Tensor | float = math.nan,
        values: Tensor | float = math.nan,
        constraints: Tensor | None = None,
        noise: Tensor | None = None,
        resumed: Mapping[int, int] | None = None,
        imported: bool = False,
    ) -> Effect:
        """Writes m rows beyond the end, where they do not count yet.

        Args:
            points: m x d.
            statistics: the counts with these rows.
            status: one code for each row, or for all.
            task: number of the task, 0 for this run.
            budgets: m, or one for all; NaN where there is none.
            values: to minimise, m x k, or one for all; NaN where there is none.
            constraints: m x c; None if no row has any.
            noise: standard deviations (m); None if no row has any.
            resumed: row -> the row that it continues.
            imported: whether the rows have their outcomes.
        """
        start, end = len(self), len(self) + len(points)
        new, firsts = ({}, range(start, end)) if task else self._firsts(self.identities(points))
        self._columns.write(
            points=points,
            values=values,
            constraints=math.nan,
            budgets=budgets,
            tasks=task,
            status=status if isinstance(status, Tensor) else int(status),
            noise=math.nan,
            first=torch.tensor(firsts),
        )
        wide = self._columns.wide("constraints", 0 if constraints is None else constraints.shape[1])
        if constraints is not None:
            wide[start:end] = constraints.to(wide)
        noisy = self._columns.wide("noise", 0 if noise is None else 1)
        if noise is not None:
            noisy[start:end, 0] = noise.to(noisy)
        told = len(self.finished)

        def effect() -> None:
            self._columns.replace("constraints", wide)
            self._columns.replace("noise", noisy)
            self.first_with.update(new)
            self.resumed.update(resumed or {})
            if imported:
                self.finished[told:] = [range(start, end)]
            self.statistics, self._columns.n = statistics, end

        return effect

    def _firsts(self, identities: Sequence[Hashable]) -> tuple[dict[Hashable, int], list[int]]:
        """New configurations with their first row, and the first row of each of m, which follow the last row."""
        new: dict[Hashable, int] = {}
        firsts = [
            new.setdefault(each, row) if (first := self.first_with.get(each)) is None else first
            for row, each in enumerate(identities, len(self))
        ]
        return new, firsts

    def stage_outcome(self, row: int, outcome: Outcome) -> Effect:
        """The outcome of a pending row."""
        values = [value * sign for value, sign in zip(outcome.values, self.signs, strict=False)]
        wide = self._columns.wide("constraints", width := width_of(outcome))
        noisy = self._columns.wide("noise", 0 if outcome.noise is None else 1)
        attributes = {**self.attributes.get(row, {}), **outcome.attributes}
        statistics, told = self.statistics.after_telling(row, outcome.status), len(self.finished)

        def effect() -> None:
            if width:
                wide[row] = wide.new_tensor(outcome.constraints)
                self._columns.replace("constraints", wide)
            if outcome.budget is not None:
                self.budgets[row] = outcome.budget
            if outcome.noise is not None:
                noisy[row] = outcome.noise
                self._columns.replace("noise", noisy)
            if outcome.attributes:
                self.attributes[row] = attributes
            if outcome.reason:
                self.reasons[row] = outcome.reason
            if outcome.reports:
                self.reports.replace(row, outcome.reports)
            self.reports.live.discard(row)
            if outcome.has_value:
                self.values[row] = self.values.new_tensor(values)
            self.status[row] = int(outcome.status)
            self.finished[told:] = [row]
            self.statistics = statistics

        return effect

    def stage_utilities(self, rows: np.ndarray, utilities: np.ndarray) -> Effect:
        """The values of all rows that have been compared (m), and of no others."""
        at, statistics, revision = torch.from_numpy(rows), self.statistics.after_comparing(rows), self.revision + 1

        def effect() -> None:
            self.values[at, 0] = self.values.new_tensor(-utilities)
            self.status[at] = int(Status.COMPLETE)
            self.statistics, self.revision = statistics, revision

        return effect

    def stage_correction(self, row: int, outcome: Outcome) -> Effect:
        """Another outcome of a row that was told."""
        at = self.no_rows.new_tensor([row])
        status = self.status.cpu().numpy().copy()
        status[row] = int(outcome.status)
        statistics = self.statistics.after_revising(status, self.tasks.cpu().numpy())
        values = [value * sign for value, sign in zip(outcome.values, self.signs, strict=False)]
        told = self.values.new_tensor(values) if outcome.has_value else math.nan
        noise = () if outcome.noise is None else (outcome.noise,)
        beside = {"constraints": outcome.constraints[: width_of(outcome)], "noise": noise}
        columns = {name: self._with_row(name, at, numbers) for name, numbers in beside.items()}
        attributes = attributes_after(self.attributes.get(row, {}), outcome)
        former, revision = (*self.former.get(row, ()), self.outcomes([row])[row]), self.revision + 1

        def effect() -> None:
            for name, buffer in columns.items():
                self._columns.replace(name, buffer)
            self.values[row] = told
            self.status[row] = int(outcome.status)
            self.former[row] = former
            self._note(row, outcome.reason)
            if outcome.budget is not None:
                self.budgets[row] = outcome.budget
            if outcome.reports:
                self.reports.replace(row, outcome.reports)
            self.attributes[row] = attributes
            self.statistics, self.revision = statistics, revision

        return effect

    def stage_withdrawal(self, rows: Sequence[int], reason: str | None = None, alone: Sequence[int] = ()) -> Effect:
        """Rows (m) that no longer count.

        Args:
            rows: their numbers.
            reason: why.
            alone: rows that have lost their value with them, as no comparison is left, and are pending again.
        """
        at, pending = self.no_rows.new_tensor(rows), self.no_rows.new_tensor(alone)
        status = self.status.index_fill(0, at, int(Status.WITHDRAWN)).index_fill(0, pending, int(Status.PENDING))
        statistics = self.statistics.after_revising(status.cpu().numpy(), self.tasks.cpu().numpy())
        first, first_with = self._without_firsts(at)
        columns = {name: self._with_row(name, at, ()) for name in ("constraints", "noise")}
        told = self.outcomes(rows).items()
        kept = {row: each for row, each in told if each.has_failed or not self.by_preference}  # utilities are not told
        former = {row: (*self.former.get(row, ()), each) for row, each in kept.items()}
        gone, revision = status == Status.WITHDRAWN, self.revision + 1
        finished = [each for each in self.finished if not _is_gone(each, gone)]

        def effect() -> None:
            for name, buffer in columns.items():
                self._columns.replace(name, buffer)
            self.values[torch.cat([at, pending])] = math.nan
            self.status.copy_(status)
            self.first_rows.copy_(first)
            self.first_with, self.finished = first_with, finished
            self.former.update(former)
            self.reports.withdraw(rows)
            for row in rows:
                self._note(row, reason)
            self.statistics, self.revision = statistics, revision

        return effect

    def _note(self, row: int, reason: str | None) -> None:
        """Replaces the reason of a row."""
        self.reasons.pop(row, None)
        if reason:
            self.reasons[row] = reason

    def _with_row(self, name: str, at: Tensor, numbers: Sequence[float]) -> Tensor:
        """A buffer with these numbers in some rows, NaN for none; without columns if no row has any then."""
        buffer = self._columns.wide(name, len(numbers) or self._width(name, at)).clone()
        if not numbers and not self._width(name, at):
            return buffer[:, :0]
        buffer[at] = buffer.new_tensor(numbers) if numbers else math.nan
        return buffer

    def _without_firsts(self, rows: Tensor) -> tuple[Tensor, dict[Hashable, int]]:
        """The first rows, and those by identity, when some rows (m) stand alone as if they were of no configuration."""
        first, first_with = self.first_rows.index_copy(0, rows, rows), dict(self.first_with)
        going = rows[(self.tasks[rows] == 0) & (self.first_rows[rows] == rows)]
        has_repeats = self.has_repeats
        for row, identity in zip(going.tolist(), self.identities(self.points[going]), strict=True):
            others = (first == row).nonzero().squeeze(-1) if has_repeats else self.no_rows
            others = others[others != row]
            if len(others):
                first[others] = first_with[identity] = int(others[0])
            else:
                del first_with[identity]
        return first, first_with

    def to(self, device: torch.device | str) -> None:
        """Moves the columns to a device."""
        self._columns.to(device)

    def take(self, rows: Tensor, first_with: dict[Hashable, int] | None = None, **counted: Any) -> "Table":
        """Some rows as a table that knows of no others: to look at, not to change.

        Args:
            rows: numbers of m rows, ascending, all of this run or all of one earlier task.
            first_with: configurations of these rows, where they are known.
            counted: statistics that the rows do not tell.
        """
        part = copy(self)
        part._columns, part._least = self._columns.take(rows), {}
        part.tasks.zero_()
        part.first_rows.copy_(first_among(rows, part.first_rows))
        part.statistics = RunStatistics.of_rows(part.status.cpu().numpy(), **counted)
        part.first_with = first_with or {}  # else repeats are looked for among these rows
        part.finished, part.revision = [range(len(rows))], 0
        part.attributes, part.reasons = _among(rows, self.attributes), _among(rows, self.reasons)
        part.former = _among(rows, self.former)
        part.times = _among(rows, self.times)
        part.reports = self.reports.take(rows.tolist() if self.reports else ())
        return part

    def with_failures(self, rows: Sequence[int]) -> "Table":
        """The same rows, of which some complete ones have failed: to look at, not to change."""
        part, at = self._copy(), self.no_rows.new_tensor(rows)
        part.values[at], part.status[at] = math.nan, int(Status.FAILED)
        known = self.statistics
        part.statistics = replace(known, n_failed=known.n_failed + len(rows), n_complete=known.n_complete - len(rows))
        return part

    def with_values(self, values: Mapping[int, float]) -> "Table":
        """The same rows, of which some have these values to minimise: to look at, not to change."""
        part, at = self._copy(), self.no_rows.new_tensor(list(values))
        part.values[at, 0] = part.values.new_tensor(list(values.values()))
        return part

    def _copy(self) -> "Table":
        """The same rows, in columns of their own."""
        part = copy(self)
        part._columns, part._least = self._columns.take(torch.arange(len(self), device=self.points.device)), {}
        return part


def _is_gone(finished: int | range, gone: Tensor) -> bool:
    """Whether a row, or each of several, is gone (n booleans)."""
    rows = finished if isinstance(finished, int) else slice(finished.start, finished.stop)
    return bool(gone[rows].all())


def first_among(rows: Tensor, first: Tensor) -> Tensor:
    """Of some rows, ascending, with the first row of each configuration (both m): the place of that among them (m).

    Where that is none of them, it is the place of the first that is.
    """
    places = torch.searchsorted(rows, first).clamp_(max=max(0, len(rows) - 1))
    return places if bool((rows[places] == first).all()) else regrouped(first)


def regrouped(keys: Tensor) -> Tensor:
    """For each of n keys (n, or n x k) the first row with the same (n)."""
    groups = keys.unique(dim=0, return_inverse=True)[1]
    rows = torch.arange(len(groups), device=groups.device)
    return torch.full_like(groups, len(groups)).scatter_reduce(0, groups, rows, "amin")[groups]


def distinct_rows(rows: Tensor, first: Tensor) -> Tensor:
    """Of some rows (m) the first with each configuration, in their order; `first` has the first row of each (n)."""
    places = {each: place for place, each in reversed(list(enumerate(first[rows].tolist())))}
    return rows[sorted(places.values())]


def _among(rows: Tensor, notes: Mapping[int, Any]) -> dict[int, Any]:
    """Notes by row, of some rows alone, by their place among these (ascending)."""
    numbers = torch.tensor(list(notes), dtype=torch.long, device=rows.device)
    found = torch.isin(numbers, rows).tolist()
    places = torch.searchsorted(rows, numbers).tolist()
    return {place: each for place, each, is_in in zip(places, notes.values(), found, strict=True) if is_in}
