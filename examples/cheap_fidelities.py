"""Few epochs for most networks, many for the best: training on handwritten digits that goes on from checkpoints.

    python examples/cheap_fidelities.py --trials 60

A trial says how many epochs it may spend in all, and which earlier trial of the same configuration it continues. The
objective keeps its state in a file, named in the outcome's attributes, and goes on from there.
"""

import argparse
import tempfile
from pathlib import Path

import torch
from sklearn.datasets import load_digits
from torch.nn.functional import cross_entropy

import deepbore

IMAGES, LABELS = load_digits(return_X_y=True)
X, Y = torch.tensor(IMAGES / 16).float(), torch.tensor(LABELS)
TRAINING = 1200
SPACE = deepbore.SearchSpace(
    {
        "learning_rate": deepbore.Real(1e-4, 1e-1, log=True),
        "width": deepbore.Integer(8, 128, log=True),
        "dropout": deepbore.Real(0, 0.6),
    }
)


class Training:
    """The loss on held-out digits after the epochs of the trial's budget; checkpoints are kept in a folder."""

    def __init__(self, folder: str):
        self.folder = Path(folder)

    def __call__(self, params: dict, trial: deepbore.Trial) -> deepbore.Outcome:
        torch.manual_seed(trial.id)
        width = params["width"]
        network = torch.nn.Sequential(
            torch.nn.Linear(64, width), torch.nn.ReLU(), torch.nn.Dropout(params["dropout"]), torch.nn.Linear(width, 10)
        )
        optimizer = torch.optim.Adam(network.parameters(), params["learning_rate"])
        done = 0
        if trial.resume_from is not None:
            kept = torch.load(trial.resume_from.attributes["checkpoint"])  # `.get` where earlier results were added
            network.load_state_dict(kept["network"])
            optimizer.load_state_dict(kept["optimizer"])
            done = kept["epochs"]
        for _ in range(done, trial.budget):
            for batch in torch.randperm(TRAINING).split(64):
                optimizer.zero_grad()
                cross_entropy(network(X[batch]), Y[batch]).backward()
                optimizer.step()
        checkpoint = self.folder / f"{trial.id}.pt"
        state = {"network": network.state_dict(), "optimizer": optimizer.state_dict(), "epochs": trial.budget}
        torch.save(state, checkpoint)
        with torch.no_grad():
            loss = cross_entropy(network.eval()(X[TRAINING:]), Y[TRAINING:]).item()
        return deepbore.Outcome(loss, attributes={"checkpoint": str(checkpoint), "epochs": trial.budget - done})


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=60)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, torch.enable_grad():
        budget = deepbore.Budget("epochs", 1, 27)
        study = deepbore.Study(SPACE, budget=budget, seed=0)
        objective = Training(folder)
        for _ in range(given.trials):
            (trial,) = study.ask()
            study.tell(trial, objective(trial.params, trial))
    begun = [trial for trial in study.trials if trial.resume_from is None]
    spent = sum(trial.attributes["epochs"] for trial in study.trials)
    print(f"{len(begun)} networks in {spent} epochs; all of them in full would take {len(begun) * budget.top}")
    best = study.best_trial
    print(f"smallest loss after {best.budget} epochs: {best.value:.3f} with {best.params}")
