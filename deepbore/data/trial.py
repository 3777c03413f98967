"""`Trial`: one configuration and its outcome; `Trials`, `Status`, `Direction` and `Budget`. Light to import."""

import json
import math
import operator
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import IntEnum
from functools import cached_property, wraps
from itertools import count, takewhile
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, get_args, overload

from deepbore.component import plain_number
from deepbore.errors import SettingError, TrialError
from deepbore.names import no_attribute
from deepbore.text import as_html, is_writable
from deepbore.validation import above, one_of, refusal, required


class Status(IntEnum):
    """The state of a trial."""

    COMPLETE = 0
    FAILED = 1
    PENDING = 2
    WITHDRAWN = 3
    PRUNED = 4

    def __str__(self) -> str:
        return self.name.lower()

    @property
    def is_told(self) -> bool:
        """Whether the trial has an outcome that counts: it is complete, has failed, or was pruned."""
        return self in (Status.COMPLETE, Status.FAILED, Status.PRUNED)


Direction = Literal["minimize", "maximize"]
MOST_RUNGS = 200
LARGEST = 1e300  # of a budget
EXACT = 2**53  # up to which floating-point numbers hold every whole one
LATEST = 1e11  # seconds since 1970, in the year 5138: the clock of a computer says less
Span = tuple[float, float]  # when an evaluation began and ended, in seconds since 1970
SHOWN = 4  # trials of a longer sequence in its repr
ROUNDING = 1e-9  # relative: low * factor^k may miss high by so much


def sign_of(direction: Direction) -> float:
    """The factor between a value and one to be minimised: 1, or -1 where it is maximised."""
    return 1.0 if direction == "minimize" else -1.0


def checked_directions(
    directions: Sequence[Direction] | Direction, by_preference: bool = False
) -> tuple[Direction, ...]:
    """The direction of each of k >= 1 values; a single one may stand alone.

    Args:
        directions: "minimize" or "maximize" for each value.
        by_preference: whether the one value is a utility, which is maximised.

    Raises:
        SettingError: for another direction, or none; or utilities with other directions than "maximize".
    """
    if not isinstance(directions, (str, Sequence)):
        raise SettingError(f'directions must be a list, as in ["minimize", "maximize"], but got {directions!r:.100}.')
    checked = (directions,) if isinstance(directions, str) else tuple(directions)
    if not checked:
        raise SettingError('at least one direction is needed, such as "minimize", but got none.')
    for direction in checked:
        one_of(get_args(Direction), direction=direction)
    if by_preference and checked != ("maximize",):
        raise SettingError(
            f"preferences say what is better, and have no directions, but got {', '.join(checked)}. Leave it out."
        )
    return checked


def checked_names(names: Sequence[str], directions: Sequence[Direction] | Direction) -> tuple[str, ...]:
    """The names of the objectives; none where they have none.

    Raises:
        SettingError: for anything but different texts, one for each direction.
    """
    if not isinstance(names, (list, tuple)):
        raise SettingError(f"objectives have a list of names, but got {names!r:.100}.")
    k = 1 if isinstance(directions, str) or not isinstance(directions, Sequence) else len(directions)
    if names and (len(set(map(str, names))) != k or not all(isinstance(name, str) and name for name in names)):
        raise SettingError(f"each of {k} objectives has a name of its own, but got {list(names)!r:.200}.")
    if broken := [name for name in names if not is_writable(name)]:
        raise SettingError(
            f"names of objectives must be whole characters, but {broken[0]!r} has half of one. Rename it."
        )
    return tuple(names)


def _naming_its_unit(cls: type["Budget"]) -> type["Budget"]:
    """The class with a clear error for `Budget(1, 81)`."""
    init: Any = cls.__init__

    @wraps(init)
    def checked(self: "Budget", *args: Any, **settings: Any) -> None:
        if says := refusal(init, self, *args, **settings):
            raise SettingError(f'a budget names its unit first, as in Budget("epochs", 1, 81), but {says}.')
        init(self, *args, **settings)

    cls.__init__ = checked  # type: ignore[method-assign]
    return cls


