"""Local search: random points and neighbours of good ones, then uphill."""

import warnings
from collections.abc import Callable, Sequence

import numpy as np
import torch
from scipy.optimize import Bounds, minimize
from torch import Tensor

from deepbore.candidates.base import Candidates, Search, sorted_by_value
from deepbore.validation import one_of, whole, within


class RandomSearch(Candidates):
    """The best of uniform random points; asks nothing of the classifier (BORE J.1: 500 on discrete spaces).

    Several ranks share the points.

    Args:
        samples: how many points, >= 1.

    Raises:
        SettingError: for a number below 1.
    """

    def __init__(self, samples: int = 2000):
        whole(1, samples=samples)
        self.samples = samples

    def ranked(self, search: Search, q: int) -> Tensor:
        own = search.on_own_stream()
        return search.gathered(*own.best_first(own.sample(search.share(self.samples))))[0]


RATE = 0.05  # the first step's length along a parameter, in units of its whole range; falls to 0
NEW, NEW_SQUARE = 0.2, 0.1  # weights of a new gradient and its square in their running means: short, for 20 steps
TINY = 1e-12  # under the root of squares: a step in a direction without gradient is 0


def climbed(
    value: Callable[[Tensor], Tensor], starts: Tensor, columns: Sequence[int], upper: Tensor, steps: int
) -> Tensor:
    """Points after Adam's ascent on some of their columns, all at once and each with step sizes of its own (k x d).

    Args:
        value: points (k x d) -> values (k), with gradients.
        starts: k x d.
        columns: those that move.
        upper: greatest entries of the columns, d; the least are 0.
        steps: how many.

    References:
        Kingma & Ba, Adam: a method for stochastic optimization, 2015 (algorithm 1).
    """
    points = starts.clone()
    if not len(points):
        return points
    first, second = torch.zeros_like(points), torch.zeros_like(points)
    moves = torch.zeros_like(points[0]).index_fill(0, torch.tensor(columns, device=points.device), 1.0)
    for step in range(1, steps + 1):
        points.requires_grad_(True)
        (gradient,) = torch.autograd.grad(value(points).sum(), points)
        first = (1 - NEW) * first + NEW * gradient
        second = (1 - NEW_SQUARE) * second + NEW_SQUARE * gradient.square()
        mean, square = first / (1 - (1 - NEW) ** step), second / (1 - (1 - NEW_SQUARE) ** step)
        move = RATE * (1 - (step - 1) / steps) * moves * (mean / (square.sqrt() + TINY))
        points = torch.minimum((points.detach() + move).clamp(min=0), upper)
    return points.detach()


