"""Promotions of trials to larger budgets by ASHA.

    Li et al., A System for Massively Parallel Hyperparameter Tuning, MLSys 2020, Algorithm 2.

Promotions are a function of the observations, asynchronous, and without state, except for promotions that were chosen
but not yet written to the journal when a process crashed (`RunState.pending_promotions`).
"""

from itertools import islice, pairwise
from typing import NamedTuple

import torch
from torch import Tensor

from deepbore.data.observations import Observations
from deepbore.data.outcome import Status
from deepbore.data.trial import Budget, n_promoted


class Promotion(NamedTuple):
    """A trial to continue with a larger budget.

    Attributes:
        row: the row of the trial.
        budget: the new budget, which includes what the trial has spent.
    """

    row: int
    budget: float


class Promotions:
    """All trials to promote now, highest rung first, and within a rung the best first.

    Of a rung with n results, failed and pruned ones included, the best floor(n / factor) are promoted, unless their
    configuration was already tried with the next budget.

    Args:
        observations: all trials; without budgets nothing is promoted.
    """

    def __init__(self, observations: Observations):
        budget = observations.budget
        self._rungs: list[tuple[Tensor, float]] = []
        if budget is not None:
            steps = reversed(list(pairwise(budget.rungs)))
            self._rungs = [(promotable(observations, budget, low, up), up) for low, up in steps]

    def __len__(self) -> int:
        return sum(len(rows) for rows, _ in self._rungs)

    def first(self, q: int, of: int | None = None) -> list[Promotion]:
        """At most q promotions, the first ones.

        Args:
            q: the maximum number.
            of: the row of the only trial to promote; None for any.
        """
        rungs = [(rows if of is None else rows[rows == of], up) for rows, up in self._rungs]
        each = (Promotion(row, up) for rows, up in rungs for row in rows[:q].tolist())
        return list(islice(each, q))


def promotable(observations: Observations, budget: Budget, low: float, up: float) -> Tensor:
    """Rows of a rung to promote to the next one, best first; one row for each configuration.

    While parameters are fixed, configurations with other values are not promoted.
    """
    configurations, top = observations.columns.first_rows, best_of_rung(observations, budget, low)
    tried = torch.isin(configurations[top], configurations[observations.budgets == up])
    rows = top[~tried]
    if observations.space.points.is_fixed:
        rows = rows[observations.space.points.permitted(observations.points[rows])]
    place = torch.arange(len(rows), device=rows.device)
    of_the_best = torch.full_like(configurations, len(rows)).scatter_reduce(0, configurations[rows], place, "amin")
    return rows[of_the_best[configurations[rows]] == place]


def best_of_rung(observations: Observations, budget: Budget, rung: float) -> Tensor:
    """Rows of the best floor(n / factor) of the n results of a rung, best first, without failed and pruned ones.

    Infeasible rows are last, by their violation; see `best_first`.
    """
    there = observations.budgets == rung
    complete, pending = observations.status == Status.COMPLETE, observations.status == Status.PENDING
    n = int((there & ~pending & (observations.status != Status.WITHDRAWN)).sum())
    rows = (there & complete).nonzero().squeeze(-1)
    return observations.centres.best_first(rows)[: n_promoted(n, budget.factor)]
