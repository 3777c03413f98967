"""The least time in which a car drives along a given path, within its tyres' grip and its drive.

The path is n points, driven at the squared speeds b_j along a parameter in [0, 1]. Over interval j the acceleration is
S'_j a_j + S''_j (b_j + b_{j+1}) / 2 with a_j = (b_{j+1} - b_j) / 2h; its length must not exceed g, its part along the
path not the drive's share of g. The time sum_j 2h / (sqrt b_j + sqrt b_{j+1}) is convex in b, and so are the limits: a
barrier method finds the optimum. Each Newton step has a tridiagonal matrix.

References:
    Lipp & Boyd, Minimum-Time Speed Optimisation over a Fixed Path, International Journal of Control, 2014.
"""

from functools import cache
from typing import NamedTuple

import numpy as np
from scipy.linalg import solveh_banded

from deepbore.problems.base import Array

GRAVITY = 9.81  # m / s^2; the friction coefficient is 1
TOLERANCE = 1e-8  # of the time, relative
BARRIER_FACTOR = 0.05  # from one barrier parameter to the next
CENTRED = 0.1  # half the squared Newton decrement, as a share of the barrier parameter
STEP_LENGTHS = 0.5 ** np.arange(40)
ARMIJO = 0.1  # share of the predicted decrease that a step must reach
LIMITS = 2  # on each interval: grip and drive


class Intervals(NamedTuple):
    """The accelerations over each of the n - 1 intervals in units of g, linear in the squared speeds at its ends.

    Attributes:
        start: part along the path from the squared speed at the start (n - 1).
        end: and from that at the end (n - 1).
        lateral: lateral part, from their sum (n - 1).
    """

    start: Array
    end: Array
    lateral: Array

    def accelerations(self, b: Array) -> tuple[Array, Array]:
        """Squared speeds (n) -> along the path and across it (n - 1 each)."""
        return self.start * b[:-1] + self.end * b[1:], self.lateral * (b[:-1] + b[1:])


def minimum_time(path: Array, drive: float) -> float:
    """The least time to drive a path from a standing start, in s; the speed at its end is free.

    Args:
        path: points (n x 2), in m, n >= 6.
        drive: the largest acceleration along the path, as a share of g.
    """
    intervals = _intervals(path)
    b = _slow(intervals, drive)
    barrier = _time(b) / (LIMITS * len(intervals.start))
    while LIMITS * len(intervals.start) * barrier > TOLERANCE * _time(b):
        barrier *= BARRIER_FACTOR
        b = _centred(b, intervals, drive, barrier)
    return _time(b)


def _intervals(path: Array) -> Intervals:
    h = 1 / (len(path) - 1)
    first, second = np.diff(path, axis=0) / h, _second_derivatives(len(path)) @ path
    speed = np.hypot(first[:, 0], first[:, 1])
    along, across = first / speed[:, None], np.stack([-first[:, 1], first[:, 0]], axis=1) / speed[:, None]
    bend = np.sum(along * second, axis=1) / 2
    pull = speed / (2 * h)
    return Intervals(
        start=(bend - pull) / GRAVITY,
        end=(bend + pull) / GRAVITY,
        lateral=np.sum(across * second, axis=1) / 2 / GRAVITY,
    )


@cache
def _second_derivatives(n: int) -> Array:
    """The matrix (n - 1 x n) from points to second derivatives in the middle of each interval."""
    matrix = np.zeros((n - 1, n))
    matrix[0, :3] = np.array([1, -2, 1]) / 2
    for j in (1, n - 3):
        matrix[j, j - 1 : j + 3] = np.array([1, -1, -1, 1]) / 2
    for j in range(2, n - 3):
        matrix[j, j - 2 : j + 4] = np.array([-5, 39, -34, -34, 39, -5]) / 48
    matrix[n - 2, n - 3 :] = np.array([1, -2, 1]) / 2
    return matrix * (n - 1) ** 2


def _slow(intervals: Intervals, drive: float) -> Array:
    """Squared speeds (n), 0 and then constant, whose accelerations are at most half of their limits."""
    b = np.ones(len(intervals.start) + 1)
    b[0] = 0
    most = np.max(np.hypot(*intervals.accelerations(b)))
    return np.asarray(b * min(1.0, drive) / (2 * most))


def _time(b: Array) -> float:
    roots = np.sqrt(b)
    return float(2 / (len(b) - 1) * np.sum(1 / (roots[:-1] + roots[1:])))


def _centred(b: Array, intervals: Intervals, drive: float, barrier: float) -> Array:
    """The squared speeds that minimise time - barrier * sum of logs of the slacks, by Newton's method."""
    value = _penalised(b, intervals, drive, barrier)
    while True:
        gradient, diagonal, beside = _derivatives(b, intervals, drive, barrier)
        scale = 1 / np.sqrt(diagonal)  # squared speeds span decades
        bands = np.stack([np.ones_like(diagonal), np.append(beside * scale[:-1] * scale[1:], 0)])
        step = -scale * solveh_banded(bands, scale * gradient, lower=True, check_finite=False)
        decrease = -float(gradient @ step)
        if decrease / 2 < CENTRED * barrier:
            return b
        for length in STEP_LENGTHS:
            after = b + length * np.append(0.0, step)
            value_after = _penalised(after, intervals, drive, barrier)
            if value_after <= value - ARMIJO * length * decrease:
                break
        else:  # the remaining decrease is rounding
            return b
        b, value = after, value_after


def _penalised(b: Array, intervals: Intervals, drive: float, barrier: float) -> float:
    """The time with its barrier; infinite if a limit is violated."""
    along, across = intervals.accelerations(b)
    grip, rest = 1 - along**2 - across**2, drive - along
    if min(b[1:].min(), grip.min(), rest.min()) <= 0:
        return np.inf
    return _time(b) - barrier * float(np.sum(np.log(grip)) + np.sum(np.log(rest)))


def _derivatives(b: Array, intervals: Intervals, drive: float, barrier: float) -> tuple[Array, Array, Array]:
    """Of the time with its barrier by b_1 ... b_{n-1}: gradient, diagonal and off-diagonal of the second derivatives.

    Returns:
        (n - 1), (n - 1) and (n - 2) numbers.
    """
    roots, h = np.sqrt(b), 1 / len(intervals.start)
    both = roots[:-1] + roots[1:]
    inverse = np.append(0.0, 1 / roots[1:])  # b_0 is no variable
    along, across = intervals.accelerations(b)
    grip, rest = 1 - along**2 - across**2, drive - along
    by_grip, by_rest = barrier / grip, barrier / rest
    # of the barrier, by the accelerations along the path (a) and across it (c)
    a, c = by_rest + 2 * by_grip * along, 2 * by_grip * across * intervals.lateral
    aa = by_rest / rest + 2 * by_grip + 4 * by_grip / grip * along**2
    ac = 4 * by_grip / grip * along * across * intervals.lateral
    cc = (2 * by_grip + 4 * by_grip / grip * across**2) * intervals.lateral**2

    gradient, diagonal = np.zeros_like(b), np.zeros_like(b)
    for ends, weight in ((slice(None, -1), intervals.start), (slice(1, None), intervals.end)):
        root = inverse[ends]
        gradient[ends] += a * weight + c - h * root / both**2
        diagonal[ends] += aa * weight**2 + 2 * ac * weight + cc + h * root**2 / both**2 * (1 / both + root / 2)
    beside = aa * intervals.start * intervals.end + ac * (intervals.start + intervals.end) + cc
    beside += h * inverse[:-1] * inverse[1:] / both**3
    return gradient[1:], diagonal[1:], beside[1:]
