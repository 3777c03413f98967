"""`Features` and `Coordinates`: points as inputs of networks and of kernels."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor, nn

from deepbore.space.parameters import Parameter, Reading
from deepbore.space.parameters.base import along
from deepbore.space.parameters.descriptors import Descriptors


class HasParameters(Protocol):
    """The structure of a space, or its view for models (`SearchSpace.points`)."""

    @property
    def parameters(self) -> Mapping[str, Parameter]:
        """Name -> parameter, in the order of a point's columns."""

    def active(self, points: Tensor) -> Tensor:
        """Which parameters are active in each point (n x d booleans)."""


@dataclass(frozen=True)
class Block:
    """Inputs of a model that belong together: in a kernel they share a length scale.

    Attributes:
        parameter: the column of their parameter in a point.
        inputs: which of the e inputs they are.
        descriptors: of the levels, if they are rows of these; None if they say which value the parameter has, and
            whether it is active.
    """

    parameter: int
    inputs: tuple[int, ...]
    descriptors: Descriptors | None = None


class InputTransform(nn.Module):
    """Points (n x d) -> inputs of a model (n x e), each computed from one parameter.

    Inputs of an inactive parameter are 0. First come the readings of all parameters, then the descriptors of those that
    have some, then one input for each conditional parameter, 1 where it is active and 0 where it is not.

    Args:
        space: the structure of the space, or `SearchSpace.points`.
        readings: inputs from each parameter, in the order of a point's columns.

    Attributes:
        owner: column of the parameter that each of the e inputs belongs to.
        blocks: the inputs that say which values the parameters have, a block for each parameter; then descriptors, a
            block for each parameter that has some.
        block: number of the block that each of the e inputs belongs to.
    """

    owner: Tensor
    block: Tensor
    columns: Tensor
    at: Tensor
    place: Tensor

    def __init__(self, space: HasParameters, readings: Sequence[Sequence[Reading]]):
        super().__init__()
        self.space = space
        self._conditional = [column for column, p in enumerate(space.parameters.values()) if p.when is not None]
        rows = [(column, reading) for column, several in enumerate(readings) for reading in several]
        functions = list(dict.fromkeys(reading.read for _, reading in rows))
        order = [row for read in functions for row, (_, reading) in enumerate(rows) if reading.read == read]
        counts = [sum(reading.read == read for _, reading in rows) for read in functions]
        self._functions = list(zip(functions, counts, strict=True))  # and the number of inputs of each
        self._in_order = order == list(range(len(rows)))
        columns = [column for column, _ in rows]
        described = [(column, p.descriptors) for column, p in enumerate(space.parameters.values())]
        self._described = [(column, each) for column, each in described if each is not None]
        rows_of = [column for column, each in self._described for _ in range(each.width)]
        self._keep("owner", columns + rows_of + self._conditional)
        self.blocks = self._in_blocks(len(columns), len(rows_of))
        block_of = {place: number for number, block in enumerate(self.blocks) for place in block.inputs}
        self._keep("block", [block_of[place] for place in range(self.size)])
        self._keep("columns", [columns[row] for row in order])
        self._keep("place", sorted(range(len(rows)), key=order.__getitem__))
        at = torch.tensor([rows[row][1].at for row in order], dtype=torch.float64)
        self.register_buffer("at", at, persistent=False)

    def _in_blocks(self, readings: int, rows: int) -> tuple[Block, ...]:
        """The blocks of all inputs: so many readings, then rows of descriptors, then whether parameters are active."""
        owner = self.owner.tolist()
        own: dict[int, list[int]] = {column: [] for column in sorted(set(owner))}
        for place in [*range(readings), *range(readings + rows, len(owner))]:
            own[owner[place]].append(place)
        blocks, start = [Block(column, tuple(places)) for column, places in own.items() if places], readings
        for column, each in self._described:
            blocks.append(Block(column, tuple(range(start, start + each.width)), each))
            start += each.width
        return tuple(blocks)

    def _keep(self, name: str, numbers: Sequence[int]) -> None:
        self.register_buffer(name, torch.tensor(numbers, dtype=torch.long), persistent=False)

    @property
    def size(self) -> int:
        """e, the number of inputs."""
        return len(self.owner)

    def forward(self, points: Tensor) -> Tensor:
        """Points (n x d, or any leading shape) -> n x e inputs in their dtype, on their device.

        Differentiable in the columns of continuous parameters and of integers with many levels.
        """
        inputs = self._inputs(points)
        if not self._conditional:
            return inputs
        active = self.space.active(points).to(points).index_select(-1, self.owner)
        count = inputs.shape[-1]
        return torch.cat([inputs * active[..., :count], active[..., count:]], dim=-1)

    def _inputs(self, points: Tensor) -> Tensor:
        """Inputs from the parameters, without whether they are active."""
        if not self._described:
            return self._readings(points)
        parameters = list(self.space.parameters.values())
        found = [self._readings(points)] if self._functions else []
        for column, descriptors in self._described:
            level = parameters[column].to_level(points[..., column].detach()).long()
            found.append(descriptors.rows(level).to(points))
        return torch.cat(found, dim=-1)

    def _readings(self, points: Tensor) -> Tensor:
        """One call of each function, in the order of the parameters."""
        found, start = [], 0
        for read, count in self._functions:
            column = points.index_select(-1, self.columns[start : start + count])
            found.append(read(column, self.at[start : start + count]))
            start += count
        together = torch.cat(found, dim=-1) if len(found) > 1 else found[0]
        return together if self._in_order else together.index_select(-1, self.place)


