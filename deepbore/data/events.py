"""The events of a run: frozen records, each of which is written, read, checked and taken in by itself. No torch.

line()          plain data for the journal
of(line)        the event again; raises an error for a line that is none
check(ledger)   raises an error for an event that contradicts what was before
stage(ledger)   checks it, and gives its effect: an event changes nothing before it is in the journal
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from deepbore.data.ledger import Array, Effect, Ledger, Pair
from deepbore.data.log import Line
from deepbore.data.logged import Artifact, Metrics, metric_lines, metrics_of, with_artifact
from deepbore.data.outcome import (
    Outcome,
    as_attributes,
    as_budget,
    as_number,
    check_comparable,
    check_correctable,
    check_corrected,
    check_counts,
    check_pair,
    check_told,
    check_width,
    check_withdrawable,
    refused_values,
    report_columns,
    reports_of,
    told_twice,
    with_own_budget,
)
from deepbore.data.trial import LATEST, Budget, Status
from deepbore.errors import JournalError, SettingError, ShapeError, TrialError, ValueTypeError
from deepbore.text import is_writable

PENDING = int(Status.PENDING)


class Event(Protocol):
    """What has happened in a run."""

    def line(self) -> Line:
        """The event as plain data for the journal."""

    def check(self, ledger: Ledger) -> None:
        """Raises an error for an event that contradicts what was before."""

    def stage(self, ledger: Ledger) -> Effect:
        """Checks the event, and gives its effect on the ledger."""


# --- asked and told --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Asked:
    """A new pending trial.

    Attributes:
        row: its number.
        params: the configuration, in plain values.
        budget: what it may spend; None where there is none.
        resume_from: the row that it continues; None if it begins anew.
    """

    row: int
    params: Mapping[str, Any]
    budget: float | None = None
    resume_from: int | None = None

    def line(self) -> Line:
        """The event as plain data for the journal."""
        spends = {"budget": self.budget, "resume_from": self.resume_from}
        told = {name: each for name, each in spends.items() if each is not None}
        return {"event": "asked", "trial": self.row, "params": dict(self.params), **told}

    @classmethod
    def of(cls, line: Line) -> "Asked":
        """The event in a line."""
        budget = line.get("budget")
        return cls(
            line["trial"], line["params"], None if budget is None else as_budget(budget), line.get("resume_from")
        )

    def check(self, ledger: Ledger, before: int = 0) -> None:
        """Raises an error unless it is the next row, so many others staged before it, and continues an earlier one."""
        new = len(ledger) + before
        if isinstance(self.row, bool) or self.row != new:
            raise TrialError(f"the next trial is {new}, but got {self.row!r:.100}.")
        if self.resume_from is not None and not len(ledger) <= self.resume_from < new:
            ledger.checked(self.resume_from)
        if ledger.budget is not None and self.budget is not None:
            ledger.budget.rung_of(self.budget)

    def stage(self, ledger: Ledger) -> Effect:
        """The row, appended."""
        return staged_rows(ledger, [self])


def staged_rows(ledger: Ledger, asked: Sequence[Asked]) -> Effect:
    """The effect of several rows that are asked for together."""
    for place, each in enumerate(asked):
        each.check(ledger, place)
    row, lowest = len(ledger), math.nan if ledger.budget is None else ledger.budget.low
    budgets = np.array([lowest if each.budget is None else each.budget for each in asked], dtype=np.float64)
    resumed = {each.row: each.resume_from for each in asked if each.resume_from is not None}
    append = ledger.stage_rows(len(asked), status=Status.PENDING, budgets=budgets, resumed=resumed)
    queue = ledger.queue[_n_dequeued(ledger.queue, asked) :]

    def effect() -> None:
        ledger.natives.keep(row, [each.params for each in asked])
        ledger.queue = queue
        append()

    return effect


def _n_dequeued(queue: Sequence[Mapping[str, Any]], asked: Iterable[Asked]) -> int:
    """How many of the queue are asked for now: a part is completed by a configuration that has all that it says."""
    n = 0
    for each in asked:
        if n < len(queue) and each.resume_from is None and each.params.items() >= queue[n].items():
            n += 1
    return n


@dataclass(frozen=True)
class Told:
    """The outcome of a pending trial: it is told, has failed, or was pruned."""

    row: int
    outcome: Outcome

    def line(self) -> Line:
        """The event as plain data for the journal; empty parts are left out."""
        outcome, event = self.outcome, {"event": "told", "trial": self.row}
        if outcome.has_failed:
            event["event"] = "failed"
        elif outcome.status is Status.PRUNED:
            event["event"] = "pruned"
        elif len(outcome.values) == 1:
            event["value"] = outcome.values[0]
        else:
            event["values"] = list(outcome.values)
        if all(map(math.isfinite, outcome.constraints)):
            event["constraints"] = list(outcome.constraints)
        rest = {
            "budget": outcome.budget,
            "noise": outcome.noise,
            "cost": outcome.cost,
            "reason": outcome.reason,
            "attributes": outcome.attributes,
            "reports": report_columns(outcome.reports) if outcome.reports else None,
        }
        return {name: each for name, each in {**event, **rest}.items() if each not in (None, "", [], {})}

    @classmethod
    def of(cls, line: Line) -> "Told":
        """The event in a line."""
        return cls(line["trial"], outcome_of(line))

    def check(self, ledger: Ledger) -> None:
        """Raises an error unless the trial is pending, and the outcome has what outcomes of the run have."""
        row = ledger.checked(self.row)
        if ledger.status[row] != PENDING:
            raise told_twice(ledger.trial(row))
        check_counts(self.outcome, ledger.k, ledger.constraints.shape[1])
        if ledger.by_preference:
            check_told(row, self.outcome)

    def normal(self, ledger: Ledger) -> "Told":
        """The same, checked, with the trial's own budget, and with what it has reported by itself."""
        self.check(ledger)
        outcome = with_own_budget(ledger.budget, self.row, float(ledger.budgets[self.row]), self.outcome)
        if self.row in ledger.reports.live and not outcome.reports:
            outcome = replace(outcome, reports=ledger.reports.of(self.row))
        return self if outcome is self.outcome else Told(self.row, outcome)

    def stage(self, ledger: Ledger) -> Effect:
        """The outcome of the row."""
        return ledger.stage_outcome(self.row, self.normal(ledger).outcome)


