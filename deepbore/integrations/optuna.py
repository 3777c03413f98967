"""`DeepBoreSampler`: deepbore inside Optuna, with its storages, pruners and dashboard."""

import math
import secrets
import threading
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import torch

from deepbore.acquisition import Acquisition
from deepbore.candidates import Candidates
from deepbore.candidates.selection import largest_possible_batch
from deepbore.classifiers import Classifier
from deepbore.compute.devices import stream_seed
from deepbore.data.observations import Direction
from deepbore.data.outcome import Outcome, as_number
from deepbore.data.trial import Status
from deepbore.errors import DeepBoreError, MissingPackage, PointError, SettingError, SpaceError, ValueTypeError
from deepbore.labels.threshold import Gamma, checked_gamma
from deepbore.loop.state import as_seed
from deepbore.space import Categorical, Condition, Integer, Parameter, Params, Real, SearchSpace
from deepbore.space.parameters.priors import UNIFORM
from deepbore.space.search_space import as_space
from deepbore.study import Study
from deepbore.study.study import reseed
from deepbore.validation import whole

try:
    from optuna import Study as OptunaStudy, Trial as OptunaTrial, TrialPruned
    from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
    from optuna.samplers import BaseSampler, RandomSampler
    from optuna.trial import FrozenTrial, TrialState
except ImportError:
    raise MissingPackage("DeepBoreSampler needs Optuna: pip install 'deepbore[optuna]'.") from None

Distributions = dict[str, BaseDistribution]
PARENT_LEVELS = 32  # the most levels of a parameter that others may depend on
PROPOSED = "deepbore:proposed"  # system attribute of a trial: what was proposed for it
CONSTRAINTS = "constraints"  # system attribute in which Optuna keeps the constraints of a trial
RETRIES = 4  # further proposals if another process proposes the same at the same moment

# --- the search space, read off the trials ---------------------------------------------------------------------------


class SeenTrials:
    """The search space of an Optuna study, inferred from its finished trials: Optuna declares parameters in a trial.

    Left out, as in Optuna's `IntersectionSearchSpace`, is a parameter whose distribution differs between trials or
    holds a single value, and one that has no counterpart in deepbore, such as 2^62 whole numbers.

    A parameter that is absent from some complete trials is conditional on another one: a parameter with levels that is
    present whenever it is, and whose values separate the trials with it from those without. Of several such parents the
    one with the fewest levels is taken, and levels not seen yet count as activating. Without a parent the parameter is
    unconditional. Failed and pruned trials may have ended before they asked for all parameters, so they are ignored
    here.
    """

    def __init__(self) -> None:
        self._distributions: dict[str, BaseDistribution | None] = {}  # None where they differ
        self._branches: dict[frozenset[str], dict[str, set[float]]] = {}  # which parameters -> levels of each

    def add(self, trial: FrozenTrial) -> None:
        """Adds a finished trial."""
        for name, distribution in trial.distributions.items():
            if self._distributions.setdefault(name, distribution) != distribution or not is_possible(distribution):
                self._distributions[name] = None
        if trial.state != TrialState.COMPLETE:
            return
        seen = self._branches.setdefault(frozenset(trial.distributions), {})
        for name, distribution in trial.distributions.items():
            if is_possible(distribution) and 1 < len(levels(distribution)) <= PARENT_LEVELS:
                seen.setdefault(name, set()).add(to_native(distribution, trial.params[name]))

    @property
    def distributions(self) -> Distributions:
        """The distributions of the parameters that are sampled jointly, by name."""
        return {name: d for name, d in sorted(self._distributions.items()) if d is not None and not d.single()}

    def space(self, distributions: Mapping[str, BaseDistribution]) -> SearchSpace:
        """The search space of these parameters, with the conditions inferred from the trials.

        Args:
            distributions: name -> distribution, at least one.
        """
        return SearchSpace(
            {name: parameter(d, self._condition(name, distributions)) for name, d in distributions.items()}
        )

    def _condition(self, name: str, distributions: Mapping[str, BaseDistribution]) -> Condition | None:
        """The condition of a parameter; None if it is always present or no parent explains its absence."""
        having = [branch for branch in self._branches if name in branch]
        lacking = [branch for branch in self._branches if name not in branch]
        if not having or not lacking:
            return None
        for parent in sorted(distributions, key=lambda parent: (len(levels(distributions[parent])), parent)):
            wider = [branch for branch in lacking if parent in branch]
            if not wider or not all(parent in branch for branch in having):
                continue  # a parent occurs in more branches than its child, which excludes circles
            active, idle = self._seen_levels(parent, having), self._seen_levels(parent, wider)
            if active and idle and not active & idle:
                return Condition(parent, [level for level in levels(distributions[parent]) if level not in idle])
        return None

    def _seen_levels(self, name: str, branches: Iterable[frozenset[str]]) -> set[float]:
        return set().union(*(self._branches[branch].get(name, set()) for branch in branches))

    def natives(self, trial: FrozenTrial, distributions: Mapping[str, BaseDistribution]) -> Params:
        """The known native values of a trial: those it has asked for, else those proposed for it."""
        proposed = trial.system_attrs.get(PROPOSED, {})
        asked = {name: to_native(d, trial.params[name]) for name, d in trial.distributions.items()}
        return {name: value for name, value in {**proposed, **asked}.items() if name in distributions}

    def to_optuna(self, natives: Params, distributions: Mapping[str, BaseDistribution]) -> Params:
        """Optuna's values of native ones."""
        return {name: to_optuna(distributions[name], native) for name, native in natives.items()}


