"""Small spaces, a smooth objective on any of them, and a fit without a loop."""

import torch
from torch import Tensor

from deepbore.classifiers import Classifier
from deepbore.data.observations import Observations
from deepbore.labels import Labelling
from deepbore.labels.datamodule import LabelledObservations
from deepbore.loop.lightning import train
from deepbore.space import Categorical, Condition, Integer, Ordinal, Real, SearchSpace

TOY_SPACES = {
    "continuous": SearchSpace({"x": Real(0, 1), "y": Real(-5, 5), "lr": Real(1e-5, 1e-1, log=True)}),
    "finite": SearchSpace({"k": Ordinal([1, 2, 4, 8, 16]), "c": Categorical(["a", "b", "c"]), "n": Integer(1, 6)}),
    "mixed": SearchSpace(
        {
            "lr": Real(1e-5, 1e-1, log=True),
            "units": Integer(8, 1024, log=True),
            "optimizer": Categorical(["sgd", "adam"]),
            "momentum": Real(0, 0.99, when=Condition("optimizer", "sgd")),
            "nesterov": Categorical([True, False], when=Condition("optimizer", "sgd")),
        }
    ),
}


def toy_objective(space: SearchSpace, points: Tensor) -> Tensor:
    """A smooth bowl around the middle of each parameter's scale: points (n x d) -> values (n), least 0."""
    centre = 0.5 * space.bounds[1].floor()
    return ((points - centre) / space.bounds[1].clamp(min=1)).square().sum(-1)


def toy_data(space: SearchSpace, n: int = 60, labels: Labelling | None = None, seed: int = 0) -> LabelledObservations:
    """n random configurations with the bowl's values."""
    observations = Observations(space)
    points = space.sample(n, torch.Generator().manual_seed(seed))
    rows = observations.reserve(points)
    for row, value in zip(rows, toy_objective(space, points).tolist(), strict=True):
        observations.tell(row, value)
    return LabelledObservations(observations, labels)


def fit(classifier: Classifier, data: LabelledObservations, epochs: int = 10) -> Classifier:
    """Trains a classifier for some epochs, as the loop would, without proposing anything."""
    return train(classifier, data, epochs)
