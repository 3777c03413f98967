"""Eight gradient-boosted trees of xgboost, lightgbm and scikit-learn, in modes that have settings of their own."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from deepbore.problems.base import Array, benchmark_package
from deepbore.problems.benchmarks.ground.task import Function, GroundTask, Tunable, sklearn, within
from deepbore.space import Categorical, Integer, Ordinal, Params, Real

Rows = tuple[Array, Array]
ROUNDS = 40  # the maximum of boosting rounds: some hundredths of a second

DART: Mapping[str, Tunable] = {
    "rate_drop": Real(0.0, 0.5),
    "skip_drop": Real(0.0, 0.7),
    "normalize_type": Categorical(["tree", "forest"]),
}
XGBOOST: Mapping[str, Tunable] = {
    "eta": Real(1e-3, 1.0, log=True),
    "max_depth": Integer(1, 8),
    "min_child_weight": Real(0.1, 20.0, log=True),
    "subsample": Real(0.2, 1.0),
    "colsample_bytree": Real(0.2, 1.0),
    "reg_lambda": Real(1e-4, 1e2, log=True),
    "reg_alpha": Real(1e-4, 1e1, log=True),
    "gamma": Real(1e-4, 1e1, log=True),
    "rounds": Integer(5, ROUNDS, log=True),
}
GROWTH: Mapping[str, Tunable] = {
    "grow_policy": Categorical(["depthwise", "lossguide"]),
    **within("grow_policy", "lossguide", {"max_leaves": Integer(2, 64, log=True)}),
}
LIGHTGBM: Mapping[str, Tunable] = {
    "learning_rate": Real(1e-3, 1.0, log=True),
    "num_leaves": Integer(2, 64, log=True),
    "min_child_samples": Integer(1, 60, log=True),
    "feature_fraction": Real(0.2, 1.0),
    "lambda_l2": Real(1e-4, 1e2, log=True),
    "lambda_l1": Real(1e-4, 1e1, log=True),
    "max_bin": Ordinal([15, 31, 63, 127, 255]),
    "rounds": Integer(5, ROUNDS, log=True),
}
MODES: Mapping[str, Tunable] = {
    "boosting": Categorical(["gbdt", "dart", "rf"]),
    **within("boosting", "dart", {"drop_rate": Real(0.0, 0.5), "skip_drop": Real(0.0, 0.7)}),
    **within("boosting", "rf", {"bagging_fraction": Real(0.2, 0.95)}),
}


def halves(x: Array, y: Array) -> tuple[Rows, Rows]:
    """Two thirds of the rows to train on, and a third held out, always the same."""
    rows = np.random.default_rng(1).permutation(len(x))
    cut = 2 * len(x) // 3
    return (x[rows[:cut]], y[rows[:cut]]), (x[rows[cut:]], y[rows[cut:]])


def loss_of(classes: int) -> Callable[[Array, Array], float]:
    """The log loss of probabilities (n x classes) or the squared error, by the variance, of predictions (n)."""
    if classes:
        return lambda y, p: float(-np.log(np.clip(p[np.arange(len(y)), y.astype(int)], 1e-7, 1)).mean())
    return lambda y, p: float(np.mean((p - y) ** 2) / y.var())


def by_xgboost(rows: Callable[[], Rows], classes: int, space: Mapping[str, Tunable]) -> GroundTask:
    """Trees of xgboost; classes 0 for a regression."""

    def make() -> Function:
        xgboost = benchmark_package("xgboost", "xgboost-cpu", extra="trees")
        (x, y), (held_x, held_y) = halves(*rows())
        train, held = xgboost.DMatrix(x, y, nthread=1), xgboost.DMatrix(held_x, nthread=1)
        goal: dict[str, Any] = {"objective": "multi:softprob", "num_class": classes} if classes else {}

        def value(params: Params) -> float:
            given = {"nthread": 1, "seed": 0, "verbosity": 0, "tree_method": "hist", **goal, **params}
            model = xgboost.train(given, train, given.pop("rounds"))
            return loss_of(classes)(held_y, model.predict(held))

        return value

    return GroundTask(space, make)


def by_lightgbm(rows: Callable[[], Rows], classes: int, space: Mapping[str, Tunable]) -> GroundTask:
    """Trees of lightgbm; classes 0 for a regression."""

    def make() -> Function:
        lightgbm = benchmark_package("lightgbm", "lightgbm")
        (x, y), (held_x, held_y) = halves(*rows())
        goal: dict[str, Any] = {"objective": "multiclass", "num_class": classes} if classes else {}

        def value(params: Params) -> float:
            given = {"num_threads": 1, "seed": 0, "verbosity": -1, "deterministic": True, **goal, **params}
            given |= {"bagging_freq": 1} if "bagging_fraction" in given else {}
            model = lightgbm.train(given, lightgbm.Dataset(x, y), given.pop("rounds"))
            return loss_of(classes)(held_y, model.predict(held_x))

        return value

    return GroundTask(space, make)


def by_sklearn(path: str, rows: Callable[[], Rows], classes: int, space: Mapping[str, Tunable]) -> GroundTask:
    """An ensemble of scikit-learn's; classes 0 for a regression."""

    def make() -> Function:
        (x, y), (held_x, held_y) = halves(*rows())

        def value(params: Params) -> float:
            model = sklearn(path, random_state=0, **params).fit(x, y)
            return loss_of(classes)(held_y, model.predict_proba(held_x) if classes else model.predict(held_x))

        return value

    return GroundTask(space, make)