class DeclaredSpace(SeenTrials):
    """A search space that is known, in place of one inferred from trials. Optuna's values are its native ones.

    Trials outside the space, or which ended before they had all parameters, are ignored.

    Args:
        space: as declared.

    Raises:
        SpaceError: naming it, for a parameter without counterpart in Optuna.
    """

    def __init__(self, space: SearchSpace):
        self.declared = space
        free = {name: each for name, each in space.parameters.items() if name not in space.fixed}
        self._named = {name: distribution_of(name, each) for name, each in free.items()}

    def add(self, trial: FrozenTrial) -> None:
        """Does nothing."""

    @property
    def distributions(self) -> Distributions:
        """The distributions of the parameters that are not fixed, by name."""
        return self._named

    def space(self, distributions: Mapping[str, BaseDistribution]) -> SearchSpace:
        """The space as declared."""
        return self.declared

    def natives(self, trial: FrozenTrial, distributions: Mapping[str, BaseDistribution]) -> Params:
        """The values of a trial that has all of them; else none."""
        both = {**self.declared.fixed, **trial.system_attrs.get(PROPOSED, {}), **trial.params}
        try:
            known = {name: both[name] for name in self.declared.names if name in both}
            params = self.declared.points.structure.without_unused(known)
            self.declared.encode([params])
        except DeepBoreError:
            return {}
        return params

    def to_optuna(self, natives: Params, distributions: Mapping[str, BaseDistribution]) -> Params:
        """The values of those that are not fixed."""
        return {name: value for name, value in natives.items() if name in distributions}


# --- spaces, read and written ---------------------------------------------------------------------------------------


