"""`CMAES`: a normal distribution whose mean, scale and covariance follow its best offspring."""

import math
from collections.abc import Mapping
from typing import Any, Self

import torch
from torch import Tensor

LEAST, MOST = 1e-12, 1e14  # step and condition at which a distribution has converged
FLAT = 1e-12  # values of a generation that differ by less, relative to their size, are the same


class CMAES:
    """A normal distribution N(m, sigma^2 C) on the unit cube that adapts to the values of its offspring.

    The (mu/mu_w, lambda)-CMA-ES: the mean moves to the weighted mean of the better half of the offspring, the
    covariance learns the steps that were good, one by one (rank mu) and summed over generations (rank one), and the
    scale follows the length of the summed steps. Offspring outside the cube are reflected at its sides, and learned
    where they were evaluated.

    Args:
        mean: m, of d coordinates in [0, 1].
        sigma: the initial scale, in units of the cube's sides.
        size: offspring of a generation, lambda >= 4; None for 4 + 3 ln d, rounded down.

    References:
        Hansen, The CMA evolution strategy: a tutorial, arXiv 1604.00772, 2016 (numbers of equations are its own).
    """

    def __init__(self, mean: Tensor, sigma: float, size: int | None = None):
        d = len(mean)
        self.mean, self.sigma = mean, sigma
        self.covariance = torch.eye(d, dtype=mean.dtype)
        self.path, self.scale_path = torch.zeros_like(mean), torch.zeros_like(mean)  # p_c and p_sigma
        self.size = size or 4 + int(3 * math.log(d))
        self.generation = 0
        self.is_flat = False  # whether the latest generation had one value
        self._root: tuple[Tensor, Tensor] | None = None  # eigenvectors, and square roots of the eigenvalues

    # --- offspring ---------------------------------------------------------------------------------------------------

    def offspring(self, count: int, generator: torch.Generator) -> Tensor:
        """Points of the cube (count x d), by eqs. 38 to 40."""
        directions, lengths = self.root
        drawn = torch.randn(count, len(self.mean), dtype=self.mean.dtype, generator=generator)
        return reflected(self.mean + self.sigma * (drawn * lengths) @ directions.mT)

    @property
    def root(self) -> tuple[Tensor, Tensor]:
        """B (d x d) and the diagonal of D (d) in C = B D^2 B^T."""
        if self._root is None:
            values, directions = torch.linalg.eigh(self.covariance)
            self._root = directions, values.clamp(min=1e-20).sqrt()
        return self._root

    @property
    def has_converged(self) -> bool:
        """Whether further offspring would all be the same, or the covariance is too ill-conditioned to go on."""
        lengths = self.root[1]
        is_narrow = float(self.sigma * lengths.max()) < LEAST or float((lengths.max() / lengths.min()) ** 2) > MOST
        return self.is_flat or is_narrow

    # --- adaptation --------------------------------------------------------------------------------------------------

    def adapt(self, points: Tensor, values: Tensor) -> None:
        """Takes in a generation.

        Args:
            points: the offspring, lambda x d.
            values: to minimise, lambda; infinite for failures.
        """
        d, count = points.shape[1], len(points)
        ranked = values.argsort(stable=True)
        weights = recombination(count).to(points)
        mass = float(1 / weights.square().sum())  # mu_eff, eq. 8
        steps = (points[ranked[: len(weights)]] - self.mean) / self.sigma
        step = weights @ steps
        self.mean = self.mean + self.sigma * step  # eq. 42, with c_m = 1
        self.generation += 1
        rate = (mass + 2) / (d + mass + 5)  # c_sigma, eq. 55
        directions, lengths = self.root
        white = directions @ ((directions.mT @ step) / lengths)
        self.scale_path = (1 - rate) * self.scale_path + math.sqrt(rate * (2 - rate) * mass) * white  # eq. 43
        norm, expected = float(self.scale_path.norm()), math.sqrt(d) * (1 - 1 / (4 * d) + 1 / (21 * d * d))
        grown = norm / math.sqrt(1 - (1 - rate) ** (2 * self.generation))
        is_steady = grown < (1.4 + 2 / (d + 1)) * expected  # h_sigma
        damping = 1 + 2 * max(0.0, math.sqrt((mass - 1) / (d + 1)) - 1) + rate
        self.sigma *= math.exp(min(1.0, rate / damping * (norm / expected - 1)))  # eq. 44
        self._learn(steps, step, weights, mass, is_steady)
        known = values[values.isfinite()]
        self.is_flat = len(known) == count and float(known.max() - known.min()) <= FLAT * float(known.abs().max())

    def _learn(self, steps: Tensor, step: Tensor, weights: Tensor, mass: float, is_steady: bool) -> None:
        """Moves the covariance by eqs. 45 and 47, with the rates of eqs. 56 to 58."""
        d = len(step)
        slow = (4 + mass / d) / (d + 4 + 2 * mass / d)  # c_c
        one = 2 / ((d + 1.3) ** 2 + mass)  # c_1
        several = min(1 - one, 2 * (0.25 + mass + 1 / mass - 2) / ((d + 2) ** 2 + mass))  # c_mu
        self.path = (1 - slow) * self.path + is_steady * math.sqrt(slow * (2 - slow) * mass) * step
        kept = 1 - one - several + (0.0 if is_steady else one * slow * (2 - slow))
        rank_mu = (weights[:, None] * steps).mT @ steps
        self.covariance = kept * self.covariance + one * torch.outer(self.path, self.path) + several * rank_mu
        self._root = None

    # --- state -------------------------------------------------------------------------------------------------------

    NUMBERS = ("mean", "sigma", "covariance", "path", "scale_path", "size", "generation", "is_flat")

    def state_dict(self) -> dict[str, Any]:
        """Everything that it has learned."""
        return {name: getattr(self, name) for name in self.NUMBERS}

    @classmethod
    def of(cls, state: Mapping[str, Any]) -> Self:
        """The distribution with a state."""
        made = cls(state["mean"], state["sigma"])
        vars(made).update({name: state[name] for name in cls.NUMBERS})
        return made


def recombination(count: int) -> Tensor:
    """Weights of the better half of so many offspring, best first: log((count + 1) / 2) - log i, by eqs. 49 and 53."""
    rank = torch.arange(1, count // 2 + 1, dtype=torch.float64)
    weights = math.log((count + 1) / 2) - rank.log()
    return weights / weights.sum()


def reflected(points: Tensor) -> Tensor:
    """Points (n x d) with coordinates outside [0, 1] reflected at the sides."""
    folded = points.remainder(2)
    return torch.where(folded > 1, 2 - folded, folded)
