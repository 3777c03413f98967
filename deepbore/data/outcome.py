"""`Outcome`: the result of an evaluation, and checks of it. Light to import: worker processes load it."""

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, SupportsFloat

from deepbore.data.reports import as_step
from deepbore.data.trial import ROUNDING, Budget, Status, Trial
from deepbore.errors import TrialError, ValueTypeError
from deepbore.text import is_writable, writable

__all__ = [
    "LostWorker",
    "Mistake",
    "Outcome",
    "Status",
    "WrongReturn",
    "as_attributes",
    "as_budget",
    "as_cost",
    "as_noise",
    "as_number",
    "as_outcome",
    "as_reports",
    "attributes_after",
    "by_objective",
    "check_comparable",
    "check_correctable",
    "check_corrected",
    "check_counts",
    "check_pair",
    "check_told",
    "check_width",
    "check_withdrawable",
    "corrected_outcome",
    "refused_values",
    "report_columns",
    "reports_of",
    "told_twice",
    "width_of",
    "with_former",
    "with_own_budget",
]

BOOLEANS = ("bool", "torch.bool")  # types of arrays, by name
OF_AN_OUTCOME = ("suspicious", "traceback")  # attributes that are about an outcome, and not about the configuration
# in JSON an escaped backslash or a pair of surrogates, which are a character (1); or a lone surrogate
ESCAPED = re.compile(r"(\\\\|\\ud[89ab][0-9a-f]{2}\\ud[c-f][0-9a-f]{2})|\\ud[89a-f][0-9a-f]{2}")
LONGEST_REASON = 2000  # characters: whole logs would swell the journal


@dataclass(frozen=True)
class Outcome:
    """The result of evaluating a configuration; a plain number is short for `Outcome(number)`.

    Args:
        values: the objective value, or k >= 1 of them, in the user's sign; or name -> value in a study that names its
            objectives. NaN or an infinite one makes a failure.
        constraints: black-box constraints, feasible where all are <= 0. NaN or an infinite one makes a failure.
        budget: what was spent on it, in the study's unit, finite; None where there are no budgets.
        status: complete, failed or pruned. A pruned trial has no value, but is graded by its reports.
        reason: why there is no value, at most 2000 characters; None if there is one.
        attributes: further data by name: plain JSON data, of which a copy is kept. Tuples become lists,
            and NaN and infinite numbers, which JSON has not, become None.
        noise: standard deviation of the value, in its unit, >= 0 and finite: what would be added to it, up or down, if
            it were measured again. Of one objective only. None if unknown.
        reports: values while it ran, by step: the learning curve. Of one objective only. What the trial has reported
            by itself (`Trial.report`) need not be given.
        cost: what the evaluation has cost, whether it has a value or not, >= 0 and finite: seconds, or any other unit
            that is the same for all trials. None if unknown.

    Raises:
        ValueTypeError: for values, constraints, a budget, a noise, a cost or reports that are no such numbers, or
            attributes that JSON can't carry.

    Example:
        >>> Outcome(0.25, constraints=[-1.0, 0.5]).is_feasible
        False
        >>> Outcome([1.0, float("nan")]).reason
        'its value is [1.0, nan]'
    """

    values: Any = ()
    constraints: Any = ()
    budget: float | None = None
    status: Status = Status.COMPLETE
    reason: str | None = None
    attributes: Mapping[str, Any] = field(default_factory=dict)
    noise: float | None = None
    reports: Mapping[float, float] = field(default_factory=dict, repr=False)
    names: tuple[str, ...] = field(default=(), repr=False)  # of the values, where they came by name
    cost: float | None = None

    def __post_init__(self) -> None:
        if isinstance(self.values, Mapping):
            object.__setattr__(self, "names", tuple(map(str, self.values)))
            object.__setattr__(self, "values", tuple(self.values.values()))
        object.__setattr__(self, "values", _numbers(self.values, "an objective value"))
        object.__setattr__(self, "constraints", _numbers(self.constraints, "a constraint"))
        object.__setattr__(self, "budget", None if self.budget is None else as_budget(self.budget))
        object.__setattr__(self, "noise", None if self.noise is None else as_noise(self.noise))
        object.__setattr__(self, "cost", None if self.cost is None else as_cost(self.cost))
        if self.reports:
            object.__setattr__(self, "reports", as_reports(self.reports))
        if self.status not in (Status.COMPLETE, Status.FAILED, Status.PRUNED):
            raise ValueTypeError(
                f"a status must be Status.COMPLETE, FAILED or PRUNED, but got {self.status!r:.100}. "
                "What is still to be told has no outcome."
            )
        if self.status is Status.PRUNED and (self.values or self.constraints):
            raise ValueTypeError(
                f"a pruned trial has no values, but got {self.values or self.constraints}. Report the value at its "
                "last step, or leave out the status: then it is complete."
            )
        if not isinstance(self.reason, (str, type(None))):
            raise ValueTypeError(f"a reason must be a text, but got {_shown(self.reason)}.")
        if self.attributes:
            object.__setattr__(self, "attributes", as_attributes(self.attributes))
        if self.status == Status.COMPLETE and (missing := self._missing()):
            object.__setattr__(self, "status", Status.FAILED)
            object.__setattr__(self, "reason", self.reason or missing)
        if self.reason is not None and not is_writable(self.reason):
            object.__setattr__(self, "reason", writable(self.reason))
        if self.reason is not None and len(self.reason) > LONGEST_REASON:
            object.__setattr__(self, "reason", f"{self.reason[: LONGEST_REASON - 3]}...")

    def _missing(self) -> str:
        """The reason of a failure by missing or infinite numbers; empty if there is none."""
        if not (self.values and all(map(math.isfinite, self.values))):
            return f"its value is {self.values[0] if len(self.values) == 1 else list(self.values)}"
        if not all(map(math.isfinite, self.constraints)):
            return f"its constraints are {list(self.constraints)}"
        return ""

    @classmethod
    def failure(cls, reason: str | None = None) -> "Outcome":
        """An evaluation without a value."""
        return cls(status=Status.FAILED, reason=reason)

    @classmethod
    def pruned(cls, reason: str | None = None) -> "Outcome":
        """An evaluation that was ended early, as not worth going on."""
        return cls(status=Status.PRUNED, reason=reason)

    @property
    def has_failed(self) -> bool:
        """Whether the evaluation has failed."""
        return self.status == Status.FAILED

    @property
    def has_value(self) -> bool:
        """Whether the evaluation has come to its end."""
        return self.status == Status.COMPLETE

    @property
    def is_feasible(self) -> bool:
        """Whether there is a value and no constraint is violated."""
        return self.has_value and all(constraint <= 0 for constraint in self.constraints)


