"""`Candidates`: an optimiser of the acquisition; `Search`: the context of one proposal."""

import math
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from deepbore.acquisition import Acquisition
from deepbore.candidates.selection import first_new_rows, require_room, select_new
from deepbore.classifiers.base import Classifier
from deepbore.classifiers.expense import Expense
from deepbore.classifiers.feasibility import Feasibility
from deepbore.classifiers.posterior import UNCERTAIN
from deepbore.component import Component
from deepbore.compute.devices import generator_on
from deepbore.compute.distributed import Ranks
from deepbore.data.observations import Observations
from deepbore.errors import DeprecatedUse, SettingError
from deepbore.space import SearchSpace
from deepbore.validation import of_kind, required

CHUNK = 256  # points evaluated at once on a CPU: intermediate results stay in the cache
ACCELERATOR_CHUNK = 2**15  # points evaluated at once on a GPU, where only memory is limited
DOUBT = 0.2  # how probable it is, before anything is known, that what is believed of a parameter is wrong
WORTH_SHARING = 512  # points a rank from which computing them separately is faster than on every rank
FORMER_NAMES = {
    "near_best": "sample_neighbours",
    "fresh": "first_new",
    "gathered": "gather_ranked",
    "located": "from_configurations",
    "configurations": "to_configurations",
    "allowed": "keep_permitted",
    "goal": "incumbent",
    "ambition": "margin",
}


