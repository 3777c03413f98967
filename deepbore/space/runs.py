"""`Run`: neighbouring columns of points that are worked on in one call."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby

import torch
from torch import Tensor

from deepbore.space.parameters import Parameter


@dataclass(frozen=True)
class Run:
    """Neighbouring columns whose parameters work alike (see `Parameter.alike`): the first of them speaks for all."""

    parameter: Parameter
    columns: slice


def runs(parameters: Sequence[Parameter]) -> list[Run]:
    """The columns of a point, in as few runs as there can be."""
    found = [list(run) for _, run in groupby(enumerate(parameters), lambda pair: pair[1].alike)]
    return [Run(run[0][1], slice(run[0][0], run[-1][0] + 1)) for run in found]


def run_by_run(found: Sequence[Run], work: Callable[..., Tensor], *points: Tensor) -> Tensor:
    """`work(parameter, *columns)` for the columns of each run, side by side again.

    Args:
        found: all the runs.
        work: a parameter and columns of points (... x k each) -> ... x k.
        points: what the columns are taken from (... x d each).
    """
    parts = [work(run.parameter, *(each[..., run.columns] for each in points)) for run in found]
    return torch.cat(parts, dim=-1) if len(parts) > 1 else parts[0]
