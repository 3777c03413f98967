"""Kernels with one length scale for each parameter (ARD), and priors of their hyperparameters."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import ModuleType
from typing import Any, Protocol, TypeAlias

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from deepbore.compute.arrays import Array, is_native, native
from deepbore.space import SearchSpace, features

TINY = 1e-20


def rbf(squared: Tensor) -> Tensor:
    """exp(-r^2 / 2)."""
    return (-0.5 * squared).exp()


def matern52(squared: Tensor) -> Tensor:
    """(1 + sqrt(5) r + 5 r^2 / 3) exp(-sqrt(5) r)."""
    r = (5 * squared).clamp(min=TINY).sqrt()  # the square root has no gradient at 0
    return (1 + r + r * r / 3) * (-r).exp()


def rational_quadratic(squared: Tensor) -> Tensor:
    """(1 + r^2 / 2)^-1, the mixture parameter being 1."""
    return 1 / (1 + 0.5 * squared)


KERNELS: dict[str, Callable[[Tensor], Tensor]] = {
    "matern": matern52,
    "rational_quadratic": rational_quadratic,
    "rbf": rbf,
}


# The same functions of squared distances s with their derivatives in s, None unless `slopes`, for arrays of NumPy or
# tensors (`xp` is numpy or torch). They allocate little, which would take most of the time.


def rbf_with_slope(squared: Array, xp: ModuleType, slopes: bool = True) -> tuple[Array, Array]:
    """exp(-s / 2), and -1/2 exp(-s / 2)."""
    value = xp.exp(-0.5 * squared)
    return value, -0.5 * value if slopes else None


def matern52_with_slope(squared: Array, xp: ModuleType, slopes: bool = True) -> tuple[Array, Array]:
    """(1 + r + r^2 / 3) exp(-r) with r^2 = 5 s, and -5/6 (1 + r) exp(-r)."""
    r = 5 * squared
    xp.sqrt(r, out=r)
    decay = -r
    xp.exp(decay, out=decay)
    r += 1
    value = (5 / 3) * squared
    value += r
    value *= decay
    if not slopes:
        return value, None
    decay *= -5 / 6
    r *= decay
    return value, r


def rational_quadratic_with_slope(squared: Array, xp: ModuleType, slopes: bool = True) -> tuple[Array, Array]:  # noqa: ARG001
    """(1 + s / 2)^-1, and -1/2 (1 + s / 2)^-2."""
    value = 1 / (1 + 0.5 * squared)
    return value, -0.5 * value * value if slopes else None


WITH_SLOPE: dict[Callable[[Tensor], Tensor], Callable[..., tuple[Array, Array]]] = {
    matern52: matern52_with_slope,
    rational_quadratic: rational_quadratic_with_slope,
    rbf: rbf_with_slope,
}


PullBack: TypeAlias = Callable[[np.ndarray], np.ndarray]


class Kernel(Protocol):
    """A kernel with the same k(x, x) at every point: the amplitude, a scalar."""

    @property
    def amplitude(self) -> Tensor: ...

    def __call__(self, x: Tensor, y: Tensor) -> Tensor:
        """n x c and m x c -> n x m, with gradients in both."""


class LearnedKernel(ABC):
    """A kernel in NumPy with derivatives in points by hand; in torch on accelerators, or to learn its hyperparameters.

    On a CPU, calls of torch would take longer than the arithmetic.
    """

    def __call__(self, x: Tensor, y: Tensor) -> Tensor:
        """n x c and m x c -> n x m, with gradients."""
        if not is_native(x) or any(each.requires_grad for each in self.hyperparameters):
            return self.by_torch(x, y)
        matrix: Tensor = KernelMatrix.apply(x, y, self)
        return matrix

    @property
    @abstractmethod
    def hyperparameters(self) -> tuple[Tensor, ...]:
        """All tensors that it depends on."""

    @abstractmethod
    def by_torch(self, x: Tensor, y: Tensor) -> Tensor:
        """n x c and m x c -> n x m."""

    @abstractmethod
    def by_hand(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """n x c and m x c -> n x m."""

    @abstractmethod
    def with_pull_back(self, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, PullBack]:
        """The same, and a function from a derivative in it (n x m) to that in x (n x c)."""


class KernelMatrix(torch.autograd.Function):
    """The matrix of a `LearnedKernel` between points x (n x c) and y (m x c) as a function of torch: n x m."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, y: Tensor, kernel: LearnedKernel) -> Tensor:
        ctx.xy, ctx.kernel = (native(x), native(y)), kernel
        if not ctx.needs_input_grad[0]:
            return torch.from_numpy(kernel.by_hand(*ctx.xy))
        matrix, ctx.pull_back = kernel.with_pull_back(*ctx.xy)
        return torch.from_numpy(matrix)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, derivative: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
        (x, y), by = ctx.xy, native(derivative)
        by_x = torch.from_numpy(ctx.pull_back(by)) if ctx.needs_input_grad[0] else None
        by_y = torch.from_numpy(ctx.kernel.with_pull_back(y, x)[1](by.T)) if ctx.needs_input_grad[1] else None
        return by_x, by_y, None


