"""Coresets: a weighted subset of rows to learn from."""

import torch
from torch import Tensor

from deepbore.compute.numerics import largest

NEGLIGIBLE = 1e-3  # rows up to this weight are ignored; see `LabelledBatch.ignored`
TINY_WEIGHT = 1e-6  # the weight of pending rows, and of replicates other than the row that represents them
LEAST_WEIGHT = 1e-2  # of rows chosen by label, so that they count even among very many rows


def coreset(score: Tensor, ignored: Tensor, size: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Numbers and weights of `size` distinct rows, by age: a quarter the newest, a quarter the best, the rest random.

    Selection by label is biased under noise: the best rows are the lucky ones. With the weight of random rows they
    would make their neighbourhood look better than it is, and the good class larger. So each row has the weight of the
    rows that it represents: each of k rows drawn from m others represents m / k rows, each of the best only itself. The
    newest are selected by position, which does not bias predictions, so they have the full weight. All weights are
    divided by m / k. Without noise the weights do not matter.

    Args:
        score: larger for better rows, n.
        ignored: numbers of rows to exclude, ascending.
        size: of the coreset, less than the number of rows not ignored.
        generator: random numbers.

    Returns:
        Row numbers and weights in (0, 1], `size` each, on the device of the score.
    """
    n, quarter = len(score) - len(ignored), size // 4
    newest = torch.arange(n - quarter, n, device=score.device)  # numbered without the ignored rows
    excluded = torch.cat([ignored, absent(ignored, newest)])
    best = largest(score.index_fill(0, excluded, -torch.inf), quarter)
    best = best - torch.searchsorted(ignored, best)
    left, drawn = n - 2 * quarter, size - 2 * quarter
    others = absent(torch.cat([best, newest]).sort().values, distinct_numbers(left, drawn, generator).to(score.device))
    weight = torch.ones(size, device=score.device)
    weight[quarter : 2 * quarter] = max(drawn / left, LEAST_WEIGHT)
    by_age = torch.cat([newest, best, others]).sort()
    return absent(ignored, by_age.values), weight[by_age.indices]


def distinct_numbers(n: int, count: int, generator: torch.Generator) -> Tensor:
    """`count` distinct random numbers of 0 ... n - 1, or all n if there are fewer; the cost does not grow with n."""
    if n <= 4 * count:
        return torch.randperm(n, generator=generator)[:count]
    drawn = torch.empty(0, dtype=torch.long)
    while len(drawn) < count:  # rarely more than once; by symmetry all sets of a size are equally likely
        drawn = torch.cat([drawn, torch.randint(n, (2 * count,), generator=generator)]).unique()
    return drawn[torch.randperm(len(drawn), generator=generator)[:count]]


def absent(taken: Tensor, rank: Tensor) -> Tensor:
    """The rank-th number of 0, 1, 2, ... that is not taken, for ranks of any shape.

    Args:
        taken: ascending, distinct.
        rank: counted from 0.

    Example:
        >>> absent(torch.tensor([1, 2, 5]), torch.tensor([0, 1, 2, 3])).tolist()
        [0, 3, 4, 6]
    """
    missing_before = taken - torch.arange(len(taken), device=taken.device)
    return rank + torch.searchsorted(missing_before, rank, right=True)