class WrongReturn(Outcome):
    """A failure because the objective has returned what is no outcome of the run: a mistake in the program, likely."""


@dataclass(frozen=True)
class Mistake(Outcome):
    """A failure by a mistake in the program: it says nothing about the configuration, so the trial stays pending.

    Args:
        missing: names that the program has looked for: a mistake only if one of them is a parameter that is inactive
            in the configuration; empty for other mistakes.
    """

    missing: tuple[str, ...] = ()


class LostWorker(Outcome):
    """A failure because the worker died: of the trial, or of the Ctrl-C that has reached the worker, too."""


def as_outcome(returned: Any) -> Outcome:
    """The return value of an objective as an outcome.

    Raises:
        ValueTypeError: for anything but an outcome, a number, or a sequence of numbers.
    """
    if isinstance(returned, Outcome):
        return returned
    outcome = Outcome(returned)
    if not outcome.values:
        raise ValueTypeError(f"an outcome has a value, but got {_shown(returned)}. Tell failed=True if there is none.")
    return outcome


def by_objective(outcome: Outcome, objectives: Sequence[str]) -> Outcome:
    """An outcome with its values in the order of the objectives; one without names as it is.

    Raises:
        ValueTypeError: for other names than those of the objectives.
    """
    if not outcome.names:
        return outcome
    if sorted(outcome.names) != sorted(objectives):
        known = f"are {', '.join(objectives)}" if objectives else 'have no names: give directions={"loss": "minimize"}'
        raise ValueTypeError(f"values came by the names {', '.join(outcome.names)}, but the objectives {known}.")
    values = dict(zip(outcome.names, outcome.values, strict=True))
    return replace(outcome, values=tuple(values[name] for name in objectives), names=())


