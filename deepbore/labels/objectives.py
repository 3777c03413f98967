"""`ObjectiveLabels`: a grade for each of several objectives."""

import torch
from torch import Tensor

from deepbore.checks import required, whole
from deepbore.data.observations import Observations, Status
from deepbore.data.pareto import non_dominated
from deepbore.labels.base import Labelling, Labels, lighten_pending
from deepbore.labels.constraints import graded_constraints

FIRST, MOST = 10, 0.9  # quantile of the first complete values that the reference value is at least
MARGIN = 0.1  # of the front's extent, by which the reference value lies behind it
LONGEST = 3.0  # how far labels are linear, in units of the distance from the best to the reference value


class ObjectiveLabels(Labelling):
    """One column for each objective: the share of its thresholds that a value reaches, as in `ValueGradedLabels`.

        z_j = clip((t_j - y_j) / (t_j - min_j), 0, 1)

    t_j is the worst value: so labels are linear in the values, and a smooth objective stays smooth. Only where some are
    very much worse, t_j ends at three times the distance from the best value to the reference value.

    The reference value r_j, from which on a gain counts, lies behind the worst value on the Pareto front by a tenth of
    the front's extent, and is at least the 90 % quantile of the first ten values. Without this least value a front that
    shrinks to one trial, which on a concave one beats all others for a while, would stay there.

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
        end = torch.minimum(told.max(0).values, low + LONGEST * (reference - low))
        graded = linear_grades(torch.cat([reference[None], values]), low, end)
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


def linear_grades(values: Tensor, low: Tensor, end: Tensor) -> Tensor:
    """Values (n x k) -> 1 at the best ones `low` (k), 0 from `end` (k) on, and linear between; NaN gives 0.

    Where all values of a column are equal, they have 1.
    """
    span = torch.where(end > low, end - low, 1.0)
    return (1 - (values - low) / span).clamp(0, 1).nan_to_num(nan=0.0)


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
    """The reference value of each objective (k); see `ObjectiveLabels`.

    Args:
        front: values of the front, f x k, f >= 1.
        complete: all values, n x k, in the order of their rows.
    """
    worst, best = front.max(0).values, front.min(0).values
    return torch.maximum(worst + MARGIN * (worst - best), complete[:FIRST].quantile(MOST, dim=0))
