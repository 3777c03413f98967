"""Configurations that come again: which rows they are, and the means of their values."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from deepbore.data.outcomes import Status

if TYPE_CHECKING:
    from deepbore.data.view import ObservationsView

MOST = 100.0  # evaluations of usual noise that a row is worth: none drowns all others


def first_rows(
    known: Mapping[Hashable, int], identities: Sequence[Hashable], start: int
) -> tuple[dict[Hashable, int], list[int]]:
    """The first row with each of m configurations.

    Args:
        known: configuration -> first row, of rows before.
        identities: what tells the m configurations apart.
        start: row of the first of them.

    Returns:
        What is new, as in `known`; and the first row of each of the m.
    """
    rows = range(start, start + len(identities))
    new: dict[Hashable, int] = {}
    firsts = [
        new.setdefault(each, row) if (first := known.get(each)) is None else first
        for each, row in zip(identities, rows, strict=True)
    ]
    return new, firsts


def regrouped(keys: Tensor) -> Tensor:
    """For each of n keys (n, or n x k) the first row with the same (n)."""
    groups = keys.unique(dim=0, return_inverse=True)[1]
    rows = torch.arange(len(groups), device=groups.device)
    return torch.full_like(groups, len(groups)).scatter_reduce(0, groups, rows, "amin")[groups]


def first_among(rows: Tensor, first: Tensor) -> Tensor:
    """Of some rows, ascending, with the first row of each configuration (both m): the place of that among them (m).

    Where that is none of them, it is the place of the first that is.
    """
    places = torch.searchsorted(rows, first).clamp_(max=max(0, len(rows) - 1))
    return places if bool((rows[places] == first).all()) else regrouped(first)


def distinct_rows(rows: Tensor, first: Tensor) -> Tensor:
    """Of some rows (m) the first with each configuration, in their order; `first` has the first row of each (n)."""
    places = {each: place for place, each in reversed(list(enumerate(first[rows].tolist())))}
    return rows[sorted(places.values())]


@dataclass(frozen=True)
class Evaluated:
    """The values of the rows as labels are made of them: those of one configuration are their mean.

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


def evaluated(observations: "ObservationsView") -> Evaluated:
    """The first values of the rows, averaged over the evaluations of each configuration of this run at one budget.

        w_i = (s / sd_i)^2, at least 1/100 and at most 100,    s the median of the sd_i that were told

    An evaluation counts as w_i in the mean, and its row in what is learned; as 1 where no noise was told. So the noise
    that was told says how much more one value is worth than another, and how much noise there is at all, compared with
    what the function does, is learned. The best value and tau are looked for among what is worth an evaluation of usual
    noise: else the luckiest of the noisiest values would be what all others are measured by. And each configuration
    counts once there: one that is run again and again would else be tau itself. Failures of one configuration are one
    row, too.

    Without repeats the values are those that were told, bit for bit; with repeats no more than the rows of these
    configurations is looked at twice, and none of them again while only rows of new configurations join.
    """
    known = observations.averages
    if known is not None and (joined := known.joined(observations)) is not None:
        observations.averages = joined
        return joined.found
    found = _from_all_rows(observations)
    observations.averages = Averages.of_all(found, observations)
    return found


@dataclass(frozen=True)
class Averages:
    """What `evaluated` found of n rows where configurations come again, to go on from.

    Attributes:
        values, ranked, worth: as of `Evaluated`.
        waiting: those of the rows that were pending, each the only one of its configuration.
    """

    values: Tensor
    ranked: np.ndarray
    worth: Tensor
    waiting: Tensor

    @property
    def found(self) -> Evaluated:
        """The same without what is waiting."""
        return Evaluated(self.values, self.ranked, self.worth)

    @classmethod
    def of_all(cls, found: Evaluated, observations: "ObservationsView") -> "Averages | None":
        """What was found of all rows; None where new configurations may change it, or where nothing comes again."""
        if found.worth is None or not _are_plain(observations):
            return None
        waiting, first = observations.pending_rows, observations.first_rows
        with_them = torch.isin(first, first[waiting])
        is_alone = int(with_them.sum()) == len(waiting)
        return cls(found.values, found.ranked, found.worth, waiting) if is_alone else None

    def joined(self, observations: "ObservationsView") -> "Averages | None":
        """With the rows since then; None where one of them is of a configuration that was there."""
        device = observations.points.device
        if not _are_plain(observations) or device != self.waiting.device:
            return None
        new = torch.cat([self.waiting, torch.arange(len(self.values), len(observations), device=device)])
        if bool((observations.first_rows[new] != new).any()):
            return None
        values = observations.values[new, 0]
        joining = values[len(self.waiting) :]
        told = np.sort(values[~values.isnan()].cpu().numpy())
        return Averages(
            torch.cat([self.values, joining]).index_copy_(0, new, values),
            np.insert(self.ranked, np.searchsorted(self.ranked, told), told),
            torch.cat([self.worth, self.worth.new_ones(len(joining))]),
            new[observations.status[new] == Status.PENDING],
        )


