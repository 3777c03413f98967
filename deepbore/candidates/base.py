"""`Candidates`: how the acquisition is maximised, and the walk down its ranking past what has been seen."""

import math
from abc import ABC, abstractmethod
from collections.abc import Hashable
from dataclasses import dataclass

import torch
from torch import Tensor

from deepbore.acquisition import Acquisition
from deepbore.classifiers.base import Classifier
from deepbore.errors import SpaceExhausted
from deepbore.observations import Observations
from deepbore.space import SearchSpace

ENUMERABLE = 1_000_000  # a finite space up to this size is searched for its last unseen points one by one


@dataclass(frozen=True)
class Search:
    """What a search for candidates may look at.

    Attributes:
        acquisition: the formula to maximise.
        classifier: the trained classifier.
        observations: what is known, pending rows included.
        generator: the run's stream of random numbers.
    """

    acquisition: Acquisition
    classifier: Classifier
    observations: Observations
    generator: torch.Generator

    @property
    def space(self) -> SearchSpace:
        """The search space."""
        return self.observations.space

    def value(self, points: Tensor) -> Tensor:
        """Points (n x d) -> acquisition values (n), with gradients where the classifier has them."""
        return self.acquisition(self.classifier, points.to(self.classifier.device))

    @torch.no_grad()
    def rank(self, points: Tensor) -> Tensor:
        """Points (n x d), best first."""
        return points[self.value(points).cpu().argsort(descending=True, stable=True)]


class Candidates(ABC):
    """A way to maximise the acquisition over the search space."""

    @abstractmethod
    def ranked(self, search: Search, q: int) -> Tensor:
        """Points of configurations (k x d), best first; k > q, so that seen ones can be passed over."""

    def propose(self, search: Search, q: int) -> Tensor:
        """q distinct points, none evaluated or pending (q x d).

        Raises:
            SpaceExhausted: if a finite space has fewer than q configurations left.
        """
        return distinct(self.ranked(search, q), search.observations, q, search.generator)


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
    left = space.cardinality - observations.n_distinct
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


def restarts_from(search: Search, pool: Tensor, k: int) -> Tensor:
    """The k best points of a pool by the acquisition (k x d)."""
    return search.rank(pool)[: max(1, min(k, len(pool)))]


def is_small(space: SearchSpace, limit: int) -> bool:
    """Whether a space is finite with at most `limit` configurations."""
    return not math.isinf(space.cardinality) and space.cardinality <= limit
