"""The default labelling of a classifier."""

from deepbore.labels.base import Labelling
from deepbore.labels.gamma import Gamma
from deepbore.labels.graded import ValueGradedLabels
from deepbore.labels.threshold import ThresholdLabels


def default_labels(estimates_labels: bool, gamma: Gamma | None = None) -> Labelling:
    """The default: graded by value for classifiers that estimate labels, by one threshold for those of cross-entropy.

    To a likelihood of two classes a graded label is one noisy vote, from which it learns less than from a class.

    Args:
        estimates_labels: whether the classifier's scores estimate the label itself.
        gamma: proportion of good observations; None for 1/2 with graded labels, 1/4 with one threshold.
    """
    if estimates_labels:
        return ValueGradedLabels() if gamma is None else ValueGradedLabels(gamma)
    return ThresholdLabels(1 / 4 if gamma is None else gamma)
