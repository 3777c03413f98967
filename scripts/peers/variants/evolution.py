"""An evolution strategy that takes turns with the default beyond 200 trials.

docs/ablation.md has what came of it ("Long runs, again").
"""

from collections.abc import Callable
from dataclasses import replace

import cma
import numpy as np
import torch
from torch import Tensor

import deepbore as db
from deepbore.strategies import ModelStrategy, NearBest, Strategy, Turns, View
from deepbore.strategies.base import Proposal
from deepbore.strategies.near_best import LocalAxes, n_good
from peers.variants.settings import Settings

BEGIN = 200  # trials before
SIGMA = 0.1  # initial standard deviation of a new search, in units of the ranges
CLOSER = 0.7  # standard deviation of samples of the good rows, in units of theirs


class GoodRows(Strategy):
    """Samples of the normal distribution of the good rows, closer to their mean than they are: 20 + 2 d of all rows."""

    def propose(self, view: View, q: int) -> Proposal:
        ranked = view.values.nan_to_num(nan=torch.inf).argsort(stable=True)
        good = view.observations.points[ranked[: n_good(len(view.space))]]
        rank = torch.arange(1, len(good) + 1, dtype=good.dtype)
        weight = np.log(len(good) + 0.5) - rank.log()
        mean = weight @ good / weight.sum()
        drawn = torch.randn(q, len(mean), dtype=good.dtype, generator=view.generator)
        return inside(mean + CLOSER * drawn @ LocalAxes.principal(good).axes.mT)


class Apart(Strategy):
    """CMA-ES that knows its own trials alone, from the mean of the better half of those before it; with restarts."""

    def __init__(self) -> None:
        self.search: cma.CMAEvolutionStrategy | None = None
        self.waiting: list[np.ndarray] = []
        self.asked: list[np.ndarray] = []
        self.restarts = 0

    def propose(self, view: View, q: int) -> Proposal:
        known = view.observations.points[: len(view.values)]
        if self.search is None:
            better = known[view.values <= view.values.nanmedian()].mean(0)
            self.search = self._begin(view, better.numpy(), SIGMA)
        if len(self.asked) == self.search.popsize:
            rows = torch.cdist(torch.tensor(np.array(self.asked)), known).argmin(1)
            self.search.tell(self.asked, view.values[rows].nan_to_num(nan=1e300).tolist())
            self.asked = []
            if self.search.stop():
                self.restarts += 1
                middle = torch.rand(known.shape[1], generator=view.generator).numpy()
                self.search = self._begin(view, middle, 2 * SIGMA, 2 * self.search.popsize)
        if not self.waiting:
            self.waiting = list(self.search.ask())
        self.asked.append(self.waiting.pop(0))
        return inside(torch.tensor(self.asked[-1])[None])

    def _begin(self, view: View, mean: np.ndarray, sigma: float, size: int | None = None) -> cma.CMAEvolutionStrategy:
        options = {"bounds": [0, 1], "seed": 1 + view.seed + 1000 * self.restarts, "verbose": -9}
        return cma.CMAEvolutionStrategy(mean, sigma, options | ({"popsize": size} if size else {}))


class WithEvolution(Turns):
    """The default of a real space; beyond 200 trials its first model leaves most turns to evolution.

    Where the model near the best knows its rows, three of four go to a search apart; elsewhere every other one goes to
    samples of the good rows.
    """

    def __init__(self) -> None:
        super().__init__([ModelStrategy(db.KernelPLS()), NearBest()])
        self.good, self.apart = GoodRows(), Apart()
        self.is_known, self.count = False, 0

    def propose(self, view: View, q: int) -> Proposal:
        if q > 1 or view.observations.ledger.statistics.n_complete < BEGIN:
            return super().propose(view, q)
        shared = replace(view, first=self.first)
        due = self._due(shared, 1)
        if due or not self._waited[0]:  # the model near the best has just learned
            self.is_known = bool(due)
        if due:
            return due[0].propose(shared, 1)
        self.count += 1
        if self.is_known:
            return (self.apart if self.count % 4 else self.first).propose(shared, 1)
        return (self.good if self.count % 2 else self.first).propose(shared, 1)


def inside(points: Tensor) -> Proposal:
    """Points moved to the cube (q x d)."""
    return Proposal(points.clamp(0, 1))


VARIANTS: dict[str, Callable[[], Settings]] = {"evolution": lambda: {"strategy": WithEvolution()}}
