"""Promotions: which trials of a run with cheap fidelities go on with more to spend (ASHA).

    Li et al., A System for Massively Parallel Hyperparameter Tuning, MLSys 2020, Algorithm 2.

Whom to promote is a function of the observations alone. Nothing is waited for, and nothing is kept beside them, but for
those of a batch that a process which died had no time to write (`RunState.promised`).
"""

import math
from itertools import islice, pairwise
from typing import NamedTuple

import torch
from torch import Tensor

from deepbore.data.observations import Observations
from deepbore.data.outcome import Status
from deepbore.data.trial import Budget


class Promotion(NamedTuple):
    """A trial that goes on.

    Attributes:
        row: of the trial.
        budget: what it may spend from now on, what it has spent included.
    """

    row: int
    budget: float


class Promotions:
    """All trials that are to be promoted now, those of the highest rung first, and of a rung the best first.

    Of a rung with n results, failures included, the best floor(n / factor) are worth more, unless their configuration
    has been tried on the next budget before. Nothing but numbers of rows is kept, however many there are.

    Args:
        observations: of a run; without a budget nothing is promoted.
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
        """The first q of them, or fewer.

        Args:
            q: how many.
            of: the row of the only trial that may go on; None for any.
        """
        rungs = [(rows if of is None else rows[rows == of], up) for rows, up in self._rungs]
        each = (Promotion(row, up) for rows, up in rungs for row in rows[:q].tolist())
        return list(islice(each, q))


def promotable(observations: Observations, budget: Budget, low: float, up: float) -> Tensor:
    """Rows of a rung that are to go on to the next, best first, of each configuration the best alone.

    While parameters stand still, those with other values wait.
    """
    configurations, top = observations.first_rows, best_of_rung(observations, budget, low)
    tried = torch.isin(configurations[top], configurations[observations.budgets == up])
    rows = top[~tried]
    if observations.space.is_fixed:
        rows = rows[observations.space.permitted(observations.points[rows])]
    place = torch.arange(len(rows), device=rows.device)
    of_the_best = torch.full_like(configurations, len(rows)).scatter_reduce(0, configurations[rows], place, "amin")
    return rows[of_the_best[configurations[rows]] == place]


def best_of_rung(observations: Observations, budget: Budget, rung: float) -> Tensor:
    """Rows of the best floor(n / factor) of a rung's n results, best first; those that failed are never among them.

    Infeasible ones come last, by their violation; see `best_first`.
    """
    there = observations.budgets == rung
    n = int((there & (observations.status != Status.PENDING)).sum())
    rows = (there & (observations.status == Status.COMPLETE)).nonzero().squeeze(-1)
    return observations.best_first(rows)[: math.floor(n / budget.factor + 1e-9)]
