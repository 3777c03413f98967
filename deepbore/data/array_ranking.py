"""Ranks of arrays of values to minimise: the threshold tau, the best value so far, Pareto fronts. No torch.

Which trials and rows count is decided in `deepbore.data.ranking`.
"""

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]
LOOKS = 2000  # thresholds that a picture has, at most


def threshold(sorted_values: np.ndarray, gamma: float) -> float:
    """tau = Phi^-1(gamma), the ceil(gamma n)-th smallest value (BORE, Algorithm 1, line 2).

    Where ties would put every value at or below tau, tau goes down to the largest value below the greatest, so that
    both classes exist; with all values equal there is none, and tau is that value.

    Args:
        sorted_values: n >= 1 values, ascending.
        gamma: proportion in (0, 1).

    Example:
        >>> threshold(np.array([1.0, 2.0, 3.0, 4.0]), gamma=0.5)
        2.0
        >>> threshold(np.array([1.0, 2.0, 2.0, 2.0]), gamma=0.5)  # 2.0 would leave no class 0
        1.0
    """
    n = len(sorted_values)
    tau = sorted_values[max(math.ceil(gamma * n - 1e-9), 1) - 1]  # 1e-9: 0.15 * 20 is 3, whatever the float says
    if tau == sorted_values[-1]:
        below = int(np.searchsorted(sorted_values, tau))
        tau = sorted_values[below - 1] if below else tau
    return float(tau)


def best_so_far(values: ArrayLike, budgets: ArrayLike | None = None) -> np.ndarray:
    """The best value after each evaluation (n), of values to minimise; NaN before the first.

    Args:
        values: n, in the order of evaluation; NaN for what can't be the best.
        budgets: what was spent on each (n), where that differs: then it is the best at the largest so far.
    """
    values = np.asarray(values, dtype=np.float64)
    if not len(values):
        return values
    if budgets is None:
        best: np.ndarray = np.fmin.accumulate(values)
        return best
    budgets = np.asarray(budgets, dtype=np.float64)
    best, counted = np.full(len(values), np.nan), ~np.isnan(values)
    largest = np.maximum.accumulate(np.where(counted, budgets, -np.inf))
    for budget in np.unique(largest):
        since = largest == budget
        best[since] = np.fmin.accumulate(np.where(budgets == budget, values, np.nan)[since])
    return best


def best_and_tau(values: np.ndarray, gamma: float | Callable[[int], float]) -> tuple[np.ndarray, np.ndarray]:
    """The best value and the threshold after each evaluation (n and n), of values to minimise; NaN before the first.

    Of more than 2000 evaluations the threshold is found after every second, third, ... one: a picture shows no more.

    Args:
        values: n, in the order of evaluation; NaN for failures.
        gamma: proportion in (0, 1), or what gives it for n values.
    """
    known = np.where(np.isfinite(values), values, np.nan)
    taus, seen = np.full(len(known), np.nan), np.empty(0)
    step = math.ceil(len(known) / LOOKS) or 1
    for start in range(0, len(known), step):
        new = np.sort(known[start : start + step][~np.isnan(known[start : start + step])])
        seen = np.insert(seen, np.searchsorted(seen, new), new)
        if len(seen):
            taus[start : start + step] = threshold(seen, gamma(len(seen)) if callable(gamma) else gamma)
    return best_so_far(known), taus


def non_dominated(values: Array) -> NDArray[np.bool_]:
    """Which rows no other beats in one value without being worse in another; equal rows stand or fall together.

    Args:
        values: to minimise, n x k, finite.

    Returns:
        n booleans. Of two values that takes n log n.

    Example:
        >>> non_dominated(np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])).tolist()
        [True, True, False, True]
    """
    on_front = np.zeros(len(values), dtype=bool)
    left = np.lexsort(values.T[::-1])  # by the first value, then the second, ...: what beats a row stands before it
    if values.shape[1] == 2:
        on_front[left] = _is_least_yet(values[left])
        return on_front
    while len(left):
        first = values[left[0]]
        on_front[left[0]] = True
        beaten = (values[left] >= first).all(-1)
        same = beaten & (values[left] == first).all(-1)
        on_front[left[same]] = True
        left = left[~beaten]
    return on_front