def table(name: str, count: int) -> Callable[[], Rows]:
    """Rows of a table of statsmodels, by its name in `training.data`; classes are numbered."""

    def load() -> Rows:
        from deepbore.problems.benchmarks.training.data import DATA

        x, y = DATA[name].load()
        rows = np.random.default_rng(0).permutation(len(x))[:count]
        y = np.unique(y, return_inverse=True)[1].astype(float) if DATA[name].is_classification else y
        return x[rows], y[rows]

    return load


def made(name: str, **settings: Any) -> Callable[[], Rows]:
    """Rows of one of scikit-learn's generators or data sets."""

    def load() -> Rows:
        x, y = sklearn(f"datasets.{name}", **settings)
        return np.asarray(x), (y - y.min()) / (1 if y.min() > -1 else 2) if y.dtype.kind == "i" else y

    return load


def digits() -> Rows:
    """The first handwritten digits."""
    x, y = sklearn("datasets.load_digits", return_X_y=True)
    return x[:350], y[:350].astype(float)


FRIEDMAN = made("make_friedman1", n_samples=600, n_features=12, noise=2.0, random_state=0)
CLASSES = made(
    "make_classification", n_samples=600, n_features=16, n_informative=8, n_classes=3, flip_y=0.1, random_state=0
)

TASKS: dict[str, GroundTask] = {
    "xgboost-party": by_xgboost(
        table("party", 500),
        7,
        {"booster": Categorical(["gbtree", "dart"]), **XGBOOST, **within("booster", "dart", DART), **GROWTH},
    ),
    "xgboost-visits": by_xgboost(
        table("visits", 700),
        0,
        {
            "booster": Categorical(["gbtree", "dart"]),
            **XGBOOST,
            **within("booster", "dart", DART),
            "objective": Categorical(["reg:squarederror", "reg:pseudohubererror", "count:poisson", "reg:tweedie"]),
            **within("objective", "reg:tweedie", {"tweedie_variance_power": Real(1.05, 1.95)}),
            **within("objective", "reg:pseudohubererror", {"huber_slope": Real(0.1, 100.0, log=True)}),
        },
    ),
    "xgboost-classes": by_xgboost(CLASSES, 3, {**XGBOOST, **GROWTH}),
    "lightgbm-friedman": by_lightgbm(FRIEDMAN, 0, {**LIGHTGBM, **MODES}),
    "lightgbm-fair": by_lightgbm(table("fair", 600), 2, {**LIGHTGBM, **MODES}),
    "lightgbm-digits": by_lightgbm(
        digits,
        10,
        {**LIGHTGBM, "rounds": Integer(2, 12, log=True), **MODES, "extra_trees": Categorical([False, True])},
    ),
    "histogram-schools": by_sklearn(
        "ensemble.HistGradientBoostingRegressor",
        table("schools", 300),
        0,
        {
            "learning_rate": Real(1e-3, 1.0, log=True),
            "max_iter": Integer(5, ROUNDS, log=True),
            "max_leaf_nodes": Integer(2, 64, log=True),
            "min_samples_leaf": Integer(1, 60, log=True),
            "l2_regularization": Real(1e-6, 1e2, log=True),
            "max_features": Real(0.1, 1.0),
            "max_bins": Ordinal([8, 16, 32, 64, 128, 255]),
            "loss": Categorical(["squared_error", "absolute_error", "gamma", "poisson", "quantile"]),
            **within("loss", "quantile", {"quantile": Real(0.1, 0.9)}),
        },
    ),
    "gradient-travel": by_sklearn(
        "ensemble.GradientBoostingClassifier",
        table("travel", 500),
        2,
        {
            "learning_rate": Real(1e-3, 1.0, log=True),
            "n_estimators": Integer(5, ROUNDS, log=True),
            "max_depth": Integer(1, 8),
            "subsample": Real(0.2, 1.0),
            "max_features": Real(0.1, 1.0),
            "min_samples_leaf": Integer(1, 40, log=True),
            "min_impurity_decrease": Real(1e-6, 1e-1, log=True),
            "loss": Categorical(["log_loss", "exponential"]),
            "criterion": Categorical(["friedman_mse", "squared_error"]),
        },
    ),
}
