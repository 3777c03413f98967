"""Grades of black-box constraints: how far a row keeps each of them."""

import torch
from torch import Tensor

from deepbore.data.observations import Observations, Status


def graded_constraints(observations: Observations) -> Tensor | None:
    """Grades in [0, 1] of all constraints: 1/2 on the border, above where a constraint is kept, below where it is not.

        z_j = 1/2 - g_j / (2 (1 + |g_j|)),    g_j = c_j / s_j,    s_j the median of |c_j| where it is not 0

    The units of a constraint do not matter, and a grade is steepest at the border, which is all that there is to learn;
    values of 1e6 far outside are told from one another, too, but do not drown the rest.

    Returns:
        n x c; NaN in rows of which nothing is known, or that are of an earlier task. While nothing is feasible failed
        rows have 0: there the label of a failure has no say, and they would be proposed again and again. None without
        constraints.
    """
    constraints = observations.constraints
    if not constraints.shape[1]:
        return None
    own = (observations.tasks == 0)[:, None]
    grades = graded(torch.where(own, constraints, torch.nan))
    if bool(observations.feasible.any()):
        return grades
    failed = (observations.status == Status.FAILED)[:, None] & own & grades.isnan()
    return grades.masked_fill(failed, 0.0)


def graded(constraints: Tensor) -> Tensor:
    """Constraints (n x c, NaN where unknown) -> grades (n x c); see `graded_constraints`."""
    size = constraints.abs()
    scale = torch.where(size > 0, size, torch.nan).nanmedian(0).values.nan_to_num(nan=1.0)
    g = constraints / scale
    return 0.5 - 0.5 * g / (1 + g.abs())


def best_feasible(z: Tensor, observations: Observations) -> float:
    """The best label (of n, or n x k) of a feasible row; of any row where there are no constraints, or none is met."""
    if observations.constraints.shape[1]:
        feasible = observations.feasible
        if bool(feasible.any()):
            return float(z[feasible].max())
    return float(z.max())
