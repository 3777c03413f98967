"""Preferred pairs of trials, and the utilities that explain them (Bradley and Terry). No torch."""

from collections.abc import Sequence

import numpy as np
from scipy.linalg import cho_factor, cho_solve

SCALE = 3.0  # prior standard deviation of a utility: of two things one is mostly clearly better
STEPS, TOLERANCE, SHORTEST = 100, 1e-10, 1e-9
SLACK = 1e-12  # relative: an objective that is larger by rounding alone is no overshoot
REDUCTION = 1e-10  # of the residual in conjugate gradients
DECIMALS = 6  # utilities that differ by less are equal, as the comparisons have it, and not by rounding


def fitted_utilities(n: int, pairs: np.ndarray, covariance: np.ndarray | None = None) -> np.ndarray:
    """The most likely utilities of n things after comparisons, under a Gaussian prior.

        P(i is preferred to j) = 1 / (1 + exp(u_j - u_i)),    u ~ N(0, K)

    With the prior there is exactly one maximum of the posterior for any set of pairs, contradictory ones, and things
    that have only won, included. It is that of a logistic regression on the differences with a ridge, found by Newton's
    method; a step that would overshoot is halved. The cost of independent utilities is linear in n and m, that of
    others cubic in m.

    Args:
        n: how many things there are.
        pairs: m x 2 numbers below n, the preferred one first; a pair may come again, either way round.
        covariance: K, n x n; None for independent utilities with the standard deviation 3.

    Returns:
        n utilities.

    Example:
        >>> fitted_utilities(3, np.array([[0, 1], [0, 1], [1, 0]])).round(2).tolist()
        [0.32, -0.32, 0.0]

    References:
        Bradley & Terry, Rank analysis of incomplete block designs: I. The method of paired comparisons, Biometrika 39
        (1952), eq. 2. With a prior by a kernel: Chu & Ghahramani, Preference learning with Gaussian processes, ICML
        2005, section 2, with a logistic function for their probit.
    """
    better, worse = pairs.reshape(-1, 2).T
    prior = _Independent(n, better, worse) if covariance is None else _Correlated(covariance, better, worse)

    def objective(x: np.ndarray) -> float:  # the negative log posterior, up to a constant
        return float(np.logaddexp(0, -prior.differences(x)).sum()) + prior.penalty(x)

    x = np.zeros(n if covariance is None else len(better))
    reached = objective(x)
    for _ in range(STEPS):
        surprise = 1 / (1 + np.exp(prior.differences(x)))  # P(the other one)
        gradient = prior.gradient(x, surprise)
        if np.abs(gradient).max(initial=0.0) < TOLERANCE:
            break
        step, length = prior.newton_step(surprise * (1 - surprise), gradient), 1.0
        while (tried := objective(x - length * step)) > (1 + SLACK) * reached and length > SHORTEST:
            length /= 2
        x, reached = x - length * step, tried
    utilities: np.ndarray = prior.utilities(x).round(DECIMALS) + 0.0  # -0.0 is 0.0
    return utilities


class _Independent:
    """Independent utilities u = s x, whose differences are D u: each row of D (m x n) has a 1 and a -1."""

    def __init__(self, n: int, better: np.ndarray, worse: np.ndarray):
        self.n, self.better, self.worse = n, better, worse

    def utilities(self, x: np.ndarray) -> np.ndarray:
        utilities: np.ndarray = SCALE * x
        return utilities

    def differences(self, x: np.ndarray) -> np.ndarray:
        differences: np.ndarray = SCALE * (x[self.better] - x[self.worse])
        return differences

    def penalty(self, x: np.ndarray) -> float:
        return float(x @ x / 2)

    def gradient(self, x: np.ndarray, surprise: np.ndarray) -> np.ndarray:
        slope: np.ndarray = x - self._sums(surprise, -surprise)
        return slope

    def newton_step(self, weight: np.ndarray, gradient: np.ndarray) -> np.ndarray:
        """(I + s^2 D^T W D)^-1 g by conjugate gradients, preconditioned by the diagonal.

        The prior bounds the condition number, so some dozens of products do for any n.
        """
        diagonal = 1 + SCALE * self._sums(weight, weight)
        x, residual = np.zeros(self.n), gradient
        direction = conditioned = residual / diagonal
        size = first = residual @ conditioned
        while size > REDUCTION**2 * first:
            flow = weight * self.differences(direction)
            product = direction + self._sums(flow, -flow)
            length = size / (direction @ product)
            x, residual = x + length * direction, residual - length * product
            conditioned = residual / diagonal
            size, before = residual @ conditioned, size
            direction = conditioned + size / before * direction
        return x

    def _sums(self, of_better: np.ndarray, of_worse: np.ndarray) -> np.ndarray:
        """Sums over the pairs of each thing (n), times s."""
        return SCALE * (np.bincount(self.better, of_better, self.n) + np.bincount(self.worse, of_worse, self.n))


class _Correlated:
    """Correlated utilities u = K D^T x, with a coefficient for each pair, whose differences are G x, G = D K D^T."""

    def __init__(self, covariance: np.ndarray, better: np.ndarray, worse: np.ndarray):
        self.across = covariance[better] - covariance[worse]
        self.gram = self.across[:, better] - self.across[:, worse]

    def utilities(self, x: np.ndarray) -> np.ndarray:
        of_all: np.ndarray = x @ self.across
        return of_all

    def differences(self, x: np.ndarray) -> np.ndarray:
        of_pairs: np.ndarray = self.gram @ x
        return of_pairs

    def penalty(self, x: np.ndarray) -> float:
        return float(x @ self.gram @ x / 2)

    def gradient(self, x: np.ndarray, surprise: np.ndarray) -> np.ndarray:
        slope: np.ndarray = x - surprise  # up to the factor G
        return slope

    def newton_step(self, weight: np.ndarray, gradient: np.ndarray) -> np.ndarray:
        """(I + W G)^-1 g by a Cholesky decomposition.

        References:
            Rasmussen & Williams, Gaussian Processes for Machine Learning, MIT Press 2006, eq. 3.27.
        """
        root = np.sqrt(weight)
        inner = cho_factor(np.eye(len(root)) + root[:, None] * self.gram * root, overwrite_a=True, check_finite=False)
        step: np.ndarray = gradient - root * cho_solve(inner, root * (self.gram @ gradient), check_finite=False)
        return step


def compared_utilities(pairs: Sequence[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    """Rows (m, ascending) that have been compared, and their utilities (m) by the comparisons alone."""
    rows, numbered = compared_rows(pairs)
    return rows, fitted_utilities(len(rows), numbered)


def compared_rows(pairs: Sequence[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    """Rows (m, ascending) that have been compared, and the pairs as numbers among these."""
    rows, numbered = np.unique(np.array(pairs, dtype=np.int64).reshape(-1, 2), return_inverse=True)
    return rows, numbered.reshape(-1, 2)
