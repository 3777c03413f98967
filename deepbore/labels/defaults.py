"""The default labelling of a classifier."""

from deepbore.errors import SettingError
from deepbore.labels.base import Labelling, WrappedLabels
from deepbore.labels.graded import ValueGradedLabels
from deepbore.labels.objectives import ChebyshevLabels, ObjectiveLabels
from deepbore.labels.rungs import RungLabels
from deepbore.labels.threshold import Gamma, ThresholdFamily, ThresholdLabels


def default_labels(
    estimates_labels: bool, gamma: Gamma | None = None, objectives: int = 1, per_column: bool = False
) -> Labelling:
    """The default labels: graded by value for classifiers that estimate labels and for networks, else by one threshold.

    A grade says how good a value is, and a class only on which side of a threshold it lies. Cross-entropy is a proper
    score for grades, too, so that networks learn them as well as classes; with one threshold all good points are equal
    to them. Several objectives have one column each if the classifier learns columns separately; else they are
    scalarised (`ChebyshevLabels`) and labelled as one objective.

    Args:
        estimates_labels: whether the classifier's scores estimate the label itself, or it learns grades as networks do
            (`Classifier.learns_grades`).
        gamma: proportion of good observations; None for 1/2 with graded labels, 1/4 with one threshold.
        objectives: k.
        per_column: whether the classifier has a score for each column, as `PerColumn` has.

    Raises:
        SettingError: for a gamma if the labels have none.
    """
    if per_column:
        if gamma is not None:
            raise SettingError("labels of several objectives have no gamma. Leave it out, or give labels=.")
        return ObjectiveLabels(objectives)
    if objectives > 1:
        return ChebyshevLabels(_of_one(estimates_labels, gamma))
    return _of_one(estimates_labels, gamma)


def rung_labels(labels: Labelling) -> Labelling:
    """Labels wrapped in `RungLabels`, unless they contain it already."""
    return labels if _grades_rungs(labels) else RungLabels(labels)


def _grades_rungs(labels: Labelling) -> bool:
    return isinstance(labels, RungLabels) or (isinstance(labels, WrappedLabels) and _grades_rungs(labels.base))


def _of_one(estimates_labels: bool, gamma: Gamma | None) -> ThresholdFamily:
    if estimates_labels:
        return ValueGradedLabels() if gamma is None else ValueGradedLabels(gamma)
    return ThresholdLabels(1 / 4 if gamma is None else gamma)
