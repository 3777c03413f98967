"""`Buffers`: tensors of one length that grow by doubling, and columns of numbers as users give them."""

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from deepbore.compute.numerics import smallest
from deepbore.data.outcomes import as_number
from deepbore.errors import ValueTypeError

ROOM = 16  # rows at the beginning


class Buffers:
    """Named tensors with n rows each, and room for more.

    What is written beyond row n shows only when n is set to include it: appending is one assignment, which an
    interrupt finds done or not done.

    Args:
        widths: name -> columns of a buffer (None for a vector), and its type.
    """

    def __init__(self, **widths: tuple[int | None, torch.dtype]):
        self.n = 0
        self._buffers = {
            name: torch.empty(ROOM if width is None else (ROOM, width), dtype=dtype)
            for name, (width, dtype) in widths.items()
        }

    def __getitem__(self, name: str) -> Tensor:
        """The n rows of a buffer: a view, through which they are changed."""
        return self._buffers[name][: self.n]

    def take(self, rows: Tensor) -> "Buffers":
        """Copies of some rows, given by number."""
        part = Buffers()
        part.n, part._buffers = len(rows), {name: buffer[rows] for name, buffer in self._buffers.items()}
        return part

    def write(self, **rows: Tensor | float) -> None:
        """Writes rows (m x width, or one number for all) beyond the end; setting `n` makes them seen."""
        end = self.n + next(len(each) for each in rows.values() if isinstance(each, Tensor))
        if end > self._capacity:
            capacity = max(end, 2 * self._capacity)
            self._buffers = {name: _grown(buffer, capacity) for name, buffer in self._buffers.items()}
        for name, each in rows.items():
            buffer = self._buffers[name]
            buffer[self.n : end] = each.to(buffer) if isinstance(each, Tensor) else each

    def wide(self, name: str, width: int) -> Tensor:
        """The whole buffer if it is so wide, or for width 0; else one of NaN to put in its place."""
        buffer = self._buffers[name]
        return buffer if width in (0, buffer.shape[1]) else buffer.new_full((len(buffer), width), math.nan)

    def replace(self, name: str, buffer: Tensor) -> None:
        """Puts another buffer in the place of one."""
        self._buffers = {**self._buffers, name: buffer}

    def to(self, device: torch.device | str) -> None:
        """Moves the buffers to a device."""
        self._buffers = {name: buffer.to(device) for name, buffer in self._buffers.items()}

    @property
    def _capacity(self) -> int:
        return len(next(iter(self._buffers.values())))


def _grown(buffer: Tensor, capacity: int) -> Tensor:
    larger = buffer.new_empty(capacity, *buffer.shape[1:])
    larger[: len(buffer)] = buffer
    return larger


def as_numbers(values: Any, what: str = "objective values") -> np.ndarray:
    """Numbers as a float64 array of the same shape; None becomes NaN.

    Raises:
        ValueTypeError: for anything but numbers.
    """
    if isinstance(values, Tensor):
        values = values.detach().cpu()
    elif isinstance(values, (list, tuple)):
        values = [each.detach().cpu() if isinstance(each, Tensor) else each for each in values]
    try:
        array = np.asarray(values)
    except (TypeError, ValueError):
        raise ValueTypeError(f"{what} must be numbers, one for each row, but got {_begin(values)}.") from None
    if array.dtype.kind in "fiu":
        return array.astype(np.float64)
    if array.dtype.kind != "O":
        raise ValueTypeError(f"{what} must be numbers, but got {_begin(values)}.")
    each = [math.nan if value is None else as_number(value, what) for value in array.ravel()]
    return np.array(each, dtype=np.float64).reshape(array.shape)


def _begin(values: Any) -> str:
    return f"{list(values)[:3]!r} ..." if isinstance(values, Iterable) else f"{values!r:.100}"


def least(merit: Tensor, k: int) -> Tensor:
    """Places of the k least finite entries (up to k), the least first."""
    rows = smallest(merit, min(k, len(merit)))
    return rows[merit[rows] < math.inf]
