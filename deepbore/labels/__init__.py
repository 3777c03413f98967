"""From outcomes to labels: what the classifier learns.

A *labelling* turns the observations into `Labels(z, weight, pending, best)` with z in [0, 1]. Failed trials are
class 0, and so are pending ones, which weigh next to nothing.

- `ThresholdLabels`: z = [y <= tau], the labels of BORE.
- `ImprovementLabels`: the same, positives weighted by their improvement, as in LFBO (Song et al., 2022).
- `SeveralThresholds`: one column [y <= tau_j] for each of several proportions.
- `ValueGradedLabels`, `RankGradedLabels`: one number, the share of *all* thresholds that a value reaches.
- `ObjectiveLabels`: of several objectives, one such column each.
- `ChebyshevLabels`, `NonDominationLabels`: several objectives in one column.
- `PreferenceLabels`: those of utilities that explain which of two trials was preferred.
- `EmphasiseChanges`: another labelling, with more weight on what is new or has changed.
- `RungLabels`: another labelling, of the trials of each budget by themselves.
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
