"""Every point of a finite space, without the grid of combinations that conditions and constraints rule out."""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from deepbore.space.frontier import Frontier, candidates
from deepbore.space.layout import Layout


def every_point(layout: Layout) -> Tensor:
    """All distinct points (cardinality x d), in the order of their columns.

    Parameter after parameter, parents first: each row so far is continued by every level where the parameter is active,
    and by 0 where it is not; what a constraint forbids goes as soon as its parameters are there. The entries of a row
    are put together at the end, so that no step copies those before it.

    Args:
        layout: of a space whose parameters all have levels, or are fixed, or never active.
    """
    order = [column for group in sorted(layout.groups(), key=_unconstrained(layout)) for column in group]
    frontier = Frontier(layout, order)
    steps: list[tuple[np.ndarray, np.ndarray]] = []  # entries, and the row of the step before that each continues
    for column in order:
        entries = candidates(layout, column) if frontier.is_active(column).any() else np.zeros(1)
        before, choice, active = frontier.step(column, entries)
        steps.append((entries[choice] * active, before))
    return _in_order(torch.from_numpy(_together(steps, order)))


def _unconstrained(layout: Layout) -> Callable[[list[int]], bool]:
    constrained = {column for columns in layout.constraints.columns for column in columns}
    return constrained.isdisjoint  # what is cut comes first


def _together(steps: Sequence[tuple[np.ndarray, np.ndarray]], order: Sequence[int]) -> np.ndarray:
    """The entries of all steps, in the columns where they belong."""
    rows = np.arange(len(steps[-1][0]))
    points = np.empty((len(rows), len(order)))
    for (entries, before), column in zip(reversed(steps), reversed(order), strict=True):
        points[:, column] = entries[rows]
        rows = before[rows]
    return points


def _in_order(points: Tensor) -> Tensor:
    """Rows sorted by their first column, then the second, ..."""
    return points[torch.from_numpy(np.lexsort(points.T.flip(0).numpy()))]
