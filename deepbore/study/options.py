"""`Options`: the arguments of `Study`, `minimize`, `maximize`, `Study.optimize` and `deepbore fit`, each written once.

Two records name, document and check them: `StudyOptions`, what a study is made of, and `RunOptions`, how it runs. A new
argument is a field of one of these with a line under Args, and a line in the `TypedDict` beside it, which is what type
checkers and editors read. Signatures, documentation and `deepbore fit --help-all` follow; see `explicit`.
"""

import inspect
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import timedelta
from functools import cache, wraps
from inspect import Parameter
from typing import Any, Literal, TypedDict, TypeVar, cast, get_args

from deepbore.acquisition import Acquisition
from deepbore.candidates import Candidates
from deepbore.classifiers import Classifier, PerColumn
from deepbore.compute.devices import Device, as_device
from deepbore.data.log import Log
from deepbore.data.observations import Direction
from deepbore.data.trial import Budget, Trial
from deepbore.errors import JournalError, SettingError
from deepbore.labels import Gamma, Labelling
from deepbore.loop.recipe import check_budget
from deepbore.loop.state import as_seed
from deepbore.loop.stopping import StopRule
from deepbore.names import meant
from deepbore.pruners import Pruner
from deepbore.strategies import Strategy
from deepbore.strategies.defaults import default_classifier
from deepbore.strategies.sampling import ByName, named_strategy
from deepbore.validation import above, as_path, one_of, refusal, required, seconds, whole

IfExists = Literal["error", "load"]
StudyCallback = Callable[[Any, Trial], object]  # of (study, trial)
MAX_FAILURES = 20  # without any success: where nine in ten configurations fail, this ends one run in eight
T = TypeVar("T", bound=Callable[..., Any])


# --- for type checkers -----------------------------------------------------------------------------------------------


class Parts(TypedDict, total=False):
    """The exchangeable parts of a run, which the header of a journal describes; see `StudyOptions`."""

    strategy: Strategy | ByName | None
    classifier: Classifier | None
    acquisition: Acquisition | None
    candidates: Candidates | None
    labels: Labelling | None
    gamma: Gamma | None
    n_initial: int | None
    pruner: Pruner | None


class SharedArguments(Parts, total=False):
    """The arguments that `Study` and `minimize` have in common."""

    directions: Sequence[Direction] | Mapping[str, Direction] | None
    preferences: bool
    noisy: bool
    seed: int
    journal: str | os.PathLike[str] | Log | None
    if_exists: IfExists
    budget: Budget | None
    cost_limit: float | None
    device: Device


class StudyArguments(SharedArguments, total=False):
    """The arguments of `Study`: the fields of `StudyOptions`."""

    direction: Direction | None


class RunArguments(TypedDict, total=False):
    """The arguments of `Study.optimize`: the fields of `RunOptions`."""

    timeout: float | timedelta | None
    stop_when: StopRule | Sequence[StopRule]
    max_failures: int | None
    callbacks: Sequence[StudyCallback]
    progress: bool | None
    batch_size: int
    workers: int


class Arguments(SharedArguments, RunArguments, total=False):
    """The arguments of `minimize` and `maximize`."""


