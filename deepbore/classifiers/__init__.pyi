"""The exports of the room, each imported when it is first used."""

from .base import Classifier
from .kernel.least_squares import KernelPLS, LibraryPLS
from .link import Link
from .networks.deep_pls import DeepPLS
from .networks.ensembles import DeepEnsemble, MLPClassifier
from .networks.hyper_ensemble import HyperDeepEnsemble
from .networks.laplace import LaplaceGGN
from .networks.mc_dropout import MCDropout
from .networks.network import NetworkClassifier, Training
from .papers.gp_classifier import GPClassifier
from .papers.logistic import FourierLogistic
from .papers.relative_ratio import RelativeRatio
from .posterior import GaussianPosterior, MembersPosterior, PointEstimate, Posterior
from .trained import Minibatch, TrainedClassifier
from .trees import RandomForest, TreeClassifier, XGBoost
from .wrappers import AtBudgets, Calibrated, ColumnsPosterior, PerColumn, Relaxed, at_budgets

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
    "LibraryPLS",
    "Link",
    "MCDropout",
    "MLPClassifier",
    "MembersPosterior",
    "Minibatch",
    "NetworkClassifier",
    "PerColumn",
    "PointEstimate",
    "Posterior",
    "RandomForest",
    "RelativeRatio",
    "Relaxed",
    "TrainedClassifier",
    "Training",
    "TreeClassifier",
    "XGBoost",
    "at_budgets",
]