def from_optuna(space: Mapping[str, BaseDistribution] | OptunaStudy) -> SearchSpace:
    """The space of Optuna's distributions by name, or of a study: those of its finished trials.

    Values are equal in both: `trial.params` of one can be enqueued in the other. The conditions of a study, which
    Optuna does not declare, are inferred from which trials have which parameters (see `SeenTrials`).

    Args:
        space: name -> distribution; or a study with finished trials.

    Raises:
        SpaceError: naming it, for a distribution without counterpart, such as one of a single value, or one that
            differs between trials.

    Example:
        >>> from_optuna({"lr": FloatDistribution(1e-5, 1e-1, log=True), "n": IntDistribution(8, 64, step=8)})
        SearchSpace({'lr': Real(1e-05, 0.1, log=True), 'n': Integer(8, 64, step=8)})
    """
    if isinstance(space, Mapping):
        return SearchSpace({name: same_parameter(name, each) for name, each in space.items()})
    seen, named = SeenTrials(), dict[str, BaseDistribution]()
    for trial in space.get_trials(deepcopy=False):
        if trial.state.is_finished():
            seen.add(trial)
            named.update(trial.distributions)
    if missing := sorted(named.keys() - seen.distributions.keys()):
        raise SpaceError(
            f"{missing} have no counterpart in deepbore: one value, or a range that differs between trials."
        )
    inferred = seen.space(seen.distributions)
    return SearchSpace(
        {
            name: same_parameter(
                name, seen.distributions[name], _translated(inferred.parameters[name], seen.distributions)
            )
            for name in named
        }
    )


def _translated(inferred: Parameter, distributions: Distributions) -> list[Condition]:
    """Conditions on levels of distributions as conditions on their values."""
    return [
        Condition(each.parent, [to_optuna(distributions[each.parent], level) for level in each.values])
        for each in inferred.conditions
    ]


def same_parameter(name: str, distribution: BaseDistribution, when: Sequence[Condition] = ()) -> Parameter:
    """The parameter of deepbore with the values of a distribution.

    Raises:
        SpaceError: naming it, for one without counterpart.
    """
    d = distribution
    about: dict[str, Any] = {"when": list(when) or None}
    try:
        if isinstance(d, CategoricalDistribution):
            return Categorical(d.choices, **about)
        if isinstance(d, IntDistribution):
            return Integer(d.low, d.high, log=d.log, step=None if d.step == 1 else d.step, **about)
        return Real(d.low, d.high, log=d.log, step=d.step, **about)
    except SpaceError as error:
        raise SpaceError(f"{name!r} has no counterpart in deepbore: {error}") from None


def to_distributions(space: SearchSpace) -> Distributions:
    """Optuna's distributions of a space, by name, as for `create_trial` and `study.ask(fixed_distributions)`.

    Choices that are objects have their names in them. Distributions have no priors: these are left out with a warning.

    Raises:
        SpaceError: naming it, for what Optuna's distributions can't say: conditions, constraints, fixed parameters and
            parameters of your own type. `suggest` asks for conditional parameters where they are active.
    """
    conditional = [name for name, parameter in space.parameters.items() if parameter.conditions]
    if conditional or space.points.is_restricted:
        what = conditional or [str(each) for each in space.constraints] or list(space.fixed)
        raise SpaceError(
            f"Optuna's distributions have no conditions, constraints or fixed values, but the space has {what}. Call "
            "deepbore.integrations.optuna.suggest(trial, space) in the objective."
        )
    if believed := [name for name, parameter in space.parameters.items() if parameter.prior not in (None, UNIFORM)]:
        warnings.warn(
            f"Optuna's distributions have no priors: those of {believed} are left out. DeepBoreSampler(space=space) "
            "keeps them; another sampler can be given the likeliest values, by study.enqueue_trial(params).",
            stacklevel=2,
        )
    return {name: distribution_of(name, parameter) for name, parameter in space.parameters.items()}


def distribution_of(name: str, parameter: Parameter) -> BaseDistribution:
    """Optuna's distribution with the values of a parameter. Raises SpaceError, naming it, for a type of your own."""
    scale, step = parameter.scale, getattr(parameter, "step", None)
    if scale is None and isinstance(names := getattr(parameter, "names", None), tuple):
        return CategoricalDistribution(names)
    if scale is None or parameter.kind not in ("real", "integer"):
        raise SpaceError(f"{name!r}, a {type(parameter).__name__}, has no counterpart in Optuna.")
    if parameter.kind == "integer":
        return IntDistribution(int(scale.low), int(scale.high), log=scale.log, step=step or 1)
    return FloatDistribution(scale.low, scale.high, log=scale.log, step=step)