class Features(InputTransform):
    """Inputs of a network, the first layer of most classifiers: points (n x d) -> features (n x e).

    - real numbers and integers of many levels: one number in [-1, 1];
    - ordinals and integers of few levels: thermometer code, one bit `level >= k` for each k = 1 ... K - 1, so that
      neighbouring levels differ in one bit;
    - categories: one-hot, and their descriptors if they have some;
    - conditional parameters: zeros where inactive, and one more bit, whether it is active.

    Args:
        space: the structure of the space, or `SearchSpace.points`.

    Example:
        >>> from deepbore import Ordinal, Real, SearchSpace
        >>> space = SearchSpace({"x": Real(0, 1), "k": Ordinal([1, 2, 4])})
        >>> space.points.features(space.encode([{"x": 0.25, "k": 2}])).tolist()
        [[-0.5, 1.0, 0.0]]
    """

    def __init__(self, space: HasParameters):
        super().__init__(space, [parameter.readings() for parameter in space.parameters.values()])


class Coordinates(InputTransform):
    """Inputs of a kernel: points (n x d) -> coordinates (n x c), in which each parameter spans a length of 1.

    Numbers and ordinals have one coordinate in [0, 1]. A category has K coordinates, one of them 1 / sqrt(2), so that
    any two categories have a distance of 1; its descriptors, if it has some, are a block of their own beside them. A
    conditional parameter has one more, which is 1 where it is active; where it is inactive, all its coordinates are 0.

    Args:
        space: the structure of the space, or `SearchSpace.points`.

    Attributes:
        owner: column of the parameter that each of the c coordinates belongs to.
        into: the matrix from points to coordinates (d x c), if they are linear in the points; else None.
    """

    into: Tensor | None

    def __init__(self, space: HasParameters):
        super().__init__(space, [parameter.coordinates() for parameter in space.parameters.values()])
        is_linear = not (self._conditional or self._described) and all(read is along for read, _ in self._functions)
        self.register_buffer("into", (1 / self.at).diag() if is_linear else None, persistent=False)


def squared_distances(x: Tensor, y: Tensor) -> Tensor:
    """All squared distances: n x c and m x c -> n x m."""
    squared = x.square().sum(-1, keepdim=True) + y.square().sum(-1) - 2 * x @ y.mT
    return squared.clamp(min=0)