@_naming_its_unit
@dataclass(frozen=True)
class Budget:
    """Cheap fidelities: the budgets of trials, from a small one for all to the largest for the best.

    The budgets are the rungs low * factor^k, k = 0, 1, ..., up to high: 1, 3, 9, 27, 81 epochs for
    `Budget("epochs", 1, 81)`. New configurations begin at the lowest; of the results of a rung the best 1 / factor are
    promoted to the next.

    Args:
        unit: of the budgets, such as "epochs"; for display.
        low: the smallest budget, > 0.
        high: the largest budget; above all rungs if it is none of them.
        factor: between two rungs, > 1.

    Raises:
        SettingError: for a setting outside its range, or a `high` that leaves a single rung.

    Example:
        >>> Budget("epochs", 1, 100).rungs
        (1, 3, 9, 27, 81)

    References:
        Li et al., A System for Massively Parallel Hyperparameter Tuning, MLSys 2020 (ASHA).
    """

    unit: str
    low: float
    high: float
    factor: float = 3

    def __post_init__(self) -> None:
        if not (isinstance(self.unit, str) and self.unit):
            raise SettingError(f"unit must name what is spent, as 'epochs', but got unit={self.unit!r:.100}.")
        required(low=self.low, high=self.high, factor=self.factor)
        above(0, low=self.low)
        above(1, factor=self.factor)
        above(self.low, high=self.high)
        for name in ("low", "high", "factor"):  # NumPy's can't be written down
            object.__setattr__(self, name, plain_number(getattr(self, name)))
        if self.high < math.inf and math.log(self.high) - math.log(self.low) > MOST_RUNGS * math.log(self.factor):
            raise SettingError(f"there can be {MOST_RUNGS} rungs at most, but got more of factor={self.factor}.")
        if not self.high <= LARGEST or len(self.rungs) < 2:
            raise SettingError(
                f"low * factor <= high must hold, high finite, so that there are two rungs, but got low={self.low}, "
                f"high={self.high} and factor={self.factor}."
            )

    @cached_property
    def rungs(self) -> tuple[float, ...]:
        """The budgets, ascending; those that are whole numbers as integers, which a command line may ask for."""
        rungs: Iterator[float] = (self.low * self.factor**k for k in count())
        spent = takewhile(lambda rung: rung <= self.high * (1 + ROUNDING), rungs)
        return tuple(int(rung) if rung < EXACT and float(rung).is_integer() else float(rung) for rung in spent)

    @property
    def top(self) -> float:
        """The largest of the rungs."""
        return self.rungs[-1]

    def rung_of(self, budget: float | None) -> int:
        """The number of the rung with this budget, counted from 0, the lowest.

        Raises:
            SettingError: for anything but a rung.
        """
        for number, rung in enumerate(self.rungs):
            if budget is not None and math.isclose(rung, budget, rel_tol=ROUNDING):
                return number
        raise SettingError(f"a budget must be one of {', '.join(map(str, self.rungs))} {self.unit}, but got {budget}.")

    def plain(self, budget: float) -> float:
        """A budget as it was declared: a whole number of epochs stays one."""
        return self.rungs[self.rung_of(budget)]

    def to_dict(self) -> dict[str, Any]:
        """Plain data for the header of a journal: `Budget(**data)` is the same again."""
        return asdict(self)


def n_promoted(n: int, factor: float) -> int:
    """How many of n results of a rung are among the best 1 / factor of them."""
    return math.floor(n / factor + ROUNDING)


