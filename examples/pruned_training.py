"""Training on handwritten digits with Lightning, ended early where it is worse than the others after as many epochs.

    python examples/pruned_training.py --trials 30 --workers 2

Each worker is a process with a training of its own. The callback reports the validation loss of each epoch to the
trial, and ends the training if the study's pruner says so; beside it, EarlyStopping ends a training that has converged,
whose value counts.
"""

import argparse

import torch
from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.callbacks import EarlyStopping
from sklearn.datasets import load_digits
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

import deepbore
from deepbore.integrations.lightning import PruningCallback

IMAGES, LABELS = load_digits(return_X_y=True)
DIGITS = TensorDataset(torch.tensor(IMAGES / 16).float(), torch.tensor(LABELS))
TRAIN = DataLoader(TensorDataset(*DIGITS[:1200]), 64, shuffle=True)
VALIDATE = DataLoader(TensorDataset(*DIGITS[1200:]), 600)
SPACE = deepbore.SearchSpace(
    {
        "learning_rate": deepbore.Real(1e-4, 1e-1, log=True),
        "width": deepbore.Integer(8, 128, log=True),
        "dropout": deepbore.Real(0, 0.6),
    }
)
QUIET = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False, "enable_model_summary": False}


class Network(LightningModule):
    """A layer of this width, with dropout."""

    def __init__(self, learning_rate: float, width: int, dropout: float):
        super().__init__()
        self.learning_rate = learning_rate
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(64, width), torch.nn.ReLU(), torch.nn.Dropout(dropout), torch.nn.Linear(width, 10)
        )

    def training_step(self, batch: list[torch.Tensor]) -> torch.Tensor:
        """The loss of a batch."""
        images, labels = batch
        return cross_entropy(self.layers(images), labels)

    def validation_step(self, batch: list[torch.Tensor]) -> None:
        """Logs the loss on held-out digits."""
        self.log("val_loss", self.training_step(batch))

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """Adam."""
        return torch.optim.Adam(self.parameters(), self.learning_rate)


def objective(params: dict, trial: deepbore.Trial) -> float:
    """The loss on held-out digits after at most 27 epochs."""
    torch.manual_seed(trial.id)
    callbacks = [PruningCallback(trial, monitor="val_loss"), EarlyStopping("val_loss", patience=5)]
    trainer = Trainer(max_epochs=27, accelerator="cpu", callbacks=callbacks, **QUIET)
    trainer.fit(Network(**params), TRAIN, VALIDATE)  # raises TrialPruned where the trial is pruned
    return float(trainer.callback_metrics["val_loss"])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=30)
    parser.add_argument("--workers", type=int, default=1)
    given = parser.parse_args()
    pruner = deepbore.MedianPruner()
    study = deepbore.minimize(objective, SPACE, given.trials, pruner=pruner, workers=given.workers, seed=0).study
    spent = sum(len(trial.reports) for trial in study.trials)
    print(f"{study}: {spent} epochs; all of them in full would take {27 * len(study.trials)}")
    print(f"smallest loss: {study.best_trial.value:.3f} with {study.best_trial.params}")
