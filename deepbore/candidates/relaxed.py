"""Searches between configurations: in the box that a space is relaxed to."""

import math
import warnings
from dataclasses import dataclass, field

import numpy as np
import torch
from scipy.optimize import differential_evolution
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

    It needs no gradients and takes any space: vectors are snapped to configurations before they are scored. All that
    it has scored is ranked, so the walk down the ranking has more than the last population, which is often one point.

    Of several ranks each has a population of its own: they look further rather than sooner.

    A departure from the paper: the first population is random but for the best observed points, a fifth of it at most;
    `near_best=False` leaves them out.

    Args:
        evaluations: of the acquisition, at most.
        population: points in a generation, >= 5.
        near_best: whether the first population has the best observed points.

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
        return search.gathered(*self._evolved(search.on_own_stream()))[0]

    def _evolved(self, search: Search) -> tuple[Tensor, Tensor]:
        """All points that were scored, best first, and their values."""
        generations: list[tuple[Tensor, Tensor]] = []

        def cost(columns: np.ndarray) -> np.ndarray:
            """A generation (d x population) -> what to minimise (population)."""
            points = search.space.snap(torch.from_numpy(columns.T.copy()).to(search.device))
            values = search.values(points)
            if search.space.is_restricted:
                values = values.masked_fill(~search.space.permitted(points), -math.inf)
            generations.append((points, values))
            return -values.double().cpu().numpy()

        differential_evolution(
            cost,
            bounds=search.space.bounds.T.numpy(),
            init=self._first(search).cpu().numpy(),
            integrality=[p.levels is not None and p.upper == p.levels - 1 for p in search.space.parameters.values()],
            maxiter=self.evaluations // self.population - 1,
            tol=0.0,  # stop early only where all are equal: the scale of an acquisition says nothing
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
        best = search.points(search.observations.best_rows(self.population // 5 if self.near_best else 0))
        return torch.cat([best, search.sample(self.population - len(best))])


def require_gradients(candidates: Candidates, space: SearchSpace, classifier: Classifier) -> None:
    """Raises SettingError for a space or a classifier that has no gradients."""
    if not space.is_continuous or not classifier.differentiable:
        raise SettingError(
            f"{type(candidates).__name__} needs real parameters without conditions and a differentiable classifier, "
            f"but got {type(classifier).__name__} on {space.to_dict()}. "
            "Use LocalSearch, DifferentialEvolution or RandomSearch."
        )


class MultiStartLBFGS(Candidates):
    """L-BFGS-B from several starts at once, through BoTorch's `optimize_acqf` (BORE J.3: three restarts).

    For continuous spaces and differentiable classifiers. The starts are the best of random points, of the best observed
    ones and of their neighbours. The paper's random restarts are uniform points as they come, which explore where a
    chosen start would not: as many `samples` as `restarts`, without `near_best`. Several ranks share the points, and
    then the starts.

    SciPy steps: at every iteration the climbers' points and gradients, and nothing else, visit the CPU.

    Args:
        restarts: how many starts, >= 1.
        samples: from how many points they are chosen.
        iterations: of L-BFGS-B, at most.
        near_best: whether the best observed points and their neighbours are among those points.

    Raises:
        SettingError: for a number below 1, or fewer samples than restarts where all starts are random; when the run is
            set up, for a space or classifier without gradients.
    """

    def __init__(self, restarts: int = 5, samples: int = 1000, iterations: int = 100, near_best: bool = True):
        whole(1, restarts=restarts, samples=samples, iterations=iterations)
        one_of((True, False), near_best=near_best)
        if samples < restarts and not near_best:
            raise SettingError(
                "restarts <= samples must hold where all starts are random points, but got "
                f"restarts={restarts} and samples={samples}."
            )
        self.restarts, self.samples, self.iterations, self.near_best = restarts, samples, iterations, near_best

    def check(self, space: SearchSpace, classifier: Classifier) -> None:
        super().check(space, classifier)
        require_gradients(self, space, classifier)

    def ranked(self, search: Search, q: int) -> Tensor:
        require_gradients(self, search.space, search.classifier)
        own = search.on_own_stream()
        pool, _ = search.gathered(*own.best_first(self._pool(own)))
        starts = search.ranks.part(pool[: max(self.restarts, q)])
        tops = own.landed(starts, self._optimised(own, starts))
        return torch.cat([search.gathered(*own.best_first(tops))[0], pool])

    def _pool(self, own: Search) -> Tensor:
        """Random points, and if wanted the best observed ones and their neighbours; a rank's share of them."""
        samples = own.sample(own.share(self.samples))
        if not self.near_best:
            return samples
        best = own.points(own.ranks.part(own.observations.best_rows(self.restarts)))
        near = own.near_best(own.share(self.samples // 4), self.restarts)
        return torch.cat([samples, own.allowed(torch.cat([best, near]))])

    def _optimised(self, search: Search, starts: Tensor) -> Tensor:
        import_quietly("gpytorch")
        from botorch.optim import optimize_acqf  # takes a second to import

        from deepbore.acquisition.botorch import BoTorchAcquisition

        if not len(starts):
            return starts
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a start that does not converge is ranked all the same
            points, _ = optimize_acqf(
                BoTorchAcquisition(search.acquisition, search.classifier, search.value),
                bounds=search.space.bounds.to(starts),
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
    """A search of the box: the same observations and acquisition, the classifier being the base that learns the box.

    Attributes:
        relaxation: of the space.
    """

    relaxation: Relaxation = field(kw_only=True)

    @property
    def space(self) -> SearchSpace:
        """The box."""
        return self.relaxation.box

    def located(self, configurations: Tensor) -> Tensor:
        """The vectors of points of the run's space (k x r)."""
        return self.relaxation.vectors(super().located(configurations))

    def configurations(self, points: Tensor) -> Tensor:
        """What vectors (k x r) are rounded to (k x d)."""
        return self.relaxation.points(points)


class RelaxedSearch(Candidates):
    """Another search of the box that discrete parameters are relaxed to; what it finds is rounded (BORE section 5).

    So gradients climb in any space, with a `Relaxed` classifier: BORE-MLP on tables is L-BFGS over one-hot categories
    and indices of ordinals. Rounding may move a point to where the classifier promises little (Garrido-Merchan and
    Hernandez-Lobato, 2020); `LocalSearch` looks at configurations only.

    Args:
        base: the other search.

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
        # the classifier learns all of the box, whatever stands still; the search does not leave where it does
        relaxation = Relaxation(search.space) if search.space.is_fixed else classifier.relaxation
        box = BoxSearch(
            search.acquisition,
            classifier.base,
            search.observations,
            search.generator,
            search.ranks,
            search.ambition,
            search.feasibility,
            chosen=search.chosen,
            relaxation=relaxation,
        )
        return relaxation.points(self.base.ranked(box, q))


def _relaxed(classifier: Classifier) -> Relaxed:
    """The classifier itself. Raises SettingError for one that knows no box."""
    if not isinstance(classifier, Relaxed):
        raise SettingError(
            f"RelaxedSearch needs a classifier between configurations, but got {type(classifier).__name__}. "
            f"Give Relaxed({type(classifier).__name__}(...)), or use LocalSearch."
        )
    return classifier
