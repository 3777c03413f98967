"""`Evolution`: offspring of a normal distribution that adapts, screened by a kernel of their ranks, in long runs."""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Self

import torch
from torch import Tensor

from deepbore.candidates.selection import select_new
from deepbore.classifiers import Classifier, KernelPLS
from deepbore.data.trial import Budget
from deepbore.labels import Labelling
from deepbore.space import SearchSpace
from deepbore.strategies.base import Proposal, Strategy, View
from deepbore.strategies.cma_es import CMAES
from deepbore.validation import of_kind, whole

BEGIN = 300  # trials before
SCREENED = 10  # draws for each offspring
SIGMA = 0.2  # initial scale of a search, in units of the ranges
BETTER = 0.2  # share of the trials at whose mean the first search begins
MOST = 1000  # of them
ROWS = 200  # best trials, and newest trials, by which draws are screened
LEAST_SHARE, MOST_SHARE = 0.25, 0.75  # of single proposals, beside its turns
MEMORY = 0.7  # weight of the gains of earlier generations
STUCK = 0.01  # spread of a generation by its distance from the best value, below which it goes nowhere
DETAIL = 1e-7  # spread of a generation by that of the first values, below which it only adds digits
SAME = 1e-6  # distance of a point from itself after it was rounded in a configuration
PATIENCE = 4096  # trials asked after an offspring, by which it is given up


