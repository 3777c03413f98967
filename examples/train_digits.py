"""Tunes a plain torch training loop: handwritten digits, by ask and tell.

    python examples/train_digits.py --trials 40

The momentum is tuned only where the optimizer is SGD. Needs deepbore[benchmarks], for scikit-learn's digits.
"""

import argparse
from itertools import pairwise

import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn

import deepbore

IMAGES, LABELS = (torch.from_numpy(array) for array in load_digits(return_X_y=True))
IMAGES = IMAGES.float() / 16
TRAIN, HELD_OUT = slice(0, 1200), slice(1200, None)

SPACE = deepbore.SearchSpace(
    {
        "lr": deepbore.Real(1e-4, 3.0, log=True),
        "width": deepbore.Integer(8, 256, log=True),
        "depth": deepbore.Ordinal([1, 2, 3]),
        "optimizer": deepbore.Categorical(["sgd", "adam"]),
        "momentum": deepbore.Real(0, 0.99, when=deepbore.Condition("optimizer", "sgd")),
    }
)


def network(width: int, depth: int) -> nn.Sequential:
    """64 pixels -> `depth` hidden layers -> 10 logits."""
    sizes = [64] + [width] * depth
    hidden = [layer for pair in pairwise(sizes) for layer in (nn.Linear(*pair), nn.ReLU())]
    return nn.Sequential(*hidden, nn.Linear(sizes[-1], 10))


def optimizer_of(weights: list[Tensor], params: dict) -> torch.optim.Optimizer:
    """What a configuration says of the optimizer; `momentum` is in it only for SGD."""
    if params["optimizer"] == "sgd":
        return torch.optim.SGD(weights, lr=params["lr"], momentum=params["momentum"])
    return torch.optim.Adam(weights, lr=params["lr"])


def train_and_validate(params: dict, epochs: int = 5) -> float:
    """The cross-entropy on held-out digits after training; NaN, a failed trial, where training diverges."""
    torch.manual_seed(0)
    model = network(params["width"], params["depth"])
    optimizer = optimizer_of(list(model.parameters()), params)
    for _ in range(epochs):
        for rows in torch.randperm(1200).split(64):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(IMAGES[TRAIN][rows]), LABELS[TRAIN][rows]).backward()
            optimizer.step()
    with torch.no_grad():
        return float(nn.functional.cross_entropy(model(IMAGES[HELD_OUT]), LABELS[HELD_OUT]))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=40)
    study = deepbore.Study(SPACE, seed=0)
    for _ in range(parser.parse_args().trials):
        (trial,) = study.ask()
        value = train_and_validate(trial.params)
        study.tell(trial, value)
        print(f"{trial.id:3d}  loss {value:.4f}  {trial.params}")
    print(f"best loss {study.best_trial.value:.4f} with {study.best_trial.params}")
