"""What the default was chosen among for training runs: the price of insurance, corners, rough ground, exploitation.

docs/ablation.md has what came of each ("Training runs").
"""

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch
from scipy.stats import spearmanr
from torch import Tensor

import deepbore as db
from deepbore.labels import Labelling, RankGradedLabels
from deepbore.space import SearchSpace
from deepbore.strategies import (
    ModelStrategy,
    NearBest,
    NeglectedChoices,
    OtherBranches,
    Proposal,
    RoughGround,
    Strategy,
    Turns,
    View,
)
from deepbore.strategies.subset import SubsetStrategy, considered_rows, graded_alone
from peers.variants.ends import Ends
from peers.variants.settings import Settings


class Falling(Ends):
    """`Ends` without a partly additive rival."""

    def __init__(self, end: float = 0.7):
        db.KernelPLS.__init__(self, additive=False)
        self.end, self.everywhere = end, False


class Fifth(NeglectedChoices):
    """Every fifth proposal, for levels too."""

    every = 5  # type: ignore[assignment]
    level_trials = 0.5


class ManyLevels(NeglectedChoices):
    """Half of ln n trials are enough for a level."""

    level_trials = 0.5


class Everywhere(RoughGround):
    """A forest in all spaces."""

    def applies(self, view: View) -> bool:
        return view.batch is not None and view.first is not None and view.has_plain_outcomes


class Compared(Everywhere):
    """A forest that proposes where it forecasts rows which it has not seen better than the kernel does."""

    def fit(self, view: View) -> bool:
        super().fit(view)
        model, z = view.first.classifier, view.batch.z.mean(-1).numpy()
        precision = model._root.square().sum(0)
        if len(precision) != len(z):  # the kernel has learned a part of them
            return False
        alone = (model._data[:, 0] - model._coefficients / precision).numpy()
        return bool(spearmanr(self.unseen(view, z), z)[0] > spearmanr(alone, z)[0])

    def unseen(self, view: View, z: np.ndarray) -> np.ndarray:
        """The label of each row by the trees that have not seen it (n)."""
        from sklearn.ensemble import RandomForestRegressor

        forest = RandomForestRegressor(50, max_features="sqrt", oob_score=True, random_state=0)
        found: np.ndarray = forest.fit(self.model._encode(view.batch.points), z).oob_prediction_
        return found


class LogRanks(RankGradedLabels):
    """z = 1 - log(1 + rank) / log(1 + k) for the k values up to tau, 0 above: the best few count most."""

    def label(self, values: Tensor, ranked: np.ndarray, tau: float) -> tuple[Tensor, Tensor]:
        k = int(np.searchsorted(ranked, tau, side="right"))
        good = torch.from_numpy(ranked[:k]).to(values)
        rank = torch.searchsorted(good, torch.nan_to_num(values, nan=math.inf))
        return 1 - (1 + rank).double().log() / math.log(1 + k), torch.ones_like(values, dtype=torch.float)


class Ranked(SubsetStrategy):
    """A kernel of labels by rank, at every second proposal."""

    def __init__(self, labels: RankGradedLabels):
        super().__init__(db.KernelPLS(additive=False))
        self.labels = labels

    def check(self, space: SearchSpace, labels: Labelling) -> None:
        """It has labels of its own."""

    def applies(self, view: View) -> bool:
        return view.batch is not None and view.first is not None and view.has_plain_outcomes

    def fit(self, view: View) -> bool:
        self.prepare(view)
        rows = considered_rows(view.batch, view.observations)
        self.learn(view, graded_alone(view.batch, rows, view.values[rows], self.labels))
        return True


class RankedForest(Everywhere):
    """A forest of labels by rank."""

    def __init__(self, labels: RankGradedLabels, every: int):
        super().__init__(every=every)
        self.labels = labels

    def fit(self, view: View) -> bool:
        rows = considered_rows(view.batch, view.observations)
        batch = graded_alone(view.batch, rows, view.values[rows], self.labels).batch
        return super().fit(replace(view, batch=batch))


class Greedy(ModelStrategy):
    """Expected improvement and, at every second proposal, the largest mean."""

    def propose(self, view: View, q: int) -> Proposal:
        kept = self.acquisition
        self.acquisition = db.ClassProbability() if len(view.observations) % 2 else kept
        try:
            return super().propose(view, q)
        finally:
            self.acquisition = kept


def turns(first: Callable[[], ModelStrategy], *others: Callable[[], Strategy]) -> Callable[[], Settings]:
    """Strategies that take turns, with those for near the best and for other branches."""
    return lambda: {"strategy": Turns([first(), NearBest(), *(each() for each in others), OtherBranches()])}


def kernel() -> ModelStrategy:
    return ModelStrategy(db.KernelPLS())


def falling() -> ModelStrategy:
    return ModelStrategy(Falling())


def focused() -> ModelStrategy:
    return ModelStrategy(db.KernelPLS(), candidates=db.GreedyBatch(db.LocalSearch(focus=0.5)))


def second() -> Strategy:
    return Everywhere(every=2)


VARIANTS: dict[str, Callable[[], Settings]] = {
    "deepbore:fifth": turns(kernel, Fifth),
    "deepbore:falling-fifth": turns(falling, Fifth),
    "deepbore:falling-fifth-forest": turns(falling, Fifth, RoughGround),
    "deepbore:levels-second": turns(kernel, ManyLevels),
    "deepbore:levels-forest-third": turns(kernel, ManyLevels, Everywhere),
    "deepbore:levels-forest-second": turns(kernel, ManyLevels, second),
    "deepbore:levels-forest-compared": turns(kernel, ManyLevels, lambda: Compared(every=2)),
    "deepbore:levels-focus": turns(focused, ManyLevels),
    "deepbore:levels-focus-forest-third": turns(focused, ManyLevels, Everywhere),
    "deepbore:levels-greedy": turns(lambda: Greedy(db.KernelPLS()), ManyLevels),
    "deepbore:levels-ranks": turns(kernel, ManyLevels, lambda: Ranked(RankGradedLabels(0.9))),
    "deepbore:levels-log-ranks": turns(kernel, ManyLevels, lambda: Ranked(LogRanks(0.9))),
    "deepbore:levels-forest-ranks": turns(kernel, ManyLevels, lambda: RankedForest(RankGradedLabels(0.9), 3)),
    "deepbore:levels-forest-log-ranks": turns(kernel, ManyLevels, lambda: RankedForest(LogRanks(0.9), 2)),
    "deepbore:few-levels": turns(kernel, NeglectedChoices),
    "deepbore:few-levels-forest": turns(kernel, NeglectedChoices, lambda: RoughGround(every=4)),
}
