"""`Frontier`: combinations of levels, built up parameter by parameter and cut as soon as a constraint forbids them."""

from collections.abc import Iterator, Sequence
from itertools import count

import numpy as np
import torch

from deepbore.space.layout import Layout

CHUNK = 500_000  # combinations that are looked at in one go
Array = np.ndarray


class TooMany(Exception):
    """There are more combinations than can be looked at."""


class Frontier:
    """The combinations so far of the columns that are still needed: by their children, or by a constraint.

    A step takes in one more column, parents first. Columns that nothing asks for any more are forgotten.

    Args:
        layout: of the space.
        order: the columns to come, parents first.
        most: combinations that may be looked at altogether.

    Attributes:
        n: how many combinations there are.
        chosen: column -> which of its candidates each combination has (n), of the columns that are needed.
        active: column -> whether it is active in each combination (n).
    """

    def __init__(self, layout: Layout, order: Sequence[int], most: float = float("inf")):
        self.layout, self.n, self._left = layout, 1, most
        self.chosen: dict[int, Array] = {}
        self.active: dict[int, Array] = {}
        self._levels: dict[int, Array] = {}
        self._natives: dict[int, Array] = {}
        place_of = {column: place for place, column in enumerate(order)}
        self.last_use = {column: place_of[column] for column in order}
        for column in order:
            for parent in layout.conditions.parents(column):
                self.last_use[parent] = max(self.last_use[parent], place_of[column])
        self._due: dict[int, list[int]] = {}
        for place, columns in enumerate(layout.constraints.columns):
            if columns[0] in place_of:
                complete = max(place_of[column] for column in columns)
                self._due.setdefault(complete, []).append(place)
                for column in columns:
                    self.last_use[column] = max(self.last_use[column], complete)
        self._constrained = {column for columns in layout.constraints.columns for column in columns}
        self._places = count()

    def is_constrained(self, column: int) -> bool:
        """Whether a constraint names the column."""
        return column in self._constrained

    def is_active(self, column: int) -> Array:
        """Whether a column that comes next is active in each combination (n)."""
        parents = self.layout.conditions.parents(column)
        found = {parent: torch.from_numpy(self.active[parent]) for parent in parents}
        levels = {parent: torch.from_numpy(self._levels[parent][self.chosen[parent]]) for parent in parents}
        always = torch.ones(self.n, dtype=torch.bool)
        return self.layout.conditions.is_active(column, found, levels, always).numpy()

    def step(self, column: int, entries: Array) -> tuple[Array, Array, Array]:
        """Takes in a column: every candidate where it is active, the first where it is not.

        Args:
            column: whose parents have been taken in.
            entries: its candidates (k), entries of a point.

        Returns:
            of the new combinations (n): the one that each continues, its candidate, whether the column is active.

        Raises:
            TooMany: if they are more than may be looked at.
        """
        place = next(self._places)
        as_tensor = torch.from_numpy(entries)
        self._levels[column] = self.layout.conditions.level(column, as_tensor).numpy()
        if column in self._constrained:
            self._natives[column] = self.layout.constraints.natives(column, as_tensor)
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
        self._left -= rows * max((self.layout.constraints.each[each].effort for each in due), default=1)
        if self._left < 0:
            raise TooMany

    def _allowed(self, due: Sequence[int], chosen: dict[int, Array], active: dict[int, Array]) -> Array:
        """Which combinations meet the constraints that are complete; where a column has no end, there is no saying."""
        n = len(next(iter(chosen.values())))
        allowed, names = np.ones(n, dtype=bool), self.layout.constraints.names
        for each in due:
            columns, rows = self.layout.constraints.columns[each], np.flatnonzero(allowed)
            for column in columns:
                if self.layout.is_free(column):
                    rows = rows[~active[column][rows]]
            if len(rows):
                natives = {names[column]: self._natives[column][chosen[column][rows]] for column in columns}
                on = {names[column]: active[column][rows] for column in columns}
                allowed[rows] = self.layout.constraints.each[each].holds(natives, on)
        return allowed

    def _move_on(self, place: int, column: int, before: Array, choice: Array, active: Array) -> None:
        """The combinations after a step, without the columns that are needed no more."""
        self.n = len(before)
        kept = [each for each in self.chosen if self.last_use[each] > place]
        self.chosen = {each: self.chosen[each][before] for each in kept}
        self.active = {each: self.active[each][before] for each in kept}
        if self.last_use[column] > place:
            self.chosen[column], self.active[column] = choice, active

    def merge(self) -> tuple[Array, Array]:
        """Makes one combination of those that agree in all that is needed.

        Returns:
            the combinations before, in the order of what they become (n), and where each of the new ones begins there.
        """
        key = np.zeros(self.n, dtype=np.int64)
        room = 1
        for column, choice in self.chosen.items():
            width = len(self._levels[column]) + 1
            if room * width > 2**62:
                key = np.unique(key, return_inverse=True)[1].astype(np.int64)
                room = int(key.max(initial=0)) + 1
            key = key * width + np.where(self.active[column], choice, width - 1)
            room *= width
        order = np.argsort(key, kind="stable")
        starts = np.flatnonzero(np.r_[True, np.diff(key[order]) != 0]) if self.n else np.zeros(0, dtype=np.int64)
        rows = order[starts]
        self.chosen = {column: choice[rows] for column, choice in self.chosen.items()}
        self.active = {column: active[rows] for column, active in self.active.items()}
        self.n = len(rows)
        return order, starts


def candidates(layout: Layout, column: int) -> Array:
    """All entries that a column can have (k): one where it is fixed, 0 alone where it has no end of them or is idle."""
    if column in layout.fixed:
        return np.array([layout.fixed[column]])
    parameter = layout.parameters[column]
    if parameter.levels is None or column in layout.idle:
        return np.zeros(1)
    found: Array = parameter.from_level(torch.arange(parameter.levels, dtype=torch.float64)).numpy()
    return found


def _continued(active: Array, k: int) -> Iterator[tuple[Array, Array]]:
    """The combination that each new one continues, and its candidate: all of them where it is active, else one."""
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
