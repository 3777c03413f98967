"""`Reports`: the values that trials report while they run, by step. Light to import: no NumPy, no torch."""

import math
import threading
from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from deepbore.component import is_number, plain_number
from deepbore.data.trial import LARGEST
from deepbore.errors import ValueTypeError


def as_step(step: Any) -> int | float:
    """A step as a plain number.

    Raises:
        ValueTypeError: for anything but a finite number >= 0.
    """
    if not is_number(step) or not 0 <= step <= LARGEST:
        raise ValueTypeError(f"a step must be a finite number >= 0, such as an epoch, but got {step!r:.100}.")
    return plain_number(step)


class Stages:
    """Steps of one trial as they go on: a step that does not rise begins a new stage behind the last step.

    Folds, several trainings, and several validations of an epoch give the same steps again, and steps may count down.
    What is kept rises, so that trials are compared at the same progress: epochs 1, 2, 3 of a second fold are 4, 5, 6.

    Example:
        >>> stages = Stages()
        >>> [stages.place(step) for step in (1, 2, 3, 1, 2, 3)]
        [1, 2, 3, 4, 5, 6]
    """

    def __init__(self) -> None:
        self._given: float = -1
        self._kept: float = -1
        self._behind: float = 0

    def place(self, step: float) -> float:
        """The step that is kept for a given one: the next whole number where a stage begins."""
        if step <= self._given:
            self._behind = math.floor(self._kept) + 1 - step
        self._given, self._kept = step, step + self._behind
        return self._kept


class Curve:
    """The reported values of one trial, by ascending steps, to minimise; infinite where a value is not finite.

    Attributes:
        steps: of the reports.
        values: at these steps.
        lowest: the least value up to each step.
    """

    __slots__ = ("lowest", "steps", "values")

    def __init__(self) -> None:
        self.steps: list[float] = []
        self.values: list[float] = []
        self.lowest: list[float] = []

    def __len__(self) -> int:
        return len(self.steps)

    def append(self, step: float, value: float) -> None:
        """Adds a later report."""
        self.steps.append(step)
        self.values.append(value)
        self.lowest.append(min(value, self.lowest[-1]) if self.lowest else value)

    def cut(self, step: float) -> bool:
        """Drops the reports from a step on; whether there were any."""
        n = bisect_left(self.steps, step)
        is_shorter = n < len(self.steps)
        for each in (self.steps, self.values, self.lowest):
            del each[n:]
        return is_shorter

    def place(self, step: float) -> int | None:
        """The index of the last report at or before a step; None if it has not got so far, or begins later."""
        if not self.steps or self.steps[-1] < step:
            return None
        found = bisect_right(self.steps, step) - 1
        return found if found >= 0 else None

    def at(self, step: float) -> float | None:
        """The value at a step, or the last one before it; None if it has not got so far, or begins later."""
        return None if (place := self.place(step)) is None else self.values[place]


class Others:
    """The reports of the other trials of a run, as a pruner sees them: an iterable of their curves.

    Args:
        reports: of all trials.
        row: of the trial that is left out.
    """

    def __init__(self, reports: "Reports", row: int):
        self._reports, self._row = reports, row

    def __iter__(self) -> Iterator[Curve]:
        """The curves of trials that run or have ended, in the order of their first reports."""
        return (curve for row, curve in self._reports.counted() if row != self._row)

    def lowest(self, step: float) -> list[float]:
        """The least value up to a step of each trial that has got so far, ascending."""
        return self._reports.lowest(step, self._row)


