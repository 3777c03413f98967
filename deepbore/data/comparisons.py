"""`Comparisons`: preferred pairs of trials, and the utilities that explain them (Bradley and Terry). No torch."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from deepbore.data.journal_format import Pair
from deepbore.data.outcome import check_comparable, check_pair
from deepbore.data.trial import Status, Trial
from deepbore.errors import SettingError

if TYPE_CHECKING:
    from deepbore.data.table import Effect, Table

SCALE = 3.0  # prior standard deviation of a utility: of two things one is mostly clearly better
STEPS, TOLERANCE, SHORTEST = 100, 1e-9, 1e-9
DECIMALS = 6  # utilities that differ by less are equal, as the comparisons have it, and not by rounding


def fitted_utilities(n: int, pairs: np.ndarray, root: np.ndarray | None = None) -> np.ndarray:
    """The most likely utilities of n things after comparisons, under a Gaussian prior.

        P(i is preferred to j) = 1 / (1 + exp(u_j - u_i)),    u ~ N(0, L L^T)

    With the prior there is exactly one maximum of the posterior for any set of pairs, contradictory ones, and things
    that have only won, included. With u = L v it is that of a logistic regression on the rows L_i - L_j with a ridge,
    found by Newton's method; a step that would overshoot is halved.

    Args:
        n: how many things there are.
        pairs: m x 2 numbers below n, the preferred one first; a pair may come again, either way round.
        root: L, n x r; None for independent utilities with the standard deviation 3.

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
    root = SCALE * np.eye(n) if root is None else root
    rows = root[better] - root[worse]
    v = np.zeros(root.shape[1])
    objective = _objective(v, rows)
    for _ in range(STEPS):
        surprise = 1 / (1 + np.exp(rows @ v))  # P(the other one)
        gradient = v - rows.T @ surprise
        if np.abs(gradient).max(initial=0.0) < TOLERANCE:
            break
        curvature = np.eye(len(v)) + (rows.T * (surprise * (1 - surprise))) @ rows
        step, length = np.linalg.solve(curvature, gradient), 1.0
        while (tried := _objective(v - length * step, rows)) > objective and length > SHORTEST:
            length /= 2
        v, objective = v - length * step, tried
    utilities: np.ndarray = (root @ v).round(DECIMALS) + 0.0  # -0.0 is 0.0
    return utilities


def compared_utilities(pairs: Sequence[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    """Rows (m, ascending) that have been compared, and their utilities (m) by the comparisons alone."""
    rows, numbered = compared_rows(pairs)
    return rows, fitted_utilities(len(rows), numbered)


def compared_rows(pairs: Sequence[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    """Rows (m, ascending) that have been compared, and the pairs as numbers among these."""
    rows, numbered = np.unique(np.array(pairs, dtype=np.int64).reshape(-1, 2), return_inverse=True)
    return rows, numbered.reshape(-1, 2)


def _objective(v: np.ndarray, rows: np.ndarray) -> float:
    """The negative log posterior, up to a constant."""
    return float(np.logaddexp(0, -(rows @ v)).sum() + v @ v / 2)


class Comparisons:
    """The comparisons of a run.

    Args:
        table: the rows that are compared.

    Attributes:
        pairs: rows of the preferred trial and of the other one, in the order of telling.
    """

    def __init__(self, table: "Table"):
        self.table = table
        self.pairs: tuple[Pair, ...] = ()

    def checked(self, pairs: Iterable[tuple[int | Trial, int | Trial]]) -> list[Pair]:
        """Rows of pairs of trials.

        Raises:
            TrialError: for an unknown trial, one that has failed, one of another run, or one compared with itself.
            SettingError: for a run of values.
        """
        table = self.table
        if not table.by_preference:
            raise SettingError("trials are compared in a study of preferences. Make it with Study(preferences=True).")
        rows = [(table.row_of(better), table.row_of(worse)) for better, worse in pairs]
        for pair in rows:
            check_pair(*pair)
            for row in pair:
                check_comparable(row, Status(int(table.status[row])))
        return rows

    def stage(self, new: Sequence[Pair]) -> "Effect":
        """New pairs, and the utilities of all rows that have been compared, fitted anew."""
        pairs = (*self.pairs, *new)
        change_values = self.table.stage_utilities(*compared_utilities(pairs))

        def effect() -> None:
            change_values()
            self.pairs = pairs

        return effect

    def stage_without(self, rows: Sequence[int], reason: str | None) -> "Effect":
        """Withdrawn rows (m): their pairs are dropped, and the utilities of all others fitted anew."""
        gone = set(rows)
        pairs = tuple(pair for pair in self.pairs if gone.isdisjoint(pair))
        alone = {row for pair in self.pairs for row in pair} - {row for pair in pairs for row in pair} - gone
        withdraw = self.table.stage_withdrawal(rows, reason, sorted(alone))

        def effect() -> None:
            withdraw()
            self.pairs = ()
            if pairs:
                self.stage(pairs)()

        return effect
