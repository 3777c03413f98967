"""Turns for what lies beyond the basin of the best point, once that is known in detail.

docs/ablation.md has what came of it ("Basins that are known in detail").
"""

import math
from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor

import deepbore as db
from deepbore.data.array_ranking import threshold
from deepbore.strategies import ModelStrategy, NearBest, Turns
from deepbore.strategies.base import Proposal, View
from deepbore.strategies.other_branches import DETAIL, ENOUGH, initial_scale
from deepbore.strategies.subset import Subset, SubsetStrategy, considered_rows
from peers.variants.settings import Settings

REACH = 0.25  # of a basin, in units of the root mean square distance of two random points
BESIDE = 0.5  # of the label is lost within a basin
MOST = 5  # basins
LATE = 1e-6  # as `DETAIL`, where the digits that count are known before turns are given away


class OtherBasins(SubsetStrategy):
    """Proposals by a kernel to which rows in the basins that are known in detail are as bad as failures.

    A basin is known in detail once ten of its rows differ from its best one by less than a share of the first values.
    Labels are graded among the rows outside, and multiplied by 1 - exp(-r^2 / 2), with r the distance to the best row
    of the nearest known basin in units of its reach. So on its flanks nothing is to be had either.

    Args:
        detail: that share.
    """

    def __init__(self, detail: float) -> None:
        super().__init__(db.KernelPLS())
        self.detail, self.subset = detail, None

    def applies(self, view: View) -> bool:
        self.subset = None
        if (
            view.batch is None
            or not view.has_plain_outcomes
            or not view.space.points.is_continuous
            or view.space.points.is_fixed
        ):
            return False
        self.subset = outside(view, self.detail)
        return self.subset is not None

    def fit(self, view: View) -> bool:
        self.prepare(view)
        self.learn(view, self.subset)
        return True


def outside(view: View, detail: float) -> Subset | None:
    """All rows, with labels that fall towards the known basins; None where no basin is known, or nothing is outside."""
    assert view.batch is not None
    rows = considered_rows(view.batch, view.observations)
    points, values = view.batch.points[rows], view.observations.averaged.values[rows]
    merit, least = values.nan_to_num(nan=math.inf), detail * initial_scale(view.observations, view.labels)
    lost = torch.zeros_like(merit)  # the share of each label
    for number in range(MOST):
        away = merit.masked_fill(lost > BESIDE, math.inf)
        if bool(away.isinf().all()):
            return None
        own = share_lost(points, points[away.argmin()])
        if int(((own > BESIDE) & (away < away.min() + least)).sum()) < ENOUGH:
            if not number:
                return None
            break
        lost = torch.maximum(lost, own)
    ranked = away[away.isfinite()].sort().values.cpu().numpy()
    z, _ = view.labels.label(values, ranked, threshold(ranked, view.labels.proportion(len(ranked))))
    z = z.clamp(max=1) * (1 - lost)
    batch = replace(view.batch.take(rows), z=z[:, None], best=float(z.max()))
    return Subset(batch, rows[z.argsort(descending=True, stable=True)])


def share_lost(points: Tensor, best: Tensor) -> Tensor:
    """exp(-r^2 / 2) of points (n x d) around the best one (d)."""
    return (-(points - best).square().sum(-1) / (2 * REACH**2 * len(best) / 6)).exp()


class WithBasins(Turns):
    """The default, whose first model gives every other turn of its own to `OtherBasins`; of a batch these have a share.

    Args:
        detail: what is known of a basin, as a share of the first values.
    """

    def __init__(self, detail: float = DETAIL) -> None:
        super().__init__([ModelStrategy(db.KernelPLS()), NearBest()])
        self.basins, self.own_turns = OtherBasins(detail), 0

    def propose(self, view: View, q: int) -> Proposal:
        shared = replace(view, first=self.first)
        due = self._due(shared, q)
        if due and q == 1:
            return due[0].propose(shared, q)
        self.own_turns += 1
        if (q > 1 or self.own_turns % 2 == 0) and self.basins.applies(shared) and self.basins.fit(shared):
            due.append(self.basins)
        if q > 1 and due:
            return self._shared_batch([*due, self.first], shared, q)
        return (due[0] if due else self.first).propose(shared, q)


VARIANTS: dict[str, Callable[[], Settings]] = {
    "deepbore:other-basins": lambda: {"strategy": WithBasins()},
    "deepbore:other-basins-late": lambda: {"strategy": WithBasins(LATE)},
}