def suggest(trial: OptunaTrial, space: SearchSpace) -> Params:
    """A configuration of a space, asked of a trial of Optuna: any of its samplers then works on spaces of deepbore.

    Parameters are asked for where they are active; where a parameter is fixed, it is not asked for.

    Args:
        trial: the argument of an objective of Optuna.
        space: of deepbore.

    Raises:
        TrialPruned: of Optuna, for a configuration that a constraint of the space forbids.
        SpaceError: naming it, for a parameter without counterpart in Optuna.

    Example:
        >>> import optuna
        >>> optuna.logging.set_verbosity(optuna.logging.WARNING)
        >>> space = SearchSpace({"k": Integer(1, 3), "x": Real(0, 1, when={"k": ">= 2"})})
        >>> study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
        >>> study.optimize(lambda trial: suggest(trial, space).get("x", 1.0), n_trials=5)
        >>> len(study.trials)
        5
    """
    params: Params = {}
    for name in space.points.parents_first:
        parameter = space.parameters[name]
        if name not in space.points.structure.without_unused({**params, name: parameter.decode(torch.zeros(1))[0]}):
            continue
        if name in space.fixed:
            params[name] = space.fixed[name]
        else:
            params[name] = parameter.native(_asked(trial, name, distribution_of(name, parameter)))
    params = {name: params[name] for name in space.names if name in params}
    try:
        space.encode([params])
    except PointError as error:
        raise TrialPruned(str(error)) from None
    return params


def _asked(trial: OptunaTrial, name: str, d: BaseDistribution) -> Any:
    """The value that a trial has for a distribution."""
    if isinstance(d, CategoricalDistribution):
        return trial.suggest_categorical(name, d.choices)
    if isinstance(d, IntDistribution):
        return trial.suggest_int(name, d.low, d.high, step=d.step, log=d.log)
    return trial.suggest_float(name, d.low, d.high, step=d.step, log=d.log)


# --- one distribution as one parameter -------------------------------------------------------------------------------


def parameter(distribution: BaseDistribution, when: Condition | None = None) -> Real | Integer | Categorical:
    """The parameter of deepbore for a distribution; choices and steps become indices from 0."""
    d = distribution
    if isinstance(d, CategoricalDistribution):
        return Categorical(range(len(d.choices)), when)
    if _on_grid(d):
        return Integer(0, len(levels(d)) - 1, when=when)
    return (Integer if isinstance(d, IntDistribution) else Real)(d.low, d.high, log=d.log, when=when)


def is_possible(distribution: BaseDistribution) -> bool:
    """Whether a distribution has a counterpart in deepbore."""
    try:
        return distribution.single() or bool(parameter(distribution))
    except (SpaceError, OverflowError):
        return False


def to_native(distribution: BaseDistribution, value: Any) -> float:
    """Optuna's value -> the native value of `parameter`, clipped to its bounds."""
    d = distribution
    internal = d.to_internal_repr(value)
    if isinstance(d, CategoricalDistribution):
        return int(internal)
    internal = min(max(internal, d.low), d.high)
    if _on_grid(d):
        level: int = round((internal - d.low) / d.step)
        return level
    return int(internal) if isinstance(d, IntDistribution) else float(internal)


def to_optuna(distribution: BaseDistribution, native: Any) -> Any:
    """A native value of `parameter` -> Optuna's value."""
    d = distribution
    if isinstance(d, CategoricalDistribution):
        return d.choices[native]
    if _on_grid(d):
        return type(d.low)(Decimal(str(d.low)) + native * Decimal(str(d.step)))  # 0.3, not 0.30000000000000004
    return native


def levels(distribution: BaseDistribution) -> range:
    """The native values of `parameter`; empty for a continuous one."""
    d = distribution
    if isinstance(d, CategoricalDistribution):
        return range(len(d.choices))
    if d.step is None:
        return range(0)
    return range(round((d.high - d.low) / d.step) + 1) if _on_grid(d) else range(d.low, d.high + 1)


