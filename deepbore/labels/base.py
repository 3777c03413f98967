"""`Labelling`: from outcomes of any kind to `Labels`. The interface of the room."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from deepbore.component import Component
from deepbore.data.observations import Observations
from deepbore.labels.coreset import NEXT_TO_NOTHING
from deepbore.validation import of_kind, required


@dataclass(frozen=True)
class Labels:
    """The labelled observations.

    Attributes:
        z: labels in [0, 1], n x k: the better the outcome the greater; failed and pending rows have 0.
        weight: weights in the loss, n, positive; next to nothing for pending rows, and for replicates beside the row
            that stands for their configuration.
        best: the label that improvement is measured against; of a labelling that grades a front (`grades_front`) the
            labels of the reference values, and then of the front, (1 + f) x k.
        separable: whether there is anything to tell apart; if not, explore.
        metrics: what to log of them by name, such as the threshold tau in the user's sign.
        constraints: grades of the black-box constraints in [0, 1], n x c: 1/2 on the border, above 1/2 where one is
            kept, NaN where nothing is known. Then `best` is the best label of a feasible row. None where there are no
            constraints, or the labels have taken care of them.
        pending: which rows are not told yet, n booleans; None where the weights alone say what is to be learned.
    """

    z: Tensor
    weight: Tensor
    best: float | Tensor = 1.0
    separable: bool = True
    metrics: Mapping[str, float] = field(default_factory=dict)
    constraints: Tensor | None = None
    pending: Tensor | None = None

    @classmethod
    def none(cls, observations: Observations, outputs: int = 1) -> "Labels":
        """Labels of observations without any value: class 0 for all."""
        z = torch.zeros(len(observations), outputs, device=observations.points.device)
        weight = lighten_pending(torch.ones_like(z[:, 0]), observations)
        return cls(z, weight, separable=False, pending=observations.pending)


class Labelling(Component, ABC):
    """Turns observations into labels z in [0, 1]: the better an outcome, the greater its label.

    Only the labelling decides which values are good. Classifiers, acquisitions and candidates see its labels, grades of
    the black-box constraints, and budgets and earlier tasks where a run has them.

    Attributes:
        outputs: the number of columns of z.
        objectives: how many objective values it grades; None for any number.
        grades_front: whether `Labels.best` is the labels of a Pareto front, a column for each objective. It then takes
            a classifier and an acquisition that know of columns.
        by_preference: whether it grades comparisons, and needs a study of them.
    """

    outputs: int = 1
    objectives: int | None = 1
    grades_front: bool = False
    by_preference: bool = False

    @abstractmethod
    def __call__(self, observations: Observations) -> Labels:
        """Labels of all n rows, on their device."""

    def state_dict(self) -> dict[str, Any]:
        """What it remembers from one iteration to the next, as tensors and plain data; most remember nothing."""
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:  # most remember nothing
        """Takes up what `state_dict` gave."""

    def forget(self) -> None:  # most remember nothing
        """Drops what it remembers, to label other observations."""


class WrappedLabels(Labelling):
    """Labels that are made of another labelling's; what it grades, and of what, stays its business.

    Args:
        base: the other labelling.
    """

    def __init__(self, base: Labelling):
        required(base=base)
        of_kind(Labelling, base=base)
        self.base = base
        self.outputs, self.objectives = base.outputs, base.objectives
        self.grades_front, self.by_preference = base.grades_front, base.by_preference

    def forget(self) -> None:
        self.base.forget()


def weights_by_worth(weight: Tensor, worth: Tensor | None) -> Tensor:
    """Weights (n) times the evaluations that each row is worth; next to nothing where another row stands for it.

    So replicates, which have one label, are merged: their identical labels would bias the noise estimate to zero.
    """
    return weight if worth is None else (weight * worth).clamp_(min=NEXT_TO_NOTHING)


def lighten_pending(weight: Tensor, observations: Observations) -> Tensor:
    """Weights (n) with next to nothing for pending rows, for learners that take all rows."""
    pending = observations.pending_rows
    return weight.index_copy(0, pending, weight[pending] * NEXT_TO_NOTHING) if len(pending) else weight
