"""before.py, moved from Optuna to deepbore: what was suggested within the objective is a space before it.

python after.py
"""

from sklearn.datasets import load_digits
from sklearn.linear_model import SGDClassifier
from sklearn.model_selection import train_test_split

import deepbore

X, Y = load_digits(return_X_y=True)
KNOWN, HELD_OUT, LABELS, HELD_OUT_LABELS = train_test_split(X / 16, Y, random_state=0)
SPACE = {
    "alpha": deepbore.Real(1e-6, 1e-1, log=True),
    "eta0": deepbore.Real(1e-4, 1, log=True),
    "penalty": deepbore.Categorical(["l2", "l1", "elasticnet"]),
    "l1_ratio": deepbore.Real(0, 1, when={"penalty": "elasticnet"}),
}


def objective(params: dict, trial: deepbore.Trial) -> float:
    """The accuracy on held-out digits after at most 20 epochs."""
    model = SGDClassifier(**params, learning_rate="adaptive", random_state=0)
    for epoch in range(20):
        model.partial_fit(KNOWN, LABELS, classes=range(10))
        trial.report(model.score(HELD_OUT, HELD_OUT_LABELS), epoch)
        if trial.should_prune():
            raise deepbore.TrialPruned
    return model.score(HELD_OUT, HELD_OUT_LABELS)


if __name__ == "__main__":
    study = deepbore.Study(
        SPACE,
        journal="digits.jsonl",
        if_exists="load",
        direction="maximize",
        seed=0,
        pruner=deepbore.MedianPruner(startup_trials=5, warmup_steps=3),
    )
    study.enqueue({"alpha": 1e-4, "penalty": "l2"})
    study.optimize(objective, n_trials=30)
    print(study.best_value, study.best_params)
    print(study.to_frame()[["id", "value", "status"]].tail())
