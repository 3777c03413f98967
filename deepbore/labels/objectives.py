"""Labels of several objectives: a grade for each, or one column by Chebyshev scalarisation or ranks of fronts."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from deepbore.component import is_number
from deepbore.data.array_ranking import crowding, fronts
from deepbore.data.observations import Observations, Status
from deepbore.data.trial import sign_of
from deepbore.errors import SettingError
from deepbore.labels.base import Labelling, Labels, best_feasible, lighten_pending
from deepbore.labels.constraints import graded_constraints
from deepbore.labels.grade import graded_by_value
from deepbore.labels.graded import ValueGradedLabels
from deepbore.labels.threshold import ThresholdFamily
from deepbore.validation import of_kind, required, up_to, whole

MARGIN = 0.1  # distance of the reference value from the front, as a share of the extent of the front
USUAL = 0.75  # quantile of the values that is a lower bound of the reference value
TAIL = 2.0  # thresholds beyond the reference value as a share of those up to it


class ObjectiveLabels(Labelling):
    """One column for each objective: the share of its thresholds that a value reaches, as in `ValueGradedLabels`.

    The threshold of column j is the reference value r_j, with tail 2: labels are linear in the values up to r_j, so
    that smooth objectives have smooth labels, and saturate slowly beyond, so that extremely bad values do not make the
    rest look equal.

    r_j is the worst value on the Pareto front plus a tenth of the extent of the front, and at least the 75 % quantile
    of all values. Without this bound the search would not leave a front of one trial, which on concave fronts may
    dominate all others for a while.

    `Labels.best` is the label of r_j in each column, or of the given reference, followed by the labels of the feasible
    front, one row each ((1 + f) x k), for `LogHypervolumeImprovement`. Values are compared within an objective only, so
    their units do not matter.

    Args:
        objectives: k, the number of objectives, >= 1.
        reference: k values, in the order and sign of the objectives: trials that are worse in one of them count for
            nothing. They may be better than all values so far. None for the r_j.

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
            pending=observations.pending,
        )

    def _start(self, observations: Observations, behind: Tensor) -> Tensor:
        """The reference values, to minimise (k): the given ones, or those behind the front."""
        if self.reference is None:
            return behind
        signs = map(sign_of, observations.directions)
        return behind.new_tensor([sign * each for sign, each in zip(signs, self.reference, strict=True)])