def _on_grid(d: BaseDistribution) -> bool:
    """Whether a numeric distribution has a step other than 1 between whole numbers."""
    return d.step is not None and not (isinstance(d, IntDistribution) and d.step == 1)


# --- the study of deepbore behind the sampler ------------------------------------------------------------------------


class FollowedStudy:
    """An Optuna study mirrored by a study of deepbore, updated trial by trial.

    A new study of deepbore, with all trials so far, is made only if the space has changed, a trial has other parameters
    than were proposed for it, or a constraint has a new name. A trial that lacks a constraint is a failed one.

    Args:
        identity: of the Optuna study.
        directions: "minimize" or "maximize" for each objective.
        new_study: (space, directions, classifier or None for a new one) -> a study of deepbore.
        seed: of random values in place of those that a trial lacks.
        seen: infers the search space from trials, or knows it.
    """

    def __init__(
        self,
        identity: Any,
        directions: Sequence[Direction],
        new_study: Callable[..., Study],
        seed: int,
        seen: SeenTrials,
    ):
        self.identity, self.directions, self.new_study = identity, directions, new_study
        self.generator = torch.Generator().manual_seed(stream_seed(seed))
        self.seen = seen
        self._study: Study | None = None
        self._distributions: Mapping[str, BaseDistribution] = {}
        self._finished: set[int] = set()  # numbers of the trials in `seen`
        self._told: set[int] = set()  # numbers of the trials whose outcome the study has
        self._rows: dict[int, int] = {}  # number of a running trial -> its row in the study
        self._names: tuple[str, ...] = ()  # of the constraints, in order of appearance

    def reseed(self, seed: int) -> None:
        """Replaces the stream of random numbers."""
        self.generator.manual_seed(stream_seed(seed))
        if self._study is not None:
            reseed(self._study, seed)

    def look(self, trials: Sequence[FrozenTrial]) -> None:
        """Adds the newly finished trials to `seen`."""
        for trial in trials:
            if trial.state.is_finished() and trial.number not in self._finished:
                self._finished.add(trial.number)
                self.seen.add(trial)

    def suggest(
        self, trials: Sequence[FrozenTrial], number: int, distributions: Mapping[str, BaseDistribution]
    ) -> tuple[Params, Params]:
        """The next parameters: Optuna's values and native ones.

        Args:
            trials: all trials at this moment.
            number: of the trial that they are for.
            distributions: name -> distribution, at least one.
        """
        self._distributions = distributions
        space = self.seen.space(distributions)
        study = self._study
        names, self._names = self._names, constraint_names(trials, self._names)
        if study is None or study.space != space or names != self._names:
            study = self._begin(space)
        others = [trial for trial in trials if trial.number != number and trial.number not in self._told]
        if not all(self._stayed(study, trial) for trial in others):
            study = self._begin(space, study.state.release())  # nearly the same trials: it keeps what it has learned
            others = [trial for trial in trials if trial.number != number]
        self._tell(study, others)
        natives = self._next(study, number)
        return self.seen.to_optuna(natives, distributions), natives

    def leaves_to_another(self, trials: Sequence[FrozenTrial], number: int, natives: Params) -> bool:
        """Whether another process has proposed the same at the same moment; if so, its trial takes over the row here.

        Args:
            trials: all trials, read after the proposal was written: at least one of two processes sees the other's.
            number: of the trial that it was proposed for.
            natives: the proposal, in native values.
        """
        if number not in self._rows:  # a finite space is exhausted
            return False
        for trial in trials:
            is_known = trial.state == TrialState.WAITING or trial.number in self._rows or trial.number in self._told
            if not is_known and trial.system_attrs.get(PROPOSED) == natives:
                self._rows[trial.number] = self._rows.pop(number)
                return True
        return False

    # --- steps -------------------------------------------------------------------------------------------------------

    def _begin(self, space: SearchSpace, *classifier: Any) -> Study:
        self._study = self.new_study(space, self.directions, *classifier)
        self._told, self._rows = set(), {}
        return self._study

    def _stayed(self, study: Study, trial: FrozenTrial) -> bool:
        """Whether a trial that has ended and has a row has the parameters of that row."""
        row = self._rows.get(trial.number)
        if row is None or not trial.state.is_finished():
            return True
        ended = study.space.points.encode_columns(self._columns(study.space, [trial]))
        where, reserved = study.space.points.identify(torch.cat([ended, study.observations.points[[row]]]))
        return where == reserved

    def _tell(self, study: Study, trials: Sequence[FrozenTrial]) -> None:
        """Tells the study finished trials, and reserves those that run in other processes."""
        elsewhere = [trial for trial in trials if trial.number not in self._rows]
        self._add(study, [trial for trial in elsewhere if trial.state.is_finished()])
        for trial in trials:
            if trial.state.is_finished():
                self._told.add(trial.number)
                if trial.number in self._rows:
                    study.tell(self._rows.pop(trial.number), self._outcome(trial))
        for trial in elsewhere:
            if trial.state == TrialState.RUNNING:
                self._reserve(study, trial)

    def _add(self, study: Study, trials: Sequence[FrozenTrial]) -> None:
        """Adds finished trials that have any parameters."""
        trials = [trial for trial in trials if self._natives(trial)]
        if not trials:
            return
        outcomes = [self._outcome(trial) for trial in trials]
        none, unknown = [math.nan] * len(self.directions), [math.nan] * len(self._names)
        constraints = [list(outcome.constraints) if outcome.has_value else unknown for outcome in outcomes]
        study.add(
            self._columns(study.space, trials),
            [list(outcome.values) if outcome.has_value else none for outcome in outcomes],
            constraints=constraints if self._names else None,
        )

    def _reserve(self, study: Study, trial: FrozenTrial) -> None:
        """Makes a trial of another process pending, once all its parameters are known."""
        natives = self._natives(trial)
        try:
            points = study.space.points.encode_columns({name: [natives.get(name)] for name in study.space.names})
        except PointError:
            return
        (self._rows[trial.number],) = study.observations.reserve(points)

    def _next(self, study: Study, number: int) -> Params:
        """The proposal of deepbore; a random configuration if a finite space is exhausted."""
        trials = largest_possible_batch(study.ask, 1)
        if trials is None:
            return study.space.points.plain(study.space.decode(study.space.points.sample(1, self.generator))[0])
        self._rows[number] = trials[0].id
        return study.space.points.plain(trials[0].params)

    def _outcome(self, trial: FrozenTrial) -> Outcome:
        """Values and constraints of a complete trial that has all of them, reports of a pruned one; else a failure."""
        given = constraints_of(trial)
        if trial.state == TrialState.PRUNED and len(self.directions) == 1:
            return Outcome(status=Status.PRUNED, reports=trial.intermediate_values)
        if trial.state != TrialState.COMPLETE or not given.keys() >= set(self._names):
            return Outcome.failure()
        return Outcome(list(trial.values), constraints=[given[name] for name in self._names])

    # --- from Optuna's trials ----------------------------------------------------------------------------------------

    def _natives(self, trial: FrozenTrial) -> Params:
        return self.seen.natives(trial, self._distributions)

    def _columns(self, space: SearchSpace, trials: Sequence[FrozenTrial]) -> dict[str, list[Any]]:
        """The trials' parameters by column, with random values for missing ones, which spread over the range."""
        natives = [self._natives(trial) for trial in trials]
        columns = {}
        for name, parameter in space.parameters.items():
            random = torch.rand(len(trials), dtype=torch.float64, generator=self.generator)
            fill = parameter.decode(parameter.from_uniform(random))
            columns[name] = [native.get(name, other) for native, other in zip(natives, fill, strict=True)]
        return columns


