"""`TrainingRun`, and the table of all tasks: which family of models on which data by which metric.

Parameters have the names of scikit-learn's arguments.
"""

import math
import warnings
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, TypeVar, cast

import numpy as np
import torch

from deepbore.problems.base import Problem, benchmark_package
from deepbore.problems.benchmarks.training.data import DATA, METRICS
from deepbore.problems.benchmarks.training.models import SCALERS, Choice, Estimator, Model, NetworkModel, Tunable
from deepbore.space import Categorical, Condition, Integer, Ordinal, Parameter, Params, Real, SearchSpace
from deepbore.validation import one_of, whole

SEEDED = {"random_state": 0}
SCALER = Categorical(["none", *SCALERS])
CURVED = ["rbf", "poly", "sigmoid"]

# --- support vectors -------------------------------------------------------------------------------------------------

KERNEL: dict[str, Tunable] = {
    "kernel": Categorical(["linear", *CURVED]),
    "C": Real(1e-3, 1e4, log=True),
    "gamma": Real(1e-5, 1e2, log=True, when=Condition("kernel", CURVED)),
    "degree": Integer(2, 5, when=Condition("kernel", "poly")),
    "coef0": Real(-1.0, 3.0, when=Condition("kernel", ["poly", "sigmoid"])),
}
SVM = Estimator("svm.SVC", KERNEL, {"max_iter": 5000})
SCALED_SVM = Estimator(
    "svm.SVC", {"scaler": SCALER, **KERNEL, "class_weight": Categorical([None, "balanced"])}, {"max_iter": 5000}
)
SVM_REGRESSION = Estimator(
    "svm.SVR", {"scaler": SCALER, **KERNEL, "epsilon": Real(1e-3, 1e2, log=True)}, {"max_iter": 5000}
)

# --- trees -----------------------------------------------------------------------------------------------------------

BOOSTING = Estimator(
    "ensemble.GradientBoostingClassifier",
    {
        "learning_rate": Real(1e-3, 1.0, log=True),
        "n_estimators": Integer(5, 40, log=True),
        "max_depth": Integer(1, 6),
        "subsample": Real(0.2, 1.0),
        "max_features": Real(0.1, 1.0),
        "min_samples_leaf": Integer(1, 30, log=True),
    },
    SEEDED,
)
HISTOGRAM: dict[str, Tunable] = {
    "learning_rate": Real(1e-3, 1.0, log=True),
    "max_iter": Integer(5, 80, log=True),
    "max_leaf_nodes": Integer(2, 64, log=True),
    "min_samples_leaf": Integer(1, 100, log=True),
    "l2_regularization": Real(1e-6, 1e2, log=True),
    "max_features": Real(0.1, 1.0),
    "max_bins": Ordinal([8, 16, 32, 64, 128, 255]),
}
HISTOGRAM_BOOSTING = Estimator("ensemble.HistGradientBoostingClassifier", HISTOGRAM, SEEDED)
HISTOGRAM_REGRESSION = Estimator(
    "ensemble.HistGradientBoostingRegressor",
    {
        **HISTOGRAM,
        "loss": Categorical(["squared_error", "absolute_error", "gamma", "poisson", "quantile"]),
        "quantile": Real(0.1, 0.9, when=Condition("loss", "quantile")),
    },
    SEEDED,
)
FOREST: dict[str, Tunable] = {
    "n_estimators": Integer(3, 40, log=True),
    "max_depth": Integer(1, 20, log=True),
    "max_features": Real(0.05, 1.0),
    "min_samples_leaf": Integer(1, 30, log=True),
    "bootstrap": Categorical([True, False]),
    "max_samples": Real(0.1, 1.0, when=Condition("bootstrap", True)),
}
CRITERION = {"criterion": Categorical(["gini", "entropy"])}
FORESTS = Choice(
    {
        "random": Estimator("ensemble.RandomForestClassifier", FOREST | CRITERION, SEEDED),
        "extra": Estimator("ensemble.ExtraTreesClassifier", FOREST | CRITERION, SEEDED),
    }
)
FOREST_REGRESSION = Estimator(
    "ensemble.RandomForestRegressor",
    FOREST | {"criterion": Categorical(["squared_error", "poisson", "friedman_mse"])},
    SEEDED,
)

# --- networks by scikit-learn ----------------------------------------------------------------------------------------


def _layers(params: Params) -> Params:
    """`width` and `depth` as the sizes of the hidden layers."""
    rest = {name: value for name, value in params.items() if name not in {"width", "depth"}}
    return rest | {"hidden_layer_sizes": (params["width"],) * params["depth"]}


