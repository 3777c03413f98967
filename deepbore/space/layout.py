"""`Layout`: which parameters of a space must be looked at together, and in which order."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import torch

from deepbore.space.conditions import Conditions
from deepbore.space.constraints import Constraints
from deepbore.space.parameters import Parameter


@dataclass(frozen=True)
class Layout:
    """What a space declares, in terms of columns.

    Attributes:
        parameters: d, in the order of a point's columns.
        conditions: of the same parameters.
        constraints: of the same parameters.
        fixed: column -> the entry at which it stands still.
    """

    parameters: Sequence[Parameter]
    conditions: Conditions
    constraints: Constraints
    fixed: Mapping[int, float] = field(default_factory=dict)

    def groups(self) -> list[list[int]]:
        """Columns that conditions or constraints tie together, directly or by others; groups don't know of each other.

        Within a group parents come first, and of siblings those with less below them, so that few stay open.
        """
        root_of = self._roots()
        groups: dict[int, list[int]] = {}
        for column in self._order():
            groups.setdefault(root_of[column], []).append(column)
        return list(groups.values())

    def is_free(self, column: int) -> bool:
        """Whether a column is continuous and not fixed, so that it has no end of values."""
        return self.parameters[column].is_continuous and column not in self.fixed

    @cached_property
    def idle(self) -> frozenset[int]:
        """Columns that are never active, for what is fixed."""
        levels = {column: self.level_where_fixed(column) for column in self.fixed}
        conditional = self.conditions.columns if levels else []
        return frozenset(column for column in conditional if not self.conditions.is_possible(column, levels))

    def level_where_fixed(self, column: int) -> float:
        """What conditions on a fixed parameter look at."""
        return float(self.conditions.level(column, torch.tensor([self.fixed[column]], dtype=torch.float64))[0])

    def _roots(self) -> list[int]:
        """For each column the one that stands for its group."""
        root = list(range(len(self.parameters)))

        def find(column: int) -> int:
            while root[column] != column:
                root[column] = root[root[column]]
                column = root[column]
            return column

        ties: Iterable[Sequence[int]] = [
            *((column, *self.conditions.parents(column)) for column in self.conditions.columns),
            *self.constraints.columns,
        ]
        for first, *others in ties:
            for other in others:
                root[find(other)] = find(first)
        return [find(column) for column in range(len(root))]

    def _order(self) -> list[int]:
        """Parents first, depth first; beside each other what a constraint names together, then what has less below."""
        conditions = self.conditions
        constrained: dict[int, int] = {}
        for place, columns in enumerate(self.constraints.columns):
            for column in columns:
                constrained.setdefault(column, place)
        below = dict.fromkeys(range(len(self.parameters)), 1)
        for column in reversed(conditions.order):
            for parent in conditions.parents(column):
                below[parent] += below[column]

        def late(column: int) -> tuple[int, int]:
            return constrained.get(column, len(self.constraints.columns)), below[column]

        return conditions.parents_first(late)