def outcome_of(line: Line) -> Outcome:
    """The outcome in a line "told", "failed", "pruned" or "corrected".

    Raises:
        ValueError: for a told value that is not finite.
    """
    has_failed = line["event"] == "failed" or line.get("failed") is True
    is_pruned = line["event"] == "pruned" or line.get("pruned") is True
    status = Status.FAILED if has_failed else Status.PRUNED if is_pruned else Status.COMPLETE
    values = line["values"] if "values" in line else line.get("value", ())
    parts: dict[str, Any] = {
        name: line[name] for name in ("constraints", "budget", "noise", "cost", "reason", "attributes") if name in line
    }
    if "reports" in line:
        parts["reports"] = reports_of(line["reports"])
    outcome = Outcome(values, status=status, **parts)
    if outcome.status != status:
        raise ValueError(f"what is told must be a finite number, but got {values}.")
    return outcome


@dataclass(frozen=True)
class Reported:
    """Values that a running trial has reported, by step."""

    row: int
    reports: Mapping[float, float]

    def line(self) -> Line:
        """The event as plain data for the journal."""
        return {"event": "reported", "trial": self.row, **report_columns(self.reports)}

    @classmethod
    def of(cls, line: Line) -> "Reported":
        """The event in a line."""
        return cls(line["trial"], reports_of(line))

    def check(self, ledger: Ledger) -> None:
        """Raises an error unless the trial is pending, and of one objective."""
        row = ledger.checked(self.row)
        if (status := ledger.status_of(row)) is not Status.PENDING:
            raise TrialError(f"a running trial reports, but trial {row} is {status}. Ask for another trial.")
        if ledger.k > 1 or ledger.by_preference:
            what = "preferences" if ledger.by_preference else f"{ledger.k} objectives"
            raise ValueTypeError(f"what is reported belongs to one objective, but the study has {what}. Leave it out.")

    def stage(self, ledger: Ledger) -> Effect:
        """The reports, in place of those from the first of these steps on."""
        self.check(ledger)
        return ledger.stage(lambda: ledger.reports.add(self.row, self.reports))


