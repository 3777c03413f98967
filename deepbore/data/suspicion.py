"""Suspicious values: outcomes that the other trials contradict, so that one wrong value does not mislead a run.

A value better than all others (a bug, a 0 that stands for NaN) would set the scale of all labels, and one far worse
than its place explains (a run that has diverged by chance) would hide the good region around it. Both are found by the
values around them, as a function of the observations alone. Until other trials confirm them they count as failures.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
import torch
from scipy.linalg import cho_solve, solve_triangular
from torch import Tensor

from deepbore.data.array_ranking import threshold
from deepbore.data.trial import Status
from deepbore.space.features import Coordinates

if TYPE_CHECKING:
    from deepbore.data.columns import Columns

FEWEST = 9  # values that one is compared with
CONSIDERED = 1000  # best rows, and newest rows, that are considered: the cost does not grow with n

# too good
NEAREST = 100  # rows that a prediction is made from
TAIL = 0.5  # thresholds beyond the median, as in `ValueGradedLabels`
CLAIM = 0.5  # the least difference of a label from its prediction
SURE, FEW = 6.0, 10  # the least difference is 6 (1 + 10 / n) standard deviations
LEAST = 0.05  # standard deviation: few labels are easily explained
CLOSE = 3  # nearest rows, one of which confirms a value if it has half of its label
BESIDE = 0.015  # distance over sqrt(d) of rows beside a value: where there are any, they alone confirm it
PATIENCE = 5  # values after the first ten, and after one that all others doubt, before a trial beside it is wanted
MOST = 3  # values that may be too good
SCALES = np.array([0.05, 0.1, 0.2, 0.4, 0.8, 1.6])  # length scales
NOISES = np.array([1e-6, 1e-4, 1e-2, 0.1, 0.5])  # of the variance

# too bad
FIRST, ORDINARY = 10, 4  # the first values, and how many of them have not diverged
GAP = 2.8  # the ratio of distances from the best value between those that have, and those that have not
FAR = 2.0  # the distance from the best value that is far off, over that of the worst ordinary one
SURPRISE, LEAST_LOG = 18.0, 0.1  # standard deviations of the logarithm of a distance; the least one
SHORTEST = 0.1  # distance from the best value, over that of the worst ordinary one: shorter ones are alike
CHANCES = np.array([0.01, 0.1, 0.5, 2.0, 10.0])  # of the variance: what is by chance in whether a value is far off


@dataclass(frozen=True)
class Suspicion:
    """Rows with suspicious values.

    Attributes:
        too_good: rows whose value is better than the others predict, best first.
        too_bad: rows whose value is far worse than their place explains, ascending.
        doubtful: rows whose value is believed, but a trial beside it is wanted.
    """

    too_good: tuple[int, ...] = ()
    too_bad: tuple[int, ...] = ()
    doubtful: tuple[int, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.too_good or self.too_bad)

    @property
    def rows(self) -> list[int]:
        """All of them, ascending."""
        return sorted({*self.too_good, *self.too_bad})


def suspicion(table: "Columns") -> Suspicion:
    """The suspicious values of a run, by each objective, and among the trials of each budget; none of preferences.

    None in a space with a library, where single hits are what is looked for, and no trial beside one can confirm it.
    Pruned trials are no less a part of their surroundings for that: they count with the values that they are given.
    """
    too_good: dict[int, None] = {}
    too_bad: set[int] = set()
    doubtful: dict[int, None] = {}
    if any(parameter.is_library for parameter in table.space.parameters.values()):
        return Suspicion()
    for rows, values in _groups(table):
        x = Coordinates(table.space.points)(table.points[torch.from_numpy(rows)].cpu()).numpy()
        x = x / math.sqrt(len(table.space))
        good, doubted = too_good_values(x, values)
        kept = np.delete(np.arange(len(rows)), good)
        too_good |= dict.fromkeys(rows[good].tolist())
        doubtful |= dict.fromkeys(rows[doubted].tolist())
        too_bad.update(rows[kept][far_off_values(x[kept], values[kept])].tolist())
    pruned = {row for row in {*too_good, *too_bad, *doubtful} if table.status[row] == Status.PRUNED}
    return Suspicion(
        tuple(row for row in too_good if row not in pruned),
        tuple(sorted(too_bad - pruned)),
        tuple(row for row in doubtful if row not in pruned),
    )


def _groups(table: "Columns") -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Numbers of rows of this run with a value (m, ascending) that are compared with each other, and their values (m).

    Utilities are not compared: they are no outcomes.
    """
    if table.by_preference:
        return
    budgets = [None] if table.budget is None else table.budget.rungs
    for budget, column in product(budgets, range(table.k)):
        rows = _considered(table, budget, column)
        if len(rows) > FEWEST:
            yield rows.cpu().numpy(), table.values[rows, column].cpu().numpy()


