"""Batches: one point after another, each away from those before it, or one for each draw from the posterior."""

import math

import torch
from torch import Tensor

from deepbore.candidates.base import Candidates, Search, WrappedSearch
from deepbore.candidates.local import LocalSearch
from deepbore.space.features import Coordinates, squared_distances
from deepbore.validation import above, of_kind

SHORTLIST = 1000  # points of the ranking that a batch is chosen among, or 4 q
KNOWN = 1000  # evaluated and pending points that it looks at, half of the evaluated the best and half the newest
TINY = 1e-12


class GreedyBatch(WrappedSearch):
    """Chooses the points of a batch one by one, by the acquisition times a penalty near those chosen and pending.

        x_j = argmax a(x) prod_{i < j} (1 - exp(-|x - x_i|^2 / (2 r_i^2))),    r_i = reach * distance of x_i to the data

    where a is the acquisition as a positive density (`Acquisition.log_density`), so that each point clears its
    surroundings. The radius follows the data: a point far from all others claims much room, one next to the best
    observation little, and batches tighten as the run does. This is local penalisation (Gonzalez et al., Batch
    Bayesian optimization via local penalization, 2016) with a radius that needs neither a Gaussian process nor a
    Lipschitz constant, so that it serves every classifier. The penalty counts pending points too, so q calls for one
    point spread as one call for q.

    Distances are those of kernels (`deepbore.space.features.Coordinates`). A single point with nothing pending is
    the base's. Several ranks share the base's search and the densities; all choose the same.

    Args:
        base: the search whose ranking the batch is chosen from; default `LocalSearch()`.
        reach: radius of the penalty as a share of the distance to the nearest evaluated point, > 0.

    Raises:
        SettingError: for a reach that is not positive.

    Example:
        >>> from deepbore import Real, SearchSpace, Study
        >>> study = Study(SearchSpace({"x": Real(0, 1)}), candidates=GreedyBatch())
        >>> len(study.ask(4))
        4
    """

    def __init__(self, base: Candidates | None = None, reach: float = 0.5):
        super().__init__(LocalSearch() if base is None else base)
        above(0, reach=reach)
        self.reach = reach

    def ranked(self, search: Search, q: int) -> Tensor:
        ranked = self.base.ranked(search, q)
        pending = pending_points(search)
        if q == 1 and not len(pending):
            return ranked
        pool = search.fresh(ranked, max(SHORTLIST, 4 * q))
        return torch.cat([pool[self._chosen(search, pool, pending, q)], ranked]) if len(pool) else ranked

    def _chosen(self, search: Search, pool: Tensor, pending: Tensor, q: int) -> Tensor:
        """Rows of the pool, in the order of choice: q of them, or all; on the device all the while."""
        place = Coordinates(search.space).to(pool.device)
        x, known, taken = place(pool), place(known_points(search)), place(pending)
        value = search.log_densities(pool) + log_penalty(x, taken, self._radius(taken, known)).sum(-1)
        radius, rows = self._radius(x, known), []
        for _ in range(min(q, len(pool))):
            rows.append(value.argmax(keepdim=True))
            value = value + log_penalty(x, x[rows[-1]], radius[rows[-1]])[:, 0]
        return torch.cat(rows)

    def _radius(self, x: Tensor, known: Tensor) -> Tensor:
        """Reach times the distance of each of x (k x c) to the nearest known one (p x c): k."""
        if not len(known):
            return torch.full_like(x[:, 0], self.reach)
        return self.reach * squared_distances(x, known).min(-1).values.sqrt()


def log_penalty(x: Tensor, centres: Tensor, radius: Tensor) -> Tensor:
    """log(1 - exp(-|x - c|^2 / (2 r^2))), -inf at the centre itself: x (k x c), p centres and radii -> k x p."""
    squared = (x[:, None] - centres).square().sum(-1) if len(centres) == 1 else squared_distances(x, centres)
    return (-torch.expm1(-squared / (2 * radius.square().clamp(min=TINY)))).log()


def pending_points(search: Search) -> Tensor:
    """The newest pending points, up to a number, and those that the batch has already (p x d)."""
    pending = search.points(search.observations.pending_rows[-KNOWN:])
    return pending if search.chosen is None else torch.cat([pending, search.located(search.chosen).to(pending)])


def known_points(search: Search) -> Tensor:
    """Evaluated points, the best and the newest ones, up to a number (p x d)."""
    rows = search.observations.finished_rows
    if len(rows) > KNOWN:
        rows = torch.cat([rows[-KNOWN // 2 :], search.observations.best_rows(KNOWN // 2)])
    return search.points(rows)


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