@dataclass(frozen=True)
class Timed:
    """When the evaluation of a trial began and ended, in seconds since 1970.

    Its line stands in a file beside the journal (`deepbore.data.notes`), so that equal runs have equal journals.
    """

    row: int
    began: float
    ended: float

    @classmethod
    def at(cls, row: int, began: float, ended: float) -> "Timed":
        """The event, to the millisecond; a clock that was set back makes no trial take less than no time."""
        return cls(row, round(began, 3), round(max(began, ended), 3))

    def line(self) -> Line:
        """The event as plain data."""
        return {"trial": self.row, "began": self.began, "ended": self.ended}

    @classmethod
    def of(cls, line: Line) -> "Timed":
        """The event in a line. Raises ValueError for times that no clock of a computer says."""
        row, began, ended = int(line["trial"]), float(line["began"]), float(line["ended"])
        if not 0 <= min(began, ended) <= max(began, ended) < LATEST:
            raise ValueError(f"times are seconds since 1970, but got {began} and {ended}.")
        return cls(row, began, ended)

    def check(self, ledger: Ledger) -> None:
        """Raises an error unless there is such a trial."""
        ledger.checked(self.row)

    def stage(self, ledger: Ledger) -> Effect:
        """The times of the row."""
        self.check(ledger)
        return ledger.stage(lambda: ledger.notes.times.update({self.row: (self.began, self.ended)}))


# --- earlier results -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Imported:
    """n results from elsewhere, in the user's sign.

    Attributes:
        values: n x k; NaN where a trial has failed.
        columns: native values by the name of the parameter, n each, None where it is inactive; None where they are not
            kept.
        constraints: n x c, NaN in rows that have none; None if no row has any.
        budgets: n, NaN where there is none; None if no row has any.
        task: name of the earlier task; None for this run's own.
        noise: n standard deviations, NaN where there is none; None if no row has any.
        left: how many rows following events have that were added at once with these.
    """

    values: Array
    columns: Mapping[str, Sequence[Any]] | None = None
    constraints: Array | None = None
    budgets: Array | None = None
    task: str | None = None
    noise: Array | None = None
    left: int = 0

    @classmethod
    def read(
        cls,
        n: int,
        k: int,
        values: Any,
        constraints: Any = None,
        budgets: Any = None,
        task: str | None = None,
        noise: Any = None,
    ) -> "Imported":
        """n results of k values each, checked.

        Raises:
            ShapeError: if there is not one of each for each row.
            ValueTypeError: for what should be a number, or a name, and is none.
        """
        if task is not None and not (isinstance(task, str) and task and is_writable(task)):
            raise ValueTypeError(
                f"a task is named by a text that is not empty, of whole characters, but got {task!r:.100}."
            )
        graded = _matrix(values, n, "values", k)
        bounded = None if constraints is None else _matrix(constraints, n, "constraints")
        told, kept = _failed(graded, bounded), _or_none(bounded)
        return cls(told, None, kept, _budgets(budgets, n), task, _noise(noise, n, k))

    def __len__(self) -> int:
        return len(self.values)

    @property
    def failed(self) -> Array:
        """Which of them have no value (n booleans)."""
        missing: Array = np.isnan(self.values[:, 0])
        return missing

    def line(self) -> Line:
        """The event as plain data for the journal."""
        event = {
            "event": "added",
            "left": self.left,
            "task": self.task,
            "columns": self.columns,
            "values": _nested(self.values.squeeze(-1) if self.values.shape[1] == 1 else self.values),
            "constraints": None if self.constraints is None else _nested(self.constraints),
            "budgets": None if self.budgets is None else _nested(self.budgets),
            "noise": None if self.noise is None else _nested(self.noise),
        }
        return {name: each for name, each in event.items() if each is not None}

    @classmethod
    def of(cls, line: Line) -> "Imported":
        """The event in a line."""
        columns, values = line["columns"], line["values"]
        k = len(values[0]) if values and isinstance(values[0], list) else 1
        about = {name: line.get(name) for name in ("constraints", "budgets", "task", "noise")}
        if lengths := {len(column) for column in columns.values()} - {len(values)}:
            raise ValueError(f"each row needs one value, but got {len(values)}, and columns of {lengths}.")
        return replace(cls.read(len(values), k, values, **about), columns=columns)

    def take(self, rows: slice, columns: Mapping[str, Sequence[Any]]) -> "Imported":
        """Some rows, with their native values; those after them are left."""

        def those(each: Array | None) -> Any:
            return None if each is None else each[rows]

        constraints, budgets, noise = map(those, (self.constraints, self.budgets, self.noise))
        left = max(0, len(self) - rows.stop)
        return Imported(self.values[rows], columns, constraints, budgets, self.task, noise, left)

    def on_rungs(self, budget: Budget | None) -> "Imported":
        """The same results, each with the budget of a rung, if there are any: the highest where none is given.

        Raises:
            SettingError: for another budget, or results of an earlier task.
        """
        if budget is None:
            return self
        if self.task is not None:
            raise SettingError(
                f"earlier tasks do not combine with budgets, but got task={self.task!r}. Leave one of them out."
            )
        given = np.full(len(self), np.nan) if self.budgets is None else self.budgets
        full = np.where(np.isnan(given), budget.top, given)
        exact = {each: float(budget.rungs[budget.rung_of(each)]) for each in np.unique(full).tolist()}
        return replace(self, budgets=np.array([exact[each] for each in full.tolist()]))

    def check(self, ledger: Ledger) -> None:
        """Raises an error for another number of values or constraints than the run has, or a run of preferences."""
        if len(self) and self.values.shape[1] != ledger.k:
            raise ShapeError(f"each row needs {ledger.k} objective values, but got {self.values.shape[1]}.")
        check_width(0 if self.constraints is None else self.constraints.shape[1], 0, ledger.constraints.shape[1])
        if ledger.by_preference:
            raise refused_values("earlier results were added")

    def stage(self, ledger: Ledger) -> Effect:
        """The rows, appended."""
        self.check(ledger)
        row, exact = len(ledger), self.on_rungs(ledger.budget)
        append = ledger.stage_rows(
            len(self),
            status=np.where(self.failed, int(Status.FAILED), int(Status.COMPLETE)),
            budgets=math.nan if exact.budgets is None else exact.budgets,
            values=self.values * ledger.signs,
            constraints=self.constraints,
            noise=self.noise,
            task=self.task,
            imported=True,
        )

        def effect() -> None:
            if self.columns is not None:
                ledger.natives.keep_columns(row, self.columns, len(self))
            append()

        return effect


