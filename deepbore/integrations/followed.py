"""`FollowedStudy`: an Optuna study as a study of deepbore that is told what has happened since the last time."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from optuna.distributions import BaseDistribution
from optuna.trial import FrozenTrial, TrialState

from deepbore.candidates.selection import as_many
from deepbore.data.observations import Direction
from deepbore.data.outcomes import Outcome
from deepbore.errors import PointError
from deepbore.integrations.define_by_run import SeenTrials, to_native, to_optuna
from deepbore.space import Params, SearchSpace
from deepbore.study import Study

PROPOSED = "deepbore:proposed"  # the system attribute of a trial that holds what was proposed for it
CONSTRAINTS = "constraints"  # the one in which Optuna keeps the constraints of a trial


class FollowedStudy:
    """An Optuna study as a study of deepbore, brought up to date trial by trial.

    The study of deepbore begins anew, with all trials so far, only if the space has changed, a trial has ended
    elsewhere than where it was proposed, or one has a constraint of a name that none had before. Constraints are those
    of deepbore; a trial that lacks one of them is a failed one.

    Args:
        identity: what tells it apart from other studies.
        directions: "minimize" or "maximize" for each objective.
        new_study: (space, directions, classifier or None for a new one) -> a study of deepbore.
        seed: of what stands in for values that a trial lacks.
    """

    def __init__(self, identity: Any, directions: Sequence[Direction], new_study: Callable[..., Study], seed: int):
        self.identity, self.directions, self.new_study = identity, directions, new_study
        self.generator = torch.Generator().manual_seed(seed)
        self.seen = SeenTrials()
        self._study: Study | None = None
        self._distributions: Mapping[str, BaseDistribution] = {}
        self._finished: set[int] = set()  # numbers of the trials that `seen` knows
        self._told: set[int] = set()  # ... and of those whose outcome the study knows
        self._rows: dict[int, int] = {}  # number of a running trial -> its row
        self._names: tuple[str, ...] = ()  # of the constraints, in the order of their appearance

    def reseed(self, seed: int) -> None:
        """Goes on with another stream of random numbers."""
        self.generator.manual_seed(seed)
        if self._study is not None:
            self._study.reseed(seed)

    def look(self, trials: Sequence[FrozenTrial]) -> None:
        """Takes note of the trials that have finished."""
        for trial in trials:
            if trial.state.is_finished() and trial.number not in self._finished:
                self._finished.add(trial.number)
                self.seen.add(trial)

    def suggest(
        self, trials: Sequence[FrozenTrial], number: int, distributions: Mapping[str, BaseDistribution]
    ) -> tuple[Params, Params]:
        """The parameters to try next, as Optuna has them and as deepbore has them.

        Args:
            trials: all trials of this moment.
            number: of the trial they are for.
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
            study = self._begin(space, study._state.release())  # of nearly the same trials: it learns on
            others = [trial for trial in trials if trial.number != number]
        self._tell(study, others)
        natives = self._next(study, number)
        return {name: to_optuna(distributions[name], native) for name, native in natives.items()}, natives

    def leaves_to_another(self, trials: Sequence[FrozenTrial], number: int, natives: Params) -> bool:
        """Whether another process has proposed just this in the same moment; if so, its trial has the row here.

        Args:
            trials: all trials, read after the proposal was written: of two processes one at least sees the other's.
            number: of the trial it was proposed for.
            natives: the proposal as deepbore has it.
        """
        if number not in self._rows:  # all of a finite space has been tried
            return False
        for trial in trials:
            is_new = trial.state == TrialState.RUNNING and trial.number not in self._rows
            if is_new and trial.system_attrs.get(PROPOSED) == natives:
                self._rows[trial.number] = self._rows.pop(number)
                return True
        return False

    # --- steps -------------------------------------------------------------------------------------------------------

    def _begin(self, space: SearchSpace, *classifier: Any) -> Study:
        self._study = self.new_study(space, self.directions, *classifier)
        self._told, self._rows = set(), {}
        return self._study

    def _stayed(self, study: Study, trial: FrozenTrial) -> bool:
        """Whether a trial, if it has ended and has a row, is where that row says."""
        row = self._rows.get(trial.number)
        if row is None or not trial.state.is_finished():
            return True
        ended = study.space.encode_columns(self._columns(study.space, [trial]))
        where, reserved = study.space.identify(torch.cat([ended, study.observations.points[[row]]]))
        return where == reserved

    def _tell(self, study: Study, trials: Sequence[FrozenTrial]) -> None:
        """Tells the outcomes of what has ended, and reserves what runs elsewhere."""
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
        """Adds trials that have ended, if they asked for anything."""
        trials = [trial for trial in trials if self._natives(trial)]
        if not trials:
            return
        outcomes = [self._outcome(trial) for trial in trials]
        none, unknown = [math.nan] * len(self.directions), [math.nan] * len(self._names)
        constraints = [unknown if outcome.has_failed else list(outcome.constraints) for outcome in outcomes]
        study.add(
            self._columns(study.space, trials),
            [none if outcome.has_failed else list(outcome.values) for outcome in outcomes],
            constraints=constraints if self._names else None,
        )

    def _reserve(self, study: Study, trial: FrozenTrial) -> None:
        """Makes a trial of another process pending, once all that it asks for is known."""
        natives = self._natives(trial)
        try:
            points = study.space.encode_columns({name: [natives.get(name)] for name in study.space.names})
        except PointError:
            return
        (self._rows[trial.number],) = study.observations.reserve(points)

    def _next(self, study: Study, number: int) -> Params:
        """What deepbore proposes; any configuration if a finite space has no new one."""
        trials = as_many(study.ask, 1)
        if trials is None:
            return study.space.decode(study.space.sample(1, self.generator))[0]
        self._rows[number] = trials[0].id
        return trials[0].params

    def _outcome(self, trial: FrozenTrial) -> Outcome:
        """The values and the constraints of a complete trial that has all of them; else a failure."""
        given = constraints_of(trial)
        if trial.state != TrialState.COMPLETE or not given.keys() >= set(self._names):
            return Outcome.failure()
        return Outcome(list(trial.values), constraints=[given[name] for name in self._names])

    # --- from Optuna's trials ----------------------------------------------------------------------------------------

    def _natives(self, trial: FrozenTrial) -> Params:
        """What is known of a trial's parameters: what it asked for, and else what was proposed for it."""
        proposed = trial.system_attrs.get(PROPOSED, {})
        asked = {name: to_native(d, trial.params[name]) for name, d in trial.distributions.items()}
        return {name: value for name, value in {**proposed, **asked}.items() if name in self._distributions}

    def _columns(self, space: SearchSpace, trials: Sequence[FrozenTrial]) -> dict[str, list[Any]]:
        """The trials' parameters, column by column, random values in place of what is unknown.

        That spreads a trial without a parameter over all of that parameter's range.
        """
        natives = [self._natives(trial) for trial in trials]
        columns = {}
        for name, parameter in space.parameters.items():
            random = torch.rand(len(trials), dtype=torch.float64, generator=self.generator)
            fill = parameter.decode(parameter.from_uniform(random))
            columns[name] = [native.get(name, other) for native, other in zip(natives, fill, strict=True)]
        return columns


def constraints_of(trial: FrozenTrial) -> dict[str, float]:
    """The constraints of a trial by name, by number where `constraints_func` has given them; kept where <= 0."""
    attributes = trial.system_attrs
    named = {name: value for name, value in attributes.items() if name.startswith(f"{CONSTRAINTS}:")}  # set_constraint
    listed = {str(number): value for number, value in enumerate(attributes.get(CONSTRAINTS) or ())}
    return {name: float(value) for name, value in {**listed, **named}.items()}


def constraint_names(trials: Sequence[FrozenTrial], known: tuple[str, ...]) -> tuple[str, ...]:
    """The known names, and others that complete trials have, in the order of the trials."""
    complete = (trial for trial in trials if trial.state == TrialState.COMPLETE)
    return tuple(dict.fromkeys([*known, *(name for trial in complete for name in constraints_of(trial))]))
