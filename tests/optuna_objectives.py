"""Objectives for Optuna, and studies of them."""

import math

import optuna

from deepbore.integrations.optuna import DeepBoreSampler


def bowl(trial):
    x, lr = trial.suggest_float("x", -1, 1), trial.suggest_float("lr", 1e-5, 1e-1, log=True)
    return (x - 0.3) ** 2 + (math.log10(lr) + 3) ** 2 / 4


def branches(trial):
    """Two branches with a parameter each; the best is 0, in the second."""
    if trial.suggest_categorical("branch", ["one", "two"]) == "one":
        return 0.2 + (trial.suggest_float("x", 0, 1) - 0.9) ** 2
    return (trial.suggest_float("y", 0, 1) - 0.1) ** 2


def optimised(objective, n_trials, sampler=None, **settings):
    study = optuna.create_study(sampler=sampler or DeepBoreSampler(seed=0), **settings)
    study.optimize(objective, n_trials=n_trials, catch=(ArithmeticError,))
    return study


def front(trial):
    """Points (x, 1 - x) are best, to be minimised and, with the other sign, maximised."""
    x = trial.suggest_float("x", 0, 1)
    away = sum((trial.suggest_float(f"y{i}", 0, 1) - 0.3) ** 2 for i in range(3))
    return x + away, x - 1 - away
