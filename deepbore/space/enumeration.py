"""Every point of a finite space, without the grid of combinations that conditions rule out."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from deepbore.space.conditions import Conditions
from deepbore.space.parameters import Parameter


def every_point(parameters: Sequence[Parameter], conditions: Conditions) -> Tensor:
    """All distinct points (cardinality x d), in the order of their columns.

    Parameter after parameter, parents first: each row so far is continued by every level where the parameter is active,
    and by 0 where it is not. The entries of a row are put together at the end, so that no step copies those before it.

    Args:
        parameters: d, all with levels.
        conditions: of the same parameters.
    """
    rows, open_ = 1, _Open(conditions)
    steps: list[tuple[Tensor, Tensor]] = []  # entries, and the row of the step before that each continues
    for column in conditions.order:
        active = conditions.is_active(column, open_.active, open_.levels, torch.ones(rows, dtype=torch.bool))
        before, level = _continued(active, parameters[column].levels or 1)
        rows, active = len(before), active[before]
        steps.append((parameters[column].from_level(level) * active, before))
        open_.move_on(column, before, level, active)
    return _in_order(_together(steps, conditions.order))


class _Open:
    """Levels and activity of the parents whose children are still to come, row by row."""

    def __init__(self, conditions: Conditions):
        self._to_come = {column: len(children) for column, children in conditions.children.items()}
        self._parent_of = {column: rule.parent for column, rule in conditions.rules.items()}
        self.levels: dict[int, Tensor] = {}
        self.active: dict[int, Tensor] = {}

    def move_on(self, column: int, before: Tensor, level: Tensor, active: Tensor) -> None:
        """Continues the rows by a parameter: `before` says which row each new one continues."""
        parent = self._parent_of.get(column)
        if parent is not None:
            self._to_come[parent] -= 1
        kept = [open_ for open_ in self.levels if self._to_come[open_]]
        self.levels = {open_: self.levels[open_][before] for open_ in kept}
        self.active = {open_: self.active[open_][before] for open_ in kept}
        if self._to_come.get(column):
            self.levels[column], self.active[column] = level, active


def _continued(active: Tensor, levels: int) -> tuple[Tensor, Tensor]:
    """The row that each new row continues, and its level: all of them where it is active, one where it is not."""
    counts = np.where(active.numpy(), levels, 1)
    before = np.repeat(np.arange(len(counts)), counts)
    level = np.arange(len(before)) - (counts.cumsum() - counts)[before]
    return torch.from_numpy(before), torch.from_numpy(level.astype(np.float64))


def _together(steps: Sequence[tuple[Tensor, Tensor]], order: Sequence[int]) -> Tensor:
    """The entries of all steps, in the columns where they belong."""
    rows = torch.arange(len(steps[-1][0]))
    points = torch.empty(len(rows), len(order), dtype=torch.float64)
    for (entries, before), column in zip(reversed(steps), reversed(order), strict=True):
        points[:, column] = entries[rows]
        rows = before[rows]
    return points


def _in_order(points: Tensor) -> Tensor:
    """Rows sorted by their first column, then the second, ..."""
    return points[torch.from_numpy(np.lexsort(points.T.flip(0).numpy()))]
