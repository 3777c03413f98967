"""A disc of feasible points, and classifiers of what was told of it."""

import math

import torch

from deepbore import Outcome
from deepbore.classifiers.feasibility import Feasibility
from deepbore.data.observations import Observations
from deepbore.labels import LabelledObservations, ValueGradedLabels
from plane import SQUARE


def disc(params):
    """x + y, at least 0.3 from (0, 0) and below the diagonal: best at 0.3 along the axis of x."""
    x, y = params["x"], params["y"]
    return Outcome(x + y, constraints=[0.3 - math.hypot(x, y), 10 * (y - x)])


def go_on(study, objective, n):
    for _ in range(n):
        (trial,) = study.ask()
        study.tell(trial, objective(trial.params))
    return study


def some_rows(n=30, seed=0, space=SQUARE, objective=disc):
    """Observations of random configurations."""
    observations = Observations(space)
    for row in observations.reserve(space.points.sample(n, torch.Generator().manual_seed(seed))):
        observations.tell(row, objective(observations.trial(row).params))
    return observations


def fitted(observations):
    feasibility = Feasibility()
    batch = LabelledObservations(observations, ValueGradedLabels()).labelled()
    feasibility.fit(batch, SQUARE, torch.Generator().manual_seed(0))
    return feasibility, batch
