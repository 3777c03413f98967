"""Kernels that add what single parameters, or groups of them, do to what all do together, in spaces with levels.

docs/ablation.md has what came of it ("Kernels that add").
"""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

import deepbore as db
from deepbore.classifiers.kernel.evidence import AutogradGram, Gram
from deepbore.classifiers.kernel.kernels import PartlyAdditiveKernel, ScaledKernel
from peers.variants.settings import Settings

SHARE = (0.0, 1.5)  # mean and standard deviation of the logit of what is added
SHARE_BOUNDS = (-5.0, 5.0)


class Additive(db.KernelPLS):
    """`KernelPLS` with a `PartlyAdditiveKernel` in spaces with levels; its share is learned with all else.

    Args:
        alone: whether each parameter is a group; if not, there are two, those with levels and the real ones.
    """

    def __init__(self, alone: bool = True):
        super().__init__()
        self.alone = alone

    def build(self, space: db.SearchSpace, outputs: int) -> None:
        self.groups: tuple[Tensor, ...] = ()
        super().build(space, outputs)
        if space.points.is_continuous:
            return
        of = self.coordinates.owner
        if not self.alone:
            of = torch.isin(of, torch.tensor(space.points.continuous_columns, dtype=torch.long))
        self.groups = tuple((of == group).nonzero().squeeze(-1) for group in of.unique())
        d = len(space)
        self._prior = np.insert(self._prior, d, SHARE, axis=0)
        self._prior_precision = np.eye(d + 3)
        self._bounds.insert(d, SHARE_BOUNDS)
        self.theta = torch.cat([self.theta[:d], self.theta.new_full((1,), SHARE[0]), self.theta[d:]])

    def _kernel(self, theta: Tensor) -> PartlyAdditiveKernel | ScaledKernel:
        if not self.groups:
            return super()._kernel(theta)
        kernel = super()._kernel(torch.cat([theta[:-3], theta[-2:]]))
        return PartlyAdditiveKernel(kernel, theta[-3].sigmoid(), torch.ones_like(theta[-3]), self.groups)

    def _gram(self) -> Gram:
        return AutogradGram(self._kernel, self._x)


VARIANTS: dict[str, Callable[[], Settings]] = {
    "deepbore:additive": lambda: {"classifier": Additive()},
    "deepbore:mixed": lambda: {"classifier": Additive(alone=False)},
}
