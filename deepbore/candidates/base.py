"""`Candidates`: how the acquisition is maximised, and the walk down its ranking past what has been seen."""

import math
from abc import ABC, abstractmethod
from collections.abc import Hashable
from copy import copy
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from deepbore.acquisition import Acquisition
from deepbore.classifiers.base import Classifier
from deepbore.compute.distributed import Ranks
from deepbore.data.observations import Observations
from deepbore.errors import SpaceExhausted
from deepbore.space import SearchSpace

CHUNK = 256  # points whose value is computed at once: what that takes stays in the cache
ENUMERABLE = 1_000_000  # a finite space up to this size is searched for its last unseen points one by one


@dataclass(frozen=True)
class Search:
    """What a search for candidates may look at.

    Attributes:
        acquisition: the formula to maximise.
        classifier: the trained classifier.
        observations: what is known, pending rows included.
        generator: the run's stream of random numbers, or a rank's own while it searches its share.
        ranks: the processes that search together.
        common: the run's stream, the same on all ranks, for what they decide alike; None for `generator`.
    """

    acquisition: Acquisition
    classifier: Classifier
    observations: Observations
    generator: torch.Generator
    ranks: Ranks = field(default_factory=Ranks)
    common: torch.Generator | None = None

    @property
    def space(self) -> SearchSpace:
        """The search space."""
        return self.observations.space

    def value(self, points: Tensor) -> Tensor:
        """Points (n x d) -> acquisition values (n), with gradients where the classifier has them."""
        return self.acquisition(self.classifier, points.to(self.classifier.device))

    def log_density(self, points: Tensor) -> Tensor:
        """Points (n x d) -> logarithm of the density to sample batches from (n), with gradients as in `value`."""
        return self.acquisition.log_density(self.classifier, points.to(self.classifier.device))

    @torch.no_grad()
    def log_densities(self, points: Tensor) -> Tensor:
        """The same for many points at once, without gradients (n)."""
        return torch.cat([self.log_density(part) for part in points.split(CHUNK)]).double().cpu()

    @torch.no_grad()
    def values(self, points: Tensor) -> Tensor:
        """Points (n x d) -> acquisition values (n) without gradients, chunk by chunk, on the CPU."""
        return torch.cat([self.value(part) for part in points.split(CHUNK)]).cpu()

    def sort(self, points: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Points (n x d) and their values (n), best first; those of trees, which are often equal, in random order."""
        order = torch.arange(len(points))
        if not self.classifier.differentiable:
            order = torch.randperm(len(points), generator=self.generator)
        order = order[values[order].argsort(descending=True, stable=True)]
        return points[order], values[order]

    def rank(self, points: Tensor) -> tuple[Tensor, Tensor]:
        """Points (n x d), best first, and their values (n)."""
        return self.sort(points, self.values(points))


class Candidates(ABC):
    """A way to maximise the acquisition over the search space."""

    @abstractmethod
    def ranked(self, search: Search, q: int) -> Tensor:
        """Points of configurations (k x d), best first; k > q, so that seen ones can be passed over."""

    def propose(self, search: Search, q: int) -> Tensor:
        """q distinct points, none evaluated or pending, the same on all ranks (q x d).

        Raises:
            SpaceExhausted: if a finite space has fewer than q configurations left.
        """
        return search.ranks.agreed(distinct(self.ranked(search, q), search.observations, q, search.generator))


class SharedCandidates(Candidates):
    """A search that ranks can share: each makes `divided` of the effort with a stream of its own; rankings are merged.

    Attributes:
        divided: names of the counts that are divided by the number of ranks.
    """

    divided: tuple[str, ...] = ()

    @abstractmethod
    def scored(self, search: Search, q: int) -> tuple[Tensor, Tensor]:
        """Points of configurations (k x d), best first, and their values (k), found by one rank."""

    def ranked(self, search: Search, q: int) -> Tensor:
        world = search.ranks.world
        if world == 1:
            return self.scored(search, q)[0]
        share = copy(self)
        for name in self.divided:
            setattr(share, name, math.ceil(getattr(self, name) / world))
        own = replace(search, generator=search.ranks.stream(search.generator), common=search.generator)
        points, values = zip(*search.ranks.gather(share.scored(own, q)), strict=True)
        return torch.cat(points)[torch.cat(values).argsort(descending=True, stable=True)]


def distinct(ranked: Tensor, observations: Observations, q: int, generator: torch.Generator) -> Tensor:
    """The first q points of a ranking whose configurations are new and differ, filled up at random (q x d).

    Args:
        ranked: points, best first, k x d.
        observations: what has been seen.
        q: how many are wanted.
        generator: stream for the filling.

    Raises:
        SpaceExhausted: if a finite space has fewer than q configurations left.
    """
    space = observations.space
    left = observations.n_left
    if left < q:
        seen, all_ = observations.n_distinct, int(space.cardinality)
        raise SpaceExhausted(
            f"{q} new configurations were asked for, but {seen} of all {all_} are evaluated or pending."
        )
    chosen: dict[Hashable, Tensor] = {}
    _walk(ranked, observations, q, chosen)
    if len(chosen) < q:
        _walk(space.sample(100 * q, generator), observations, q, chosen)
    if len(chosen) < q and space.cardinality <= ENUMERABLE:
        rest = space.enumerate()
        _walk(rest[torch.randperm(len(rest), generator=generator)], observations, q, chosen)
    while len(chosen) < q:
        _walk(space.sample(100 * q, generator), observations, q, chosen)
    return torch.stack(list(chosen.values()))


def fresh(ranked: Tensor, observations: Observations, count: int) -> Tensor:
    """The first `count` points of a ranking (k x d), or fewer, whose configurations are new and differ."""
    chosen: dict[Hashable, Tensor] = {}
    _walk(ranked, observations, count, chosen)
    return torch.stack(list(chosen.values())) if chosen else ranked[:0]


def _walk(ranked: Tensor, observations: Observations, q: int, chosen: dict[Hashable, Tensor]) -> None:
    """Adds unseen points to `chosen`, in their order, until there are q."""
    step = max(16, 2 * q)
    for start in range(0, len(ranked), step):
        part = ranked[start : start + step]
        identities = observations.space.identify(part)
        for point, identity, new in zip(part, identities, observations.unseen(part), strict=True):
            if len(chosen) == q:
                return
            if new:
                chosen.setdefault(identity, point)
