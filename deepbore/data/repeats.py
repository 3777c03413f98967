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

LEAST = 1e-30  # a value without noise stands for itself: next to it others of its configuration count for nothing


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


@dataclass(frozen=True)
class Evaluated:
    """The values of the rows as labels are made of them: those of one configuration are their mean.

    Attributes:
        values: to minimise, n; NaN where there is none.
        ranked: those of this run, ascending; a configuration counts as often as it was evaluated.
        noise: standard deviation of each value, n, 0 where none was told; None if no row has any.
        count: evaluations that a row stands for, n: one row for all of its configuration, 0 for the others of it; None
            if no configuration comes again.
    """

    values: Tensor
    ranked: np.ndarray
    noise: Tensor | None
    count: Tensor | None


def evaluated(observations: "ObservationsView") -> Evaluated:
    """The first values of the rows, averaged over the evaluations of each configuration of this run at one budget.

    Where all evaluations of a configuration have noise sd_i told, the mean is weighted by 1 / sd_i^2 and has the noise
    (sum 1 / sd_i^2)^(-1/2); else it is the plain mean. Without repeats the values are those that were told, bit for
    bit, and nothing is sorted; with repeats the cost is that of sorting n numbers.
    """
    values, noise = observations.values[:, 0], observations.noise
    if not observations.has_repeats:
        return Evaluated(values, observations.sorted_values, None if noise is None else noise.nan_to_num(nan=0.0), None)
    told = observations.status == Status.COMPLETE
    rows = told.nonzero().squeeze(-1)
    group = _groups(observations)[rows]
    counts = _summed(torch.ones_like(values[rows]), group, len(values))
    precision = torch.ones_like(values) if noise is None else noise.clamp(min=LEAST).square().reciprocal()
    is_known = ~_summed(precision[rows], group, len(values)).isnan()
    weight = torch.where(is_known[group], precision[rows], 1.0)
    total = _summed(weight, group, len(values))
    means = _summed(weight * values[rows], group, len(values)) / total
    repeated = counts[group] > 1
    averaged = values.clone()
    averaged[rows] = torch.where(repeated, means[group], values[rows])
    last = group.new_zeros(len(values)).scatter_reduce(0, group, rows, "amax", include_self=False)
    count = torch.ones_like(values)
    count[rows] = torch.where(rows == last[group], counts[group], 0.0)
    if noise is not None:
        pooled = torch.where(repeated & is_known[group], total[group].rsqrt(), noise[rows].nan_to_num(nan=0.0))
        noise = torch.zeros_like(values).index_copy(0, rows, torch.where(repeated & ~is_known[group], 0.0, pooled))
    own = rows[observations.tasks[rows] == 0]
    return Evaluated(averaged, np.sort(averaged[own].cpu().numpy()), noise, count)


def _groups(observations: "ObservationsView") -> Tensor:
    """The first row with the same configuration and budget as each (n): results of other budgets are no repeats."""
    budgets = observations.budgets
    if budgets.isnan().all():
        return observations.first_rows
    return regrouped(torch.stack([observations.first_rows.to(budgets), budgets.nan_to_num(nan=-1)], dim=-1))


def _summed(each: Tensor, group: Tensor, n: int) -> Tensor:
    """Sums over the rows of each group, in its first row (n)."""
    return each.new_zeros(n).index_add(0, group, each)