def constraints_of(trial: FrozenTrial) -> dict[str, float]:
    """The constraints of a trial by name, or by number if `constraints_func` gave them; satisfied if <= 0."""
    attributes = trial.system_attrs
    named = {name: value for name, value in attributes.items() if name.startswith(f"{CONSTRAINTS}:")}  # set_constraint
    listed = {str(number): value for number, value in enumerate(attributes.get(CONSTRAINTS) or ())}
    return {name: float(value) for name, value in {**listed, **named}.items()}


def constraint_names(trials: Sequence[FrozenTrial], known: tuple[str, ...]) -> tuple[str, ...]:
    """The known names, then new ones of complete trials, in the order of the trials."""
    complete = (trial for trial in trials if trial.state == TrialState.COMPLETE)
    return tuple(dict.fromkeys([*known, *(name for trial in complete for name in constraints_of(trial))]))


# --- the sampler -----------------------------------------------------------------------------------------------------


class DeepBoreSampler(BaseSampler):
    """An Optuna sampler: a classifier learns from the study's trials which configurations are good.

    One classifier samples all parameters jointly, conditional ones included; conditions are inferred from the trials
    (see `SeenTrials`). Parameters that no trial has had, whose range changes from trial to trial, or that have no
    counterpart in deepbore, such as 10^15 whole numbers on a log scale, are sampled at random.

    | trial | to deepbore |
    |---|---|
    | complete | labelled by its values; several objectives give a search for their front |
    | pruned or failed | a failure: worse than any value, unless one among successes passes for a random crash |
    | running | pending: suggestions keep away from it |
    | without a constraint that others have | a failure |

    Constraints, by `trial.set_constraint` in the objective or by `constraints_func`, are deepbore's black-box
    constraints: a model for each learns where it is satisfied, and until a trial is feasible the search is for a
    feasible one. No configuration is proposed twice until a finite space is exhausted. A pickled sampler continues with
    the same suggestions; `reseed_rng` makes copies differ.

    Args:
        seed: of everything random; None for a random seed.
        n_startup_trials: trials before the classifier proposes; after the first, they are a Sobol design.
        classifier: makes a new classifier whenever the space changes; default as in `deepbore.Study`.
        acquisition: default as in `deepbore.Study`.
        candidates: default as in `deepbore.Study`.
        gamma: proportion of good trials, in (0, 1); default as in `deepbore.Study`.
        constraints_func: a finished trial -> its constraints, feasible if all are <= 0, as for Optuna's own samplers.
            None if there are none, or if the objective calls `trial.set_constraint` (Optuna 5).
        space: the search space, if it is known before any trial, with its conditions, constraints, fixed values and
            priors, for which `trial.suggest_float` has no argument; the objective then has its configuration from
            `suggest(trial, space)`. None to infer it from the trials.

    Raises:
        SettingError: for a setting outside its range; when sampling, for parts that do not fit the study's objectives.
        SpaceError: for a `space` with a parameter that has no counterpart in Optuna.
        ValueTypeError: when a trial ends, for constraints that are not a sequence of numbers.

    Example:
        >>> import optuna
        >>> optuna.logging.set_verbosity(optuna.logging.WARNING)
        >>> study = optuna.create_study(sampler=DeepBoreSampler(seed=0))
        >>> study.optimize(lambda trial: (trial.suggest_float("x", 0, 1) - 0.3) ** 2, n_trials=20)
        >>> abs(study.best_params["x"] - 0.3) < 0.05
        True
    """

    def __init__(
        self,
        seed: int | None = None,
        n_startup_trials: int = 10,
        classifier: Callable[[], Classifier] | None = None,
        acquisition: Acquisition | None = None,
        candidates: Candidates | None = None,
        gamma: Gamma | None = None,
        constraints_func: Callable[[FrozenTrial], Sequence[float]] | None = None,
        space: SearchSpace | Mapping[str, Parameter] | None = None,
    ):
        whole(1, n_startup_trials=n_startup_trials)
        if gamma is not None:
            checked_gamma(gamma)
        if classifier is not None and (isinstance(classifier, Classifier) or not callable(classifier)):
            raise SettingError(
                "classifier must make a new classifier whenever the space changes, as KernelPLS itself does, or be "
                f"a function without arguments, but got {classifier!r:.100}."
            )
        self.n_startup_trials, self.classifier = n_startup_trials, classifier
        self.acquisition, self.candidates, self.gamma = acquisition, candidates, gamma
        self.constraints_func = constraints_func
        self._declared = None if space is None else DeclaredSpace(as_space(space))
        self._seed = secrets.randbits(31) if seed is None else as_seed(seed)
        self._random = RandomSampler(seed=self._seed % 2**32)  # Optuna's seeds have 32 bits
        self._followed: FollowedStudy | None = None
        self._lock = threading.RLock()  # Optuna's n_jobs are threads that share the sampler

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _lock=threading.RLock())

    # --- Optuna's interface ------------------------------------------------------------------------------------------

    def reseed_rng(self) -> None:
        with self._lock:
            self._seed = secrets.randbits(31)
            self._random.reseed_rng()
            if self._followed is not None:
                self._followed.reseed(self._seed)

    def infer_relative_search_space(self, study: OptunaStudy, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        with self._lock:
            return self._follow(study, study.get_trials(deepcopy=False)).seen.distributions

    def sample_relative(
        self, study: OptunaStudy, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        if not search_space:
            return {}
        with self._lock:
            trials = study.get_trials(deepcopy=False)
            for _ in range(1 + RETRIES):
                followed = self._follow(study, trials)
                params, natives = followed.suggest(trials, trial.number, search_space)
                study._storage.set_trial_system_attr(trial._trial_id, PROPOSED, natives)  # for the other processes
                trials = study.get_trials(deepcopy=False)
                if not followed.leaves_to_another(trials, trial.number, natives):
                    break
            return params

    def sample_independent(
        self, study: OptunaStudy, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        with self._lock:
            return self._random.sample_independent(study, trial, param_name, param_distribution)

    def after_trial(
        self, study: OptunaStudy, trial: FrozenTrial, state: TrialState, values: Sequence[float] | None
    ) -> None:
        if self.constraints_func is not None and state in (TrialState.COMPLETE, TrialState.PRUNED):
            constraints = as_constraints(self.constraints_func(trial))
            study._storage.set_trial_system_attr(trial._trial_id, CONSTRAINTS, constraints)

    # --- steps -------------------------------------------------------------------------------------------------------

    def _follow(self, study: OptunaStudy, trials: Sequence[FrozenTrial]) -> FollowedStudy:
        """The mirrored study, with these trials."""
        identity = study.study_name, trials[0].datetime_start if trials else None
        if self._followed is None or self._followed.identity != identity:
            directions = [direction.name.lower() for direction in study.directions]
            seen = self._declared or SeenTrials()
            self._followed = FollowedStudy(identity, directions, self._new_study, self._seed, seen)
        self._followed.look(trials)
        return self._followed

    def _new_study(
        self, space: SearchSpace, directions: Sequence[Direction], classifier: Classifier | None = None
    ) -> Study:
        if classifier is None and self.classifier is not None:
            classifier = self.classifier()
        return Study(
            space,
            directions=directions,
            seed=self._seed,
            classifier=classifier,
            acquisition=self.acquisition,
            candidates=self.candidates,
            gamma=self.gamma,
            n_initial=self.n_startup_trials,
        )


def as_constraints(returned: Any) -> list[float]:
    """The constraints that a `constraints_func` has returned, as numbers.

    Raises:
        ValueTypeError: for anything but a sequence of numbers, none of them NaN.
    """
    constraints = [as_number(value, "a constraint") for value in np.atleast_1d(np.asarray(returned, dtype=object))]
    if any(map(math.isnan, constraints)):
        raise ValueTypeError(
            f"a constraint must not be NaN, but constraints_func gave {constraints}. Prune such a trial."
        )
    return constraints
