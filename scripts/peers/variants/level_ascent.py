"""A search that climbs along levels, too: one parameter of the best points after the other takes its best level.

docs/ablation.md has what came of it ("An ascent along levels").
"""

from collections.abc import Callable

import torch
from torch import Tensor

import deepbore as db
from deepbore.candidates.base import Search, sorted_by_value
from peers.variants.settings import Settings

MOST = 16  # levels up to which all are tried; of more, so many that are evenly spread
ROUNDS = 20  # at most; the ascent ends where no single change is better


class LevelAscent(db.LocalSearch):
    """`LocalSearch`, and from its best points an ascent that changes the level of one parameter at a time.

    In each round all single changes of each of the `climbers` points are compared, and each goes to its best one. Then
    the gradient ascent moves the real parameters of where they end.
    """

    def _with_climbed(self, own: Search, points: Tensor, values: Tensor, q: int) -> Tensor:
        climbed = super()._with_climbed(own, points, values, q)
        changes = level_changes(own.space)
        if not len(changes):
            return climbed
        at = climbed[: self.climbers]
        visited, reached = [climbed, at], own.values(at)
        for _ in range(ROUNDS):
            near = changed(at, changes)
            near = own.space.points.snap(near.flatten(0, 1)).view_as(near)
            value = own.values(near.flatten(0, 1)).view(near.shape[:2])
            top = value.max(1)
            better = top.values > reached
            if not bool(better.any()):
                break
            at = torch.where(better[:, None], near[torch.arange(len(at)), top.indices], at)
            reached = torch.where(better, top.values, reached)
            visited.append(near.flatten(0, 1))
        visited.append(at)
        found = own.keep_permitted(torch.cat(visited[1:]))
        found, value = sorted_by_value(found, own.values(found))
        found = super()._with_climbed(own, found, value, q)
        return own.best_first(torch.cat([found, climbed]))[0]


def level_changes(space: db.SearchSpace) -> Tensor:
    """Column and level of each change of one parameter (k x 2)."""
    changes = []
    for column, parameter in enumerate(space.parameters.values()):
        if parameter.levels is not None and not parameter.climbs:
            levels = torch.linspace(0, parameter.levels - 1, min(MOST, parameter.levels)).round()
            changes += [(column, float(level)) for level in levels]
    return torch.tensor(changes, dtype=torch.float64).reshape(-1, 2)


def changed(points: Tensor, changes: Tensor) -> Tensor:
    """Points (n x d) with each of k changes (n x k x d)."""
    many = points[:, None].repeat(1, len(changes), 1)
    columns = changes[:, 0].long()
    many[:, torch.arange(len(changes)), columns] = changes[:, 1].to(points)
    return many


VARIANTS: dict[str, Callable[[], Settings]] = {
    "deepbore:level-ascent": lambda: {"candidates": db.GreedyBatch(LevelAscent())},
}
