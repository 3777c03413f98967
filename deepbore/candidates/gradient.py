"""Multi-start L-BFGS, by BoTorch."""

import warnings

import torch
from torch import Tensor

from deepbore.candidates.base import Candidates, Search, SharedCandidates
from deepbore.errors import SettingError


def require_gradients(candidates: Candidates, search: Search) -> None:
    """Raises SettingError for a space or a classifier that has no gradients."""
    if not search.space.is_continuous or not search.classifier.differentiable:
        raise SettingError(
            f"{type(candidates).__name__} needs real parameters without conditions and a differentiable classifier, "
            f"but got {type(search.classifier).__name__} on {search.space.to_dict()}. "
            "Use LocalSearch, DifferentialEvolution or RandomSearch."
        )


class MultiStartLBFGS(SharedCandidates):
    """L-BFGS-B from several starts at once, through BoTorch's `optimize_acqf` (BORE J.3: three restarts).

    For continuous spaces and differentiable classifiers. The starts are the best of random points and of neighbours
    of the best observed ones.

    Args:
        restarts: how many starts, >= 1.
        samples: from how many points they are chosen.
        iterations: of L-BFGS-B, at most.

    Raises:
        SettingError: at the first proposal, for a space or classifier without gradients.
    """

    divided = ("restarts", "samples")

    def __init__(self, restarts: int = 5, samples: int = 1000, iterations: int = 100):
        for name, value in {"restarts": restarts, "samples": samples, "iterations": iterations}.items():
            if value < 1:
                raise SettingError(f"{name} >= 1 must hold, but got {name}={value}.")
        self.restarts, self.samples, self.iterations = restarts, samples, iterations

    def scored(self, search: Search, q: int) -> tuple[Tensor, Tensor]:
        require_gradients(self, search)
        pool, values = search.rank(self._pool(search))
        climbed = self._optimised(search, pool[: max(self.restarts, q)])
        climbed, climbed_values = search.rank(search.space.snap(climbed))
        return torch.cat([climbed, pool]), torch.cat([climbed_values, values])

    def _pool(self, search: Search) -> Tensor:
        samples = search.space.sample(self.samples, search.generator)
        best = search.observations.points[search.observations.best_rows(self.restarts)].cpu()
        near = search.space.neighbours(best, self.samples // 4, search.generator) if len(best) else best
        return torch.cat([samples, best, near])

    def _optimised(self, search: Search, starts: Tensor) -> Tensor:
        from botorch.optim import optimize_acqf  # noqa: PLC0415  # takes a second to import

        from deepbore.acquisition.botorch import BoTorchAcquisition  # noqa: PLC0415

        device = search.classifier.device
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a start that does not converge is ranked all the same
            points, _ = optimize_acqf(
                BoTorchAcquisition(search.acquisition, search.classifier),
                bounds=search.space.bounds.to(device),
                q=1,
                num_restarts=len(starts),
                batch_initial_conditions=starts[:, None, :].to(device),
                return_best_only=False,
                options={"maxiter": self.iterations, "batch_limit": len(starts)},
            )
        climbed: Tensor = points.squeeze(1).detach().cpu()
        return climbed