def as_number(value: Any, what: str = "an objective value") -> float:
    """A number as a float.

    Raises:
        ValueTypeError: for anything but a real number that a float can hold.
    """
    if isinstance(value, (str, bytes, bool, type(None))) or str(getattr(value, "dtype", "")) in BOOLEANS:
        raise ValueTypeError(f"{what} must be a number, but got {value!r:.100}. Tell failed=True if there is none.")
    try:
        if "complex" in str(getattr(value, "dtype", "")):  # of which NumPy would give the real part
            raise TypeError
        return float(value)
    except (TypeError, ValueError, OverflowError, RuntimeError):  # the last of torch, for a tensor of several
        raise ValueTypeError(f"{what} must be one number that a float can hold, but got {_shown(value)}.") from None


def as_budget(value: Any) -> float:
    """A budget as a float.

    Raises:
        ValueTypeError: for anything but a finite number.
    """
    budget = as_number(value, "a budget")
    if not math.isfinite(budget):
        raise ValueTypeError(f"a budget must be a finite number, but got {budget}. Leave it out if there is none.")
    return budget


def as_noise(value: Any) -> float:
    """A standard deviation as a float.

    Raises:
        ValueTypeError: for anything but a finite number >= 0.
    """
    return _not_negative(value, "a noise", "is a standard deviation,")


def as_cost(value: Any) -> float:
    """A cost as a float.

    Raises:
        ValueTypeError: for anything but a finite number >= 0.
    """
    return _not_negative(value, "a cost", "must be")


def _not_negative(value: Any, what: str, must: str) -> float:
    """A finite number >= 0 as a float; the message of its error begins with what it is, and what it must be."""
    number = as_number(value, what)
    if not (math.isfinite(number) and number >= 0):
        raise ValueTypeError(f"{what} {must} finite and >= 0, but got {number}. Leave it out if it is unknown.")
    return number


def _numbers(values: SupportsFloat | Sequence[SupportsFloat], what: str) -> tuple[float, ...]:
    if isinstance(values, (list, tuple)) or getattr(values, "ndim", 0) == 1:
        return tuple(as_number(value, what) for value in values)  # type: ignore[union-attr]  # it is a sequence
    return (as_number(values, what),)


