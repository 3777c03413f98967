"""Six pipelines of scikit-learn with a choice of model and of preprocessing, each with settings of its own."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from deepbore.problems.base import Array, benchmark_package
from deepbore.problems.benchmarks.ground.boosting import halves, table
from deepbore.problems.benchmarks.ground.task import Function, GroundTask, Tunable, sklearn, within
from deepbore.space import Categorical, Condition, Integer, Params, Real

SCALERS = {
    "standard": "preprocessing.StandardScaler",
    "minmax": "preprocessing.MinMaxScaler",
    "robust": "preprocessing.RobustScaler",
    "quantile": "preprocessing.QuantileTransformer",
    "power": "preprocessing.PowerTransformer",
}
KERNEL: Mapping[str, Tunable] = {
    "kernel": Categorical(["rbf", "poly", "sigmoid"]),
    "C": Real(1e-2, 1e3, log=True),
    "gamma": Real(1e-4, 1e1, log=True),
    "degree": Integer(2, 4, when=Condition("kernel", "poly")),
}
NEIGHBOURS: Mapping[str, Tunable] = {
    "n_neighbors": Integer(1, 50, log=True),
    "weights": Categorical(["uniform", "distance"]),
    "p": Real(1.0, 4.0),
}
FOREST: Mapping[str, Tunable] = {
    "n_estimators": Integer(3, 20, log=True),
    "max_depth": Integer(2, 16, log=True),
    "max_features": Real(0.05, 1.0),
    "min_samples_leaf": Integer(1, 30, log=True),
}
Models = Mapping[str, tuple[str, Mapping[str, Tunable], Params]]
CLASSIFIERS: Models = {
    "logistic": ("linear_model.LogisticRegression", {"C": Real(1e-4, 1e3, log=True)}, {"max_iter": 40}),
    "support": ("svm.SVC", KERNEL, {"max_iter": 2000}),
    "neighbours": ("neighbors.KNeighborsClassifier", NEIGHBOURS, {}),
    "forest": ("ensemble.ExtraTreesClassifier", FOREST, {"random_state": 0}),
    "bayes": ("naive_bayes.GaussianNB", {"var_smoothing": Real(1e-12, 1.0, log=True)}, {}),
    "descent": (
        "linear_model.SGDClassifier",
        {
            "loss": Categorical(["log_loss", "modified_huber", "hinge"]),
            "alpha": Real(1e-6, 1.0, log=True),
            "l1_ratio": Real(0.0, 1.0),
        },
        {"penalty": "elasticnet", "random_state": 0, "max_iter": 20},
    ),
}
REGRESSORS: Models = {
    "elastic": (
        "linear_model.ElasticNet",
        {"alpha": Real(1e-4, 1e1, log=True), "l1_ratio": Real(0.0, 1.0)},
        {"max_iter": 200},
    ),
    "support": ("svm.SVR", {**KERNEL, "epsilon": Real(1e-3, 1.0, log=True)}, {"max_iter": 2000}),
    "neighbours": ("neighbors.KNeighborsRegressor", NEIGHBOURS, {}),
    "forest": ("ensemble.ExtraTreesRegressor", FOREST, {"random_state": 0}),
    "kernel": (
        "kernel_ridge.KernelRidge",
        {"alpha": Real(1e-5, 1e1, log=True), "gamma": Real(1e-4, 1e1, log=True)},
        {"kernel": "rbf"},
    ),
}
REDUCTIONS: Mapping[str, Mapping[str, Tunable]] = {
    "none": {},
    "components": {"components": Real(0.1, 1.0), "whiten": Categorical([False, True])},
    "best": {"best": Real(0.1, 1.0)},
    "nystroem": {"landmarks": Integer(5, 60, log=True), "landmark_gamma": Real(1e-4, 1e1, log=True)},
}


def of_models(models: Models) -> dict[str, Tunable]:
    """A choice of model and the parameters of each, as "support_C"."""
    found: dict[str, Tunable] = {"model": Categorical(list(models))}
    for name, (_, own, _) in models.items():
        for key, each in own.items():
            outer = [Condition(f"{name}_{rule.parent}", rule.values) for rule in each.conditions]
            found |= {f"{name}_{key}": replace(each, when=outer or [Condition("model", name)])}
    return found


def of_reductions(*kinds: str) -> dict[str, Tunable]:
    """A scaler and a reduction of the features, with settings of its own."""
    found: dict[str, Tunable] = {
        "scaler": Categorical(["none", *SCALERS]),
        "reduction": Categorical(["none", *kinds]),
    }
    for kind in kinds:
        found |= within("reduction", kind, REDUCTIONS[kind])
    return found


def built(params: Params, features: int, models: Models, classes: int) -> Any:
    """The pipeline of a configuration."""
    steps: list[Any] = []
    if params["scaler"] != "none":
        settings = {"n_quantiles": 50} if params["scaler"] == "quantile" else {}
        steps.append(sklearn(SCALERS[params["scaler"]], **settings))
    steps += reduced(params, features, classes)
    return joined(steps, params, models)


def joined(steps: list[Any], params: Params, models: Models) -> Any:
    """A pipeline of some steps and the chosen model."""
    name = params["model"]
    path, _, fixed = models[name]
    own = {key.removeprefix(f"{name}_"): value for key, value in params.items() if key.startswith(f"{name}_")}
    return benchmark_package("sklearn.pipeline", "scikit-learn").make_pipeline(*steps, sklearn(path, **fixed, **own))


def reduced(params: Params, features: int, classes: int) -> list[Any]:
    """The step that reduces the features, if any."""
    kind = params["reduction"]
    if kind == "components":
        count = max(1, round(params["components"] * features))
        return [sklearn("decomposition.PCA", n_components=count, whiten=params["whiten"], random_state=0)]
    if kind == "best":
        selection = benchmark_package("sklearn.feature_selection", "scikit-learn")
        score = selection.f_classif if classes else selection.f_regression
        return [selection.SelectKBest(score, k=max(1, round(params["best"] * features)))]
    if kind == "nystroem":
        gamma, count = params["landmark_gamma"], params["landmarks"]
        return [sklearn("kernel_approximation.Nystroem", gamma=gamma, n_components=count, random_state=0)]
    return []


def pipeline(
    rows: Callable[[], tuple[Array, Array]],
    models: Models,
    reductions: tuple[str, ...],
    classes: bool,
) -> GroundTask:
    """A choice of models and reductions on some rows: the error, or the squared error by the variance."""

    def make() -> Function:
        (x, y), (held_x, held_y) = halves(*rows())

        def value(params: Params) -> float:
            model = built(params, x.shape[1], models, classes).fit(x, y)
            wrong = np.asarray(model.predict(held_x)).reshape(-1) - held_y
            return float(np.mean(wrong != 0) if classes else np.mean(wrong**2) / held_y.var())

        return value

    return GroundTask({**of_models(models), **of_reductions(*reductions)}, make)


def topics() -> tuple[list[str], Array]:
    """Paragraphs of Python's own manual, and the section (of eight) that each is from."""
    from pydoc_data.topics import topics as manual

    sections = sorted(manual, key=lambda name: (-len(manual[name]), name))[:8]
    texts = [(part, number) for number, name in enumerate(sections) for part in manual[name].split("\n\n")]
    kept = [(part, number) for part, number in texts if len(part) > 80]
    drawn = np.random.default_rng(0).permutation(len(kept))[:360]
    return [kept[row][0] for row in drawn], np.array([kept[row][1] for row in drawn])


