"""Random search, and local search: random points and neighbours of good ones, then gradient ascent."""

import warnings
from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from deepbore.candidates.base import Candidates, Search, sorted_by_value
from deepbore.compute.numerics import minimize
from deepbore.errors import DeprecatedUse
from deepbore.validation import one_of, whole, within

PER_POINT = 4  # candidates for each point of a batch, at least


class RandomSearch(Candidates):
    """The best of uniform random points, for any classifier (BORE J.1: 500 on discrete spaces).

    Several ranks share the points.

    Args:
        samples: the number of points, >= 1; at least 4 for each point of a batch.

    Raises:
        SettingError: for a number below 1.
    """

    def __init__(self, samples: int = 2000):
        whole(1, samples=samples)
        self.samples = samples

    def ranked(self, search: Search, q: int) -> Tensor:
        own = search.on_own_stream()
        return search.gather_ranked(*own.best_first(own.sample(search.share(max(self.samples, PER_POINT * q)))))[0]


RATE = 0.05  # length of the first step in units of the range of a parameter; falls to 0
NEW, NEW_SQUARE = 0.2, 0.1  # 1 - beta_1 and 1 - beta_2 of Adam: short running means, for 20 steps
TINY = 1e-12  # epsilon of Adam: a step in a direction without gradient is 0


def adam_ascent(
    gradient: Callable[[Tensor], Tensor], starts: Tensor, columns: Sequence[int], upper: Tensor, steps: int
) -> Tensor:
    """Points after gradient ascent by Adam on some of their columns, each with its own step sizes (k x d).

    Args:
        gradient: points (k x d) -> gradients of their values (k x d).
        starts: k x d.
        columns: those that move.
        upper: upper bounds of the columns, d; the lower bounds are 0.
        steps: the number of steps.

    References:
        Kingma & Ba, Adam: a method for stochastic optimization, 2015 (algorithm 1).
    """
    points = starts.clone()
    if not len(points):
        return points
    first, second = torch.zeros_like(points), torch.zeros_like(points)
    moves = torch.zeros_like(points[0]).index_fill(0, torch.tensor(columns, device=points.device), 1.0)
    for step in range(1, steps + 1):
        slope = gradient(points)
        first = (1 - NEW) * first + NEW * slope
        second = (1 - NEW_SQUARE) * second + NEW_SQUARE * slope.square()
        mean, square = first / (1 - (1 - NEW) ** step), second / (1 - (1 - NEW_SQUARE) ** step)
        move = RATE * (1 - (step - 1) / steps) * moves * (mean / (square.sqrt() + TINY))
        points = torch.minimum((points + move).clamp(min=0), upper)
    return points