def fronts(values: Array, enough: int) -> list[NDArray[np.intp]]:
    """The rows of the front, of the front without it, and so on, until there are enough of them (Deb et al. 2002).

    Of two values that takes n log n; of more each front is looked for among all rows that are left.

    Args:
        values: to minimise, n x k, finite.
        enough: so many rows, or all.

    Returns:
        Row numbers, ascending within each front.
    """
    if values.shape[1] == 2:
        number = _front_numbers(values)
        size = np.bincount(number)
        ends = size.cumsum()
        each = np.split(number.argsort(kind="stable"), ends[:-1])
        return each[: int((ends - size < enough).sum())]
    left, found, peeled = np.arange(len(values)), 0, []
    while len(left) and found < enough:
        on_front = non_dominated(values[left])
        peeled.append(left[on_front])
        found += len(peeled[-1])
        left = left[~on_front]
    return peeled


def _is_least_yet(values: Array) -> NDArray[np.bool_]:
    """Of rows of two values, in ascending order, which have a second value below those of all rows but equal ones."""
    first, second = values.T
    least = np.minimum.accumulate(second)
    is_new = np.ones(len(values), dtype=bool)
    is_new[1:] = (first[1:] != first[:-1]) | (second[1:] != second[:-1])
    falls = np.ones(len(values), dtype=bool)
    falls[1:] = second[1:] < least[:-1]
    return falls[np.maximum.accumulate(np.where(is_new, np.arange(len(values)), 0))]


def _front_numbers(values: Array) -> NDArray[np.intp]:
    """The number of the front of each row of two values (n).

    In the order of the first value a row is beaten by a front if the least second value there is no greater than its
    own; and the later the front, the greater that one is.
    """
    number, least, last = np.empty(len(values), dtype=np.intp), list[float](), None
    order, front = np.lexsort(values.T[::-1]), 0
    for row, pair in zip(order.tolist(), values[order].tolist(), strict=True):
        if pair != last:  # equal rows stand or fall together
            front = bisect_right(least, pair[1])
            least[front : front + 1] = [pair[1]]
            last = pair
        number[row] = front
    return number


def crowding(values: Array) -> Array:
    """How much room each row of a front has: the crowding distance of NSGA-II (Deb et al. 2002, section III-B).

    The sum over the values of the distance between the neighbours on both sides, as a share of the whole extent;
    infinite at the ends of each value.

    Args:
        values: n x k, finite.

    Returns:
        n.

    References:
        Deb, Pratap, Agarwal & Meyarivan, A fast and elitist multiobjective genetic algorithm: NSGA-II, 2002.
    """
    room = np.zeros(len(values))
    for column in values.T:
        order = column.argsort(kind="stable")
        ranked = column[order]
        extent = ranked[-1] - ranked[0]
        gaps = np.full(len(values), np.inf)
        gaps[1:-1] = (ranked[2:] - ranked[:-2]) / (extent if extent > 0 else 1.0)
        room[order] += gaps
    return room


def hypervolume(values: Array, reference: Sequence[float] | Array) -> float:
    """The volume of what is worse than some row and better than the reference in every value (Zitzler & Thiele 1999).

    Exact, by the exclusive volumes of the rows (While et al., A fast way of calculating exact hypervolumes, 2012). It
    takes milliseconds for a hundred rows of three values, and seconds for as many of five.

    Args:
        values: to minimise, n x k.
        reference: what counts as no gain, k; rows that are not better in every value add nothing.

    Example:
        >>> hypervolume(np.array([[0.0, 1.0], [1.0, 0.0]]), [2.0, 2.0])
        3.0
    """
    reference = np.asarray(reference, dtype=np.float64)
    inside = values[(values < reference).all(-1)]
    return _volume(np.unique(inside[non_dominated(inside)], axis=0), reference)


def _volume(front: Array, reference: Array) -> float:
    """Of distinct rows that do not beat each other, all better than the reference."""
    k = front.shape[1]
    if not len(front) or k == 1:
        return float(reference[0] - front.min()) if len(front) else 0.0
    front = front[front[:, -1].argsort(kind="stable")[::-1]]  # the worst last value first
    depths = reference[-1] - front[:, -1]
    if k == 2:  # then the first value rises from row to row
        widths = np.diff(np.append(front[:, 0], reference[0]))
        return float((widths * depths).sum())
    total = 0.0
    for row, (first, depth) in enumerate(zip(front[:, :-1], depths, strict=True)):
        others = np.maximum(front[row + 1 :, :-1], first)  # what the rows after it have in common with it
        others = np.unique(others[non_dominated(others)], axis=0)
        total += depth * (float((reference[:-1] - first).prod()) - _volume(others, reference[:-1]))
    return total
