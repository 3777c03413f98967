"""Stein variational gradient descent (SVGD): a batch of points that repel each other."""

import math

import torch
from torch import Tensor

from deepbore.candidates.base import Candidates, Search
from deepbore.candidates.batches import GreedyBatch
from deepbore.candidates.local import LocalSearch
from deepbore.space import SearchSpace
from deepbore.space.features import Coordinates, squared_distances
from deepbore.space.parameters.base import reflected
from deepbore.validation import above, one_of, up_to, whole

REACH = 0.1  # the longest step of a particle along a parameter
FULL_BUDGET = 500  # particles up to which all steps are made: the cost of a step is quadratic in their number
SHARED = 32  # particles a rank from which ranks share the gradients
MEDIAN_ROWS = 128  # rows of the distance matrix whose median is taken
MEMORY = 10  # curvature pairs of L-BFGS
CENTRES = 10  # best observed points whose neighbours are sampled as starts


class SVGDCandidates(Candidates):
    """A batch sampled from the class probability, or its upper bound, by Stein variational gradient descent.

        x_i <- x_i + alpha zeta(x_i),                                              (Oliveira et al. 2022, eq. 25)
        zeta(x) = 1/q sum_j k(x_j, x) grad log p(x_j) + grad_{x_j} k(x_j, x),      (ibid., eq. 26)

    so that q particles move towards the modes of the density p and repel one another. The acquisition defines p
    (`Acquisition.log_density`): the class probability for batch BORE, an upper bound for batch BORE++. The kernel is
    RBF with the median trick. The step sizes are Adadelta's, RMSProp's, or those of L-BFGS on the field zeta, the
    paper's second-order version (appendix E).

    Departures from the paper. Particles start as draws from p among uniform points and neighbours of the best observed
    ones, then make a few Metropolis steps; so 100 steps suffice instead of 1000. The paper's settings are
    `start="uniform", sweeps=0, optimizer="rmsprop", steps=1000, step_size=1e-3`: its table D.4 names Adadelta, but step
    size .001, decay .9 and 1000 steps are those of the published implementation of SVGD, which uses RMSProp. Adadelta
    has no step size: here its epsilon is the square of `step_size`, and the first step is sqrt(10) times as long. SVGD
    moves real parameters only; values outside [0, 1] are reflected, and steps are bounded by a length that falls to 0.

    With `tail` < 1 only the share `tail` of particles with the lowest density follow the gradient (quantile SVGD): the
    batch maximises the mean of log p over its worst members, so fewer evaluations are wasted on unpromising points.

    The batch is that of `GreedyBatch` for a single point, without real parameters, or without gradients.

    Args:
        steps: of SVGD; fewer beyond 500 particles.
        step_size: length of a step by RMSProp, of the first one by L-BFGS, of a third of it by Adadelta, in units of
            the range of a parameter.
        optimizer: "adadelta", "rmsprop" or "lbfgs".
        samples: uniform points that starts are drawn from; at least 4 q.
        neighbours: neighbours of the ten best observed points that starts are drawn from.
        sweeps: Metropolis steps before SVGD.
        tail: c in (0, 1], weights 1 / c for particles whose density is among the lowest c q, 0 for the others: the
            conditional value at risk as the distortion of Gong et al. (2019). 1 is plain SVGD.
        start: "density", draws from p, or "uniform", which ignores samples and neighbours.

    Raises:
        SettingError: for an unknown optimizer or start, or a number outside its range.

    References:
        Oliveira, Tiao & Ramos, Batch Bayesian optimisation via density-ratio estimation with guarantees, 2022.
        Liu & Wang, Stein variational gradient descent, 2016.
        Gong, Peng & Liu, Quantile Stein variational gradient descent for batch Bayesian optimization, 2019.
    """

    def __init__(
        self,
        steps: int = 100,
        step_size: float = 0.01,
        optimizer: str = "adadelta",
        samples: int = 2000,
        neighbours: int = 1000,
        sweeps: int = 10,
        tail: float = 1.0,
        start: str = "density",
    ):
        one_of(STEPPERS, optimizer=optimizer)
        one_of(("density", "uniform"), start=start)
        above(0, step_size=step_size)
        whole(1, steps=steps, samples=samples)
        whole(0, neighbours=neighbours, sweeps=sweeps)
        up_to(0, 1, tail=tail)
        self.tail, self.start = tail, start
        self.steps, self.step_size, self.optimizer = steps, step_size, optimizer
        self.samples, self.neighbours, self.sweeps = samples, neighbours, sweeps
        self.otherwise = GreedyBatch(LocalSearch(samples, neighbours))

    def ranked(self, search: Search, q: int) -> Tensor:
        moving = search.space.points.moving_columns
        if q == 1 or not moving or not search.classifier.differentiable:
            return self.otherwise.ranked(search, q)
        drawn = self._drawn(search, q)
        particles = self._stein(search, self._metropolis(search, drawn[:q]), list(moving))
        return torch.cat([particles, drawn[q:]])  # more draws, in case particles coincide after snapping

    def _drawn(self, search: Search, q: int) -> Tensor:
        """Points in the order of drawing from the density without replacement, by Gumbel noise (k x d).

        Uniform points with `start="uniform"`.
        """
        if self.start == "uniform":
            return search.sample(q)
        near = search.sample_neighbours(self.neighbours, CENTRES)
        pool = torch.cat([search.sample(max(self.samples, 4 * q)), near])
        density = search.log_densities(pool)
        gumbel = -torch.empty_like(density).exponential_(generator=search.stream).log()
        return pool[(density + gumbel).argsort(descending=True)]

    def _metropolis(self, search: Search, points: Tensor) -> Tensor:
        """Particles after a few random moves from x to y (q x d).

        Each is accepted with probability min(1, p(y) q(x | y) / (p(x) q(y | x))), so that p is the stationary
        distribution (Hastings, Monte Carlo sampling methods using Markov chains, 1970).
        """
        value = search.log_densities(points)
        for _ in range(self.sweeps):
            proposed = search.space.points.neighbour_of_each(points, search.stream)
            proposed_value = search.log_densities(proposed)
            u = torch.empty_like(value).uniform_(generator=search.stream)
            accepted = u.log() < proposed_value - value + search.space.points.likelier_back(points, proposed)
            points = torch.where(accepted[:, None], proposed, points)
            value = torch.where(accepted, proposed_value, value)
        return points

    def _stein(self, search: Search, points: Tensor, moving: list[int]) -> Tensor:
        """Particles after SVGD on their active real columns (q x d)."""
        starts, points = points, points.clone()
        moves = search.space.points.active(points)[:, moving].to(points)
        apart = _level_distances(search.space, points)
        stepper = STEPPERS[self.optimizer](self.step_size)
        steps = math.ceil(self.steps * min(1.0, FULL_BUDGET / len(points)))
        for step in range(steps):
            x = points[:, moving]
            value, score = _log_density(search, points, moving)
            zeta = moves * stein_direction(x, tail_weights(value, self.tail) * score, apart)
            shrunk = REACH * (1 - step / steps)
            points[:, moving] = reflected(x + stepper(x, zeta).clamp(-shrunk, shrunk))
        return search.space.points.project_to_feasible(starts, points)


