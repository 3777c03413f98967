"""What learns from labelled points: one file one method."""

from deepbore.classifiers.at_budgets import AtBudgets, at_budgets
from deepbore.classifiers.base import Classifier
from deepbore.classifiers.calibrated import Calibrated
from deepbore.classifiers.deep_pls import DeepPLS
from deepbore.classifiers.ensemble import DeepEnsemble, MLPClassifier
from deepbore.classifiers.forest import RandomForest
from deepbore.classifiers.fourier_logistic import FourierLogistic
from deepbore.classifiers.gp_classifier import GPClassifier
from deepbore.classifiers.hyper_ensemble import HyperDeepEnsemble
from deepbore.classifiers.kernel.least_squares import KernelPLS
from deepbore.classifiers.laplace import LaplaceGGN
from deepbore.classifiers.link import Link
from deepbore.classifiers.mc_dropout import MCDropout
from deepbore.classifiers.network import NetworkClassifier, Training
from deepbore.classifiers.per_column import ColumnsPosterior, PerColumn
from deepbore.classifiers.posterior import GaussianPosterior, MembersPosterior, PointEstimate, Posterior
from deepbore.classifiers.relative_ratio import RelativeRatio
from deepbore.classifiers.relaxed import Relaxed
from deepbore.classifiers.trees import TreeClassifier
from deepbore.classifiers.xgboost import XGBoost

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