# --- the records: defaults, documentation and checks -----------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class StudyOptions:
    """What a study is made of.

    Args:
        direction: "minimize" or "maximize".
        directions: one for each objective, where there are several; the result is then a `pareto_front`. A dict, as in
            {"loss": "minimize", "size": "minimize"}, names the objectives: results may be dicts by these names.
        seed: of everything random in the run; the same seed gives the same run on a CPU.
        journal: file that keeps every event, or a `deepbore.data.log.Log` of your own; None for none.
        if_exists: what happens if the journal holds a run: "error", or "load" to continue it, as `Study.load` does. It
            must then be the run that is described here: space, directions, seed, and the parts that are given.
        strategy: what proposes, a new one for each study; default: the model that classifier, acquisition and
            candidates describe, in turns with others where they help (`deepbore.strategies`). By name without any
            model: "random", "sobol" or "grid".
        classifier: the model of the labels, a new one for each study; default `KernelPLS()`, of several objectives one
            for each (`PerColumn`).
        acquisition: what is maximised; default: see `deepbore.acquisition.default_acquisition`.
        candidates: how it is maximised; default `GreedyBatch()` over `LocalSearch()`.
        labels: how outcomes become labels; default: see `deepbore.labels.default_labels`.
        gamma: proportion of good observations for the default labels, in (0, 1).
        n_initial: trials of a Sobol design, which of ten real parameters or more begins in the middle of the ranges,
            before the classifier is asked; default 10. Earlier results count among them, those of other tasks do not.
        pruner: ends trials early by what they report: `MedianPruner()`, `SuccessiveHalvingPruner()`, `PatientPruner()`
            or one of your own (`Pruner`). The objective takes the trial, reports by `trial.report(value, step)`, and
            raises `TrialPruned` where `trial.should_prune()`. See docs/reports.md.
        budget: cheap fidelities, as in `Budget("epochs", 1, 81)`: each trial has a `budget` to spend, little at first,
            and the best trials are continued with more; the objective then takes the trial, too. See docs/outcomes.md.
            None for evaluations that are all equal.
        cost_limit: what all trials of the study may cost together, > 0: seconds, or the unit in which costs are told
            (`study.tell(trial, value, cost=2.5)`, `Outcome(value, cost=2.5)`). A trial that a run evaluates has cost
            its seconds where its outcome names no cost. A run begins no further trial once it is spent; until then
            gains are weighed by what they are expected to cost, less and less as it runs out. So they are where time
            alone ends a run, by timeout= without n_trials. None for no limit.
        noisy: whether the same configuration gives another value each time: then the default model looks for noise
            in them (`KernelPLS(noisy=True)`). See also `Study.recommended`.
        device: where points, classifier and search live: "cpu", "cuda", "cuda:1", ..., or "auto".
        preferences: whether trials are compared by `prefer` and have no values: the best one has the highest utility.

    Raises:
        SettingError: for a setting outside its range.
    """

    direction: Direction | None = None
    directions: Sequence[Direction] | Mapping[str, Direction] | None = None
    seed: int = 0
    journal: str | os.PathLike[str] | Log | None = None
    if_exists: IfExists = "error"
    strategy: Strategy | ByName | None = None
    classifier: Classifier | None = None
    acquisition: Acquisition | None = None
    candidates: Candidates | None = None
    labels: Labelling | None = None
    gamma: Gamma | None = None
    n_initial: int | None = None
    pruner: Pruner | None = None
    budget: Budget | None = None
    cost_limit: float | None = None
    device: Device = "cpu"
    preferences: bool = False
    noisy: bool = False

    def __post_init__(self) -> None:
        as_device(self.device)
        as_seed(self.seed)
        if isinstance(self.journal, (str, os.PathLike)):
            object.__setattr__(self, "journal", as_path(self.journal, "a journal", JournalError))
        one_of(get_args(IfExists), if_exists=self.if_exists)
        one_of((True, False), preferences=self.preferences, noisy=self.noisy)
        if isinstance(self.strategy, str):
            object.__setattr__(self, "strategy", named_strategy(self.strategy))
        self._resolve_noisy()
        check_budget(self.budget)
        above(0, cost_limit=self.cost_limit)
        if isinstance(self.directions, str):  # as of one objective
            object.__setattr__(self, "directions", [self.directions])
        if self.direction is not None and self.directions is not None:
            raise SettingError("give either direction or directions, not both.")
        if self.preferences and self.budget is not None:
            raise SettingError("a study of preferences has no budgets. Leave one of them out.")

    @property
    def all_directions(self) -> Sequence[Direction]:
        """One direction for each objective."""
        if isinstance(self.directions, Mapping):
            return list(self.directions.values())
        if self.directions is not None:
            return self.directions
        return [self.direction or ("maximize" if self.preferences else "minimize")]

    @property
    def objectives(self) -> tuple[str, ...]:
        """The names of the objectives; empty where they have none."""
        return tuple(self.directions) if isinstance(self.directions, Mapping) else ()

    def _resolve_noisy(self) -> None:
        """Makes the model of noisy values where it is the default one. Raises SettingError beside another one."""
        if not self.noisy:
            return
        if isinstance(self.strategy, Strategy) and not self.strategy.uses_models:
            return
        if self.strategy is not None or not (self.classifier is None or _knows_noise(self.classifier)):
            given = "strategy" if self.strategy is not None else "classifier"
            raise SettingError(
                f"noisy=True is for the default model, but {given} is given. Leave one of them out, or give the model "
                "KernelPLS(noisy=True)."
            )
        if self.classifier is None:
            model = default_classifier(len(self.all_directions), self.labels, noisy=True)
            object.__setattr__(self, "classifier", model)

    @property
    def parts(self) -> Parts:
        """The parts of the run, None for defaults."""
        return cast(Parts, {name: getattr(self, name) for name in Parts.__annotations__})


