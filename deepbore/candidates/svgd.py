"""Batches by Stein variational gradient descent: particles that sample the good region."""

import math
from collections.abc import Callable

import torch
from torch import Tensor

from deepbore.candidates.base import Candidates, Search
from deepbore.candidates.local import LocalSearch
from deepbore.candidates.penalised import GreedyBatch
from deepbore.classifiers.kernels import Coordinates, squared_distances
from deepbore.errors import SettingError
from deepbore.moves import reflected
from deepbore.parameters import Real
from deepbore.space import SearchSpace

REACH = 0.1  # the most that a particle moves in one step along a parameter
FULL_BUDGET = 250  # particles up to which all steps are made; beyond, each costs the square of their number
MEDIAN_ROWS = 128  # rows of the distances that their median is taken of
CENTRES = 10  # best observed points that some particles start near

Steps = Callable[[Tensor, float], torch.optim.Optimizer]
OPTIMIZERS: dict[str, Steps] = {
    "adadelta": lambda x, size: torch.optim.Adadelta([x], lr=1.0, rho=0.9, eps=size**2),
    "lbfgs": lambda x, _: torch.optim.LBFGS([x], lr=1.0, max_iter=1, history_size=10),
}


class SVGDCandidates(Candidates):
    """Samples a batch from the class probability, or its upper bound, by Stein variational gradient descent.

        x_i <- x_i + alpha zeta(x_i),                                              (Oliveira et al. 2022, eq. 25)
        zeta(x) = 1/q sum_j k(x_j, x) grad log p(x_j) + grad_{x_j} k(x_j, x),      (ibid., eq. 26)

    so that q particles climb towards the modes of the density p and repel one another. The acquisition says what p is
    (`Acquisition.log_density`): the class probability for batch BORE, an upper bound for batch BORE++. The kernel is
    RBF with the median trick. The step sizes are Adadelta's, as in the paper's benchmarks, or those of L-BFGS on the
    field zeta, the paper's second-order version (appendix E).

    Departures from the paper. Particles start as draws from p among uniform points and neighbours of the best
    observed ones, not uniformly, so that 100 steps do what 1000 do (`steps=1000, step_size=1e-3` are the paper's).
    Only real parameters move by SVGD; a few Metropolis steps with the same target come before and move all of them.
    Particles that leave [0, 1] are reflected. The paper's step size is read as the square root of Adadelta's epsilon,
    the length of a first step: taken as a learning rate in Adadelta, particles would stand still.

    Where SVGD has nothing to say - a single point, no real parameter, no gradients - the batch is `GreedyBatch`'s.

    Args:
        steps: of SVGD; fewer beyond 250 particles.
        step_size: scale of Adadelta's first steps, in units of a parameter's whole range.
        optimizer: "adadelta" or "lbfgs".
        samples: uniform points that the particles are drawn from; at least 4 q.
        neighbours: neighbours of the ten best observed points among them.
        sweeps: Metropolis steps before SVGD.

    Raises:
        SettingError: for an unknown optimizer, or a number outside its range.

    References:
        Oliveira, Tiao & Ramos, Batch Bayesian optimisation via density-ratio estimation with guarantees, 2022.
        Liu & Wang, Stein variational gradient descent, 2016.
    """

    def __init__(
        self,
        steps: int = 100,
        step_size: float = 0.01,
        optimizer: str = "adadelta",
        samples: int = 2000,
        neighbours: int = 1000,
        sweeps: int = 10,
    ):
        if optimizer not in OPTIMIZERS:
            raise SettingError(f"optimizer must be one of {sorted(OPTIMIZERS)}, but got {optimizer!r}.")
        for name, value in {"steps": steps, "step_size": step_size, "samples": samples}.items():
            if not value > 0:
                raise SettingError(f"{name} > 0 must hold, but got {name}={value}.")
        self.steps, self.step_size, self.optimizer = steps, step_size, optimizer
        self.samples, self.neighbours, self.sweeps = samples, neighbours, sweeps
        self.otherwise = GreedyBatch(LocalSearch(samples, neighbours))

    def ranked(self, search: Search, q: int) -> Tensor:
        real = [i for i, p in enumerate(search.space.parameters.values()) if isinstance(p, Real)]
        if q == 1 or not real or not search.classifier.differentiable:
            return self.otherwise.ranked(search, q)
        drawn = self._drawn(search, q)
        particles = self._stein(search, self._metropolis(search, drawn[:q]), real)
        return torch.cat([particles, drawn[q:]])  # the next draws stand by, should two particles be one configuration

    def _drawn(self, search: Search, q: int) -> Tensor:
        """Points in the order of drawing from the density without replacement, by Gumbel noise (k x d)."""
        space, observations, generator = search.space, search.observations, search.generator
        best = observations.points[observations.best_rows(CENTRES)].cpu()
        near = space.neighbours(best, self.neighbours, generator) if len(best) else best
        pool = torch.cat([space.sample(max(self.samples, 4 * q), generator), near])
        gumbel = -torch.empty(len(pool), dtype=torch.float64).exponential_(generator=generator).log()
        return pool[(search.log_densities(pool) + gumbel).argsort(descending=True)]

    def _metropolis(self, search: Search, points: Tensor) -> Tensor:
        """Particles after a few random moves, each accepted with probability min(1, p(new) / p(old)) (q x d)."""
        value = search.log_densities(points)
        for _ in range(self.sweeps):
            proposed = search.space.neighbour_of_each(points, search.generator)
            proposed_value = search.log_densities(proposed)
            u = torch.rand(len(points), dtype=torch.float64, generator=search.generator)
            accepted = u.log() < proposed_value - value
            points = torch.where(accepted[:, None], proposed, points)
            value = torch.where(accepted, proposed_value, value)
        return points

    def _stein(self, search: Search, points: Tensor, real: list[int]) -> Tensor:
        """Particles after SVGD on their active real columns (q x d)."""
        points = points.to(search.classifier.device, copy=True)
        moves = search.space.active(points)[:, real].to(points)
        apart = _level_distances(search.space, points)
        x = torch.nn.Parameter(points[:, real].clone())
        optimizer = OPTIMIZERS[self.optimizer](x, self.step_size)
        for _ in range(math.ceil(self.steps * min(1.0, FULL_BUDGET / len(points)))):
            zeta = stein_direction(x.detach(), _score(search, points, real), apart)
            x.grad = -(zeta * moves)
            optimizer.step(lambda: 0.0)  # only the gradient is looked at
            step = (x.detach() - points[:, real]).clamp(-REACH, REACH)
            points[:, real] = reflected(points[:, real] + step)
            x.data.copy_(points[:, real])
        return search.space.snap(points.cpu())


