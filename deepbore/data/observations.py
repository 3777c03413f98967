"""`Observations`: every configuration asked for or reported so far, with its value or what became of it."""

import math
import operator
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, SupportsFloat

import numpy as np
import torch
from torch import Tensor

from deepbore.data.journal import Journal
from deepbore.data.outcomes import Status, as_number
from deepbore.errors import SettingError, ShapeError, TrialError, ValueTypeError
from deepbore.space import Params, SearchSpace

Direction = Literal["minimize", "maximize"]


@dataclass(frozen=True)
class Trial:
    """One configuration and its outcome: a record, not a handle that changes.

    Attributes:
        id: row in the observations, counted from 0 in the order of asking.
        params: the configuration, inactive parameters left out.
        value: objective value in the user's sign; None unless complete.
        status: complete, failed or pending.
    """

    id: int
    params: Params
    value: float | None = None
    status: Status = Status.PENDING


class Observations:
    """n rows that are only ever appended to and told; their buffers grow by doubling.

    Args:
        space: the search space.
        direction: "minimize" or "maximize"; values are turned at the door and minimised within.
        journal: where each event is written before it takes effect; None for nowhere.

    Raises:
        SettingError: for another direction.
    """

    def __init__(self, space: SearchSpace, direction: Direction = "minimize", journal: Journal | None = None):
        if direction not in ("minimize", "maximize"):
            raise SettingError(f'direction must be "minimize" or "maximize", but got {direction!r}.')
        self.space = space
        self.direction = direction
        self.journal = journal
        self.sorted_values = np.empty(0)  # of complete trials, ascending
        self.n_failed = 0
        self.n_asked = 0  # rows that were reserved, told since or not
        self._sign = 1.0 if direction == "minimize" else -1.0
        self._n = 0
        self._points = torch.empty(16, len(space), dtype=torch.float64)
        self._values = torch.empty(16, 1, dtype=torch.float64)
        self._status = torch.empty(16, dtype=torch.int8)
        self._seen: set[Hashable] = set()
        self._best: int | None = None

    # --- reading -----------------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        """n, pending and failed rows included."""
        return self._n

    @property
    def points(self) -> Tensor:
        """n x d."""
        return self._points[: self._n]

    @property
    def values(self) -> Tensor:
        """Values to minimise (n x k); NaN where a trial is pending or failed."""
        return self._values[: self._n]

    @property
    def status(self) -> Tensor:
        """`Status` codes (n)."""
        return self._status[: self._n]

    @property
    def pending_rows(self) -> Tensor:
        """Numbers of the trials that were asked for and not told, in order."""
        return (self.status == Status.PENDING).nonzero().squeeze(-1)

    @property
    def finished_rows(self) -> Tensor:
        """Numbers of the trials that are complete or failed, in order."""
        return (self.status != Status.PENDING).nonzero().squeeze(-1)

    @property
    def n_left(self) -> float:
        """How many configurations of the space no trial has had; infinite unless it is finite."""
        return self.space.cardinality - self.n_distinct

    @property
    def n_complete(self) -> int:
        """How many trials have a value."""
        return len(self.sorted_values)

    @property
    def n_distinct(self) -> int:
        """How many distinct configurations stand in the rows."""
        return len(self._seen)

    @property
    def best(self) -> Trial | None:
        """The first trial with the best value; None while there is no value."""
        return None if self._best is None else self.trial(self._best)

    def best_rows(self, k: int) -> Tensor:
        """Rows of the k best complete trials, best first (up to k)."""
        k = min(k, self.n_complete)
        return torch.nan_to_num(self.values[:, 0], nan=math.inf).topk(k, largest=False).indices

    def trial(self, row: int) -> Trial:
        """The record of one row.

        Raises:
            TrialError: if there is no such row.
        """
        row = self._checked(row)
        status = Status(int(self._status[row]))
        value = self.to_user(float(self._values[row])) if status is Status.COMPLETE else None
        return Trial(row, self.space.decode(self._points[row : row + 1])[0], value, status)

    def header(self, seed: int) -> dict[str, Any]:
        """What a journal says of the run in its first line."""
        return {"space": self.space.to_dict(), "direction": self.direction, "seed": seed}

    def to_user(self, value: Any) -> Any:
        """A minimised value (or array of them) in the user's sign."""
        return value * self._sign

    def unseen(self, points: Tensor) -> list[bool]:
        """Whether each point's configuration (n x d) stands in no row yet."""
        return [identity not in self._seen for identity in self.space.identify(points)]

    # --- writing -----------------------------------------------------------------------------------------------------

    def reserve(self, points: Tensor) -> list[int]:
        """Appends pending rows (q x d) and returns their numbers."""
        params = self.space.decode(points)
        points = self.space.encode(params)
        rows = list(range(self._n, self._n + len(points)))
        if self.journal is not None:
            asked = zip(rows, params, strict=True)
            self.journal.write_all({"event": "asked", "trial": row, "params": each} for row, each in asked)
        self.n_asked += len(rows)
        self._append(points, torch.full((len(points), 1), math.nan), Status.PENDING)
        return rows

    def tell(
        self, row: int, value: SupportsFloat | None = None, *, failed: bool = False, reason: str | None = None
    ) -> None:
        """Gives a pending row its outcome; NaN and infinite values count as failed.

        Args:
            row: number of the trial.
            value: in the user's sign.
            failed: that there is no value.
            reason: why there is none, for the journal.

        Raises:
            TrialError: for an unknown trial, or one told before.
            ValueTypeError: for a value that is no number.
        """
        row = self._checked(row)
        if self._status[row] != Status.PENDING:
            told = self.trial(row)
            raise TrialError(f"a trial is told once, but trial {row} is {told.status.name.lower()} with {told.value}.")
        number = math.nan if failed else as_number(value)
        if not math.isfinite(number):
            self._write({"event": "failed", "trial": row} | ({"reason": reason} if reason else {}))
            self._status[row] = Status.FAILED
            self.n_failed += 1
            return
        self._write({"event": "told", "trial": row, "value": number})
        self._complete(row, number * self._sign)

    def add(self, columns: Mapping[str, Sequence[Any]], values: Sequence[SupportsFloat]) -> None:
        """Appends earlier results, one or a million at once.

        Args:
            columns: name -> n native values (a dict of columns or a DataFrame).
            values: n values in the user's sign; NaN and infinite ones count as failed.

        Raises:
            PointError: for configurations outside the space.
            ShapeError: if there is not one value for each row.
        """
        points = self.space.encode_columns(columns)
        numbers = as_numbers(values)
        if numbers.shape != (len(points),):
            raise ShapeError(f"each row needs one value, but got {len(points)} rows and values of {numbers.shape}.")
        self._journal_added(points, numbers)
        numbers = np.where(np.isfinite(numbers), numbers * self._sign, np.nan)
        start = self._n
        self._append(points, torch.from_numpy(numbers)[:, None], Status.COMPLETE)
        failed = np.isnan(numbers)
        self.status[start:][torch.from_numpy(failed)] = Status.FAILED
        self.n_failed += int(failed.sum())
        self.sorted_values = np.sort(np.concatenate([self.sorted_values, numbers[~failed]]))
        if self.n_complete:
            self._best = int(self.best_rows(1)[0])

    def _journal_added(self, points: Tensor, numbers: np.ndarray) -> None:
        if self.journal is not None:
            values = [number if math.isfinite(number) else None for number in numbers.tolist()]
            rows = zip(self.space.decode(points), values, strict=True)
            self.journal.write_all({"event": "added", "params": params, "value": value} for params, value in rows)

    def to(self, device: torch.device | str) -> "Observations":
        """Moves the buffers to a device, for good."""
        self._points, self._values, self._status = (
            buffer.to(device) for buffer in (self._points, self._values, self._status)
        )
        return self

    # --- within ------------------------------------------------------------------------------------------------------

    def _checked(self, row: int) -> int:
        try:
            row = operator.index(row)
        except TypeError:
            raise TrialError(f"a trial is named by its id, a whole number, but got {row!r}.") from None
        if not 0 <= row < self._n:
            raise TrialError(f"trials 0 ... {self._n - 1} exist, but got {row}. Tell what `ask` gave, or `add` it.")
        return row

    def _write(self, event: dict[str, Any]) -> None:
        if self.journal is not None:
            self.journal.write(event)

    def _append(self, points: Tensor, values: Tensor, status: Status) -> None:
        n = self._n + len(points)
        if n > len(self._points):
            capacity = max(n, 2 * len(self._points))
            self._points, self._values, self._status = (
                _grown(buffer, capacity) for buffer in (self._points, self._values, self._status)
            )
        self._points[self._n : n] = points.to(self._points)
        self._values[self._n : n] = values.to(self._values)
        self._status[self._n : n] = status
        self._seen.update(self.space.identify(points))
        self._n = n

    def _complete(self, row: int, value: float) -> None:
        self._values[row], self._status[row] = value, Status.COMPLETE
        self.sorted_values = np.insert(self.sorted_values, np.searchsorted(self.sorted_values, value), value)
        if self._best is None or value < float(self._values[self._best]):
            self._best = row


def _grown(buffer: Tensor, capacity: int) -> Tensor:
    larger = buffer.new_empty(capacity, *buffer.shape[1:])
    larger[: len(buffer)] = buffer
    return larger


def as_numbers(values: Sequence[Any]) -> np.ndarray:
    """Objective values as float64 (n).

    Raises:
        ValueTypeError: for anything but numbers.
    """
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueTypeError(f"objective values must be numbers, but got {list(values)[:3]!r} ...") from None