PERCEPTRON: dict[str, Tunable] = {
    "scaler": SCALER,
    "width": Integer(4, 64, log=True),
    "depth": Ordinal([1, 2, 3]),
    "activation": Categorical(["relu", "tanh", "logistic", "identity"]),
    "alpha": Real(1e-6, 10.0, log=True),
    "solver": Categorical(["lbfgs", "sgd", "adam"]),
    "learning_rate_init": Real(1e-4, 1.0, log=True, when=Condition("solver", ["sgd", "adam"])),
    "batch_size": Ordinal([16, 32, 64, 128], when=Condition("solver", ["sgd", "adam"])),
    "momentum": Real(0.0, 0.99, when=Condition("solver", "sgd")),
    "learning_rate": Categorical(["constant", "invscaling", "adaptive"], when=Condition("solver", "sgd")),
}
FEW_EPOCHS = {**SEEDED, "max_iter": 15}
MLP = Estimator("neural_network.MLPClassifier", PERCEPTRON, FEW_EPOCHS, _layers)
MLP_REGRESSION = Estimator("neural_network.MLPRegressor", PERCEPTRON, FEW_EPOCHS, _layers)

# --- neighbours ------------------------------------------------------------------------------------------------------

NEIGHBOURS: dict[str, Tunable] = {
    "n_neighbors": Integer(1, 60, log=True),
    "weights": Categorical(["uniform", "distance"]),
    "metric": Categorical(["minkowski", "cosine", "chebyshev"]),
    "p": Real(1.0, 5.0, when=Condition("metric", "minkowski")),
}
KNN = Estimator("neighbors.KNeighborsClassifier", {"scaler": SCALER, **NEIGHBOURS})
REDUCED_KNN = Estimator(
    "neighbors.KNeighborsClassifier", {"scaler": SCALER, "components": Integer(2, 64, log=True), **NEIGHBOURS}
)

# --- linear models ---------------------------------------------------------------------------------------------------


def _penalty(params: Params) -> Params:
    """`penalty` as the share of the absolute values in it, or no penalty at all. Not every solver takes every one."""
    rest = {name: value for name, value in params.items() if name != "penalty"}
    settings = {"l2": {}, "l1": {"l1_ratio": 1.0}, "elasticnet": {}, "none": {"C": math.inf}}
    return rest | settings[params["penalty"]]


LOGISTIC = Estimator(
    "linear_model.LogisticRegression",
    {
        "scaler": SCALER,
        "solver": Categorical(["lbfgs", "liblinear", "newton-cg", "newton-cholesky", "sag", "saga"]),
        "penalty": Categorical(["l2", "l1", "elasticnet", "none"]),
        "C": Real(1e-4, 1e4, log=True, when=Condition("penalty", ["l2", "l1", "elasticnet"])),
        "l1_ratio": Real(0.0, 1.0, when=Condition("penalty", "elasticnet")),
        "class_weight": Categorical([None, "balanced"]),
        "max_iter": Integer(5, 100, log=True),
    },
    SEEDED,
    _penalty,
)
DESCENT = Estimator(
    "linear_model.SGDClassifier",
    {
        "scaler": SCALER,
        "loss": Categorical(["log_loss", "modified_huber", "hinge"]),  # the last one gives no probabilities
        "penalty": Categorical(["l2", "l1", "elasticnet"]),
        "alpha": Real(1e-6, 1.0, log=True),
        "l1_ratio": Real(0.0, 1.0, when=Condition("penalty", "elasticnet")),
        "learning_rate": Categorical(["optimal", "constant", "invscaling", "adaptive"]),
        "eta0": Real(1e-4, 10.0, log=True, when=Condition("learning_rate", ["constant", "invscaling", "adaptive"])),
        "power_t": Real(0.0, 1.0, when=Condition("learning_rate", "invscaling")),
        "average": Categorical([False, True]),
    },
    {**SEEDED, "max_iter": 30},
)

# --- a choice of model -----------------------------------------------------------------------------------------------

