"""Pareto fronts: which outcomes no other beats, and how much they dominate together. Light to import."""

from bisect import bisect_right
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


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
