"""Local search: random points and neighbours of good ones, then uphill."""

import torch
from torch import Tensor

from deepbore.candidates.base import Candidates, Search, sorted_by_value
from deepbore.candidates.climbing import at_peak, climbed
from deepbore.classifiers.local_axes import LocalAxes
from deepbore.classifiers.nearby import NearbyHead
from deepbore.validation import one_of, whole, within

EXHAUSTIVE = 4096  # a finite space up to this size is ranked whole
REACH = 2.0  # deviations of the good rows along each axis, within which a head of near rows is searched
FOCUSED = 3  # so many best points have neighbours when a proposal looks only near them


class LocalSearch(Candidates):
    """Ranks random points and neighbours of the best observed ones, then climbs from the best of them.

    Climbing is by Adam on the real parameters, where the classifier has gradients; the others stay. The climbed
    points are snapped to configurations and ranked among the rest, so the walk down the ranking has all of them.

    With real parameters, a share of the proposals looks at nothing but neighbours of the three best observed points:
    on rugged functions the uncertainty is always greatest far from all data, and the best would be left unrefined.
    Without any, passing over what has been seen refines by itself.

    Of real parameters the engine has every other proposal made by a head that learned the rows near the best one in
    axes of its own, where that knows them well (`deepbore.classifiers.nearby`): here that is random points around the
    best one, and climbing, both along these axes.

    Under black-box constraints the best point of all goes on by L-BFGS-B. The acquisition is a ridge along the border
    then, as narrow as what is uncertain of the constraints, and Adam's steps leap over it.

    In spaces with conditions every other proposal is made as if the branches that are known in detail were not there
    (`deepbore.classifiers.elsewhere`).

    Several ranks share the points, and then the climbing from the best points of all.

    Args:
        samples: uniform random points, >= 1.
        neighbours: neighbours of the best observed points, one or two parameters changed; 0 for none.
        centres: how many best observed points have neighbours, >= 1.
        climbers: how many points climb; 0 for none.
        steps: of each climber.
        focus: probability of looking only at neighbours of the best, in [0, 1].
        iterations: of L-BFGS-B under black-box constraints, at most; 0 for none.
        nearby: whether every other proposal may be by a head of the near rows, where `KernelPLS` is the classifier.
        elsewhere: whether every other proposal may leave out branches that are known in detail, there, too.

    Raises:
        SettingError: for a number outside its range.
    """

    def __init__(
        self,
        samples: int = 2000,
        neighbours: int = 1000,
        centres: int = 10,
        climbers: int = 8,
        steps: int = 20,
        focus: float = 0.25,
        iterations: int = 100,
        nearby: bool = True,
        elsewhere: bool = True,
    ):
        whole(1, samples=samples, centres=centres)
        whole(0, neighbours=neighbours, climbers=climbers, steps=steps, iterations=iterations)
        within(0, 1, focus=focus)
        one_of((True, False), nearby=nearby, elsewhere=elsewhere)
        self.samples, self.neighbours, self.centres = samples, neighbours, centres
        self.climbers, self.steps, self.focus, self.iterations = climbers, steps, focus, iterations
        self.nearby, self.elsewhere = nearby, elsewhere

    def ranked(self, search: Search, q: int) -> Tensor:
        own = search.on_own_stream()
        if isinstance(search.classifier, NearbyHead):
            return search.gathered(*self._along(search.classifier.coordinates, own))[0]
        if search.space.cardinality <= EXHAUSTIVE:
            points = search.ranks.part(search.space.enumerate().to(search.device))
            return search.gathered(*own.best_first(points))[0]
        if search.space.moving_columns and self._focuses(search):
            return search.gathered(*own.best_first(own.near_best(search.share(self.samples), FOCUSED)))[0]
        pool = torch.cat(
            [own.sample(search.share(self.samples)), own.near_best(search.share(self.neighbours), self.centres)]
        )
        return self._with_climbed(own, *search.gathered(*own.best_first(pool)), q)

    def _along(self, axes: LocalAxes, own: Search) -> tuple[Tensor, Tensor]:
        """Points around the best one, random and climbed along the axes, best first (k x d), and their values (k)."""
        upper = own.space.bounds[1].to(own.device)

        def placed(units: Tensor) -> Tensor:
            """Units in [0, 1] of the reach along each axis (n x d) -> points in the space (n x d)."""
            return torch.minimum(axes.points((2 * units - 1) * REACH).clamp(min=0), upper)

        n, d = own.share(self.samples), len(upper)
        spread = torch.rand(n, 1, dtype=upper.dtype, generator=own.stream, device=own.device)
        drawn = torch.randn(n, d, dtype=upper.dtype, generator=own.stream, device=own.device)
        units = (0.5 + spread * drawn / 2).clamp(0, 1)
        best = units[own.values(placed(units)).topk(min(n, own.share(self.climbers))).indices]
        tops = climbed(lambda units: own.value(placed(units)), best, range(d), torch.ones_like(upper), self.steps)
        starts = axes.centre.expand(len(tops) + n, d)
        return own.best_first(own.landed(starts, placed(torch.cat([tops, units]))))

    def _focuses(self, search: Search) -> bool:
        """Whether this proposal looks only near the best: all ranks decide alike."""
        drawn = float(torch.rand(1, generator=search.generator)) < self.focus
        return drawn and not search.ambition and search.observations.n_complete > 0

    def _with_climbed(self, own: Search, points: Tensor, values: Tensor, q: int) -> Tensor:
        """The ranking (k x d) with what the climbers make of its first points."""
        columns, upper = own.space.moving_columns, own.space.bounds[1].to(points)
        if not columns or not own.classifier.differentiable:
            return points
        if self.climbers:
            starts = own.ranks.part(points[: max(self.climbers, q)])
            tops = climbed(own.value, starts, columns, upper, self.steps)
            points, values = self._joined(own, starts, tops, points, values)
        if self.iterations and self._has_ridges(own):
            starts = own.ranks.part(points[: own.ranks.world])  # one for each rank
            peaks = [at_peak(own.value, start, columns, upper, self.iterations)[None] for start in starts]
            points, values = self._joined(own, starts, torch.cat([starts[:0], *peaks]), points, values)
        return points

    def _has_ridges(self, search: Search) -> bool:
        """Whether the acquisition may be too narrow for Adam's steps."""
        return search.feasibility is not None

    def _joined(
        self, own: Search, starts: Tensor, ends: Tensor, points: Tensor, values: Tensor
    ) -> tuple[Tensor, Tensor]:
        """The ranking (k x d) and its values (k) with where climbers of all ranks arrive."""
        tops, their_values = own.gathered(*own.best_first(own.landed(starts, ends)))
        return sorted_by_value(torch.cat([tops, points]), torch.cat([their_values, values]))
