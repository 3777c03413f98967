"""Multi-start L-BFGS, by BoTorch."""

import warnings

import torch
from torch import Tensor

from deepbore.candidates.base import Candidates, Search
from deepbore.classifiers.base import Classifier
from deepbore.compute.torch_state import import_quietly
from deepbore.errors import SettingError
from deepbore.space import SearchSpace
from deepbore.validation import one_of, whole


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