def on_the_line(values: Tensor, low: Tensor, bend: Tensor) -> Tensor:
    """The labels of one value in each column (k), extended linearly beyond the best values, as in a Gaussian model.

    Args:
        values: k.
        low: the best value of each column, whose label is 1, k.
        bend: the threshold of each column, beyond which labels are not linear, k.
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
    """Which rows are complete trials of this run, not of earlier tasks (n booleans)."""
    return (observations.status == Status.COMPLETE) & (observations.columns.tasks == 0)


def front_rows(observations: Observations) -> Tensor:
    """Numbers of the non-dominated rows of this run: among feasible ones, or all while none is feasible."""
    return observations.front_rows


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


AUGMENTED = 0.05  # weight of the sum relative to the maximum (Knowles 2006)


class ChebyshevLabels(Labelling):
    """Labels of one value, the augmented Chebyshev scalarisation, with different weights in each iteration.

        s = max_j w_j u_j + 0.05 sum_j w_j u_j,    u_j = (y_j - min_j) / (r_j - min_j)

    with r_j the reference value of `ObjectiveLabels`. Each set of weights has its own optimum, so together they reach
    the whole front, including concave parts. There is one column, so it works with every classifier and acquisition;
    each iteration searches for the optimum of one set of weights only.

    The weights are evenly distributed over the simplex by a low-discrepancy sequence, indexed by the number of rows:
    they are a function of the observations, so a resumed run has the same weights.

    Args:
        base: the labelling of the scalarised values; default `ValueGradedLabels()`.

    References:
        Knowles, ParEGO: a hybrid algorithm with on-line landscape approximation for expensive multiobjective
        optimization problems, 2006.
    """

    objectives = None

    def __init__(self, base: ThresholdFamily | None = None):
        of_kind(ThresholdFamily, base=base)
        self.base = base or ValueGradedLabels()
        self.outputs = self.base.outputs

    def __call__(self, observations: Observations) -> Labels:
        complete = own_complete(observations)
        if not bool(complete.any()):
            return Labels.none(observations, self.outputs)
        values = observations.values / 2  # differences of halves do not overflow
        lows = values[complete].min(0).values
        extent = reference_values(values[front_rows(observations)], values[complete]) - lows
        units = (values - lows) / torch.where(extent > 0, extent, 1.0)
        weights = simplex_point(len(observations), observations.k).to(units)
        weighted = units * weights
        scalarised = weighted.max(-1).values + AUGMENTED * weighted.sum(-1)
        ranked = np.sort(scalarised[complete].cpu().numpy())
        return replace(self.base.labelled(scalarised, ranked, observations), metrics={})  # tau has no unit


class NonDominationLabels(Labelling):
    """One column by the ranking of NSGA-II: by successive fronts, then by crowding distance.

        z = max(0, 1 - rank / (gamma n))

    The rank is the number of trials on better fronts, or on the same front with a larger crowding distance. Values are
    used only for their order and for the crowding distance.

    Args:
        gamma: proportion of trials with labels above 0, in (0, 1].

    Raises:
        SettingError: for a gamma outside (0, 1].
    """

    objectives = None

    def __init__(self, gamma: float = 0.5):
        up_to(0, 1, gamma=gamma)
        self.gamma = gamma

    def __call__(self, observations: Observations) -> Labels:
        rows = own_complete(observations).nonzero().squeeze(-1)
        if not len(rows):
            return Labels.none(observations, self.outputs)
        z = torch.zeros(len(observations), dtype=torch.float64, device=rows.device)
        good = self.gamma * len(rows)
        rank = torch.from_numpy(nsga_rank(observations.values[rows].cpu().numpy(), math.ceil(good))).to(z)
        z[rows] = (1 - rank / good).clamp(min=0)
        return Labels(
            z[:, None].float(),
            lighten_pending(torch.ones_like(z), observations).float(),
            best=best_feasible(z, observations),
            separable=len(rank.unique()) > 1 or bool((observations.status == Status.FAILED).any()),
            constraints=graded_constraints(observations),
            pending=observations.pending,
        )


def nsga_rank(values: np.ndarray, enough: int) -> np.ndarray:
    """The number of rows ranked before each (n x k, to minimise -> n), by front and crowding; equal rows are tied.

    Args:
        values: n x k.
        enough: fronts are computed until they contain so many rows; the other rows are tied at the end.

    References:
        Deb, Pratap, Agarwal & Meyarivan, A fast and elitist multiobjective genetic algorithm: NSGA-II, 2002.
    """
    distinct, which, count = np.unique(values, axis=0, return_inverse=True, return_counts=True)
    peeled = fronts(distinct, enough)
    order = np.concatenate([each[np.argsort(-crowding(distinct[each]), kind="stable")] for each in peeled])
    before = np.full(len(distinct), count[order].sum())
    before[order] = np.cumsum(count[order]) - count[order]
    return before[which.reshape(-1)]


def simplex_point(number: int, k: int) -> Tensor:
    """The number-th of a sequence of points that fill {w >= 0, sum w = 1} evenly (k).

    A scrambled Sobol sequence in the cube of k - 1 numbers, whose sorted entries cut [0, 1] into k pieces.
    """
    if k == 1:
        return torch.ones(1, dtype=torch.float64)
    sobol = torch.quasirandom.SobolEngine(k - 1, scramble=True, seed=0)
    cuts = sobol.fast_forward(number).draw(1, dtype=torch.float64)[0].sort().values
    ends = torch.cat([cuts.new_zeros(1), cuts, cuts.new_ones(1)])
    return ends.diff()
