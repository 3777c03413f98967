"""An objective without a value in a large part of the space, which nobody knows beforehand: the run learns to leave it.

    python examples/failing_region.py --trials 60

Gradient descent with momentum on an ill-conditioned quadratic diverges where the learning rate is too large, and the
best learning rates are just below. A run that diverges is told as failed. Failed trials are class 0 for the classifier,
like the worst values, so it needs no penalty value, and the region where they are is left.
"""

import argparse

import numpy as np

import deepbore
from deepbore.data.outcome import Status

CURVATURES = np.geomspace(1, 100, 20)
SPACE = deepbore.SearchSpace({"lr": deepbore.Real(1e-4, 10, log=True), "momentum": deepbore.Real(0, 1)})


def descend(params: dict[str, float], steps: int = 60) -> float:
    """log10 of the loss after some steps from loss 1.

    Raises:
        FloatingPointError: if the loss grows.
    """
    x, velocity = np.ones(20), np.zeros(20)
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(steps):
            velocity = params["momentum"] * velocity - params["lr"] * CURVATURES * x
            x = x + velocity
        loss = float(CURVATURES @ x**2 / CURVATURES.sum())
    if not loss < 1:
        raise FloatingPointError("diverged")
    return float(np.log10(loss))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=60)
    trials = parser.parse_args().trials
    study = deepbore.Study(SPACE, seed=0)
    for _ in range(trials):
        (trial,) = study.ask()
        try:
            study.tell(trial, descend(trial.params))
        except FloatingPointError:
            study.tell(trial, failed=True)
    diverged = [trial.status == Status.FAILED for trial in study.trials]
    print(f"diverged: {sum(diverged[: trials // 2])} in the first half, {sum(diverged[trials // 2 :])} in the second")
    print(f"best log10 loss: {study.best_trial.value:.3f} with {study.best_trial.params}")
