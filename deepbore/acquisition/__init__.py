"""From scores to the value of a point: what the candidates are searched by. Nothing here searches."""

from deepbore.acquisition.base import Acquisition
from deepbore.acquisition.bounds import ClassProbability, QuantileBound, TheoremBound, UpperConfidenceBound
from deepbore.acquisition.improvement import LogExpectedImprovement
from deepbore.acquisition.posterior import ExpectedProbability, PosteriorSample
from deepbore.classifiers.base import Classifier

__all__ = [
    "Acquisition",
    "ClassProbability",
    "ExpectedProbability",
    "LogExpectedImprovement",
    "PosteriorSample",
    "QuantileBound",
    "TheoremBound",
    "UpperConfidenceBound",
    "suited_to",
]


def suited_to(classifier: Classifier) -> Acquisition:
    """The default: expected improvement for distance-aware estimates of labels, else an upper confidence bound."""
    improves = classifier.estimates_labels and classifier.distance_aware
    return LogExpectedImprovement() if improves else UpperConfidenceBound()
