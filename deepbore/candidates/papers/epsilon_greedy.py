"""Searches that explore now and then: at random, or for a large improvement."""

from dataclasses import replace

import torch
from torch import Tensor

from deepbore.candidates.base import Candidates, Search, WrappedSearch
from deepbore.candidates.batches import GreedyBatch
from deepbore.validation import above, within


class EpsilonGreedy(WrappedSearch):
    """With probability epsilon random points, else those of another search (BOGGN: epsilon 0.1).

    Several ranks explore together or not at all.

    Args:
        base: the other search.
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


class Ambitious(WrappedSearch):
    """With probability `share` a point must promise to exceed the best label by a margin, not by anything at all.

    Where a plateau of good configurations has been found, such as one model of several with its settings, expected
    improvement may be content with its last digits: they are likely, and a branch that was hardly visited is not. An
    improvement by a third of the labels' scale is out of reach on the plateau, so such a proposal looks elsewhere.
    Worth a try where a run on a space with conditions stands still. It is not the default: over many spaces it gained
    nothing (docs/ablation.md), and on real parameters alone "elsewhere" is the far corners.

    It changes expected improvement only: bounds and probabilities know no label to improve on.

    Args:
        base: the search; default `GreedyBatch()`.
        share: probability that a point is ambitious, in [0, 1].
        margin: by which the best label is to be exceeded, > 0; labels lie in [0, 1].

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
        ambitious = self.base.ranked(replace(search, ambition=self.margin), chosen)
        if chosen == q:
            return ambitious
        usual = self.base.ranked(search, q - chosen)
        return torch.cat([usual[: q - chosen], ambitious[:chosen], usual[q - chosen :], ambitious[chosen:]])
