"""What observations with cheap fidelities are asked beside the rest."""

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from deepbore.data.budget import Budget
from deepbore.data.buffers import as_numbers
from deepbore.data.outcomes import Outcome
from deepbore.errors import ValueTypeError

if TYPE_CHECKING:
    from deepbore.data.view import ObservationsView


def best_by_budget(observations: "ObservationsView", budget: Budget, k: int) -> Tensor:
    """Rows of up to k distinct configurations, those of the largest budgets first, and of these the best."""
    found: dict[Hashable, int] = {}
    values = observations.values[:, 0]
    for rung in reversed(budget.rungs):
        rows = (observations.feasible & (observations.budgets == rung)).nonzero().squeeze(-1)
        rows = rows[values[rows].argsort(stable=True)][: 2 * k]
        for identity, row in zip(observations.space.identify(observations.points[rows]), rows.tolist(), strict=True):
            found.setdefault(identity, row)
        if len(found) >= k:
            break
    return torch.tensor(list(found.values())[:k], dtype=torch.long, device=values.device)


def latest(observations: "ObservationsView", row: int) -> int:
    """The row that continues a trial last; its own, if none does."""
    continued = {earlier: later for later, earlier in observations.resumed.items()}
    while row in continued:
        row = continued[row]
    return row


def check_spent(budget: Budget | None, row: int, own: float, outcome: Outcome) -> None:
    """Raises ValueTypeError for an outcome of another budget than the trial's own, where there are rungs."""
    if budget is not None and outcome.budget not in (None, own):
        raise ValueTypeError(
            f"trial {row} has a budget of {own:g} {budget.unit}, but its outcome is of {outcome.budget:g}. "
            "Leave the outcome's budget out; what else was spent can be an attribute."
        )


def several_budgets(budgets: Any) -> str | None:
    """What is wrong with budgets (n, or one, NaN where none is known) in a study without: they differ; else None."""
    given = np.unique(np.atleast_1d(as_numbers([] if budgets is None else budgets, "budgets")))
    different = given[~np.isnan(given)].tolist()
    if len(different) < 2:
        return None
    listed = ", ".join(f"{each:g}" for each in different)
    return f"results of several budgets ({listed}), but the study has none, so cheap ones would count as full ones."
