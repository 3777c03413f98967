"""Epsilon-greedy candidates."""

import torch
from torch import Tensor

from deepbore.candidates.base import Candidates, Search
from deepbore.errors import SettingError


class EpsilonGreedy(Candidates):
    """With probability epsilon random points, else those of another search (BOGGN: epsilon 0.1).

    Args:
        base: the other search.
        epsilon: probability of exploring, in [0, 1].
    """

    def __init__(self, base: Candidates, epsilon: float = 0.1):
        if not 0 <= epsilon <= 1:
            raise SettingError(f"0 <= epsilon <= 1 must hold, but got epsilon={epsilon}.")
        self.base, self.epsilon = base, epsilon

    def ranked(self, search: Search, q: int) -> Tensor:
        if float(torch.rand(1, generator=search.generator)) < self.epsilon:
            return search.space.sample(100 * q, search.generator)
        return self.base.ranked(search, q)