def as_numbers(values: Any, what: str = "objective values") -> Array:
    """Numbers as a float64 array of the same shape; None becomes NaN.

    Raises:
        ValueTypeError: for anything but numbers.
    """
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


def _nested(array: Array) -> Any:
    """Nested lists with None for NaN."""
    missing: Array = np.isnan(array)
    if not missing.any():
        return array.tolist()
    plain = array.astype(object)
    plain[missing] = None
    return plain.tolist()


def _matrix(given: Any, n: int, what: str, width: int | None = None) -> Array:
    """n rows of numbers, so many in each; a vector is one column."""
    array = as_numbers(given, what)
    matrix = array[:, None] if array.ndim == 1 else array
    if matrix.ndim != 2 or len(matrix) != n or matrix.shape[1] != (width or matrix.shape[1]):
        wanted = "one value" if width == 1 else f"{width or 'c >= 1'} {what}"
        raise ShapeError(f"each row needs {wanted}, but got {n} rows and {what} of shape {array.shape}.")
    return matrix


def _failed(values: Array, constraints: Array | None) -> Array:
    """The values, NaN in rows where one is missing, or where some constraints are finite and some are not."""
    complete = _is_whole(values)
    if constraints is not None:
        complete &= _is_whole(constraints) | np.logical_and.reduce(np.isnan(constraints), axis=-1)
    return np.where(complete[:, None], values, np.nan)


def _is_whole(numbers: Array) -> Array:
    """Which rows (n x m) are finite (n booleans)."""
    found: Array = np.logical_and.reduce(np.isfinite(numbers), axis=-1)
    return found


def _or_none(constraints: Array | None) -> Array | None:
    if constraints is None or not constraints.shape[1]:
        return None
    return np.where(_is_whole(constraints)[:, None], constraints, np.nan)