def as_attributes(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of attributes as a journal gives them back.

    Raises:
        ValueTypeError: for anything but plain JSON data by name.
    """
    if not isinstance(attributes, Mapping) or not all(isinstance(name, str) for name in attributes):
        raise ValueTypeError(f"attributes must be plain JSON data by name, but got {_shown(attributes)}.")
    try:
        text = json.dumps(dict(attributes), default=_unwrapped)
        if "\\ud" in text:  # perhaps half of a character
            text = ESCAPED.sub(lambda found: found[0] if found[1] else f"\\\\{found[0][1:]}", text)
        plain: dict[str, Any] = json.loads(text, parse_constant=_none)
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueTypeError(
            f"attributes must be plain JSON data by name, but got {_shown(attributes)}: {error}."
        ) from None
    return plain


def as_reports(reports: Any) -> dict[float, float]:
    """Reported values by ascending step; NaN for those that are not finite.

    Raises:
        ValueTypeError: for anything but numbers by step.
    """
    if not isinstance(reports, Mapping):
        raise ValueTypeError(f"reports must be values by step, as in {{1: 0.5, 2: 0.4}}, but got {_shown(reports)}.")
    found = {as_step(step): as_number(value, "a reported value") for step, value in reports.items()}
    return {step: value if math.isfinite(value) else math.nan for step, value in sorted(found.items())}


def reports_of(columns: Mapping[str, Any]) -> dict[float, float]:
    """Reported values by step, from two columns; null stands for what is not finite.

    Raises:
        LookupError, TypeError, ValueError: for anything else.
    """
    values = [math.nan if value is None else value for value in columns["values"]]
    reports = as_reports(dict(zip(columns["steps"], values, strict=True)))
    if list(reports) != columns["steps"]:
        raise ValueError(f"steps must ascend, but are {columns['steps']!r:.100}.")
    return reports


def report_columns(reports: Mapping[float, float]) -> dict[str, list[Any]]:
    """Reported values as two columns; null stands for what is not finite."""
    values = [value if math.isfinite(value) else None for value in reports.values()]
    return {"steps": list(reports), "values": values}


def _none(_constant: str) -> None:
    """What stands for NaN and the infinite numbers."""


def _unwrapped(value: Any) -> Any:
    """The plain numbers in an array, a tensor or a scalar of NumPy's."""
    if not hasattr(value, "tolist"):
        raise TypeError(f"{type(value).__name__} is no JSON")
    return value.tolist()


def _shown(value: Any) -> str:
    """Any value as an error message shows it."""
    try:
        return f"{value!r:.100}"
    except Exception:  # such as an integer of more digits than Python writes
        return f"a {type(value).__name__}"


def check_counts(outcome: Outcome, k: int, c: int) -> None:
    """Raises ValueTypeError unless an outcome has k values, and c constraints; any number of these while c is 0."""
    if outcome.has_value and len(outcome.values) != k:
        raise ValueTypeError(
            f"the number of objective values must be {k}, as that of directions, but got {outcome.values}."
        )
    if k > 1 and (outcome.status is Status.PRUNED or outcome.reports):
        raise ValueTypeError(
            f"what is reported belongs to one objective, but there are {k}, so trials report nothing and are not "
            "pruned. Return the values, or raise another exception for a failure."
        )
    if outcome.noise is not None and k > 1:
        raise ValueTypeError(
            f"a noise belongs to one value, but the outcome has {k} and noise={outcome.noise}. Leave it out."
        )
    if outcome.constraints or outcome.has_value:
        check_width(len(outcome.constraints), c, c)


def check_width(width: int, least: int, c: int) -> None:
    """Raises ValueTypeError for fewer constraints than the least, or another number than c, but for none."""
    if width < least or (c and width not in (0, c)):
        raise ValueTypeError(
            f"the number of constraints must be {c}, as in the first outcome, or earlier result, that had any, but "
            f"got {width}. Give Outcome(value, constraints=[...])."
        )


def width_of(outcome: Outcome) -> int:
    """The number of constraints that an outcome gives its row; 0 for none, or where one is not finite."""
    return len(outcome.constraints) if all(map(math.isfinite, outcome.constraints)) else 0


def with_own_budget(budget: Budget | None, row: int, own: float, outcome: Outcome) -> Outcome:
    """The outcome, where there are rungs with the trial's own budget in place of the number that it is told by.

    Raises:
        ValueTypeError: for an outcome of another budget.
    """
    if budget is None or outcome.budget is None:
        return outcome
    if not math.isclose(outcome.budget, own, rel_tol=ROUNDING):
        raise ValueTypeError(
            f"trial {row} has a budget of {own:g} {budget.unit}, but its outcome is of {outcome.budget:g}. "
            "Leave the outcome's budget out; what it has cost besides is given by cost=."
        )
    return replace(outcome, budget=own)


def check_told(row: int, outcome: Outcome) -> None:
    """Raises ValueTypeError unless an outcome says nothing in a run of preferences but that a trial has failed."""
    if not outcome.has_failed:
        raise refused_values(f"trial {row} was told {outcome.values or 'that it is pruned'}")
    for name, given in {"constraints": outcome.constraints, "noise": outcome.noise}.items():
        if given not in ((), None):
            raise refused_values(f"trial {row} was told {name}={given}")


def refused_values(what: str) -> ValueTypeError:
    """The error of a run of preferences that is told values, or what goes with them."""
    return ValueTypeError(
        f"in a study of preferences trials are compared and have no values of their own, but {what}. Call "
        "prefer(better, worse), or tell(trial, failed=True) if a trial can't be shown; for values make a study without "
        "preferences=True."
    )


def check_pair(better: int, worse: int) -> None:
    """Raises TrialError for a trial that is compared with itself."""
    if better == worse:
        raise TrialError(f"two trials are compared, but got trial {better} twice. Name another one.")


def told_twice(trial: Trial) -> TrialError:
    """The error of a trial that is told, but is not pending."""
    if trial.status is Status.WITHDRAWN:
        return TrialError(
            f"trial {trial.id} was withdrawn{_because(trial.reason)}, so nothing is told of it. A result of its "
            "configuration that counts is added by add(trial.params, value)."
        )
    return TrialError(
        f"a trial is told once, but trial {trial.id} is {trial.status} with {trial.value}. If that was wrong, call "
        "correct(trial, value), or withdraw(trial)."
    )


def _because(reason: str | None) -> str:
    return f" ({reason:.200})" if reason else ""


def check_comparable(row: int, status: Status) -> None:
    """Raises TrialError for a trial that can't be compared."""
    if status in (Status.FAILED, Status.WITHDRAWN):
        what = "has failed" if status is Status.FAILED else "was withdrawn"
        raise TrialError(f"trials that have not failed are compared, but trial {row} {what}. Name another one.")


# --- withdrawn and corrected -----------------------------------------------------------------------------------------


def check_withdrawable(trial: Trial) -> None:
    """Raises TrialError for a trial that was withdrawn before."""
    if trial.status is Status.WITHDRAWN:
        raise TrialError(
            f"a trial is withdrawn once, but trial {trial.id} was withdrawn before{_because(trial.reason)}. It stays "
            "in the history; leave it out."
        )


def check_correctable(trial: Trial, by_preference: bool) -> None:
    """Raises an error for a trial that has no outcome to correct."""
    if by_preference:
        raise refused_values(
            f"trial {trial.id} was corrected (to change your mind, compare the two the other way round, or drop all of "
            "its comparisons by withdraw(trial))"
        )
    if trial.status is Status.PENDING:
        raise TrialError(f"an outcome is corrected once it was told, but trial {trial.id} is pending. Call tell.")
    if trial.status is Status.WITHDRAWN:
        raise TrialError(
            f"what counts is corrected, but trial {trial.id} was withdrawn{_because(trial.reason)}. A result of its "
            "configuration that counts is added by add(trial.params, value)."
        )


def corrected_outcome(
    known: Outcome,
    value: SupportsFloat | Sequence[SupportsFloat] | Outcome | None = None,
    *,
    constraints: Sequence[SupportsFloat] | None = None,
    failed: bool = False,
    noise: SupportsFloat | None = None,
) -> Outcome:
    """The outcome in place of a known one, of which all stays that is not given; an `Outcome` replaces all of it.

    Raises:
        ValueTypeError: for what is no such number, nothing at all, or what can't go together.
    """
    rest = {"constraints": constraints, "noise": noise}
    given = [name for name, each in rest.items() if each is not None]
    if (failed or isinstance(value, Outcome)) and (given or (failed and value is not None)):
        what = "failed=True" if failed else f"{value!r:.100}"
        others = ", ".join([*(["a value"] if failed and value is not None else []), *given])
        raise ValueTypeError(f"{what} is all of an outcome, but came with {others}. Give one of them.")
    if failed:
        return Outcome.failure()
    if isinstance(value, Outcome):
        return value
    if value is None and not given:
        raise ValueTypeError(
            "a correction says what is right, but got nothing. Give a value, constraints=, noise= or failed=True; to "
            "take a trial back call withdraw(trial)."
        )
    if value is None and not known.has_value:
        ended = "has failed" if known.has_failed else "was pruned"
        raise ValueTypeError(
            f"the trial {ended}, so there is no value that {' and '.join(given)} could go with. Give the value, too."
        )
    kept = known.constraints if constraints is None else constraints
    deviation = known.noise if noise is None else as_noise(noise)
    outcome = Outcome(known.values if value is None else value, kept, noise=deviation)
    return as_outcome(outcome.values) if not outcome.values else outcome  # which says that there must be one


def attributes_after(known: Mapping[str, Any], corrected: Outcome) -> dict[str, Any]:
    """The attributes of a trial after a correction, without those that say something of its former outcome."""
    return {**{name: each for name, each in known.items() if name not in OF_AN_OUTCOME}, **corrected.attributes}


def check_corrected(known: Outcome, outcome: Outcome, k: int, c: int) -> None:
    """Raises ValueTypeError as `check_counts` does; a trial that had no constraints needs none."""
    had_none = known.has_value and not (known.constraints or outcome.constraints)
    check_counts(outcome, k, 0 if had_none else c)


def with_former(trial: Trial, outcomes: Sequence[Outcome]) -> Trial:
    """The record of a trial with what it was before, by the outcomes that no longer count."""
    former = (
        replace(
            trial,
            value=outcome.values[0] if outcome.values else None,
            status=outcome.status,
            values=outcome.values or None,
            constraints=outcome.constraints or None,
            reason=outcome.reason,
            noise=outcome.noise,
        )
        for outcome in outcomes
    )
    return replace(trial, former=tuple(former)) if outcomes else trial
