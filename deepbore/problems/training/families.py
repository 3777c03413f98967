"""The model families and their spaces. Parameters have the names of scikit-learn's arguments."""

import math

from deepbore.problems.training.models import SCALERS, Choice, Estimator, Parameter
from deepbore.space import Categorical, Condition, Integer, Ordinal, Params, Real

SEEDED = {"random_state": 0}
SCALER = Categorical(["none", *SCALERS])
CURVED = ["rbf", "poly", "sigmoid"]

# --- support vectors -------------------------------------------------------------------------------------------------

KERNEL: dict[str, Parameter] = {
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
HISTOGRAM: dict[str, Parameter] = {
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
FOREST: dict[str, Parameter] = {
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


PERCEPTRON: dict[str, Parameter] = {
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

NEIGHBOURS: dict[str, Parameter] = {
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
