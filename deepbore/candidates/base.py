"""`Candidates`: how the acquisition is maximised, and `Search`: what they may look at."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from deepbore.acquisition import Acquisition
from deepbore.candidates.selection import distinct, fresh_rows, require_room
from deepbore.classifiers.base import Classifier
from deepbore.classifiers.feasibility import Feasibility
from deepbore.classifiers.posterior import UNCERTAIN
from deepbore.component import Component
from deepbore.compute.devices import generator_on
from deepbore.compute.distributed import Ranks
from deepbore.data.observations import Observations
from deepbore.errors import SettingError
from deepbore.space import SearchSpace
from deepbore.validation import of_kind, required

CHUNK = 256  # points whose value is computed at once: what that takes stays in the cache
ACCELERATOR_CHUNK = 2**15  # ... where many are as quick as few, and memory alone is the limit
WORTH_SHARING = 512  # points for each rank, from which on gathering values takes less than computing them


@dataclass(frozen=True)
class Search:
    """What a search for candidates may look at, and the points and values of one proposal.

    Points, values and rankings live on the classifier's device.

    Attributes:
        acquisition: the formula to maximise, its open settings filled in for the classifier.
        classifier: the trained classifier.
        observations: what is known, pending rows included.
        generator: the run's stream of random numbers, the same on all ranks: for what they decide alike.
        ranks: the processes that search together.
        ambition: by how much an improvement must exceed the best label to count, >= 0.
        feasibility: how likely points keep the black-box constraints; None where none has been violated.
        centre_rows: rows, best first, whose neighbours are looked at; None for the best of all.
        centre: the point (d) that is searched around; None for the whole space.
        axes: the directions of a search around a centre, with how far it reaches along each: d x d, a column an axis.
        chosen: points (k x d) that are proposed in the same batch already; None for none.
    """

    acquisition: Acquisition
    classifier: Classifier
    observations: Observations
    generator: torch.Generator
    ranks: Ranks = field(default_factory=Ranks)
    ambition: float = 0.0
    feasibility: Feasibility | None = None
    centre_rows: Tensor | None = None
    centre: Tensor | None = None
    axes: Tensor | None = None
    chosen: Tensor | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "acquisition", self.acquisition.resolved(self.classifier))

    @property
    def space(self) -> SearchSpace:
        """The search space."""
        return self.observations.space

    @property
    def device(self) -> torch.device:
        """Where points, values and rankings live."""
        return self.classifier.device

    @cached_property
    def stream(self) -> torch.Generator:
        """The stream that points are drawn with, on the device: the run's own, or one that is seeded from it."""
        return generator_on(self.device, self.generator)

    # --- several ranks -----------------------------------------------------------------------------------------------

    def on_own_stream(self) -> "Search":
        """The same search, with a stream of this rank's own; without other ranks the search itself."""
        if self.ranks.world == 1:
            return self
        own = copy(self)
        vars(own)["stream"] = self.ranks.stream(self.stream)
        return own

    def share(self, count: int) -> int:
        """This rank's share of a count, rounded up."""
        return math.ceil(count / self.ranks.world)

    def gathered(self, points: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """What all ranks have ranked: points (k x d), best first, and their values (k)."""
        if self.ranks.world == 1:
            return points, values
        whole = self.ranks.whole(torch.cat([points, values[:, None].to(points)], dim=-1))
        return sorted_by_value(whole[:, :-1], whole[:, -1])

    # --- points ------------------------------------------------------------------------------------------------------

    def points(self, rows: Tensor) -> Tensor:
        """The points of some rows of the observations (k x d)."""
        return self.located(self.observations.points[rows])

    def located(self, configurations: Tensor) -> Tensor:
        """Points of the run's space (k x d) as points of this search, on its device."""
        return configurations.to(self.device)

    def sample(self, n: int) -> Tensor:
        """n uniform random points (n x d)."""
        return self.space.sample(n, self.stream).to(self.device)

    def near_best(self, n: int, centres: int) -> Tensor:
        """n random neighbours of so many best observed points (n x d); none where nothing has a value yet."""
        best = self.points(
            self.observations.best_rows(centres) if self.centre_rows is None else self.centre_rows[:centres]
        )
        return self.space.neighbours(best, n, self.stream).to(self.device) if len(best) and n else best[:0]

    def allowed(self, points: Tensor) -> Tensor:
        """Those of the points (n x d) that may be proposed, with what is fixed by now put where it stands (k x d)."""
        if not self.space.is_restricted:
            return points
        points = self.space.snap(points)
        return points[self.space.permitted(points)]

    def configurations(self, points: Tensor) -> Tensor:
        """Where points of this search (n x d) lie in the space of the run."""
        return points

    def fresh(self, ranked: Tensor, count: int) -> Tensor:
        """The first `count` points of a ranking (n x d), or fewer, whose configurations are new and differ."""
        return ranked[fresh_rows(self.configurations(ranked), self.observations, count, self.chosen)]

    def landed(self, starts: Tensor, ends: Tensor) -> Tensor:
        """The configurations where climbers from `starts` to `ends` (k x d each) arrive, as snapped points (k x d).

        Where constraints forbid the end, they stop on the way.
        """
        return self.space.project_to_feasible(starts, ends)

    # --- values ------------------------------------------------------------------------------------------------------

    @property
    def goal(self) -> Tensor:
        """The label to improve on (a scalar)."""
        return self.classifier.best_label + self.ambition

    def value(self, points: Tensor) -> Tensor:
        """Points (n x d) -> acquisition values (n), with gradients where the classifier has them.

        Under black-box constraints it is the logarithm of the density, which they weigh: see `log_density`.
        """
        if self.feasibility is not None:
            return self.log_density(points)
        return self.acquisition(self.classifier.posterior(points.to(self.device)), self.goal)

    def log_density(self, points: Tensor) -> Tensor:
        """Points (n x d) -> logarithm of the density to sample batches from (n), with gradients as in `value`.

        Under black-box constraints log P(feasible) is added; while nothing is feasible it stands alone.
        """
        points = points.to(self.device)
        if self.feasibility is None:
            return self.acquisition.log_density(self.classifier.posterior(points), self.goal)
        possible = self.feasibility.log_probability(self.configurations(points))
        if not self.feasibility.found:
            return possible
        return possible + self.acquisition.log_density(self.classifier.posterior(points), self.goal)

    def values(self, points: Tensor) -> Tensor:
        """Points (n x d) -> acquisition values (n) without gradients, chunk by chunk."""
        return self._chunked(self.value, points)

    def log_densities(self, points: Tensor) -> Tensor:
        """Points (n x d) -> `log_density` (n) without gradients; of many points each rank computes its share.

        So it is for points that are the same on all ranks.
        """
        if self.ranks.world == 1 or len(points) < WORTH_SHARING * self.ranks.world:
            return self._chunked(self.log_density, points).double()
        return self.ranks.whole(self._chunked(self.log_density, self.ranks.part(points)).double())

    @torch.no_grad()
    def _chunked(self, function: Callable[[Tensor], Tensor], points: Tensor) -> Tensor:
        if not len(points):
            return points.new_empty(0)
        chunk = CHUNK if self.device.type == "cpu" else ACCELERATOR_CHUNK
        return torch.cat([function(part) for part in points.split(chunk)])

    def sorted(self, points: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Points (n x d) and their values (n), best first; those of trees, which are often equal, in random order."""
        if not self.classifier.differentiable:
            order = torch.randperm(len(points), generator=self.stream, device=self.stream.device).to(points.device)
            points, values = points[order], values[order]
        return sorted_by_value(points, values)

    def best_first(self, points: Tensor) -> tuple[Tensor, Tensor]:
        """Points (n x d), best first, and their values (n)."""
        return self.sorted(points, self.values(points))


class Candidates(Component, ABC):
    """A way to maximise the acquisition over the search space.

    A subclass implements `ranked`. Searches that contain others are checked, saved and restored with them.

    Attributes:
        needs: which of `Classifier.capabilities` it uses.
    """

    needs: frozenset[str] = frozenset()

    @abstractmethod
    def ranked(self, search: Search, q: int) -> Tensor:
        """Points of configurations (k x d), best first; k > q, so that seen ones can be passed over."""

    def propose(self, search: Search, q: int) -> Tensor:
        """q distinct points, none evaluated or pending, the same on all ranks (q x d, on the CPU).

        Where it fails, the run's stream of random numbers stands where it stood.

        Raises:
            SpaceExhausted: if a finite space has fewer than q configurations left.
        """
        require_room(search.observations, q, search.chosen)
        before = search.generator.get_state()
        try:
            ranked = self.ranked(search, q)
            return search.ranks.agreed(distinct(ranked, search.observations, q, search.stream, search.chosen))
        except BaseException:
            search.generator.set_state(before)
            raise

    def check(self, space: SearchSpace, classifier: Classifier) -> None:
        """Raises SettingError unless it can search this space with the scores of this classifier."""
        if missing := self.needs - classifier.capabilities:
            raise SettingError(
                f"{type(self).__name__} needs {' and '.join(sorted(missing))} of the scores, which "
                f"{type(classifier).__name__} does not have. Use {UNCERTAIN}, or GreedyBatch."
            )
        for _, part in self._parts():
            part.check(space, classifier)

    def state_dict(self) -> dict[str, Any]:
        """What it keeps from one proposal to the next: nothing, but for what the searches within it keep."""
        states = {name: part.state_dict() for name, part in self._parts()}
        return {name: state for name, state in states.items() if state}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes on from what `state_dict` gave."""
        for name, part in self._parts():
            part.load_state_dict(state.get(name, {}))

    def _parts(self) -> Iterator[tuple[str, "Candidates"]]:
        """The searches that it contains, by the name of their attribute."""
        return ((name, part) for name, part in vars(self).items() if isinstance(part, Candidates))


class WrappedSearch(Candidates):
    """A search that changes what another one finds.

    Args:
        base: the other search.

    Raises:
        SettingError: for what is no search.
    """

    def __init__(self, base: Candidates):
        required(base=base)
        of_kind(Candidates, base=base)
        self.base = base


def sorted_by_value(points: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
    """Points (n x d) and their values (n), best first, equal ones in their order."""
    order = values.argsort(descending=True, stable=True)
    return points[order], values[order]
