"""Deepbore inside Optuna: a journal on disk, a conditional space, trials that crash and trials that are pruned.

Start it several times at once, and the processes share the work. To watch it:

    pip install optuna-dashboard && optuna-dashboard optuna_journal.log
"""

import math

import optuna
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend

from deepbore.integrations.optuna import DeepBoreSampler


def objective(trial: optuna.Trial) -> float:
    """The loss of a pretended training, after up to 10 epochs."""
    lr = trial.suggest_float("lr", 1e-5, 1.0, log=True)
    optimizer = trial.suggest_categorical("optimizer", ["sgd", "adam"])
    momentum = trial.suggest_float("momentum", 0.0, 0.99) if optimizer == "sgd" else 0.9
    if lr > 0.3:
        raise FloatingPointError("the loss is NaN")
    final = (math.log10(lr) + 2.5) ** 2 + (momentum - 0.8) ** 2
    for epoch in range(10):
        trial.report(final + 2.0**-epoch, epoch)
        if trial.should_prune():
            raise optuna.TrialPruned
    return final


if __name__ == "__main__":
    study = optuna.create_study(
        study_name="example",
        storage=JournalStorage(JournalFileBackend("optuna_journal.log")),
        sampler=DeepBoreSampler(),
        pruner=optuna.pruners.MedianPruner(n_startup_trials=5, n_warmup_steps=3),
        load_if_exists=True,
    )
    study.optimize(objective, n_trials=30, catch=(FloatingPointError,))
    print(f"best of {len(study.trials)} trials: {study.best_value:.4f} with {study.best_params}")
