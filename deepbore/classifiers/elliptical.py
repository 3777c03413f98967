"""Elliptical slice sampling: a Markov chain under a Gaussian prior, without a step size."""

import math
from collections.abc import Callable

import numpy as np
import torch

TINY = 1e-9  # a slice so short is where the chain is, up to rounding


def elliptical_slice(
    start: np.ndarray, log_likelihood: Callable[[np.ndarray], float], steps: int, generator: torch.Generator
) -> np.ndarray:
    """Where a chain is after some steps, whose stationary density is N(x; 0, I) times the likelihood (d).

    Each step draws from the prior, and goes somewhere on the ellipse through there and where it is: a slice of the
    ellipse is drawn from until the likelihood is high enough, and shrinks towards where the chain is.

    Args:
        start: d.
        log_likelihood: x (d) -> its logarithm, up to a constant; -inf where x is impossible.
        steps: of the chain.
        generator: on the CPU.

    References:
        Murray, Adams & MacKay, Elliptical slice sampling, AISTATS 2010 (figure 2).
    """

    def uniform() -> float:
        return float(torch.rand((), dtype=torch.float64, generator=generator))

    x, height = start, log_likelihood(start)
    for _ in range(steps):
        other = torch.randn(len(start), dtype=torch.float64, generator=generator).numpy()
        level = height + math.log(1 - uniform())
        angle = 2 * math.pi * uniform()
        low, high = angle - 2 * math.pi, angle
        while True:
            there = x * math.cos(angle) + other * math.sin(angle)
            height = log_likelihood(there)
            if height >= level or high - low < TINY:
                break
            low, high = (angle, high) if angle < 0 else (low, angle)
            angle = low + (high - low) * uniform()
        x = there
    return x
