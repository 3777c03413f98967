"""Random search for candidates."""

from torch import Tensor

from deepbore.candidates.base import Search, SharedCandidates
from deepbore.errors import SettingError


class RandomSearch(SharedCandidates):
    """The best of uniform random points; asks nothing of the classifier (BORE J.1: 500 on discrete spaces).

    Args:
        samples: how many points, >= 1.
    """

    divided = ("samples",)

    def __init__(self, samples: int = 2000):
        if samples < 1:
            raise SettingError(f"samples >= 1 must hold, but got samples={samples}.")
        self.samples = samples

    def scored(self, search: Search, q: int) -> tuple[Tensor, Tensor]:
        return search.rank(search.space.sample(self.samples, search.generator))
