"""Earlier results from a CSV file: text -> native values, column by column."""

import csv
import math
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from deepbore.data.frames import own_column
from deepbore.data.rungs import several_budgets
from deepbore.errors import PointError, TableError
from deepbore.space import SearchSpace
from deepbore.space.parameters import Parameter
from deepbore.space.parameters.base import NOTHING, number

Columns = dict[str, list[Any]]
VALUE = "value"  # the column that `Study.to_frame` writes values to, unless a parameter is named so
OURS = ("budget", "noise", "task")  # columns that `Study.to_frame` writes, beside those of constraints
CONSTRAINT = re.compile(r"constraint_\d+_*")


@dataclass(frozen=True)
class EarlierResults:
    """n results of one task, as `Study.add` takes them: its arguments, by name."""

    columns: Columns
    values: list[Any]
    constraints: list[list[float]] | None
    budgets: list[float] | None
    noise: list[float] | None
    task: str | None

    def take(self, rows: Sequence[int], task: str | None) -> "EarlierResults":
        """Some rows, which are of a task."""

        def those(each: list[Any] | None) -> Any:
            return None if each is None else [each[row] for row in rows]

        columns = {name: those(column) for name, column in self.columns.items()}
        values, constraints, budgets, noise = map(those, (self.values, self.constraints, self.budgets, self.noise))
        return EarlierResults(columns, values, constraints, budgets, noise, task)


def read_csv(
    path: str | os.PathLike[str],
    space: SearchSpace,
    value: str = VALUE,
    *,
    objectives: int = 1,
    task: str | None = None,
    has_budget: bool = False,
) -> list[EarlierResults]:
    """What is in a CSV file, task by task.

    Args:
        path: the file, in UTF-8: a header, then a row for each trial. Beside parameters and value, columns are read
            that `Study.to_frame` writes: constraint_0, ..., budget, noise and task. Rows whose `status` is "pending"
            are passed over, and so are all other columns.
        space: each of its parameters needs a column. A choice is recognised by how it is written (True, 1e-3 for 0.001,
            nothing for None); a cell of an inactive parameter may hold anything.
        value: name of the column of values, an empty one, or NaN, is a failed trial; of k values those of value_0, ...
            Where a parameter has a name that `to_frame` gives a column of its own, that column is value_, budget_, ...
        objectives: k.
        task: name of the task of rows that name none; None for this run.
        has_budget: whether the results are for a study with budgets.

    Raises:
        TableError: naming line and column, for a cell that does not belong there, or for a file that is no such table.
    """
    if objectives == 1 and value in space.names and value != VALUE:
        raise TableError(f"{value!r} is a parameter, so the values need another column. Name it with value=.")
    names = [value] if objectives == 1 else [f"{value}_{j}" for j in range(objectives)]
    values = [own_column(name, space.names) for name in names]
    table = _Table.read(path, space.names, values)
    read = {name: _natives(space.parameters[name], table.columns[name]) for name in space.names}
    columns = {name: natives for name, (natives, _) in read.items()}
    free = SearchSpace(space.parameters)  # constraints have nothing to say of what stands in the place of wrong cells
    active = dict(zip(space.names, free.active(free.encode_columns(columns)).T.tolist(), strict=True))
    wrong = [
        (row, place, name, says)
        for place, name in enumerate(space.parents_first)
        for row, says in read[name][1].items()
        if active[name][row]
    ]
    if wrong:  # of a row the first whose parents are right: what they were would say whether it matters
        row, _, name, says = min(wrong)
        raise table.error(row, name, says)
    if space.constraints:
        _refuse_forbidden(space, table, columns)
    budgets = table.single(own_column("budget", space.names))
    told = table.single(*values) if objectives == 1 else table.numbers(values)
    constraints = table.numbers(table.constraints) if table.constraints else None
    noise = table.single(own_column("noise", space.names))
    everything = EarlierResults(columns, told or [], constraints, budgets, noise, task)
    tasks = table.tasks(own_column("task", space.names), task)
    rows_of = {name: [row for row, each in enumerate(tasks) if each == name] for name in dict.fromkeys(tasks)}
    results = [everything.take(rows, name) for name, rows in rows_of.items()]
    for each in results:
        if each.task is None and not has_budget and (different := several_budgets(each.budgets)):
            raise TableError(f"{path} has {different} Give the study a budget, or take out the column.")
    return results


def _refuse_forbidden(space: SearchSpace, table: "_Table", columns: Columns) -> None:
    """Raises TableError for the first row that a constraint forbids."""
    try:
        space.encode_columns(columns)
        return
    except PointError:  # one by one, to find it
        pass
    for row in range(len(table.lines)):
        try:
            space.encode_columns({name: [natives[row]] for name, natives in columns.items()})
        except PointError as error:
            raise table.error(row, None, str(error)) from None


@dataclass(frozen=True)
class _Table:
    """The text of some columns, and where each row ends."""

    path: str
    columns: dict[str, list[str]]
    lines: list[int]
    constraints: list[str]  # names of columns, in the order of the constraints

    @classmethod
    def read(cls, path: str | os.PathLike[str], parameters: Sequence[str], values: Sequence[str]) -> "_Table":
        try:
            rows = list(_rows(path))
        except (OSError, TypeError, ValueError, csv.Error) as error:
            raise TableError(f"{path} can't be read as a CSV file in UTF-8: {error}.") from None
        if not rows:
            raise TableError(f"{path} must begin with a header, but is empty.")
        (_, header), *body = rows
        for line, row in body:
            if len(row) != len(header):
                raise TableError(f"line {line} of {path} must have {len(header)} cells as the header, not {len(row)}.")
        names, status = [*parameters, *values], own_column("status", parameters)
        constraints = [name for name in header if CONSTRAINT.fullmatch(name) and name not in names]
        constraints.sort(key=lambda name: int(name.rstrip("_").rpartition("_")[2]))
        ours = [own_column(name, parameters) for name in OURS]
        optional = [*constraints, *(name for name in ours if name in header and name not in names)]
        at = {name: _place(path, header, name) for name in [*names, *optional]}
        if status in header and status not in names:
            body = [(line, row) for line, row in body if row[header.index(status)] != "pending"]
        columns = {name: [row[place] for _, row in body] for name, place in at.items()}
        return cls(str(path), columns, [line for line, _ in body], constraints)

    def numbers(self, names: Sequence[str]) -> list[list[float]]:
        """Some columns, row by row; NaN where there is nothing."""
        return [[_number(self, row, name) for name in names] for row in range(len(self.lines))]

    def single(self, name: str) -> list[float] | None:
        """One column; None where there is none."""
        return [each for (each,) in self.numbers([name])] if name in self.columns else None

    def tasks(self, name: str, default: str | None) -> list[str | None]:
        """The task of each row."""
        texts = self.columns.get(name, [""] * len(self.lines))
        return [default if text.strip().lower() in NOTHING else text for text in texts]

    def error(self, row: int, name: str | None, says: str) -> TableError:
        column = "" if name is None else f", column {name!r}"
        return TableError(f"line {self.lines[row]} of {self.path}{column}: {says}")


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


def _number(table: _Table, row: int, name: str) -> float:
    text = table.columns[name][row]
    try:
        return math.nan if text.strip().lower() in NOTHING else number(text)
    except PointError as error:
        raise table.error(row, name, str(error)) from None
