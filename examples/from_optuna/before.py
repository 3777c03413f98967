"""A script for Optuna; after.py is the same with deepbore.

python before.py
"""

import optuna
from sklearn.datasets import load_digits
from sklearn.linear_model import SGDClassifier
from sklearn.model_selection import train_test_split

X, Y = load_digits(return_X_y=True)
KNOWN, HELD_OUT, LABELS, HELD_OUT_LABELS = train_test_split(X / 16, Y, random_state=0)


def objective(trial: optuna.Trial) -> float:
    """The accuracy on held-out digits after at most 20 epochs."""
    params = {
        "alpha": trial.suggest_float("alpha", 1e-6, 1e-1, log=True),
        "eta0": trial.suggest_float("eta0", 1e-4, 1, log=True),
        "penalty": trial.suggest_categorical("penalty", ["l2", "l1", "elasticnet"]),
    }
    if params["penalty"] == "elasticnet":
        params["l1_ratio"] = trial.suggest_float("l1_ratio", 0, 1)
    model = SGDClassifier(**params, learning_rate="adaptive", random_state=0)
    for epoch in range(20):
        model.partial_fit(KNOWN, LABELS, classes=range(10))
        trial.report(model.score(HELD_OUT, HELD_OUT_LABELS), epoch)
        if trial.should_prune():
            raise optuna.TrialPruned
    return model.score(HELD_OUT, HELD_OUT_LABELS)


if __name__ == "__main__":
    study = optuna.create_study(
        study_name="digits",
        storage="sqlite:///digits.db",
        load_if_exists=True,
        direction="maximize",
        sampler=optuna.samplers.TPESampler(seed=0),
        pruner=optuna.pruners.MedianPruner(n_startup_trials=5, n_warmup_steps=3),
    )
    study.enqueue_trial({"alpha": 1e-4, "penalty": "l2"})
    study.optimize(objective, n_trials=30)
    print(study.best_value, study.best_params)
    print(study.trials_dataframe()[["number", "value", "state"]].tail())
