"""Thompson sampling: each point of a batch maximises one draw from the posterior."""

import math

import torch
from torch import Tensor

from deepbore.candidates.base import Candidates, Search
from deepbore.candidates.local import LocalSearch
from deepbore.candidates.walk import fresh
from deepbore.checks import of_kind

SHORTLIST = 1000  # points that the draws are compared at, or 2 q


class ThompsonBatch(Candidates):
    """Each point of the batch maximises one posterior sample of the score, drawn for it (`Posterior.sample`).

    The samples are members of an ensemble, or joint draws of a Gaussian; with fewer members than points, a member
    drawn again gives its next best point. (BORE with a network trained by stochastic gradients behaves like Thompson
    sampling, Oliveira et al. 2022, appendix B.) Samples are compared at the best points of another search, so the
    acquisition has its say in what is worth comparing.

    Several ranks share the other search.

    Args:
        base: the search whose ranking they are compared on; default `LocalSearch()`.

    Raises:
        SettingError: when the run is set up, for a classifier without a deviation.
    """

    needs = frozenset({"std"})

    def __init__(self, base: Candidates | None = None):
        of_kind(Candidates, base=base)
        self.base = base or LocalSearch()

    def ranked(self, search: Search, q: int) -> Tensor:
        ranked = self.base.ranked(search, q)
        pool = fresh(ranked, search.observations, max(SHORTLIST, 2 * q))
        return torch.cat([pool[self._chosen(search, pool, q)], ranked])

    @torch.no_grad()
    def _chosen(self, search: Search, pool: Tensor, q: int) -> Tensor:
        """Rows of the pool, the best of each sample that is not taken yet: q of them, or all."""
        count = min(q, len(pool))
        if not count:
            return torch.zeros(0, dtype=torch.long, device=pool.device)
        taken = torch.zeros(len(pool), dtype=torch.bool, device=pool.device)
        rows = []
        for scores in search.classifier.posterior(pool).sample(count, search.stream):
            rows.append(scores.masked_fill(taken, -math.inf).argmax(keepdim=True))
            taken[rows[-1]] = True
        return torch.cat(rows)
