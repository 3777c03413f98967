"""The best value and the threshold tau of n values, after each evaluation. Light to import: pictures need no torch."""

import math
from collections.abc import Callable, Sequence

import numpy as np

from deepbore.data.directions import Direction, sign_of
from deepbore.data.record import may_be_best
from deepbore.data.trial import Trial

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


def best_so_far(values: np.ndarray, budgets: np.ndarray | None = None) -> np.ndarray:
    """The best value after each evaluation (n), of values to minimise; NaN before the first.

    Args:
        values: n, in the order of evaluation; NaN for what can't be the best.
        budgets: what was spent on each (n), where that differs: then it is the best at the largest so far.
    """
    if budgets is None:
        return np.fmin.accumulate(values) if len(values) else values
    best, counted = np.full(len(values), np.nan), ~np.isnan(values)
    largest = np.maximum.accumulate(np.where(counted, budgets, -np.inf)) if len(values) else budgets
    for budget in np.unique(largest):
        since = largest == budget
        best[since] = np.fmin.accumulate(np.where(budgets == budget, values, np.nan)[since])
    return best


def best_among(trials: Sequence[Trial], direction: Direction, has_budget: bool) -> np.ndarray:
    """The value of the best trial after each (n), as `Record.best` says it, in the user's sign; NaN before the first.

    Args:
        trials: n of one objective value, in the order of evaluation.
        direction: of the values.
        has_budget: whether the run has a budget; without one, what outcomes say of theirs ranks no trial.
    """
    sign = sign_of(direction)
    values = [sign * trial.value if trial.value is not None and may_be_best(trial) else np.nan for trial in trials]
    budgets = np.array([trial.budget or 0.0 for trial in trials]) if has_budget else None
    return sign * best_so_far(np.array(values), budgets)


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
