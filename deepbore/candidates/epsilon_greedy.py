"""Epsilon-greedy candidates."""

import torch
from torch import Tensor

from deepbore.candidates.base import Candidates, Search, WrappedSearch
from deepbore.validation import within


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
