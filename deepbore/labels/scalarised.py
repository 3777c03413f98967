"""Several objectives in one column of labels, for every classifier: Chebyshev scalarisation, and ranks of fronts."""

import math
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from deepbore.data.observations import Observations, Status
from deepbore.data.pareto import crowding, fronts
from deepbore.labels.base import Labelling, Labels, lighten_pending
from deepbore.labels.constraints import best_feasible, graded_constraints
from deepbore.labels.graded import ValueGradedLabels
from deepbore.labels.objectives import front_rows, own_complete, reference_values
from deepbore.labels.threshold import ThresholdFamily
from deepbore.validation import of_kind, up_to

AUGMENTED = 0.05  # weight of the sum beside the greatest term (Knowles 2006)


class ChebyshevLabels(Labelling):
    """Labels of one value, the augmented Chebyshev scalarisation, whose weights are others in each iteration.

        s = max_j w_j u_j + 0.05 sum_j w_j u_j,    u_j = (y_j - min_j) / (r_j - min_j)

    with r_j the reference value of `ObjectiveLabels`. Each set of weights has its best trade-off, so in turn they lead
    to all of the front, concave parts included. It gives one column, so that every classifier and acquisition goes with
    it; only what one set of weights asks for is looked for at a time.

    The weights are spread evenly over all that sum to one, by a low-discrepancy sequence that goes on with the number
    of rows: they are a function of the observations, so that looking changes nothing and a run resumes as it was.

    Args:
        base: how the scalarised values become labels; default `ValueGradedLabels()`.

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
        return replace(self.base.labelled(scalarised, ranked, observations), metrics={})  # tau is in no unit of theirs


class NonDominationLabels(Labelling):
    """One column by the order of NSGA-II: fronts that are peeled off one after another, and room within each front.

        z = max(0, 1 - rank / (gamma n))

    The rank counts the trials that come before: of better fronts, and, within a front, with a greater crowding
    distance. Values are used by their order only, and for the room between neighbours of a front.

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
        )


def nsga_rank(values: np.ndarray, enough: int) -> np.ndarray:
    """How many rows come before each (n x k, to minimise -> n), by front and then by room; equal rows are equal.

    Args:
        values: n x k.
        enough: rows behind the fronts that so many are in come after all of these, in no order.

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
