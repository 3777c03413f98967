"""How alike two orders are."""

import torch
from torch import Tensor


def rank_correlation(one: Tensor, other: Tensor) -> Tensor:
    """Spearman's rank correlation of n pairs, ties sharing their mean rank; 0 where one does not vary (a scalar)."""
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
