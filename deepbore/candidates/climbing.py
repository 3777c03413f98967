"""Climbing: gradient ascent of many points at once, and of single ones to the last digits."""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from scipy.optimize import Bounds, minimize
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


def at_peak(
    value: Callable[[Tensor], Tensor], start: Tensor, columns: Sequence[int], upper: Tensor, iterations: int
) -> Tensor:
    """The point (d) where L-BFGS-B's ascent on some of a point's columns ends.

    SciPy steps: at every iteration the point and its gradient, and nothing else, visit the CPU.

    Args:
        value: points (k x d) -> values (k), with gradients.
        start: d.
        columns: those that move.
        upper: greatest entries of the columns, d; the least are 0.
        iterations: at most.
    """
    moving = torch.tensor(columns, device=start.device)

    def placed(entries: np.ndarray) -> Tensor:
        return start.index_put((moving,), torch.from_numpy(entries).to(start))

    def descent(entries: np.ndarray) -> tuple[float, np.ndarray]:
        point = placed(entries).requires_grad_(True)
        reached = value(point[None]).squeeze(0)
        (gradient,) = torch.autograd.grad(reached, point)
        return -float(reached.detach()), -gradient[moving].double().cpu().numpy()

    entries = start[moving].double().cpu().numpy()
    bounds = Bounds(np.zeros(len(moving)), upper[moving].double().cpu().numpy())
    found = minimize(descent, entries, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": iterations})
    return placed(np.asarray(found.x)) if np.isfinite(found.fun) else start
