"""Grades of black-box constraints: the distance of a row from the border of each."""

import math

import torch
from torch import Tensor

from deepbore.data.observations import Observations, Status
from deepbore.labels.grade import graded_by_value

BORDER = 0.5  # the grade of a constraint that is 0
LEAST = 2.0**-50  # the least difference of a violated constraint's grade from the border
WIDE = 0.9  # the quantile of the distances up to which grades are linear
PENALTY, ORDINARY = 100, 3  # a penalty is 100 times as large as ordinary values; grades are linear up to 3 times these
FEW = 5  # the least number of values below a penalty: a single small one may be an exception
TAIL = 1.0  # thresholds beyond the linear part as a share of those within it: the slope is continuous
SURVEYED = 10_000  # rows that the scale is computed from


def graded_constraints(observations: Observations) -> Tensor | None:
    """Grades in [0, 1] of all constraints: 1/2 on the border, larger if satisfied, smaller if violated.

        z_j = 1/2 - sign(c_j) (1 - z(|c_j|)) / 2

    z is the grade of a value (`graded_by_value`), here of the distance from the border: the share of thresholds that
    |c_j| does not exceed, half of them spread evenly up to s_j, and half beyond. s_j is the 90 % quantile of the
    nonzero |c_j|. So the units of a constraint do not matter; most grades are linear in the values, which helps a model
    to find the border; and extreme values are distinguished without dominating. If more than a tenth of the values are
    penalties, violations a hundred times as large as all (at least five) other values, s_j is three times the largest
    other value. Violated constraints always have grades below 1/2.

    Returns:
        n x c; NaN in rows without constraint values. While no row is feasible, failed rows have 0: labels are not used
        then, so failures would be proposed again and again. None without constraints.
    """
    constraints = observations.constraints
    if not constraints.shape[1]:
        return None
    grades = graded(constraints)
    if some_kept(grades):
        return grades
    failed = (observations.status == Status.FAILED)[:, None] & grades.isnan()
    return grades.masked_fill(failed, 0.0)


def some_kept(grades: Tensor) -> bool:
    """Whether a row is known to be feasible, by its grades (n x c, NaN where unknown)."""
    return bool((grades >= BORDER).all(-1).any())


def graded(constraints: Tensor) -> Tensor:
    """Constraints (n x c, NaN where unknown) -> grades (n x c); see `graded_constraints`."""
    missed = graded_by_value(constraints.abs(), 0.0, wide(constraints), TAIL).neg_().add_(1)
    grades = torch.where(constraints.isnan(), constraints, missed.copysign_(constraints).div_(-2).add_(BORDER))
    return torch.where(constraints > 0, grades.clamp(max=BORDER - LEAST), grades)


def wide(constraints: Tensor) -> Tensor:
    """s_j of each column (n x c), computed from every k-th row if there are many (c); 1 without values."""
    looked_at = constraints[:: 1 + len(constraints) // SURVEYED]
    return constraints.new_tensor([_reach(column[~column.isnan() & (column != 0)]) for column in looked_at.T])


def _reach(column: Tensor) -> float:
    """s_j from the nonzero values of a constraint (m)."""
    if not len(column):
        return 1.0
    sizes = column.abs().sort().values[: math.ceil(WIDE * len(column))]
    below, above = sizes[FEW - 1 : -1], sizes[FEW:]
    greatest = below[(above > PENALTY * below) & (below >= -column.min())]  # ascending; only violations are penalties
    return float(ORDINARY * greatest[0] if len(greatest) else sizes[-1])