PIPELINE = Choice(
    {
        "svm": SVM,
        "knn": Estimator("neighbors.KNeighborsClassifier", NEIGHBOURS),
        "forest": Estimator("ensemble.ExtraTreesClassifier", FOREST, SEEDED),
        "bayes": Estimator("naive_bayes.GaussianNB", {"var_smoothing": Real(1e-12, 1.0, log=True)}),
    },
    {"scaler": SCALER, "components": Integer(2, 64, log=True)},
)
PIPELINE_REGRESSION = Choice(
    {
        "ridge": Estimator("linear_model.Ridge", {"alpha": Real(1e-4, 1e4, log=True)}),
        "elastic": Estimator(
            "linear_model.ElasticNet", {"alpha": Real(1e-4, 1e2, log=True), "l1_ratio": Real(0.0, 1.0)}
        ),
        "kernel": Estimator(
            "kernel_ridge.KernelRidge",
            {
                "alpha": Real(1e-6, 1e2, log=True),
                "kernel": Categorical(["rbf", "laplacian", "polynomial", "sigmoid"]),
                "gamma": Real(1e-4, 1e2, log=True),
                "degree": Integer(2, 5, when=Condition("kernel", "polynomial")),
            },
        ),
        "knn": Estimator("neighbors.KNeighborsRegressor", NEIGHBOURS),
        "boosting": Estimator("ensemble.HistGradientBoostingRegressor", HISTOGRAM, SEEDED),
    },
    {"scaler": SCALER, "components": Integer(1, 10)},
)
DISCRIMINANT = Choice(
    {
        "linear": Estimator(
            "discriminant_analysis.LinearDiscriminantAnalysis",
            {
                "solver": Categorical(["svd", "lsqr", "eigen"]),  # the first one takes no shrinkage
                "shrinks": Categorical([False, True]),
                "shrinkage": Real(0.0, 1.0, when=Condition("shrinks", True)),
            },
            arguments=lambda params: {name: value for name, value in params.items() if name != "shrinks"},
        ),
        "quadratic": Estimator(
            "discriminant_analysis.QuadraticDiscriminantAnalysis", {"reg_param": Real(1e-6, 1.0, log=True)}
        ),
        "bayes": Estimator("naive_bayes.GaussianNB", {"var_smoothing": Real(1e-12, 1.0, log=True)}),
        "knn": Estimator("neighbors.KNeighborsClassifier", NEIGHBOURS),
    },
    {"scaler": SCALER, "components": Integer(1, 13)},
)


# --- ranges as levels ------------------------------------------------------------------------------------------------

Kind = TypeVar("Kind", bound=Parameter)
DIGITS = 6  # significant, of the levels of real numbers


def on_levels(parameter: Kind, count: int) -> Kind | Ordinal:
    """A range as an ordinal grid from end to end, evenly spaced on its own scale; choices stay as they are.

    Args:
        parameter: of a space.
        count: number of levels, >= 2; a range of fewer whole numbers has fewer.

    Example:
        >>> from deepbore import Integer
        >>> on_levels(Integer(1, 100, log=True), 3)
        Ordinal([1, 10, 100])
    """
    if not parameter.is_numeric:
        return parameter
    spaced = parameter.decode(torch.linspace(0, parameter.upper, count, dtype=torch.float64))
    values = [value if isinstance(value, int) else float(f"{value:.{DIGITS}g}") for value in spaced]
    return Ordinal(list(dict.fromkeys(values)), when=parameter.when)


# --- tasks -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TrainingTask:
    """A family of models, the data they are trained on, and the metric."""

    model: Model
    data: str
    metric: str


