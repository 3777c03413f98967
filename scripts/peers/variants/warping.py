"""A variant that learns how each real parameter is warped before the kernel sees it.

docs/ablation.md has what came of it ("The last leads").
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

import deepbore as db
from deepbore.classifiers.kernel.evidence import AutogradGram, Gram
from deepbore.classifiers.kernel.kernels import ScaledKernel

WARP = (0.0, 0.5)  # mean and deviation of the logarithms of a and b: no warp, within a factor of e at two deviations
WARP_BOUNDS = (-1.6, 1.6)
EDGE = 1e-6  # as near to the ends of [0, 1] as a coordinate comes: the warp's derivatives may be infinite there


@dataclass(frozen=True)
class WarpedKernel:
    """A kernel on coordinates that are warped by the distribution function of Kumaraswamy, 1 - (1 - x^a)^b.

    Attributes:
        kernel: on the warped coordinates.
        columns: which coordinates are warped, d of them.
        a, b: exponents > 0, d each.
    """

    kernel: ScaledKernel
    columns: Tensor
    a: Tensor
    b: Tensor

    @property
    def amplitude(self) -> Tensor:
        return self.kernel.amplitude

    def __call__(self, x: Tensor, y: Tensor) -> Tensor:
        """n x c and m x c -> n x m."""
        return self.kernel(self.warped(x), self.warped(y))

    def warped(self, x: Tensor) -> Tensor:
        """n x c -> n x c."""
        inside = x[:, self.columns].clamp(EDGE, 1 - EDGE)
        return x.index_copy(1, self.columns, 1 - (1 - inside**self.a) ** self.b)


class InputWarping(db.KernelPLS):
    """`KernelPLS` with two more settings for each real parameter, the exponents of its warp.

    References:
        Snoek, Swersky, Zemel & Adams, Input warping for Bayesian optimization of non-stationary functions, ICML 2014.
    """

    def build(self, space: db.SearchSpace, outputs: int) -> None:
        super().build(space, outputs)
        real = [number for number, p in enumerate(space.parameters.values()) if p.is_continuous]
        self.warped = torch.tensor([int((self.coordinates.owner == number).nonzero()[0]) for number in real])
        exponents = 2 * len(real)
        self._prior = np.concatenate([np.array([WARP] * exponents).reshape(-1, 2), self._prior])
        self._prior_precision = np.eye(len(self._prior))
        self._bounds = [WARP_BOUNDS] * exponents + self._bounds
        self.theta = torch.from_numpy(self._prior[:, 0].copy())
        self._remember(self._x, self._data)

    def _kernel(self, theta: Tensor) -> WarpedKernel | ScaledKernel:
        real = len(self.warped) if hasattr(self, "warped") else 0  # the base's `build` asks before they are known
        kernel = super()._kernel(theta[2 * real :])
        if not real:
            return kernel
        a, b = theta[: 2 * real].exp().split(real)
        return WarpedKernel(kernel, self.warped, a, b)

    def _gram(self) -> Gram:
        return AutogradGram(self._kernel, self._x)


VARIANTS: dict[str, Callable[[], dict[str, object]]] = {
    "deepbore:input-warping": lambda: {"classifier": InputWarping(), "candidates": db.GreedyBatch()},
}
