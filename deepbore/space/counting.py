"""How many configurations a space has, without building them."""

import math
from itertools import pairwise

import numpy as np
import torch

from deepbore.space.constraints import as_objects
from deepbore.space.frontier import Frontier, TooMany, candidates
from deepbore.space.layout import Layout

MOST = 20_000_000  # combinations that are looked at to count those which constraints allow
Array = np.ndarray


def count(layout: Layout) -> float:
    """The number of distinct configurations, exactly.

    Infinite if a parameter without end of values is active somewhere, or where constraints leave too many combinations
    to be looked at. Parameters that nothing depends on are multiplied, levels that all children take alike are counted
    as one, so conditions cost what they tell apart, and not the grid.
    """
    if not layout.constraints.are_known:
        return math.inf
    free = [c for c in range(len(layout.parameters)) if layout.is_free(c) and c not in layout.idle]
    if free and (not layout.constraints or any(column in layout.conditions.children for column in free)):
        return math.inf
    total: int = 1
    endless = False
    try:
        for group in layout.groups():
            found, is_endless = _count_group(layout, group)
            total, endless = total * found, endless or is_endless
    except TooMany:
        return math.inf
    return math.inf if endless and total else total


def _count_group(layout: Layout, group: list[int]) -> tuple[int, bool]:
    """Configurations of some columns, and whether one of them has a parameter without end."""
    if len(group) == 1 and not layout.constraints and not layout.fixed:
        return layout.parameters[group[0]].levels or 1, layout.is_free(group[0])
    frontier = Frontier(layout, group, MOST)
    counts, endless = as_ints(1), np.zeros(1, dtype=bool)
    for place, column in enumerate(group):
        if frontier.last_use[column] == place and not frontier.is_constrained(column):
            counts = _multiplied(layout, frontier, column, counts)
            entries, weights = np.zeros(1), None
        elif frontier.is_constrained(column) or column in layout.fixed or layout.is_free(column):
            entries, weights = _few(layout, column), None
        else:
            entries, weights = _classes(layout, column)
        before, choice, active = frontier.step(column, entries)
        counts, endless = counts[before], endless[before]
        if weights is not None:
            counts = counts * np.where(active, weights[choice], 1)
        if layout.is_free(column):
            endless = endless | active
        order, starts = frontier.merge()
        counts = np.add.reduceat(counts[order], starts) if len(starts) else counts[order]
        endless = np.logical_or.reduceat(endless[order], starts) if len(starts) else endless[order]
    return int(counts.sum()) if len(counts) else 0, bool(endless.any())


def _few(layout: Layout, column: int) -> Array:
    """All entries of a column, if they are not too many."""
    levels = layout.parameters[column].levels
    stands_still = column in layout.fixed or column in layout.idle
    if not stands_still and levels is not None and levels > MOST:
        raise TooMany
    return candidates(layout, column)


def _multiplied(layout: Layout, frontier: Frontier, column: int, counts: Array) -> Array:
    """Counts with those of a column that nothing depends on."""
    levels = 1 if column in layout.fixed else layout.parameters[column].levels
    if levels is None or levels == 1:
        return counts
    return counts * np.where(frontier.is_active(column), as_ints(levels), as_ints(1))


def _classes(layout: Layout, column: int) -> tuple[Array, Array]:
    """One entry for each stretch of levels that no condition tells apart, and how many levels it has."""
    levels = layout.parameters[column].levels or 1
    rules = [rule for child in layout.conditions.children.get(column, []) for rule in layout.conditions.rules[child]]
    spans = [span for rule in rules if rule.parent == column for span in rule.spans]
    cuts = sorted({0, levels, *(int(first) for first, _ in spans), *(int(last) + 1 for _, last in spans)})
    firsts = torch.tensor(cuts[:-1], dtype=torch.float64)
    weights = as_ints(*(after - first for first, after in pairwise(cuts)))
    return layout.parameters[column].from_level(firsts).numpy(), weights


def as_ints(*numbers: int) -> Array:
    """Whole numbers without a limit."""
    return as_objects(numbers)