def lbfgs_ascent(
    value: Callable[[Tensor], Tensor], start: Tensor, columns: Sequence[int], upper: Tensor, iterations: int
) -> Tensor:
    """The point (d) at the end of an ascent by L-BFGS-B on some of its columns.

    The optimiser is SciPy's: in each iteration only the point and its gradient are copied to the CPU.

    Args:
        value: points (k x d) -> values (k), with gradients.
        start: d.
        columns: those that move.
        upper: upper bounds of the columns, d; the lower bounds are 0.
        iterations: the maximum number of iterations.
    """
    moving = torch.tensor(columns, device=start.device)

    def placed(entries: np.ndarray) -> Tensor:
        return start.index_put((moving,), torch.from_numpy(entries).to(start))

    def descent(entries: np.ndarray) -> tuple[float, np.ndarray]:
        point = placed(entries).requires_grad_(True)
        reached = value(point[None]).squeeze(0)
        (gradient,) = torch.autograd.grad(reached, point)
        return -float(reached.detach()), -gradient[moving].double().cpu().numpy()

    from scipy.optimize import Bounds  # takes .2 s

    entries = start[moving].double().cpu().numpy()
    bounds = Bounds(np.zeros(len(moving)), upper[moving].double().cpu().numpy())
    found = minimize(descent, entries, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": iterations})
    return placed(np.asarray(found.x)) if np.isfinite(found.fun) else start


CLIMBING = 512  # starts that climb at once, which bounds the memory for large batches
EXHAUSTIVE = 4096  # finite spaces up to this size are ranked completely
REACH = 2.0  # half the width of the region around a centre, in lengths of each axis
INSTEAD = "Give Study(strategy=...), such as deepbore.strategies.ModelStrategy(KernelPLS()), without turns."
FOCUSED = 3  # best points whose neighbours a focused proposal samples


class LocalSearch(Candidates):
    """Random points and neighbours of the best observed ones, then gradient ascent from the best of them.

    If the classifier has gradients, Adam moves the real parameters and the finest grids; the others stay. The results
    are snapped to configurations and ranked with the other points.

    With real parameters a share of the proposals considers only neighbours of the three best observed points: on rugged
    functions the uncertainty is always largest far from all data, and the best points would not be refined. Without
    real parameters this happens by itself, since evaluated configurations are skipped.

    A search with a centre and axes (`Search.axes`) samples around the centre, and ascends, along these axes.

    Under black-box constraints the best point is refined by L-BFGS-B: along the border of the feasible region the
    acquisition is a ridge, too narrow for the steps of Adam.

    Several ranks share the points, and then the starts of the ascent.

    Args:
        samples: uniform random points, >= 1; at least 4 for each point of a batch.
        neighbours: neighbours of the best observed points, with one or two parameters changed; 0 for none.
        centres: best observed points whose neighbours are sampled, >= 1.
        climbers: starts of the ascent; 0 for none.
        steps: of each ascent.
        focus: probability of considering only neighbours of the best points, in [0, 1].
        iterations: the maximum of L-BFGS-B under black-box constraints; 0 for none.
        nearby: deprecated; False removes `NearBest` from the default strategy.
        elsewhere: deprecated; False removes `OtherBranches` from it.

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
                warnings.warn(f"LocalSearch({name}=...) is deprecated. {INSTEAD}", DeprecatedUse, stacklevel=2)
        self.samples, self.neighbours, self.centres = samples, neighbours, centres
        self.climbers, self.steps, self.focus, self.iterations = climbers, steps, focus, iterations
        self.nearby, self.elsewhere = nearby, elsewhere

    def ranked(self, search: Search, q: int) -> Tensor:
        own, samples = search.on_own_stream(), max(self.samples, PER_POINT * q)
        if search.centre is not None and search.axes is not None:
            return search.gather_ranked(*self._search_axes(search.centre, search.axes, own, samples))[0]
        if search.space.cardinality <= EXHAUSTIVE:
            points = search.ranks.part(search.space.points.enumerate().to(search.device))
            return search.gather_ranked(*own.best_first(points))[0]
        if search.space.points.moving_columns and self._focuses(search):
            return search.gather_ranked(*own.best_first(own.sample_neighbours(search.share(samples), FOCUSED)))[0]
        pool = torch.cat(
            [own.sample(search.share(samples)), own.sample_neighbours(search.share(self.neighbours), self.centres)]
        )
        return self._with_climbed(own, *search.gather_ranked(*own.best_first(pool)), q)

    def _search_axes(self, centre: Tensor, axes: Tensor, own: Search, samples: int) -> tuple[Tensor, Tensor]:
        """Random points around the centre, and ends of ascents along the axes, best first (k x d), and values (k)."""
        upper = own.space.points.bounds[1].to(own.device)

        def placed(units: Tensor) -> Tensor:
            """Coordinates in [0, 1] along each axis (n x d) -> points of the space (n x d)."""
            return torch.minimum((centre + (2 * units - 1) * REACH @ axes.mT).clamp(min=0), upper)

        def gradient(units: Tensor) -> Tensor:
            """Gradients of the values of the points (n x d)."""
            points = placed(units)
            inside = (points > 0) & (points < upper)
            return (inside * own.gradient(points)) @ axes * (2 * REACH)

        n, d = own.share(samples), len(upper)
        spread = torch.rand(n, 1, dtype=upper.dtype, generator=own.stream, device=own.device)
        drawn = torch.randn(n, d, dtype=upper.dtype, generator=own.stream, device=own.device)
        units = (0.5 + spread * drawn / 2).clamp(0, 1)
        best = units[own.values(placed(units)).topk(min(n, own.share(self.climbers))).indices]
        tops = adam_ascent(gradient, best, range(d), torch.ones_like(upper), self.steps)
        starts = centre.expand(len(tops) + n, d)
        return own.best_first(own.space.points.project_to_feasible(starts, placed(torch.cat([tops, units]))))

    def _focuses(self, search: Search) -> bool:
        """Whether this proposal considers only neighbours of the best points, the same on all ranks."""
        drawn = float(torch.rand(1, generator=search.generator)) < self.focus
        return drawn and not search.margin and search.observations.ledger.statistics.n_complete > 0

    def _with_climbed(self, own: Search, points: Tensor, values: Tensor, q: int) -> Tensor:
        """The ranking (k x d) together with the ends of ascents from its first points."""
        columns, upper = own.space.points.moving_columns, own.space.points.bounds[1].to(points)
        if not columns or not own.classifier.differentiable:
            return points
        if self.climbers:
            starts = own.ranks.part(points[: max(self.climbers, q)])
            parts = starts.split(CLIMBING)
            tops = torch.cat([adam_ascent(own.gradient, part, columns, upper, self.steps) for part in parts])
            points, values = self._joined(own, starts, tops, points, values)
        if self.iterations and self._refines(own):
            starts = own.ranks.part(points[: own.ranks.world])  # one for each rank
            peaks = [lbfgs_ascent(own.value, start, columns, upper, self.iterations)[None] for start in starts]
            points, values = self._joined(own, starts, torch.cat([starts[:0], *peaks]), points, values)
        return points

    def _refines(self, search: Search) -> bool:
        """Whether the best point is refined by L-BFGS-B."""
        return search.feasibility is not None

    def _joined(
        self, own: Search, starts: Tensor, ends: Tensor, points: Tensor, values: Tensor
    ) -> tuple[Tensor, Tensor]:
        """The ranking (k x d) and its values (k) together with the ends of ascents on all ranks."""
        tops, their_values = own.gather_ranked(*own.best_first(own.space.points.project_to_feasible(starts, ends)))
        return sorted_by_value(torch.cat([tops, points]), torch.cat([their_values, values]))
