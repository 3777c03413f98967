"""Thompson sampling: each point of a batch maximises one draw from the posterior."""

import math

import torch
from torch import Tensor

from deepbore.candidates.base import Candidates, Search, fresh
from deepbore.candidates.local import LocalSearch

SHORTLIST = 1000  # points that the draws are compared at, or 2 q


class ThompsonBatch(Candidates):
    """Each point of the batch maximises one posterior sample of the score, drawn for it (`Classifier.sample`).

    The samples are members of an ensemble, or draws of a Gaussian process; with fewer members than points, a member
    drawn again gives its next best point. (BORE with a network trained by stochastic gradients behaves like Thompson
    sampling, Oliveira et al. 2022, appendix B.) Samples are compared at the best points of another search, so the
    acquisition has its say in what is worth comparing.

    Args:
        base: the search whose ranking they are compared on; default `LocalSearch()`.

    Raises:
        SettingError: at the first proposal, for a classifier without members or a posterior.
    """

    def __init__(self, base: Candidates | None = None):
        self.base = base or LocalSearch()

    def ranked(self, search: Search, q: int) -> Tensor:
        ranked = self.base.ranked(search, q)
        pool = fresh(ranked, search.observations, max(SHORTLIST, 2 * q))
        return torch.cat([pool[self._chosen(search, pool, q)], ranked])

    @torch.no_grad()
    def _chosen(self, search: Search, pool: Tensor, q: int) -> list[int]:
        """Rows of the pool, the best of each sample that is not taken yet: q of them, or all."""
        rows: list[int] = []
        count = min(q, len(pool))
        if count:
            points = pool.to(search.classifier.device)
            for scores in search.classifier.sample(points, count, search.generator).cpu():
                scores[rows] = -math.inf
                rows.append(int(scores.argmax()))
        return rows
