"""Kernels with one length scale for each parameter (ARD), and priors of their hyperparameters."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from deepbore.space import SearchSpace
from deepbore.space.features import squared_distances

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


# The same functions with their derivatives in the squared distance, for arrays of NumPy or tensors (`xp` is numpy or
# torch). They allocate little, which would take most of the time.


def rbf_with_slope(squared: Any, xp: ModuleType) -> tuple[Any, Any]:
    """exp(-s / 2), and its derivative in s."""
    value = xp.exp(-0.5 * squared)
    return value, -0.5 * value


def matern52_with_slope(squared: Any, xp: ModuleType) -> tuple[Any, Any]:
    """(1 + r + r^2 / 3) exp(-r) with r^2 = 5 s, and its derivative in s, -5/6 (1 + r) exp(-r)."""
    r = xp.sqrt(5 * squared)
    decay = xp.exp(-r)
    r += 1
    value = (5 / 3) * squared
    value += r
    value *= decay
    decay *= -5 / 6
    r *= decay
    return value, r


def rational_quadratic_with_slope(squared: Any, xp: ModuleType) -> tuple[Any, Any]:  # noqa: ARG001
    """(1 + s / 2)^-1, and its derivative in s."""
    value = 1 / (1 + 0.5 * squared)
    return value, -0.5 * value * value


WITH_SLOPE: dict[Callable[[Tensor], Tensor], Callable[[Any, ModuleType], tuple[Any, Any]]] = {
    matern52: matern52_with_slope,
    rational_quadratic: rational_quadratic_with_slope,
    rbf: rbf_with_slope,
}


class Kernel(Protocol):
    """A kernel with the same k(x, x) at every point: the amplitude, a scalar."""

    @property
    def amplitude(self) -> Tensor: ...

    def __call__(self, x: Tensor, y: Tensor) -> Tensor:
        """n x c and m x c -> n x m."""


@dataclass(frozen=True)
class ScaledKernel:
    """k(x, y) = amplitude * function(sum_j (scale_j (x_j - y_j))^2).

    Attributes:
        function: one of `KERNELS`.
        scale: one over the length scale of each coordinate, c.
        amplitude: k(x, x), a scalar.
    """

    function: Callable[[Tensor], Tensor]
    scale: Tensor
    amplitude: Tensor

    def __call__(self, x: Tensor, y: Tensor) -> Tensor:
        """n x c and m x c -> n x m."""
        return self.amplitude * self.function(squared_distances(x * self.scale, y * self.scale))


@dataclass(frozen=True)
class PartlyAdditiveKernel:
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

    def __call__(self, x: Tensor, y: Tensor) -> Tensor:
        """n x c and m x c -> n x m."""
        scale = self.together.scale / self.ratio
        total = torch.zeros_like(self.amplitude)
        for own in self.groups:  # in a loop: all at once would take m times the memory
            total = total + ScaledKernel(self.together.function, scale[own], self.amplitude)(x[:, own], y[:, own])
        return torch.lerp(self.together(x, y), total / len(self.groups), self.share)


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
    """Mean and standard deviation of the logarithms of d length scales, the amplitude and lambda ((d + 2) x 2).

    Args:
        space: of d parameters.
        length_scale: mean and standard deviation, for real parameters.
        regularisation: mean and standard deviation, for spaces with real parameters.
        amplitude: mean and standard deviation.
    """
    d = len(space)
    scales = [length_scale if p.is_continuous else LEVEL_LENGTH_SCALE for p in space.parameters.values()]
    prior = np.array([*scales, amplitude, regularisation if space.continuous_columns else LEVEL_LAMBDA])
    prior[:d, 0] += 0.5 * math.log(d)  # distances grow with the square root of d
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
