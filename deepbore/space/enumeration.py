"""`Enumeration`: every point of a finite space, and their number, without the grid of all combinations."""

import math
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import count, pairwise

import numpy as np
import torch
from torch import Tensor

from deepbore.errors import SpaceError
from deepbore.space.constraints import Constraints, as_objects
from deepbore.space.structure import SpaceStructure

CHUNK = 500_000  # combinations processed at once
MOST = 20_000_000  # combinations evaluated in order to count the permitted ones
MOST_ENTRIES = 10**9  # entries of all points of a space together: 8 GB
COUNTABLE = 10**300  # number of configurations from which a space counts as infinite; floats end at 1.8e308

Array = np.ndarray


class TooMany(Exception):
    """There are more combinations than may be evaluated."""


class Enumeration:
    """The number of configurations that may be proposed, and all of them.

    Args:
        structure: the structure of the space.
        constraints: its constraints.
    """

    def __init__(self, structure: SpaceStructure, constraints: Constraints):
        self.structure, self.constraints = structure, constraints

    @cached_property
    def cardinality(self) -> float:
        """The number of distinct permitted configurations; see `SearchSpace.cardinality`."""
        found = self._count()
        return found if found < COUNTABLE else math.inf

    def points(self) -> Tensor:
        """All permitted points (cardinality x d); see `Points.enumerate`."""
        if any(map(self.structure.is_unbounded, self.structure.continuous_columns)) and math.isinf(self.cardinality):
            raise SpaceError("only a finite space can be enumerated, but this one has a continuous parameter.")
        if self.cardinality * len(self.structure) > MOST_ENTRIES:
            raise SpaceError(
                f"at most {MOST_ENTRIES:,} entries can be enumerated, but the space has {self.cardinality:.3g} points "
                f"of {len(self.structure)}. Use sample or sobol."
            )
        return self._constrained_points.clone() if self.constraints.each else self._every_point()

    @cached_property
    def _constrained_points(self) -> Tensor:
        """All points, cached: constraints may forbid most combinations, so that few points take long to find."""
        return self._every_point()

    # --- points ------------------------------------------------------------------------------------------------------

    def _every_point(self) -> Tensor:
        """All distinct points (cardinality x d), in the order of their columns.

        The columns are taken in one by one, parents first: each row so far is continued by every level where the
        parameter is active, and by 0 where it is not. A constraint removes rows as soon as all its columns are there.
        The entries of a row are collected at the end, so that no step copies those before it.
        """
        order = [column for group in self._constrained_first() for column in group]
        counter = CombinationCounter(self.structure, self.constraints, order)
        steps: list[tuple[Array, Array]] = []  # entries, and the row of the previous step that each continues
        for column in order:
            entries = self._entries(column) if counter.is_active(column).any() else np.zeros(1)
            before, choice, active = counter.step(column, entries)
            steps.append((entries[choice] * active, before))
        points = torch.from_numpy(_collected(steps, order))
        return points[torch.from_numpy(np.lexsort(points.T.flip(0).numpy()))]

    def _constrained_first(self) -> list[list[int]]:
        """Independent groups of columns; those with a constraint first, as they are cut."""
        constrained = {column for columns in self.constraints.columns for column in columns}
        return sorted(self.structure.tied_columns(self.constraints.columns), key=constrained.isdisjoint)

    def _entries(self, column: int) -> Array:
        """All entries of a column (k): one if it is fixed, and 0 alone if it is unbounded or never active."""
        if column in self.structure.fixed_entries:
            return np.array([self.structure.fixed_entries[column]])
        parameter = self.structure.of_column[column]
        if parameter.levels is None or column in self.structure.unused_columns:
            return np.zeros(1)
        found: Array = parameter.from_level(torch.arange(parameter.levels, dtype=torch.float64)).numpy()
        return found

    # --- their number ------------------------------------------------------------------------------------------------

    def _count(self) -> float:
        """The exact number of distinct configurations, or infinity.

        Independent groups are multiplied, and so are parameters without children and constraints. Levels with the same
        active children are counted as one, so the cost does not grow with the grid.
        """
        if not self.constraints.are_known or self._is_uncountable():
            return math.inf
        total: int = 1
        is_infinite = False
        try:
            for group in self.structure.tied_columns(self.constraints.columns):
                found, unbounded = self._count_group(group)
                total, is_infinite = total * found, is_infinite or unbounded
        except TooMany:
            return math.inf
        return math.inf if is_infinite and total else total

    def _is_uncountable(self) -> bool:
        """Whether an unbounded parameter makes the space infinite, or is a parent, so that it can't be counted."""
        structure = self.structure
        columns = (c for c in structure.continuous_columns if c not in structure.unused_columns)
        unbounded = [column for column in columns if structure.is_unbounded(column)]
        parents = structure.conditions.children
        return bool(unbounded) and (not self.constraints.each or any(column in parents for column in unbounded))

    def _count_group(self, group: list[int]) -> tuple[int, bool]:
        """Number of configurations of a group of columns, and whether one of them has an unbounded parameter."""
        structure = self.structure
        if len(group) == 1 and not self.constraints.each and not structure.is_fixed:
            return structure.of_column[group[0]].levels or 1, structure.is_unbounded(group[0])
        counter = CombinationCounter(structure, self.constraints, group, MOST)
        counts, unbounded = _as_ints(1), np.zeros(1, dtype=bool)
        for place, column in enumerate(group):
            is_leaf = counter.last_use[column] == place and not counter.is_constrained(column)
            counts = self._multiplied(counter, column, counts) if is_leaf else counts
            entries, weights = (np.zeros(1), None) if is_leaf else self._weighted_entries(counter, column)
            before, choice, active = counter.step(column, entries)
            counts, unbounded = counts[before], unbounded[before]
            if weights is not None:
                counts = counts * np.where(active, weights[choice], 1)
            if structure.is_unbounded(column):
                unbounded = unbounded | active
            order, starts = counter.merge()
            counts = _reduced(np.add, counts[order], starts)
            unbounded = _reduced(np.logical_or, unbounded[order], starts)
        return int(counts.sum()) if len(counts) else 0, bool(unbounded.any())

    def _weighted_entries(self, counter: "CombinationCounter", column: int) -> tuple[Array, Array | None]:
        """Entries of a column that represent all its levels, and the number of levels of each; None if it is one."""
        fixed, is_unbounded = self.structure.fixed_entries, self.structure.is_unbounded(column)
        if counter.is_constrained(column) or column in fixed or is_unbounded:
            return self._few_entries(column), None
        return self._classes(column)

    def _few_entries(self, column: int) -> Array:
        """All entries of a column. Raises TooMany if they can't be evaluated."""
        levels = self.structure.of_column[column].levels
        is_single = column in self.structure.fixed_entries or column in self.structure.unused_columns
        if not is_single and levels is not None and levels > MOST:
            raise TooMany
        return self._entries(column)

    def _multiplied(self, counter: "CombinationCounter", column: int, counts: Array) -> Array:
        """Counts of combinations times the levels of a column without children."""
        levels = 1 if column in self.structure.fixed_entries else self.structure.of_column[column].levels
        if levels is None or levels == 1:
            return counts
        return counts * np.where(counter.is_active(column), _as_ints(levels), _as_ints(1))

    def _classes(self, column: int) -> tuple[Array, Array]:
        """One entry for each range of levels that all conditions treat alike, and the number of its levels."""
        parameter, conditions = self.structure.of_column[column], self.structure.conditions
        levels = parameter.levels or 1
        rules = [rule for child in conditions.children.get(column, []) for rule in conditions.rules[child]]
        spans = [span for rule in rules if rule.parent == column for span in rule.spans]
        cuts = sorted({0, levels, *(int(first) for first, _ in spans), *(int(last) + 1 for _, last in spans)})
        firsts = torch.tensor(cuts[:-1], dtype=torch.float64)
        weights = _as_ints(*(after - first for first, after in pairwise(cuts)))
        return parameter.from_level(firsts).numpy(), weights


