"""`OtherBranches`: proposals as if the branches of a space that are refined already did not exist."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from deepbore.classifiers.kernel.least_squares import ROWS, KernelPLS
from deepbore.classifiers.kernel.posterior import KernelPosterior
from deepbore.data.array_ranking import threshold
from deepbore.data.observations import Observations
from deepbore.data.trial import Budget
from deepbore.errors import SettingError
from deepbore.labels import LabelledBatch, Labelling
from deepbore.labels.threshold import ThresholdFamily
from deepbore.space import SearchSpace
from deepbore.strategies.base import Proposal, Strategy, View

FIRST = 10  # the initial scale of values is that of so many
DETAIL = 0.01  # improvements below this share of the initial scale count as refinement
ENOUGH = 10  # trials within a refinement of the best of their branch, from which on it is refined
LOOKED_AT = 1000  # of the best rows, and of the newest
HOPELESS = 1e3  # penalty on the predicted label of excluded branches


class OtherBranches(Strategy):
    """Proposals by a kernel that learns only the branches which are not refined yet.

    Labels are relative to the best values. So once the refinements of one branch fill the upper half of the labels,
    everything in the other branches counts as bad, however good it is beside a random configuration, and what may be
    found there is not worth an evaluation. But the best configuration is the best of all branches. So once ten trials
    of the best branch differ by refinements only, a second kernel learns the trials of the other branches alone, graded
    among themselves, until one of these is refined, too; then that is excluded as well, and so on. A branch is which of
    the conditional parameters are active.

    It applies in spaces with conditions, to one objective without budgets, constraints or earlier tasks, and labels by
    thresholds.

    Args:
        rows: how many rows the kernel learns from at most, >= 1; as all that follow, see `KernelPLS`.
        iterations: of L-BFGS on the evidence, >= 0.
        prior: whether the settings of the kernel have priors.
        alike: whether length scales are expected to be alike in spaces of ten real parameters or more.
        crashes: whether single failures may be random.
        additive: whether a partly additive kernel competes.

    Raises:
        SettingError: for a number outside its range.
    """

    def __init__(
        self,
        rows: int = ROWS,
        iterations: int = 15,
        prior: bool = True,
        alike: bool = True,
        crashes: bool = True,
        additive: bool = True,
    ):
        self.model = BranchModel(
            rows=rows, iterations=iterations, prior=prior, alike=alike, crashes=crashes, additive=additive
        )
        self.remaining: RemainingBranches | None = None  # at the latest look
        self._kept: Mapping[str, Any] = {}  # a state dict, until the model is bound

    def at_budgets(self, budget: Budget) -> "OtherBranches":
        return self

    def check(self, space: SearchSpace, labels: Labelling) -> None:
        if not isinstance(labels, ThresholdFamily):
            raise SettingError(
                f"OtherBranches grades values anew by the thresholds of the labels, but {type(labels).__name__} has "
                "none. Give ValueGradedLabels() or ThresholdLabels(), or leave OtherBranches out."
            )

    def applies(self, view: View) -> bool:
        self.remaining = None
        if view.batch is None or view.first is None or not view.has_plain_outcomes or not view.space.is_conditional:
            return False
        assert isinstance(view.labels, ThresholdFamily)  # or `check` has refused them
        self.remaining = remaining_branches(view.batch, view.observations, view.labels)
        return self.remaining is not None

    def fit(self, view: View) -> bool:
        """Learns the remaining branches."""
        assert self.remaining is not None
        self._bind(view.space.without_fixed)
        self.model.generator = view.generator
        self.model.to(self.remaining.batch.points.device)
        self.model.excluded = self.remaining.excluded
        self.model.learn(self.remaining.batch)
        self.model.keep_best(self.remaining.batch.best)
        return True

    def propose(self, view: View, q: int) -> Proposal:
        assert view.first is not None
        assert self.remaining is not None
        search = replace(view.search(self.model, view.first.acquisition), centre_rows=self.remaining.ranked)
        return Proposal(view.first.candidates.propose(search, q), self.model)

    def _bind(self, space: SearchSpace) -> None:
        self.model.bind(space)
        if "theta" in self._kept:
            self.model.theta.copy_(self._kept["theta"])
        if self.model.rival is not None and "rival" in self._kept:
            self.model.rival.theta.copy_(self._kept["rival"])
        self._kept = {}

    def state_dict(self) -> dict[str, Any]:
        """The settings of the kernels; empty before the first turn."""
        if self.model.space is None:
            return dict(self._kept)
        rival = {} if self.model.rival is None else {"rival": self.model.rival.theta}
        return {"theta": self.model.theta} | rival

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.remaining, self._kept = None, dict(state)
        if self.model.space is not None:
            self.model.build(self.model.space, 1)


class BranchModel(KernelPLS):
    """`KernelPLS` that expects nothing of excluded branches."""

    excluded: Tensor  # branches, b x c

    def posterior(self, points: Tensor) -> KernelPosterior:
        assert self.space is not None
        hopeless = is_among(branches(self.space, points), self.excluded)
        return super().posterior(points).lowered(HOPELESS * hopeless.to(self.theta))


@dataclass(frozen=True)
class RemainingBranches:
    """The rows outside the branches that are refined already.

    Attributes:
        batch: the rows, graded among themselves.
        ranked: their numbers, best first, failures last.
        excluded: the refined branches, b x c.
    """

    batch: LabelledBatch
    ranked: Tensor
    excluded: Tensor


def branches(space: SearchSpace, points: Tensor) -> Tensor:
    """The branch that each point lies in, as which of the c conditional parameters are active: n x c booleans."""
    columns = [column for column, each in enumerate(space.parameters.values()) if each.conditions]
    return space.active(points)[:, columns]


def is_among(these: Tensor, those: Tensor) -> Tensor:
    """Which branches (n x c) are among others (b x c): n booleans."""
    return (these[:, None] == those).all(-1).any(-1)


def remaining_branches(
    batch: LabelledBatch, observations: Observations, labels: ThresholdFamily
) -> RemainingBranches | None:
    """The rows outside the refined branches; None where no branch is refined, or no value is outside.

    Args:
        batch: n rows; their labels are not used.
        observations: the same rows, and any that were asked for since.
        labels: those of the run.
    """
    detail = DETAIL * initial_scale(observations, labels)
    newest = torch.arange(max(0, len(batch) - LOOKED_AT), len(batch), device=batch.points.device)
    best = observations.best_rows(LOOKED_AT).to(newest)
    rows = torch.cat([best[best < len(batch)], newest]).unique()  # rows told since the labelling have no weight yet
    rows = rows[batch.learned[rows]]
    values, here = observations.averaged.values[rows], branches(observations.space.without_fixed, batch.points[rows])
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
    ranked = values[known].sort().values.cpu().numpy()
    z, _ = labels.label(values, ranked, threshold(ranked, labels.proportion(len(ranked))))
    regraded = replace(batch.take(rows), z=z[:, None], best=1.0)
    return RemainingBranches(regraded, rows[merit.argsort(stable=True)], excluded)


def initial_scale(observations: Observations, labels: ThresholdFamily) -> float:
    """Tau of the first ten values minus the best value of all; 0 with fewer values."""
    told = observations.averaged
    known = told.values[:LOOKED_AT]
    first = known[~known.isnan()][:FIRST].sort().values.cpu().numpy()
    if len(first) < FIRST:
        return 0.0
    return threshold(first, labels.proportion(FIRST)) - float(told.ranked[0])
