"""Which rows are better: feasible ones by their value, the others by what they violate."""

from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from deepbore.data.view import ObservationsView


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
