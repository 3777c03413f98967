"""Earlier results from a CSV file: text -> native values, column by column."""

import csv
import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from deepbore.errors import PointError, TableError
from deepbore.space import SearchSpace
from deepbore.space.parameters import Parameter
from deepbore.space.parameters.base import NOTHING, number

Columns = dict[str, list[Any]]


def read_csv(path: str | os.PathLike[str], space: SearchSpace, value: str = "value") -> tuple[Columns, list[float]]:
    """The columns and values in a CSV file, as `Study.add` takes them.

    Args:
        path: the file, in UTF-8: a header, then a row for each trial. Columns that are neither a parameter nor the
            value are passed over, and so are rows whose `status` is "pending", as in `Study.to_frame`.
        space: each of its parameters needs a column. A choice is recognised by how it is written (True, 1e-3 for 0.001,
            nothing for None); a cell of an inactive parameter may hold anything.
        value: name of the column of values; an empty one, or NaN, is a failed trial.

    Raises:
        TableError: naming line and column, for a cell that does not belong there, or for a file that is no such table.
    """
    if value in space.names:
        raise TableError(f"{value!r} is a parameter, so the values need another column. Name it with value=.")
    table = _Table.read(path, [*space.names, value])
    read = {name: _natives(space.parameters[name], table.columns[name]) for name in space.names}
    columns = {name: natives for name, (natives, _) in read.items()}
    active = space.active(space.encode_columns(columns)).T.tolist()
    wrong = [
        (row, name, says)
        for name, (_, errors), on in zip(space.names, read.values(), active, strict=True)
        for row, says in errors.items()
        if on[row]
    ]
    if wrong:
        row, name, says = min(wrong)
        raise table.error(row, name, says)
    return columns, [_value(table, row, value) for row in range(len(table.lines))]


@dataclass(frozen=True)
class _Table:
    """The text of some columns, and where each row ends."""

    path: str
    columns: dict[str, list[str]]
    lines: list[int]

    @classmethod
    def read(cls, path: str | os.PathLike[str], names: Sequence[str]) -> "_Table":
        try:
            rows = list(_rows(path))
        except (OSError, TypeError, ValueError, csv.Error) as error:
            raise TableError(f"{path} can't be read as a CSV file in UTF-8: {error}.") from None
        if not rows:
            raise TableError(f"{path} must begin with a header, but is empty.")
        (_, header), *body = rows
        at = {name: _place(path, header, name) for name in names}
        for line, row in body:
            if len(row) != len(header):
                raise TableError(f"line {line} of {path} must have {len(header)} cells as the header, not {len(row)}.")
        if "status" in header and "status" not in names:
            body = [(line, row) for line, row in body if row[header.index("status")] != "pending"]
        columns = {name: [row[place] for _, row in body] for name, place in at.items()}
        return cls(str(path), columns, [line for line, _ in body])

    def error(self, row: int, name: str, says: str) -> TableError:
        return TableError(f"line {self.lines[row]} of {self.path}, column {name!r}: {says}")


def _rows(path: str | os.PathLike[str]) -> Iterator[tuple[int, list[str]]]:
    """Rows with the line that each ends in, without blank ones."""
    with open(path, newline="", encoding="utf-8-sig") as file:
        reader = csv.reader(file)
        yield from ((reader.line_num, row) for row in reader if row)


def _place(path: str | os.PathLike[str], header: Sequence[str], name: str) -> int:
    if header.count(name) != 1:
        raise TableError(f"{path} must have one column {name!r}, but its header is {list(header)}.")
    return header.index(name)


def _natives(parameter: Parameter, texts: Sequence[str]) -> tuple[list[Any], dict[int, str]]:
    """Native values, and what is wrong in which row; some value of the parameter stands there."""
    some = parameter.decode(torch.zeros(1, dtype=torch.float64))[0]
    known: dict[str, Any] = {}
    wrong = {}
    for row, text in enumerate(texts):
        try:
            known[text] = known[text] if text in known else parameter.read(text)
        except PointError as error:
            wrong[row] = str(error)
    natives = [known.get(text, some) for text in texts]
    return _checked(parameter, natives, some, wrong), wrong


def _checked(parameter: Parameter, natives: list[Any], some: Any, wrong: dict[int, str]) -> list[Any]:
    """The natives with `some` in the place of those outside the parameter, which are noted as wrong."""
    try:
        parameter.encode(natives)
        return natives
    except PointError:  # one by one, to find them
        pass
    for row, native in enumerate(natives):
        try:
            parameter.encode([native])
        except PointError as error:
            wrong[row], natives[row] = str(error), some
    return natives


def _value(table: _Table, row: int, name: str) -> float:
    text = table.columns[name][row]
    try:
        return math.nan if text.strip().lower() in NOTHING else number(text)
    except PointError as error:
        raise table.error(row, name, str(error)) from None
