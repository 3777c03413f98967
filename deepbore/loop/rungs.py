"""Promotions: which trials of a run with cheap fidelities go on with more to spend (ASHA).

    Li et al., A System for Massively Parallel Hyperparameter Tuning, MLSys 2020, Algorithm 2.

Whom to promote is a function of the observations alone. Nothing is waited for, and nothing is kept beside them.
"""

import math
from collections.abc import Hashable
from typing import NamedTuple

import torch
from torch import Tensor

from deepbore.data.budget import Budget
from deepbore.data.observations import Observations
from deepbore.data.outcomes import Status


class Promotion(NamedTuple):
    """A trial that goes on.

    Attributes:
        row: of the trial.
        budget: what it may spend from now on, what it has spent included.
    """

    row: int
    budget: float


def promotions(observations: Observations) -> list[Promotion]:
    """All trials that are to be promoted now, those of the highest rung first, and of a rung the best first.

    Of a rung with n results, failures included, the best floor(n / factor) are worth more, unless their configuration
    has been tried on the next budget before.
    """
    budget = observations.budget
    if budget is None:
        return []
    steps = reversed(list(zip(budget.rungs, budget.rungs[1:], strict=False)))
    return [Promotion(row, up) for low, up in steps for row in _promotable(observations, budget, low, up)]


def _promotable(observations: Observations, budget: Budget, low: float, up: float) -> list[int]:
    continued = set(observations.resumed.values())  # most of them: only the others are decoded
    top = [row for row in best_of_rung(observations, budget, low).tolist() if row not in continued]
    found: dict[Hashable, int] = {}
    for row in top:
        found.setdefault(observations.trial(row).identity, row)
    return [row for identity, row in found.items() if (identity, float(up)) not in observations.spent]


def best_of_rung(observations: Observations, budget: Budget, rung: float) -> Tensor:
    """Rows of the best floor(n / factor) of a rung's n results, best first; those that failed are never among them.

    Feasible ones come before infeasible ones, and these in the order of their violation (Deb 2000).
    """
    there = observations.budgets == rung
    n = int((there & (observations.status != Status.PENDING)).sum())
    rows = (there & (observations.status == Status.COMPLETE)).nonzero().squeeze(-1)
    violation = observations.constraints[rows].clamp(min=0).nan_to_num().sum(-1)
    values = torch.where(violation > 0, violation, observations.values[rows, 0])
    by_value = values.argsort(stable=True)
    order = by_value[(violation > 0)[by_value].long().argsort(stable=True)]
    return rows[order][: math.floor(n / budget.factor + 1e-9)]
