"""Points beside a suspicious value, which confirm or refute it."""

import torch
from torch import Tensor

from deepbore.candidates.selection import first_new_rows
from deepbore.data.observations import Observations
from deepbore.space import SearchSpace
from deepbore.strategies.base import Strategy, View

STEPS = (1e-2, 1e-3)  # distances of the points in each real parameter, in units of its range
REACH = 1.1 * STEPS[0]  # distance up to which a point is beside another
DRAWN = 64  # random neighbours, where there is no real parameter


def confirming_points(view: View, observations: Observations, strategy: Strategy, q: int) -> Tensor:
    """At most q new points beside values that are suspiciously good (k x d, on the CPU).

    A value that is better than all others predict counts as a failure until a neighbour confirms it. So at most two
    points are evaluated beside it, at a hundredth and at a thousandth of the range of each real parameter, or with
    other parameters changed where there is none. If they come close, as in a narrow optimum, it is believed. Beside a
    doubtful value, which is believed, one point is evaluated, at a hundredth of the range of each real parameter.

    Args:
        view: the current data, where suspicious values have failed.
        observations: the trials as they were told.
        strategy: of the run, which has to accept the points.
        q: the largest number of points.
    """
    found = observations.points[:0].cpu()
    suspicion, space = observations.suspicion, observations.space
    wanted = [(row, steps_left(observations, row)) for row in suspicion.too_good]
    for row in suspicion.doubtful:
        if len(real_columns(space, observations.points[row])):
            wanted.append((row, tuple(step for step in steps_left(observations, row) if step == STEPS[0])))
    for row, steps in wanted:
        for step in steps:
            near = neighbours(view, observations.points[row], step)
            near = near[strategy.accepts(space, near)]
            new = near[first_new_rows(near, view.observations, 1, found)].cpu()
            found = torch.cat([found, new])
    return found[:q]


def steps_left(observations: Observations, row: int) -> tuple[float, ...]:
    """The distances at which no trial beside a row was asked for yet; none where trials can't confirm it."""
    budget = observations.budget
    is_asked_for = budget is None or float(observations.budgets[row]) == budget.low  # new trials have this budget
    if not (is_asked_for and bool(observations.feasible[row])):
        return ()
    own = observations.points[observations.columns.own_rows]
    return STEPS[int(is_beside(observations.space, own, observations.points[row]).sum()) - 1 :]


def real_columns(space: SearchSpace, point: Tensor) -> Tensor:
    """Columns of the real parameters that are active in a point (d) and not fixed."""
    columns = torch.tensor(sorted({*space.points.continuous_columns} & {*space.points.free_columns}), dtype=torch.long)
    return columns[space.points.active(point[None].cpu())[0, columns]].to(point.device)


def is_beside(space: SearchSpace, points: Tensor, point: Tensor) -> Tensor:
    """Which points (n x d) differ from a point (d) by little in real parameters alone; or in one other if none is real.

    Returns:
        n booleans.
    """
    real = real_columns(space, point)
    is_near = ((points - point).abs()[:, real] <= REACH).all(-1)
    others = torch.ones_like(point, dtype=torch.bool).index_fill_(0, real, False)
    return is_near & ((points != point)[:, others].sum(-1) <= (0 if len(real) else 1))


def neighbours(view: View, point: Tensor, step: float) -> Tensor:
    """Points near a point (d), the preferred ones first (k x d)."""
    space, real = view.space, real_columns(view.space, point)
    if not len(real):
        drawn = space.points.neighbours(point[None], DRAWN, view.generator)
        return drawn[is_beside(space, drawn, point)]
    inwards = torch.where(point[real] < 0.5, step, -step)
    moved = point.repeat(2 + len(real), 1)
    moved[0, real] += inwards  # all of them
    moved[1, real] -= inwards
    moved[2:, real] += inwards.diag()  # one at a time
    moved[:, real] = moved[:, real].clamp(0, 1)
    return space.points.snap(moved)
