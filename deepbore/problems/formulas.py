"""The formulas of the synthetic problems: pure functions, vectors (... x d, natural units) -> values (...).

References:
    Surjanovic & Bingham, Virtual Library of Simulation Experiments, sfu.ca/~ssurjano/optimization.html.
    Forrester, Sobester & Keane, Engineering Design via Surrogate Modelling, 2008 (for `forrester`).
    Tiao et al., BORE: Bayesian Optimization by Density-Ratio Estimation, ICML 2021 (figure 1, for `sine_parabola`).
"""

import math

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

HARTMANN_ALPHA = np.array([1.0, 1.2, 3.0, 3.2])
HARTMANN_A = {
    3: np.array([[3, 10, 30], [0.1, 10, 35], [3, 10, 30], [0.1, 10, 35]]),
    6: np.array(
        [
            [10, 3, 17, 3.5, 1.7, 8],
            [0.05, 10, 17, 0.1, 8, 14],
            [3, 3.5, 1.7, 10, 17, 8],
            [17, 8, 0.05, 10, 0.1, 14],
        ]
    ),
}
HARTMANN_P = {
    3: 1e-4 * np.array([[3689, 1170, 2673], [4699, 4387, 7470], [1091, 8732, 5547], [381, 5743, 8828]]),
    6: 1e-4
    * np.array(
        [
            [1312, 1696, 5569, 124, 8283, 5886],
            [2329, 4135, 8307, 3736, 1004, 9991],
            [2348, 1451, 3522, 2883, 3047, 6650],
            [4047, 8828, 8732, 5743, 1091, 381],
        ]
    ),
}


def branin(x: Array) -> Array:
    """(x1 - 5.1 / (4 pi^2) x0^2 + 5 / pi x0 - 6)^2 + 10 (1 - 1 / (8 pi)) cos(x0) + 10."""
    x0, x1 = x[..., 0], x[..., 1]
    valley = x1 - 5.1 / (4 * math.pi**2) * x0**2 + 5 / math.pi * x0 - 6
    return np.asarray(valley**2 + 10 * (1 - 1 / (8 * math.pi)) * np.cos(x0) + 10)


def six_hump_camel(x: Array) -> Array:
    """(4 - 2.1 x0^2 + x0^4 / 3) x0^2 + x0 x1 + (4 x1^2 - 4) x1^2."""
    x0, x1 = x[..., 0], x[..., 1]
    return np.asarray((4 - 2.1 * x0**2 + x0**4 / 3) * x0**2 + x0 * x1 + (4 * x1**2 - 4) * x1**2)


def forrester(x: Array) -> Array:
    """(6 x0 - 2)^2 sin(12 x0 - 4)."""
    x0 = x[..., 0]
    return np.asarray((6 * x0 - 2) ** 2 * np.sin(12 * x0 - 4))


def sine_parabola(x: Array) -> Array:
    """sin(3 x0) + x0^2 - 0.7 x0."""
    x0 = x[..., 0]
    return np.asarray(np.sin(3 * x0) + x0**2 - 0.7 * x0)


def flat(x: Array) -> Array:
    """0 everywhere."""
    return np.zeros(x.shape[:-1])


def hartmann(x: Array) -> Array:
    """-sum_i alpha_i exp(-sum_j A_ij (x_j - P_ij)^2), for d = 3 or 6."""
    d = x.shape[-1]
    distance = np.sum(HARTMANN_A[d] * (x[..., None, :] - HARTMANN_P[d]) ** 2, axis=-1)  # ... x 4
    return np.asarray(-np.sum(HARTMANN_ALPHA * np.exp(-distance), axis=-1))


def ackley(x: Array) -> Array:
    """-20 exp(-0.2 sqrt(mean_j x_j^2)) - exp(mean_j cos(2 pi x_j)) + 20 + e."""
    bowl = -20 * np.exp(-0.2 * np.sqrt(np.mean(x**2, axis=-1)))
    ripples = -np.exp(np.mean(np.cos(2 * math.pi * x), axis=-1))
    return np.asarray(bowl + ripples + 20 + math.e)


def rosenbrock(x: Array) -> Array:
    """sum_j 100 (x_{j+1} - x_j^2)^2 + (1 - x_j)^2, j = 0 ... d - 2."""
    here, after = x[..., :-1], x[..., 1:]
    return np.asarray(np.sum(100 * (after - here**2) ** 2 + (1 - here) ** 2, axis=-1))


def levy(x: Array) -> Array:
    """sin^2(pi w_0) + sum_{j < d-1} (w_j - 1)^2 (1 + 10 sin^2(pi w_j + 1)) + (w_{d-1} - 1)^2 (1 + sin^2(2 pi w_{d-1})).

    Here w_j = 1 + (x_j - 1) / 4.
    """
    w = 1 + (x - 1) / 4
    before, last = w[..., :-1], w[..., -1]
    first = np.sin(math.pi * w[..., 0]) ** 2
    middle = np.sum((before - 1) ** 2 * (1 + 10 * np.sin(math.pi * before + 1) ** 2), axis=-1)
    return np.asarray(first + middle + (last - 1) ** 2 * (1 + np.sin(2 * math.pi * last) ** 2))


def michalewicz(x: Array) -> Array:
    """-sum_j sin(x_j) sin^(2 m)((j + 1) x_j^2 / pi), j = 0 ... d - 1, with m = 10."""
    count = np.arange(1, x.shape[-1] + 1)
    return np.asarray(-np.sum(np.sin(x) * np.sin(count * x**2 / math.pi) ** 20, axis=-1))
