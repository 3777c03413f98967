"""`ObjectiveLabels`: a grade for each of several objectives."""

import math

import torch
from torch import Tensor

from deepbore.checks import required, whole
from deepbore.data.observations import Observations, Status
from deepbore.data.pareto import non_dominated
from deepbore.labels.base import Labelling, Labels, lighten_pending
from deepbore.labels.constraints import graded_constraints
from deepbore.labels.grade import graded_by_value

MARGIN = 0.1  # of the front's extent, by which the reference value lies behind it
USUAL = 0.75  # quantile of the values that the reference value is at least
TAIL = 2.0  # thresholds beyond the reference value, by those up to it


class ObjectiveLabels(Labelling):
    """One column for each objective: the share of its thresholds that a value reaches, as in `ValueGradedLabels`.

    The threshold of column j is the reference value r_j, from which on a gain counts, with tail 2: labels are linear in
    the values up to r_j, so that a smooth objective stays smooth, and bend slowly beyond, so that a few values that are
    a thousand times worse do not make all others look alike.

    r_j lies behind the worst value on the Pareto front by a tenth of the front's extent, and is at least the 75 %
    quantile of the values so far. Without this least value a front that shrinks to one trial, which on a concave one
    beats all others for a while, would stay there.

    `Labels.best` is the label at r_j in each column, and then the labels of the front of the feasible trials, one row
    each ((1 + f) x k): what is worth having is what no such row reaches in all columns (`LogHypervolumeImprovement`).
    Values are compared with values of the same objective only, so their units do not matter.

    Args:
        objectives: k, how many values are graded, >= 1.

    Raises:
        SettingError: for a number outside its range.
    """

    grades_front = True

    def __init__(self, objectives: int):
        required(objectives=objectives)
        whole(1, objectives=objectives)
        self.objectives = self.outputs = objectives

    def __call__(self, observations: Observations) -> Labels:
        values = observations.values
        complete = own_complete(observations)
        if not bool(complete.any()):
            return Labels.none(observations, self.outputs)
        front, told = front_rows(observations), values[complete]
        low, reference = told.min(0).values, reference_values(values[front], told)
        graded = graded_by_value(torch.cat([reference[None], values]), low, reference, TAIL)
        z = graded[1:]
        feasible = front if bool(observations.feasible.any()) else front[:0]
        return Labels(
            z.float(),
            lighten_pending(torch.ones_like(z[:, 0]), observations).float(),
            best=torch.cat([graded[:1], z[feasible]]),
            separable=len(z[complete].unique(dim=0)) > 1 or bool((observations.status == Status.FAILED).any()),
            metrics={"front_size": float(len(feasible))},
            constraints=graded_constraints(observations),
        )


def own_complete(observations: Observations) -> Tensor:
    """Which rows have values of this run's own task (n booleans)."""
    return (observations.status == Status.COMPLETE) & (observations.tasks == 0)


def front_rows(observations: Observations) -> Tensor:
    """Numbers of the rows that no other beats: of the feasible ones of this run, or of all while none is feasible."""
    complete = own_complete(observations)
    feasible = complete & observations.feasible
    rows = (feasible if bool(feasible.any()) else complete).nonzero().squeeze(-1)
    on_front = non_dominated(observations.values[rows].cpu().numpy())
    return rows[torch.from_numpy(on_front).to(rows.device)]


def reference_values(front: Tensor, complete: Tensor) -> Tensor:
    """The reference value of each objective (k), above the best value; see `ObjectiveLabels`.

    Args:
        front: values of the front, f x k, f >= 1.
        complete: all values, n x k.
    """
    worst, best = front.max(0).values, front.min(0).values
    usual = complete.kthvalue(math.ceil(USUAL * len(complete)), dim=0).values
    reference = torch.maximum(worst + MARGIN * (worst - best), usual)
    low, high = complete.min(0).values, complete.max(0).values
    if_tied = torch.where(high > low, high, low + 1)  # most values are the best one
    return torch.where(reference > low, reference, if_tied)
