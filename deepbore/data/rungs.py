"""What observations with cheap fidelities are asked beside the rest."""

from collections.abc import Hashable
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from deepbore.data.budget import Budget
from deepbore.data.buffers import as_numbers
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


def best_first(observations: "ObservationsView", rows: Tensor) -> Tensor:
    """Complete rows (m) by merit: feasible ones by their first value, and then the others by their violation.

    References:
        Deb, An efficient constraint handling method for genetic algorithms, CMAME 186 (2000).
    """
    violation = total_violation(observations)[rows]
    merit = torch.where(violation > 0, violation, observations.values[rows, 0])
    order = merit.argsort(stable=True)
    if bool((violation > 0).any()):
        order = order[(violation > 0)[order].long().argsort(stable=True)]
    return rows[order]


def total_violation(observations: "ObservationsView", task: int = 0) -> Tensor:
    """By how much each row of a task violates all constraints together, 0 where that is not known (n), finite.

    Each constraint counts by its median violation, so that its unit does not matter.
    """
    of_task = (observations.tasks == task)[:, None]
    violated = torch.where(of_task, observations.constraints, 0.0).clamp(min=0).nan_to_num()
    units = [column[column > 0].median() if bool((column > 0).any()) else 1.0 for column in violated.T]
    return (violated / violated.new_tensor(units)).sum(-1).nan_to_num()


def latest(observations: "ObservationsView", row: int) -> int:
    """The row that continues a trial last; its own, if none does."""
    continued = {earlier: later for later, earlier in observations.resumed.items()}
    while row in continued:
        row = continued[row]
    return row


def several_budgets(budgets: Any) -> str | None:
    """What is wrong with budgets (n, or one, NaN where none is known) in a study without: they differ; else None."""
    given = np.unique(np.atleast_1d(as_numbers([] if budgets is None else budgets, "budgets")))
    different = given[~np.isnan(given)].tolist()
    if len(different) < 2:
        return None
    listed = ", ".join(f"{each:g}" for each in different)
    return f"results of several budgets ({listed}), but the study has none, so cheap ones would count as full ones."
