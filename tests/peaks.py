"""A classifier whose scores are a peak at a known point, and the spaces that searches for it are tried on."""

import torch

from deepbore import Categorical, Integer, Ordinal, Real, SearchSpace
from deepbore.acquisition import ClassProbability
from deepbore.candidates import Search
from deepbore.classifiers import MLPClassifier
from deepbore.classifiers.posterior import PointEstimate
from deepbore.data.observations import Observations

FIVE = SearchSpace({f"x{i}": Real(0, 1) for i in range(5)})
MIXED = SearchSpace({"x": Real(0, 1), "y": Real(0, 1), "n": Integer(1, 50), "c": Categorical(list("abcdef"))})
GRID = SearchSpace({f"k{i}": Ordinal(list(range(5))) for i in range(3)})


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


class Peak(MLPClassifier):
    """Scores are a smooth peak at a given point, whatever was learned."""

    def __init__(self, top):
        super().__init__()
        self.top = top

    def posterior(self, points):
        return PointEstimate(self.height(points), self.link, "Peak")

    def height(self, points):
        return -(points - self.top.to(points)).square().sum(-1)


def search(space, top, observed=0, seed=0):
    observations = Observations(space)
    if observed:
        rows = observations.reserve(space.points.sample(observed, generator(seed + 1)))
        for row in rows:
            observations.tell(row, float(-Peak(top).height(observations.points[row : row + 1])))
    return Search(ClassProbability(), Peak(top).bind(space), observations, generator(seed))
