"""SMAC3's facade for hyperparameters: a forest, log expected improvement, and random configurations in between.

On real spaces also its facade for black boxes, which has a Gaussian process.
"""

import logging
import tempfile

from ConfigSpace import (
    CategoricalHyperparameter,
    Configuration,
    ConfigurationSpace,
    Float,
    InCondition,
    Integer,
    OrdinalHyperparameter,
)
from smac import BlackBoxFacade, HyperparameterOptimizationFacade, MultiFidelityFacade, Scenario
from smac.facade.abstract_facade import AbstractFacade
from smac.runhistory.dataclasses import TrialInfo, TrialValue
from smac.runhistory.enumerations import StatusType

from deepbore.space import Params, SearchSpace
from peers.base import HandlePeer

ENDLESS = 10**6  # trials; the benchmark says when it ends


class SMAC(HandlePeer):
    """The facade's defaults, with the given number of initial configurations.

    Failures are crashes to it, told with the worst value seen (its own infinity stops its forest); those before any
    value wait for the first. Where values are noisy it evaluates good configurations up to three times, and recommends
    its incumbent. Choices are told by their numbers.
    """

    packages = ("smac", "ConfigSpace", "scikit-learn")
    facade_class: type[AbstractFacade] = HyperparameterOptimizationFacade

    def __init__(self, *arguments, **settings):
        super().__init__(*arguments, **settings)
        self.folder = tempfile.TemporaryDirectory()
        self.crashed = list[TrialInfo]()  # not told yet
        self.facade = self.new_facade()

    def new_facade(self, **budgets: float) -> AbstractFacade:
        scenario = Scenario(
            as_config_space(self.space, self.seed),
            output_directory=self.folder.name,
            deterministic=not self.noisy,
            n_trials=ENDLESS,
            seed=self.seed,
            **budgets,
        )
        return self.facade_class(
            scenario,
            uncalled,
            initial_design=self.facade_class.get_initial_design(scenario, n_configs=self.n_initial),
            logging_level=logging.ERROR,
            overwrite=True,
        )

    def suggest(self, q: int) -> list[tuple[Params, TrialInfo]]:
        asked = []
        for _ in range(q):
            try:
                info = self.facade.ask()
            except StopIteration:
                break
            asked.append((self.native(info.config), info))
        return asked

    def observe(self, handle: TrialInfo, value: float | None) -> None:
        if value is None:
            self.crashed.append(handle)
        else:
            self.facade.tell(handle, TrialValue(value, status=StatusType.SUCCESS), save=False)
        worst = max((value for value in self.values if value is not None), default=None)
        while worst is not None and self.crashed:
            self.facade.tell(self.crashed.pop(), TrialValue(worst, status=StatusType.CRASHED), save=False)

    def recommend(self) -> Params:
        incumbents = self.facade.intensifier.get_incumbents() if self.noisy else []
        return self.native(incumbents[0]) if incumbents else super().recommend()

    def native(self, config: Configuration) -> Params:
        """SMAC's configuration -> ours."""
        values, params = dict(config), {}
        for name, p in self.space.parameters.items():
            if name in values:
                value = values[name]
                kind = {"real": float, "integer": int}.get(p.kind)
                params[name] = kind(value) if kind else p.choices[int(value)]
        return self.space.decode(self.space.encode([params]))[0]  # with the digits that native values have

    def close(self) -> None:
        self.folder.cleanup()


class SMACByKind(SMAC):
    """SMAC3's facade for black boxes on real spaces, as its documentation advises, else that for hyperparameters."""

    def new_facade(self, **budgets: float) -> AbstractFacade:
        self.facade_class = BlackBoxFacade if self.space.points.is_continuous else HyperparameterOptimizationFacade
        return super().new_facade(**budgets)


class SMACByBudget(SMAC):
    """SMAC3's facade for several budgets: Hyperband, and a forest of the highest budget that has enough results."""

    facade_class = MultiFidelityFacade

    def new_facade(self, low: float = 1, high: float = 81) -> AbstractFacade:
        return super().new_facade(min_budget=low, max_budget=high)

    def set_budgets(self, low: float, high: float) -> None:
        """Takes the least and the most that a trial may spend, before anything is asked for."""
        self.facade = self.new_facade(low, high)

    def ask_by_budget(self) -> tuple[Params, float]:
        """The next configuration, and what to spend on it."""
        ((params, info),) = asked = self.suggest(1)
        self.pending += asked
        return params, info.budget


def uncalled(config: Configuration, seed: int = 0, budget: float = 0) -> float:
    """The objective that the facade wants to see; ask and tell never call it."""
    raise NotImplementedError


def as_config_space(space: SearchSpace, seed: int) -> ConfigurationSpace:
    """Our space -> ConfigSpace's."""
    config_space = ConfigurationSpace(seed=seed)
    for name, p in space.parameters.items():
        if p.kind == "real":
            config_space.add(Float(name, (p.low, p.high), log=p.log))
        elif p.kind == "integer":
            config_space.add(Integer(name, (p.low, p.high), log=p.log))
        elif p.kind == "ordinal":
            config_space.add(OrdinalHyperparameter(name, list(range(p.levels))))
        else:
            config_space.add(CategoricalHyperparameter(name, list(range(p.levels))))
    for name, p in space.parameters.items():
        if p.when is not None:
            parent = space.parameters[p.when.parent]
            values = [v if parent.kind == "integer" else list(parent.choices).index(v) for v in p.when.values]
            config_space.add(InCondition(config_space[name], config_space[p.when.parent], values))
    return config_space