def _are_plain(observations: "ObservationsView") -> bool:
    """Whether what rows are worth, and their values, are nothing but what was told of their configurations."""
    others = observations.by_preference or observations.task_names or observations.n_beaten
    return observations.noise is None and not others


def _from_all_rows(observations: "ObservationsView") -> Evaluated:
    values, worth = observations.values[:, 0], _worth(observations.noise, observations.tasks)
    if not observations.has_repeats:
        ranked = observations.sorted_values if worth is None else _trusted(observations, values, worth)
        return Evaluated(values, _with_beaten(ranked, observations.n_beaten), None if worth is None else worth.float())
    groups, status = _groups(observations), observations.status
    rows, group = _repeated(groups, status == Status.COMPLETE)
    each = torch.ones_like(values) if worth is None else worth
    means, total = _means(values[rows], each[rows], group)
    stands = _is_last(rows, group)
    averaged = values.index_copy(0, rows, means[group])
    together = each.index_copy(0, rows, torch.where(stands, total[group].clamp(max=MOST), 0.0))
    if worth is None:
        own = observations.tasks[rows] == 0
        once = rows[own & stands]
        ranked = replaced(observations.sorted_values, values[rows[own]].cpu().numpy(), averaged[once].cpu().numpy())
    else:
        ranked = _trusted(observations, averaged, together)
    rows, group = _repeated(groups, status == Status.FAILED)
    together.index_fill_(0, rows[~_is_last(rows, group)], 0.0)
    return Evaluated(averaged, _with_beaten(ranked, observations.n_beaten), together.float())


def _is_last(rows: Tensor, group: Tensor) -> Tensor:
    """Which of the rows (m) are the last ones of their groups (m): those that stand for them (m booleans)."""
    last = group.new_zeros(int(group.max()) + 1 if len(group) else 0)
    return rows == last.scatter_reduce(0, group, rows, "amax", include_self=False)[group]


def _means(values: Tensor, weight: Tensor, group: Tensor) -> tuple[Tensor, Tensor]:
    """Weighted means of the values (m) of each group, and its weights together (g and g). Equal values stay equal."""
    total = weight.new_zeros(int(group.max()) + 1 if len(group) else 0).index_add(0, group, weight)
    least = torch.full_like(total, torch.inf).scatter_reduce(0, group, values, "amin")
    return least + torch.zeros_like(total).index_add(0, group, weight * (values - least[group])) / total, total


def _trusted(observations: "ObservationsView", values: Tensor, worth: Tensor) -> np.ndarray:
    """The values of this run whose configurations are worth an evaluation (n, and n), ascending; all, if none is."""
    told = (observations.status == Status.COMPLETE) & (observations.tasks == 0) & (worth > 0)
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
    """What evaluations with these standard deviations (n, NaN where none was told) are worth; None if none was.

    They are compared with this run's: earlier tasks may have another scale.
    """
    if noise is None:
        return None
    usual = torch.where(tasks == 0, noise, torch.nan).nanmedian()
    return (usual / noise).square().nan_to_num(nan=1.0).clamp(1 / MOST, MOST)


def _groups(observations: "ObservationsView") -> Tensor:
    """The first row with the same configuration and budget as each (n): results of other budgets are no repeats."""
    budgets = observations.budgets
    if budgets.isnan().all():
        return observations.first_rows
    return regrouped(torch.stack([observations.first_rows.to(budgets), budgets.nan_to_num(nan=-1)], dim=-1))
