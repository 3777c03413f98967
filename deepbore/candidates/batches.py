"""Batches of points: by local penalisation, by Thompson sampling, or as if predictions were observed."""

import math

import torch
from torch import Tensor

from deepbore.acquisition import Acquisition
from deepbore.candidates.base import Candidates, Search, WrappedSearch
from deepbore.candidates.local import LocalSearch
from deepbore.classifiers.posterior import GaussianPosterior
from deepbore.errors import SettingError
from deepbore.space.features import Coordinates, squared_distances
from deepbore.validation import above, of_kind

SHORTLIST = 1000  # best points of the ranking that a batch is chosen from, or 4 q
PART = 1024  # points of the pool whose distances to others are in memory at once
KNOWN = 1000  # evaluated points considered, half the best and half the newest; and as many pending ones
TINY = 1e-12
ONE_BY_ONE, POOL = 1024, 4096  # points that a believer chooses one by one, and of how many


class GreedyBatch(WrappedSearch):
    """A batch by local penalisation: each point maximises the acquisition times a penalty near earlier points.

        x_j = argmax a(x) min_{i < j} (1 - exp(-|x - x_i|^2 / (2 r_i^2))),    r_i = reach * distance of x_i to the data

    where a is the acquisition as a positive density (`Acquisition.log_density`). This is the local penalisation of
    Gonzalez et al. (Batch Bayesian optimization via local penalization, 2016) with another radius, which needs neither
    a Gaussian process nor a Lipschitz constant, so it works with every classifier. The radius is large far from the
    data and small near them. Pending points are penalised too, so q calls for one point are as diverse as one call for
    q points.

    Only the nearest earlier point counts, where theirs is the product over all: in many dimensions all distances are
    alike, so the product over hundreds of points, far from each of them, outweighs the acquisition.

    Distances are those of kernels (`deepbore.space.features.Coordinates`). For a single point without pending ones the
    ranking of the base is unchanged. Several ranks share the search and the densities, and choose the same points.

    Args:
        base: the optimiser whose ranking the batch is chosen from; default `LocalSearch()`.
        reach: the radius in units of the distance to the nearest evaluated point, > 0.

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
        pool = search.first_new(ranked, max(SHORTLIST, 4 * q))
        return torch.cat([pool[self._chosen(search, pool, pending, q)], ranked]) if len(pool) else ranked

    def _chosen(self, search: Search, pool: Tensor, pending: Tensor, q: int) -> Tensor:
        """Rows of the pool, in the order of choice: q of them, or all. All tensors stay on the device."""
        place = Coordinates(search.space.points).to(pool.device)
        x, known, taken = place(pool), place(known_points(search)), place(pending)
        near, parts = self._radius(taken, known), x.split(PART)  # in parts: pool and taken grow with the batch
        density, nearest = search.log_densities(pool), torch.full_like(x[:, 0], math.inf)
        if len(taken):
            nearest = torch.cat([in_radii(part, taken, near).amin(-1) for part in parts])
        radius, rows = torch.cat([self._radius(part, known) for part in parts]), []
        for _ in range(min(q, len(pool))):
            rows.append((density + log_penalty(nearest)).argmax(keepdim=True))
            nearest = torch.minimum(nearest, in_radii(x, x[rows[-1]], radius[rows[-1]])[:, 0])
        return torch.cat(rows)

    def _radius(self, x: Tensor, known: Tensor) -> Tensor:
        """The penalty radius of each point x (k x c), given the known points (p x c): k."""
        if not len(known):
            return torch.full_like(x[:, 0], self.reach)
        return self.reach * squared_distances(x, known).min(-1).values.sqrt()


def in_radii(x: Tensor, centres: Tensor, radius: Tensor) -> Tensor:
    """|x - c|^2 / (2 r^2): x (k x c), p centres and radii -> k x p."""
    squared = (x[:, None] - centres).square().sum(-1) if len(centres) == 1 else squared_distances(x, centres)
    return squared / (2 * radius.square().clamp(min=TINY))


def log_penalty(distance: Tensor) -> Tensor:
    """log(1 - exp(-u)) of u = `in_radii`: -inf at the centre itself, 0 far away."""
    return (-torch.expm1(-distance)).log()


def pending_points(search: Search) -> Tensor:
    """The newest pending points, at most `KNOWN`, and those already in the batch (p x d)."""
    pending = search.points(search.observations.columns.pending_rows[-KNOWN:])
    return (
        pending
        if search.chosen is None
        else torch.cat([pending, search.from_configurations(search.chosen).to(pending)])
    )


def known_points(search: Search) -> Tensor:
    """The best and the newest evaluated points, at most `KNOWN` (p x d)."""
    rows = search.observations.columns.finished_rows
    if len(rows) > KNOWN:
        rows = torch.cat([rows[-KNOWN // 2 :], search.observations.centres.best_rows(KNOWN // 2)])
    return search.points(rows)


class ThompsonBatch(Candidates):
    """A batch by Thompson sampling: each point maximises its own posterior sample (`Posterior.sample`).

    Samples are members of an ensemble, or joint draws of a Gaussian; a member that is drawn again gives its next best
    point. (BORE with a network trained by stochastic gradients behaves like Thompson sampling, Oliveira et al. 2022,
    appendix B.) Samples are evaluated at the best points of another optimiser, which uses the acquisition.

    Where something is believed of the best point, its log is added to the log probability of a sample's scores. Under
    black-box constraints their grades are sampled too. The point has the best score among those that are feasible in
    the sample, or the least violation if none is (Eriksson and Poloczek, 2021).

    Several ranks share the search of the base.

    Args:
        base: the optimiser whose best points the samples are evaluated at; default `LocalSearch()`.

    Raises:
        SettingError: when the run is set up, for a classifier without a standard deviation.

    References:
        Eriksson & Poloczek, Scalable constrained Bayesian optimization, AISTATS 2021 (section 3).
    """

    needs = frozenset({"std"})

    def __init__(self, base: Candidates | None = None):
        of_kind(Candidates, base=base)
        self.base = base or LocalSearch()

    def ranked(self, search: Search, q: int) -> Tensor:
        ranked = self.base.ranked(search, q)
        pool = search.first_new(ranked, max(SHORTLIST, 2 * q))
        return torch.cat([pool[self._chosen(search, pool, q)], ranked])

    @torch.no_grad()
    def _chosen(self, search: Search, pool: Tensor, q: int) -> Tensor:
        """Rows of the pool, for each sample the best one not taken yet: q of them, or all."""
        count = min(q, len(pool))
        if not count:
            return torch.zeros(0, dtype=torch.long, device=pool.device)
        taken = torch.zeros(len(pool), dtype=torch.bool, device=pool.device)
        rows = []
        draws, violations = self._draws(search, pool, count)
        if search.is_favouring:
            draws = search.classifier.posterior(pool[:1]).link.log_probability(draws) + search.log_favour(pool)
        for scores, violation in zip(draws, violations, strict=True):
            out = taken | ~_least_violating(violation, taken)
            rows.append(scores.masked_fill(out, -math.inf).argmax(keepdim=True))
            taken[rows[-1]] = True
        return torch.cat(rows)

    def _draws(self, search: Search, pool: Tensor, count: int) -> tuple[Tensor, Tensor]:
        """Samples of the scores and of the constraint violation (count x m each)."""
        nothing = pool.new_zeros(()).expand(count, len(pool))
        if search.feasibility is None:
            return search.classifier.posterior(pool).sample(count, search.stream), nothing
        violation = search.feasibility.sampled_violation(search.to_configurations(pool), count, search.stream)
        if not search.feasibility.has_feasible:  # the classifier may not be ready yet
            return nothing, violation
        return search.classifier.posterior(pool).sample(count, search.stream), violation


def _least_violating(violation: Tensor, taken: Tensor) -> Tensor:
    """Which points have the least violation among those not taken, usually 0 (n booleans)."""
    return violation <= violation.masked_fill(taken, math.inf).min()


class BelieverBatch(WrappedSearch):
    """A batch chosen one by one, each point as if the earlier ones had the values that are predicted for them.

    A Gaussian that is conditioned on its own predictions keeps its mean; its deviation falls near the chosen points, by
    what they tell about each other. So an upper confidence bound or expected improvement goes elsewhere next, and does
    not choose many near copies. Pending points count as chosen before. For an acquisition of the mean alone nothing
    changes.

    Distances play no part, the covariance does: for a library that of the fingerprints. At most 1024 points are chosen
    so, of the 4096 best of the base; the rest of a larger batch are its next best ones.

    Args:
        base: the optimiser whose ranking the batch is chosen from; default `LocalSearch()`.

    Raises:
        SettingError: when the run is set up, for a classifier without a standard deviation, or an acquisition that
            needs more of the scores than a mean and a deviation.

    Example:
        >>> import numpy as np
        >>> from deepbore import Library, LibrarySearch, Study
        >>> bits = np.random.default_rng(0).random((200, 64)) < 0.2
        >>> study = Study({"molecule": Library(bits)}, candidates=BelieverBatch(LibrarySearch()))
        >>> len(study.ask(20))
        20

    References:
        Desautels, Krause & Burdick, Parallelizing exploration-exploitation tradeoffs in Gaussian process bandit
        optimization, JMLR 2014; Ginsbourger, Le Riche & Carraro, Kriging is well-suited to parallelize optimization,
        2010.
    """

    needs = frozenset({"std"})

    def __init__(self, base: Candidates | None = None):
        super().__init__(LocalSearch() if base is None else base)

    def check_acquisition(self, acquisition: Acquisition) -> None:
        if not acquisition.by_moments:
            raise SettingError(
                f"BelieverBatch chooses by a mean and a deviation, but {type(acquisition).__name__} needs more of the "
                "scores. Use UpperConfidenceBound or LogExpectedImprovement, or GreedyBatch."
            )
        super().check_acquisition(acquisition)

    def ranked(self, search: Search, q: int) -> Tensor:
        ranked = self.base.ranked(search, q)
        pending, feasibility = pending_points(search), search.feasibility
        if (q == 1 and not len(pending)) or not (feasibility is None or feasibility.has_feasible):
            return ranked
        pool = search.first_new(ranked, min(max(SHORTLIST, 4 * q), POOL))
        return torch.cat([pool[self._chosen(search, pool, pending, q)], ranked]) if len(pool) else ranked

    @torch.no_grad()
    def _chosen(self, search: Search, pool: Tensor, pending: Tensor, q: int) -> Tensor:
        """Rows of the pool, in the order of choice: q of them, or all, or `ONE_BY_ONE`."""
        first, count = len(pending), min(q, len(pool), ONE_BY_ONE)
        posterior = search.classifier.posterior(torch.cat([pending, pool]))
        mean, covariance = posterior.mean[first:], posterior.covariance().double()
        variance = covariance.diagonal().clone()
        least = TINY * variance.max().clamp(min=TINY)
        factors = search.log_factors(pool)
        value_of = search.acquisition.log_density if search.is_weighted else search.acquisition
        roots = covariance.new_zeros(first + count, len(covariance))  # of what the chosen points explain
        out, chosen = torch.zeros_like(mean, dtype=torch.bool), []
        for step, root in enumerate(roots):
            row = step
            if step >= first:
                std = variance[first:].clamp(min=least).sqrt().to(mean)
                value = value_of(Believed(mean, std, posterior.link), search.incumbent) + factors
                chosen.append(int(value.masked_fill(out, -math.inf).argmax()))
                out[chosen[-1]] = True
                row = first + chosen[-1]
            known = roots[:step]
            root.copy_((covariance[row] - known[:, row] @ known) / variance[row].clamp(min=least).sqrt())
            variance -= root.square()
        return torch.tensor(chosen, device=pool.device)


class Believed(GaussianPosterior):
    """Means and deviations alone, as a formula of single points takes them."""

    def covariance(self) -> Tensor:
        return self.std.square().diag()
