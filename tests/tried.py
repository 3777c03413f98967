"""What several rooms' tests try: studies after n more trials, and rows of noisy bowls."""

import numpy as np
from torch import nn


def tried(study, n, value=lambda params: (params["x"] - 0.3) ** 2 + params["y"]):
    for _ in range(n):
        (trial,) = study.ask()
        study.tell(trial, value(trial.params))
    return study


def with_a_task(study, rows=8):
    x = np.linspace(0, 1, rows)
    study.add({"x": x, "y": x[::-1]}, (x - 0.3) ** 2, task="before")
    return study


def noisy_bowl(n, seed=0):
    """Columns and values."""
    generator = np.random.default_rng(seed)
    x, y = generator.uniform(size=(2, n))
    values = (x - 0.4) ** 2 + (y - 0.6) ** 2 + 0.3 * generator.standard_normal(n)
    return {"x": x.tolist(), "y": y.tolist()}, values.tolist()


def net():
    """A function that makes a network, itself made anew, as in each process: it has another address in memory."""

    def network(features, outputs):
        return nn.Linear(features, outputs)

    return network


def round_bowl(params):
    return sum((value - 0.3) ** 2 for value in params.values())


def asked_by(study, n, objective=round_bowl):
    asked = []
    for _ in range(n):
        (trial,) = study.ask()
        study.tell(trial, objective(trial.params))
        asked.append(trial.params)
    return asked


def some_bowl(n, seed, chance=0.0):
    """n configurations, and values of a bowl around x = 0.2 with so much chance."""
    stream = np.random.default_rng(seed)
    x, y = stream.random((2, n))
    return {"x": x, "y": y}, (x - 0.2) ** 2 + (y - 0.5) ** 2 + chance * stream.normal(size=n)
