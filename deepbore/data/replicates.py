"""`Replicates`: configurations that were evaluated several times, and the means of their values."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from deepbore.data.columns import Columns, regrouped
from deepbore.data.trial import Status

MOST = 100.0  # evaluations of usual noise that a row is worth: none drowns all others


@dataclass(frozen=True)
class AveragedValues:
    """The first values of the rows, averaged over the evaluations of each configuration: labels are made of them.

    Attributes:
        values: to minimise, n; NaN where there is none.
        ranked: those of this run that thresholds are found among, ascending: of configurations that are worth at least
            one evaluation. A configuration counts once, however often it was evaluated, and those that were beaten
            elsewhere as the worst.
        worth: how many evaluations of usual noise each row is worth, n; where a configuration comes again, one row is
            worth all of its evaluations, but at most `MOST`, and the others nothing. None if each row is worth one. In
            single precision, as weights are.
    """

    values: Tensor
    ranked: np.ndarray
    worth: Tensor | None


class Replicates:
    """The means over replicates in a table; found when asked for, and brought up to date by the rows that are new.

    Args:
        table: the rows.
        sorted_values: those of the table, where they are known.
    """

    def __init__(self, table: Columns, sorted_values: np.ndarray | None = None):
        self.table = table
        self._sorted = (-1, 0, np.empty(0))  # revision, entries of `finished`, and the values after these
        if sorted_values is not None:
            self._sorted = (table.ledger.revision, len(table.ledger.finished), sorted_values)
        self._known: _Averages | None = None

    @property
    def sorted_values(self) -> np.ndarray:
        """First values to minimise of this run's complete rows, ascending."""
        revision, entries, values = self._sorted
        table = self.table
        if revision != table.ledger.revision:
            values, new = np.empty(0), torch.arange(len(table), device=table.points.device)
        elif entries == len(table.ledger.finished):
            return values
        else:
            new = table.told_since(entries)
        told = new[table.has_value[new] & (table.tasks[new] == 0)]
        joining = np.sort(table.values[told, 0].cpu().numpy())
        values = np.insert(values, np.searchsorted(values, joining), joining) if len(values) else joining
        self._sorted = (table.ledger.revision, len(table.ledger.finished), values)
        return values

    def average(self) -> AveragedValues:
        """The first values of the rows, averaged over the evaluations of each configuration of this run at one budget.

            w_i = (s / sd_i)^2, at least 1/100 and at most 100,    s the median of the sd_i that were told

        An evaluation counts as w_i in the mean, and its row in what is learned; as 1 where no noise was told. So the
        noise that was told says how much more one value is worth than another, and how much noise there is at all,
        compared with the variation of the function, is learned. The best value and tau are looked for among values that
        are worth an evaluation of usual noise: else the luckiest of the noisiest values would be the measure of all
        others. Each configuration counts once there: one that is run again and again would else be tau itself. Failures
        of one configuration are one row, too.

        Without replicates the values are those that were told, bit for bit; with replicates only the rows of these
        configurations are looked at twice, and none of them again while only rows of new configurations join.
        """
        if self._known is not None and (joined := self._known.joined(self.table)) is not None:
            self._known = joined
            return joined.found
        found = self._of_all_rows()
        self._known = _Averages.of_all(found, self.table)
        return found

    def _of_all_rows(self) -> AveragedValues:
        table = self.table
        values, worth, n_beaten = table.values[:, 0], _worth(table.noise, table.tasks), table.ledger.n_beaten
        if not table.has_repeats:
            ranked = self.sorted_values if worth is None else _trusted(table, values, worth)
            return AveragedValues(values, _with_beaten(ranked, n_beaten), None if worth is None else worth.float())
        groups, status = _groups(table), table.status
        rows, group = _repeated(groups, table.has_value)
        each = torch.ones_like(values) if worth is None else worth
        means, total = _means(values[rows], each[rows], group)
        stands = _is_last(rows, group)
        averaged = values.index_copy(0, rows, means[group])
        together = each.index_copy(0, rows, torch.where(stands, total[group].clamp(max=MOST), 0.0))
        if worth is None:
            own = table.tasks[rows] == 0
            once = rows[own & stands]
            ranked = replaced(self.sorted_values, values[rows[own]].cpu().numpy(), averaged[once].cpu().numpy())
        else:
            ranked = _trusted(table, averaged, together)
        rows, group = _repeated(groups, status == Status.FAILED)
        together.index_fill_(0, rows[~_is_last(rows, group)], 0.0)
        return AveragedValues(averaged, _with_beaten(ranked, n_beaten), together.float())