def stein_direction(x: Tensor, score: Tensor, apart: Tensor | float = 0.0) -> Tensor:
    """zeta of all particles (Oliveira et al. 2022, eq. 26), with k(x, y) = exp(-|x - y|^2 / h).

    h = median of |x_i - x_j|^2 over i != j / log(q + 1), the median trick (Liu & Wang 2016, section 5). Distances of
    particles to themselves are excluded: with two particles 0 would be the median, and they would not repel.

    Args:
        x: particles, q x r, q >= 2.
        score: gradients of log p at the particles, q x r.
        apart: squared distances between them in the parameters that do not move, q x q.
    """
    squared = squared_distances(x, x) + apart
    h = (_median_between(squared) / math.log(len(x) + 1)).clamp(min=1e-12)
    k = (-squared / h).exp()
    repulsion = 2 / h * (x * k.sum(1, keepdim=True) - k @ x)  # sum_j grad_{x_j} k(x_j, x_i)
    return (k @ score + repulsion) / len(x)


def _median_between(squared: Tensor) -> Tensor:
    """The median of the distances between different particles (q x q -> a scalar), of up to 128 rows."""
    q, step = len(squared), math.ceil(len(squared) / MEDIAN_ROWS)
    rows = torch.arange(0, q, step, device=squared.device)
    others = (rows[:, None] + torch.arange(1, q, device=squared.device)) % q  # all columns but the diagonal's
    return squared[rows].gather(1, others).median()


def tail_weights(value: Tensor, tail: float) -> Tensor:
    """1 / c for particles that rank among the lowest c q by their log density (q), else 0, as a column (q x 1).

    The derivative of the distortion function that gives the conditional value at risk, at the particles' ranks. The
    lowest particle always counts.
    """
    rank = value.argsort().argsort()
    return ((rank < max(1.0, tail * len(value))) / tail).to(value)[:, None]


