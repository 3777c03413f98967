"""The data sets, which come with scikit-learn, and their splits for cross-validation."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from deepbore.problems.base import Array, benchmark_package

Split = tuple[Any, Any]  # rows to train on, rows held out


@dataclass(frozen=True)
class Data:
    """A data set.

    Args:
        loader: the function of sklearn.datasets that gives it.
        is_classification: whether its targets are classes.
        folds: of the cross-validation, >= 2; fewer where training takes longer.
        rows: how many of its rows to use, the first ones; None for all.
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
        """The rows of each fold, always the same; each class has its share in each fold."""
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