@dataclass(frozen=True)
class _Averages:
    """Averages of n rows where configurations come again, to be continued.

    Attributes:
        values, ranked, worth: as of `AveragedValues`.
        waiting: those of the rows that were pending, each the only one of its configuration.
        revision: of the table.
    """

    values: Tensor
    ranked: np.ndarray
    worth: Tensor
    waiting: Tensor
    revision: int

    @property
    def found(self) -> AveragedValues:
        """The same without the waiting rows."""
        return AveragedValues(self.values, self.ranked, self.worth)

    @classmethod
    def of_all(cls, found: AveragedValues, table: Columns) -> "_Averages | None":
        """Averages of all rows; None where new configurations may change them, or without replicates."""
        if found.worth is None or not _are_plain(table):
            return None
        waiting, first = table.pending_rows, table.first_rows
        with_them = torch.isin(first, first[waiting])
        is_alone = int(with_them.sum()) == len(waiting)
        return cls(found.values, found.ranked, found.worth, waiting, table.ledger.revision) if is_alone else None

    def joined(self, table: Columns) -> "_Averages | None":
        """With the rows since then; None where one of them has a configuration that was there."""
        device = table.points.device
        if not _are_plain(table) or device != self.waiting.device or table.ledger.revision != self.revision:
            return None
        new = torch.cat([self.waiting, torch.arange(len(self.values), len(table), device=device)])
        if bool((table.first_rows[new] != new).any()):
            return None
        values = table.values[new, 0]
        joining = values[len(self.waiting) :]
        told = np.sort(values[~values.isnan()].cpu().numpy())
        return _Averages(
            torch.cat([self.values, joining]).index_copy_(0, new, values),
            np.insert(self.ranked, np.searchsorted(self.ranked, told), told),
            torch.cat([self.worth, self.worth.new_ones(len(joining))]),
            new[table.status[new] == Status.PENDING],
            self.revision,
        )


def _are_plain(table: Columns) -> bool:
    """Whether values, and what rows are worth, come from nothing but the outcomes of their own configurations."""
    counts = table.statistics
    return table.noise is None and not (
        table.by_preference or table.ledger.task_names or table.ledger.n_beaten or counts.n_pruned
    )


def _is_last(rows: Tensor, group: Tensor) -> Tensor:
    """Which of the rows (m) are the last ones of their groups (m): those that stand for them (m booleans)."""
    last = group.new_zeros(int(group.max()) + 1 if len(group) else 0)
    return rows == last.scatter_reduce(0, group, rows, "amax", include_self=False)[group]


def _means(values: Tensor, weight: Tensor, group: Tensor) -> tuple[Tensor, Tensor]:
    """Weighted means of the values (m) of each group, and its weights together (g and g). Equal values stay equal."""
    total = weight.new_zeros(int(group.max()) + 1 if len(group) else 0).index_add(0, group, weight)
    least = torch.full_like(total, torch.inf).scatter_reduce(0, group, values, "amin")
    return least + torch.zeros_like(total).index_add(0, group, weight * (values - least[group])) / total, total


def _trusted(table: Columns, values: Tensor, worth: Tensor) -> np.ndarray:
    """The values of this run whose configurations are worth an evaluation (n, and n), ascending; all, if none is."""
    told = table.has_value & (table.tasks == 0) & (worth > 0)
    trusted = told & (worth >= 1)
    return np.sort(values[trusted if bool(trusted.any()) else told].cpu().numpy())


def _repeated(group: Tensor, counts: Tensor) -> tuple[Tensor, Tensor]:
    """Rows that count, of configurations with several of these (m), ascending; and numbers of these configurations (m).

    Args:
        group: the first row with the same configuration as each, n.
        counts: which rows do, n booleans.
    """
    again = group != torch.arange(len(group), device=group.device)
    comes_again = torch.zeros_like(again).index_fill_(0, group[again], True)
    rows = (comes_again[group] & counts).nonzero().squeeze(-1)
    _, number, count = group[rows].unique(return_inverse=True, return_counts=True)
    several = count[number] > 1
    return rows[several], number[several].unique(return_inverse=True)[1]


def replaced(ranked: np.ndarray, old: np.ndarray, new: np.ndarray) -> np.ndarray:
    """Ascending values with some of them (m, in any order) exchanged for others."""
    old, new = np.sort(old), np.sort(new)
    which = np.arange(len(old)) - np.searchsorted(old, old)  # of equal ones the first, the second, and so on
    kept = np.delete(ranked, np.searchsorted(ranked, old) + which)
    return np.insert(kept, np.searchsorted(kept, new), new)


def _with_beaten(ranked: np.ndarray, n: int) -> np.ndarray:
    """Ascending values with the last n times more."""
    return np.concatenate([ranked, np.full(n, ranked[-1])]) if n and len(ranked) else ranked


def _worth(noise: Tensor | None, tasks: Tensor) -> Tensor | None:
    """The worth of evaluations with these standard deviations (n, NaN where none was told); None if none was.

    They are compared with this run's: earlier tasks may have another scale.
    """
    if noise is None:
        return None
    usual = torch.where(tasks == 0, noise, torch.nan).nanmedian()
    return (usual / noise).square().nan_to_num(nan=1.0).clamp(1 / MOST, MOST)


def _groups(table: Columns) -> Tensor:
    """The first row with the same configuration and budget as each (n): results of other budgets are no replicates."""
    budgets = table.budgets
    if budgets.isnan().all():
        return table.first_rows
    return regrouped(torch.stack([table.first_rows.to(budgets), budgets.nan_to_num(nan=-1)], dim=-1))
