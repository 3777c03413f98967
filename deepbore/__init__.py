"""Bayesian optimisation by probabilistic classification, on PyTorch Lightning.

A classifier that learns which configurations are good, P(y <= tau | x), is the acquisition function: maximise it, and
evaluate there next.

The flow, and a module imports only from rooms on its left:

    errors < runs, objective < worker < parameters < features, moves, conditions < space < earlier < journal
           < observations < thresholds < labels < datamodule < classifiers < acquisition < candidates < evaluators
           < measures < loop < trainer < study < suggester, optimize < tune < cli < run
    beside them: problems, plots, testing, integrations

The alphabet, used everywhere: n observations, d parameters, e encoded features, q proposals at once, b t-batch, m
members (or posterior samples), s steps, k columns of labels; x point, y value, z label, w weight, tau threshold, gamma
proportion, pi class probability.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from deepbore.acquisition import (
        ClassProbability,
        ExpectedProbability,
        LogExpectedImprovement,
        PosteriorSample,
        QuantileBound,
        TheoremBound,
        UpperConfidenceBound,
    )
    from deepbore.candidates import (
        BoTorchBatch,
        DifferentialEvolution,
        EpsilonGreedy,
        GreedyBatch,
        LocalSearch,
        MultiStartLBFGS,
        RandomSearch,
        SVGDCandidates,
        ThompsonBatch,
    )
    from deepbore.classifiers import (
        Calibrated,
        DeepEnsemble,
        DeepPLS,
        FourierLogistic,
        GPClassifier,
        HyperDeepEnsemble,
        KernelPLS,
        LaplaceGGN,
        MCDropout,
        MLPClassifier,
        RandomForest,
        Training,
        XGBoost,
    )
    from deepbore.evaluators import Evaluator, ExecutorEvaluator, ProcessEvaluator, SerialEvaluator
    from deepbore.labels import (
        EmphasiseChanges,
        ImprovementLabels,
        RankGradedLabels,
        SeveralThresholds,
        ThresholdLabels,
        ValueGradedLabels,
    )
    from deepbore.labels.gamma import DecayingGamma
    from deepbore.space import Categorical, Condition, Integer, Ordinal, Real, SearchSpace
    from deepbore.study import Result, Study
    from deepbore.study.optimize import maximize, minimize
    from deepbore.study.suggester import Suggester

__version__ = "0.1.0"

_HOMES = {  # where each name lives; imported when first used, so that `import deepbore` stays light
    "space": ["Real", "Integer", "Ordinal", "Categorical", "Condition", "SearchSpace"],
    "labels": [
        "ThresholdLabels",
        "ImprovementLabels",
        "SeveralThresholds",
        "ValueGradedLabels",
        "RankGradedLabels",
        "EmphasiseChanges",
    ],
    "thresholds": ["DecayingGamma"],
    "classifiers": [
        "MLPClassifier",
        "DeepEnsemble",
        "HyperDeepEnsemble",
        "MCDropout",
        "LaplaceGGN",
        "FourierLogistic",
        "GPClassifier",
        "DeepPLS",
        "KernelPLS",
        "RandomForest",
        "XGBoost",
        "Calibrated",
        "Training",
    ],
    "acquisition": [
        "ClassProbability",
        "ExpectedProbability",
        "UpperConfidenceBound",
        "TheoremBound",
        "QuantileBound",
        "PosteriorSample",
        "LogExpectedImprovement",
    ],
    "candidates": [
        "RandomSearch",
        "LocalSearch",
        "MultiStartLBFGS",
        "BoTorchBatch",
        "DifferentialEvolution",
        "GreedyBatch",
        "ThompsonBatch",
        "SVGDCandidates",
        "EpsilonGreedy",
    ],
    "evaluators": ["Evaluator", "SerialEvaluator", "ProcessEvaluator", "ExecutorEvaluator"],
    "study": ["Study", "Result"],
    "suggester": ["Suggester"],
    "optimize": ["minimize", "maximize"],
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}
_MODULES = ["problems", "errors", "plots", "testing"]

__all__ = [  # noqa: RUF022  # in the order of the flow
    "Real",
    "Integer",
    "Ordinal",
    "Categorical",
    "Condition",
    "SearchSpace",
    "ThresholdLabels",
    "ImprovementLabels",
    "SeveralThresholds",
    "ValueGradedLabels",
    "RankGradedLabels",
    "EmphasiseChanges",
    "DecayingGamma",
    "MLPClassifier",
    "DeepEnsemble",
    "HyperDeepEnsemble",
    "MCDropout",
    "LaplaceGGN",
    "FourierLogistic",
    "GPClassifier",
    "DeepPLS",
    "KernelPLS",
    "RandomForest",
    "XGBoost",
    "Calibrated",
    "Training",
    "ClassProbability",
    "ExpectedProbability",
    "UpperConfidenceBound",
    "TheoremBound",
    "QuantileBound",
    "PosteriorSample",
    "LogExpectedImprovement",
    "RandomSearch",
    "LocalSearch",
    "MultiStartLBFGS",
    "BoTorchBatch",
    "DifferentialEvolution",
    "GreedyBatch",
    "ThompsonBatch",
    "SVGDCandidates",
    "EpsilonGreedy",
    "Evaluator",
    "SerialEvaluator",
    "ProcessEvaluator",
    "ExecutorEvaluator",
    "Study",
    "Result",
    "Suggester",
    "minimize",
    "maximize",
]


def __getattr__(name: str) -> Any:
    if name in _HOME_OF:
        return getattr(import_module(f"deepbore.{_HOME_OF[name]}"), name)
    if name in _MODULES:
        return import_module(f"deepbore.{name}")
    raise AttributeError(f"module 'deepbore' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, *_MODULES])
