"""The default acquisition of a classifier."""

from deepbore.acquisition.base import Acquisition
from deepbore.acquisition.bounds import ClassProbability, UpperConfidenceBound
from deepbore.acquisition.hypervolume import LogHypervolumeImprovement
from deepbore.acquisition.improvement import LogExpectedImprovement
from deepbore.classifiers.base import Classifier
from deepbore.classifiers.link import Link


def default_acquisition(classifier: Classifier) -> Acquisition:
    """What is maximised where nobody says otherwise.

    `LogExpectedImprovement` for scores that estimate labels and whose head is `distance_aware` on any space: of
    deepbore's own, `KernelPLS`. `UpperConfidenceBound`, with the head's kappa, for others that have a deviation.
    `ClassProbability` for heads that give one score a point. `LogHypervolumeImprovement` for `PerColumn` over heads
    that estimate labels.

    It is decided when a run is made, before the head is bound to a space. So it is an upper bound for `DeepPLS`, which
    is distance-aware on spaces with real parameters only.
    """
    if "columns" in classifier.capabilities and classifier.link is Link.IDENTITY:
        return LogHypervolumeImprovement()
    if "std" not in classifier.capabilities:
        return ClassProbability()
    improves = classifier.link is Link.IDENTITY and classifier.distance_aware
    return LogExpectedImprovement() if improves else UpperConfidenceBound()
