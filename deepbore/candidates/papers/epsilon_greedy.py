"""Optimisers that sometimes explore: at random, or by requiring a large improvement."""

from dataclasses import replace

import torch
from torch import Tensor

from deepbore.candidates.base import Candidates, Search, WrappedSearch
from deepbore.candidates.batches import GreedyBatch
from deepbore.validation import above, within


class EpsilonGreedy(WrappedSearch):
    """Random points with probability epsilon, else those of another optimiser (BOGGN: epsilon 0.1).

    All ranks make the same choice.

    Args:
        base: the other optimiser.
        epsilon: probability of exploring, in [0, 1].

    Raises:
        SettingError: for an epsilon outside [0, 1].
    """

    def __init__(self, base: Candidates, epsilon: float = 0.1):
        super().__init__(base)
        within(0, 1, epsilon=epsilon)
        self.epsilon = epsilon

    def ranked(self, search: Search, q: int) -> Tensor:
        if float(torch.rand(1, generator=search.generator)) < self.epsilon:
            return search.sample(100 * q)
        return self.base.ranked(search, q)


class RaisedIncumbent(WrappedSearch):
    """Improvement over a raised incumbent, the best label plus a margin, with probability `share`.

    On a plateau of good configurations expected improvement may keep refining: tiny improvements are likely there, and
    improvements in rarely visited branches are not. An improvement by a third of the range of labels is impossible on
    the plateau, so such a proposal explores. Try it if a run on a conditional space stagnates. It is not the default:
    over many spaces it gained nothing (docs/ablation.md), and with real parameters only it explores the corners.

    It affects expected improvement only: upper bounds and probabilities have no incumbent.

    Args:
        base: the optimiser; default `GreedyBatch()`.
        share: the probability that a point is proposed with the raised incumbent, in [0, 1].
        margin: added to the best label, > 0; labels are in [0, 1].

    Raises:
        SettingError: for a number outside its range.
    """

    def __init__(self, base: Candidates | None = None, share: float = 0.2, margin: float = 0.3):
        super().__init__(GreedyBatch() if base is None else base)
        within(0, 1, share=share)
        above(0, margin=margin)
        self.share, self.margin = share, margin

    def ranked(self, search: Search, q: int) -> Tensor:
        chosen = int((torch.rand(q, generator=search.generator) < self.share).sum())
        if not chosen:
            return self.base.ranked(search, q)
        ambitious = self.base.ranked(replace(search, margin=self.margin), chosen)
        if chosen == q:
            return ambitious
        usual = self.base.ranked(search, q - chosen)
        return torch.cat([usual[: q - chosen], ambitious[:chosen], usual[q - chosen :], ambitious[chosen:]])
