"""The state of a run from the events of its journal: one reducer for studies and for looking at runs.

`Replay` takes the events one by one, in plain Python. `read_record` makes of it a `Record` to be shown, without torch;
`replay` makes of it the observations of a study.
"""

import math
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deepbore.component import is_number
from deepbore.data.journal import Journal, events_in, scan_journal
from deepbore.data.journal_format import (
    Event,
    Pair,
    budget_of,
    declaring,
    header_of,
    imported_by,
    outcome_of,
    replaying,
    reports_of,
)
from deepbore.data.outcome import (
    Outcome,
    as_attributes,
    as_budget,
    attributes_after,
    check_comparable,
    check_correctable,
    check_corrected,
    check_counts,
    check_pair,
    check_told,
    check_width,
    check_withdrawable,
    told_twice,
    width_of,
    with_former,
    with_own_budget,
)
from deepbore.data.ranking import best_trial
from deepbore.data.reports import Reports
from deepbore.data.running import running_reports
from deepbore.data.times import Span, times_of, times_path
from deepbore.data.trial import LARGEST, Budget, Direction, Status, Trial, checked_directions, sign_of
from deepbore.errors import JournalError, SpaceError, TrialError

if TYPE_CHECKING:
    from torch import Tensor

    from deepbore.data.observations import Observations
    from deepbore.space import SearchSpace


Scalar = str | int | float | bool | None
NUMBERS, CHOICES = ("real", "integer"), ("ordinal", "categorical")  # types of parameters; others are the user's own


# --- the reducer -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Asked:
    """A row that the run has asked for.

    Attributes:
        line: of the journal.
        params: the configuration.
        budget: what it may spend; None where there is none.
        resume_from: the row that it continues; None if it begins anew.
    """

    line: int
    params: dict[str, Any]
    budget: float | None
    resume_from: int | None


@dataclass(frozen=True)
class Imported:
    """Rows that were imported at once.

    Attributes:
        line: of the journal.
        rows: their numbers.
        results: columns and values, and perhaps constraints, budgets, noise and the task, as `ImportedResults.read`
            takes them. What is withdrawn or corrected is replaced in them.
    """

    line: int
    rows: range
    results: dict[str, Any]

    def outcome(self, row: int) -> Outcome:
        """The outcome of a row, failed where a value or one of several constraints is missing."""
        values, constraints, noise = (self._told(name, row) for name in ("values", "constraints", "noise"))
        several = values if isinstance(values, list) else [values]
        bounds = constraints if constraints and any(each is not None for each in constraints) else []
        found = Outcome([_number(each) for each in several], [_number(each) for each in bounds], noise=noise)
        if not found.has_failed:
            return found
        kept = found.constraints if all(map(math.isfinite, found.constraints)) else ()
        return Outcome(constraints=kept, status=Status.FAILED, noise=noise)

    def _told(self, name: str, row: int) -> Any:
        return self.results[name][row - self.rows.start] if self.results.get(name) else None

    def replace(self, outcomes: Mapping[int, Outcome], k: int) -> None:
        """Gives some rows other outcomes of k values; a failure has none."""
        for row, outcome in outcomes.items():
            values = list(outcome.values) if outcome.has_value else [None] * k
            self.results["values"][row - self.rows.start] = values[0] if k == 1 else values
        self._replace("constraints", {row: list(each.constraints[: width_of(each)]) for row, each in outcomes.items()})
        self._replace("noise", {row: each.noise for row, each in outcomes.items()})
        self._replace("budgets", {row: each.budget for row, each in outcomes.items() if each.budget is not None})

    def _replace(self, name: str, told: Mapping[int, Any]) -> None:
        """What is told of some rows in a column that is left out where no row has anything."""
        column = self.results.pop(name, None) or [None] * len(self.rows)
        for row, each in told.items():
            column[row - self.rows.start] = each
        width = next((len(each) for each in column if _is_told(each) and isinstance(each, list)), None)
        if any(map(_is_told, column)):
            nothing = None if width is None else [None] * width
            self.results[name] = [each if _is_told(each) else nothing for each in column]


