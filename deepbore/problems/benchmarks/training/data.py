"""Data sets of scikit-learn, their cross-validation splits, and the metrics of a trained model."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from deepbore.data.observations import Direction
from deepbore.problems.base import Array, benchmark_package

Split = tuple[Any, Any]  # rows to train on, rows held out


@dataclass(frozen=True)
class Data:
    """A data set.

    Args:
        loader: its function in sklearn.datasets.
        is_classification: whether its targets are classes.
        folds: of the cross-validation, >= 2; fewer where training takes longer.
        rows: number of its first rows to use; None for all.
    """

    loader: str
    is_classification: bool
    folds: int
    rows: int | None = None

    def load(self) -> tuple[Array, Array]:
        """Features (n x f) and targets (n)."""
        loader: Callable[..., tuple[Array, Array]] = getattr(_sklearn("datasets"), self.loader)
        x, y = loader(return_X_y=True)
        return x[: self.rows], y[: self.rows]

    def splits(self, x: Array, y: Array) -> list[Split]:
        """The rows of each fold, always the same; stratified for classification."""
        kind = "StratifiedKFold" if self.is_classification else "KFold"
        folds = getattr(_sklearn("model_selection"), kind)(self.folds, shuffle=True, random_state=0)
        return list(folds.split(x, y))


DATA = {
    "digits": Data("load_digits", True, folds=3, rows=500),
    "cancer": Data("load_breast_cancer", True, folds=3),
    "wine": Data("load_wine", True, folds=3),
    "iris": Data("load_iris", True, folds=5),
    "diabetes": Data("load_diabetes", False, folds=3),
}


def _sklearn(module: str) -> Any:
    return benchmark_package(f"sklearn.{module}", "scikit-learn")


@dataclass(frozen=True)
class Metric:
    """A measure of a trained model.

    Args:
        value: (model, held-out features n x f, targets n) -> value.
        direction: "minimize" or "maximize".
    """

    value: Callable[[Any, Array, Array], float]
    direction: Direction


def accuracy(model: Any, x: Array, y: Array) -> float:
    """The share of rows with the right class."""
    return float(np.mean(model.predict(x) == y))


def log_loss(model: Any, x: Array, y: Array) -> float:
    """The mean negative log of the probability of the true class."""
    loss = benchmark_package("sklearn.metrics", "scikit-learn").log_loss
    return float(loss(y, model.predict_proba(x), labels=model.classes_))


def root_mean_squared_error(model: Any, x: Array, y: Array) -> float:
    """The root of the mean squared error of the predictions."""
    return float(np.sqrt(np.mean((np.asarray(model.predict(x)).reshape(-1) - y) ** 2)))


METRICS = {
    "accuracy": Metric(accuracy, "maximize"),
    "log loss": Metric(log_loss, "minimize"),
    "RMSE": Metric(root_mean_squared_error, "minimize"),
}
