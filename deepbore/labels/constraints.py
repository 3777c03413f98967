"""Grades of black-box constraints: how far a row keeps each of them."""

import math

import torch
from torch import Tensor

from deepbore.data.observations import Observations, Status
from deepbore.labels.grade import graded_by_value

BORDER = 0.5  # the grade of a constraint that is 0
LEAST = 2.0**-50  # by which the grade of a violated one is below that, at least
WIDE = 0.9  # the share of a constraint's values whose distances the grades keep
PENALTY, ORDINARY = 100, 3  # times the greatest distance below: what is a penalty, and what need not be one
FEW = 5  # values below a penalty, at least: one that happens to be near the border says nothing of the others
TAIL = 1.0  # thresholds beyond those, by those up to there: the slope is the same on both sides
SURVEYED = 10_000  # rows that this is found from, at most


def graded_constraints(observations: Observations) -> Tensor | None:
    """Grades in [0, 1] of all constraints: 1/2 on the border, above where a constraint is kept, below where it is not.

        z_j = 1/2 - sign(c_j) (1 - z(|c_j|)) / 2

    z is the grade of a value (`graded_by_value`), here of the distance from the border: the share of thresholds that
    |c_j| does not exceed, spread evenly up to s_j, and as many beyond it. s_j is the 90 % quantile of |c_j| where it is
    not 0. So the units of a constraint do not matter, most of its values keep their distances, which a head needs to
    know the border by few of them (a linear constraint stays linear), and values of 1e6 far outside are told from one
    another, too, but do not drown the rest. Where more than a tenth are such penalties, violations a hundred times as
    large as every other distance, of which there are five at least, s_j is three times the greatest other one. What is
    violated is graded below 1/2, by however little.

    Returns:
        n x c; NaN in rows of which nothing is known. While nothing is feasible failed
        rows have 0: there the label of a failure has no say, and they would be proposed again and again. None without
        constraints.
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
    """Whether a row is known to keep all constraints, by its grades (n x c); NaN tells nothing."""
    return bool((grades >= BORDER).all(-1).any())


def graded(constraints: Tensor) -> Tensor:
    """Constraints (n x c, NaN where unknown) -> grades (n x c); see `graded_constraints`."""
    missed = graded_by_value(constraints.abs(), 0.0, wide(constraints), TAIL).neg_().add_(1)
    grades = torch.where(constraints.isnan(), constraints, missed.copysign_(constraints).div_(-2).add_(BORDER))
    return torch.where(constraints > 0, grades.clamp(max=BORDER - LEAST), grades)


def wide(constraints: Tensor) -> Tensor:
    """How far the grades keep distances in each column (n x c), by every k-th row where there are many; else 1."""
    looked_at = constraints[:: 1 + len(constraints) // SURVEYED]
    return constraints.new_tensor([_reach(column[~column.isnan() & (column != 0)]) for column in looked_at.T])


def _reach(column: Tensor) -> float:
    """The 90 % quantile of the sizes of a constraint's values (m), unless that is a penalty."""
    if not len(column):
        return 1.0
    sizes = column.abs().sort().values[: math.ceil(WIDE * len(column))]
    below, above = sizes[FEW - 1 : -1], sizes[FEW:]
    greatest = below[(above > PENALTY * below) & (below >= -column.min())]  # ascending; what is kept is no penalty
    return float(ORDINARY * greatest[0] if len(greatest) else sizes[-1])
