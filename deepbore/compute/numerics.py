"""Order statistics of very many numbers, rank correlation, `minimize`, and the error of a failed factorisation."""

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from torch.linalg import LinAlgError  # type: ignore[attr-defined]  # torch's types lack it

if TYPE_CHECKING:
    from scipy.optimize import OptimizeResult

__all__ = [
    "LinAlgError",
    "calibration_error",
    "largest",
    "mean_ranks",
    "minimize",
    "places",
    "rank_correlation",
    "smallest",
    "up_to",
]

BLOCK = 64  # numbers whose extreme is found first
MANY = 100_000  # numbers from which blocks are faster than `topk`


def smallest(values: Tensor, k: int) -> Tensor:
    """Indices of the k smallest values (n, k <= n), ascending; NaN counts as infinite.

    Each of them is in one of the k blocks with the smallest minima, so only these are sorted: of a million values on a
    CPU that takes a fifth of the time of `topk`.
    """
    return _first(values, k, math.inf)


def largest(values: Tensor, k: int) -> Tensor:
    """Indices of the k largest values (n, k <= n), descending; NaN counts as minus infinity."""
    return _first(values, k, -math.inf)


def up_to(values: Tensor, most: float) -> Tensor:
    """Indices of the values (n) that are <= most, ascending."""
    return places(values <= most)


def places(mask: Tensor) -> Tensor:
    """Indices of what is true (n booleans), ascending; on a CPU NumPy finds few among many much faster."""
    if mask.device.type != "cpu":
        return mask.nonzero().squeeze(-1)
    return torch.from_numpy(np.flatnonzero(mask.numpy()))


def _first(values: Tensor, k: int, last: float) -> Tensor:
    """Indices of the k first values, in the order that ends with the infinity `last`."""
    n = len(values)
    if n < max(MANY, 2 * k * BLOCK):
        return values.nan_to_num(last, math.inf, -math.inf).topk(k, largest=last < 0).indices
    whole = n - n % BLOCK
    blocks = values[:whole].reshape(-1, BLOCK)
    firsts = _firsts(blocks, last)
    if bool((unknown := firsts.isnan()).any()):
        firsts[unknown] = _firsts(blocks[unknown].nan_to_num(last, math.inf, -math.inf), last)
    chosen, rest = _first(firsts, k, last), torch.arange(whole, n, device=values.device)
    inside, limit = blocks[chosen], firsts[chosen[-1]]
    among = places(
        (inside <= limit if last > 0 else inside >= limit).flatten()
    )  # k of them at least, unless NaN counts
    if len(among) < k or not bool(limit.isfinite()):
        among = torch.arange(inside.numel(), device=values.device)
    among = torch.cat([chosen[among // BLOCK] * BLOCK + among % BLOCK, rest])
    return among[_first(values[among], k, last)]


def _firsts(blocks: Tensor, last: float) -> Tensor:
    """The first value of each block (b x BLOCK), NaN where the block has one: b."""
    return blocks.amax(1) if last < 0 else blocks.amin(1)


def rank_correlation(one: Tensor, other: Tensor) -> Tensor:
    """Spearman's rank correlation of n pairs, ties sharing their mean rank; 0 if one side is constant (a scalar)."""
    ranks = torch.stack([mean_ranks(one), mean_ranks(other)])
    ranks = ranks - ranks.mean(-1, keepdim=True)
    scale = ranks.square().sum(-1).prod().sqrt()
    return ranks.prod(0).sum() / scale if scale > 0 else scale


def mean_ranks(values: Tensor) -> Tensor:
    """Ranks of n values from 0, ties sharing their mean (n)."""
    _, inverse, count = values.unique(return_inverse=True, return_counts=True)
    last = count.cumsum(0).double()
    mean: Tensor = last - (count + 1) / 2
    return mean[inverse]


def calibration_error(probability: Tensor, z: Tensor, bins: int) -> Tensor:
    """The expected calibration error: sum_b n_b / n |mean z_b - mean p_b| over equal bins of [0, 1] (a scalar).

    For classes it is that of torchmetrics; for grades a forecast of the right mean grade has no error.

    Args:
        probability: in [0, 1], n.
        z: labels in [0, 1], n.
        bins: how many, >= 1.
    """
    place = (probability.double() * bins).long().clamp(max=bins - 1)
    gaps = torch.zeros(bins, dtype=torch.float64, device=z.device)
    return gaps.index_add(0, place, z.double() - probability.double()).abs().sum() / len(z)


def minimize(function: Callable[..., Any], start: np.ndarray, **settings: Any) -> "OptimizeResult":
    """`scipy.optimize.minimize`; its import takes .2 s, which the first trials of a run do not need."""
    from scipy import optimize

    return optimize.minimize(function, start, **settings)
