"""Two objectives that are traded for one another, and observations of several values."""

import torch

from deepbore import Outcome
from deepbore.data.observations import Observations
from plane import SQUARE

BOTH = ("minimize", "maximize")


def trade_off(params):
    """Small and large at once: y is waste, x trades one for the other on a concave front."""
    return [params["x"] + params["y"], 1 - params["x"] ** 2 - params["y"]]


def told(values, directions=("minimize", "minimize"), constraints=None):
    observations = Observations(SQUARE, directions)
    points = SQUARE.points.sample(len(values), torch.Generator().manual_seed(0))
    for index, (row, value) in enumerate(zip(observations.reserve(points), values, strict=True)):
        limits = () if constraints is None else [constraints[index]]
        observations.tell(row, Outcome(value, constraints=limits))
    return observations


def run(study, n):
    for _ in range(n):
        (trial,) = study.ask()
        study.tell(trial, trade_off(trial.params))
    return study
