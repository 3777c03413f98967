"""How well a trained model does on rows that it has not seen."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from deepbore.data.observations import Direction
from deepbore.problems.base import Array, benchmark_package


@dataclass(frozen=True)
class Metric:
    """A measure of a trained model.

    Args:
        value: takes the model, and held-out features (n x f) and targets (n); gives the value.
        direction: "minimize" or "maximize".
    """

    value: Callable[[Any, Array, Array], float]
    direction: Direction


def accuracy(model: Any, x: Array, y: Array) -> float:
    """The share of rows whose class is predicted."""
    return float(np.mean(model.predict(x) == y))


def log_loss(model: Any, x: Array, y: Array) -> float:
    """The mean negative log of the probability of the true class."""
    loss = benchmark_package("sklearn.metrics", "scikit-learn").log_loss
    return float(loss(y, model.predict_proba(x), labels=model.classes_))


def root_mean_squared_error(model: Any, x: Array, y: Array) -> float:
    """The root of the mean squared distance of the predictions from the targets."""
    return float(np.sqrt(np.mean((np.asarray(model.predict(x)).reshape(-1) - y) ** 2)))


METRICS = {
    "accuracy": Metric(accuracy, "maximize"),
    "log loss": Metric(log_loss, "minimize"),
    "RMSE": Metric(root_mean_squared_error, "minimize"),
}
