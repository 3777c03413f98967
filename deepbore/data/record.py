"""`Record`: what a journal says, as plain Python, to look at a run without torch."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import repeat
from pathlib import Path
from typing import Any

from deepbore.data.budget import Budget
from deepbore.data.counts import check_counts, check_width, width_of, with_own_budget
from deepbore.data.directions import Direction, checked_directions, sign_of
from deepbore.data.events import budget_of, declaring, header_of, outcome_of, playing
from deepbore.data.lines import Event
from deepbore.data.outcomes import Outcome, Status, as_attributes, as_budget
from deepbore.data.preferences import Pair, check_pair, check_told
from deepbore.data.survey import events, survey
from deepbore.data.trial import Trial
from deepbore.errors import JournalError, SettingError, TrialError


@dataclass
class Record:
    """The trials of a run as its journal tells them: for looking, not for going on.

    Everything that `deepbore.data.history.replay` says of a damaged or contradictory journal is said here, too, but for
    a value that lies outside of its parameter: that needs the search space, and so torch.

    Attributes:
        header: what the first line says of the run: "space", "directions", "seed" and more.
        directions: of the k values.
        trials: all of them, in the order of asking.
        n_asked: how many of them the run has asked for itself; the others are earlier results.
        queue: configurations that are enqueued and not asked for yet.
        preferences: numbers of the preferred trial and of the other one, for each comparison.
        width: how many black-box constraints the run has, once one is told; 0 before.
    """

    header: dict[str, Any]
    directions: tuple[Direction, ...]
    trials: list[Trial] = field(default_factory=list)
    n_asked: int = 0
    queue: list[dict[str, Any]] = field(default_factory=list)
    preferences: list[Pair] = field(default_factory=list)
    width: int = 0

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
        return {name: each for name, each in self.header["space"].items() if isinstance(each, dict)}  # lists constrain

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
        if self.k > 1:
            raise SettingError(
                f"a run with {self.k} objectives has no single best trial. Look at its front (`deepbore best`)."
            )
        sign = sign_of(self.direction)
        among = list(filter(may_be_best, self.trials))
        if self.budget is not None:
            largest = max((trial.budget or 0.0 for trial in among), default=0.0)
            among = [trial for trial in among if trial.budget == largest]
        return min(among, key=lambda trial: sign * (trial.value or 0.0), default=None)

    @property
    def budget(self) -> Budget | None:
        """What a trial may spend; None where there are no budgets."""
        return budget_of(self.header)


def is_feasible(trial: Trial) -> bool:
    """Whether a trial has a value and violates no constraint."""
    return trial.value is not None and all(each <= 0 for each in trial.constraints or ())


def may_be_best(trial: Trial) -> bool:
    """Whether a trial is a feasible one of this run; those of earlier tasks are not compared with it."""
    return trial.task is None and is_feasible(trial)


def front(trials: Iterable[Trial], directions: tuple[Direction, ...]) -> list[Trial]:
    """The feasible trials that no other beats in one value without being worse in another, by their first value.

    Args:
        trials: of one run; those of earlier tasks are left out.
        directions: of their values.
    """
    found: dict[tuple[float, ...], Trial] = {}
    for values, trial in in_order(filter(may_be_best, trials), directions).items():  # what beats one stands before it
        if not any(all(a <= b for a, b in zip(other, values, strict=True)) for other in found):
            found[values] = trial
    return list(found.values())


def in_order(trials: Iterable[Trial], directions: tuple[Direction, ...]) -> dict[tuple[float, ...], Trial]:
    """Complete trials by their values to minimise, ascending; of equal ones the first."""
    signs = [sign_of(direction) for direction in directions]
    keyed = sorted(((*(s * v for s, v in zip(signs, t.values or (), strict=True)), -t.id), t) for t in trials)
    return {tuple(values): trial for (*values, _), trial in keyed}


def read_record(path: Path) -> Record:
    """The record in a journal, of this version or of 0.1; its checksums are verified.

    Raises:
        JournalError: naming line and path, for a missing, damaged or contradictory journal.
    """
    numbered = enumerate(events(path, survey(path)), 1)
    line, created = next(numbered)
    with declaring(path):
        header = header_of(created)
        record = Record(header, checked_directions(header["directions"]))
        names = frozenset(record.space)
    for line, event in numbered:
        with playing(path, line):
            _play(record, names, event)
    for row, trial in enumerate(record.trials):
        if trial.resume_from is not None:  # which may have been annotated since
            record.trials[row] = replace(trial, resume_from=record.trials[trial.resume_from.id])
    if record.preferences:
        with playing(path, line):
            _compare(record)
    return record


def _play(record: Record, names: frozenset[str], event: Event) -> None:
    """Lets one event happen."""
    match event["event"]:
        case "asked" if event["trial"] == len(record):
            _ask(record, _known(event["params"], names), event.get("budget"), event.get("resume_from"))
        case "told" | "failed":
            _tell(record, event["trial"], outcome_of(event))
        case "added":
            record.trials.extend(_added(record, names, event))
        case "preferred" if record.header.get("preferences"):
            record.preferences.append((_trial(record, event["better"]).id, _trial(record, event["worse"]).id))
        case "annotated":
            _annotate(record, event["trial"], event["attributes"])
        case "fixed":
            _known(event["params"], names)
        case "enqueued":
            record.queue.append(_known(event["params"], names))
        case _:
            raise JournalError(f"{event} can't come here.")


def _ask(record: Record, params: dict[str, Any], budget: Any, resume_from: Any) -> None:
    earlier = None if resume_from is None else _trial(record, resume_from)
    spends = None if budget is None else as_budget(budget)
    _check_rung(record, spends)
    record.trials.append(Trial(len(record), params, budget=spends, resume_from=earlier))
    record.n_asked += 1
    if record.queue and resume_from is None and params == record.queue[0]:
        del record.queue[0]


def _trial(record: Record, row: Any) -> Trial:
    if not isinstance(row, int) or not 0 <= row < len(record):
        raise TrialError(f"trials 0 ... {len(record) - 1} exist, but got {row!r}.")
    return record.trials[row]


def _admit(record: Record, outcome: Outcome, c: int) -> None:
    """Notes how many constraints the run has. Raises ValueTypeError for wrong counts, as `check_counts`."""
    check_counts(outcome, record.k, c)
    record.width = record.width or width_of(outcome)


def _check_rung(record: Record, budget: float | None) -> None:
    """Raises SettingError for a budget that is no rung of a run with budgets."""
    if record.budget is not None and budget is not None and not math.isnan(budget):
        record.budget.rung_of(budget)


def _annotate(record: Record, row: Any, attributes: Any) -> None:
    trial = _trial(record, row)
    record.trials[row] = replace(trial, attributes={**trial.attributes, **as_attributes(attributes)})


def _tell(record: Record, row: Any, outcome: Outcome) -> None:
    trial = _trial(record, row)
    if trial.status is not Status.PENDING:
        raise TrialError(f"a trial is told once, but trial {row} is {trial.status.name.lower()} with {trial.value}.")
    if record.header.get("preferences"):
        check_told(row, outcome)
    outcome = with_own_budget(record.budget, row, math.nan if trial.budget is None else trial.budget, outcome)
    _admit(record, outcome, record.width)
    told = {} if outcome.has_failed else {"value": outcome.values[0], "values": outcome.values}
    record.trials[row] = replace(
        trial,
        **told,
        status=outcome.status,
        constraints=outcome.constraints or None,
        budget=trial.budget if outcome.budget is None else outcome.budget,
        attributes={**trial.attributes, **outcome.attributes},
        reason=outcome.reason,
        noise=outcome.noise,
    )


def _compare(record: Record) -> None:
    """Gives the trials that were compared their utilities."""
    from deepbore.data.bradley_terry import compared_utilities  # for these runs only: NumPy

    for pair in record.preferences:
        check_pair(pair)
    rows, utilities = compared_utilities(record.preferences)
    for row, utility in zip(rows.tolist(), utilities.tolist(), strict=True):
        trial = record.trials[row]
        if trial.status is not Status.PENDING:
            raise TrialError(f"trials that have not failed are compared, but trial {row} has.")
        record.trials[row] = replace(trial, value=utility, values=(utility,), status=Status.COMPLETE)


def _added(record: Record, names: frozenset[str], event: Event) -> Iterator[Trial]:
    """The trials of a block of earlier results; in version 0.1 each was an event with "params" and "value"."""
    if "params" in event:
        yield _earlier(record, len(record), _known(event["params"], names), event["value"])
        return
    columns: Mapping[str, Sequence[Any]] = event["columns"]
    _known(columns, names)
    constraints, budgets = event.get("constraints") or repeat(None), event.get("budgets") or repeat(None)
    noise = event.get("noise") or repeat(None)
    rows = zip(*columns.values(), strict=True)
    together = zip(rows, event["values"], constraints, budgets, noise, strict=False)
    space = record.space
    optional = {name for name in names if None not in space[name].get("choices", ())}
    for id, (row, values, bounds, budget, sd) in enumerate(together, len(record)):
        natives = zip(columns, row, strict=True)  # None where a parameter is inactive, or is one of its choices
        params = {name: value for name, value in natives if not (value is None and name in optional)}
        yield _earlier(record, id, params, values, bounds, budget, event.get("task"), sd)


def _earlier(
    record: Record,
    id: int,
    params: dict[str, Any],
    values: Any,
    constraints: Any = None,
    budget: float | None = None,
    task: str | None = None,
    noise: float | None = None,
) -> Trial:
    """One earlier result, failed where a value or one of several constraints is missing."""
    several = tuple(values) if isinstance(values, list) else (values,)
    bounds = tuple(constraints) if constraints and any(each is not None for each in constraints) else ()
    outcome = Outcome([_number(each) for each in several], [_number(each) for each in bounds])
    check_width(len(bounds), 0, record.width)
    _admit(record, outcome, 0)  # a block of results may have rows without constraints
    _check_rung(record, budget)
    told = {} if outcome.has_failed else {"value": outcome.values[0], "values": outcome.values}
    kept = outcome.constraints if all(map(math.isfinite, outcome.constraints)) else ()
    status = outcome.status
    return Trial(id, params, **told, noise=noise, status=status, constraints=kept or None, budget=budget, task=task)


def _number(value: float | None) -> float:
    return math.nan if value is None else value


def _known(params: Mapping[str, Any], names: frozenset[str]) -> dict[str, Any]:
    """A configuration of which every parameter is declared."""
    if not names.issuperset(params):
        raise ValueError(f"parameters must be among {sorted(names)}, but got {sorted(params)}.")
    return dict(params)
