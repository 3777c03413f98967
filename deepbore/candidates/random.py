"""Random search for candidates."""

from torch import Tensor

from deepbore.candidates.base import Candidates, Search
from deepbore.validation import whole


class RandomSearch(Candidates):
    """The best of uniform random points; asks nothing of the classifier (BORE J.1: 500 on discrete spaces).

    Several ranks share the points.

    Args:
        samples: how many points, >= 1.

    Raises:
        SettingError: for a number below 1.
    """

    def __init__(self, samples: int = 2000):
        whole(1, samples=samples)
        self.samples = samples

    def ranked(self, search: Search, q: int) -> Tensor:
        own = search.on_own_stream()
        return search.gathered(*own.best_first(own.sample(search.share(self.samples))))[0]
