"""Pruned trials: the values that they would likely have had, by which they are graded among those that got as far."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from deepbore.data.trial import Status

if TYPE_CHECKING:
    from deepbore.data.columns import Columns
    from deepbore.data.reports import Curve

CONSIDERED = 1000  # trials, the newest ones, that a pruned one is compared with: the cost does not grow with n


def likely_values(table: "Columns") -> dict[int, float]:
    """The value, to minimise, that each pruned trial of this run would likely have had; of those where that is known.

    A trial that was pruned at step s with y_s is compared with those that got as far and have a value. In the end it
    would have the same place among them as at step s:

        y = F^-1(F_s(y_s))

    with F_s and F the distributions of their values at step s and in the end, linear between two values, and beyond the
    worst in the ratio of their ranges. So its grade is the one among those that got as far. It is never the best: y is
    at least the second best value. Trials that were pruned later have such values themselves, and count. With budgets
    the trials of a budget are compared with each other.
    """
    status, budgets = table.status.cpu().numpy(), table.budgets.cpu().numpy()
    if table.k > 1 or not (pruned := np.flatnonzero(status == Status.PRUNED)).size:
        return {}
    values = table.values[:, 0].cpu().numpy().copy()
    curves = {row: curve for row, curve in table.ledger.reports.counted() if len(curve)}
    found: dict[int, float] = {}
    for budget in [None] if table.budget is None else np.unique(budgets[pruned]).tolist():
        of_it = [row for row in curves if budget is None or budgets[row] == budget]
        for group, compared in _groups(curves, of_it, status):
            step = curves[group[0]].steps[-1]
            reached = [(row, at) for row in compared if (at := curves[row].at(step)) is not None]
            final = np.array([values[row] for row, _ in reached])
            at_step = np.array([at for _, at in reached])
            known = np.isfinite(final) & np.isfinite(at_step)
            if known.any():
                own = np.array([curves[row].values[-1] for row in group])
                values[group] = _mapped(own, at_step[known], final[known])
                found |= dict(zip(group, values[group].tolist(), strict=True))
    return found


def _groups(curves: "dict[int, Curve]", rows: list[int], status: np.ndarray) -> Iterator[tuple[list[int], list[int]]]:
    """Pruned rows with the same last step, those that got farthest first, and the rows that each is compared with."""
    complete = [row for row in rows if status[row] == Status.COMPLETE]
    by_step: dict[float, list[int]] = {}
    for row in rows:
        if status[row] == Status.PRUNED:
            by_step.setdefault(curves[row].steps[-1], []).append(row)
    later: list[int] = []
    for step in sorted(by_step, reverse=True):
        yield by_step[step], sorted([*complete, *later])[-CONSIDERED:]
        later += by_step[step]


def _mapped(own: np.ndarray, at_step: np.ndarray, final: np.ndarray) -> np.ndarray:
    """Values at a step (m) as final ones, by the values at that step and in the end of those that go on (n and n)."""
    ended = np.sort(final)
    ranked, count = np.unique(at_step, return_counts=True)
    spread, beyond = ended[-1] - ended[0], np.maximum(own - ranked[-1], 0.0)
    scale = ranked[-1] - ranked[0]
    extra = beyond * (spread / scale) if scale > 0 else np.zeros_like(beyond)
    extra[~np.isfinite(own)] = spread
    likely: np.ndarray = np.interp(own, ranked, ended[np.cumsum(count) - 1]) + extra  # of ties the worst
    return likely.clip(min=ended[min(1, len(ended) - 1)])
