"""Looking through very many numbers quickly: torch's own ways take a multiple of the time on a CPU."""

import math

import numpy as np
import torch
from torch import Tensor

BLOCK = 64  # numbers of which the extreme one is looked at first
MANY = 100_000  # numbers for which it is worth while


def smallest(values: Tensor, k: int) -> Tensor:
    """Places of the k smallest values (n, k <= n), the smallest first; NaN counts as infinite.

    Each of them is in one of the k blocks whose own smallest values are the smallest, so that nothing else need be
    ordered: of a million values that takes a fifth of the time of `topk`.
    """
    return _first(values, k, math.inf)


def largest(values: Tensor, k: int) -> Tensor:
    """Places of the k largest values (n, k <= n), the largest first, as of `smallest`; NaN counts as minus infinity."""
    return _first(values, k, -math.inf)


def up_to(values: Tensor, most: float) -> Tensor:
    """Places of the values (n) that are at most so large, ascending."""
    if values.device.type != "cpu":
        return (values <= most).nonzero().squeeze(-1)
    return torch.from_numpy(np.flatnonzero(values.numpy() <= most))


def _first(values: Tensor, k: int, last: float) -> Tensor:
    """Places of the k first values; `last` says which infinity comes last."""
    n = len(values)
    if n < max(MANY, 2 * k * BLOCK):
        return values.nan_to_num(last, math.inf, -math.inf).topk(k, largest=last < 0).indices
    whole = n - n % BLOCK
    blocks = values[:whole].reshape(-1, BLOCK)
    firsts = _firsts(blocks, last)
    if bool((unknown := firsts.isnan()).any()):
        firsts[unknown] = _firsts(blocks[unknown].nan_to_num(last, math.inf, -math.inf), last)
    offsets, rest = (torch.arange(*ends, device=values.device) for ends in ((BLOCK,), (whole, n)))
    chosen = _first(firsts, k, last)
    places = torch.cat([(chosen[:, None] * BLOCK + offsets).flatten(), rest])
    return places[_first(values[places], k, last)]


def _firsts(blocks: Tensor, last: float) -> Tensor:
    """The first value of each block (b x BLOCK), NaN where it has one: b."""
    return blocks.amax(1) if last < 0 else blocks.amin(1)