def _knows_noise(classifier: Classifier) -> bool:
    """Whether a classifier, or each of its columns, knows that values are noisy."""
    columns = classifier.parts if isinstance(classifier, PerColumn) else [classifier]
    return all(getattr(each, "noisy", False) for each in columns)


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """How a run proceeds, when it ends, and which functions are called after its trials.

    Args:
        timeout: seconds, or a `timedelta`, the initial design included, after which no further trial begins; trials
            that run are waited for.
        stop_when: `NoImprovement(trials=20)`, `TargetReached(value)`, `ExpectedImprovementBelow(share)`, or a list.
        max_failures: if the first so many evaluations have all failed, the run ends with an error; None for never.
        callbacks: functions of (study, trial), called after each trial in this thread, under several ranks on the
            first; their results are ignored. `study.stop()` ends the run. An exception ends it and is raised.
        progress: whether to show a bar; None for: in a terminal and a notebook.
        batch_size: q, trials proposed in one iteration; more where more workers are free.
        workers: how many trials are evaluated at the same time, each in a process of its own if there are several:
            short for `ProcessEvaluator(objective, workers)`, which has further settings.

    Raises:
        SettingError: for a setting outside its range.
    """

    timeout: float | timedelta | None = None
    stop_when: StopRule | Sequence[StopRule] = ()
    max_failures: int | None = MAX_FAILURES
    callbacks: Sequence[StudyCallback] = ()
    progress: bool | None = None
    batch_size: int = 1
    workers: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "timeout", seconds(self.timeout))
        above(0, timeout=self.timeout)
        required(batch_size=self.batch_size, workers=self.workers)
        whole(1, max_failures=self.max_failures, batch_size=self.batch_size, workers=self.workers)
        one_of((True, False, None), progress=self.progress)
        _check_callbacks(self.callbacks)


@dataclass(frozen=True, kw_only=True)
class Options(RunOptions, StudyOptions):
    """All options of a study and of its run, as `minimize` and `deepbore fit` take them."""

    def __post_init__(self) -> None:
        StudyOptions.__post_init__(self)
        RunOptions.__post_init__(self)

    @property
    def of_run(self) -> RunArguments:
        """The arguments of `Study.optimize` among these."""
        return cast(RunArguments, {name: getattr(self, name) for name in RunArguments.__annotations__})


def _check_callbacks(callbacks: Sequence[StudyCallback]) -> None:
    """Raises SettingError for anything but a list of functions of (study, trial)."""
    if not isinstance(callbacks, (list, tuple)) or not all(callable(each) for each in callbacks):
        raise SettingError(f"callbacks must be a list of functions of (study, trial), but got {callbacks!r:.100}.")
    for each in callbacks:
        if says := refusal(each, None, None):
            raise SettingError(f"callbacks must be functions of (study, trial), but {each!r:.100} is none: {says}.")


def check_parts(parts: Mapping[str, Any], refused: str) -> None:
    """Raises SettingError, beginning with the text `refused` about the {unknown}, for names that are no `Parts`."""
    if unknown := parts.keys() - Parts.__annotations__.keys():
        says = refused.format(unknown=", ".join(sorted(unknown)))
        raise SettingError(f"{says}; other settings may be {', '.join(Parts.__annotations__)}.")


# --- for signatures and docstrings -----------------------------------------------------------------------------------


def explicit(target: T) -> T:
    """Decorator of a function, or class, that takes `**options: Unpack[...]`: has `help` and editors see each option.

    In its signature the fields of `Options` that it takes stand in place of `**options`, with their defaults, and in
    its docstring their entries in place of that of "options". A name that is no option is refused with the nearest one.
    """
    function: Callable[..., Any] = target.__init__ if isinstance(target, type) else target  # type: ignore[misc]
    signature = inspect.signature(function)
    named = {name: each for name, each in signature.parameters.items() if name != "options"}
    (arguments,) = signature.parameters["options"].annotation.__args__
    taken = [each for each in fields(Options) if each.name in arguments.__annotations__]
    listed = [Parameter(e.name, Parameter.KEYWORD_ONLY, default=e.default, annotation=e.type) for e in taken]

    @wraps(function)
    def call(*args: Any, **given: Any) -> Any:
        if "direction" in given and "direction" not in arguments.__annotations__:
            raise TypeError(
                f"{target.__name__}() has its direction in its name, but got direction={given['direction']!r:.100}. "
                "Call minimize(...) or maximize(...); a study takes it: Study(space, direction=...)."
            )
        if unknown := given.keys() - named.keys() - arguments.__annotations__.keys():
            said = meant(min(unknown), [each.name for each in taken])
            raise TypeError(f"{target.__name__}() got an unexpected keyword argument {said}")
        return function(*args, **given)

    call.__signature__ = signature.replace(parameters=[*named.values(), *listed])  # type: ignore[attr-defined]
    entries = "".join(_entries()[each.name] for each in taken)
    text = _entry("options").sub(lambda _: entries, inspect.cleandoc(target.__doc__ or "") + "\n")
    if isinstance(target, type):
        target.__init__, target.__doc__ = call, text  # type: ignore[misc]
        return target
    call.__doc__ = text
    return cast(T, call)


@cache
def _entries() -> dict[str, str]:
    """The entry of each option under Args in the docstrings of the records, indented by four spaces."""
    texts = [inspect.cleandoc(record.__doc__ or "") + "\n" for record in (StudyOptions, RunOptions)]
    return {entry[1]: entry[0] for text in texts for entry in _entry(r"\w+").finditer(text)}


def _entry(name: str) -> re.Pattern[str]:
    """The pattern of an entry in a section of a docstring, with its further lines."""
    return re.compile(rf"^    ({name}): .*\n(?:     .*\n)*", re.MULTILINE)