@dataclass(frozen=True)
class ScaledKernel(LearnedKernel):
    """k(x, y) = amplitude * function(sum_j (scale_j (x_j - y_j))^2).

    Attributes:
        function: one of `KERNELS`.
        scale: one over the length scale of each coordinate, c.
        amplitude: k(x, x), a scalar.
    """

    function: Callable[[Tensor], Tensor]
    scale: Tensor
    amplitude: Tensor

    @property
    def hyperparameters(self) -> tuple[Tensor, ...]:
        return self.scale, self.amplitude

    def by_torch(self, x: Tensor, y: Tensor) -> Tensor:
        return self.amplitude * self.function(features.squared_distances(x * self.scale, y * self.scale))

    def by_hand(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return self._with_slope(x, y, slopes=False)[0]

    def with_pull_back(self, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, PullBack]:
        value, slope = self._with_slope(x, y)
        scale, amplitude = self._numbers
        squared = scale * scale

        def pull_back(derivative: np.ndarray) -> np.ndarray:
            m = derivative * slope
            by_x: np.ndarray = (2 * amplitude) * squared * (m.sum(1)[:, None] * x - m @ y)
            return by_x

        return value, pull_back

    def _with_slope(self, x: np.ndarray, y: np.ndarray, slopes: bool = True) -> tuple[np.ndarray, np.ndarray]:
        """The matrix, and f' of the squared distances."""
        scale, amplitude = self._numbers
        squared = squared_distances(x * scale, y * scale)
        value, slope = WITH_SLOPE[self.function](squared, np, slopes)
        value *= amplitude
        return value, slope

    @cached_property
    def _numbers(self) -> tuple[np.ndarray, float]:
        """Scale and amplitude."""
        return native(self.scale), float(self.amplitude)


@dataclass(frozen=True)
class PartlyAdditiveKernel(LearnedKernel):
    """k(x, y) = (1 - share) k_all(x, y) + share / m sum_j k_j(x_j / ratio, y_j / ratio).

    Attributes:
        together: k_all, of all coordinates; k_j is the same kernel of the j-th of m groups of coordinates.
        share: in (0, 1), a scalar.
        ratio: the length scales of k_j divided by those of k_all, > 0, a scalar.
        groups: the coordinates of each group, usually those of one parameter.
    """

    together: ScaledKernel
    share: Tensor
    ratio: Tensor
    groups: tuple[Tensor, ...]

    @property
    def amplitude(self) -> Tensor:
        return self.together.amplitude

    @property
    def hyperparameters(self) -> tuple[Tensor, ...]:
        return *self.together.hyperparameters, self.share, self.ratio

    def by_torch(self, x: Tensor, y: Tensor) -> Tensor:
        scale = self.together.scale / self.ratio
        total = torch.zeros_like(self.amplitude)
        for own in self.groups:  # in a loop: all at once would take m times the memory
            alone = ScaledKernel(self.together.function, scale[own], self.amplitude)
            total = total + alone.by_torch(x[:, own], y[:, own])
        return torch.lerp(self.together.by_torch(x, y), total / len(self.groups), self.share)

    def by_hand(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """A group with few levels among the points has a table: a row for each level and y (l x m).

        The rows of the points are the product of a matrix that tells their levels (n x l, 0 or 1) and the table.
        """
        if not len(x):
            return np.zeros((0, len(y)))
        level, counts = self._split.levels(x)
        has_table = (counts <= FEW) & (self._split.sizes <= FEW + 1)
        few = np.flatnonzero(has_table)
        has = np.zeros((len(x), int(counts[few].sum())))
        np.put_along_axis(has, counts[few].cumsum() - counts[few] + level[:, few], 1.0, axis=1)
        added = (
            has @ self._function(self._squared(x[has.argmax(0)], y, np.repeat(few, counts[few])), np, slopes=False)[0]
        )
        for alone, own in self._alone(np.flatnonzero(~has_table)):
            added += alone.by_hand(x[:, own], y[:, own])
        return self._together_and(added, self.together.by_hand(x, y))

    def with_pull_back(self, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, PullBack]:
        """Groups of one or two coordinates are computed at once, for each group and point one row."""
        split, (n, c), m = self._split, x.shape, len(y)
        small = np.flatnonzero(split.sizes <= PAIR)
        of = np.repeat(small, n)
        value, slope = self._function(self._squared(np.tile(x, (len(small), 1)), y, of), np)
        added = value.reshape(len(small), n, m).sum(0)
        each = [
            (alone.with_pull_back(x[:, own], y[:, own]), own)
            for alone, own in self._alone(np.flatnonzero(split.sizes > PAIR))
        ]
        for (more, _), _ in each:
            added += more
        together, pull_back_together = self.together.with_pull_back(x, y)
        xs, ys = x * self._scale_alone, y.T * self._scale_alone[:, None]

        def pull_back(derivative: np.ndarray) -> np.ndarray:
            by_x = np.zeros((n, c + 1))  # the last for the second coordinate of groups with one
            by = 2 * slope.reshape(len(small), n, m) * derivative
            total = by.sum(-1)
            for own in split.padded[small, :PAIR].T:
                real = own < c
                gaps = total[real] * xs.T[own[real]] - (by[real] @ ys[own[real], :, None])[..., 0]
                by_x[:, own[real]] += (gaps * self._scale_alone[own[real], None]).T
            for (_, back), own in each:
                by_x[:, own] += back(derivative)
            return self._together_and(by_x[:, :c], pull_back_together(derivative))

        return self._together_and(added, together), pull_back

    def _together_and(self, added: np.ndarray, together: np.ndarray) -> np.ndarray:
        """The mixture of the sum over groups, in units of the amplitude, and of what all coordinates give."""
        share = float(self.share)
        return (1 - share) * together + (float(self.amplitude) * share / len(self.groups)) * added

    def _alone(self, which: np.ndarray) -> list[tuple[ScaledKernel, np.ndarray]]:
        """k_j / amplitude, and the coordinates of its group, for some groups."""
        return [self._each[group] for group in which]

    @cached_property
    def _each(self) -> list[tuple[ScaledKernel, np.ndarray]]:
        """k_j / amplitude, and the coordinates of its group."""
        scale, one = self.together.scale / self.ratio, torch.ones_like(self.amplitude)
        return [(ScaledKernel(self.together.function, scale[own], one), native(own)) for own in self.groups]

    def _squared(self, x: np.ndarray, y: np.ndarray, of: np.ndarray) -> np.ndarray:
        """The squared distances of r points, each in one group `of`, to all of y, in length scales (r x m)."""
        scale = self._scale_alone
        x, y = np.pad(x * scale, ((0, 0), (0, 1))), np.pad(y.T * scale[:, None], ((0, 1), (0, 0)))
        squared, at = np.zeros((len(x), y.shape[1])), np.arange(len(x))
        for own in self._split.padded[of].T:
            gap = x[at, own][:, None] - y[own]
            gap *= gap
            squared += gap
        return squared

    @property
    def _function(self) -> Callable[..., tuple[Array, Array]]:
        return WITH_SLOPE[self.together.function]

    @cached_property
    def _scale_alone(self) -> np.ndarray:
        """One over the length scales of the k_j, c."""
        scale: np.ndarray = native(self.together.scale / self.ratio)
        return scale

    @cached_property
    def _split(self) -> "Split":
        return Split.of([native(own) for own in self.groups])


FEW = 8  # levels up to which a group of an additive kernel has a table
PAIR = 2  # coordinates of a group up to which gradients of all groups are computed at once


@dataclass(frozen=True)
class Split:
    """A partition of c coordinates into m groups.

    Attributes:
        order: the coordinates, group by group, c.
        starts: where each group starts in the order, m.
        sizes: the number of its coordinates, m.
        padded: its coordinates, filled up with c, a coordinate that is always 0; of up to `FEW` + 1 coordinates, m x k.
    """

    order: np.ndarray
    starts: np.ndarray
    sizes: np.ndarray
    padded: np.ndarray

    @classmethod
    def of(cls, groups: Sequence[np.ndarray]) -> "Split":
        """From the coordinates of each group."""
        order, sizes = np.concatenate(groups), np.array([len(own) for own in groups])
        width = max((size for size in sizes if size <= FEW + 1), default=1)
        padded = np.full((len(groups), width), len(order))
        for row, own in zip(padded, groups, strict=True):
            row[: len(own)] = own[:width]
        return cls(order, sizes.cumsum() - sizes, sizes, padded)

    def levels(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The level of each group in n >= 1 points (n x c), numbered from 0 (n x m), and each group's number (m)."""
        weights = np.random.default_rng(0).random(len(self.order))  # so that different levels have different sums
        sums = np.add.reduceat(x[:, self.order] * weights, self.starts, axis=1)
        order = sums.argsort(0)
        ascending = np.take_along_axis(sums, order, 0)
        rank = (np.diff(ascending, axis=0, prepend=ascending[:1]) != 0).cumsum(0)
        level = np.empty_like(rank)
        np.put_along_axis(level, order, rank, 0)
        return level, rank[-1] + 1


def squared_distances(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """All squared distances by one product of matrices: n x c and m x c -> n x m."""
    left = np.concatenate([-2 * x, (x * x).sum(1, keepdims=True), np.ones((len(x), 1))], axis=1)
    right = np.concatenate([y, np.ones((len(y), 1)), (y * y).sum(1, keepdims=True)], axis=1)
    squared: np.ndarray = left @ right.T
    np.abs(squared, out=squared)  # of what is 0 rounding leaves either sign
    return squared


class MinMax:
    """The MinMax kernel sum_j min(x_j, y_j) / sum_j max(x_j, y_j) of bits or counts to m known rows y.

    Of bits it is the Tanimoto similarity, how many both have divided by how many either has. Two rows of zeros are
    equal, 1. As min(x, y) = sum_k [x >= k] [y >= k], it is a product of matrices for each k up to the largest count.

    Args:
        known: y, m x f whole numbers.

    Example:
        >>> MinMax(torch.tensor([[1.0, 1.0, 0.0], [2.0, 0.0, 1.0]]))(torch.tensor([[1.0, 0.0, 0.0]]))
        tensor([[0.5000, 0.3333]])

    References:
        Ralaivola, Swamidass, Saigo & Baldi, Graph kernels for chemical informatics, Neural Networks 2005.
    """

    def __init__(self, known: Tensor):
        self.total = known.sum(-1)
        self.steps: list[tuple[int, Tensor, Tensor]] = []
        for least in range(1, int(known.max()) + 1 if known.numel() else 1):
            columns = (known >= least).any(0).nonzero().squeeze(-1)
            self.steps.append((least, columns, (known[:, columns] >= least).to(known).T.contiguous()))

    def __call__(self, x: Tensor) -> Tensor:
        """n x f -> n x m."""
        both = x.new_zeros(len(x), len(self.total))
        for least, columns, reached in self.steps:
            both += (x[:, columns] >= least).to(x) @ reached
        either = x.sum(-1, keepdim=True) + self.total - both
        return torch.where(either > 0, both / either.clamp(min=1), 1.0)


SHARED = 0.25  # of the variance of labels in a library is that of their common mean


def with_shared(alike: Tensor) -> Tensor:
    """Similarities, in place, with a share that all levels have in common: the unknown mean of the labels."""
    return alike.mul_(1 - SHARED).add_(SHARED)


class LibraryKernel:
    """k(x, y) = (s + (1 - s) MinMax(features of x and y)) k_others(x, y), s = 1/4, where k_others has the amplitude.

    What all levels have in common, s, stands for the mean of the labels: levels unlike all that were tested are
    expected to be as good as most, not as bad as the worst.

    Args:
        features: which coordinates are features of the library, c booleans.
        others: the kernel of the other coordinates.
    """

    def __init__(self, features: Tensor, others: ScaledKernel):
        self.features, self.others = features, others
        self._known: tuple[Tensor, MinMax] | None = None  # of the latest y

    @property
    def amplitude(self) -> Tensor:
        return self.others.amplitude

    def __call__(self, x: Tensor, y: Tensor) -> Tensor:
        """n x c and m x c -> n x m."""
        if self._known is None or self._known[0] is not y:
            self._known = y, MinMax(y[:, self.features].float())
        alike = with_shared(self._known[1](x[:, self.features].float())).to(x)
        if bool(self.features.all()):
            return alike.mul_(self.amplitude)
        return alike * self.others(x[:, ~self.features], y[:, ~self.features])


# mean and standard deviation of the logarithm
LENGTH_SCALE, LEVEL_LENGTH_SCALE, AMPLITUDE = (-0.8, 1.0), (-0.1, 1.0), (0.0, 2.0)
ALIKE = 0.75  # prior correlation of the logarithms of two length scales in high-dimensional spaces
LAMBDA, LEVEL_LAMBDA = (-7.0, 2.0), (-6.0, 3.0)  # the latter without real parameters: a smooth kernel explains less


def prior_of(
    space: SearchSpace,
    length_scale: tuple[float, float] = LENGTH_SCALE,
    regularisation: tuple[float, float] = LAMBDA,
    amplitude: tuple[float, float] = AMPLITUDE,
) -> np.ndarray:
    """Mean and standard deviation of the logarithms of b length scales, the amplitude and lambda ((b + 2) x 2).

    Args:
        space: whose coordinates are b blocks, one for each parameter, and one more for each with descriptors.
        length_scale: mean and standard deviation, for real parameters.
        regularisation: mean and standard deviation, for spaces with real parameters.
        amplitude: mean and standard deviation.
    """
    parameters = list(space.parameters.values())
    blocks = [parameters[block.parameter] for block in features.Coordinates(space.points).blocks]
    scales = [length_scale if p.is_continuous else LEVEL_LENGTH_SCALE for p in blocks]
    prior = np.array([*scales, amplitude, regularisation if space.points.continuous_columns else LEVEL_LAMBDA])
    prior[: len(blocks), 0] += 0.5 * math.log(len(blocks))  # distances grow with the square root of their number
    return prior


def correlated(d: int) -> np.ndarray:
    """The prior precision of theta, in units of its standard deviations, with d correlated length scales."""
    precision = np.eye(d + 2)
    precision[:d, :d] = np.linalg.inv(ALIKE + (1 - ALIKE) * np.eye(d))
    return precision


def penalty(theta: np.ndarray, prior: np.ndarray, precision: np.ndarray) -> tuple[float, np.ndarray]:
    """Minus the log prior density, up to a constant, and its gradient in theta (d + 2).

    Args:
        theta: logarithms, d + 2.
        prior: their means and standard deviations, (d + 2) x 2.
        precision: in units of the standard deviations, (d + 2) x (d + 2).
    """
    score = (theta - prior[:, 0]) / prior[:, 1]
    pull = precision @ score
    return float(score @ pull / 2), pull / prior[:, 1]
