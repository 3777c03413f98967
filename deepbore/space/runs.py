"""`Run`: neighbouring columns of points that are worked on in one call."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby

import torch
from torch import Tensor

from deepbore.space.parameters import Parameter


@dataclass(frozen=True)
class Run:
    """Neighbouring columns whose parameters work alike (see `Parameter.alike`).

    Args:
        parameter: the first of them, which works for all.
        width: how many columns there are.
    """

    parameter: Parameter
    width: int


def runs(parameters: Sequence[Parameter]) -> list[Run]:
    """The columns of a point, in as few runs as there can be."""
    found = [list(run) for _, run in groupby(parameters, lambda parameter: parameter.alike)]
    return [Run(run[0], len(run)) for run in found]


def run_by_run(found: Sequence[Run], work: Callable[..., Tensor], *points: Tensor) -> Tensor:
    """`work(parameter, *columns)` for the columns of each run, side by side again.

    Args:
        found: all the runs.
        work: a parameter and columns of points (... x width each) -> ... x width.
        points: what the columns are taken from (... x d each).
    """
    if len(found) == 1:
        return work(found[0].parameter, *points)
    widths = [run.width for run in found]
    columns = zip(*(each.split(widths, dim=-1) for each in points), strict=True)
    return torch.cat([work(run.parameter, *several) for run, several in zip(found, columns, strict=True)], dim=-1)