def stein_direction(x: Tensor, score: Tensor, apart: Tensor | float = 0.0) -> Tensor:
    """zeta of all particles (Oliveira et al. 2022, eq. 26), with k(x, y) = exp(-|x - y|^2 / h).

    h = median of |x_i - x_j|^2 / log(q + 1), the median trick (Liu & Wang 2016, section 5).

    Args:
        x: particles, q x r.
        score: gradients of log p at the particles, q x r.
        apart: squared distances between them in what does not move, q x q.
    """
    squared = squared_distances(x, x) + apart
    sampled = squared[:: math.ceil(len(x) / MEDIAN_ROWS)]
    h = (sampled.median() / math.log(len(x) + 1)).clamp(min=1e-12)
    k = (-squared / h).exp()
    repulsion = 2 / h * (x * k.sum(1, keepdim=True) - k @ x)  # sum_j grad_{x_j} k(x_j, x_i)
    return (k @ score + repulsion) / len(x)


def _score(search: Search, points: Tensor, real: list[int]) -> Tensor:
    """Gradients of log p in the real columns (q x r)."""
    leaf = points.clone().requires_grad_(True)
    (gradient,) = torch.autograd.grad(search.log_density(leaf).sum(), leaf)
    return gradient[:, real]


def _level_distances(space: SearchSpace, points: Tensor) -> Tensor | float:
    """Squared distances between particles in all but the real columns, q x q; 0 where there are no others."""
    if space.is_continuous:
        return 0.0
    place = Coordinates(space).to(points.device)
    levels = [i for i, p in enumerate(space.parameters.values()) if not isinstance(p, Real)]
    x = place(points)[:, torch.isin(place.owner, torch.tensor(levels, device=points.device))]
    return squared_distances(x, x)
