"""The default acquisition of a classifier."""

from deepbore.acquisition.base import Acquisition
from deepbore.acquisition.bounds import ClassProbability, UpperConfidenceBound
from deepbore.acquisition.hypervolume import LogHypervolumeImprovement
from deepbore.acquisition.improvement import LogExpectedImprovement
from deepbore.classifiers.base import Classifier
from deepbore.classifiers.link import Link


def default_acquisition(classifier: Classifier) -> Acquisition:
    """The acquisition that a run maximises unless it is given one.

    | classifier | acquisition |
    |---|---|
    | estimates labels and is `distance_aware` on any space: `KernelPLS`, `LaplaceGGN` | `LogExpectedImprovement` |
    | any other with a standard deviation | `UpperConfidenceBound` with the classifier's kappa |
    | one score a point | `ClassProbability` |
    | `PerColumn` of classifiers that estimate labels | `LogHypervolumeImprovement` |

    It is chosen when a run is made, before the classifier is bound to a space. So it is an upper bound for `DeepPLS`,
    which is distance-aware on spaces with real parameters only; `default_strategy`, which knows the space, gives it
    expected improvement there.
    """
    if "columns" in classifier.capabilities and classifier.link is Link.IDENTITY:
        return LogHypervolumeImprovement()
    if "std" not in classifier.capabilities:
        return ClassProbability()
    improves = classifier.link is Link.IDENTITY and classifier.distance_aware
    return LogExpectedImprovement() if improves else UpperConfidenceBound()
