"""`Readings`: what networks and kernels read off points."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from deepbore.space.parameters import Reading

if TYPE_CHECKING:
    from deepbore.space.search_space import SearchSpace


class Readings(nn.Module):
    """Points (n x d) -> numbers (n x e), each read off one parameter, and a mask.

    Where a conditional parameter is inactive its numbers are 0; one more bit for each says whether it is active.

    Args:
        space: the search space.
        readings: those of each parameter, in the order of a point's columns.

    Attributes:
        owner: the parameter that each of the e numbers belongs to.
    """

    owner: Tensor
    columns: Tensor
    at: Tensor
    place: Tensor

    def __init__(self, space: "SearchSpace", readings: Sequence[Sequence[Reading]]):
        super().__init__()
        self.space = space
        self._conditional = [column for column, p in enumerate(space.parameters.values()) if p.when is not None]
        rows = [(column, reading) for column, several in enumerate(readings) for reading in several]
        functions = list(dict.fromkeys(reading.read for _, reading in rows))
        order = [row for read in functions for row, (_, reading) in enumerate(rows) if reading.read == read]
        counts = [sum(reading.read == read for _, reading in rows) for read in functions]
        self._functions = list(zip(functions, counts, strict=True))  # each with the number of its readings
        self._in_order = order == list(range(len(rows)))
        columns = [column for column, _ in rows]
        self._keep("owner", columns + self._conditional)
        self._keep("columns", [columns[row] for row in order])
        self._keep("place", sorted(range(len(rows)), key=order.__getitem__))
        at = torch.tensor([rows[row][1].at for row in order], dtype=torch.float64)
        self.register_buffer("at", at, persistent=False)

    def _keep(self, name: str, numbers: Sequence[int]) -> None:
        self.register_buffer(name, torch.tensor(numbers, dtype=torch.long), persistent=False)

    @property
    def size(self) -> int:
        """e, how many numbers are read."""
        return len(self.owner)

    def forward(self, points: Tensor) -> Tensor:
        """Points (n x d, or any leading shape) -> n x e numbers in their dtype, on their device.

        Differentiable in the columns of continuous parameters and of integers with many levels.
        """
        read = self._read(points)
        if not self._conditional:
            return read
        active = self.space.active(points).to(points).index_select(-1, self.owner)
        count = read.shape[-1]
        return torch.cat([read * active[..., :count], active[..., count:]], dim=-1)

    def _read(self, points: Tensor) -> Tensor:
        """The numbers of the parameters, one call for each function, put back in their order."""
        found, start = [], 0
        for read, count in self._functions:
            column = points.index_select(-1, self.columns[start : start + count])
            found.append(read(column, self.at[start : start + count]))
            start += count
        together = torch.cat(found, dim=-1) if len(found) > 1 else found[0]
        return together if self._in_order else together.index_select(-1, self.place)
