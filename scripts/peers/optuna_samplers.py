"""Samplers of Optuna, by its own ask and tell; conditional parameters are suggested only where they are active."""

import logging
import warnings
from abc import abstractmethod
from collections.abc import Callable

import optuna
from optuna.samplers import BaseSampler, CmaEsSampler, GPSampler, TPESampler

from deepbore.data.outcome import Outcome
from deepbore.space import Params, SearchSpace
from peers.base import HandlePeer

CONSTRAINTS = "constraints"  # the attribute that holds them


class Sampled(HandlePeer):
    """A sampler of Optuna with its defaults. Failures are told as such (`TrialState.FAIL`).

    Constraints reach the samplers that know them by `constraints_func`.
    """

    packages = ("optuna",)

    def __init__(self, *arguments, **settings):
        super().__init__(*arguments, **settings)
        optuna.logging.set_verbosity(logging.ERROR)
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        self.study = optuna.create_study(sampler=self.sampler())

    def suggested(self, trial: optuna.Trial) -> Params:
        """A trial's configuration."""
        return suggest(trial, self.space)

    @abstractmethod
    def sampler(self) -> BaseSampler:
        """The sampler."""

    def suggest(self, q: int) -> list[tuple[Params, optuna.Trial]]:
        asked = []
        for _ in range(q):
            trial = self.study.ask()
            asked.append((self.suggested(trial), trial))
        return asked

    def observe(self, handle: optuna.Trial, value: float | None) -> None:
        state = optuna.trial.TrialState.FAIL if value is None else optuna.trial.TrialState.COMPLETE
        self.study.tell(handle, value, state=state)

    def observe_outcome(self, handle: optuna.Trial, outcome: Outcome) -> None:
        if self.constraints_func is None:
            super().observe_outcome(handle, outcome)
            return
        handle.set_user_attr(CONSTRAINTS, list(outcome.constraints))
        self.observe(handle, None if outcome.has_failed else outcome.values[0])

    @property
    def constraints_func(self) -> Callable[[optuna.trial.FrozenTrial], list[float]] | None:
        """What gives the samplers the constraints of a trial; None where there are none."""
        return constraints_of if self.constrained else None


class TPE(Sampled):
    """Multivariate TPE in groups of conditional parameters; pending trials count as bad where several are asked."""

    def sampler(self) -> BaseSampler:
        return TPESampler(
            seed=self.seed,
            n_startup_trials=self.n_initial,
            multivariate=True,
            group=True,
            constant_liar=self.workers > 1,
            constraints_func=self.constraints_func,
        )


class GP(Sampled):
    """Optuna's Gaussian process with LogEI; with noise inferred where the objective is noisy."""

    def sampler(self) -> BaseSampler:
        return GPSampler(
            seed=self.seed,
            n_startup_trials=self.n_initial,
            deterministic_objective=not self.noisy,
            constraints_func=self.constraints_func,
        )


class CMA(Sampled):
    """CMA-ES with margin for whole numbers and ordinals; categories are drawn at random.

    It breaks down where the set of parameters changes from trial to trial, so inactive ones are suggested and left out.
    """

    packages = ("optuna", "cmaes")
    constraints_func = None

    def sampler(self) -> BaseSampler:
        return CmaEsSampler(seed=self.seed, with_margin=True, warn_independent_sampling=False)

    def suggested(self, trial: optuna.Trial) -> Params:
        columns = {name: [_suggested(trial, name, p)] for name, p in self.space.parameters.items()}
        return self.space.decode(self.space.points.encode_columns(columns))[0]


def constraints_of(trial: optuna.trial.FrozenTrial) -> list[float]:
    """The constraints of a trial that has been told; those of a failure do not count."""
    return trial.user_attrs[CONSTRAINTS]


def suggest(trial: optuna.Trial, space: SearchSpace) -> Params:
    """A configuration, parents before their children; ordinals are integers to Optuna."""
    params: Params = {}
    waiting = dict(space.parameters)
    while waiting:
        for name, p in list(waiting.items()):
            if p.when is not None and p.when.parent in waiting:
                continue
            del waiting[name]
            if p.when is None or (p.when.parent in params and params[p.when.parent] in p.when.values):
                params[name] = _suggested(trial, name, p)
    return {name: params[name] for name in space.names if name in params}


def _suggested(trial: optuna.Trial, name: str, p) -> object:
    if p.kind == "real":
        return trial.suggest_float(name, p.low, p.high, log=p.log)
    if p.kind == "integer":
        return trial.suggest_int(name, p.low, p.high, log=p.log)
    if p.kind == "ordinal":
        return p.choices[trial.suggest_int(name, 0, p.levels - 1)]
    return trial.suggest_categorical(name, list(p.choices))
