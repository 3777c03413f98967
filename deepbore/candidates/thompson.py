"""Thompson sampling: each point of a batch maximises one draw from the posterior."""

import math

import torch
from torch import Tensor

from deepbore.candidates.base import Candidates, Search
from deepbore.candidates.local import LocalSearch
from deepbore.validation import of_kind

SHORTLIST = 1000  # points that the draws are compared at, or 2 q


class ThompsonBatch(Candidates):
    """Each point of the batch maximises one posterior sample of the score, drawn for it (`Posterior.sample`).

    The samples are members of an ensemble, or joint draws of a Gaussian; with fewer members than points, a member
    drawn again gives its next best point. (BORE with a network trained by stochastic gradients behaves like Thompson
    sampling, Oliveira et al. 2022, appendix B.) Samples are compared at the best points of another search, so the
    acquisition has its say in what is worth comparing.

    Under black-box constraints each is compared with a draw of their grades, too: the best score among the points that
    keep them in this draw, or, if none does, the point that violates them least (Eriksson and Poloczek, 2021).

    Several ranks share the other search.

    Args:
        base: the search whose ranking they are compared on; default `LocalSearch()`.

    Raises:
        SettingError: when the run is set up, for a classifier without a deviation.

    References:
        Eriksson & Poloczek, Scalable constrained Bayesian optimization, AISTATS 2021 (section 3).
    """

    needs = frozenset({"std"})

    def __init__(self, base: Candidates | None = None):
        of_kind(Candidates, base=base)
        self.base = base or LocalSearch()

    def ranked(self, search: Search, q: int) -> Tensor:
        ranked = self.base.ranked(search, q)
        pool = search.fresh(ranked, max(SHORTLIST, 2 * q))
        return torch.cat([pool[self._chosen(search, pool, q)], ranked])

    @torch.no_grad()
    def _chosen(self, search: Search, pool: Tensor, q: int) -> Tensor:
        """Rows of the pool, the best of each sample that is not taken yet: q of them, or all."""
        count = min(q, len(pool))
        if not count:
            return torch.zeros(0, dtype=torch.long, device=pool.device)
        taken = torch.zeros(len(pool), dtype=torch.bool, device=pool.device)
        rows = []
        draws, violations = self._draws(search, pool, count)
        for scores, violation in zip(draws, violations, strict=True):
            out = taken | ~_least_violating(violation, taken)
            rows.append(scores.masked_fill(out, -math.inf).argmax(keepdim=True))
            taken[rows[-1]] = True
        return torch.cat(rows)

    def _draws(self, search: Search, pool: Tensor, count: int) -> tuple[Tensor, Tensor]:
        """Samples of the scores, and by how much constraints are violated in each (count x m both)."""
        nothing = pool.new_zeros(()).expand(count, len(pool))
        if search.feasibility is None:
            return search.classifier.posterior(pool).sample(count, search.stream), nothing
        violation = search.feasibility.sampled_violation(search.configurations(pool), count, search.stream)
        if not search.feasibility.found:  # the classifier may have nothing to say yet
            return nothing, violation
        return search.classifier.posterior(pool).sample(count, search.stream), violation


def _least_violating(violation: Tensor, taken: Tensor) -> Tensor:
    """Which points violate least of those that are not taken, mostly not at all (n booleans)."""
    return violation <= violation.masked_fill(taken, math.inf).min()
