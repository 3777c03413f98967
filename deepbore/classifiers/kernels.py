"""Stationary kernels with one length scale a parameter (ARD), as functions of a squared distance."""

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

from deepbore.space import Categorical, Integer, Ordinal, SearchSpace

TINY = 1e-20


def rbf(squared: Tensor) -> Tensor:
    """exp(-r^2 / 2)."""
    return (-0.5 * squared).exp()


def matern52(squared: Tensor) -> Tensor:
    """(1 + sqrt(5) r + 5 r^2 / 3) exp(-sqrt(5) r)."""
    r = (5 * squared).clamp(min=TINY).sqrt()  # a root has no gradient at 0
    return (1 + r + r * r / 3) * (-r).exp()


def rational_quadratic(squared: Tensor) -> Tensor:
    """(1 + r^2 / 2)^-1, the mixture parameter being 1."""
    return 1 / (1 + 0.5 * squared)


KERNELS: dict[str, Callable[[Tensor], Tensor]] = {
    "matern": matern52,
    "rational_quadratic": rational_quadratic,
    "rbf": rbf,
}


class Coordinates(nn.Module):
    """Points as a kernel sees them: n x d -> n x c, every parameter spanning a length of 1.

    Numbers and ordinals keep one coordinate in [0, 1]; a category becomes K coordinates, one of them 1 / sqrt(2), so that
    two different categories are 1 apart; inactive parameters are 0, with a coordinate that says whether they are active.

    Args:
        space: the search space.
    """

    owner: Tensor

    def __init__(self, space: SearchSpace):
        super().__init__()
        self.space = space
        parameters = list(space.parameters.values())
        sizes = [len(p.choices) if isinstance(p, Categorical) else 1 for p in parameters]
        owner = [column for column, size in enumerate(sizes) for _ in range(size)]
        self.conditional = [column for column, p in enumerate(parameters) if p.when is not None]
        self.register_buffer("owner", torch.tensor(owner + self.conditional), persistent=False)
        self.categorical = [column for column, p in enumerate(parameters) if isinstance(p, Categorical)]
        span = [float(p.levels - 1) if isinstance(p, Ordinal) else 1.0 for p in parameters]
        self.register_buffer("span", torch.tensor(span, dtype=torch.float64), persistent=False)
        self.sizes = sizes

    span: Tensor

    def forward(self, points: Tensor) -> Tensor:
        parts = []
        scaled = points / self.span
        for column, size in enumerate(self.sizes):
            if column in self.categorical:
                levels = torch.arange(size, device=points.device)
                parts.append((points[..., column, None].round() == levels).to(points) * math.sqrt(0.5))
            else:
                parts.append(scaled[..., column, None])
        if self.conditional:
            active = self.space.active(points).to(points)
            parts = [part * active[..., column, None] for column, part in enumerate(parts)]
            parts.append(active[..., self.conditional])
        return torch.cat(parts, -1)


def squared_distances(x: Tensor, y: Tensor) -> Tensor:
    """All squared distances: n x c and m x c -> n x m."""
    squared = x.square().sum(-1, keepdim=True) + y.square().sum(-1) - 2 * x @ y.mT
    return squared.clamp(min=0)
