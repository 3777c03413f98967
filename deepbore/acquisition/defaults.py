"""The default acquisition of a classifier."""

from deepbore.acquisition.base import Acquisition
from deepbore.acquisition.bounds import ClassProbability, UpperConfidenceBound
from deepbore.acquisition.improvement import LogExpectedImprovement
from deepbore.classifiers.base import Classifier
from deepbore.classifiers.link import Link


def default_acquisition(classifier: Classifier) -> Acquisition:
    """Expected improvement for distance-aware estimates of labels, else a bound; of a point estimate its score."""
    if "std" not in classifier.capabilities:
        return ClassProbability()
    improves = classifier.link is Link.IDENTITY and classifier.distance_aware
    return LogExpectedImprovement() if improves else UpperConfidenceBound()