def at_peak(
    value: Callable[[Tensor], Tensor], start: Tensor, columns: Sequence[int], upper: Tensor, iterations: int
) -> Tensor:
    """The point (d) where L-BFGS-B's ascent on some of a point's columns ends.

    SciPy steps: at every iteration the point and its gradient, and nothing else, visit the CPU.

    Args:
        value: points (k x d) -> values (k), with gradients.
        start: d.
        columns: those that move.
        upper: greatest entries of the columns, d; the least are 0.
        iterations: at most.
    """
    moving = torch.tensor(columns, device=start.device)

    def placed(entries: np.ndarray) -> Tensor:
        return start.index_put((moving,), torch.from_numpy(entries).to(start))

    def descent(entries: np.ndarray) -> tuple[float, np.ndarray]:
        point = placed(entries).requires_grad_(True)
        reached = value(point[None]).squeeze(0)
        (gradient,) = torch.autograd.grad(reached, point)
        return -float(reached.detach()), -gradient[moving].double().cpu().numpy()

    entries = start[moving].double().cpu().numpy()
    bounds = Bounds(np.zeros(len(moving)), upper[moving].double().cpu().numpy())
    found = minimize(descent, entries, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": iterations})
    return placed(np.asarray(found.x)) if np.isfinite(found.fun) else start


EXHAUSTIVE = 4096  # a finite space up to this size is ranked whole
REACH = 2.0  # lengths of each axis, within which a search around a centre looks
INSTEAD = "Give Study(strategy=...), such as deepbore.strategies.ModelStrategy(KernelPLS()), which takes no turns."
FOCUSED = 3  # so many best points have neighbours when a proposal looks only near them


class LocalSearch(Candidates):
    """Ranks random points and neighbours of the best observed ones, then climbs from the best of them.

    Climbing is by Adam on the real parameters, where the classifier has gradients; the others stay. The climbed
    points are snapped to configurations and ranked among the rest, so the walk down the ranking has all of them.

    With real parameters, a share of the proposals looks at nothing but neighbours of the three best observed points:
    on rugged functions the uncertainty is always greatest far from all data, and the best would be left unrefined.
    Without any, passing over what has been seen refines by itself.

    A search that has a centre and axes (`Search.axes`) draws its points around the centre, and climbs, both along these
    axes.

    Under black-box constraints the best point of all goes on by L-BFGS-B. The acquisition is a ridge along the border
    then, as narrow as what is uncertain of the constraints, and Adam's steps leap over it.

    Several ranks share the points, and then the climbing from the best points of all.

    Args:
        samples: uniform random points, >= 1.
        neighbours: neighbours of the best observed points, one or two parameters changed; 0 for none.
        centres: how many best observed points have neighbours, >= 1.
        climbers: how many points climb; 0 for none.
        steps: of each climber.
        focus: probability of looking only at neighbours of the best, in [0, 1].
        iterations: of L-BFGS-B under black-box constraints, at most; 0 for none.
        nearby: deprecated; False leaves `NearBest` out of the default strategy.
        elsewhere: deprecated; False leaves `OtherBranches` out of it.

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
        nearby: bool | None = None,
        elsewhere: bool | None = None,
    ):
        whole(1, samples=samples, centres=centres)
        whole(0, neighbours=neighbours, climbers=climbers, steps=steps, iterations=iterations)
        within(0, 1, focus=focus)
        for name, wanted in {"nearby": nearby, "elsewhere": elsewhere}.items():
            one_of((None, True, False), **{name: wanted})
            if wanted is not None:
                warnings.warn(f"LocalSearch({name}=...) is deprecated. {INSTEAD}", DeprecationWarning, stacklevel=2)
        self.samples, self.neighbours, self.centres = samples, neighbours, centres
        self.climbers, self.steps, self.focus, self.iterations = climbers, steps, focus, iterations
        self.nearby, self.elsewhere = nearby, elsewhere

    def ranked(self, search: Search, q: int) -> Tensor:
        own = search.on_own_stream()
        if search.centre is not None and search.axes is not None:
            return search.gathered(*self._along(search.centre, search.axes, own))[0]
        if search.space.cardinality <= EXHAUSTIVE:
            points = search.ranks.part(search.space.enumerate().to(search.device))
            return search.gathered(*own.best_first(points))[0]
        if search.space.moving_columns and self._focuses(search):
            return search.gathered(*own.best_first(own.near_best(search.share(self.samples), FOCUSED)))[0]
        pool = torch.cat(
            [own.sample(search.share(self.samples)), own.near_best(search.share(self.neighbours), self.centres)]
        )
        return self._with_climbed(own, *search.gathered(*own.best_first(pool)), q)

    def _along(self, centre: Tensor, axes: Tensor, own: Search) -> tuple[Tensor, Tensor]:
        """Points around the centre, random and climbed along the axes, best first (k x d), and their values (k)."""
        upper = own.space.bounds[1].to(own.device)

        def placed(units: Tensor) -> Tensor:
            """Units in [0, 1] of the reach along each axis (n x d) -> points in the space (n x d)."""
            return torch.minimum((centre + (2 * units - 1) * REACH @ axes.mT).clamp(min=0), upper)

        n, d = own.share(self.samples), len(upper)
        spread = torch.rand(n, 1, dtype=upper.dtype, generator=own.stream, device=own.device)
        drawn = torch.randn(n, d, dtype=upper.dtype, generator=own.stream, device=own.device)
        units = (0.5 + spread * drawn / 2).clamp(0, 1)
        best = units[own.values(placed(units)).topk(min(n, own.share(self.climbers))).indices]
        tops = climbed(lambda units: own.value(placed(units)), best, range(d), torch.ones_like(upper), self.steps)
        starts = centre.expand(len(tops) + n, d)
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