def _budgets(budgets: Any, n: int) -> Array | None:
    """One for each row, or one for all."""
    array = _one_each(budgets, n, "budget")
    if array is not None and np.isinf(array).any():
        raise ValueTypeError("budgets must be finite numbers, but got an infinite one. Leave it out if there is none.")
    return array


def _noise(noise: Any, n: int, k: int) -> Array | None:
    """One for each row, or one for all; None if there is none at all."""
    array = _one_each(noise, n, "noise")
    if array is None or np.isnan(array).all():
        return None
    if k > 1:
        raise ValueTypeError(f"a noise belongs to one value, but each row has {k}. Leave it out.")
    if np.isinf(array).any() or (array < 0).any():
        raise ValueTypeError("a noise is a standard deviation, finite and >= 0. Leave it out where it is unknown.")
    return array


def _one_each(given: Any, n: int, what: str) -> Array | None:
    """n numbers, or one for all rows; None for None."""
    if given is None:
        return None
    array = as_numbers(given, what)
    if array.shape not in ((), (n,)):
        raise ShapeError(f"each row needs one {what}, but got {n} rows and {what} of shape {array.shape}.")
    return np.full(n, array) if array.ndim == 0 else array


# --- what changes rows that are there --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Preferred:
    """A comparison of two trials."""

    better: int
    worse: int

    def line(self) -> Line:
        """The event as plain data for the journal."""
        return {"event": "preferred", "better": self.better, "worse": self.worse}

    @classmethod
    def of(cls, line: Line) -> "Preferred":
        """The event in a line."""
        return cls(line["better"], line["worse"])

    @property
    def pair(self) -> Pair:
        """The rows, the preferred one first."""
        return self.better, self.worse

    def check(self, ledger: Ledger) -> None:
        """Raises an error for trials that can't be compared, or a run of values."""
        require_comparing(ledger)
        check_pair(ledger.checked(self.better), ledger.checked(self.worse))
        for row in self.pair:
            check_comparable(row, ledger.status_of(row))

    def stage(self, ledger: Ledger) -> Effect:
        """The comparison."""
        self.check(ledger)
        return ledger.stage_pairs([self.pair])


def require_comparing(ledger: Ledger) -> None:
    """Raises SettingError for a run of values."""
    if not ledger.by_preference:
        raise SettingError("trials are compared in a study of preferences. Make it with Study(preferences=True).")


@dataclass(frozen=True)
class Annotated:
    """Attributes that are added to a trial, whatever its status."""

    row: int
    attributes: Mapping[str, Any]

    def line(self) -> Line:
        """The event as plain data for the journal."""
        return {"event": "annotated", "trial": self.row, "attributes": dict(self.attributes)}

    @classmethod
    def of(cls, line: Line) -> "Annotated":
        """The event in a line."""
        return cls(line["trial"], as_attributes(line["attributes"]))

    def check(self, ledger: Ledger) -> None:
        """Raises TrialError for an unknown trial."""
        ledger.checked(self.row)

    def stage(self, ledger: Ledger) -> Effect:
        """The attributes, in place of those of the same names."""
        self.check(ledger)
        known = ledger.notes.attributes
        together = {**known.get(self.row, {}), **self.attributes}
        return ledger.stage(lambda: known.update({self.row: together}))


@dataclass(frozen=True)
class Logged:
    """Metrics of a trial that are tracked and not optimised, by step; later values replace those of the same step."""

    row: int
    metrics: Metrics

    def line(self) -> Line:
        """The event as plain data for the journal."""
        return {"event": "logged", "trial": self.row, "metrics": metric_lines(self.metrics)}

    @classmethod
    def of(cls, line: Line) -> "Logged":
        """The event in a line."""
        return cls(line["trial"], metrics_of(line["metrics"]))

    def check(self, ledger: Ledger) -> None:
        """Raises TrialError for an unknown trial."""
        ledger.checked(self.row)

    def stage(self, ledger: Ledger) -> Effect:
        """The metrics, beside those that are known."""
        self.check(ledger)
        known = ledger.notes.metrics
        before = known.get(self.row, {})
        after = {name: {**before.get(name, {}), **curve} for name, curve in self.metrics.items()}
        sorted_ = {name: dict(sorted(curve.items())) for name, curve in after.items()}
        return ledger.stage(lambda: known.update({self.row: {**before, **sorted_}}))


