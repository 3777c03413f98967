"""`NeglectedChoices`: proposals among the values of choices that have had few trials."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import torch
from torch import Tensor

from deepbore.classifiers.kernel.kernels import prior_of
from deepbore.classifiers.kernel.least_squares import ROWS, KernelPLS
from deepbore.classifiers.kernel.posterior import KernelPosterior
from deepbore.labels.threshold import ThresholdFamily
from deepbore.space import SearchSpace
from deepbore.strategies.base import Proposal, View
from deepbore.strategies.subset import CONSIDERED, Subset, SubsetStrategy, considered_rows, graded_beside
from deepbore.validation import whole

SHARE = 0.8  # of an equal share of the trials among the values of a choice, which is enough
BRANCH, LEVEL = 4.0, 0.25  # trials for each unit of ln n that are enough, of a value with own parameters and of others
OWN_DEVIATION = 0.5  # standard deviation of the logarithm of a length scale of a branch's own parameters
BOLD = (0.0, 0.3)  # mean and standard deviation of the logarithm of the kernel's amplitude
EVERY = 5  # proposals from turn to turn for branches: every second one costs more than it saves (docs/ablation.md)
SAMPLED = 1024  # points of the space among which a possible value occurs
PENALTY = 1e3  # subtracted from the predicted label where no value is neglected


class NeglectedChoices(SubsetStrategy):
    """Proposals by a kernel that considers only values of unordered choices that have had few trials.

    A branch whose first trials are bad, because its own parameters were, is hardly tried again by the model of all
    rows: all of its labels are 0, and the amplitude learned from such labels makes better ones seem impossible. The
    same holds for a level that has not been tried. Therefore such values get a share of the proposals that falls as
    log n / n (Lai & Robbins 1985).

    - A branch, a value of a choice on which parameters depend, has had enough after 4 ln n trials of n: its own
      parameters have to be found. The kernel learns all trials: those of neglected branches graded among themselves,
      the others on the same scale, as if their best were equal (`graded_beside`). So what shared parameters do does
      not have to be found again, and the acquisition chooses the branch that is the most promising for what is known
      of it. Length scales of a branch's own parameters have the prior of a space of these alone: they are not known
      after few trials.
    - Any other value has had enough after ln n / 4. The kernel learns all trials.
    - Four fifths of an equal share of the trials of its choice are enough for either.
    - A branch goes on beyond that while it gains on the best one: in the second half of its trials its best value
      improved by more than it is behind. So branches are raced by their extremes, not by their means (Carpentier &
      Valko 2014).
    - The values of the best trial are never neglected.

    The kernel's amplitude has a prior close to 1, so that a high label is possible where nothing is known. Only the
    newest thousand trials are counted. It is an insurance, and has a price: in `Turns` it makes every fifth proposal
    for branches, and every second one while a level is neglected, which lasts for a few trials.

    It applies in spaces with unordered choices, to one objective without budgets, constraints or earlier tasks, and
    labels by thresholds.

    Args:
        rows: the maximum number of rows to learn from, >= 1; for all arguments see `KernelPLS`.
        iterations: of L-BFGS on the evidence, >= 0.
        prior: whether the hyperparameters have priors.
        crashes: whether single failures may be random.
        additive: whether a partly additive kernel is compared.
        every: in `Turns`, it is due for branches at every so many proposals, >= 2.

    Raises:
        SettingError: for a number outside its range.

    References:
        Lai & Robbins, Asymptotically efficient adaptive allocation rules, 1985.
        Carpentier & Valko, Extreme bandits, 2014.
    """

    branch_trials: ClassVar[float] = BRANCH
    level_trials: ClassVar[float] = LEVEL
    races: ClassVar[bool] = True  # whether branches that gain on the best one go on
    own_scales: ClassVar[bool] = True  # whether length scales of a branch have a prior of their own
    model: "BoldModel"

    def __init__(
        self,
        rows: int = ROWS,
        iterations: int = 15,
        prior: bool = True,
        crashes: bool = True,
        additive: bool = True,
        every: int = EVERY,
    ):
        super().__init__(BoldModel(rows=rows, iterations=iterations, prior=prior, crashes=crashes, additive=additive))
        whole(2, every=every)
        self.branches_every = every
        self.alternatives: Alternatives | None = None
        self.neglected: Tensor | None = None  # which of the alternatives, as of the latest `applies`
        self.turn: list[Tensor] = []  # the same in the order of proposals: all branches, and all levels

    @property
    def every(self) -> int:  # type: ignore[override]  # read after `applies`
        """Proposals from turn to turn: two while a level is neglected, else those for branches."""
        if self.neglected is None or self.alternatives is None:
            return self.branches_every
        return 2 if bool((self.neglected & ~self.alternatives.has_own).any()) else self.branches_every

    def applies(self, view: View) -> bool:
        self.neglected = None
        if view.batch is None or view.first is None or not view.has_plain_outcomes:
            return False
        if self.alternatives is None or self.alternatives.space is not view.space:
            self.alternatives = possible_alternatives(view.space)
        start = max(0, len(view.observations) - CONSIDERED)
        enough = torch.where(self.alternatives.has_own, self.branch_trials, self.level_trials)
        points, values = view.observations.points[start:], view.values[start:]
        found = self.alternatives.neglected(points, values, enough, self.races)
        if bool(found.any()):
            self.neglected = found
        return self.neglected is not None

    def fit(self, view: View) -> bool:
        """Trains the model for all neglected branches, or for all neglected levels; of both kinds one is drawn."""
        assert self.neglected is not None
        assert self.alternatives is not None
        branches = self.neglected & self.alternatives.has_own
        levels = self.neglected & ~self.alternatives.has_own
        self.turn = [wanted for wanted in (branches, levels) if bool(wanted.any())]
        if len(self.turn) > 1 and int(torch.randint(2, (1,), generator=view.generator)):
            self.turn.reverse()
        self.prepare(view)
        return self._learn(view, self.turn[0])

    def _learn(self, view: View, wanted: Tensor) -> bool:
        """Trains the prepared model for some of the alternatives (a booleans)."""
        assert self.alternatives is not None
        self.model.alternatives, self.model.wanted = self.alternatives, wanted
        is_branch = bool((wanted & self.alternatives.has_own).any())
        own = self.alternatives.own(wanted) if is_branch and self.own_scales else []
        self.model.expect_scales(own, self._active(view, own))
        self.learn(view, self._beside_others(view) if is_branch else None)
        return True

    def _active(self, view: View, columns: list[int]) -> float:
        """How many of some parameters are active in a trial with a wanted value, on average, at least 1."""
        assert view.batch is not None
        points = view.batch.points[self.model.is_wanted(view.batch.points)]
        active = view.space.points.active(points)[:, columns].sum(-1).double()
        return max(1.0, float(active.mean())) if len(points) else 1.0

    def propose(self, view: View, q: int) -> Proposal:
        """Points for the first kind of what is neglected, a batch for both; fewer where a model can't be trained."""
        found = super().propose(view, -(-q // len(self.turn))).points
        failure = "NeglectedChoices could not learn its rows, so a part of a batch is left to others: %s"
        left = q - len(found) if len(self.turn) > 1 else 0
        if left and view.agreed(partial(self._learn, view, self.turn[1]), failure):
            found = torch.cat([found, super().propose(view.beside(found), left).points])
        return Proposal(found, self.model)

    def _beside_others(self, view: View) -> Subset | None:
        """The trials of wanted branches beside others; None if fewer than two of them have succeeded."""
        assert view.batch is not None
        assert isinstance(view.labels, ThresholdFamily)  # otherwise `check` raises
        rows = considered_rows(view.batch, view.observations)
        values, is_own = view.values[rows], self.model.is_wanted(view.batch.points[rows])
        if int((~values[is_own].isnan()).sum()) < 2:
            return None
        return graded_beside(view.batch, rows, values, is_own, view.labels, self.model.rows)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        super().load_state_dict(state)
        self.neglected = None


@dataclass(frozen=True)
class Alternatives:
    """The a possible values of the unordered choices of a space.

    Attributes:
        space: the space.
        columns: the column of each value's choice, a.
        levels: the level that each value is, a.
        has_own: whether parameters depend on the value, a booleans.
    """

    space: SearchSpace
    columns: Tensor
    levels: Tensor
    has_own: Tensor

    def __call__(self, points: Tensor) -> Tensor:
        """Which values each point has, its choice being active (n x a booleans)."""
        columns, levels = self.columns.to(points.device), self.levels.to(points)
        return (points[:, columns].round() == levels) & self.space.points.active(points)[:, columns]

    def neglected(self, points: Tensor, values: Tensor, trials: Tensor, races: bool = True) -> Tensor:
        """Which values have had too few trials (a booleans).

        Args:
            points: the newest trials, pending ones included, n x d.
            values: of the first of them, to minimise; NaN for failures. The rest has no outcome yet.
            trials: that are enough for each unit of ln n, a.
            races: whether values with parameters of their own that gain on the best one go on.
        """
        has = self(points).cpu()
        counts = has.sum(0).double()
        same = self.columns[:, None] == self.columns
        equal = (same.double() @ counts) / same.sum(1)  # shares of the trials in which the choice is active
        enough = trials * math.log(max(len(points), 2))
        told = torch.full((len(points),), math.inf, dtype=values.dtype)
        told[: len(values)] = values.cpu().nan_to_num(nan=math.inf)
        best = has[told.argmin()] if bool(told.isfinite().any()) else torch.zeros_like(self.has_own)
        few = (counts < SHARE * equal) & (counts < enough)
        return (few | self.has_own & races & is_gaining(has, told)) & ~best

    def own(self, wanted: Tensor) -> list[int]:
        """The columns of the parameters that depend on the choices of some values (a booleans), ascending."""
        descendants = self.space.points.structure.conditions.descendants
        return sorted({each for column in self.columns[wanted].unique().tolist() for each in descendants(column)})


def is_gaining(has: Tensor, values: Tensor) -> Tensor:
    """Whether each value improved in the second half of its trials by more than it is behind (a booleans).

    Args:
        has: which of a values each trial has, n x a.
        values: of the trials, to minimise; infinite for failures and pending trials (n).
    """
    first = has & (has.cumsum(0) <= has.sum(0) // 2)
    before, now = (values[:, None].masked_fill(~rows, math.inf).amin(0) for rows in (first, has))
    return before - now > now - values.min()


def possible_alternatives(space: SearchSpace) -> Alternatives:
    """The values of unordered choices that occur in the space, with its constraints and fixed parameters."""
    conditions = space.points.structure.conditions

    def has_own(column: int, level: int) -> bool:
        rules = (rule for child in conditions.children.get(column, ()) for rule in conditions.rules[child])
        return any(rule.parent == column and bool(rule.holds(torch.tensor(float(level)))) for rule in rules)

    found = [
        (column, level, has_own(column, level))
        for column, parameter in enumerate(space.parameters.values())
        if not parameter.is_ordered and parameter.levels is not None
        for level in range(parameter.levels)
    ]
    columns, levels, own = (torch.tensor([row[part] for row in found]) for part in range(3))
    every = Alternatives(space, columns.long(), levels.double(), own.bool())
    occurs = every(space.points.sobol(SAMPLED, seed=0)).any(0) if found else torch.zeros(0, dtype=torch.bool)
    return Alternatives(space, every.columns[occurs], every.levels[occurs], every.has_own[occurs])


class BoldModel(KernelPLS):
    """`KernelPLS` with an amplitude close to 1, and a low mean where no wanted value is chosen."""

    amplitude_prior = BOLD
    alternatives: Alternatives
    wanted: Tensor  # a booleans

    def expect_scales(self, own: list[int], count: float) -> None:
        """Sets the prior of length scales, those of some parameters to what it is in a space of these alone.

        Elsewhere they may be as long as distances in the whole space are, and a branch would seem to be known after
        few trials.

        Args:
            own: their columns.
            count: how many of them are active.
        """
        assert self.space is not None
        self._prior = prior_of(self.space, self.length_scale_prior, self.lambda_prior, self.amplitude_prior)
        blocks = [place for place, block in enumerate(self.coordinates.blocks) if block.parameter in own]
        self._prior[blocks] = self.length_scale_prior[0] + math.log(count) / 2, OWN_DEVIATION

    def is_wanted(self, points: Tensor) -> Tensor:
        """Which points have a wanted value (n booleans)."""
        return self.alternatives(points)[:, self.wanted.to(points.device)].any(-1)

    def posterior(self, points: Tensor) -> KernelPosterior:
        return super().posterior(points).lowered(PENALTY * (~self.is_wanted(points)).to(self.theta))
