"""Climbing: gradient ascent of many points at once."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

RATE = 0.05  # the first step's length along a parameter, in units of its whole range; falls to 0
MOMENTUM, SCALE_MEMORY = 0.8, 0.9  # decay of the running means of gradients and their squares; short, for 20 steps
TINY = 1e-12  # under the root of squares: a step in a direction without gradient is 0


def climbed(
    value: Callable[[Tensor], Tensor], starts: Tensor, columns: Sequence[int], upper: Tensor, steps: int
) -> Tensor:
    """Points after Adam's ascent on some of their columns, all at once and each with step sizes of its own (k x d).

    Args:
        value: points (k x d) -> values (k), with gradients.
        starts: k x d.
        columns: those that move.
        upper: greatest entries of the columns, d; the least are 0.
        steps: how many.

    References:
        Kingma & Ba, Adam: a method for stochastic optimization, 2015 (algorithm 1).
    """
    points = starts.clone()
    if not len(points):
        return points
    first, second = torch.zeros_like(points), torch.zeros_like(points)
    moves = torch.zeros_like(points[0]).index_fill(0, torch.tensor(columns, device=points.device), 1.0)
    for step in range(1, steps + 1):
        points.requires_grad_(True)
        (gradient,) = torch.autograd.grad(value(points).sum(), points)
        first = MOMENTUM * first + (1 - MOMENTUM) * gradient
        second = SCALE_MEMORY * second + (1 - SCALE_MEMORY) * gradient.square()
        direction = first / (1 - MOMENTUM**step) / ((second / (1 - SCALE_MEMORY**step)).sqrt() + TINY)
        rate = RATE * (1 - (step - 1) / steps)
        points = torch.minimum((points.detach() + rate * moves * direction).clamp(min=0), upper)
    return points.detach()
