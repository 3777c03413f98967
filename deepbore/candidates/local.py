"""Local search: random points and neighbours of good ones, then uphill."""

import torch
from torch import Tensor

from deepbore.candidates.base import Search, SharedCandidates
from deepbore.errors import SettingError
from deepbore.space.parameters import Real

EXHAUSTIVE = 4096  # a finite space up to this size is ranked whole
FOCUSED = 3  # so many best points have neighbours when a proposal looks only near them


class LocalSearch(SharedCandidates):
    """Ranks random points and neighbours of the best observed ones, then climbs from the best of them.

    Climbing is by Adam on the real parameters, where the classifier has gradients; the others stay. The climbed
    points are snapped to configurations and ranked among the rest, so the walk down the ranking has all of them.

    With real parameters, a share of the proposals looks at nothing but neighbours of the three best observed points:
    on rugged functions the uncertainty is always greatest far from all data, and the best would be left unrefined.
    Without any, passing over what has been seen refines by itself.

    Args:
        samples: uniform random points.
        neighbours: neighbours of the best observed points, one or two parameters changed.
        centres: how many best observed points have neighbours.
        climbers: how many points climb; 0 for none.
        steps: of each climber.
        focus: probability of looking only at neighbours of the best, in [0, 1].

    Raises:
        SettingError: for a number outside its range.
    """

    divided = ("samples", "neighbours", "climbers")

    def __init__(
        self,
        samples: int = 2000,
        neighbours: int = 1000,
        centres: int = 10,
        climbers: int = 8,
        steps: int = 20,
        focus: float = 0.25,
    ):
        for name, value in {"samples": samples, "centres": centres}.items():
            if value < 1:
                raise SettingError(f"{name} >= 1 must hold, but got {name}={value}.")
        self.samples, self.neighbours, self.centres = samples, neighbours, centres
        if not 0 <= focus <= 1:
            raise SettingError(f"0 <= focus <= 1 must hold, but got focus={focus}.")
        self.climbers, self.steps, self.focus = climbers, steps, focus

    def scored(self, search: Search, q: int) -> tuple[Tensor, Tensor]:
        if search.space.cardinality <= EXHAUSTIVE:
            return search.rank(search.ranks.part(search.space.enumerate()))
        real = [i for i, p in enumerate(search.space.parameters.values()) if isinstance(p, Real)]
        if real and self._focuses(search):
            best = search.observations.points[search.observations.best_rows(FOCUSED)].cpu()
            return search.rank(search.space.neighbours(best, self.samples, search.generator))
        pool, values = search.rank(self._pool(search))
        if not real or not search.classifier.differentiable or not self.climbers:
            return pool, values
        climbed, climbed_values = search.rank(self._climb(search, pool[: max(self.climbers, q)], real))
        values = torch.cat([climbed_values, values])
        order = values.argsort(descending=True, stable=True)
        return torch.cat([climbed, pool])[order], values[order]

    def _focuses(self, search: Search) -> bool:
        """Whether this proposal looks only near the best."""
        drawn = float(torch.rand(1, generator=search.common or search.generator)) < self.focus
        return drawn and search.observations.n_complete > 0

    def _pool(self, search: Search) -> Tensor:
        space, observations, generator = search.space, search.observations, search.generator
        samples = space.sample(self.samples, generator)
        best = observations.points[observations.best_rows(self.centres)].cpu()
        if not len(best) or not self.neighbours:
            return samples
        return torch.cat([samples, space.neighbours(best, self.neighbours, generator)])

    def _climb(self, search: Search, starts: Tensor, real: list[int]) -> Tensor:
        """Points after ascent on their real columns, within [0, 1] (k x d)."""
        points = starts.clone().to(search.classifier.device)
        first, second = torch.zeros_like(points), torch.zeros_like(points)
        mask = torch.zeros_like(points[0]).index_fill(0, torch.tensor(real, device=points.device), 1.0)
        for step in range(1, self.steps + 1):
            points.requires_grad_(True)
            (gradient,) = torch.autograd.grad(search.value(points).sum(), points)
            first = 0.8 * first + 0.2 * gradient
            second = 0.9 * second + 0.1 * gradient.square()
            move = first / (1 - 0.8**step) / ((second / (1 - 0.9**step)).sqrt() + 1e-12)
            rate = 0.05 * (1 - (step - 1) / self.steps)
            points = (points.detach() + rate * mask * move).clamp(min=0)
            points = torch.minimum(points, search.space.bounds[1].to(points))
        return search.space.snap(points.detach().cpu())
