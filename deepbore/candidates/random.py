"""Random search for candidates."""

from torch import Tensor

from deepbore.candidates.base import Candidates, Search
from deepbore.errors import SettingError


class RandomSearch(Candidates):
    """The best of uniform random points; asks nothing of the classifier (BORE J.1: 500 on discrete spaces).

    Args:
        samples: how many points, >= 1.
    """

    def __init__(self, samples: int = 2000):
        if samples < 1:
            raise SettingError(f"samples >= 1 must hold, but got samples={samples}.")
        self.samples = samples

    def ranked(self, search: Search, q: int) -> Tensor:
        return search.rank(search.space.sample(self.samples, search.generator))[0]
