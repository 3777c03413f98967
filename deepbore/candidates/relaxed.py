"""Optimisers of continuous vectors: differential evolution, L-BFGS, and search in a relaxed space."""

import math
import warnings
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from deepbore.candidates.base import Candidates, Search
from deepbore.classifiers.base import Classifier
from deepbore.classifiers.wrappers import Relaxed
from deepbore.compute.torch_state import import_quietly
from deepbore.errors import SettingError
from deepbore.space import SearchSpace
from deepbore.space.relaxation import Relaxation
from deepbore.validation import of_kind, one_of, required, whole


class DifferentialEvolution(Candidates):
    """Differential evolution of a population of points (BORE J.1 and J.2, for trees on continuous spaces; G.1).

    It needs no gradients and works in any space: vectors are snapped to configurations before they are scored. All
    scored points are ranked, since the last population is often a single point.

    Each rank has its own population: more ranks find better points, not the same ones faster.

    A departure from the paper: up to a fifth of the first population are the best observed points, and the rest is
    random; `near_best=False` makes all of it random.

    Args:
        evaluations: the maximum number of evaluations of the acquisition.
        population: points in a generation, >= 5.
        near_best: whether the first population contains the best observed points.

    Raises:
        SettingError: unless 5 <= population <= evaluations.

    References:
        Storn & Price, Differential evolution, 1997.
    """

    def __init__(self, evaluations: int = 2000, population: int = 50, near_best: bool = True):
        whole(1, evaluations=evaluations, population=population)
        if not 5 <= population <= evaluations:
            raise SettingError(
                "5 <= population <= evaluations must hold, but got "
                f"population={population} and evaluations={evaluations}."
            )
        one_of((True, False), near_best=near_best)
        self.evaluations, self.population, self.near_best = evaluations, population, near_best

    def ranked(self, search: Search, q: int) -> Tensor:
        return search.gather_ranked(*self._evolved(search.on_own_stream()))[0]

    def _evolved(self, search: Search) -> tuple[Tensor, Tensor]:
        """All scored points, best first, and their values."""
        generations: list[tuple[Tensor, Tensor]] = []

        def cost(columns: np.ndarray) -> np.ndarray:
            """A generation (d x population) -> what to minimise (population)."""
            points = search.space.points.snap(torch.from_numpy(columns.T.copy()).to(search.device))
            values = search.values(points)
            if search.space.points.is_restricted:
                values = values.masked_fill(~search.space.points.permitted(points), -math.inf)
            generations.append((points, values))
            return -values.double().cpu().numpy()

        from scipy.optimize import differential_evolution  # takes .2 s

        differential_evolution(
            cost,
            bounds=search.space.points.bounds.T.numpy(),
            init=self._first(search).cpu().numpy(),
            integrality=[p.levels is not None and p.upper == p.levels - 1 for p in search.space.parameters.values()],
            maxiter=self.evaluations // self.population - 1,
            tol=0.0,  # stop early only if all are equal: acquisitions have no fixed scale
            polish=False,
            vectorized=True,
            updating="deferred",
            seed=np.random.default_rng(
                int(torch.randint(2**63 - 1, (), generator=search.stream, device=search.device))
            ),
        )
        points, values = (torch.cat(parts) for parts in zip(*generations, strict=True))
        return search.sorted(points, values)

    def _first(self, search: Search) -> Tensor:
        """The first population (population x d)."""
        best = search.points(search.observations.centres.best_rows(self.population // 5 if self.near_best else 0))
        return torch.cat([best, search.sample(self.population - len(best))])


def require_gradients(candidates: Candidates, space: SearchSpace, classifier: Classifier) -> None:
    """Raises SettingError for a space or a classifier without gradients."""
    if not space.points.is_continuous or not classifier.differentiable:
        raise SettingError(
            f"{type(candidates).__name__} needs real parameters without conditions and a differentiable classifier, "
            f"but got {type(classifier).__name__} on {space.to_dict()}. "
            "Use LocalSearch, DifferentialEvolution or RandomSearch."
        )


class MultiStartLBFGS(Candidates):
    """L-BFGS-B from several starts at once, through BoTorch's `optimize_acqf` (BORE J.3: three restarts).

    For continuous spaces and differentiable classifiers. The starts are the best of random points, the best observed
    points and their neighbours. The starts of the paper are uniform random points, which explore more: as many
    `samples` as `restarts`, without `near_best`. Several ranks share the points, and then the starts.

    The optimiser is SciPy's: in each iteration only points and gradients are copied to the CPU.

    Args:
        restarts: the number of starts, >= 1.
        samples: random points that starts are chosen from.
        iterations: the maximum number of iterations of L-BFGS-B.
        near_best: whether starts are also chosen from the best observed points and their neighbours.

    Raises:
        SettingError: for a number below 1, or fewer samples than restarts if all starts are random; when the run is
            set up, for a space or classifier without gradients.
    """

    def __init__(self, restarts: int = 5, samples: int = 1000, iterations: int = 100, near_best: bool = True):
        whole(1, restarts=restarts, samples=samples, iterations=iterations)
        one_of((True, False), near_best=near_best)
        if samples < restarts and not near_best:
            raise SettingError(
                "restarts <= samples must hold if all starts are random points, but got "
                f"restarts={restarts} and samples={samples}."
            )
        self.restarts, self.samples, self.iterations, self.near_best = restarts, samples, iterations, near_best

    def check(self, space: SearchSpace, classifier: Classifier) -> None:
        super().check(space, classifier)
        require_gradients(self, space, classifier)

    def ranked(self, search: Search, q: int) -> Tensor:
        require_gradients(self, search.space, search.classifier)
        own = search.on_own_stream()
        pool, _ = search.gather_ranked(*own.best_first(self._pool(own)))
        starts = search.ranks.part(pool[: max(self.restarts, q)])
        tops = own.space.points.project_to_feasible(starts, self._optimised(own, starts))
        return torch.cat([search.gather_ranked(*own.best_first(tops))[0], pool])

    def _pool(self, own: Search) -> Tensor:
        """This rank's share of the random points, best observed points and their neighbours."""
        samples = own.sample(own.share(self.samples))
        if not self.near_best:
            return samples
        best = own.points(own.ranks.part(own.observations.centres.best_rows(self.restarts)))
        near = own.sample_neighbours(own.share(self.samples // 4), self.restarts)
        return torch.cat([samples, own.keep_permitted(torch.cat([best, near]))])

    def _optimised(self, search: Search, starts: Tensor) -> Tensor:
        import_quietly("gpytorch")
        from botorch.optim import optimize_acqf  # takes a second to import

        from deepbore.acquisition.botorch import BoTorchAcquisition

        if not len(starts):
            return starts
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a start that does not converge is still ranked
            points, _ = optimize_acqf(
                BoTorchAcquisition(search.acquisition, search.classifier, search.value),
                bounds=search.space.points.bounds.to(starts),
                q=1,
                num_restarts=len(starts),
                batch_initial_conditions=starts[:, None, :],
                return_best_only=False,
                options={"maxiter": self.iterations, "batch_limit": len(starts)},
            )
        tops: Tensor = points.squeeze(1).detach()
        return tops


@dataclass(frozen=True)
class BoxSearch(Search):
    """The context of a search in the box: its classifier is the base, which is trained on vectors of the box.

    Attributes:
        relaxation: the mapping between the space and the box.
    """

    relaxation: Relaxation = field(kw_only=True)

    @property
    def space(self) -> SearchSpace:
        """The box."""
        return self.relaxation.box

    def from_configurations(self, configurations: Tensor) -> Tensor:
        """Points of the space of the run (k x d) -> vectors (k x r)."""
        return self.relaxation.vectors(super().from_configurations(configurations))

    def to_configurations(self, points: Tensor) -> Tensor:
        """Vectors (k x r), rounded to points of the space of the run (k x d)."""
        return self.relaxation.points(points)


class RelaxedSearch(Candidates):
    """Optimisation in the box that discrete parameters are relaxed to; results are rounded (BORE section 5).

    This allows gradients in any space, with a `Relaxed` classifier: BORE-MLP on tables is L-BFGS over one-hot
    categories and indices of ordinals. Rounding may move a point to a poor one (Garrido-Merchan and Hernandez-Lobato,
    2020); `LocalSearch` considers configurations only.

    Args:
        base: the optimiser in the box.

    Raises:
        SettingError: when the run is set up, for a classifier that is not `Relaxed`.
    """

    def __init__(self, base: Candidates):
        required(base=base)
        of_kind(Candidates, base=base)
        self.base = base

    def check(self, space: SearchSpace, classifier: Classifier) -> None:
        self.base.check(Relaxation(space).box, _relaxed(classifier).base)

    def ranked(self, search: Search, q: int) -> Tensor:
        classifier = _relaxed(search.classifier)
        # the classifier is trained on the whole box; the search keeps fixed parameters fixed
        relaxation = Relaxation(search.space) if search.space.points.is_fixed else classifier.relaxation
        box = BoxSearch(
            search.acquisition,
            classifier.base,
            search.observations,
            search.generator,
            search.ranks,
            search.margin,
            search.feasibility,
            chosen=search.chosen,
            prior_weight=search.prior_weight,
            expense=search.expense,
            relaxation=relaxation,
        )
        return relaxation.points(self.base.ranked(box, q))


def _relaxed(classifier: Classifier) -> Relaxed:
    """The classifier itself. Raises SettingError unless it is `Relaxed`."""
    if not isinstance(classifier, Relaxed):
        raise SettingError(
            f"RelaxedSearch needs a Relaxed classifier, but got {type(classifier).__name__}. "
            f"Give Relaxed({type(classifier).__name__}(...)), or use LocalSearch."
        )
    return classifier