class CombinationCounter:
    """Combinations of levels, extended column by column, and cut as soon as a constraint forbids them.

    Columns are kept only as long as their children or constraints need them.

    Args:
        structure: the structure of the space.
        constraints: its constraints.
        order: the columns to come, parents first.
        most: number of combinations that may be evaluated in total.

    Attributes:
        n: number of combinations.
        chosen: column -> index of its entry in each combination (n), of the columns that are kept.
        active: column -> whether it is active in each combination (n), of the columns that are kept.
        last_use: column -> position in the order until which it is kept.
    """

    def __init__(
        self, structure: SpaceStructure, constraints: Constraints, order: Sequence[int], most: float = math.inf
    ):
        self.structure, self.constraints, self.n, self._left = structure, constraints, 1, most
        self.chosen: dict[int, Array] = {}
        self.active: dict[int, Array] = {}
        self._levels: dict[int, Array] = {}
        self._natives: dict[int, Array] = {}
        place_of = {column: place for place, column in enumerate(order)}
        self.last_use = {column: place_of[column] for column in order}
        for column in order:
            for parent in structure.conditions.parents(column):
                self.last_use[parent] = max(self.last_use[parent], place_of[column])
        self._due: dict[int, list[int]] = {}  # position in the order -> constraints that are complete there
        for place, columns in enumerate(constraints.columns):
            if columns[0] in place_of:
                complete = max(place_of[column] for column in columns)
                self._due.setdefault(complete, []).append(place)
                for column in columns:
                    self.last_use[column] = max(self.last_use[column], complete)
        self._constrained = {column for columns in constraints.columns for column in columns}
        self._places = count()

    def is_constrained(self, column: int) -> bool:
        """Whether a constraint names the column."""
        return column in self._constrained

    def is_active(self, column: int) -> Array:
        """Whether the next column is active in each combination (n)."""
        conditions = self.structure.conditions
        parents = conditions.parents(column)
        found = {parent: torch.from_numpy(self.active[parent]) for parent in parents}
        levels = {parent: torch.from_numpy(self._levels[parent][self.chosen[parent]]) for parent in parents}
        return conditions.is_active(column, found, levels, torch.ones(self.n, dtype=torch.bool)).numpy()

    def step(self, column: int, entries: Array) -> tuple[Array, Array, Array]:
        """Extends the combinations by a column: by every entry where it is active, by the first where it is not.

        Args:
            column: the next column.
            entries: its entries in a point (k).

        Returns:
            For each new combination (n) the one that it continues, the index of its entry, and whether the column is
            active.

        Raises:
            TooMany: if there are more combinations than may be evaluated.
        """
        place = next(self._places)
        as_tensor = torch.from_numpy(entries)
        self._levels[column] = self.structure.conditions.level(column, as_tensor).numpy()
        if column in self._constrained:
            self._natives[column] = self.constraints.natives(column, as_tensor)
        was_active, due = self.is_active(column), self._due.get(place, [])
        self._spend(int(np.where(was_active, len(entries), 1).sum()), due)
        pieces = []
        for before, choice in _continued(was_active, len(entries)):
            chosen = {each: self.chosen[each][before] for each in self.chosen} | {column: choice}
            active = {each: self.active[each][before] for each in self.active} | {column: was_active[before]}
            kept = np.flatnonzero(self._allowed(due, chosen, active)) if due else slice(None)
            pieces.append((before[kept], choice[kept], was_active[before][kept]))
        joined = [np.concatenate(parts) for parts in zip(*pieces, strict=True)]
        self._move_on(place, column, *joined)
        return joined[0], joined[1], joined[2]

    def _spend(self, rows: int, due: Sequence[int]) -> None:
        self._left -= rows * max((self.constraints.each[each].effort for each in due), default=1)
        if self._left < 0:
            raise TooMany

    def _allowed(self, due: Sequence[int], chosen: dict[int, Array], active: dict[int, Array]) -> Array:
        """Which combinations meet the complete constraints; those with an unbounded active parameter count as met."""
        n = len(next(iter(chosen.values())))
        allowed, names = np.ones(n, dtype=bool), self.structure.names
        for each in due:
            columns, rows = self.constraints.columns[each], np.flatnonzero(allowed)
            for column in columns:
                if self.structure.is_unbounded(column):
                    rows = rows[~active[column][rows]]
            if len(rows):
                natives = {names[column]: self._natives[column][chosen[column][rows]] for column in columns}
                on = {names[column]: active[column][rows] for column in columns}
                allowed[rows] = self.constraints.each[each].holds(natives, on)
        return allowed

    def _move_on(self, place: int, column: int, before: Array, choice: Array, active: Array) -> None:
        """Takes over the combinations after a step, without the columns that are needed no more."""
        self.n = len(before)
        kept = [each for each in self.chosen if self.last_use[each] > place]
        self.chosen = {each: self.chosen[each][before] for each in kept}
        self.active = {each: self.active[each][before] for each in kept}
        if self.last_use[column] > place:
            self.chosen[column], self.active[column] = choice, active

    def merge(self) -> tuple[Array, Array]:
        """Merges combinations that agree in all columns that are kept.

        Returns:
            The previous combinations in an order in which merged ones are neighbours, and where each of the new
            combinations (n) begins in it.
        """
        key = np.zeros(self.n, dtype=np.int64)
        size = 1
        for column, choice in self.chosen.items():
            width = len(self._levels[column]) + 1
            if size * width > 2**62:
                key = np.unique(key, return_inverse=True)[1].astype(np.int64)
                size = int(key.max(initial=0)) + 1
            key = key * width + np.where(self.active[column], choice, width - 1)
            size *= width
        order = np.argsort(key, kind="stable")
        starts = np.flatnonzero(np.r_[True, np.diff(key[order]) != 0]) if self.n else np.zeros(0, dtype=np.int64)
        rows = order[starts]
        self.chosen = {column: choice[rows] for column, choice in self.chosen.items()}
        self.active = {column: active[rows] for column, active in self.active.items()}
        self.n = len(rows)
        return order, starts


