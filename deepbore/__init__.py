"""Bayesian optimisation by probabilistic classification, on PyTorch Lightning.

A classifier that learns which configurations are good, P(y <= tau | x), is the acquisition function: maximise it, and
evaluate there next.

The house, and a module imports only from rooms on its left:

    text, names < errors, lazy, validation, component, compute < space < data < pruners < labels < classifiers
        < acquisition < candidates < strategies < worker, evaluators < loop < study < cli
    beside them: problems, plots, integrations, testing, dashboard

The alphabet, used everywhere: n observations, d parameters, e encoded features, q proposals at once, b t-batch, m
members (or posterior samples), s steps, k columns of labels; x point, y value, z label, w weight, tau threshold, gamma
proportion, pi class probability.
"""

from importlib import import_module
from typing import Any

from deepbore.lazy import attach
from deepbore.names import no_attribute

__version__ = "0.4.0"

FORMER = {"Ambitious": "deepbore.candidates", "Suggester": "deepbore.study"}  # old name -> module that maps it

# every name is imported when it is first used, so that `import deepbore` stays light; __init__.pyi lists them
_import, __dir__, _names = attach(__name__, __file__)

# what a program needs, and the models that the package is for; other parts stand in their rooms, and here until 2.0
# fmt: off
__all__ = [  # noqa: RUF022
    "minimize", "maximize", "Study", "Result", "Trial", "Outcome", "plots", "problems",
    "SearchSpace", "Real", "Integer", "Ordinal", "Categorical", "Library", "Normal", "Budget",
    "Pruner", "MedianPruner", "PatientPruner", "SuccessiveHalvingPruner", "TrialPruned",
    "NoImprovement", "TargetReached", "ExpectedImprovementBelow", "ProcessEvaluator", "ExecutorEvaluator",
    "KernelPLS", "MLPClassifier", "DeepEnsemble", "MCDropout", "LaplaceGGN", "DeepPLS", "RandomForest", "XGBoost",
    "Training", "Classifier", "Labelling", "Acquisition", "Candidates", "Strategy",
]
# fmt: on


def __getattr__(name: str) -> Any:
    if name in _names:
        return _import(name)
    if name in FORMER:
        return getattr(import_module(FORMER[name]), name)  # which warns
    raise no_attribute("module 'deepbore'", name, _names)
