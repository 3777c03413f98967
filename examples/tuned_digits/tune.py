"""Tunes train.py beside it: docs/guide.md goes through both.

    python tune.py --trials 30      # started again, it goes on with the trials that are missing

Needs deepbore[benchmarks], for scikit-learn's digits, and deepbore[plots].
"""

import argparse

from lightning.pytorch import seed_everything
from train import Network, train

import deepbore
from deepbore import plots

# --8<-- [start:space]
SPACE = deepbore.SearchSpace(
    {
        "lr": deepbore.Real(1e-4, 1.0, log=True),
        "width": deepbore.Integer(8, 256, log=True),
        "dropout": deepbore.Real(0.0, 0.8),
        "weight_decay": deepbore.Real(1e-6, 1.0, log=True),
        "batch_size": deepbore.Ordinal([16, 32, 64, 128]),
    }
)


# --8<-- [end:space]
# --8<-- [start:objective]
def trained(params: dict, epochs: int = 5) -> dict[str, float]:
    """The metrics of a training run with the hyperparameters of a configuration."""
    seed_everything(0, verbose=False)
    settings = dict(params)
    batch_size = settings.pop("batch_size")
    return train(Network(**settings), batch_size, epochs)


def objective(params: dict) -> float:
    """What is minimised."""
    return trained(params)["val_loss"]


# --8<-- [end:objective]
def main() -> None:
    """Tunes, draws, and trains the best configuration for longer."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=30, help="in all")
    trials = parser.parse_args().trials
    # --8<-- [start:run]
    study = deepbore.Study(SPACE, seed=0, journal="digits.jsonl", if_exists="load")
    study.optimize(objective, n_trials=max(0, trials - len(study.trials)))
    print(f"best of {len(study.trials)}: loss {study.best_trial.value:.4f} with {study.best_trial.params}")
    # --8<-- [end:run]
    # --8<-- [start:look]
    study.fit()
    plots.history(study).savefig("history.png")
    plots.importance(study).savefig("importance.png")
    plots.slices(study).savefig("slices.png")
    # --8<-- [end:look]
    # --8<-- [start:end]
    before = {"lr": 1e-3, "width": 32, "dropout": 0.0, "weight_decay": 0.0, "batch_size": 64}  # those of train.py
    for name, params in {"before": before, "tuned": study.best_trial.params}.items():
        print(f"{name}: accuracy {trained(params, epochs=20)['kept_accuracy']:.3f} on images that were kept")
    # --8<-- [end:end]


if __name__ == "__main__":
    main()