def _considered(table: "Columns", budget: float | None, column: int) -> Tensor:
    """Of the rows that are compared all of few; of many the first ones, the best and the newest: their numbers."""
    n, most = len(table), 2 * CONSIDERED

    def compared(part: slice) -> Tensor:
        """Which rows of a part of the table are."""
        told = table.own_with_value(part)
        return told if budget is None else told & (table.budgets[part] == budget)

    if n <= most:
        return compared(slice(None)).nonzero().squeeze(-1)
    first = compared(slice(most)).nonzero().squeeze(-1)[:FIRST]
    newest = n - most + compared(slice(n - most, n)).nonzero().squeeze(-1)[-CONSIDERED:]
    if budget is not None or table.ledger.task_names or table.statistics.n_withdrawn:
        best = table.least(table.values[:, column].masked_fill(~compared(slice(None)), math.inf), CONSIDERED)
    else:
        best = table.least_values(column, CONSIDERED)  # NaN where nothing was told
    rows: Tensor = torch.cat([first, best, newest]).unique()
    return rows


# --- too good --------------------------------------------------------------------------------------------------------


def too_good_values(x: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of values (n) that are better than the others predict, best first, at most three; and of a doubtful one.

    The best value is compared with its prediction from the others, by a Gaussian process of their labels. It is
    suspicious if it is better by half of the range of labels and by six standard deviations, and by more of these while
    there are few values. Then it is left out, and the next one is compared. So a value is confirmed by a neighbour that
    comes close, and refuted by neighbours that do not, and a single value beyond the scale of all others is suspicious
    even far from them.

    A best value that is better by half of the range, but not so surely, and that five further trials have not come
    close to, is doubtful: one trial beside it will tell.

    Args:
        x: coordinates over sqrt(d), n x c.
        values: to minimise, n, in the order of their rows.
    """
    left = np.arange(len(values))
    found: list[int] = []
    doubtful: list[int] = []
    while len(found) < MOST and len(left) > FEWEST:
        best = int(left[values[left].argmin()])
        left = left[left != best]
        claim = _Claim(x[best], values[best], x[left], values[left])
        if not claim.is_too_good:
            is_old = len(values) - max(best + 1, FIRST) >= PATIENCE
            doubtful = [best] if is_old and claim.is_doubtful else []
            break
        found.append(best)
    return np.array(found, dtype=int), np.array(doubtful, dtype=int)


class _Claim:
    """A value at a place, as its neighbours and a prediction from the others see it.

    Args:
        at: coordinates of the place, c.
        value: to minimise.
        x: coordinates of the others, n x c.
        values: theirs.
    """

    def __init__(self, at: np.ndarray, value: float, x: np.ndarray, values: np.ndarray):
        ranked = np.sort(values)
        best, tau = ranked[0], threshold(ranked, 0.5)
        self.has_scale = bool(tau > best)
        if not self.has_scale:
            return
        # the labels of `graded_by_value`, but linear beyond the best of the others
        scale = tau / 2 - best / 2  # differences of halves do not overflow
        units = (tau / 2 - values / 2) / scale
        labels = (units.clip(0, 1) + TAIL**2 / (TAIL + (-units).clip(0))) / (1 + TAIL)
        self.label = ((tau / 2 - value / 2) / scale + TAIL) / (1 + TAIL)
        apart = np.square(x - at).sum(-1)
        near = np.argsort(apart, kind="stable")[:NEAREST]
        self.labels, self.apart, self.x, self.at = labels[near], apart[near], x[near], at[None]

    @cached_property
    def prediction(self) -> tuple[float, float]:
        """The label that the others predict, and its standard deviation."""
        mean, deviation = _Process(self.x, self.labels).predict(self.at)
        return float(mean[0]), float(deviation[0])

    def is_confirmed(self, count: int) -> bool:
        """Whether one of the rows beside it, or else of so many nearest ones, has half of its label."""
        beside = self.apart <= BESIDE**2
        near = beside if beside.any() else _nearest(self.apart, count)
        return bool(self.labels[near].max() >= self.label / 2)

    @property
    def is_too_good(self) -> bool:
        """Whether it is surely wrong, but for a narrow optimum."""
        if not self.has_scale or self.is_confirmed(CLOSE):
            return False
        mean, deviation = self.prediction
        sure = SURE * (1 + FEW / len(self.labels)) * max(deviation, LEAST)
        return bool(self.label - mean > max(CLAIM, sure))

    @property
    def is_doubtful(self) -> bool:
        """Whether it may be wrong."""
        return self.has_scale and not self.is_confirmed(1) and bool(self.label - self.prediction[0] > CLAIM)


class _Process:
    """The Gaussian process of the greatest evidence for the values at some places.

    Its kernel is a Matern 5/2 with one length scale. That, and the share of noise, are chosen from a grid; the variance
    has its most likely value.

    Args:
        x: coordinates over sqrt(d), n x c.
        values: n.
        noises: those that are tried, as shares of the variance.
    """

    def __init__(self, x: np.ndarray, values: np.ndarray, noises: np.ndarray = NOISES):
        n, evidence = len(values), -math.inf
        self.x, self.values, self.mean = x, values, values.mean()
        squared = np.square(x[:, None] - x).sum(-1)
        for length in SCALES:
            gram = _matern(squared / length**2)
            for noise in noises:
                root = np.linalg.cholesky(gram + (noise + 1e-9) * np.eye(n))
                white = solve_triangular(root, values - self.mean, lower=True, check_finite=False)
                variance = max(float(white @ white) / n, 1e-12)
                found = -0.5 * n * math.log(variance) - float(np.log(root.diagonal()).sum())
                if found > evidence:
                    evidence, self.root, self.white = found, root, white
                    self.length, self.noise, self.variance = length, noise, variance

    def predict(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The values at new places (m x c), and their standard deviations, noise included: m each."""
        cross = _matern(np.square(self.x[:, None] - x).sum(-1) / self.length**2)
        white = solve_triangular(self.root, cross, lower=True, check_finite=False)
        unknown = (1 + self.noise - np.square(white).sum(0)).clip(0)
        return self.mean + self.white @ white, np.sqrt(self.variance * unknown)

    def left_out(self) -> np.ndarray:
        """Each value as the others predict it, n (Rasmussen & Williams, 2006, eq. 5.12)."""
        inverse = cho_solve((self.root, True), np.eye(len(self.values)), check_finite=False)
        predicted: np.ndarray = self.values - inverse @ (self.values - self.mean) / inverse.diagonal()
        return predicted


def _matern(squared: np.ndarray) -> np.ndarray:
    r = np.sqrt(5 * squared)
    kernel: np.ndarray = (1 + r + r * r / 3) * np.exp(-r)
    return kernel


# --- too bad ---------------------------------------------------------------------------------------------------------


def far_off_values(x: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Numbers of values (n) that are far worse than all ordinary ones, by chance and not because of their place.

    The ordinary values are the first ten, since later ones are closer together, without up to six that are 2.8 times
    as far from the best one as the rest; and half of all values, since earlier results may be sorted. A value is far
    off if its distance from the best one is more than twice that of the worst ordinary value. It is suspicious if

    - the other values, ordinary or far off, predict that one at its place is ordinary: within a wall they predict the
      wall, but what happens by chance has no place;
    - and the logarithm of its distance is eighteen standard deviations above what ordinary values predict for it, of a
      process that is too sure where it extrapolates: no slope leads up to it.

    Args:
        x: coordinates over sqrt(d), n x c.
        values: to minimise, n, in the order of their rows.
    """
    none = np.empty(0, dtype=int)
    if len(values) <= FEWEST:
        return none
    distances = values / 2 - values.min() / 2  # of halves, which do not overflow
    worst = _worst_ordinary(distances)
    if worst == 0:  # values that tie say nothing of distances
        return none
    is_far = distances > FAR * worst
    if not is_far.any():
        return none
    known = _around(x, is_far)
    asked = np.flatnonzero(is_far)
    asked = asked[_expected(x, is_far, known, asked) < 0.5]
    if not len(asked):
        return none
    logs = np.log(np.maximum(distances / worst, SHORTEST))
    ordinary = known[~is_far[known]]
    mean, deviation = _Process(x[ordinary], logs[ordinary]).predict(x[asked])
    suspicious: np.ndarray = asked[logs[asked] - mean > SURPRISE * np.maximum(deviation, LEAST_LOG)]
    return suspicious


def _worst_ordinary(distances: np.ndarray) -> float:
    """The distance from the best value of the worst one that is ordinary (see `far_off_values`)."""
    first = np.sort(distances[:FIRST])
    ends = np.flatnonzero(first[ORDINARY:] > GAP * first[ORDINARY - 1 : -1])
    return float(max(first[ORDINARY - 1 + ends[0]] if len(ends) else first[-1], np.median(distances)))


def _around(x: np.ndarray, is_far: np.ndarray) -> np.ndarray:
    """Numbers of rows by which far ones are judged: the newest fifty of them, and the ordinary ones around them."""
    far, ordinary = np.flatnonzero(is_far)[-NEAREST // 2 :], np.flatnonzero(~is_far)
    if len(ordinary) > NEAREST // 2:
        apart = np.square(x[ordinary][:, None] - x[far]).sum(-1).min(-1)
        ordinary = ordinary[np.argsort(apart, kind="stable")[: NEAREST // 2]]
    return np.union1d(far, ordinary)


def _expected(x: np.ndarray, is_far: np.ndarray, known: np.ndarray, asked: np.ndarray) -> np.ndarray:
    """How likely a value at the place of each asked row is far off, as the other known rows predict it."""
    process = _Process(x[known], is_far[known].astype(float), CHANCES)
    expected, _ = process.predict(x[asked])
    is_known = np.isin(asked, known)
    expected[is_known] = process.left_out()[np.searchsorted(known, asked[is_known])]
    return expected


def _nearest(apart: np.ndarray, count: int) -> np.ndarray:
    """Which rows are the nearest ones, at least `count` of them: all of those that are as far as the last (... x n)."""
    nearest: np.ndarray = apart <= np.sort(apart, axis=-1)[..., count - 1 : count]
    return nearest
