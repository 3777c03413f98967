"""Stationary kernels with one length scale a parameter (ARD), as functions of a squared distance."""

from collections.abc import Callable

from torch import Tensor

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
