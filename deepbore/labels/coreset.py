"""Coresets: which rows to learn from where there are too many, and how much each of them counts."""

import torch
from torch import Tensor

from deepbore.compute.numerics import largest

NEGLIGIBLE = 1e-3  # the weight up to which nothing is learned from a row; see `LabelledBatch.light`
NEXT_TO_NOTHING = 1e-6  # the weight of pending rows, and of replicates beside the row that stands for them
LEAST_WEIGHT = 1e-2  # of rows chosen by label: among very many rows they still show where it is good


def coreset(score: Tensor, light: Tensor, size: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Numbers and weights of `size` distinct rows, by age: a quarter the newest, a quarter the best, the rest random.

    The best are chosen by what came out, so under noise they are the lucky ones. If they counted as much as rows drawn
    at random, everything near them would look better than it is, and the good class larger. So a row counts for the
    number of rows that it stands for: one of the k that are drawn from m others stands for m / k, one of the best for
    itself alone. The newest were chosen by where they are, which biases no estimate of a label given a point, and count
    in full. All weights are divided by m / k. Where there is no noise, rows of small weight are learned as well as any.

    Args:
        score: by which rows are the best, n.
        light: numbers of the rows to leave out, ascending.
        size: of the coreset, fewer than the n rows less the light ones.
        generator: what is drawn with.

    Returns:
        Row numbers and weights in (0, 1], `size` each, on the device of the score.
    """
    heavy, quarter = len(score) - len(light), size // 4
    newest = torch.arange(heavy - quarter, heavy, device=score.device)  # counted without the light ones, as all here
    left_out = torch.cat([light, absent(light, newest)])
    best = largest(score.index_fill(0, left_out, -torch.inf), quarter)
    best = best - torch.searchsorted(light, best)
    left, drawn = heavy - 2 * quarter, size - 2 * quarter
    others = absent(torch.cat([best, newest]).sort().values, distinct_numbers(left, drawn, generator).to(score.device))
    weight = torch.ones(size, device=score.device)
    weight[quarter : 2 * quarter] = max(drawn / left, LEAST_WEIGHT)
    by_age = torch.cat([newest, best, others]).sort()
    return absent(light, by_age.values), weight[by_age.indices]


def distinct_numbers(n: int, count: int, generator: torch.Generator) -> Tensor:
    """`count` of the numbers 0 ... n - 1, all different, at a cost that does not grow with n.

    Raises nothing for count > n, but gives all n.
    """
    if n <= 4 * count:
        return torch.randperm(n, generator=generator)[:count]
    drawn = torch.empty(0, dtype=torch.long)
    while len(drawn) < count:  # hardly ever twice; by symmetry any set of a size is as likely as any other
        drawn = torch.cat([drawn, torch.randint(n, (2 * count,), generator=generator)]).unique()
    return drawn[torch.randperm(len(drawn), generator=generator)[:count]]


def absent(taken: Tensor, rank: Tensor) -> Tensor:
    """The rank-th of the numbers 0, 1, 2, ... that are not taken, for ranks of any shape.

    Args:
        taken: ascending, distinct.
        rank: counted from 0.

    Example:
        >>> absent(torch.tensor([1, 2, 5]), torch.tensor([0, 1, 2, 3])).tolist()
        [0, 3, 4, 6]
    """
    missing_before = taken - torch.arange(len(taken), device=taken.device)
    return rank + torch.searchsorted(missing_before, rank, right=True)
