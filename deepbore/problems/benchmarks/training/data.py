"""Data sets of scikit-learn and statsmodels, their cross-validation splits, and the metrics of a trained model."""

from collections.abc import Callable
from dataclasses import dataclass, field
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


@dataclass(frozen=True)
class Table(Data):
    """A table that comes with statsmodels.

    Args:
        loader: its module in statsmodels.datasets.
        is_classification, folds: as of any data set.
        rows: None.
        parts: the table -> features (n x f) and targets (n), as columns.
        every: 1 for all rows, k for each k-th.
    """

    parts: Callable[[Any], tuple[Any, Any]] = field(kw_only=True)
    every: int = 1

    def load(self) -> tuple[Array, Array]:
        """Features (n x f) and targets (n)."""
        module = benchmark_package(f"statsmodels.datasets.{self.loader}", "statsmodels", extra="heldout")
        x, y = self.parts(module.load_pandas().data.iloc[:: self.every])
        return x.to_numpy(np.float64), y.to_numpy(np.float64)


def _by_name(target: str, *others: str) -> Callable[[Any], tuple[Any, Any]]:
    """A column as target, and as features all but it and some others."""
    return lambda table: (table.drop(columns=[target, *others]), table[target])


def _schools(table: Any) -> tuple[Any, Any]:
    """The share of pupils above the median."""
    above, below = table["NABOVE"], table["NBELOW"]
    return table.drop(columns=["NABOVE", "NBELOW"]), above / (above + below)


def _firms(table: Any) -> tuple[Any, Any]:
    """What a firm invests; firms by their numbers."""
    return table.drop(columns="invest").assign(firm=table["firm"].factorize()[0]), table["invest"]


def _sunspots(table: Any, years: int = 11) -> tuple[Any, Any]:
    """The activity of a year from that of the years before."""
    activity = table["SUNACTIVITY"]
    before = {f"{lag} before": activity.shift(lag) for lag in range(1, years + 1)}
    return table.assign(**before).drop(columns=["YEAR", "SUNACTIVITY"]).iloc[years:], activity.iloc[years:]


DATA = {
    "digits": Data("load_digits", True, folds=3, rows=500),
    "cancer": Data("load_breast_cancer", True, folds=3),
    "wine": Data("load_wine", True, folds=3),
    "iris": Data("load_iris", True, folds=5),
    "diabetes": Data("load_diabetes", False, folds=3),
    "fair": Table(
        "fair", True, folds=3, every=10, parts=lambda table: (table.drop(columns="affairs"), table["affairs"] > 0)
    ),
    "vote": Table("anes96", True, folds=3, parts=_by_name("vote", "popul")),
    "party": Table("anes96", True, folds=3, parts=_by_name("PID", "popul", "vote")),
    "travel": Table("modechoice", True, folds=3, parts=_by_name("choice", "individual")),
    "visits": Table("randhie", False, folds=3, every=20, parts=_by_name("mdvis")),
    "schools": Table("star98", False, folds=3, parts=_schools),
    "firms": Table("grunfeld", False, folds=3, parts=_firms),
    "economy": Table("macrodata", False, folds=3, parts=_by_name("unemp")),
    "sunspots": Table("sunspots", False, folds=3, parts=_sunspots),
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
