"""Budgets of observations: the best rows by what they spent, and what is wrong where a study has none."""

from collections.abc import Hashable
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from deepbore.data.budget import Budget
from deepbore.data.buffers import as_numbers
from deepbore.data.merit import best_first
from deepbore.data.outcomes import Status

if TYPE_CHECKING:
    from deepbore.data.view import ObservationsView


def best_by_budget(observations: "ObservationsView", budget: Budget, k: int) -> Tensor:
    """Rows of up to k distinct configurations, those of the largest budgets first, and of these the best.

    Infeasible ones come after all feasible ones.
    """
    found: dict[Hashable, int] = {}
    feasible, complete = observations.feasible, observations.status == Status.COMPLETE
    for wanted, rung in product((feasible, complete & ~feasible), reversed(budget.rungs)):
        if len(found) >= k:
            break
        rows = best_first(observations, (wanted & (observations.budgets == rung)).nonzero().squeeze(-1))[: 2 * k]
        for identity, row in zip(observations.space.identify(observations.points[rows]), rows.tolist(), strict=True):
            found.setdefault(identity, row)
    return torch.tensor(list(found.values())[:k], dtype=torch.long, device=feasible.device)


def latest(observations: "ObservationsView", row: int) -> int:
    """The row that continues a trial last; its own, if none does."""
    continued = {earlier: later for later, earlier in observations.resumed.items()}
    while row in continued:
        row = continued[row]
    return row


def several_budgets(budgets: Any, known: "ObservationsView | None" = None) -> str | None:
    """What is wrong with budgets in a study without: they differ; else None.

    Args:
        budgets: of new results: n, or one, NaN where none is known.
        known: results whose budgets count, too, but for those of earlier tasks.
    """
    given = np.atleast_1d(as_numbers([] if budgets is None else budgets, "budgets"))
    if known is not None and not np.isnan(given).all():
        given = np.append(given, known.budgets[known.tasks == 0].cpu().numpy())
    different = np.unique(given[~np.isnan(given)]).tolist()
    if len(different) < 2:
        return None
    listed = ", ".join(f"{each:g}" for each in different)
    return f"results of several budgets ({listed}), but the study has none, so cheap ones would count as full ones."