def _continued(active: Array, k: int) -> Iterator[tuple[Array, Array]]:
    """In chunks, the combination that each new one continues, and the index of its entry.

    Args:
        active: whether each combination is continued by all entries; else by the first.
        k: number of entries.
    """
    counts = np.where(active, k, 1)
    ends = counts.cumsum()
    begin = 0
    while begin < len(counts):
        done = ends[begin - 1] if begin else 0
        end = max(begin + 1, int(np.searchsorted(ends, done + CHUNK, side="right")))
        before = np.repeat(np.arange(begin, end), counts[begin:end])
        yield before, np.arange(len(before)) - (ends[before] - counts[before] - done)
        begin = end
    if not len(counts):
        yield np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)


def _collected(steps: Sequence[tuple[Array, Array]], order: Sequence[int]) -> Array:
    """The points (n x d) from the entries of all steps."""
    rows = np.arange(len(steps[-1][0]))
    points = np.empty((len(rows), len(order)))
    for (entries, before), column in zip(reversed(steps), reversed(order), strict=True):
        points[:, column] = entries[rows]
        rows = before[rows]
    return points


def _reduced(function: np.ufunc, values: Array, starts: Array) -> Array:
    """Values (n) reduced over segments that begin at `starts` (k)."""
    found: Array = function.reduceat(values, starts) if len(starts) else values
    return found


def _as_ints(*numbers: int) -> Array:
    """Integers of any size."""
    return as_objects(numbers)