class Reporter(Protocol):
    """What a trial reports to while it runs; see `Trial.report`."""

    def report(self, trial: "Trial", value: Any, step: float) -> None:
        """Takes the value of a trial at a step."""

    def should_prune(self, trial: "Trial") -> bool:
        """Whether the trial should end now."""

    def log(self, trial: "Trial", metrics: Any, value: Any, step: float | None) -> None:
        """Takes metrics that are not optimised."""

    def log_artifact(self, trial: "Trial", content: Any, name: str | None) -> None:
        """Takes what a trial has made."""


def finite(plain: Any) -> Any:
    """Plain data with None in place of numbers that are not finite, which strict JSON does not have."""
    if isinstance(plain, float) and not math.isfinite(plain):
        return None
    if isinstance(plain, Mapping):
        return {key: finite(value) for key, value in plain.items()}
    return [finite(each) for each in plain] if isinstance(plain, list | tuple) else plain


@dataclass(frozen=True, repr=False)
class Trial:
    """One configuration and its outcome: a record. A running one reports its values, and asks whether to go on.

        for epoch in range(81):
            trial.report(train_one_epoch(...), step=epoch)
            if trial.should_prune():
                raise deepbore.TrialPruned

    Attributes:
        id: row in the observations, counted from 0 in the order of asking.
        params: the configuration, inactive parameters left out.
        value: the (first) objective value in the user's sign; None unless complete. In a study of preferences the
            utility that all comparisons so far give it.
        status: complete, failed, pruned, pending or withdrawn.
        values: all k objective values in the user's sign; None unless complete.
        constraints: values of the black-box constraints, feasible where all are <= 0; None where there are none.
        budget: what it may spend, or has spent; None where there are no budgets.
        resume_from: the trial of the same configuration, on a smaller budget, that it continues: its `attributes` may
            say where a checkpoint lies. None for one that begins anew.
        task: name of the earlier task that it belongs to; None for this run's own.
        attributes: further data of the outcome, by name.
        reason: why there is no value, or why it was withdrawn; None if there is one, or none was given.
        identity: a key of its configuration, even if `params` are changed; None if made by hand.
        noise: standard deviation of the value; None where none was told.
        former: what it was before each correction, and before it was withdrawn, the first one first: the trial with
            the outcome that no longer counts. See `Study.correct` and `Study.withdraw`.
        reports: the values that it has reported, by step, ascending: its learning curve. NaN for what is not finite.
        reporter: what it reports to; None for a record of a trial that does not run.
        began: when its evaluation began, in seconds since 1970; None where that was not kept.
        ended: when it ended.
        cost: what it has cost, in seconds or the unit that was told; None where that is unknown.
        metrics: what it has logged and is not optimised: name -> step -> value; see `log`.
        artifacts: what it has made, each with `name`, `size`, and `digest` or `path`; see `log_artifact`.
        note: a text about it; see `StudyTrials.note`.
        tags: short texts about it.
    """

    id: int
    params: dict[str, Any]
    value: float | None = None
    status: Status = Status.PENDING
    values: tuple[float, ...] | None = None
    constraints: tuple[float, ...] | None = None
    budget: float | None = None
    task: str | None = None
    attributes: Mapping[str, Any] = field(default_factory=dict)
    reason: str | None = None
    identity: Hashable = field(default=None, repr=False, compare=False)
    resume_from: "Trial | None" = field(default=None, repr=False)
    noise: float | None = None
    former: "tuple[Trial, ...]" = field(default=(), repr=False)
    reports: Mapping[float, float] = field(default_factory=dict, repr=False)
    reporter: Reporter | None = field(default=None, repr=False, compare=False)
    began: float | None = field(default=None, repr=False, compare=False)
    ended: float | None = field(default=None, repr=False, compare=False)
    cost: float | None = field(default=None, repr=False)
    metrics: Mapping[str, Mapping[float, float]] = field(default_factory=dict, repr=False)
    artifacts: tuple[Any, ...] = field(default=(), repr=False)
    note: str = field(default="", repr=False)
    tags: tuple[str, ...] = field(default=(), repr=False)

    @property
    def duration(self) -> float | None:
        """Seconds from `began` to `ended`; None where these were not kept."""
        return None if self.began is None or self.ended is None else self.ended - self.began

    def report(self, value: Any, step: float) -> None:
        """Keeps the value at a step, such as the validation loss after an epoch: any number of them, by step.

        A step that is not greater than the last one begins the curve anew from there, as after a restart.

        Args:
            value: in the user's sign; NaN and infinite ones are worse than all others.
            step: at least 0, in any unit that is the same for all trials.

        Raises:
            ValueTypeError: for a value or a step that is no such number.
            TrialError: for a trial that does not run, or a copy of it in a process that the study does not know of.
        """
        self._running.report(self, value, step)

    def should_prune(self) -> bool:
        """Whether the study's pruner ends the trial, by what it and others have reported; False without a pruner.

        Then raise `TrialPruned`, or tell `study.tell(trial, pruned=True)`.

        Raises:
            TrialError: as `report`.
        """
        return self._running.should_prune(self)

    def log(self, metrics: Mapping[str, Any] | str, value: Any = None, step: float | None = None) -> None:
        """Tracks metrics that are not optimised: `trial.log({"accuracy": 0.9})`, `trial.log("accuracy", 0.9)`.

        They are in `trial.metrics`, in the journal, in frames and on the pages of the run, with the outcome of the
        trial; they have no effect on the run.

        Args:
            metrics: values by name; or the name of one. Infinite ones are kept as NaN.
            value: of that one.
            step: such as the epoch, >= 0; None for one after the last step of each metric.

        Raises:
            ValueTypeError: for names, values or a step that are none.
            TrialError: as `report`.
        """
        self._running.log(self, metrics, value, step)

    def log_artifact(self, content: Any, name: str | None = None) -> None:
        """Keeps what the trial has made: a picture, a text, a checkpoint.

        Content of up to 64 MiB is kept in a folder beside the journal, once for equal contents; larger files and
        folders by their path, and so are all files where a worker does not see the journal.

        Args:
            content: bytes, or the path of a file or a folder.
            name: such as "confusion.png"; None for the file's own.

        Raises:
            ValueTypeError: for anything else, or bytes without a name.
            TrialError: for bytes in a study without a journal, or more than 64 MiB of them; a path without a file; and
                as `report`.
        """
        self._running.log_artifact(self, content, name)

    @property
    def _running(self) -> Reporter:
        if self.reporter is None:
            raise TrialError(
                f"a running trial reports, but trial {self.id} is a record of it, or a copy in another process. Report "
                "on the trial that `ask` gave or the objective got, or by study.report(trial, value, step)."
            )
        return self.reporter

    def to_dict(self) -> dict[str, Any]:
        """The trial as plain data, without what it has not: for JSON, choices that are objects have their names.

        Example:
            >>> Trial(3, {"lr": 0.1}, value=0.5, values=(0.5,), status=Status.COMPLETE).to_dict()
            {'id': 3, 'params': {'lr': 0.1}, 'status': 'complete', 'values': [0.5]}
        """
        told = {"id": self.id, "params": dict(self.params), "status": str(self.status)}
        if self.status is Status.COMPLETE and self.values is not None:
            told["values"] = list(self.values)
        kept = ("budget", "task", "reason", "noise", "began", "ended", "cost")
        told |= {name: value for name in kept if (value := getattr(self, name)) is not None}
        told |= {"constraints": list(self.constraints)} if self.constraints else {}
        told |= {"attributes": dict(self.attributes)} if self.attributes else {}
        told |= {"reports": [[step, value] for step, value in self.reports.items()]} if self.reports else {}
        return told | ({"former": [each.to_dict() for each in self.former]} if self.former else {})

    def to_json(self) -> str:
        """`to_dict` as JSON; null for what is not finite, the repr of what is no plain data."""
        return json.dumps(finite(self.to_dict()), default=repr)

    def __repr__(self) -> str:
        """Its id, its configuration, and its value or status."""
        return f"Trial({self.id}, {self.params}, {self._result})"

    def _repr_html_(self) -> str:
        """A table of the configuration, for notebooks."""
        return as_html(f"trial {self.id}: {self._result}", self.params.items())

    @property
    def _result(self) -> str:
        """Its value, or its status and why it has none, in a few words."""
        if self.values is not None and self.status is Status.COMPLETE:
            shown = ", ".join(f"{value:.6g}" for value in self.values)
            return f"value={shown}" if len(self.values) == 1 else f"values=({shown})"
        return f"{self.status}: {self.reason:.100}" if self.reason else str(self.status)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            raise no_attribute("a trial", name, [*self.__dataclass_fields__, "traceback", "suspicious"])

    @property
    def suspicious(self) -> str | None:
        """Why the value is suspicious, where a warning has named the trial; see `StudyTrials.suspicious`."""
        return self.attributes.get("suspicious")

    @property
    def traceback(self) -> str | None:
        """The last 4000 characters of the traceback, where the objective has raised an exception."""
        return self.attributes.get("traceback")