class Evolution(Strategy):
    """Offspring of a normal distribution that adapts (`CMAES`), each the best of several draws by a classifier.

    A model that maximises an improvement goes on to the last digits of the basin that it has found, and the labels of a
    long run, graded between its best and its median trial, no longer show what lies beyond. A distribution that begins
    wide follows the slope of all values instead, past many local minima. From several draws the one is evaluated that
    the classifier scores best. It learns, once a generation, the share of trials that each of the best 200 and the
    newest 200 is better than: the mean over all thresholds tau of the label y <= tau. So a proposal costs the same at
    any number of trials.

    In `Turns` it claims a quarter to three quarters of single proposals, by what it has gained lately beside what the
    others have (`Gains`), and of the rest it has its turns as they do. That is the price of an insurance: on smooth
    ground, where the others would add digits, a run of a thousand trials ends with fewer of them. A search that has
    converged, or is stuck where values are worse than the best, begins anew at a random place with twice the offspring.

    It applies in continuous spaces without fixed parameters, to one objective without budgets, constraints or earlier
    tasks, from 300 trials on.

    Args:
        classifier: what screens the draws; None for a `KernelPLS`, which forecasts offspring better than networks do
            (docs/ablation.md).
        screened: draws for each offspring; 1 for no screening, >= 1.
        begin: trials before, >= 1.
        rows: the best and the newest so many trials are learned, >= 1.

    Raises:
        SettingError: for a number outside its range, or a part of the wrong kind.

    Example:
        >>> from deepbore import KernelPLS, Real, SearchSpace, Study
        >>> from deepbore.strategies import ModelStrategy, Turns
        >>> space = SearchSpace({"x": Real(0, 1), "y": Real(0, 1)})
        >>> study = Study(space, strategy=Turns([ModelStrategy(KernelPLS()), Evolution()]))

    References:
        Hansen, The CMA evolution strategy: a tutorial, 2016. Auger & Hansen, A restart CMA evolution strategy with
        increasing population size, CEC 2005. Jin, Surrogate-assisted evolutionary computation: recent advances and
        future challenges, 2011 (pre-selection).
    """

    def __init__(
        self, classifier: Classifier | None = None, screened: int = SCREENED, begin: int = BEGIN, rows: int = ROWS
    ):
        whole(1, screened=screened, begin=begin, rows=rows)
        of_kind(Classifier, classifier=classifier)
        self.classifier, self.screened, self.begin, self.rows = classifier or KernelPLS(), screened, begin, rows
        self.search: CMAES | None = None
        self.asked = torch.empty(0)  # offspring that no generation has taken in, k x d
        self.since = torch.empty(0, dtype=torch.long)  # how many trials there were when each was asked, k
        self.gains = Gains()
        self._kept: Mapping[str, Any] = {}  # the classifier's state, until it is bound

    def at_budgets(self, budget: Budget) -> Self:
        return self

    def check(self, space: SearchSpace, labels: Labelling) -> None:
        """Never raises: where the strategy does not apply, it proposes nothing."""

    def applies(self, view: View) -> bool:
        is_plain = view.batch is not None and view.has_plain_outcomes and len(view.space) > 1
        has_place = view.space.points.is_continuous and not view.space.points.is_fixed
        return is_plain and has_place and view.observations.ledger.statistics.n_complete >= self.begin

    def is_urgent(self, view: View) -> bool:
        return self.gains.are_due()

    # --- learning ----------------------------------------------------------------------------------------------------

    def fit(self, view: View) -> bool:
        """Takes in a generation once as many offspring have an outcome as it has."""
        if self.search is None:
            self._begin(view, better_mean(view))
            self._learn(view)
            return True
        self._give_up(len(view.observations) - PATIENCE)
        finished, rows = self._finished(view)
        if len(rows) >= self.search.size:
            self._take_in(view, finished, rows)
            self._learn(view)
        return True

    def _begin(self, view: View, mean: Tensor, size: int | None = None) -> None:
        self.search = CMAES(mean, SIGMA, size)
        self.asked, self.since = mean.new_empty(0, len(mean)), self.since[:0]
        self.gains.begin(view.values.cpu())

    def _give_up(self, before: int) -> None:
        """Waits no longer for what was asked before so many trials, such as trials that were withdrawn."""
        waits = self.since >= before
        self.asked, self.since = self.asked[waits], self.since[waits]

    def _finished(self, view: View) -> tuple[Tensor, Tensor]:
        """Which offspring have an outcome (k booleans), and the numbers of their rows."""
        start, end = int(self.since.min()) if len(self.since) else 0, len(view.values)
        if not len(self.asked) or end <= start:
            return torch.zeros(len(self.asked), dtype=torch.bool), self.since[:0]
        distance, row = torch.cdist(self.asked, view.observations.points[start:end].to(self.asked)).min(1)
        finished = (distance < SAME) & ~view.observations.pending[start:end].cpu()[row]
        return finished, row[finished] + start

    def _take_in(self, view: View, finished: Tensor, rows: Tensor) -> None:
        """Adapts the distribution to the finished offspring, or begins another search."""
        assert self.search is not None
        values = view.values[rows.to(view.values.device)].nan_to_num(nan=math.inf).to(self.asked)
        self.search.adapt(self.asked[finished], values)
        self.asked, self.since = self.asked[~finished], self.since[~finished]
        self.gains.take_in(view.values.cpu(), rows, self.begin)
        if self.search.has_converged or self.gains.are_stuck:
            anywhere = torch.rand(len(self.search.mean), dtype=self.asked.dtype, generator=view.generator)
            self._begin(view, anywhere, 2 * self.search.size)

    def _learn(self, view: View) -> None:
        """Trains the classifier on shares of trials that the best and the newest trials are better than."""
        if self.screened == 1:
            return
        assert view.batch is not None
        self._bind(view.space)
        self.classifier.generator = view.generator
        self.classifier.to(view.batch.points.device)
        n = len(view.values)
        best, newest = view.observations.centres.best_rows(self.rows).cpu(), torch.arange(max(0, n - self.rows), n)
        rows = torch.cat([best[best < n], newest]).unique().to(view.values.device)
        rows = rows[view.batch.learned[rows]]
        z = shares(view.values[rows]).to(view.batch.z)
        self.classifier.fit(replace(view.batch.take(rows), z=z[:, None], best=1.0))

    def _bind(self, space: SearchSpace) -> None:
        if self.classifier.space is None:
            self.classifier.bind(space)
        if self._kept:
            self.classifier.load_state_dict(self._kept["weights"])
            self.classifier.load_learning_states(iter(self._kept["optimizers"]))
            self._kept = {}

    # --- proposing ---------------------------------------------------------------------------------------------------

    def propose(self, view: View, q: int) -> Proposal:
        assert self.search is not None
        drawn = self.search.offspring(q * self.screened, view.generator)
        if self.screened > 1:
            drawn = self._screened(drawn, view)
        points = select_new(drawn, view.observations, q, view.generator, view.chosen)
        self.asked = torch.cat([self.asked, points.to(self.asked)])
        self.since = torch.cat([self.since, torch.full((len(points),), len(view.observations))])
        return Proposal(points, self.classifier)

    def _screened(self, drawn: Tensor, view: View) -> Tensor:
        """Of each so many draws in a row the one with the best mean score (q x d)."""
        self._bind(view.space)
        with torch.no_grad():
            scores = self.classifier.posterior(drawn.to(view.observations.points)).mean
        best = scores.view(-1, self.screened).argmax(1).cpu()
        return drawn.view(len(best), self.screened, -1)[torch.arange(len(best)), best]

    # --- state -------------------------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """The distribution, offspring that wait, gains, and the classifier's weights; empty before the first turn."""
        if self.search is None:
            return {}
        learned = self._kept
        if self.classifier.space is not None and not self._kept:
            weights = dict(self.classifier.state_dict())
            learned = {"weights": weights, "optimizers": self.classifier.learning_states()}
        return {
            "search": self.search.state_dict(),
            "asked": self.asked,
            "since": self.since,
            "gains": dict(vars(self.gains)),
            "classifier": dict(learned),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.search, self.gains = None, Gains()
        if state:
            self.search = CMAES.of(state["search"])
            self.asked, self.since = state["asked"], state["since"]
            vars(self.gains).update(state["gains"])
            self._kept = state["classifier"]


class Gains:
    """What evolution and the other strategies have gained lately, for each proposal, in units of the values.

    Evolution gains what the mean of the better half of a generation is lower than that of the one before: a search that
    begins wide is worth its turns long before it finds the best value of all. The others gain what they lower the best
    value.
    """

    def __init__(self) -> None:
        self.own = self.others = 0.0
        self.better = self.best = math.inf  # mean of the latest generation's better half, and best of all
        self.n = 0  # trials by then
        self.credit = 0.0  # proposals that evolution has left to the others, above one it is due
        self.are_stuck = False

    @property
    def share(self) -> float:
        """Of the single proposals that evolution claims."""
        total = self.own + self.others
        return LEAST_SHARE + (MOST_SHARE - LEAST_SHARE) * (self.own / total if total > 0 else 0.5)

    def are_due(self) -> bool:
        """Whether evolution claims the next proposal."""
        self.credit += self.share
        is_due = self.credit >= 1
        self.credit -= is_due
        return is_due

    def begin(self, values: Tensor) -> None:
        """A search begins; values are of all trials (n, NaN for failures)."""
        self.better, self.best = math.inf, least(values)
        self.n = len(values)
        self.are_stuck = False

    def take_in(self, values: Tensor, rows: Tensor, begin: int) -> None:
        """A generation has ended.

        Args:
            values: of all trials, to minimise, NaN for failures (n).
            rows: numbers of those of the generation.
            begin: the first so many trials say what differences are small.
        """
        is_other = torch.ones(len(values), dtype=torch.bool, device=values.device)
        is_other[rows] = False
        others, own = values[self.n :][is_other[self.n :]], values[rows]
        best, own = min(self.best, least(values[self.n :])), own[~own.isnan()]
        if len(others):
            self.others = lately(self.others, (self.best - least(others)) / len(others))
        if len(own):
            better, spread = float(own.sort().values[: -(-len(own) // 2)].mean()), float(own.max() - own.min())
            if math.isfinite(self.better):
                self.own = lately(self.own, (self.better - better) / len(own))
            first = values[:begin][~values[:begin].isnan()]
            self.are_stuck = spread < max(STUCK * (better - best), DETAIL * float(first.max() - first.min()))
            self.better = better
        self.best, self.n = best, len(values)


def lately(before: float, gained: float) -> float:
    """A running mean of gains, of which none is below 0."""
    return MEMORY * before + (1 - MEMORY) * max(0.0, gained)


def least(values: Tensor) -> float:
    """The least of values (n, NaN for failures), infinite without any."""
    known = values[~values.isnan()]
    return float(known.min()) if len(known) else math.inf


def better_mean(view: View) -> Tensor:
    """The mean of the better fifth of all trials, but of a thousand at most (d)."""
    count = min(MOST, math.ceil(BETTER * view.observations.ledger.statistics.n_complete))
    rows = view.observations.centres.best_rows(count)
    return view.observations.points[rows[rows < len(view.values)]].mean(0).double().cpu()


def shares(values: Tensor) -> Tensor:
    """The share of values that each is better than (n), of equal ones half of them; 0 for NaN."""
    merit = values.nan_to_num(nan=math.inf)
    ordered = merit.sort().values
    below, up_to = torch.searchsorted(ordered, merit), torch.searchsorted(ordered, merit, right=True)
    return (1 - (below + up_to).double() / (2 * len(values))).masked_fill(values.isnan(), 0.0)
