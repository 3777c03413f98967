"""`ObjectiveLabels`: a grade for each of several objectives."""

import math
from collections.abc import Iterable, Sequence

import torch
from torch import Tensor

from deepbore.component import is_number
from deepbore.data.directions import sign_of
from deepbore.data.observations import Observations, Status
from deepbore.data.pareto import non_dominated
from deepbore.errors import SettingError
from deepbore.labels.base import Labelling, Labels, lighten_pending
from deepbore.labels.constraints import graded_constraints
from deepbore.labels.grade import graded_by_value
from deepbore.validation import required, whole

MARGIN = 0.1  # of the front's extent, by which the reference value lies behind it
USUAL = 0.75  # quantile of the values that the reference value is at least
TAIL = 2.0  # thresholds beyond the reference value, by those up to it


class ObjectiveLabels(Labelling):
    """One column for each objective: the share of its thresholds that a value reaches, as in `ValueGradedLabels`.

    The threshold of column j is the reference value r_j, with tail 2: labels are linear in the values up to r_j, so
    that a smooth objective stays smooth, and bend slowly beyond, so that a few values that are a thousand times worse
    do not make all others look alike.

    r_j lies behind the worst value on the Pareto front by a tenth of the front's extent, and is at least the 75 %
    quantile of the values so far. Without this least value a front that shrinks to one trial, which on a concave one
    beats all others for a while, would stay there.

    `Labels.best` is the label at r_j in each column, or at the reference that is given, and then the labels of the
    front of the feasible trials, one row each ((1 + f) x k): what is worth having is what no such row reaches in all
    columns (`LogHypervolumeImprovement`). Values are compared with values of the same objective only, so their units do
    not matter.

    Args:
        objectives: k, how many values are graded, >= 1.
        reference: k values, in the order and sign of the objectives, from which on a gain counts, if they are known: a
            trial that is worse in one of them is worth nothing. They may be better than all values so far. None for
            the r_j.

    Raises:
        SettingError: for a number outside its range, or anything but k finite numbers as a reference.

    Example:
        >>> from deepbore import Real, SearchSpace, Study
        >>> labels = ObjectiveLabels(2, reference=[5.0, 0.9])  # at most 5 s, an accuracy of .9 at least
        >>> study = Study(SearchSpace({"x": Real(0, 1)}), directions=["minimize", "maximize"], labels=labels)
        >>> type(study.classifier).__name__
        'PerColumn'
    """

    grades_front = True

    def __init__(self, objectives: int, reference: Sequence[float] | None = None):
        required(objectives=objectives)
        whole(1, objectives=objectives)
        self.objectives = self.outputs = objectives
        self.reference = None if reference is None else checked_reference(reference, objectives)

    def __call__(self, observations: Observations) -> Labels:
        values = observations.values
        complete = own_complete(observations)
        if not bool(complete.any()):
            return Labels.none(observations, self.outputs)
        front, told = front_rows(observations), values[complete]
        low, bend = told.min(0).values, reference_values(values[front], told)
        z = graded_by_value(values, low, bend, TAIL)
        start = on_the_line(self._start(observations, bend), low, bend)
        feasible = front[observations.feasible[front]]  # all of it, or nothing
        return Labels(
            z.float(),
            lighten_pending(torch.ones_like(z[:, 0]), observations).float(),
            best=torch.cat([start[None], z[feasible]]),
            separable=len(z[complete].unique(dim=0)) > 1 or bool((observations.status == Status.FAILED).any()),
            metrics={"front_size": float(len(feasible))},
            constraints=graded_constraints(observations),
        )

    def _start(self, observations: Observations, behind: Tensor) -> Tensor:
        """From which values on, to minimise, a gain counts (k): given ones, or those behind the front."""
        if self.reference is None:
            return behind
        signs = map(sign_of, observations.directions)
        return behind.new_tensor([sign * each for sign, each in zip(signs, self.reference, strict=True)])


def on_the_line(values: Tensor, low: Tensor, bend: Tensor) -> Tensor:
    """The labels of a value of each column (k), linear beyond the best ones as the Gaussian of the labels is.

    Args:
        values: k.
        low: the best value of each column, whose label is 1, k.
        bend: the threshold of each column, from which on labels bend, k.
    """
    line = ((bend - values) / (bend - low) + TAIL) / (1 + TAIL)
    return torch.where((values < low) & (low < bend), line, graded_by_value(values, low, bend, TAIL))


def checked_reference(reference: Sequence[float], k: int) -> tuple[float, ...]:
    """The reference as k floats; raises SettingError for anything else."""
    given = list(reference) if isinstance(reference, Iterable) and not isinstance(reference, str) else []
    if len(given) != k or not all(is_number(each) and math.isfinite(each) for each in given):
        raise SettingError(f"reference must be {k} finite numbers, one for each objective, but got {reference!r:.100}.")
    return tuple(map(float, given))


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
    low, high = complete.min(0).values, complete.max(0).values
    reference = torch.maximum(worst + MARGIN * (worst - best), usual)
    reference = torch.where(reference.isfinite(), reference, high)
    if_tied = torch.where(high > low, high, low + low.abs().clamp(min=1))  # most values are the best one
    return torch.where(reference > low, reference, if_tied)
