"""Points as kernels and distances see them."""

import math

import torch
from torch import Tensor, nn

from deepbore.space.parameters import Categorical, Ordinal, Parameter
from deepbore.space.search_space import SearchSpace


class Coordinates(nn.Module):
    """Points as a kernel sees them: n x d -> n x c, every parameter spanning a length of 1.

    Numbers and ordinals keep one coordinate in [0, 1]. A category becomes K coordinates, one of them 1 / sqrt(2), so
    that any two are 1 apart. A conditional parameter gets one more that says whether it is active,
    and is 0 where it is not.

    Args:
        space: the search space.

    Attributes:
        owner: the parameter that each of the c coordinates belongs to.
    """

    owner: Tensor
    columns: Tensor
    levels: Tensor
    span: Tensor

    def __init__(self, space: SearchSpace):
        super().__init__()
        parameters = list(space.parameters.values())
        self.space = space
        self.conditional = [column for column, p in enumerate(parameters) if p.when is not None]
        rows = [(column, level) for column, p in enumerate(parameters) for level in _levels_told_apart(p)]
        columns = torch.tensor([column for column, _ in rows])
        span = [float(p.levels - 1) if isinstance(p, Ordinal) else 1.0 for p in parameters]
        self.register_buffer("columns", columns, persistent=False)
        self.register_buffer("owner", torch.cat([columns, torch.tensor(self.conditional).long()]), persistent=False)
        self.register_buffer("levels", torch.tensor([level for _, level in rows]), persistent=False)
        self.register_buffer("span", torch.tensor(span, dtype=torch.float64)[columns], persistent=False)

    @property
    def size(self) -> int:
        """c, the number of coordinates."""
        return len(self.owner)

    def forward(self, points: Tensor) -> Tensor:
        """Points (n x d) -> coordinates (n x c), with gradients in the numeric columns."""
        columns = points[..., self.columns]
        chosen = (columns.round() == self.levels).to(points) * math.sqrt(0.5)
        x = torch.where(self.levels < 0, columns / self.span, chosen)
        if not self.conditional:
            return x
        active = self.space.active(points).to(points)
        return torch.cat([x * active[..., self.columns], active[..., self.conditional]], dim=-1)


def _levels_told_apart(parameter: Parameter) -> range:
    """The levels that get a coordinate each; -1 alone for one coordinate along the scale."""
    return range(len(parameter.choices)) if isinstance(parameter, Categorical) else range(-1, 0)


def squared_distances(x: Tensor, y: Tensor) -> Tensor:
    """All squared distances: n x c and m x c -> n x m."""
    squared = x.square().sum(-1, keepdim=True) + y.square().sum(-1) - 2 * x @ y.mT
    return squared.clamp(min=0)