TEXT_MODELS: Models = {
    "bayes": ("naive_bayes.MultinomialNB", {"alpha": Real(1e-4, 10.0, log=True)}, {}),
    "complement": (
        "naive_bayes.ComplementNB",
        {"alpha": Real(1e-4, 10.0, log=True), "norm": Categorical([False, True])},
        {},
    ),
    "logistic": CLASSIFIERS["logistic"],
    "descent": CLASSIFIERS["descent"],
}


def text() -> GroundTask:
    """Words or characters, counted or weighted, and a linear model."""
    space: dict[str, Tunable] = {
        **of_models(TEXT_MODELS),
        "analyzer": Categorical(["word", "char_wb"]),
        "words": Integer(1, 2, when=Condition("analyzer", "word")),
        "stop": Categorical([False, True], when=Condition("analyzer", "word")),
        "shortest": Integer(1, 3, when=Condition("analyzer", "char_wb")),
        "longer": Integer(0, 2, when=Condition("analyzer", "char_wb")),
        "weights": Categorical(["counts", "tfidf"]),
        "sublinear": Categorical([False, True], when=Condition("weights", "tfidf")),
        "at_most": Real(0.05, 1.0),
        "at_least": Integer(1, 5),
        "features": Integer(50, 3000, log=True),
    }

    def make() -> Function:
        texts, y = topics()
        cut = 2 * len(texts) // 3

        def value(params: Params) -> float:
            model = built_text(params).fit(texts[:cut], y[:cut])
            return float(np.mean(model.predict(texts[cut:]) != y[cut:]))

        return value

    return GroundTask(space, make)


def built_text(params: Params) -> Any:
    """The pipeline of a configuration of `text`."""
    short = params.get("words") or params["shortest"]
    span = (1, short) if "words" in params else (short, short + params["longer"])
    settings: dict[str, Any] = {
        "analyzer": params["analyzer"],
        "ngram_range": span,
        "stop_words": "english" if params.get("stop") else None,
        "max_df": params["at_most"],
        "min_df": params["at_least"],
        "max_features": params["features"],
    }
    if params["weights"] == "tfidf":
        counted = sklearn("feature_extraction.text.TfidfVectorizer", sublinear_tf=params["sublinear"], **settings)
    else:
        counted = sklearn("feature_extraction.text.CountVectorizer", **settings)
    return joined([counted], params, TEXT_MODELS)


def made(name: str, **settings: Any) -> Callable[[], tuple[Array, Array]]:
    """Rows of one of scikit-learn's generators or data sets."""
    return partial(sklearn, f"datasets.{name}", **settings)


def blurred_digits() -> tuple[Array, Array]:
    """Handwritten digits under noise that hides most of their strokes."""
    x, y = sklearn("datasets.load_digits", return_X_y=True)
    return x[:360] + np.random.default_rng(0).normal(0, 7, (360, x.shape[1])), y[:360]


TASKS: dict[str, GroundTask] = {
    "models-digits": pipeline(
        blurred_digits,
        CLASSIFIERS,
        ("components", "best", "nystroem"),
        True,
    ),
    "models-party": pipeline(table("party", 500), CLASSIFIERS, ("components", "best"), True),
    "models-fair": pipeline(table("fair", 500), CLASSIFIERS, ("components", "nystroem"), True),
    "models-friedman": pipeline(
        made("make_friedman3", n_samples=400, noise=0.1, random_state=0), REGRESSORS, ("components", "nystroem"), False
    ),
    "models-schools": pipeline(table("schools", 300), REGRESSORS, ("components", "best"), False),
    "text-manual": text(),
}