@dataclass(frozen=True)
class Attached:
    """Artifacts of a trial, in place of those of the same names."""

    row: int
    artifacts: Sequence[Artifact]

    def line(self) -> Line:
        """The event as plain data for the journal."""
        return {"event": "attached", "trial": self.row, "artifacts": [each.line() for each in self.artifacts]}

    @classmethod
    def of(cls, line: Line) -> "Attached":
        """The event in a line."""
        return cls(line["trial"], [Artifact.of(each) for each in line["artifacts"]])

    def check(self, ledger: Ledger) -> None:
        """Raises TrialError for an unknown trial."""
        ledger.checked(self.row)

    def stage(self, ledger: Ledger) -> Effect:
        """The artifacts, the last of its trial."""
        self.check(ledger)
        known = ledger.notes.artifacts
        together: tuple[Artifact, ...] = known.get(self.row, ())
        for each in self.artifacts:
            together = with_artifact(together, each)
        return ledger.stage(lambda: known.update({self.row: together}))


LONGEST_NOTE, MOST_TAGS, LONGEST_TAG = 10_000, 20, 50  # characters, number, characters


@dataclass(frozen=True)
class Noted:
    """A note to a trial, or to the run, and its tags: in place of the former ones.

    Attributes:
        row: of the trial; None for the run.
        note: the text; None leaves the former one.
        tags: None leaves the former ones.

    Raises:
        ValueTypeError: for what is too long, or no text.
    """

    row: int | None = None
    note: str | None = None
    tags: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if self.note is not None and not (isinstance(self.note, str) and len(self.note) <= LONGEST_NOTE):
            raise ValueTypeError(
                f"a note is a text of at most {LONGEST_NOTE:,} characters, but got {self.note!r:.100}."
            )
        for each in self.tags or ():
            if not (isinstance(each, str) and 0 < len(each.strip()) <= LONGEST_TAG):
                raise ValueTypeError(f"a tag is a text of 1 to {LONGEST_TAG} characters, but got {each!r:.100}.")
        if len(self.tags or ()) > MOST_TAGS:
            raise ValueTypeError(f"there are at most {MOST_TAGS} tags, but got {len(self.tags or ())}.")

    def line(self) -> Line:
        """The event as plain data for the journal."""
        tags = None if self.tags is None else list(self.tags)
        rest = {"trial": self.row, "note": self.note, "tags": tags}
        return {"event": "noted", **{name: each for name, each in rest.items() if each is not None}}

    @classmethod
    def of(cls, line: Line) -> "Noted":
        """The event in a line."""
        tags = line.get("tags")
        if tags is not None and not isinstance(tags, list):
            raise TypeError(f"tags must be a list, but are {tags!r:.100}.")
        return cls(line.get("trial"), line.get("note"), None if tags is None else tuple(dict.fromkeys(tags)))

    def check(self, ledger: Ledger) -> None:
        """Raises TrialError for an unknown trial."""
        if self.row is not None:
            ledger.checked(self.row)

    def stage(self, ledger: Ledger) -> Effect:
        """The note and the tags."""
        self.check(ledger)

        def change() -> None:
            if self.note is not None:
                ledger.remarks[self.row] = self.note
            if self.tags is not None:
                ledger.tags[self.row] = self.tags

        return ledger.stage(change)


@dataclass(frozen=True)
class Withdrawn:
    """Trials that no longer count: one line, so that all of them are withdrawn or none."""

    rows: Sequence[int]
    reason: str | None = None

    def line(self) -> Line:
        """The event as plain data for the journal."""
        return {"event": "withdrawn", "trials": list(self.rows), **({"reason": self.reason} if self.reason else {})}

    @classmethod
    def of(cls, line: Line) -> "Withdrawn":
        """The event in a line."""
        return cls(line["trials"], Outcome.failure(line.get("reason")).reason)

    def check(self, ledger: Ledger) -> None:
        """Raises TrialError for an unknown trial, one that was withdrawn before, or twice the same."""
        seen = set[int]()
        for row in map(ledger.checked, self.rows):
            if row in seen:
                raise TrialError(f"a trial is withdrawn once, but trial {row} was named twice. Name it once.")
            seen.add(row)
            if ledger.status[row] == Status.WITHDRAWN:
                check_withdrawable(ledger.trial(row))

    def stage(self, ledger: Ledger) -> Effect:
        """The rows, that count no more."""
        self.check(ledger)
        return ledger.stage_withdrawal(self.rows, self.reason)


