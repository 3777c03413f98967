"""What learns from labelled points: one file one method."""

from deepbore.classifiers.base import Classifier
from deepbore.classifiers.deep_pls import DeepPLS
from deepbore.classifiers.ensemble import DeepEnsemble, MLPClassifier
from deepbore.classifiers.fourier_logistic import FourierLogistic
from deepbore.classifiers.gp_classifier import GPClassifier
from deepbore.classifiers.kernel_pls import KernelPLS
from deepbore.classifiers.network import NetworkClassifier, Training

__all__ = [
    "Classifier",
    "DeepEnsemble",
    "DeepPLS",
    "FourierLogistic",
    "GPClassifier",
    "KernelPLS",
    "MLPClassifier",
    "NetworkClassifier",
    "Training",
]
