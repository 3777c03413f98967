"""Classifiers: models of labelled points and the posteriors of their scores."""

from deepbore.classifiers.base import Classifier
from deepbore.classifiers.kernel.least_squares import KernelPLS
from deepbore.classifiers.link import Link
from deepbore.classifiers.networks.deep_pls import DeepPLS
from deepbore.classifiers.networks.ensembles import DeepEnsemble, MLPClassifier
from deepbore.classifiers.networks.hyper_ensemble import HyperDeepEnsemble
from deepbore.classifiers.networks.laplace import LaplaceGGN
from deepbore.classifiers.networks.mc_dropout import MCDropout
from deepbore.classifiers.networks.network import NetworkClassifier, Training
from deepbore.classifiers.papers.gp_classifier import GPClassifier
from deepbore.classifiers.papers.logistic import FourierLogistic
from deepbore.classifiers.papers.relative_ratio import RelativeRatio
from deepbore.classifiers.posterior import GaussianPosterior, MembersPosterior, PointEstimate, Posterior
from deepbore.classifiers.trees import RandomForest, TreeClassifier, XGBoost
from deepbore.classifiers.wrappers import AtBudgets, Calibrated, ColumnsPosterior, PerColumn, Relaxed, at_budgets

__all__ = [
    "AtBudgets",
    "Calibrated",
    "Classifier",
    "ColumnsPosterior",
    "DeepEnsemble",
    "DeepPLS",
    "FourierLogistic",
    "GPClassifier",
    "GaussianPosterior",
    "HyperDeepEnsemble",
    "KernelPLS",
    "LaplaceGGN",
    "Link",
    "MCDropout",
    "MLPClassifier",
    "MembersPosterior",
    "NetworkClassifier",
    "PerColumn",
    "PointEstimate",
    "Posterior",
    "RandomForest",
    "RelativeRatio",
    "Relaxed",
    "Training",
    "TreeClassifier",
    "XGBoost",
    "at_budgets",
]
