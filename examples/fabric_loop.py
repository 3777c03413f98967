"""A training loop of your own under Lightning Fabric, on one device or on several, that a pruner may end early.

    python examples/fabric_loop.py --trials 20 --devices 2

The study is in the first process. That one reports the loss of each epoch and asks the pruner; what it says is
broadcast, so that all processes leave the loop together.
"""

import argparse

import torch
from lightning.fabric import Fabric
from sklearn.datasets import load_digits
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

import deepbore

IMAGES, LABELS = load_digits(return_X_y=True)
DIGITS = TensorDataset(torch.tensor(IMAGES / 16).float(), torch.tensor(LABELS))
SPACE = {"learning_rate": deepbore.Real(1e-4, 1e-1, log=True), "width": deepbore.Integer(8, 128, log=True)}
EPOCHS = 12


def train(fabric: Fabric, params: dict, trial: deepbore.Trial | None) -> tuple[float, bool]:
    """The loss on held-out digits, and whether the trial was pruned; the first process has the trial."""
    fabric.seed_everything(0, verbose=False)
    width = params["width"]
    network = torch.nn.Sequential(torch.nn.Linear(64, width), torch.nn.ReLU(), torch.nn.Linear(width, 10))
    network, optimizer = fabric.setup(network, torch.optim.Adam(network.parameters(), params["learning_rate"]))
    batches = fabric.setup_dataloaders(DataLoader(TensorDataset(*DIGITS[:1200]), 64, shuffle=True))
    images, labels = fabric.to_device(DIGITS[1200:])
    for epoch in range(EPOCHS):
        for inputs, digits in batches:
            optimizer.zero_grad()
            fabric.backward(cross_entropy(network(inputs), digits))
            optimizer.step()
        with torch.no_grad():
            loss = float(cross_entropy(network(images), labels))
        pruned = False
        if trial is not None:
            trial.report(loss, step=epoch + 1)
            pruned = trial.should_prune()
        if fabric.broadcast(pruned):
            return loss, True
    return loss, False


def main(trials: int, devices: int) -> deepbore.Study | None:
    """A study of so many trials, in the first process."""
    fabric = Fabric(accelerator="cpu", devices=devices)
    fabric.launch()
    study = deepbore.Study(SPACE, pruner=deepbore.MedianPruner(), seed=0) if fabric.is_global_zero else None
    for _ in range(trials):
        trial = study.ask_one() if study else None
        params = fabric.broadcast(trial.params if trial else {})
        loss, pruned = train(fabric, params, trial)
        if study:
            study.tell(trial, pruned=True) if pruned else study.tell(trial, loss)
    if study:
        spent = sum(len(trial.reports) for trial in study.trials)
        print(f"{study}: {spent} epochs; all of them in full would take {EPOCHS * trials}")
        print(f"smallest loss: {study.best_value:.3f} with {study.best_params}")
    return study


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--devices", type=int, default=1)
    given = parser.parse_args()
    main(given.trials, given.devices)