@dataclass(frozen=True)
class Corrected:
    """An outcome in place of the one that was told."""

    row: int
    outcome: Outcome

    def line(self) -> Line:
        """The event as plain data for the journal."""
        flag = {Status.FAILED: {"failed": True}, Status.PRUNED: {"pruned": True}}.get(self.outcome.status, {})
        return {**Told(self.row, self.outcome).line(), "event": "corrected", **flag}

    @classmethod
    def of(cls, line: Line) -> "Corrected":
        """The event in a line."""
        return cls(line["trial"], outcome_of(line))

    def check(self, ledger: Ledger) -> None:
        """Raises an error for a trial without an outcome, or an outcome that it can't have."""
        known = correctable(ledger, self.row)
        check_corrected(known, self.outcome, ledger.k, ledger.width_without([self.row]))

    def normal(self, ledger: Ledger) -> "Corrected":
        """The same, checked, with the trial's own budget."""
        self.check(ledger)
        own = float(ledger.budgets[self.row])
        return Corrected(self.row, with_own_budget(ledger.budget, self.row, own, self.outcome))

    def stage(self, ledger: Ledger) -> Effect:
        """The outcome; the former one is kept as such."""
        return ledger.stage_correction(self.row, self.normal(ledger).outcome)


def correctable(ledger: Ledger, row: int) -> Outcome:
    """The outcome of a trial that may be corrected; raises an error for another one."""
    check_correctable(ledger.trial(row), ledger.by_preference)
    known = ledger.outcome(row)
    assert known is not None
    return known


# --- what is to be asked ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Fixed:
    """Parameters that are fixed in later proposals."""

    params: Mapping[str, Any]

    def line(self) -> Line:
        """The event as plain data for the journal."""
        return {"event": "fixed", "params": dict(self.params)}

    @classmethod
    def of(cls, line: Line) -> "Fixed":
        """The event in a line."""
        return cls(line["params"])

    def check(self, ledger: Ledger) -> None:
        """Nothing: whether parameters can be fixed so, the space knows."""

    def stage(self, ledger: Ledger) -> Effect:
        """The parameters, in place of those that were fixed before."""

        def change() -> None:
            ledger.fixed = self.params

        return ledger.stage(change)


@dataclass(frozen=True)
class Enqueued:
    """A configuration, or a part of one, that is queued for the next ask."""

    params: Mapping[str, Any]

    def line(self) -> Line:
        """The event as plain data for the journal."""
        return {"event": "enqueued", "params": dict(self.params)}

    @classmethod
    def of(cls, line: Line) -> "Enqueued":
        """The event in a line."""
        return cls(line["params"])

    def check(self, ledger: Ledger) -> None:
        """Nothing: whether it is in the space, the space knows."""

    def stage(self, ledger: Ledger) -> Effect:
        """The configuration, at the end of the queue."""
        queue = [*ledger.queue, self.params]

        def change() -> None:
            ledger.queue = queue

        return ledger.stage(change)


READ: dict[str, Callable[[Line], Event]] = {
    "asked": Asked.of,
    "told": Told.of,
    "failed": Told.of,
    "pruned": Told.of,
    "reported": Reported.of,
    "added": Imported.of,
    "preferred": Preferred.of,
    "annotated": Annotated.of,
    "logged": Logged.of,
    "attached": Attached.of,
    "noted": Noted.of,
    "withdrawn": Withdrawn.of,
    "corrected": Corrected.of,
    "fixed": Fixed.of,
    "enqueued": Enqueued.of,
}


def event_of(line: Line) -> Event:
    """The event in a line of a journal.

    Raises:
        JournalError: for an unknown one.
        LookupError, TypeError, ValueError, DeepBoreError: for one that is damaged.
    """
    if line["event"] not in READ:
        raise JournalError(f"{line} can't come here.")
    return READ[line["event"]](line)
