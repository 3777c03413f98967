"""Climbing: gradient ascent of many points at once."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

RATE = 0.05  # the first step's length along a parameter, in units of its whole range; falls to 0
NEW, NEW_SQUARE = 0.2, 0.1  # weights of a new gradient and its square in their running means: short, for 20 steps
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
        first = (1 - NEW) * first + NEW * gradient
        second = (1 - NEW_SQUARE) * second + NEW_SQUARE * gradient.square()
        mean, square = first / (1 - (1 - NEW) ** step), second / (1 - (1 - NEW_SQUARE) ** step)
        move = RATE * (1 - (step - 1) / steps) * moves * (mean / (square.sqrt() + TINY))
        points = torch.minimum((points.detach() + move).clamp(min=0), upper)
    return points.detach()
