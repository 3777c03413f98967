"""Which family on which data by which metric: the table of all training runs, and the problem that each one makes."""

import math
import warnings
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from deepbore.checks import one_of, whole
from deepbore.problems.base import Problem, benchmark_package
from deepbore.problems.training import families
from deepbore.problems.training.data import DATA
from deepbore.problems.training.levels import on_levels
from deepbore.problems.training.metrics import METRICS
from deepbore.problems.training.models import Model
from deepbore.problems.training.network import NetworkModel
from deepbore.space import Params, SearchSpace


@dataclass(frozen=True)
class Run:
    """A family of models, the data they learn from, and how they are measured."""

    model: Model
    data: str
    metric: str


RUNS = {
    "svm-digits": Run(families.SVM, "digits", "accuracy"),
    "svm-cancer": Run(families.SCALED_SVM, "cancer", "accuracy"),
    "svm-iris": Run(families.SVM, "iris", "accuracy"),
    "svm-diabetes": Run(families.SVM_REGRESSION, "diabetes", "RMSE"),
    "boosting-wine": Run(families.BOOSTING, "wine", "log loss"),
    "boosting-cancer": Run(families.HISTOGRAM_BOOSTING, "cancer", "log loss"),
    "boosting-diabetes": Run(families.HISTOGRAM_REGRESSION, "diabetes", "RMSE"),
    "forest-digits": Run(families.FORESTS, "digits", "log loss"),
    "forest-diabetes": Run(families.FOREST_REGRESSION, "diabetes", "RMSE"),
    "network-digits": Run(NetworkModel(is_classifier=True), "digits", "accuracy"),
    "network-cancer": Run(NetworkModel(is_classifier=True), "cancer", "log loss"),
    "network-diabetes": Run(NetworkModel(is_classifier=False), "diabetes", "RMSE"),
    "mlp-digits": Run(families.MLP, "digits", "log loss"),
    "mlp-wine": Run(families.MLP, "wine", "accuracy"),
    "mlp-diabetes": Run(families.MLP_REGRESSION, "diabetes", "RMSE"),
    "knn-digits": Run(families.REDUCED_KNN, "digits", "accuracy"),
    "knn-cancer": Run(families.KNN, "cancer", "log loss"),
    "logistic-cancer": Run(families.LOGISTIC, "cancer", "log loss"),
    "logistic-digits": Run(families.LOGISTIC, "digits", "accuracy"),
    "descent-wine": Run(families.DESCENT, "wine", "log loss"),
    "pipeline-digits": Run(families.PIPELINE, "digits", "accuracy"),
    "pipeline-diabetes": Run(families.PIPELINE_REGRESSION, "diabetes", "RMSE"),
    "pipeline-wine": Run(families.DISCRIMINANT, "wine", "log loss"),
}


class TrainingRun(Problem):
    """A model trained and measured by cross-validation on one of scikit-learn's data sets.

    Values are means over folds which are always the same. They depend on the configuration alone, on one machine and
    with one version of scikit-learn. Settings that do not go together raise scikit-learn's errors, and training that
    diverges raises an error or gives NaN or inf: failed trials. The optimum is unknown.

    Args:
        name: one of `RUNS`, a family and a data set, as "svm-digits".
        levels: how many levels each range has, >= 2, as in tables of training runs; of few whole numbers there are
            fewer. None to leave ranges as they are.

    Raises:
        SettingError: for an unknown name, or less than two levels.
        MissingPackage: without scikit-learn.

    Example:
        >>> problem = TrainingRun("svm-iris")
        >>> problem.direction, round(problem({"kernel": "rbf", "C": 1.0, "gamma": 0.1}), 2)
        ('maximize', 0.95)
    """

    def __init__(self, name: str, levels: int | None = None):
        one_of(RUNS, name=name)
        whole(2, levels=levels)
        self.name = name
        run = RUNS[name]
        parameters = dict(run.model.parameters)
        if levels is not None:
            parameters = {name: on_levels(each, levels) for name, each in parameters.items()}
        self.space = SearchSpace(parameters)
        self.directions = (METRICS[run.metric].direction,)
        self._x, self._y = DATA[run.data].load()
        self._splits = DATA[run.data].splits(self._x, self._y)

    def __call__(self, params: Params) -> float:
        """The mean over the folds of the metric.

        Raises:
            PointError: for a configuration outside the space.
            Exception: whatever scikit-learn raises where settings do not go together, or training fails.
        """
        self.space.encode([params])  # checks names and bounds
        with _one_thread(), warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")  # that training had not converged, or overflowed: the value shows it
            values = [self._fold(params, fold) for fold in range(len(self._splits))]
        return math.fsum(values) / len(values)

    def _fold(self, params: Params, fold: int) -> float:
        """The metric on the rows that a fold holds out."""
        run, (train, test) = RUNS[self.name], self._splits[fold]
        model = run.model.build(params)
        model.fit(self._x[train], self._y[train])
        return METRICS[run.metric].value(model, self._x[test], self._y[test])


def _one_thread() -> AbstractContextManager[Any]:
    """So small data gain nothing from threads, and sums are always added in the same order."""
    return cast(AbstractContextManager[Any], benchmark_package("threadpoolctl", "scikit-learn").threadpool_limits(1))