class Reports:
    """The curves of all trials of a run, by row. Safe to use from several threads.

    Args:
        sign: 1 where values are minimised, -1 where they are maximised: they are kept with this sign.
    """

    def __init__(self, sign: float = 1.0):
        self.sign = sign
        self.lock = threading.RLock()
        self._curves: dict[int, Curve] = {}
        self._gone: set[int] = set()  # withdrawn rows
        self._index: _Index | None = None  # made when it is first asked for
        self.live: set[int] = set()  # running rows whose reports are not in the journal yet

    def __bool__(self) -> bool:
        """Whether any trial has reported."""
        return bool(self._curves)

    def add(self, row: int, reports: Mapping[float, float]) -> None:
        """Takes values in the user's sign by ascending step; what was there from the first of these steps on goes."""
        if not reports:
            return
        with self.lock:
            curve = self._curves.setdefault(row, Curve())
            if curve.cut(next(iter(reports))):
                self._index = None
            for step, value in reports.items():
                before = curve.steps[-1] if curve.steps else None
                curve.append(step, self.sign * value if math.isfinite(value) else math.inf)
                if self._index is not None:
                    self._index.add(before, step, curve.lowest[-1])

    def replace(self, row: int, reports: Mapping[float, float]) -> None:
        """Gives a trial these values alone."""
        with self.lock:
            if self.of(row) == reports:
                return
            if row in self._curves:
                self._curves[row], self._index = Curve(), None
            self.add(row, reports)

    def withdraw(self, rows: Iterable[int]) -> None:
        """Leaves rows out of all comparisons; their curves stay in the history."""
        with self.lock:
            self._gone.update(rows)
            self._index = None

    def curve(self, row: int) -> Curve:
        """The curve of a row; an empty one if it has reported nothing."""
        return self._curves.get(row) or Curve()

    def of(self, row: int) -> dict[float, float]:
        """What a row has reported, in the user's sign: step -> value, NaN where it is not finite."""
        curve = self._curves.get(row)
        if curve is None:
            return {}
        values = (self.sign * value if math.isfinite(value) else math.nan for value in curve.values)
        return dict(zip(curve.steps, values, strict=True))

    def counted(self) -> list[tuple[int, Curve]]:
        """The rows that have reported, without withdrawn ones, and their curves."""
        with self.lock:
            return [(row, curve) for row, curve in self._curves.items() if row not in self._gone]

    def lowest(self, step: float, but: int) -> list[float]:
        """The least value up to a step of each row but one that has got so far, ascending."""
        with self.lock:
            if self._index is None:
                self._index = _Index(curve for _, curve in self.counted())
            own = self._curves.get(but) if but not in self._gone else None
            ranked = list(self._index.ranked.get(step, ()))
            n = self._index.n_beyond(step)
            place = None if own is None else own.place(step)
            if own is not None and place is not None:
                n -= 1
                if own.steps[place] == step:
                    del ranked[bisect_left(ranked, own.lowest[place])]
            if len(ranked) == n:
                return ranked
            others = ((curve, curve.place(step)) for row, curve in self.counted() if row != but)
            return sorted(curve.lowest[place] for curve, place in others if place is not None)

    def take(self, rows: Iterable[int]) -> "Reports":
        """The curves of some rows, by their place among these: to look at, not to change."""
        part = Reports(self.sign)
        if self._curves:
            found = ((place, self._curves.get(row)) for place, row in enumerate(rows))
            part._curves = {place: curve for place, curve in found if curve is not None}
        return part

    def __getstate__(self) -> dict[str, Any]:
        return {name: each for name, each in vars(self).items() if name != "lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, lock=threading.RLock())


class _Index:
    """The least values up to each step at which some trial has reported, ascending, to be found at once.

    Args:
        curves: of all trials that count.
    """

    def __init__(self, curves: Iterable[Curve]):
        self.ranked: dict[float, list[float]] = {}
        self._last: list[float] = []  # the last steps, ascending
        for curve in curves:
            before = None
            for step, lowest in zip(curve.steps, curve.lowest, strict=True):
                self.add(before, step, lowest)
                before = step

    def add(self, before: float | None, step: float, lowest: float) -> None:
        """Takes in a report of a trial whose last one before was at a step, or that had none."""
        insort(self.ranked.setdefault(step, []), lowest)
        if before is not None:
            del self._last[bisect_left(self._last, before)]
        insort(self._last, step)

    def n_beyond(self, step: float) -> int:
        """How many trials have got to a step."""
        return len(self._last) - bisect_left(self._last, step)
