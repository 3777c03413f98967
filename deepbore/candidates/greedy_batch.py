"""Greedy batches: one point after another, each away from those before it."""

import torch
from torch import Tensor

from deepbore.candidates.base import Candidates, Search, WrappedSearch
from deepbore.candidates.local import LocalSearch
from deepbore.space.coordinates import Coordinates, squared_distances
from deepbore.validation import above

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

    Distances are those of kernels (`deepbore.space.coordinates.Coordinates`). A single point with nothing pending is
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
    """The newest pending points, up to a number (p x d)."""
    return search.points(search.observations.pending_rows[-KNOWN:])


def known_points(search: Search) -> Tensor:
    """Evaluated points, the best and the newest ones, up to a number (p x d)."""
    rows = search.observations.finished_rows
    if len(rows) > KNOWN:
        rows = torch.cat([rows[-KNOWN // 2 :], search.observations.best_rows(KNOWN // 2)])
    return search.points(rows)
