"""Methods that spend budgets, for scripts/budgets.py: each runs trials on an account, and yields after each.

An account (`Account` there) begins trainings, counts their epochs, and goes on with them: nothing is trained twice.
"""

import math
from collections.abc import Callable, Iterator
from typing import Any

from deepbore import MedianPruner, Pruner, Study, SuccessiveHalvingPruner

NEVER = 10**6  # trials of an initial design that does not end
WORST = 1e9  # a loss that is infinite, to those who take none

Method = Callable[[Any, int], Iterator[None]]


def deepbore(account: Any, **settings: Any) -> Iterator[None]:
    """A study with a budget: its own promotions."""
    trainings = account.trainings
    study = Study(trainings.space, budget=trainings.budget, **settings)
    running: dict[int, Iterator[float]] = {}
    while study.observations.columns.n_left > 0:
        (trial,) = study.ask()
        earlier = trial.resume_from
        running[trial.id] = running.pop(earlier.id) if earlier else account.begin(trial.params)
        study.tell(trial, go_on(running[trial.id], trial.budget - (earlier.budget if earlier else 0)))
        yield


def in_full(account: Any, **settings: Any) -> Iterator[None]:
    """A study without a budget: each training to its end."""
    study = Study(account.trainings.space, **settings)
    while True:
        (trial,) = study.ask()
        study.tell(trial, go_on(account.begin(trial.params), account.top))
        yield


def pruned(account: Any, pruner: Pruner, **settings: Any) -> Iterator[None]:
    """A study without a budget, and a pruner that hears of every epoch."""
    study = Study(account.trainings.space, pruner=pruner, **settings)
    while study.observations.columns.n_left > 0:
        (trial,) = study.ask()
        for epoch, loss in zip(range(1, account.top + 1), account.begin(trial.params), strict=False):
            trial.report(loss, epoch)
            if epoch < account.top and trial.should_prune():
                study.tell(trial, pruned=True)
                break
        else:
            study.tell(trial, loss)
        yield


def optuna(account: Any, seed: int, pruner: str, by_chance: bool = False) -> Iterator[None]:
    """Optuna's TPE, or random sampling, with a pruner that hears of every epoch."""
    import optuna

    from peers.optuna_samplers import suggest

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    pruners = {
        "hyperband": lambda: optuna.pruners.HyperbandPruner(1, account.top, 3),
        "median": optuna.pruners.MedianPruner,
        "halving": lambda: optuna.pruners.SuccessiveHalvingPruner(1, 3, 0),
        "none": optuna.pruners.NopPruner,
    }
    samplers = optuna.samplers
    sampler = samplers.RandomSampler(seed) if by_chance else samplers.TPESampler(seed=seed, multivariate=True)
    study = optuna.create_study(sampler=sampler, pruner=pruners[pruner]())
    states = optuna.trial.TrialState
    while True:
        trial = study.ask()
        training = account.begin(suggest(trial, account.trainings.space))
        for epoch, loss in zip(range(1, account.top + 1), training, strict=False):
            trial.report(loss, epoch)
            if epoch < account.top and trial.should_prune():
                study.tell(trial, None, states.PRUNED)
                break
        else:
            study.tell(trial, finite(loss))
        yield


def tpe_by_rungs(account: Any, seed: int) -> Iterator[None]:
    """Optuna's TPE, of the results at the highest rung that has enough of them, with ASHA's promotions.

    That is how BOHB chooses what its density estimates learn from (Falkner et al., 2018): d + 3 results at least.
    """
    import optuna

    from peers.optuna_samplers import suggest

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    space, rungs = account.trainings.space, account.trainings.budget.rungs
    tellers = [
        optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed, multivariate=True, n_startup_trials=0))
        for _ in rungs
    ]
    chance = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed))
    told: list[list[tuple[float, Any, Iterator[float]]]] = [[] for _ in rungs]  # loss, Optuna's trial, what goes on
    promoted: list[set[int]] = [set() for _ in rungs]
    while True:
        place, asked, training = next(promotable(told, promoted), (0, None, None))
        if asked is None:
            enough = [study for study, results in zip(tellers, told, strict=True) if len(results) >= len(space) + 3]
            study = enough[-1] if enough else chance
            asked = study.ask()
            training = account.begin(suggest(asked, space))
            study.tell(asked, state=optuna.trial.TrialState.FAIL)  # its result comes below, at its own rung
        loss = finite(go_on(training, rungs[place] - (rungs[place - 1] if place else 0)))
        told[place].append((loss, asked, training))
        known = {"params": asked.params, "distributions": asked.distributions}
        tellers[place].add_trial(optuna.trial.create_trial(value=loss, **known))
        yield


def promotable(told: list[Any], promoted: list[set[int]]) -> Iterator[tuple[int, Any, Iterator[float]]]:
    """Trials among the best third of their rung that have not gone on yet, of the highest rungs first."""
    for place in reversed(range(len(told) - 1)):
        results = told[place]
        for row in sorted(range(len(results)), key=lambda row: results[row][0])[: len(results) // 3]:
            if row not in promoted[place]:
                promoted[place].add(row)
                yield place + 1, *results[row][1:]


def smac(account: Any, seed: int) -> Iterator[None]:
    """SMAC3's multi-fidelity facade: Hyperband, with a forest of the highest budget that has enough results."""
    from peers.process import ProcessPeer

    budget = account.trainings.budget
    peer = ProcessPeer("smac-by-budget", "smac", account.trainings.space, seed)
    peer.call("set_budgets", low=budget.low, high=budget.top)
    running: dict[str, tuple[Iterator[float], int]] = {}  # what goes on, and after how many epochs
    try:
        while True:
            params, epochs = peer.call("ask_by_budget")
            training, spent = running.pop(repr(params), (None, 0))
            if spent >= epochs or training is None:
                training, spent = account.begin(params), 0
            loss = go_on(training, round(epochs) - spent)
            running[repr(params)] = training, round(epochs)
            peer.tell(params, loss if math.isfinite(loss) else None)
            yield
    finally:
        peer.close()


def go_on(training: Iterator[float], epochs: int) -> float:
    """The loss after so many epochs more."""
    *_, loss = (next(training) for _ in range(epochs))
    return loss


def finite(loss: float) -> float:
    return loss if math.isfinite(loss) else WORST


METHODS: dict[str, Method] = {
    "deepbore": lambda account, seed: deepbore(account, seed=seed),
    "deepbore-median": lambda account, seed: pruned(account, MedianPruner(), seed=seed),
    "deepbore-halving": lambda account, seed: pruned(account, SuccessiveHalvingPruner(), seed=seed),
    "deepbore-in-full": lambda account, seed: in_full(account, seed=seed),
    "random-asha": lambda account, seed: deepbore(account, seed=seed, n_initial=NEVER),
    "optuna-tpe-hyperband": lambda account, seed: optuna(account, seed, "hyperband"),
    "optuna-tpe-median": lambda account, seed: optuna(account, seed, "median"),
    "optuna-tpe-halving": lambda account, seed: optuna(account, seed, "halving"),
    "optuna-random-halving": lambda account, seed: optuna(account, seed, "halving", by_chance=True),
    "optuna-tpe-rungs": tpe_by_rungs,
    "optuna-tpe-in-full": lambda account, seed: optuna(account, seed, "none"),
    "smac-multi-fidelity": smac,
}
