"""`Relaxation`: any space as a box of real numbers."""

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from deepbore.space.parameters import Real
from deepbore.space.search_space import SearchSpace
from deepbore.space.structure import free_name


class Relaxation:
    """Points as vectors in a box [0, 1]^r, and vectors as the nearest points.

    Numbers and ordinals are one number each, the level's index divided by the greatest. A category is one-hot, and its
    level is that of the greatest entry. This is how BORE-MLP and its Gaussian process baselines see discrete parameters
    (Tiao et al. 2021, section 5). Inactive parameters have their first level. Parameters that are fixed in the space
    are fixed in the box.

    Args:
        space: any space.

    Attributes:
        box: the space of r real numbers.

    Example:
        >>> from deepbore import Categorical, Ordinal, SearchSpace
        >>> space = SearchSpace({"k": Ordinal([1, 2, 4]), "c": Categorical(["a", "b"])})
        >>> relaxation = Relaxation(space)
        >>> relaxation.vectors(space.encode([{"k": 2, "c": "b"}])).tolist()
        [[0.5, 0.0, 1.0]]
        >>> space.decode(relaxation.points(torch.tensor([[0.3, 0.9, 0.2]])))
        [{'k': 2, 'c': 'a'}]
    """

    def __init__(self, space: SearchSpace):
        self.space = space
        self._widths = [1 if p.is_ordered or p.levels is None else p.levels for p in space.parameters.values()]
        taken = set(space.names)
        names = []
        for name, width in zip(space.names, self._widths, strict=True):
            own = [name] if width == 1 else [free_name(f"{name}, {level}", taken) for level in range(width)]
            taken.update(own)
            names += own
        self.box = SearchSpace({name: Real(0, 1) for name in names}, fixed=self._fixed(names))

    def _fixed(self, names: list[str]) -> dict[str, float]:
        """Name -> value in the box of fixed parameters, active or not."""
        fixed = self.space.points.apply_fixed(torch.zeros(1, len(self.space), dtype=torch.float64))
        owners = [name for name, width in zip(self.space.names, self._widths, strict=True) for _ in range(width)]
        entries = zip(owners, names, torch.cat(self._columns(fixed), dim=-1)[0].tolist(), strict=True)
        return {name: entry for owner, name, entry in entries if owner in self.space.fixed}

    def vectors(self, points: Tensor) -> Tensor:
        """Points (n x d) -> vectors (n x r), with gradients where a parameter is one number."""
        return torch.cat(self._columns(torch.where(self.space.points.active(points), points, 0.0)), dim=-1)

    def _columns(self, points: Tensor) -> list[Tensor]:
        """The numbers of each parameter, taken as active in all points (n x d): d tensors, n x its width."""
        return [
            points[:, [column]] / parameter.upper
            if width == 1
            else one_hot(parameter.to_level(points[:, column]).long(), width).to(points)
            for column, (parameter, width) in enumerate(zip(self.space.parameters.values(), self._widths, strict=True))
        ]

    def points(self, vectors: Tensor) -> Tensor:
        """Vectors (n x r) -> points of configurations (n x d)."""
        columns = [
            part[:, 0] * parameter.upper if width == 1 else parameter.from_level(part.argmax(-1).to(vectors))
            for part, parameter, width in zip(
                vectors.split(self._widths, dim=-1), self.space.parameters.values(), self._widths, strict=True
            )
        ]
        return self.space.points.snap(torch.stack(columns, dim=-1))
