"""`OtherBranches`: proposals as if the branches of a space that are refined already did not exist."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from deepbore.classifiers.kernel.least_squares import ROWS, KernelPLS
from deepbore.classifiers.kernel.posterior import KernelPosterior
from deepbore.data.array_ranking import threshold
from deepbore.data.observations import Observations
from deepbore.labels import LabelledBatch
from deepbore.labels.threshold import ThresholdFamily
from deepbore.space import SearchSpace
from deepbore.strategies.base import View
from deepbore.strategies.subset import CONSIDERED, Subset, SubsetStrategy, considered_rows, graded_alone

FIRST = 10  # the first values, which the initial scale is computed from
DETAIL = 0.01  # improvements below this share of the initial scale count as refinement
ENOUGH = 10  # trials within a refinement of the best one from which a branch counts as refined
PENALTY = 1e3  # subtracted from the predicted label in excluded branches


class OtherBranches(SubsetStrategy):
    """Proposals by a kernel that learns only the branches which are not refined yet.

    Labels are relative to the best values. Once refinements of one branch fill the upper half of the labels, all trials
    of other branches count as bad, and the search neglects these branches. Therefore, once ten trials of the best
    branch differ by refinements only, a second kernel learns only the trials of the other branches, graded among
    themselves. When the best of these branches is refined too, it is excluded as well, and so on. A branch is defined
    by which conditional parameters are active.

    It applies in spaces with conditions, to one objective without budgets, constraints or earlier tasks, and labels by
    thresholds.

    Args:
        rows: the maximum number of rows to learn from, >= 1; for all arguments see `KernelPLS`.
        iterations: of L-BFGS on the evidence, >= 0.
        prior: whether the hyperparameters have priors.
        alike: whether length scales are correlated a priori in spaces of ten ordered parameters or more.
        crashes: whether single failures may be random.
        additive: whether a partly additive kernel is compared.

    Raises:
        SettingError: for a number outside its range.
    """

    model: "BranchModel"

    def __init__(
        self,
        rows: int = ROWS,
        iterations: int = 15,
        prior: bool = True,
        alike: bool = True,
        crashes: bool = True,
        additive: bool = True,
    ):
        super().__init__(
            BranchModel(rows=rows, iterations=iterations, prior=prior, alike=alike, crashes=crashes, additive=additive)
        )
        self.remaining: RemainingBranches | None = None  # as of the latest `applies`

    def applies(self, view: View) -> bool:
        self.remaining = None
        has_branches = view.has_plain_outcomes and view.space.points.is_conditional
        if view.batch is None or view.first is None or not has_branches:
            return False
        assert isinstance(view.labels, ThresholdFamily)  # otherwise `check` raises
        self.remaining = remaining_branches(view.batch, view.observations, view.labels)
        return self.remaining is not None

    def fit(self, view: View) -> bool:
        """Trains the model on the remaining branches."""
        assert self.remaining is not None
        self.prepare(view)
        self.model.excluded = self.remaining.excluded
        self.learn(view, self.remaining)
        return True

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        renamed = {"rival": "additive_theta"}  # keys of version 0.2
        super().load_state_dict({renamed.get(key, key): value for key, value in state.items()})
        self.remaining = None


class BranchModel(KernelPLS):
    """`KernelPLS` with a low mean in excluded branches."""

    excluded: Tensor  # branches, b x c

    def posterior(self, points: Tensor) -> KernelPosterior:
        assert self.space is not None
        is_excluded = is_among(branches(self.space, points), self.excluded)
        return super().posterior(points).lowered(PENALTY * is_excluded.to(self.theta))


@dataclass(frozen=True)
class RemainingBranches(Subset):
    """The rows outside the refined branches, graded among themselves.

    Attributes:
        excluded: the refined branches, b x c.
    """

    excluded: Tensor


def branches(space: SearchSpace, points: Tensor) -> Tensor:
    """The branch of each point: which of the c conditional parameters are active (n x c booleans)."""
    columns = [column for column, each in enumerate(space.parameters.values()) if each.conditions]
    return space.points.active(points)[:, columns]


def is_among(these: Tensor, those: Tensor) -> Tensor:
    """Which branches (n x c) are in a list of branches (b x c): n booleans."""
    return (these[:, None] == those).all(-1).any(-1)


def remaining_branches(
    batch: LabelledBatch, observations: Observations, labels: ThresholdFamily
) -> RemainingBranches | None:
    """The rows outside the refined branches; None if no branch is refined, or no value is outside.

    Args:
        batch: n rows; their labels are not used.
        observations: the same rows, and trials asked for since then.
        labels: the labelling of the run.
    """
    detail = DETAIL * initial_scale(observations, labels)
    rows = considered_rows(batch, observations)
    values = observations.averaged.values[rows]
    here = branches(observations.space.points.without_fixed, batch.points[rows])
    excluded = here[:0]
    while bool((known := ~values.isnan()).any()):
        merit = values.nan_to_num(nan=math.inf)
        first = here[merit.argmin()][None]  # the branch of the best remaining row
        same = is_among(here, first)
        if int((merit[same] < merit.min() + detail).sum()) < ENOUGH:
            break
        excluded = torch.cat([excluded, first])
        rows, values, here = rows[~same], values[~same], here[~same]
    if not len(excluded) or not bool(known.any()):
        return None
    return RemainingBranches(**vars(graded_alone(batch, rows, values, labels)), excluded=excluded)


def initial_scale(observations: Observations, labels: ThresholdFamily) -> float:
    """Tau of the first ten values minus the best value of all; 0 with fewer values."""
    told = observations.averaged
    known = told.values[:CONSIDERED]
    first = known[~known.isnan()][:FIRST].sort().values.cpu().numpy()
    if len(first) < FIRST:
        return 0.0
    return threshold(first, labels.proportion(FIRST)) - float(told.ranked[0])
