"""`Added`: results from elsewhere, many at once, as arrays and as events of a journal."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from deepbore.data.budget import Budget
from deepbore.data.buffers import as_numbers
from deepbore.errors import PointError, SettingError, ShapeError, ValueTypeError
from deepbore.space import SearchSpace

BLOCK = 10_000  # rows in one event, and rows whose native values stand in memory at once


@dataclass(frozen=True)
class Added:
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
    ) -> "Added":
        """What a user gives to `Observations.add`, checked.

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
        if _is_one(columns):
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
    def kind(self) -> tuple[str | None, int, bool, bool]:
        """Equal for what may be joined: the task, c, and whether there are budgets, and noise."""
        return self.task, self.width, self.budgets is not None, self.noise is not None

    @property
    def width(self) -> int:
        """c, the number of constraints; 0 where there are none."""
        return 0 if self.constraints is None else self.constraints.shape[1]

    @property
    def feasible(self) -> np.ndarray:
        """Whether no constraint is violated (n)."""
        if self.constraints is None:
            return np.ones(len(self), dtype=bool)
        fine: np.ndarray = (~(self.constraints > 0)).min(-1)
        return fine

    def on_rungs(self, budget: Budget) -> "Added":
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

    def rungs(self, budget: Budget) -> np.ndarray:
        """The numbers of the rungs (n) of results `on_rungs`."""
        assert self.budgets is not None
        number = {each: budget.rung_of(each) for each in np.unique(self.budgets).tolist()}
        return np.array([number[each] for each in self.budgets.tolist()])

    @classmethod
    def joined(cls, several: "Sequence[Added]") -> "Added":
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
        for start in range(0, len(self), BLOCK):
            rows = slice(start, start + BLOCK)
            event = {
                "event": "added",
                "left": max(0, len(self) - start - BLOCK),
                "task": self.task,
                "columns": space.decode_columns(self.points[rows]),
                "values": _plain(self.values[rows].squeeze(-1) if self.values.shape[1] == 1 else self.values[rows]),
                "constraints": None if self.constraints is None else _plain(self.constraints[rows]),
                "budgets": None if self.budgets is None else _plain(self.budgets[rows]),
                "noise": None if self.noise is None else _plain(self.noise[rows]),
            }
            yield {name: each for name, each in event.items() if each is not None}

    @classmethod
    def of_event(cls, space: SearchSpace, k: int, event: Mapping[str, Any]) -> "Added":
        """What an event says; in version 0.1 each was one row, with "params" and "value"."""
        if "params" in event:
            columns = {name: [event["params"].get(name)] for name in space.names}
            return cls.read(space, k, columns, [event["value"]], is_exact=True)
        optional = {name: event.get(name) for name in ("constraints", "budgets", "task", "noise")}
        return cls.read(space, k, event["columns"], event["values"], **optional, is_exact=True)


def _is_one(columns: Mapping[str, Any]) -> bool:
    """Whether it is one configuration, name -> native value, and no columns."""
    return all(isinstance(columns[name], (str, bytes)) or not _is_sized(columns[name]) for name in columns)


def _is_sized(value: Any) -> bool:
    return hasattr(value, "__len__") and getattr(value, "ndim", 1) > 0


def _canonical(space: SearchSpace, points: Tensor) -> Tensor:
    """The points that the native values of points encode to: what is read from a journal is the same bit by bit."""
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
    """The values, NaN in the rows that miss one, or have a constraint without a finite number among others."""
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
        raise ValueTypeError("a noise is a standard deviation, finite and >= 0. Leave it out where nobody knows it.")
    return array


def _one_each(given: Any, n: int, what: str) -> np.ndarray | None:
    """n numbers, or one for all rows; None for None."""
    if given is None:
        return None
    array = as_numbers(given, what)
    if array.shape not in ((), (n,)):
        raise ShapeError(f"each row needs one {what}, but got {n} rows and {what} of shape {array.shape}.")
    return np.full(n, array) if array.ndim == 0 else array
