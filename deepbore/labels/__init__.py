"""Labellings: from outcomes to the labels that classifiers learn.

A *labelling* turns the observations into `Labels(z, weight, pending, best)` with z in [0, 1]. Failed trials are
class 0, and so are pending ones, with a negligible weight.

- `ThresholdLabels`: z = [y <= tau], the labels of BORE.
- `ImprovementLabels`: the same, positives weighted by their improvement, as in LFBO (Song et al., 2022).
- `SeveralThresholds`: one column [y <= tau_j] for each of several proportions.
- `ValueGradedLabels`, `RankGradedLabels`: one number, the share of *all* thresholds that a value reaches.
- `ObjectiveLabels`: one such column for each of several objectives.
- `ChebyshevLabels`, `NonDominationLabels`: several objectives in one column.
- `PreferenceLabels`: labels of utilities, which are fitted to comparisons of trials.
- `EmphasiseChanges`: another labelling with more weight on new and changed rows.
- `RungLabels`: another labelling, applied to the trials of each budget separately.
"""

from deepbore.labels.base import Labelling, Labels
from deepbore.labels.datamodule import EmphasiseChanges, LabelledBatch, LabelledObservations, changed_rows
from deepbore.labels.defaults import default_labels
from deepbore.labels.graded import RankGradedLabels, ValueGradedLabels
from deepbore.labels.objectives import ChebyshevLabels, NonDominationLabels, ObjectiveLabels, front_rows, own_complete
from deepbore.labels.preferences import PreferenceLabels
from deepbore.labels.rungs import RungLabels
from deepbore.labels.threshold import DecayingGamma, Gamma, ImprovementLabels, SeveralThresholds, ThresholdLabels

__all__ = [
    "ChebyshevLabels",
    "DecayingGamma",
    "EmphasiseChanges",
    "Gamma",
    "ImprovementLabels",
    "LabelledBatch",
    "LabelledObservations",
    "Labelling",
    "Labels",
    "NonDominationLabels",
    "ObjectiveLabels",
    "PreferenceLabels",
    "RankGradedLabels",
    "RungLabels",
    "SeveralThresholds",
    "ThresholdLabels",
    "ValueGradedLabels",
    "changed_rows",
    "default_labels",
    "front_rows",
    "own_complete",
]
