"""`ImportedResults`: results from elsewhere as arrays, events of a journal, CSV files and data frames."""

import csv
import logging
import math
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal, Self, get_args

import numpy as np
import torch
from torch import Tensor

from deepbore.data.columns import Columns
from deepbore.data.events import Imported, as_numbers
from deepbore.data.trial import Status, Trial
from deepbore.errors import MissingPackage, PointError, TableError
from deepbore.space import SearchSpace
from deepbore.space.parameters import Parameter
from deepbore.space.parameters.base import NOTHING, number
from deepbore.space.parameters.choice import is_missing
from deepbore.space.parameters.scale import without_gradients
from deepbore.space.structure import free_name
from deepbore.validation import as_path, one_of

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
        block: what came with them.
    """

    points: Tensor
    block: Imported

    @classmethod
    def read(cls, space: SearchSpace, k: int, columns: Mapping[str, Any], values: Any, **about: Any) -> Self:
        """The arguments of `Observations.add`, checked.

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
        given = {name: without_gradients(each) for name, each in {"values": values, **about}.items()}
        if _is_one(columns) or _has_lists_for_choices(columns, space):
            points = space.encode([dict(columns)])
            rows = {name: [given[name]] for name in ("values", "constraints") if given.get(name) is not None}
            given |= {"values": [given["values"]], **rows}
        else:
            points = space.points.encode_columns(columns)
        block = Imported.read(len(points), k, **given)
        return cls(_canonical(space, points), block)

    def __len__(self) -> int:
        return len(self.points)

    def stand_in(self, columns: Columns) -> bool:
        """Whether rows of this run have these configurations and values, one after the other."""
        ledger, points, values = columns.ledger, self.points.numpy(), self.block.values * columns.ledger.signs
        known = columns.points.cpu().numpy()
        starts = np.flatnonzero((known == points[:1]).all(-1)).tolist() if len(self) else []
        blocks = (slice(start, start + len(self)) for start in starts if start + len(self) <= len(ledger))
        return any(
            np.array_equal(known[rows], points)
            and np.array_equal(ledger.values[rows], values, equal_nan=True)
            and not ledger.tasks[rows].any()
            for rows in blocks
        )

    def events(self, space: SearchSpace) -> Iterator[Imported]:
        """Events of up to 10 000 rows each, which say how many rows are still to come."""
        size = min(BLOCK, max(1, CELLS // len(space)))
        for start in range(0, len(self), size):
            rows = slice(start, start + size)
            yield self.block.take(rows, space.points.decode_columns(self.points[rows]))


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
    blocks = [space.points.encode_columns(space.points.decode_columns(block)) for block in points.split(BLOCK)]
    return torch.cat(blocks) if blocks else points


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
        space.points.encode_columns({name: column[rows.start : rows.stop] for name, column in columns.items()})
        return list(rows)
    except PointError:
        middle = len(rows) // 2
        return [] if len(rows) == 1 else _inside(space, columns, rows[:middle]) + _inside(space, columns, rows[middle:])


# --- CSV files and data frames ---------------------------------------------------------------------------------------

NativeColumns = dict[str, list[Any]]
VALUE = "value"  # the column that `StudyTrials.to_frame` writes values to, unless a parameter is named so
OURS = ("budget", "noise", "task")  # columns that `StudyTrials.to_frame` writes, beside those of constraints
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

    columns: NativeColumns
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
            that `trials.to_frame` writes: constraint_0, ..., budget, noise and task. Rows whose `status` is "pending",
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
    active = dict(zip(space.names, free.points.active(free.points.encode_columns(columns)).T.tolist(), strict=True))
    wrong = [
        (row, place, name, says)
        for place, name in enumerate(space.points.parents_first)
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


def _refuse_forbidden(space: SearchSpace, table: "_TextTable", columns: NativeColumns) -> None:
    """Raises TableError for the first row that a constraint forbids."""
    try:
        space.points.encode_columns(columns)
        return
    except PointError:  # one by one, to find it
        pass
    for row in range(len(table.lines)):
        try:
            space.points.encode_columns({name: [natives[row]] for name, natives in columns.items()})
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
    with as_path(path, "a table", TableError).open(newline="", encoding="utf-8-sig") as file:
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
        return space.points.structure.without_unused(params) if params.keys() <= space.parameters.keys() else params
    n = len(next(iter(known.values())))
    return {**known, **{name: [value] * n for name, value in defaults.items()}}


def differing_budgets(budgets: np.ndarray) -> str | None:
    """The complaint about budgets (n, NaN where there is none) in a study without, where they differ; else None."""
    different = np.unique(budgets[~np.isnan(budgets)]).tolist()
    if len(different) < 2:
        return None
    listed = ", ".join(f"{each:g}" for each in different)
    return f"results of several budgets ({listed}), but the study has none, so cheap ones would count as full ones."


def as_frame(table: Columns, objectives: Sequence[str] = ()) -> "pd.DataFrame":
    """One row a trial, with id, parameters, value and status.

    Values have the names of the objectives; several without names are called value_0, value_1, ... Where some trial has
    them, there are also constraint_0, ..., budget, task, noise, cost, reason, former_value (that of a trial that was
    corrected or withdrawn since; of several values former_value_0, ...), reports (a dict: step -> value), began and
    ended (UTC), seconds, note, tags, artifacts (their names), a column attribute_NAME for each attribute, and
    metric_NAME for each metric that was logged (its latest value). Where a parameter has such a name, or an
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
            {id_: trial.id, **table.space.points.plain(trial.params), **told, status: trial.status.name.lower(), **rest}
        )
    fixed = [id_, *names, *values, status]
    more = dict.fromkeys(name for row in rows for name in row if name not in fixed)
    return pd.DataFrame(rows, columns=[*fixed, *more])


def _rest(trial: Trial) -> dict[str, Any]:
    """Columns that only some trials have."""
    constraints = {f"constraint_{j}": each for j, each in enumerate(trial.constraints or ())}
    attributes = {f"attribute_{name}": each for name, each in trial.attributes.items()}
    attributes |= {f"metric_{name}": list(curve.values())[-1] for name, curve in trial.metrics.items() if curve}
    told = trial.former[0].values if trial.former and trial.former[0].values else ()
    former = {"former_value" if len(told) == 1 else f"former_value_{j}": each for j, each in enumerate(told)}
    began, ended = (None if at is None else datetime.fromtimestamp(at, UTC) for at in (trial.began, trial.ended))
    optional = {name: getattr(trial, name) for name in ("budget", "task", "noise", "cost", "reason")}
    optional |= {"note": trial.note or None, "tags": list(trial.tags) or None}
    optional |= {"artifacts": [each.name for each in trial.artifacts] or None}
    optional |= {"reports": dict(trial.reports) or None, "began": began, "ended": ended, "seconds": trial.duration}
    known = {name: each for name, each in optional.items() if each is not None}
    return {**constraints, **known, **former, **attributes}