class Replay:
    """The state of a run after the events so far. Events that contradict it are refused.

    Args:
        created: the first event.

    Attributes:
        header: the header of the run: "space", "directions", "seed" and more.
        directions: of the k values.
        budget: what a trial may spend; None where there are no budgets.
        blocks: the rows, in their order.
        asked: row -> the one that was asked for.
        outcomes: row -> its outcome, without attributes.
        attributes: row -> further data, by name.
        finished: rows in the order in which they were told; a range for rows that were imported at once.
        queue: configurations that are enqueued and not asked for yet, and the lines that say so.
        pairs: rows of the preferred trial and of the other one, for each comparison, and the lines that say so.
        fixed: the parameters that are fixed last, and the line that says so; None if none ever were.
        n_constraints: how many black-box constraints the run has, once one is told; 0 before.
        withdrawn: row -> why it was withdrawn, None where that was not said.
        former: row -> its outcomes that no longer count, the first one first.
        reasons: row -> why it has failed, of imported rows that were corrected.
        reports: what the trials have reported.
    """

    def __init__(self, created: Event):
        self.header = header_of(created)
        self.directions = checked_directions(self.header["directions"], self.by_preference)
        self.budget = budget_of(self.header)
        self.declared = _parameters(self.header)
        self.names = frozenset(self.declared)
        for name, declared in self.declared.items():
            check_declared(name, declared)
        self.blocks: list[Asked | Imported] = []
        self.asked: dict[int, Asked] = {}
        self.outcomes: dict[int, Outcome] = {}
        self.attributes: dict[int, dict[str, Any]] = {}
        self.finished: list[int | range] = []
        self.queue: list[tuple[dict[str, Any], int]] = []
        self.pairs: list[tuple[Pair, int]] = []
        self.fixed: tuple[dict[str, Any], int] | None = None
        self.n_constraints = 0
        self.withdrawn: dict[int, str | None] = {}
        self.former: dict[int, tuple[Outcome, ...]] = {}
        self.reasons: dict[int, str] = {}
        self.reports = Reports(sign_of(self.directions[0]))
        self._n = 0
        self._compared: set[int] = set()
        self._added: list[Imported] = []

    @classmethod
    def of(cls, path: Path, events: Iterable[Event]) -> "Replay":
        """The state after all events of a journal.

        Raises:
            JournalError: naming line and path, for an event that contradicts those before it.
        """
        numbered = iter(enumerate(events, 1))
        _, created = next(numbered)
        with declaring(path):
            state = cls(created)
        for line, event in numbered:
            with replaying(path, line):
                state.apply(event, line)
        return state

    def __len__(self) -> int:
        """n, the number of rows."""
        return self._n

    @property
    def by_preference(self) -> bool:
        """Whether trials are compared."""
        return bool(self.header.get("preferences", False))

    def apply(self, event: Event, line: int) -> None:
        """Takes in the next event."""
        match event["event"]:
            case "asked" if event["trial"] == len(self):
                self._ask(event, line)
            case "told" | "failed" | "pruned":
                self._tell(event["trial"], outcome_of(event))
            case "reported":
                self._report(event["trial"], reports_of(event))
            case "added":
                self._import(imported_by(event, list(self.declared)), line)
            case "preferred" if self.by_preference:
                self._prefer(event["better"], event["worse"], line)
            case "annotated":
                self._annotate(event["trial"], as_attributes(event["attributes"]))
            case "withdrawn":
                self._withdraw(event["trials"], event.get("reason"))
            case "corrected":
                self._correct(event["trial"], outcome_of(event))
            case "fixed":
                self.fixed = self._known(event["params"]), line
            case "enqueued":
                self.queue.append((self._known(event["params"]), line))
            case _:
                raise JournalError(f"{event} can't come here.")

    def _ask(self, event: Event, line: int) -> None:
        params, budget, earlier = self._known(event["params"]), event.get("budget"), event.get("resume_from")
        if earlier is not None:
            self._check_row(earlier)
        if budget is not None:
            budget = as_budget(budget)
            if self.budget is not None:
                self.budget.rung_of(budget)
        asked = self.asked[len(self)] = Asked(line, params, budget, earlier)
        self.blocks.append(asked)
        self._n += 1
        if self.queue and earlier is None and _completes(params, self.queue[0][0]):
            del self.queue[0]

    def _tell(self, row: Any, outcome: Outcome) -> None:
        self._check_row(row)
        if self.status(row) is not Status.PENDING:
            raise told_twice(self.trials[row])
        check_counts(outcome, len(self.directions), self.n_constraints)
        if self.by_preference:
            check_told(row, outcome)
        own = self.asked[row].budget
        outcome = with_own_budget(self.budget, row, math.nan if own is None else own, outcome)
        if outcome.attributes:
            self._annotate(row, outcome.attributes)
        if outcome.reports:
            self.reports.replace(row, outcome.reports)
        outcome = replace(outcome, attributes={}, reports={})
        self.outcomes[row] = outcome
        self.n_constraints = self.n_constraints or width_of(outcome)
        self.finished.append(row)

    def _report(self, row: Any, reports: Mapping[float, float]) -> None:
        self._check_row(row)
        if len(self.directions) > 1 or self.by_preference or self.status(row) is not Status.PENDING:
            raise TrialError(f"running trials of one objective report, but trial {row} did.")
        self.reports.add(row, reports)

    def _import(self, results: dict[str, Any], line: int) -> None:
        self._known_columns(results["columns"])
        for told in results.get("constraints") or ():
            if all(each is not None for each in told):
                check_width(len(told), 0, self.n_constraints)
                self.n_constraints = self.n_constraints or len(told)
        rows = range(len(self), len(self) + len(results["values"]))
        self._added.append(Imported(line, rows, results))
        self.blocks.append(self._added[-1])
        self.finished.append(rows)
        self._n = rows.stop

    def _prefer(self, better: Any, worse: Any, line: int) -> None:
        for row in (better, worse):
            self._check_row(row)
            check_comparable(row, self.status(row))
        check_pair(better, worse)
        self.pairs.append(((better, worse), line))
        self._compared |= {better, worse}

    def _withdraw(self, rows: Any, reason: Any) -> None:
        reason = Outcome.failure(reason).reason
        imported: dict[int, dict[int, Outcome]] = {}
        for row in rows:
            self._check_row(row)
            check_withdrawable(self._about(row))
            if (known := self.outcome(row)) is not None:
                self.former[row] = (*self.former.get(row, ()), known)
            self.withdrawn[row] = reason
            self.reasons.pop(row, None)
            self.outcomes.pop(row, None)
            if row not in self.asked:
                imported.setdefault(self._number_of_block(row), {})[row] = Outcome.failure()
        for number, outcomes in imported.items():
            self._added[number].replace(outcomes, len(self.directions))
        self.n_constraints = self._width()
        self.reports.withdraw(rows)
        gone, is_gone = set(rows), self.withdrawn.__contains__
        self.finished = [
            each
            for each in self.finished
            if not (all(map(is_gone, each)) if isinstance(each, range) else is_gone(each))
        ]
        if not gone.isdisjoint(self._compared):
            self.pairs = [(pair, line) for pair, line in self.pairs if gone.isdisjoint(pair)]
            self._compared = {row for pair, _ in self.pairs for row in pair}

    def correctable(self, row: Any) -> Outcome:
        """The outcome of a trial that may be corrected; raises TrialError for another one."""
        self._check_row(row)
        check_correctable(self._about(row), self.by_preference)
        known = self.outcome(row)
        assert known is not None
        return known

    def _correct(self, row: Any, outcome: Outcome) -> None:
        known = self.correctable(row)
        check_corrected(known, outcome, len(self.directions), self._width(row))
        self.former[row] = (*self.former.get(row, ()), known)
        self.attributes[row] = attributes_after(self.attributes.get(row, {}), outcome)
        if outcome.reports:
            self.reports.replace(row, outcome.reports)
        outcome = replace(outcome, attributes={}, reports={})
        if row in self.asked:
            own = self.asked[row].budget
            outcome = with_own_budget(self.budget, row, math.nan if own is None else own, outcome)
            spent = self.outcomes[row].budget if outcome.budget is None else outcome.budget
            self.outcomes[row] = replace(outcome, budget=spent)
        else:
            self._added[self._number_of_block(row)].replace({row: outcome}, len(self.directions))
            self.reasons.pop(row, None)
            if outcome.reason:
                self.reasons[row] = outcome.reason
        self.n_constraints = self._width()

    def status(self, row: int) -> Status:
        """The status of a row."""
        if row in self.withdrawn:
            return Status.WITHDRAWN
        if row in self._compared:
            return Status.COMPLETE
        known = self.outcome(row)
        return Status.PENDING if known is None else known.status

    def outcome(self, row: int) -> Outcome | None:
        """The outcome of a row, without budget and attributes; None for one that is pending or withdrawn."""
        if row in self.withdrawn:
            return None
        if row not in self.asked:
            return replace(self._added[self._number_of_block(row)].outcome(row), reason=self.reasons.get(row))
        known = self.outcomes.get(row)
        return None if known is None else replace(known, budget=None)

    def _about(self, row: int) -> Trial:
        """The row as an error tells of it."""
        return Trial(row, {}, status=self.status(row), reason=self.withdrawn.get(row))

    def _number_of_block(self, row: int) -> int:
        """Which of the imported blocks a row is in."""
        return bisect_right(self._added, row, key=lambda block: block.rows.stop)

    def _width(self, but: int | None = None) -> int:
        """How many constraints the rows have, as far as others than one have any; else 0."""
        told = ((row, width_of(outcome)) for row, outcome in self.outcomes.items())
        blocks = ((row, block) for block in self._added if block.results.get("constraints") for row in block.rows)
        added = ((row, width_of(block.outcome(row))) for row, block in blocks)
        return next((width for row, width in chain(told, added) if width and row != but), 0)

    def _annotate(self, row: Any, attributes: Mapping[str, Any]) -> None:
        self._check_row(row)
        self.attributes[row] = {**self.attributes.get(row, {}), **attributes}

    def _check_row(self, row: Any) -> None:
        """Raises TrialError for anything but the number of a row."""
        if isinstance(row, bool) or not isinstance(row, int) or not 0 <= row < len(self):
            raise TrialError(f"trials 0 ... {len(self) - 1} exist, but got {row!r}.")

    def _known(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """A configuration. Raises ValueError for a parameter that is not declared, or a value of another kind."""
        self._check_names(params)
        for name, value in params.items():
            if not _is_of_kind(self.declared[name], value):
                raise ValueError(f"parameter {name!r} can't have the value {value!r:.100}.")
        return dict(params)

    def _known_columns(self, columns: Mapping[str, Any]) -> None:
        """Raises ValueError for a column of a parameter that is not declared, or with values of another kind."""
        self._check_names(columns)
        for name, column in columns.items():
            kinds = {type(value): value for value in column}  # one of each: a million take no time
            kinds.pop(type(None), None)  # inactive
            several = kinds.values() if self.declared[name]["type"] in NUMBERS else column
            wrong = [each for each in several if each is not None and not _is_of_kind(self.declared[name], each)]
            if not isinstance(column, list) or wrong:
                raise ValueError(f"parameter {name!r} can't have the values {wrong[:3]!r:.100}.")

    def _check_names(self, params: Mapping[str, Any]) -> None:
        if not self.names.issuperset(params):
            raise ValueError(f"parameters must be among {sorted(self.names)}, but got {sorted(params)}.")

    # --- records of trials -------------------------------------------------------------------------------------------

    @property
    def trials(self) -> list[Trial]:
        """The records of all rows, made anew."""
        return list(self.records(Path("the journal")))

    def records(self, path: Path) -> Iterator[Trial]:
        """The records of all rows, in their order.

        Raises:
            JournalError: naming line and path, for imported results that are no such.
        """
        utilities = self._utilities()
        made: list[Trial] = []
        for block in self.blocks:
            with replaying(path, block.line):
                new = self._imported(block) if isinstance(block, Imported) else [self._asked(block, made, utilities)]
                made.extend(self._revised(trial) for trial in new)
        return iter(made)

    def _revised(self, trial: Trial) -> Trial:
        """The record of a trial, withdrawn if it was, and with its former outcomes."""
        trial = with_former(trial, self.former.get(trial.id, ()))
        if trial.id not in self.withdrawn:
            return trial
        told = replace(trial, value=None, values=None, constraints=None, noise=None)
        return replace(told, status=Status.WITHDRAWN, reason=self.withdrawn[trial.id])

    def _asked(self, asked: Asked, made: list[Trial], utilities: Mapping[int, float]) -> Trial:
        row = len(made)
        outcome = self.outcomes.get(row)
        values = outcome.values if outcome and outcome.has_value else None
        status = outcome.status if outcome else Status.PENDING
        if row in utilities:
            values, status = (utilities[row],), Status.COMPLETE
        return Trial(
            row,
            asked.params,
            values[0] if values else None,
            status,
            values,
            (outcome.constraints or None) if outcome else None,
            asked.budget if outcome is None or outcome.budget is None else outcome.budget,
            attributes=self.attributes.get(row, {}),
            reason=outcome.reason if outcome else None,
            resume_from=None if asked.resume_from is None else made[asked.resume_from],
            noise=outcome.noise if outcome else None,
            reports=self.reports.of(row),
        )

    def _utilities(self) -> dict[int, float]:
        """The utilities of the rows that were compared."""
        if not self.pairs:
            return {}
        from deepbore.data.comparisons import compared_utilities  # for these runs only: NumPy

        rows, utilities = compared_utilities([pair for pair, _ in self.pairs])
        return dict(zip(rows.tolist(), utilities.tolist(), strict=True))

    def _imported(self, block: Imported) -> Iterator[Trial]:
        """The trials of a block of imported results."""
        columns: Mapping[str, Any] = block.results["columns"]
        space = self.declared
        optional = {name for name in self.names if None not in space[name].get("choices", ())}
        budgets, task = block.results.get("budgets") or [None] * len(block.rows), block.results.get("task")
        for row, natives, budget in zip(block.rows, zip(*columns.values(), strict=True), budgets, strict=True):
            named = zip(columns, natives, strict=True)  # None where a parameter is inactive, or is one of its choices
            params = {name: value for name, value in named if not (value is None and name in optional)}
            outcome = block.outcome(row)
            check_counts(outcome, len(self.directions), 0)  # a block of results may have rows without constraints
            if self.budget is not None and budget is not None and not math.isnan(budget):
                self.budget.rung_of(budget)
            yield Trial(
                row,
                params,
                outcome.values[0] if outcome.values else None,
                outcome.status,
                outcome.values or None,
                outcome.constraints or None,
                None if budget is None else as_budget(budget),
                task,
                attributes=self.attributes.get(row, {}),
                reason=self.reasons.get(row),
                noise=outcome.noise,
            )


def check_declared(name: str, declared: Mapping[str, Any]) -> None:
    """Raises ValueError for the declaration of a parameter that can't be shown."""
    if not isinstance(declared.get("type"), str):
        raise ValueError(f"parameter {name!r} must have a type, but got {declared!r:.100}.")
    if declared["type"] in NUMBERS:
        low, high, step = declared["low"], declared["high"], declared.get("step", 1)
        if not (all(map(_is_finite, (low, high, step))) and low < high and step > 0):
            raise ValueError(f"parameter {name!r} must have low < high, but got {declared!r:.100}.")
    elif declared["type"] in CHOICES:
        choices = declared["choices"]
        if not isinstance(choices, list | dict) or not all(isinstance(each, Scalar) for each in choices):
            raise ValueError(f"parameter {name!r} must have choices, but got {declared!r:.100}.")


def _is_of_kind(declared: Mapping[str, Any], value: Any) -> bool:
    """Whether a value may be a parameter's: a number, one of its choices, or anything where its type is the user's."""
    if declared["type"] in CHOICES:
        return value in list(declared["choices"])  # the names, where they are a mapping
    return _is_finite(value) if declared["type"] in NUMBERS else True


def _is_finite(value: Any) -> bool:
    return is_number(value) and -LARGEST <= value <= LARGEST


def _parameters(header: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The declared parameters; constraints are lists."""
    return {name: each for name, each in header["space"].items() if isinstance(each, dict)}


def _number(value: float | None) -> float:
    return math.nan if value is None else value


def _is_told(each: Any) -> bool:
    """Whether a row of a column has something."""
    return any(one is not None for one in each) if isinstance(each, list) else each is not None


# --- the record of a run ---------------------------------------------------------------------------------------------


@dataclass
class Record:
    """The trials of a run as its journal tells them, as plain Python: to be shown, not to be continued.

    Damaged or contradictory journals are refused as by `replay`, except for values outside of their parameters: that
    check needs the search space, and so torch.

    Attributes:
        header: what the first line says of the run: "space", "directions", "seed" and more.
        directions: of the k values.
        trials: all of them, in the order of asking.
        n_asked: the number of trials that the run has asked for; the rest are earlier results.
        queue: configurations that are enqueued and not asked for yet.
        preferences: numbers of the preferred trial and of the other one, for each comparison.
    """

    header: dict[str, Any]
    directions: tuple[Direction, ...]
    trials: list[Trial] = field(default_factory=list)
    n_asked: int = 0
    queue: list[dict[str, Any]] = field(default_factory=list)
    preferences: list[Pair] = field(default_factory=list)

    def __len__(self) -> int:
        """n, pending and failed trials included."""
        return len(self.trials)

    @property
    def k(self) -> int:
        """How many values an outcome has."""
        return len(self.directions)

    @property
    def direction(self) -> Direction:
        """The direction of the first value."""
        return self.directions[0]

    @property
    def space(self) -> dict[str, dict[str, Any]]:
        """The parameters of the search space: name -> type, bounds, ...; see `SearchSpace.to_dict`."""
        return _parameters(self.header)

    @property
    def status(self) -> list[Status]:
        """Of each trial (n)."""
        return [trial.status for trial in self.trials]

    @property
    def n_left(self) -> float:
        """How many configurations of the space are left: not known here, so infinite."""
        return math.inf

    def trial(self, row: int) -> Trial:
        """One of the trials."""
        return self.trials[row]

    @property
    def best(self) -> Trial | None:
        """The first feasible trial of this run with the best value; None while there is none.

        With cheap fidelities it is the best at the largest budget at which any trial is feasible.

        Raises:
            SettingError: with several objectives.
        """
        return best_trial(self.trials, self.directions, self.budget is not None)

    @property
    def budget(self) -> Budget | None:
        """What a trial may spend; None where there are no budgets."""
        return budget_of(self.header)


def read_record(path: Path) -> Record:
    """The record in a journal, of this version or of 0.1; its checksums are verified.

    Raises:
        JournalError: naming line and path, for a missing, damaged or contradictory journal.
    """
    state = Replay.of(path, events_in(path, scan_journal(path)))
    times = times_of(times_path(path))
    trials = [_shown(_timed(trial, times), path) for trial in state.records(path)]
    pairs = [pair for pair, _ in state.pairs]
    queue = [params for params, _ in state.queue]
    return Record(state.header, state.directions, trials, len(state.asked), queue, pairs)


def _timed(trial: Trial, times: Mapping[int, Span]) -> Trial:
    """A trial with when it began and ended, if that is known."""
    if (span := times.get(trial.id)) is None:
        return trial
    return replace(trial, began=span[0], ended=span[1])


def _shown(trial: Trial, path: Path) -> Trial:
    """A trial with what it has reported, if it runs and that is known."""
    if trial.status is not Status.PENDING or trial.reports:
        return trial
    return replace(trial, reports=running_reports(path, trial.id))


# --- the observations of a study -------------------------------------------------------------------------------------


@dataclass
class History:
    """The observations that a journal keeps.

    Attributes:
        observations: all trials, not yet connected to the journal.
        header: what its first line says of the run: "space", "directions", "seed" and more.
        journal: the file.
        queue: points (d) that were enqueued and are still to be asked.
    """

    observations: "Observations"
    header: dict[str, Any]
    journal: Journal
    queue: "list[Tensor]" = field(default_factory=list)


def replay(journal: Journal, space: "SearchSpace | None" = None) -> History:
    """The history in a journal, of this version or of 0.1.

    Args:
        journal: not open yet.
        space: the one that the journal declares, to be used in place of that: a journal only names functions.

    Raises:
        JournalError: naming line and path, for a missing, damaged or contradictory journal, or one of another space.
    """
    from deepbore.data.observations import Observations  # torch
    from deepbore.space import SearchSpace

    path, state = journal.path, Replay.of(journal.path, journal.read())
    with declaring(path):
        for name, each in _parameters(state.header).items():
            if isinstance(each.get("features", {}), str):  # of YAML: a journal opens no other file
                raise SpaceError(f"parameter {name!r}: a journal has no features, only their checksum.")
        kept = SearchSpace.from_dict(state.header["space"])
    if space is not None and (other := _other_space(space.to_dict(), kept.to_dict())):
        raise JournalError(
            f"{path} holds a run on another space than this one: {'; '.join(other)}. Give the space of that run, or "
            "name another file."
        )
    own = kept if space is None else space.with_defaults_of(kept)
    with declaring(path):
        objectives = state.header.get("objectives", ())
        about: dict[str, Any] = {"budget": state.budget, "by_preference": state.by_preference, "objectives": objectives}
        observations = Observations(own, state.directions, **about)
    _append_rows(observations, state, path)
    _tell_outcomes(observations, state, path)
    return History(observations, state.header, journal, _encoded_queue(observations, state, path))


def _append_rows(observations: "Observations", state: Replay, path: Path) -> None:
    """Appends the rows of a run; imported ones of one kind together, as a million rows need one sorting."""
    from deepbore.data.imported import ImportedResults

    together: list[ImportedResults] = []
    waiting: list[Asked] = []

    def append() -> None:
        if together:
            observations.append(ImportedResults.joined(together))
            together.clear()

    def reserve() -> None:
        if waiting:
            points = _encoded([(each.params, each.line) for each in waiting], observations.space, path)
            budgets, resumed = [each.budget for each in waiting], [each.resume_from for each in waiting]
            with replaying(path, waiting[0].line):
                observations.reserve(points, budgets, resumed)
            waiting.clear()

    for block in state.blocks:
        if isinstance(block, Imported):
            reserve()
            with replaying(path, block.line):
                results = ImportedResults.read(observations.space, observations.k, **block.results, is_exact=True)
                if together and together[0].kind != results.kind:
                    append()
                together.append(results)
        else:
            with replaying(path, block.line):
                append()
            waiting.append(block)
    reserve()
    if state.blocks:
        with replaying(path, state.blocks[-1].line):
            append()


def _encoded(asked: list[tuple[dict[str, Any], int]], space: "SearchSpace", path: Path) -> "Tensor":
    """The points (n x d) of configurations, encoded together; an error names the line of the first wrong one."""
    try:
        return space.encode([params for params, _ in asked])
    except Exception:  # one by one, to find it
        for params, line in asked:
            with replaying(path, line):
                space.encode([params])
        raise


def _tell_outcomes(observations: "Observations", state: Replay, path: Path) -> None:
    """Gives the rows their outcomes, which the reducer has checked, then all that follows from other events."""
    table = observations.table
    for row, outcome in state.outcomes.items():
        table.stage_outcome(row, outcome)()
    table.finished = list(state.finished)
    for row, attributes in state.attributes.items():
        observations.annotate(row, attributes)
    if state.pairs:
        with replaying(path, state.pairs[-1][1]):
            observations.prefer(pair for pair, _ in state.pairs)
    table.reasons.update(state.reasons)
    if state.withdrawn:
        table.stage_withdrawal(sorted(state.withdrawn))()
        table.reasons.update({row: reason for row, reason in state.withdrawn.items() if reason})
    table.former = dict(state.former)
    table.reports = state.reports
    table.times = times_of(times_path(path))
    if state.fixed is not None:
        params, line = state.fixed
        with replaying(path, line):
            observations.fix(params)


def _encoded_queue(observations: "Observations", state: Replay, path: Path) -> "list[Tensor]":
    """The points (d) of the queue."""
    points = []
    for params, line in state.queue:
        with replaying(path, line):
            points.append(observations.space.encode_part(params))
    return points


def _completes(params: Mapping[str, Any], queued: Mapping[str, Any]) -> bool:
    """Whether a configuration has all that a queued one, or a part of one, says."""
    return all(name in params and params[name] == value for name, value in queued.items())


def _without_defaults(declared: Mapping[str, Any]) -> dict[str, Any]:
    """The declaration of a space without the values that a new run has tried first."""

    def rest(each: Any) -> Any:
        return {name: one for name, one in each.items() if name != "default"} if isinstance(each, Mapping) else each

    return {name: rest(each) for name, each in declared.items()}


def _without_features(declared: Any) -> Any:
    """The declaration of a parameter without what its levels are like."""
    return {name: each for name, each in declared.items() if name != "features"} if isinstance(declared, dict) else {}


def _other_space(wanted: Mapping[str, Any], kept: Mapping[str, Any]) -> list[str]:
    """What differs between the declarations of two spaces, in words."""
    wanted, kept = _without_defaults(wanted), _without_defaults(kept)
    words = [f"{name!r} is new in the space" for name in wanted if name not in kept]
    words += [f"{name!r} is no longer in the space" for name in kept if name not in wanted]
    both = [name for name in wanted if name in kept and wanted[name] != kept[name]]
    described = [name for name in both if _without_features(wanted[name]) == _without_features(kept[name])]
    words += [f"the features of {name!r} are others (by their checksum), or only one has some" for name in described]
    both = [name for name in both if name not in described]
    words += [f"{name!r} in the space is {wanted[name]}, was {kept[name]}" for name in both]
    if not words and list(wanted) != list(kept):
        words = [f"the order of the space is {list(wanted)}, was {list(kept)}"]
    return words
