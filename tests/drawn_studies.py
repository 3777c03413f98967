"""Studies to draw, and a classifier that is known."""

import math

import torch

from deepbore import Real, SearchSpace, Study
from deepbore.classifiers import Classifier
from deepbore.classifiers.link import Link
from deepbore.classifiers.posterior import PointEstimate
from deepbore.testing import TOY_SPACES

NAN = float("nan")
MIXED = TOY_SPACES["mixed"]
CUBE = SearchSpace({f"x{i}": Real(0, 1) for i in range(3)})
LINE = SearchSpace({"x": Real(1, 100, log=True)})


class Known(Classifier):
    """A classifier that is a formula: points (n x d) -> pi (n)."""

    link = Link.IDENTITY

    def __init__(self, formula):
        super().__init__()
        self.formula = formula

    def build(self, space, outputs):
        pass

    def fit(self, batch):
        return {}

    def posterior(self, points):
        return PointEstimate(self.formula(points), self.link, "Known")


def told(space, values, pending=0, **settings):
    """A study of random configurations with these values, NaN for failures, and some more that are pending."""
    study = Study(space, **settings)
    points = space.points.sample(len(values) + pending, torch.Generator().manual_seed(0))
    for row, value in zip(study.observations.reserve(points), values, strict=False):
        study.tell(row, value)
    return study


def mixed(params):
    """A value that `nesterov` has no part in."""
    loss = abs(math.log10(params["lr"]) + 2.5) + abs(math.log2(params["units"]) - 6) / 4
    return loss + (1.0 if params["optimizer"] == "adam" else abs(params["momentum"] - 0.9))


def trained():
    """40 trials in a mixed space, one failed and two pending, and a trained classifier."""
    study = told(MIXED, [], pending=42)
    for trial in study.trials[:40]:
        study.tell(trial, NAN if trial.id == 7 else mixed(trial.params))
    study.fit(epochs=3)
    return study
