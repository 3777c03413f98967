"""A prior that falls towards the ends of ranges, where a stationary kernel is most uncertain.

docs/ablation.md has what came of it ("Towards the ends of ranges").
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

import deepbore as db
from deepbore.classifiers.kernel.evidence import AutogradGram, Gram
from deepbore.classifiers.kernel.kernels import ScaledKernel
from deepbore.classifiers.kernel.posterior import KernelPosterior
from deepbore.classifiers.posterior import Posterior
from deepbore.space.features import Coordinates
from peers.variants.settings import Settings


@dataclass(frozen=True)
class FallingKernel:
    """k(x, y) s(x) s(y), with s the product of end^((2 x_j - 1)^2) over the active real parameters j.

    Attributes:
        kernel: k.
        coordinates: what it sees of points.
        end: in (0, 1].
    """

    kernel: ScaledKernel
    coordinates: Coordinates
    end: float

    @property
    def amplitude(self) -> Tensor:
        return self.kernel.amplitude

    def __call__(self, x: Tensor, y: Tensor) -> Tensor:
        """n x c and m x c -> n x m."""
        return self.kernel(x, y) * self.height(x)[:, None] * self.height(y)

    def height(self, x: Tensor) -> Tensor:
        """s: n x c -> n."""
        owner, columns = self.coordinates.owner.tolist(), self.coordinates.space.continuous_columns
        last = {column: place for place, column in enumerate(owner)}  # of a conditional one: whether it is active
        real = [owner.index(column) for column in columns]
        active = [last[column] if last[column] != place else -1 for column, place in zip(columns, real, strict=True)]
        with_one = torch.cat([x, torch.ones_like(x[:, :1])], dim=-1)
        return (math.log(self.end) * (with_one[:, active] * (2 * x[:, real] - 1).square()).sum(-1)).exp()


class FallingPosterior(KernelPosterior):
    """`KernelPosterior` whose prior deviation is another at each point."""

    of_moments = Posterior.of_moments  # by mean and std below

    @cached_property
    def std(self) -> Tensor:
        prior = self.model.kernel.amplitude * self.model.kernel.height(self.x).square()
        return (prior - self._explained.square().sum(-1)).clamp(min=1e-12).sqrt()


class Ends(db.KernelPLS):
    """`KernelPLS` whose prior falls towards the ends of real parameters, in spaces with levels.

    Args:
        end: the prior deviation at an end of one parameter's range by that in the middle, in (0, 1].
        everywhere: in spaces of real parameters alone, too.
    """

    def __init__(self, end: float = 0.9, everywhere: bool = False):
        super().__init__()
        self.end, self.everywhere = end, everywhere

    def build(self, space: db.SearchSpace, outputs: int) -> None:
        self.falls = bool(space.points.continuous_columns) and (self.everywhere or not space.points.is_continuous)
        super().build(space, outputs)

    def _kernel(self, theta: Tensor) -> FallingKernel | ScaledKernel:
        kernel = super()._kernel(theta)
        return FallingKernel(kernel, self.coordinates, self.end) if self.falls else kernel

    def _gram(self) -> Gram:
        return AutogradGram(self._kernel, self._x)

    def posterior(self, points: Tensor) -> KernelPosterior:
        known = super().posterior(points)
        return FallingPosterior(known.model, known.x) if self.falls else known


class Margin(Ends):
    """Improvement counts from so far beyond the best label on; labels lie in [0, 1].

    Args:
        margin: how far.
    """

    def __init__(self, margin: float):
        super().__init__()
        self.margin = margin

    def keep_best(self, best: float | Tensor) -> None:
        super().keep_best(best)
        self.best_label.add_(self.margin)


VARIANTS: dict[str, Callable[[], Settings]] = {
    "deepbore:ends": lambda: {"classifier": Ends()},
    "deepbore:ends-.8": lambda: {"classifier": Ends(0.8)},
    "deepbore:ends-.7": lambda: {"classifier": Ends(0.7)},
    "deepbore:ends-everywhere": lambda: {"classifier": Ends(everywhere=True)},
    "deepbore:ends+margin-.03": lambda: {"classifier": Margin(0.03)},
    "deepbore:ends+margin-.1": lambda: {"classifier": Margin(0.1)},
    "deepbore:ends+margin-.3": lambda: {"classifier": Margin(0.3)},
}