class Trials(Sequence[Trial]):
    """A read-only sequence of trials, each made when it is read: `len`, an index and a slice cost the same for any n.

    Its length is that of the moment when it was made; a trial has the outcome that is known when it is read. For a copy
    that stays, and that can be changed, use `list(trials)`. A pickle is such a list, too.

    Args:
        read: function of row numbers that gives their trials, in this order.
        rows: the numbers.

    Example:
        >>> trials = Trials(lambda rows: [Trial(row, {"x": row / 10}) for row in rows], range(1_000_000))
        >>> len(trials), trials[-1].id, [trial.id for trial in trials[2:8:3]]
        (1000000, 999999, [2, 5])
    """

    __hash__: ClassVar[None]  # type: ignore[assignment]  # equal to lists, which have none
    CHUNK = 1000  # trials that are made together in an iteration

    def __init__(self, read: Callable[[Sequence[int]], list[Trial]], rows: range):
        self._read, self._rows = read, rows

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, index: int) -> Trial: ...
    @overload
    def __getitem__(self, index: slice) -> "Trials": ...
    def __getitem__(self, index: int | slice) -> "Trial | Trials":
        if isinstance(index, slice):
            return Trials(self._read, self._rows[index])
        (trial,) = self._read([self._rows[index]])
        return trial

    def __iter__(self) -> Iterator[Trial]:
        for start in range(0, len(self), self.CHUNK):
            yield from self._read(self._rows[start : start + self.CHUNK])

    def __reversed__(self) -> Iterator[Trial]:
        return iter(self[::-1])

    def __contains__(self, trial: object) -> bool:
        return isinstance(trial, Trial) and trial.id in self._rows and self._read([trial.id]) == [trial]

    def index(self, trial: Any, start: int = 0, stop: int | None = None) -> int:
        """Where a trial stands. Raises ValueError if it is not here."""
        if trial not in self[start:stop]:
            raise ValueError(f"{trial!r:.200} is not in these trials.")
        return self._rows.index(trial.id)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, (list, Trials)):
            return NotImplemented
        return len(self) == len(other) and all(map(operator.eq, self, other))

    def __add__(self, other: Sequence[Trial]) -> list[Trial]:
        return [*self, *other]

    def __radd__(self, other: Sequence[Trial]) -> list[Trial]:
        return [*other, *self]

    def __repr__(self) -> str:
        """The first trials and the last one."""
        first = [repr(trial) for trial in self[:SHOWN]]
        return f"[{', '.join(first if len(self) <= SHOWN else [*first[:-1], '...', repr(self[-1])])}]"

    def __reduce__(self) -> tuple[type, tuple[list[Trial]]]:
        return list, (list(self),)
