"""`Columns`: the rows of a ledger as tensors, and their configurations as points of the search space."""

import math
from collections.abc import Hashable, Mapping, Sequence
from copy import copy
from hashlib import blake2b
from typing import Any

import numpy as np
import torch
from torch import Tensor

from deepbore.compute.numerics import smallest
from deepbore.data.ledger import Array, Buffers, Effect, KeptNatives, Ledger, RunStatistics
from deepbore.data.trial import Budget, Direction, Status, Trial
from deepbore.errors import TrialError
from deepbore.space import SearchSpace

LONGEST_IDENTITY = 64  # bytes that are kept as they are; of longer ones a digest without known collisions
MANY, KEPT = 100_000, 1000  # rows from which those with the least values are kept, and how many of them


class Columns:
    """n rows as tensors: a projection of a ledger, and the points of the search space that it knows nothing of.

    On a CPU the tensors are views of the ledger's columns; on another device they are copies, made when asked for.

    Args:
        space: the search space.
        ledger: the rows; none yet, unless they are taken over by `of`.

    Attributes:
        first_with: identity of a configuration -> the first row of this run that has it.
    """

    def __init__(self, space: SearchSpace, ledger: Ledger):
        self.space, self.ledger = space, ledger
        self.device = torch.device("cpu")
        self._buffers = Buffers(points=(len(space), np.float64), first=(None, np.int64))
        self.first_with: dict[Hashable, int] = {}
        self._copies: dict[str, tuple[object, Tensor]] = {}  # of columns on another device, and what they are of
        self._least: dict[int, tuple[int, int, Tensor]] = {}  # of a column: revision, entries of `finished`, and rows
        ledger.natives = self

    @classmethod
    def of(cls, space: SearchSpace, ledger: Ledger) -> "Columns":
        """The columns of a ledger that a journal has filled: its configurations are encoded together.

        Raises:
            PointError: for a configuration outside the space.
        """
        natives = ledger.natives
        assert isinstance(natives, KeptNatives)
        points = [encoded(space, each) for _, each in natives.segments()]
        columns = cls(space, ledger)
        columns._buffers.write(len(ledger), points=np.concatenate(points) if points else 0.0, first=0)
        columns._buffers.n = len(ledger)
        columns._find_firsts()
        return columns

    def __len__(self) -> int:
        """n, pending and failed rows included."""
        return len(self.ledger)

    # --- what the ledger has -----------------------------------------------------------------------------------------

    @property
    def directions(self) -> tuple[Direction, ...]:
        """The direction of each value."""
        return self.ledger.directions

    @property
    def budget(self) -> Budget | None:
        """What a trial may spend; None where there are no budgets."""
        return self.ledger.budget

    @property
    def by_preference(self) -> bool:
        """Whether trials are compared."""
        return self.ledger.by_preference

    @property
    def k(self) -> int:
        """How many values an outcome has."""
        return self.ledger.k

    @property
    def statistics(self) -> RunStatistics:
        """Counts of the rows."""
        return self.ledger.statistics

    # --- tensors -----------------------------------------------------------------------------------------------------

    @property
    def points(self) -> Tensor:
        """n x d."""
        array = self._buffers["points"]
        if self.device.type == "cpu":
            return torch.from_numpy(array)
        _, known = self._copies.get("points", (None, torch.empty(0, len(self.space), dtype=torch.float64)))
        if len(known) != len(array):  # points do not change: the new ones join
            known = torch.cat([known.to(self.device), torch.from_numpy(array[len(known) :]).to(self.device)])
            self._copies["points"] = None, known
        return known

    @property
    def first_rows(self) -> Tensor:
        """For each row the first one of this run with the same configuration (n).

        Rows of earlier tasks, and withdrawn ones, stand alone.
        """
        return self._tensor("first", self._buffers["first"])

    @property
    def values(self) -> Tensor:
        """Values to minimise (n x k); NaN where a trial is pending, failed or withdrawn."""
        return self._tensor("values", self.ledger.values)

    @property
    def user_values(self) -> Tensor:
        """Values in the user's sign (n x k); NaN where a trial is pending, failed or withdrawn."""
        return self.values * self.values.new_tensor(self.ledger.signs)

    @property
    def constraints(self) -> Tensor:
        """Black-box constraints (n x c), kept where <= 0; NaN in rows that have none. The first outcome fixes c."""
        return self._tensor("constraints", self.ledger.constraints)

    @property
    def budgets(self) -> Tensor:
        """Budgets (n); NaN where there is none."""
        return self._tensor("budgets", self.ledger.budgets)

    @property
    def tasks(self) -> Tensor:
        """Numbers of the tasks (n): 0 for this run, t for the earlier one named `task_names[t - 1]`."""
        return self._tensor("tasks", self.ledger.tasks)

    @property
    def status(self) -> Tensor:
        """`Status` codes (n)."""
        return self._tensor("status", self.ledger.status)

    @property
    def noise(self) -> Tensor | None:
        """Standard deviations of the values (n), NaN in rows that have none told; None while no row has."""
        noise = self.ledger.noise
        return None if noise is None else self._tensor("noise", noise)

    def _tensor(self, name: str, array: Array) -> Tensor:
        """A column as a tensor: the same memory on a CPU; on another device a copy of this version of the ledger."""
        if self.device.type == "cpu":
            return torch.from_numpy(array)
        version, tensor = self._copies.get(name, (None, None))
        if tensor is None or version != self.ledger.version:
            tensor = torch.from_numpy(array).to(self.device)
            self._copies[name] = self.ledger.version, tensor
        return tensor

    def to(self, device: torch.device | str) -> None:
        """Has the tensors on a device."""
        self.device, self._copies, self._least = torch.device(device), {}, {}

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
        return self.status == Status.PENDING

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
        return torch.from_numpy(self.statistics.pending).to(self.device)

    @property
    def has_repeats(self) -> bool:
        """Whether a configuration stands in several rows of this run."""
        if len(self.first_with) == len(self):  # one row each: the usual case costs nothing
            return False
        first = self._buffers["first"]
        return bool((first != np.arange(len(first))).any())

    @property
    def n_left(self) -> float:
        """How many configurations of the space no trial of this run has; infinite unless it is finite."""
        if not self.space.points.is_fixed or math.isinf(self.space.cardinality):
            return self.space.cardinality - len(self.first_with)
        own = self.points[self.own_rows]
        return self.space.cardinality - len(set(self.space.points.identify(own[self.space.points.permitted(own)])))

    def to_user(self, value: Any, column: int | slice = 0) -> Any:
        """A minimised value (or array of them) of one objective, or of several, in the user's sign."""
        return value * self.ledger.signs.tolist()[column]

    def told_since(self, entries: int) -> Tensor:
        """Rows that were told, or imported, after so many entries of `finished` (m), in this order."""
        new = self.ledger.finished[entries:]
        rows = [np.arange(each.start, each.stop) if isinstance(each, range) else np.array([each]) for each in new]
        return torch.from_numpy(np.concatenate(rows)).to(self.device)

    # --- rows and configurations -------------------------------------------------------------------------------------

    def params(self, rows: Sequence[int]) -> list[dict[str, Any]]:
        """The configurations of some rows in plain values, in their order."""
        return [self.space.points.plain(each) for each in self.space.decode(self._points_of(rows))]

    def keep(self, row: int, params: Sequence[Mapping[str, Any]]) -> None:
        """Nothing: they are kept as points."""

    def keep_columns(self, row: int, columns: Mapping[str, Sequence[Any]], n: int) -> None:
        """Nothing: they are kept as points."""

    def _points_of(self, rows: Sequence[int] | Array) -> Tensor:
        return torch.from_numpy(self._buffers["points"][np.asarray(rows, dtype=np.int64)])

    def trials(self, rows: Sequence[int] | None = None) -> list[Trial]:
        """The records of some rows, in their order, or of all; they are decoded together."""
        rows = range(len(self)) if rows is None else rows
        points = self._points_of(rows)
        return self.ledger.records(rows, self.space.decode(points), self.identities(points))

    def row_of(self, trial: int | Trial) -> int:
        """The row of a trial, given by itself or by its number.

        Raises:
            TrialError: for an unknown trial, or one of another run.
        """
        if not isinstance(trial, Trial):
            return self.ledger.checked(trial)
        row = self.ledger.checked(trial.id)
        if trial.identity is not None and self.first_with.get(trial.identity) == int(self._buffers["first"][row]):
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
            for each in self.space.points.identify(points)
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
        key, ledger = self.values[:, column], self.ledger
        if len(self) < MANY:
            return self.least(key, k)
        revision, entries, rows = self._least.get(column, (ledger.revision, 0, self.no_rows))
        if revision != ledger.revision or len(rows) < k:
            rows = self.least(key, max(k, KEPT))
        elif entries < len(ledger.finished):
            rows = torch.cat([rows, self.told_since(entries)])
            rows = rows[self.least(key[rows], KEPT)]
        self._least[column] = ledger.revision, len(ledger.finished), rows
        return rows[:k]

    def distinct(self, rows: Tensor) -> Tensor:
        """Of some rows (m) the first with each configuration, in their order."""
        return distinct_rows(rows, self.first_rows)

    @property
    def no_rows(self) -> Tensor:
        """Numbers of no rows, on the device of the columns."""
        return self.first_rows[:0]

    # --- changes -----------------------------------------------------------------------------------------------------

    def stage_rows(self, points: Tensor, has_task: bool = False) -> Effect:
        """The points (m x d) of new rows, beyond the end, where they do not count yet; of an earlier task, perhaps."""
        row = len(self)
        new, firsts = ({}, range(row, row + len(points))) if has_task else self._firsts(self.identities(points))
        self._buffers.n = row  # an interrupted effect is made again as a whole
        self._buffers.write(len(points), points=points.cpu().numpy(), first=np.asarray(firsts, dtype=np.int64))
        end = row + len(points)

        def effect() -> None:
            self.first_with.update(new)
            self._buffers.n = end

        return effect

    def _firsts(self, identities: Sequence[Hashable]) -> tuple[dict[Hashable, int], list[int]]:
        """New configurations with their first row, and the first row of each of m, which follow the last row."""
        new: dict[Hashable, int] = {}
        firsts = [
            new.setdefault(each, row) if (first := self.first_with.get(each)) is None else first
            for row, each in enumerate(identities, len(self))
        ]
        return new, firsts

    def _find_firsts(self) -> None:
        """The first rows of all configurations."""
        first = self._buffers["first"]
        first[:] = np.arange(len(first))
        own = np.flatnonzero((self.ledger.tasks == 0) & (self.ledger.status != Status.WITHDRAWN))
        identities = self.identities(self._points_of(own))
        first[own] = [self.first_with.setdefault(each, row) for row, each in zip(own.tolist(), identities, strict=True)]

    def stage_withdrawal(self, rows: Sequence[int]) -> Effect:
        """Some rows stand alone, as if they were of no configuration."""
        first, first_with = self._buffers["first"].copy(), dict(self.first_with)
        going = [row for row in rows if self.ledger.tasks[row] == 0 and first[row] == row]
        first[list(rows)] = rows
        has_repeats = self.has_repeats
        for row, identity in zip(going, self.identities(self._points_of(going)), strict=True):
            others = np.flatnonzero(first == row) if has_repeats else np.empty(0, dtype=np.int64)
            others = others[others != row]
            if len(others):
                first[others] = first_with[identity] = int(others[0])
            else:
                del first_with[identity]

        def effect() -> None:
            self._buffers["first"][:] = first
            self.first_with = first_with

        return effect

    # --- parts -------------------------------------------------------------------------------------------------------

    def take(self, rows: Tensor, first_with: dict[Hashable, int] | None = None, **counted: int) -> "Columns":
        """Some rows as columns that know of no others: to look at, not to change.

        Args:
            rows: numbers of m rows, ascending, all of this run or all of one earlier task.
            first_with: configurations of these rows, where they are known.
            counted: what the rows do not tell; see `Ledger.take`.
        """
        at = rows.cpu().numpy()
        part = self._with(self.ledger.take(at, **counted), self._buffers.take(at))
        first = part._buffers["first"]
        first[:] = first_among(torch.from_numpy(at), torch.from_numpy(first)).numpy()
        part.first_with = first_with or {}  # else repeats are looked for among these rows
        return part

    def with_failures(self, rows: Sequence[int]) -> "Columns":
        """The same rows, of which some complete ones have failed: to look at, not to change."""
        return self._with(self.ledger.with_failures(rows), self._copied)

    def with_values(self, values: Mapping[int, float]) -> "Columns":
        """The same rows, of which some have these values to minimise: to look at, not to change."""
        return self._with(self.ledger.with_values(values), self._copied)

    @property
    def _copied(self) -> Buffers:
        return self._buffers.take(np.arange(len(self)))

    def _with(self, ledger: Ledger, buffers: Buffers) -> "Columns":
        part = copy(self)
        part.ledger, part._buffers, part._copies, part._least = ledger, buffers, {}, {}
        ledger.natives = part
        return part


def encoded(space: SearchSpace, natives: list[dict[str, Any]] | Mapping[str, Sequence[Any]]) -> Array:
    """Configurations as points (n x d), as they are when they come from a journal: one by one, or columns.

    Raises:
        PointError: for a configuration outside the space.
    """
    if isinstance(natives, list):
        points = space.encode(space.decode(space.encode(natives)))
    else:
        points = space.points.encode_columns(natives)
    array: Array = points.numpy()
    return array


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
