"""The table of methods, and `make`: from a name to a peer."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module

from deepbore.space import SearchSpace
from peers.base import Peer


@dataclass(frozen=True)
class Method:
    """Where a peer's class is, what it is set to, and the virtual environment that it needs, if any."""

    place: str  # "module:Class" in this package
    settings: Mapping[str, object] = field(default_factory=dict)
    venv: str | None = None

    def make(self, space: SearchSpace, seed: int, **how: int | bool) -> Peer:
        """The peer, in this process."""
        module, kind = self.place.split(":")
        made: Peer = getattr(import_module(f"peers.{module}"), kind)(space, seed, **how, **self.settings)
        return made


PEERS: dict[str, Method] = {
    "random": Method("chance:RandomSearch"),
    "sobol": Method("chance:SobolSearch"),
    "optuna-tpe": Method("optuna_samplers:TPE"),
    "hyperopt-tpe": Method("hyperopt_tpe:TPE"),
    "optuna-gp": Method("optuna_samplers:GP"),
    "cma-es": Method("cma_es:CMAES"),
    "differential-evolution": Method("evolution:DifferentialEvolution"),
    "regularised-evolution": Method("evolution:RegularisedEvolution"),
    "smac": Method("smac_facade:SMAC", venv="smac"),
    "smac-by-kind": Method("smac_facade:SMACByKind", venv="smac"),
    "hebo": Method("hebo_optimizer:HEBO", venv="hebo"),
    "botorch": Method("botorch_gp:BoTorch"),
    "botorch-noiseless": Method("botorch_gp:BoTorch", {"told": True}),
    "gp-ei": Method("gaussian_process:EI"),
    "gp-ucb": Method("gaussian_process:UCB"),
    "gp-ei-rq": Method("gaussian_process:EI", {"kernel": "rational quadratic"}),
    "gp-ucb-rq": Method("gaussian_process:UCB", {"kernel": "rational quadratic"}),
    "q-ei": Method("gaussian_process:QEI"),
    "local-penalisation": Method("gaussian_process:LocalPenalisation"),
    "turbo": Method("turbo:TuRBO"),
    "lfbo-rf": Method("density_ratio:Trees", {"classifier": "rf", "weighted": True}),
    "lfbo-xgb": Method("density_ratio:Trees", {"classifier": "xgb", "weighted": True}),
    "bore-rf": Method("density_ratio:Trees", {"classifier": "rf", "weighted": False}),
    "bore-xgb": Method("density_ratio:Trees", {"classifier": "xgb", "weighted": False}),
    "bore-mlp": Method("density_ratio:Network"),
}

BY_BUDGET = {"smac-by-budget": Method("smac_facade:SMACByBudget", venv="smac")}  # for scripts/budgets.py alone


def names() -> list[str]:
    """All methods, deepbore's first."""
    from peers.deepbore_methods import METHODS  # the processes of peers do without

    return [*METHODS, *PEERS]


def make(name: str, space: SearchSpace, seed: int, **how: int | bool) -> Peer:
    """The peer of a name, in a process of its own if its packages need that.

    Args:
        name: of the method.
        space: where to search.
        seed: of everything random.
        how: n_initial, noisy, workers and constrained; see `Peer`.

    Raises:
        RuntimeError: if its virtual environment can't be made, or its process ends.
    """
    method = PEERS.get(name) or Method("deepbore_methods:DeepBore", {"settings": name})
    if method.venv is None:
        return method.make(space, seed, **how)
    from peers.process import ProcessPeer

    return ProcessPeer(name, method.venv, space, seed, **how)