def _log_density(search: Search, points: Tensor, moving: list[int]) -> tuple[Tensor, Tensor]:
    """log p (q) and its gradients in the moving columns (q x r); ranks share the work if there are many particles."""
    shared = len(points) >= SHARED * search.ranks.world
    leaf = (search.ranks.part(points) if shared else points).clone().requires_grad_(True)
    value = search.log_density(leaf)
    (gradient,) = torch.autograd.grad(value.sum(), leaf)
    both = torch.cat([value.detach()[:, None].to(gradient), gradient[:, moving]], dim=1)
    both = search.ranks.whole(both) if shared else both
    return both[:, 0], both[:, 1:]


def _level_distances(space: SearchSpace, points: Tensor) -> Tensor | float:
    """Squared distances between particles in all but the real columns, q x q; 0 without other columns."""
    levels = [column for column in range(len(space)) if not space.parameters[space.names[column]].climbs]
    if not levels:
        return 0.0
    place = Coordinates(space.points).to(points.device)
    x = place(points)[:, torch.isin(place.owner, torch.tensor(levels, device=points.device))]
    return squared_distances(x, x)


# --- step sizes ------------------------------------------------------------------------------------------------------


class Adadelta:
    """Adadelta's steps along zeta, in each coordinate of each particle (Zeiler 2012; decay 0.9 as in the paper)."""

    def __init__(self, size: float):
        self.epsilon = size**2
        self.slope = self.length = torch.zeros(())  # running means of squared zeta and squared steps

    def __call__(self, x: Tensor, zeta: Tensor) -> Tensor:
        """Particles and their directions (q x r) -> steps (q x r)."""
        self.slope = 0.9 * self.slope.to(zeta) + 0.1 * zeta.square()
        step = zeta * ((self.length.to(zeta) + self.epsilon) / (self.slope + self.epsilon)).sqrt()
        self.length = 0.9 * self.length.to(zeta) + 0.1 * step.square()
        return step


class RMSProp:
    """Steps along zeta, divided by its running root mean square (Tieleman & Hinton 2012; decay 0.9)."""

    def __init__(self, size: float):
        self.size = size
        self.square: Tensor | None = None  # running mean of squared zeta

    def __call__(self, x: Tensor, zeta: Tensor) -> Tensor:
        """Particles and their directions (q x r) -> steps (q x r)."""
        new = zeta.square()
        self.square = new if self.square is None else 0.9 * self.square + 0.1 * new
        return self.size * zeta / (self.square.sqrt() + 1e-6)


class LBFGS:
    """L-BFGS steps along zeta, with separate curvature pairs for each particle.

    It is block-diagonal, as the Stein variational Newton method of Detommaso et al. (2018). Pairs without positive
    curvature are ignored; without any pair, steps are short.
    """

    def __init__(self, size: float):
        self.size = size
        self.pairs: list[tuple[Tensor, Tensor, Tensor]] = []  # s, y, 1 / s.y (0 where left out)
        self.last: tuple[Tensor, Tensor] | None = None

    def __call__(self, x: Tensor, zeta: Tensor) -> Tensor:
        """Particles and their directions (q x r) -> steps (q x r)."""
        if self.last is not None:
            s, y = x - self.last[0], self.last[1] - zeta
            curvature = _dot(s, y)
            curved = curvature > 1e-8 * _dot(s, s).sqrt() * _dot(y, y).sqrt()
            self.pairs = [*self.pairs[1 - MEMORY :], (s, y, torch.where(curved, 1 / curvature, 0.0))]
        self.last = x, zeta
        return self._two_loops(zeta)

    def _two_loops(self, zeta: Tensor) -> Tensor:
        """The inverse Hessian times zeta (Nocedal & Wright 2006, algorithm 7.4), for all particles at once."""
        step, scale, alphas = zeta, self.size / _dot(zeta, zeta).sqrt().clamp(min=1e-12), []
        for _, y, rho in self.pairs:  # the newest pair with curvature scales
            scale = torch.where(rho > 0, 1 / (rho * _dot(y, y)).clamp(min=1e-300), scale)
        for s, y, rho in reversed(self.pairs):
            alphas.append(rho * _dot(s, step))
            step = step - alphas[-1] * y
        step = scale * step
        for (s, y, rho), alpha in zip(self.pairs, reversed(alphas), strict=True):
            step = step + (alpha - rho * _dot(y, step)) * s
        return step


def _dot(x: Tensor, y: Tensor) -> Tensor:
    """Inner products of rows (q x 1)."""
    return (x * y).sum(-1, keepdim=True)


STEPPERS: dict[str, type[Adadelta | RMSProp | LBFGS]] = {"adadelta": Adadelta, "rmsprop": RMSProp, "lbfgs": LBFGS}
