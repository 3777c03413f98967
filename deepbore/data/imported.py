"""`ImportedResults`: results from elsewhere as arrays, events of a journal, CSV files and data frames."""

import csv
import logging
import math
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
import torch
from torch import Tensor

from deepbore.data.outcome import check_width, refused_values
from deepbore.data.table import Effect, Table, as_numbers
from deepbore.data.trial import Budget, Status, Trial
from deepbore.errors import MissingPackage, PointError, SettingError, ShapeError, TableError, ValueTypeError
from deepbore.space import SearchSpace
from deepbore.space.parameters import Parameter
from deepbore.space.parameters.base import NOTHING, number
from deepbore.space.parameters.choice import is_missing
from deepbore.space.structure import free_name
from deepbore.validation import one_of

if TYPE_CHECKING:
    import pandas as pd

log = logging.getLogger(__name__)
BLOCK = 10_000  # rows in one event, and rows whose native values stand in memory at once
CELLS = 10**6  # in one event, so that no line of a journal is too long


@dataclass(frozen=True)
class ImportedResults:
    """n results, in the user's sign.

    Attributes:
        points: n x d, those that the configurations encode to when they are read from a journal.
        values: n x k; NaN where a trial has failed.
        constraints: n x c, NaN in rows that have none; None if no row has any.
        budgets: n, NaN where there is none; None if no row has any.
        task: name of the earlier task; None for this run's own.
        noise: n standard deviations, NaN where there is none; None if no row has any.
    """

    points: Tensor
    values: np.ndarray
    constraints: np.ndarray | None = None
    budgets: np.ndarray | None = None
    task: str | None = None
    noise: np.ndarray | None = None

    @classmethod
    def read(
        cls,
        space: SearchSpace,
        k: int,
        columns: Mapping[str, Any],
        values: Any,
        constraints: Any = None,
        budgets: Any = None,
        task: str | None = None,
        noise: Any = None,
        *,
        is_exact: bool = False,
    ) -> "ImportedResults":
        """The arguments of `Observations.add`, checked.

        Args:
            is_exact: whether the native values come from a journal, and so decode to themselves.

        Raises:
            PointError: for configurations outside the space.
            ShapeError: if there is not one of each for each row.
            ValueTypeError: for what should be a number, or a name, and is none.
        """
        if not hasattr(columns, "keys"):
            raise PointError(
                'results are columns by name, as in {"x": [0.1, 0.2]}, a DataFrame, or one configuration, but got '
                f"{columns!r:.100}."
            )
        if getattr(columns, "ndim", 2) == 1:
            columns = dict(columns.items())  # a row of a DataFrame, which iterates over its values
        if _is_one(columns) or _has_lists_for_choices(columns, space):
            points = space.encode([dict(columns)])
            values, constraints = [values], None if constraints is None else [constraints]
        else:
            points = space.encode_columns(columns)
        if task is not None and not (isinstance(task, str) and task):
            raise ValueTypeError(f"a task is named by a text that is not empty, but got {task!r:.100}.")
        n = len(points)
        graded = _matrix(values, n, "values", k)
        bounded = None if constraints is None else _matrix(constraints, n, "constraints")
        points = points if is_exact else _canonical(space, points)
        return cls(points, _failed(graded, bounded), _or_none(bounded), _budgets(budgets, n), task, _noise(noise, n, k))

    def __len__(self) -> int:
        return len(self.points)

    @property
    def failed(self) -> np.ndarray:
        """Which of them have no value (n booleans)."""
        missing: np.ndarray = np.isnan(self.values[:, 0])
        return missing

    @property
    def kind(self) -> tuple[str | None, int, bool, bool]:
        """A key that is equal for results that may be joined: the task, c, and whether there are budgets, and noise."""
        return self.task, self.width, self.budgets is not None, self.noise is not None

    @property
    def width(self) -> int:
        """c, the number of constraints; 0 where there are none."""
        return 0 if self.constraints is None else self.constraints.shape[1]

    def on_rungs(self, budget: Budget) -> "ImportedResults":
        """The same results, each with the budget of a rung: the highest where none is given.

        Raises:
            SettingError: for another budget, or results of an earlier task.
        """
        if self.task is not None:
            raise SettingError(
                f"earlier tasks do not combine with budgets, but got task={self.task!r}. Leave one of them out."
            )
        given = np.full(len(self), np.nan) if self.budgets is None else self.budgets
        full = np.where(np.isnan(given), budget.top, given)
        exact = {each: float(budget.rungs[budget.rung_of(each)]) for each in np.unique(full).tolist()}
        return replace(self, budgets=np.array([exact[each] for each in full.tolist()]))

    def checked(self, table: Table) -> "ImportedResults":
        """The results as a table takes them, with exact budgets.

        Raises:
            ValueTypeError: for another number of constraints than before, or a run of preferences.
            SettingError: for a budget that is no rung, or a task beside budgets.
        """
        results = self if table.budget is None else self.on_rungs(table.budget)
        check_width(results.width, 0, table.constraints.shape[1])
        if table.by_preference:
            raise refused_values("earlier results were added")
        return results

    def stage(self, table: Table) -> Effect:
        """The results as new rows of a table; see `checked`."""
        values, names = self.values * table.signs, table.statistics.after_importing(self.failed, self.task).task_names
        return table.stage_rows(
            self.points,
            table.statistics.after_importing(self.failed, self.task),
            status=torch.from_numpy(np.where(self.failed, int(Status.FAILED), int(Status.COMPLETE))),
            task=0 if self.task is None else 1 + names.index(self.task),
            budgets=math.nan if self.budgets is None else torch.from_numpy(self.budgets),
            values=torch.from_numpy(values),
            constraints=None if self.constraints is None else torch.from_numpy(self.constraints),
            noise=None if self.noise is None else torch.from_numpy(self.noise),
            imported=True,
        )

    def stand_in(self, table: Table) -> bool:
        """Whether rows of this run have these configurations and values, one after the other."""
        points, values = self.points.to(table.points.device), self.values * table.signs
        starts = (table.points == points[:1]).all(-1).nonzero().squeeze(-1).tolist() if len(self) else []
        blocks = (slice(start, start + len(self)) for start in starts if start + len(self) <= len(table))
        return any(
            torch.equal(table.points[rows], points)
            and np.array_equal(table.values[rows].cpu().numpy(), values, equal_nan=True)
            and not bool(table.tasks[rows].any())
            for rows in blocks
        )

    @classmethod
    def joined(cls, several: "Sequence[ImportedResults]") -> "ImportedResults":
        """Results of one kind, one after the other."""
        first = several[0]
        if len(several) == 1:
            return first
        return cls(
            torch.cat([each.points for each in several]),
            np.concatenate([each.values for each in several]),
            None if first.constraints is None else np.concatenate([each.constraints for each in several]),
            None if first.budgets is None else np.concatenate([each.budgets for each in several]),
            first.task,
            None if first.noise is None else np.concatenate([each.noise for each in several]),
        )

    # --- events ------------------------------------------------------------------------------------------------------

    def events(self, space: SearchSpace) -> Iterator[dict[str, Any]]:
        """Events of up to 10 000 rows each; "left" says how many rows are still to come."""
        block = min(BLOCK, max(1, CELLS // len(space)))
        for start in range(0, len(self), block):
            rows = slice(start, start + block)
            event = {
                "event": "added",
                "left": max(0, len(self) - start - block),
                "task": self.task,
                "columns": space.decode_columns(self.points[rows]),
                "values": _plain(self.values[rows].squeeze(-1) if self.values.shape[1] == 1 else self.values[rows]),
                "constraints": None if self.constraints is None else _plain(self.constraints[rows]),
                "budgets": None if self.budgets is None else _plain(self.budgets[rows]),
                "noise": None if self.noise is None else _plain(self.noise[rows]),
            }
            yield {name: each for name, each in event.items() if each is not None}


def _is_one(columns: Mapping[str, Any]) -> bool:
    """Whether it is one configuration, name -> native value, and no columns."""
    return all(isinstance(columns[name], (str, bytes)) or not _is_sized(columns[name]) for name in columns)


def _has_lists_for_choices(columns: Mapping[str, Any], space: SearchSpace) -> bool:
    """Whether it is one configuration, where some choices are lists."""
    sized = [name for name in columns if not isinstance(columns[name], (str, bytes)) and _is_sized(columns[name])]
    if len(sized) == len(columns) or any(name not in space.parameters for name in sized):
        return False
    try:
        return all(
            not space.parameters[name].is_plain and len(space.parameters[name].encode([columns[name]]))
            for name in sized
        )
    except PointError:
        return False


def _is_sized(value: Any) -> bool:
    return hasattr(value, "__len__") and getattr(value, "ndim", 1) > 0


def _canonical(space: SearchSpace, points: Tensor) -> Tensor:
    """Points encoded from their own native values, so that they equal bit by bit those read from a journal."""
    blocks = [space.encode_columns(space.decode_columns(block)) for block in points.split(BLOCK)]
    return torch.cat(blocks) if blocks else points


def _plain(array: np.ndarray) -> Any:
    """Nested lists with None for NaN."""
    missing = np.isnan(array)
    if not missing.any():
        return array.tolist()
    plain = array.astype(object)
    plain[missing] = None
    return plain.tolist()


def _matrix(given: Any, n: int, what: str, width: int | None = None) -> np.ndarray:
    """n rows of numbers, so many in each; a vector is one column."""
    array = as_numbers(given, what)
    matrix = array[:, None] if array.ndim == 1 else array
    if matrix.ndim != 2 or len(matrix) != n or matrix.shape[1] != (width or matrix.shape[1]):
        wanted = "one value" if width == 1 else f"{width or 'c >= 1'} {what}"
        raise ShapeError(f"each row needs {wanted}, but got {n} rows and {what} of shape {array.shape}.")
    return matrix


def _failed(values: np.ndarray, constraints: np.ndarray | None) -> np.ndarray:
    """The values, NaN in rows where one is missing, or where some constraints are finite and some are not."""
    complete = np.isfinite(values).all(-1)
    if constraints is not None:
        complete &= np.isfinite(constraints).all(-1) | np.isnan(constraints).all(-1)
    return np.where(complete[:, None], values, np.nan)


def _or_none(constraints: np.ndarray | None) -> np.ndarray | None:
    if constraints is None or not constraints.shape[1]:
        return None
    return np.where(np.isfinite(constraints).all(-1)[:, None], constraints, np.nan)


def _budgets(budgets: Any, n: int) -> np.ndarray | None:
    """One for each row, or one for all."""
    array = _one_each(budgets, n, "budget")
    if array is not None and np.isinf(array).any():
        raise ValueTypeError("budgets must be finite numbers, but got an infinite one. Leave it out if there is none.")
    return array


def _noise(noise: Any, n: int, k: int) -> np.ndarray | None:
    """One for each row, or one for all; None if there is none at all."""
    array = _one_each(noise, n, "noise")
    if array is None or np.isnan(array).all():
        return None
    if k > 1:
        raise ValueTypeError(f"a noise belongs to one value, but each row has {k}. Leave it out.")
    if np.isinf(array).any() or (array < 0).any():
        raise ValueTypeError("a noise is a standard deviation, finite and >= 0. Leave it out where it is unknown.")
    return array


def _one_each(given: Any, n: int, what: str) -> np.ndarray | None:
    """n numbers, or one for all rows; None for None."""
    if given is None:
        return None
    array = as_numbers(given, what)
    if array.shape not in ((), (n,)):
        raise ShapeError(f"each row needs one {what}, but got {n} rows and {what} of shape {array.shape}.")
    return np.full(n, array) if array.ndim == 0 else array


# --- rows outside the space ------------------------------------------------------------------------------------------

Outside = Literal["raise", "drop"]


def dropped(outside: Outside) -> bool:
    """Whether rows outside the space are left out. Raises SettingError for anything but an `Outside`."""
    one_of(get_args(Outside), outside=outside)
    return outside == "drop"


def rows_inside(
    space: SearchSpace, columns: Mapping[str, Any], values: Any, about: Mapping[str, Any]
) -> tuple[Mapping[str, Any], Any, dict[str, Any]] | None:
    """The arguments of `Observations.add` without the rows that are outside the space; None if none is left."""
    if not hasattr(columns, "keys") or _is_one(columns):
        try:
            space.encode([dict(columns)])
        except PointError as error:
            log.warning("the result is outside the space, and left out: %s", error)
            return None
        return columns, values, dict(about)
    listed = {str(name): list(columns[name]) for name in columns}
    n = len(next(iter(listed.values()), ()))
    rows = _inside(space, listed, range(n))
    if len(rows) == n:
        return columns, values, dict(about)
    log.warning("%d of %d results are outside the space, and left out", n - len(rows), n)
    if not rows:
        return None

    def those(each: Any) -> Any:
        return [each[row] for row in rows] if _is_sized(each) and not isinstance(each, str) else each

    kept = {name: those(column) for name, column in listed.items()}
    return kept, those(_positional(values)), {name: those(_positional(each)) for name, each in about.items()}


def _positional(each: Any) -> Any:
    """A data frame's own as an array, whose rows are counted from 0."""
    return each.to_numpy() if hasattr(each, "to_numpy") else each


def _inside(space: SearchSpace, columns: Mapping[str, list[Any]], rows: range) -> list[int]:
    """The rows that are in the space, found by halves: where few are outside, in few steps."""
    if not rows:
        return []
    try:
        space.encode_columns({name: column[rows.start : rows.stop] for name, column in columns.items()})
        return list(rows)
    except PointError:
        middle = len(rows) // 2
        return [] if len(rows) == 1 else _inside(space, columns, rows[:middle]) + _inside(space, columns, rows[middle:])


# --- CSV files and data frames ---------------------------------------------------------------------------------------

Columns = dict[str, list[Any]]
VALUE = "value"  # the column that `Study.to_frame` writes values to, unless a parameter is named so
OURS = ("budget", "noise", "task")  # columns that `Study.to_frame` writes, beside those of constraints
NOT_TOLD = tuple(map(str, (Status.PENDING, Status.WITHDRAWN, Status.PRUNED)))  # statuses of rows that are not read
CONSTRAINT = re.compile(r"constraint_\d+_*")


def own_column(name: str, parameters: Iterable[str]) -> str:
    """The name of a column of ours, such as "id"; "id_" where a parameter, or an objective, has that name."""
    return free_name(name, parameters)


def value_columns(k: int, names: Sequence[str], parameters: Sequence[str], value: str = VALUE) -> list[list[str]]:
    """The names that the columns of k values may have, the usual ones first: their own, if any; value_0, ..."""
    general = [value] if k == 1 else [f"{value}_{j}" for j in range(k)]
    several = [list(names), general] if names and value == VALUE else [general]
    return [[own_column(name, parameters) for name in each] for each in several]


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
    names: Sequence[str] = (),
    has_budget: bool = False,
    drops: bool = False,
    defaults: Mapping[str, Any] | None = None,
) -> list[EarlierResults]:
    """The results in a CSV file, task by task.

    Args:
        path: the file, in UTF-8: a header, then a row for each trial. Beside parameters and value, columns are read
            that `Study.to_frame` writes: constraint_0, ..., budget, noise and task. Rows whose `status` is "pending",
            "pruned" or "withdrawn" are passed over, and so are all other columns.
        space: each of its parameters needs a column. A choice is recognised by how it is written (True, 1e-3 for 0.001,
            nothing for None); a cell of an inactive parameter may hold anything.
        value: name of the column of values, an empty one, or NaN, is a failed trial; of k values those of value_0, ...
            Where a parameter has a name that `to_frame` gives a column of its own, that column is value_, budget_, ...
        objectives: k.
        names: of the objectives, k, whose columns have these names, or those that values without names have.
        task: name of the task of rows that name none; None for this run.
        has_budget: whether the results are for a study with budgets.
        drops: whether rows outside the space are left out, in place of an error.
        defaults: name -> value of parameters that may have no column.

    Raises:
        PointError: for defaults of no parameter.
        TableError: naming line and column, for a cell that does not belong there, or for a file that is no such table.
    """
    if objectives == 1 and value in space.names and value != VALUE:
        raise TableError(f"{value!r} is a parameter, so the values need another column. Name it with value=.")
    defaults = checked_defaults(defaults or {}, space)
    table = _TextTable.read(path, space.names, value_columns(objectives, names, space.names, value), defaults)
    values, taken = table.values, [*space.names, *table.values]
    read: dict[str, tuple[list[Any], dict[int, str], set[int]]] = {
        name: _natives(space.parameters[name], table.columns[name])
        if name in table.columns
        else ([defaults[name]] * len(table.lines), {}, set())
        for name in space.names
    }
    columns = {name: natives for name, (natives, _, _) in read.items()}
    free = SearchSpace(space.parameters)  # constraints have nothing to say of what stands in the place of wrong cells
    active = dict(zip(space.names, free.active(free.encode_columns(columns)).T.tolist(), strict=True))
    wrong = [
        (row, place, name, says)
        for place, name in enumerate(space.parents_first)
        for row, says in read[name][1].items()
        if active[name][row]
    ]
    left_out = {row for row, _, name, _ in wrong if drops and row not in read[name][2]}
    wrong = [each for each in wrong if each[0] not in left_out]
    if wrong:  # of a row the first whose parents are right: what they were would say whether it matters
        row, _, name, says = min(wrong)
        raise table.error(row, name, says)
    if drops:
        rows = range(len(table.lines))
        left_out |= {row for row in rows if row not in left_out} - set(_inside(space, columns, rows))
        if left_out:
            log.warning("%d of %d rows of %s are outside the space, and left out", len(left_out), len(rows), path)
    elif space.constraints:
        _refuse_forbidden(space, table, columns)
    budgets = table.single(own_column("budget", taken))
    told = table.single(*values) if objectives == 1 else table.numbers(values)
    constraints = table.numbers(table.constraints) if table.constraints else None
    noise = table.single(own_column("noise", taken))
    everything = EarlierResults(columns, told or [], constraints, budgets, noise, task)
    tasks = table.tasks(own_column("task", taken), task)
    rows_of = {name: [row for row, each in enumerate(tasks) if each == name] for name in dict.fromkeys(tasks)}
    rows_of = {name: [row for row in rows if row not in left_out] for name, rows in rows_of.items()}
    results = [everything.take(rows, name) for name, rows in rows_of.items()]
    for each in results:
        if (
            each.task is None
            and not has_budget
            and (different := differing_budgets(as_numbers(each.budgets or [], "budgets")))
        ):
            raise TableError(f"{path} has {different} Give the study a budget, or take out the column.")
    return results


def _refuse_forbidden(space: SearchSpace, table: "_TextTable", columns: Columns) -> None:
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
class _TextTable:
    """The text of some columns, and where each row ends."""

    path: str
    columns: dict[str, list[str]]
    lines: list[int]
    values: list[str]  # names of columns
    constraints: list[str]  # names of columns, in the order of the constraints

    @classmethod
    def read(
        cls,
        path: str | os.PathLike[str],
        parameters: Sequence[str],
        ways: Sequence[list[str]],
        defaults: Collection[str] = (),
    ) -> "_TextTable":
        """The table; of the ways in which the columns of values may be called the first that it has."""
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
        values = next((names for names in ways if set(names) <= set(header)), ways[0])
        taken = [*parameters, *values]
        status, names = own_column("status", taken), [each for each in taken if each in header or each not in defaults]
        constraints = [name for name in header if CONSTRAINT.fullmatch(name) and name not in names]
        constraints.sort(key=lambda name: int(name.rstrip("_").rpartition("_")[2]))
        ours = [own_column(name, taken) for name in OURS]
        optional = [*constraints, *(name for name in ours if name in header and name not in names)]
        at = {name: _place(path, header, name) for name in [*names, *optional]}
        if status in header and status not in names:
            body = [(line, row) for line, row in body if row[header.index(status)] not in NOT_TOLD]
        columns = {name: [row[place] for _, row in body] for name, place in at.items()}
        return cls(str(path), columns, [line for line, _ in body], values, constraints)

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


def _natives(parameter: Parameter, texts: Sequence[str]) -> tuple[list[Any], dict[int, str], set[int]]:
    """Native values, and what is wrong in which row; some value of the parameter stands there; and rows without any."""
    some = parameter.decode(torch.zeros(1, dtype=torch.float64))[0]
    known: dict[str, Any] = {}
    wrong = {}
    for row, text in enumerate(texts):
        try:
            known[text] = known[text] if text in known else parameter.read(text)
        except PointError as error:
            wrong[row] = str(error)
    natives = [known.get(text, some) for text in texts]
    unread = set(wrong) if parameter.is_numeric else set()  # another text may be a choice that was taken out
    return _checked(parameter, natives, some, wrong), wrong, unread


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


def _number(table: _TextTable, row: int, name: str) -> float:
    text = table.columns[name][row]
    try:
        return math.nan if text.strip().lower() in NOTHING else number(text)
    except PointError as error:
        raise table.error(row, name, str(error)) from None


def rows_of(given: Any) -> list[Any]:
    """The rows of a DataFrame, one after the other; anything else is one configuration."""
    return [given.iloc[row] for row in range(len(given))] if getattr(given, "ndim", 0) == 2 else [given]


def as_params(given: Any, space: SearchSpace) -> dict[str, Any]:
    """A configuration, or a row of a DataFrame: its cells for the parameters, without missing ones.

    Raises:
        PointError: for anything else.
    """
    if hasattr(given, "ndim") and hasattr(given, "items"):  # a row, which may have more, such as its value
        cells = ((name, each) for name, each in given.items() if name in space.parameters)
        return {name: each for name, each in cells if not is_missing(each)}
    if not isinstance(given, Mapping):
        raise PointError(f"a configuration must map names to values, but got {given!r:.100}. Give a dict.")
    return dict(given)


def checked_defaults(defaults: Mapping[str, Any], space: SearchSpace) -> Mapping[str, Any]:
    """Values by names of parameters. Raises PointError for anything else."""
    if not isinstance(defaults, Mapping) or not defaults.keys() <= space.parameters.keys():
        raise PointError(f"defaults are values by names among {space.names}, but got {defaults!r:.200}.")
    return defaults


def with_defaults(columns: Any, defaults: Mapping[str, Any], space: SearchSpace) -> dict[str, Any]:
    """Columns, or one configuration, with a value for each parameter that they lack.

    Raises:
        PointError: for a default of no parameter, or of one that they have.
    """
    checked_defaults(defaults, space)
    if not hasattr(columns, "keys"):
        return columns  # type: ignore[no-any-return]  # refused where it is read
    known = {name: columns[name] for name in columns.keys()}  # noqa: SIM118  # of a DataFrame
    if both := sorted(known.keys() & defaults.keys()):
        raise PointError(f"defaults are for parameters that the results lack, but {both} have values. Leave them out.")
    if not known or getattr(columns, "ndim", 2) == 1 or _is_one(known):
        params = {**known, **defaults}
        return space.structure.without_unused(params) if params.keys() <= space.parameters.keys() else params
    n = len(next(iter(known.values())))
    return {**known, **{name: [value] * n for name, value in defaults.items()}}


def differing_budgets(budgets: np.ndarray) -> str | None:
    """The complaint about budgets (n, NaN where there is none) in a study without, where they differ; else None."""
    different = np.unique(budgets[~np.isnan(budgets)]).tolist()
    if len(different) < 2:
        return None
    listed = ", ".join(f"{each:g}" for each in different)
    return f"results of several budgets ({listed}), but the study has none, so cheap ones would count as full ones."


def as_frame(table: Table, objectives: Sequence[str] = ()) -> "pd.DataFrame":
    """One row a trial, with id, parameters, value and status.

    Values have the names of the objectives; several without names are called value_0, value_1, ... Where some trial has
    them, there are also constraint_0, ..., budget, task, noise, reason, former_value (that of a trial that was
    corrected or withdrawn since; of several values former_value_0, ...), reports (a dict: step -> value), began and
    ended (UTC), seconds, and a column attribute_NAME for each attribute. Where a parameter has such a name, or an
    objective, ours ends in an underscore.

    Args:
        table: of the trials.
        objectives: names of the values; empty where they have none.

    Raises:
        MissingPackage: without pandas.
    """
    try:
        import pandas as pd
    except ImportError:
        raise MissingPackage("to_frame needs pandas: pip install 'deepbore[frames]'.") from None
    names = table.space.names
    k = table.k
    values = value_columns(k, objectives, names)[0]
    taken = [*names, *values]
    id_, status = own_column("id", taken), own_column("status", taken)
    rows = []
    for trial in table.trials():
        told = dict(zip(values, trial.values or [None] * k, strict=True))
        rest = {own_column(name, taken): each for name, each in _rest(trial).items()}
        rows.append(
            {id_: trial.id, **table.space.plain(trial.params), **told, status: trial.status.name.lower(), **rest}
        )
    fixed = [id_, *names, *values, status]
    more = dict.fromkeys(name for row in rows for name in row if name not in fixed)
    return pd.DataFrame(rows, columns=[*fixed, *more])


def _rest(trial: Trial) -> dict[str, Any]:
    """Columns that only some trials have."""
    constraints = {f"constraint_{j}": each for j, each in enumerate(trial.constraints or ())}
    attributes = {f"attribute_{name}": each for name, each in trial.attributes.items()}
    told = trial.former[0].values if trial.former and trial.former[0].values else ()
    former = {"former_value" if len(told) == 1 else f"former_value_{j}": each for j, each in enumerate(told)}
    began, ended = (None if at is None else datetime.fromtimestamp(at, UTC) for at in (trial.began, trial.ended))
    optional = {name: getattr(trial, name) for name in ("budget", "task", "noise", "reason")}
    optional |= {"reports": dict(trial.reports) or None, "began": began, "ended": ended, "seconds": trial.duration}
    known = {name: each for name, each in optional.items() if each is not None}
    return {**constraints, **known, **former, **attributes}