RUNS = {
    "svm-digits": TrainingTask(SVM, "digits", "accuracy"),
    "svm-cancer": TrainingTask(SCALED_SVM, "cancer", "accuracy"),
    "svm-iris": TrainingTask(SVM, "iris", "accuracy"),
    "svm-diabetes": TrainingTask(SVM_REGRESSION, "diabetes", "RMSE"),
    "boosting-wine": TrainingTask(BOOSTING, "wine", "log loss"),
    "boosting-cancer": TrainingTask(HISTOGRAM_BOOSTING, "cancer", "log loss"),
    "boosting-diabetes": TrainingTask(HISTOGRAM_REGRESSION, "diabetes", "RMSE"),
    "forest-digits": TrainingTask(FORESTS, "digits", "log loss"),
    "forest-diabetes": TrainingTask(FOREST_REGRESSION, "diabetes", "RMSE"),
    "network-digits": TrainingTask(NetworkModel(is_classifier=True), "digits", "accuracy"),
    "network-cancer": TrainingTask(NetworkModel(is_classifier=True), "cancer", "log loss"),
    "network-diabetes": TrainingTask(NetworkModel(is_classifier=False), "diabetes", "RMSE"),
    "mlp-digits": TrainingTask(MLP, "digits", "log loss"),
    "mlp-wine": TrainingTask(MLP, "wine", "accuracy"),
    "mlp-diabetes": TrainingTask(MLP_REGRESSION, "diabetes", "RMSE"),
    "knn-digits": TrainingTask(REDUCED_KNN, "digits", "accuracy"),
    "knn-cancer": TrainingTask(KNN, "cancer", "log loss"),
    "logistic-cancer": TrainingTask(LOGISTIC, "cancer", "log loss"),
    "logistic-digits": TrainingTask(LOGISTIC, "digits", "accuracy"),
    "descent-wine": TrainingTask(DESCENT, "wine", "log loss"),
    "pipeline-digits": TrainingTask(PIPELINE, "digits", "accuracy"),
    "pipeline-diabetes": TrainingTask(PIPELINE_REGRESSION, "diabetes", "RMSE"),
    "pipeline-wine": TrainingTask(DISCRIMINANT, "wine", "log loss"),
}
RUNS_OF_STATSMODELS = {
    "svm-fair": TrainingTask(SCALED_SVM, "fair", "accuracy"),
    "knn-fair": TrainingTask(KNN, "fair", "log loss"),
    "boosting-vote": TrainingTask(BOOSTING, "vote", "log loss"),
    "logistic-vote": TrainingTask(LOGISTIC, "vote", "log loss"),
    "pipeline-party": TrainingTask(DISCRIMINANT, "party", "log loss"),
    "boosting-travel": TrainingTask(HISTOGRAM_BOOSTING, "travel", "log loss"),
    "boosting-visits": TrainingTask(HISTOGRAM_REGRESSION, "visits", "RMSE"),
    "mlp-schools": TrainingTask(MLP_REGRESSION, "schools", "RMSE"),
    "pipeline-schools": TrainingTask(PIPELINE_REGRESSION, "schools", "RMSE"),
    "network-firms": TrainingTask(NetworkModel(is_classifier=False), "firms", "RMSE"),
    "svm-economy": TrainingTask(SVM_REGRESSION, "economy", "RMSE"),
    "forest-sunspots": TrainingTask(FOREST_REGRESSION, "sunspots", "RMSE"),
}
TASKS = RUNS | RUNS_OF_STATSMODELS


class TrainingRun(Problem):
    """A model trained and measured by cross-validation on a data set of scikit-learn or statsmodels.

    Values are means over fixed folds. They depend on the configuration alone, on one machine and with one version of
    scikit-learn. Incompatible settings raise scikit-learn's errors, and training that diverges raises an error or gives
    NaN or inf: failed trials. The optimum is unknown.

    Args:
        name: one of `TASKS`, a family and a data set, as "svm-digits".
        levels: number of levels of each range, >= 2, as in tables of training runs; a range of fewer whole numbers has
            fewer. None to keep the ranges.

    Raises:
        SettingError: for an unknown name, or less than two levels.
        MissingPackage: without scikit-learn, or statsmodels for its data.

    Example:
        >>> problem = TrainingRun("svm-iris")
        >>> problem.direction, round(problem({"kernel": "rbf", "C": 1.0, "gamma": 0.1}), 2)
        ('maximize', 0.95)
    """

    def __init__(self, name: str, levels: int | None = None):
        one_of(TASKS, name=name)
        whole(2, levels=levels)
        self.name = name
        task = TASKS[name]
        parameters = dict(task.model.parameters)
        if levels is not None:
            parameters = {name: on_levels(each, levels) for name, each in parameters.items()}
        self.space = SearchSpace(parameters)
        self.directions = (METRICS[task.metric].direction,)
        self._x, self._y = DATA[task.data].load()
        self._splits = DATA[task.data].splits(self._x, self._y)

    def __call__(self, params: Params) -> float:
        """The mean over the folds of the metric.

        Raises:
            PointError: for a configuration outside the space.
            Exception: of scikit-learn, for incompatible settings or failed training.
        """
        self.space.encode([params])  # checks names and bounds
        with _one_thread(), warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")  # of convergence and overflow, which the value shows
            values = [self._fold(params, fold) for fold in range(len(self._splits))]
        return math.fsum(values) / len(values)

    def _fold(self, params: Params, fold: int) -> float:
        """The metric on the held-out rows of a fold."""
        task, (train, test) = TASKS[self.name], self._splits[fold]
        model = task.model.build(params)
        model.fit(self._x[train], self._y[train])
        return METRICS[task.metric].value(model, self._x[test], self._y[test])


def _one_thread() -> AbstractContextManager[Any]:
    """A context with one thread: small data gain nothing from more, and the order of sums is fixed."""
    return cast(AbstractContextManager[Any], benchmark_package("threadpoolctl", "scikit-learn").threadpool_limits(1))