@dataclass(frozen=True)
class Search:
    """The context of one proposal: the model, the data, and functions that sample and evaluate points.

    Points, values and rankings are on the device of the classifier.

    Attributes:
        acquisition: the function to maximise, resolved for the classifier.
        classifier: the trained classifier.
        observations: all trials, pending ones included.
        generator: random numbers of the run, the same on all ranks: for decisions that all ranks share.
        ranks: the processes that search together.
        margin: added to the best label to give the incumbent that improvement is measured against, >= 0.
        feasibility: the model of the black-box constraints; None if no trial has violated any.
        centre_rows: rows, best first, whose neighbours are sampled; None for the best of all rows.
        centre: the point (d) that a local search is centred at; None to search the whole space.
        axes: the axes of a local search, scaled by their length: d x d, one column an axis.
        chosen: points (k x d) already selected for the same batch; None for none.
        prior_weight: the exponent of what is believed of the best point, by which the acquisition is multiplied, >= 0.
        expense: what evaluations are expected to cost, by which the acquisition is divided; None for no matter.
    """

    acquisition: Acquisition
    classifier: Classifier
    observations: Observations
    generator: torch.Generator
    ranks: Ranks = field(default_factory=Ranks)
    margin: float = 0.0
    feasibility: Feasibility | None = None
    centre_rows: Tensor | None = None
    centre: Tensor | None = None
    axes: Tensor | None = None
    chosen: Tensor | None = None
    prior_weight: float = 0.0
    expense: Expense | None = None

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """An attribute by its former name, with a DeprecationWarning."""
            if name not in FORMER_NAMES:
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            warnings.warn(f"Search.{name} is now Search.{FORMER_NAMES[name]}.", DeprecatedUse, stacklevel=2)
            return getattr(self, FORMER_NAMES[name])

    @property
    def space(self) -> SearchSpace:
        """The search space."""
        return self.observations.space

    @property
    def device(self) -> torch.device:
        """The device of points, values and rankings."""
        return self.classifier.device

    @cached_property
    def stream(self) -> torch.Generator:
        """Random numbers on the device: the generator of the run, or one seeded from it."""
        return generator_on(self.device, self.generator)

    # --- several ranks -----------------------------------------------------------------------------------------------

    def on_own_stream(self) -> "Search":
        """A copy that draws different random numbers on each rank; with one rank, the search itself."""
        if self.ranks.world == 1:
            return self
        own = copy(self)
        vars(own)["stream"] = self.ranks.stream(self.stream)
        return own

    def share(self, count: int) -> int:
        """This rank's share of a count, rounded up."""
        return math.ceil(count / self.ranks.world)

    def gather_ranked(self, points: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """The rankings of all ranks merged: points (k x d), best first, and their values (k)."""
        if self.ranks.world == 1:
            return points, values
        whole = self.ranks.whole(torch.cat([points, values[:, None].to(points)], dim=-1))
        return sorted_by_value(whole[:, :-1], whole[:, -1])

    # --- points ------------------------------------------------------------------------------------------------------

    def points(self, rows: Tensor) -> Tensor:
        """The points of rows of the observations (k x d)."""
        return self.from_configurations(self.observations.points[rows])

    def from_configurations(self, configurations: Tensor) -> Tensor:
        """Points of the space of the run (k x d) -> points of this search, on its device."""
        return configurations.to(self.device)

    def sample(self, n: int) -> Tensor:
        """n uniform random points (n x d); half of them drawn from what is believed of the best point, if anything."""
        if not self.prior_weight:
            return self.space.points.sample(n, self.stream).to(self.device)
        believed = self.space.points.sample(n // 2, self.stream, prior=True)
        return torch.cat([self.space.points.sample(n - n // 2, self.stream), believed]).to(self.device)

    def sample_neighbours(self, n: int, centres: int) -> Tensor:
        """n random neighbours of the best observed points (n x d); none if no trial has a value yet.

        Args:
            n: the number of neighbours.
            centres: the number of best points.
        """
        best = self.points(
            self.observations.centres.best_rows(centres) if self.centre_rows is None else self.centre_rows[:centres]
        )
        return self.space.points.neighbours(best, n, self.stream).to(self.device) if len(best) and n else best[:0]

    def keep_permitted(self, points: Tensor) -> Tensor:
        """The points (n x d) that constraints permit, with fixed parameters at their values (k x d)."""
        if not self.space.points.is_restricted:
            return points
        points = self.space.points.snap(points)
        return points[self.space.points.permitted(points)]

    def to_configurations(self, points: Tensor) -> Tensor:
        """Points of this search (n x d) -> points of the space of the run."""
        return points

    def first_new(self, ranked: Tensor, count: int) -> Tensor:
        """At most `count` points of a ranking (n x d), the best whose configurations are new and distinct."""
        return ranked[first_new_rows(self.to_configurations(ranked), self.observations, count, self.chosen)]

    # --- values ------------------------------------------------------------------------------------------------------

    @property
    def incumbent(self) -> Tensor:
        """The label that improvement is measured against (a scalar)."""
        return self.classifier.best_label + self.margin

    def value(self, points: Tensor) -> Tensor:
        """Points (n x d) -> acquisition values (n), with gradients where the classifier has them.

        Where factors weight the acquisition, the values are those of `log_density`.
        """
        if self.is_weighted:
            return self.log_density(points)
        return self.acquisition(self.classifier.posterior(points.to(self.device)), self.incumbent)

    def gradient(self, points: Tensor) -> Tensor:
        """Points (n x d) -> gradients of `value` (n x d)."""
        formula = self.acquisition.formula(self.incumbent) if self.feasibility is None else None
        if formula is None or (self.is_favouring and not self.acquisition.is_logarithm):
            return torch_gradient(self.value, points)
        found = self.classifier.gradient(points, formula)
        if found is None or not self.is_favouring:
            return torch_gradient(self.value, points) if found is None else found
        return found + torch_gradient(self.log_favour, points)

    def log_density(self, points: Tensor) -> Tensor:
        """Points (n x d) -> the acquisition as a log density (n), with gradients as in `value`.

        Under black-box constraints log P(feasible) is added; with no feasible trial yet, only log P(feasible) is used.
        What speaks for a point whatever is known of it, `log_favour`, is added, too.
        """
        points = points.to(self.device)
        if not self.is_weighted:
            return self.acquisition.log_density(self.classifier.posterior(points), self.incumbent)
        factors = self.log_factors(points)
        if self.feasibility is not None and not self.feasibility.has_feasible:
            return factors
        return factors + self.acquisition.log_density(self.classifier.posterior(points), self.incumbent)

    @property
    def is_weighted(self) -> bool:
        """Whether the acquisition is multiplied by factors."""
        return self.feasibility is not None or self.is_favouring

    @property
    def is_favouring(self) -> bool:
        """Whether some points are preferred to others of equal gain: those believed to be good, or the cheap ones."""
        return bool(self.prior_weight) or self.expense is not None

    def log_factors(self, points: Tensor) -> Tensor:
        """Points (n x d) -> log of all factors of the acquisition (n), with gradients; 0 without any."""
        configurations = self.to_configurations(points)
        total = configurations.new_zeros(len(points))
        if self.feasibility is not None:
            total = total + self.feasibility.log_probability(configurations)
        return total + self.log_favour(points) if self.is_favouring else total

    def log_favour(self, points: Tensor) -> Tensor:
        """Points (n x d) -> log of the factors by prior belief and by expected cost (n), with gradients."""
        believed = self.log_prior(points)
        return believed if self.expense is None else believed + self.expense.log_factor(self.to_configurations(points))

    def log_prior(self, points: Tensor) -> Tensor:
        """Points (n x d) -> log of the factor that says what is believed of the best point (n), with gradients.

            pi(x)^(beta / n)                                                        (Hvarfner et al. 2022, eq. 6)

        In pi each parameter's density has a uniform share: the probability that the belief is wrong, `DOUBT` before
        anything is known, and beside the best point by Bayes' rule (`SearchSpace.doubts`). So what is refuted by the
        best trial is not believed for long.
        """
        if not self.prior_weight:
            return points.new_zeros(len(points))
        return self.prior_weight * self.observations.space.points.log_prior(self.to_configurations(points), self.doubts)

    @cached_property
    def doubts(self) -> Tensor | float:
        """The uniform share of what is believed, for each parameter."""
        best = self.observations.centres.best_rows(1)
        return self.observations.space.points.doubts(self.observations.points[best[0]], DOUBT) if len(best) else DOUBT

    def values(self, points: Tensor) -> Tensor:
        """Points (n x d) -> acquisition values (n) without gradients, chunk by chunk."""
        return self._chunked(self.value, points)

    def log_densities(self, points: Tensor) -> Tensor:
        """Points (n x d), the same on all ranks -> `log_density` (n) without gradients.

        Ranks share the computation if there are many points.
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
        """Points (n x d) and their values (n), best first; ties, frequent with trees, are broken at random."""
        if not self.classifier.differentiable:
            order = torch.randperm(len(points), generator=self.stream, device=self.stream.device).to(points.device)
            points, values = points[order], values[order]
        return sorted_by_value(points, values)

    def best_first(self, points: Tensor) -> tuple[Tensor, Tensor]:
        """Points (n x d), best first, and their values (n)."""
        return self.sorted(points, self.values(points))


class Candidates(Component, ABC):
    """An optimiser of the acquisition over the search space.

    A subclass implements `ranked`. Nested optimisers are checked, saved and restored with the outer one.

    Attributes:
        needs: the `Classifier.capabilities` that it uses.
    """

    needs: frozenset[str] = frozenset()

    @abstractmethod
    def ranked(self, search: Search, q: int) -> Tensor:
        """Points (k x d), best first; k > q, so that evaluated and pending ones can be skipped."""

    def propose(self, search: Search, q: int) -> Tensor:
        """q distinct points, none evaluated or pending, the same on all ranks (q x d, on the CPU).

        If it fails, the generator of the run is restored.

        Raises:
            SpaceExhausted: if a finite space has fewer than q configurations left.
        """
        require_room(search.observations, q, search.chosen)
        before = search.generator.get_state()
        try:
            ranked = self.ranked(search, q)
            return search.ranks.agreed_rows(select_new(ranked, search.observations, q, search.stream, search.chosen))
        except BaseException:
            search.generator.set_state(before)
            raise

    def check(self, space: SearchSpace, classifier: Classifier) -> None:
        """Raises SettingError unless it works in this space with the scores of this classifier."""
        if missing := self.needs - classifier.capabilities:
            raise SettingError(
                f"{type(self).__name__} needs {' and '.join(sorted(missing))} of the scores, which "
                f"{type(classifier).__name__} does not have. Use {UNCERTAIN}, or GreedyBatch."
            )
        for _, part in self._parts():
            part.check(space, classifier)

    def check_acquisition(self, acquisition: Acquisition) -> None:
        """Raises SettingError unless it works with this acquisition; most do with all."""
        for _, part in self._parts():
            part.check_acquisition(acquisition)

    def accepts(self, space: SearchSpace, points: Tensor) -> Tensor:
        """Which points (n x d) of the space it may propose (n booleans): all, unless it has constraints of its own."""
        accepted = torch.ones(len(points), dtype=torch.bool, device=points.device)
        for _, part in self._parts():
            accepted &= part.accepts(space, points)
        return accepted

    def state_dict(self) -> dict[str, Any]:
        """The state kept between proposals: by default only that of nested optimisers."""
        states = {name: part.state_dict() for name, part in self._parts()}
        return {name: state for name, state in states.items() if state}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restores what `state_dict` returned."""
        for name, part in self._parts():
            part.load_state_dict(state.get(name, {}))

    def _parts(self) -> Iterator[tuple[str, "Candidates"]]:
        """The nested optimisers, by attribute name."""
        return ((name, part) for name, part in vars(self).items() if isinstance(part, Candidates))


class WrappedSearch(Candidates):
    """An optimiser that modifies the ranking of another one.

    Args:
        base: the other optimiser.

    Raises:
        SettingError: if `base` is not a `Candidates`.
    """

    def __init__(self, base: Candidates):
        required(base=base)
        of_kind(Candidates, base=base)
        self.base = base


def torch_gradient(value: Callable[[Tensor], Tensor], points: Tensor) -> Tensor:
    """The gradients of the values (n) of points (n x d) by torch (n x d)."""
    with torch.enable_grad():
        at = points.detach().requires_grad_(True)
        (gradient,) = torch.autograd.grad(value(at).sum(), at)
    return gradient


def sorted_by_value(points: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
    """Points (n x d) and their values (n), best first; ties keep their order."""
    order = values.argsort(descending=True, stable=True)
    return points[order], values[order]
