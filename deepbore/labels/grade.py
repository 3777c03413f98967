"""The grade of a value: the share of thresholds that it reaches."""

import math

import torch
from torch import Tensor

BLOCK = 2**15  # values that are graded at once, so that they stay in the cache


def graded_by_value(values: Tensor, best: float | Tensor, tau: float | Tensor, tail: float = 0.0) -> Tensor:
    """The share of thresholds t with y <= t: evenly spread over (y_min, tau), and thinning out beyond.

        u = clip((tau - y) / (tau - y_min), 0, 1),    b = max(y - tau, 0) / (tau - y_min)
        z = (u + c^2 / (c + b)) / (1 + c)

    With c = 0 there are none beyond tau, and z = u. Then E[z | x] is the integral of P(y <= t | x) over t in
    (y_min, tau), divided by tau - y_min. That is E[max(tau - max(y, y_min), 0) | x] up to scale: expected improvement
    over tau, truncated at y_min, without assumptions about densities. With c > 0 the integral has weights
    c^2 / (c + b)^2 beyond tau, c in total: improvement over many thresholds. Values worse than tau then keep their
    order, and z has no kink at tau. Proofs are in docs/theory.md.

    Args:
        values: n, or n x k; NaN gives 0.
        best: y_min; of n x k values that of each column.
        tau: the threshold, > best; as best.
        tail: c >= 0, the thresholds beyond tau as a share of those up to it.

    Returns:
        The grades, as values; in single precision if there are many.
    """
    if len(values) <= BLOCK:
        return _graded(_scaled(values, best, tau), tail)
    grades = torch.empty_like(values, dtype=torch.float)
    for part, found in zip(values.split(BLOCK), grades.split(BLOCK), strict=True):
        found.copy_(_graded(_scaled(part, best, tau).float(), tail))
    return grades


def _scaled(values: Tensor, best: float | Tensor, tau: float | Tensor) -> Tensor:
    """(tau - y) / (tau - y_min), minus infinity for NaN."""
    return (tau - values).div_(tau - best).nan_to_num_(nan=-math.inf)


def _graded(scaled: Tensor, tail: float) -> Tensor:
    reached = scaled.clamp(0, 1)
    if not tail:
        return reached
    beyond = scaled.neg_().clamp_(min=0)
    return reached.add_(beyond.add_(tail).reciprocal_(), alpha=tail**2).div_(1 + tail)
