"""Kernels that add what single parameters, or groups of them, do to what all do together, in spaces with levels.

docs/ablation.md has what came of it ("Kernels that add").
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

import deepbore as db
from deepbore.classifiers.kernels import ScaledKernel
from peers.variants.settings import Settings

SHARE = (0.0, 1.5)  # mean and standard deviation of the logit of what is added
SHARE_BOUNDS = (-5.0, 5.0)


@dataclass(frozen=True)
class SummedKernel:
    """(1 - share) k(x, y) + share / m sum_j k(x_j, y_j), with k on all coordinates and on those of each of m groups.

    Attributes:
        kernel: k.
        share: in (0, 1), a scalar.
        groups: the coordinates of each.
    """

    kernel: ScaledKernel
    share: Tensor
    groups: tuple[Tensor, ...]

    @property
    def amplitude(self) -> Tensor:
        return self.kernel.amplitude

    def __call__(self, x: Tensor, y: Tensor) -> Tensor:
        """n x c and m x c -> n x m."""
        function, scale, amplitude = self.kernel.function, self.kernel.scale, self.kernel.amplitude
        parts = [ScaledKernel(function, scale[group], amplitude)(x[:, group], y[:, group]) for group in self.groups]
        return torch.lerp(self.kernel(x, y), torch.stack(parts).mean(0), self.share)


class Additive(db.KernelPLS):
    """`KernelPLS` with a `SummedKernel` in spaces with levels; its share is learned with all else.

    Args:
        alone: whether each parameter is a group; if not, there are two, those with levels and the real ones.
    """

    def __init__(self, alone: bool = True):
        super().__init__()
        self.alone = alone

    def build(self, space: db.SearchSpace, outputs: int) -> None:
        self.groups: tuple[Tensor, ...] = ()
        super().build(space, outputs)
        if space.is_continuous:
            return
        of = self.coordinates.owner
        if not self.alone:
            of = torch.isin(of, torch.tensor(space.continuous_columns, dtype=torch.long))
        self.groups = tuple((of == group).nonzero().squeeze(-1) for group in of.unique())
        d = len(space)
        self._prior = np.insert(self._prior, d, SHARE, axis=0)
        self._prior_precision = np.eye(d + 3)
        self._bounds.insert(d, SHARE_BOUNDS)
        self.theta = torch.cat([self.theta[:d], self.theta.new_full((1,), SHARE[0]), self.theta[d:]])

    def _kernel(self, theta: Tensor) -> SummedKernel | ScaledKernel:
        if not self.groups:
            return super()._kernel(theta)
        kernel = super()._kernel(torch.cat([theta[:-3], theta[-2:]]))
        return SummedKernel(kernel, theta[-3].sigmoid(), self.groups)


VARIANTS: dict[str, Callable[[], Settings]] = {
    "deepbore:additive": lambda: {"classifier": Additive()},
    "deepbore:mixed": lambda: {"classifier": Additive(alone=False)},
}
