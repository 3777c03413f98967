"""`Labelling`: the interface from outcomes to `Labels`."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from deepbore.component import Component
from deepbore.data.observations import Observations
from deepbore.labels.coreset import TINY_WEIGHT
from deepbore.validation import of_kind, required


@dataclass(frozen=True)
class Labels:
    """The labelled observations.

    Attributes:
        z: labels in [0, 1], n x k, larger for better outcomes; 0 for failed and pending rows.
        weight: weights in the loss, n, positive; negligible for pending rows, and for replicates other than the row
            that represents their configuration.
        best: the label that improvement is measured against; if the labelling grades a front (`grades_front`), the
            labels of the reference values, followed by those of the front, (1 + f) x k.
        separable: whether labels differ; if not, the run explores.
        metrics: numbers to log by name, such as the threshold tau in the sign of the user.
        constraints: grades of the black-box constraints in [0, 1], n x c: 1/2 on the border, larger if satisfied, NaN
            if unknown. Then `best` is the best label of a feasible row. None without constraints, or if the labels
            include them.
        pending: which rows have no outcome yet, n booleans; None if only the weights decide what is learned.
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

    Only the labelling decides which values are good. Classifiers, acquisitions and candidates use its labels and grades
    of constraints, besides budgets and earlier tasks, but no values.

    The observations may have fewer rows than at the last call: trials can be withdrawn, and later rows then move up.

    Attributes:
        outputs: the number of columns of z.
        objectives: the number of objectives; None for any.
        grades_front: whether `Labels.best` is the labels of a Pareto front, one column for each objective. This needs
            a classifier and an acquisition for several columns.
        by_preference: whether it grades comparisons, and needs a study with preferences.
    """

    outputs: int = 1
    objectives: int | None = 1
    grades_front: bool = False
    by_preference: bool = False

    @abstractmethod
    def __call__(self, observations: Observations) -> Labels:
        """Labels of all n rows, on their device."""

    def state_dict(self) -> dict[str, Any]:
        """The state between iterations, as tensors and plain data; most have none."""
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:  # most have no state
        """Restores what `state_dict` returned."""

    def forget(self) -> None:  # most have no state
        """Resets the state, to label other observations."""


class WrappedLabels(Labelling):
    """A labelling that modifies the labels of another one, with the same columns and objectives.

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
    """Weights (n) times the number of evaluations that each row represents; negligible for the other replicates.

    This merges replicates, which have the same label: identical labels would bias the noise estimate to zero.
    """
    return weight if worth is None else (weight * worth).clamp_(min=TINY_WEIGHT)


def lighten_pending(weight: Tensor, observations: Observations) -> Tensor:
    """Weights (n), negligible for pending rows, for models that learn from all rows."""
    pending = observations.columns.pending_rows
    return weight.index_copy(0, pending, weight[pending] * TINY_WEIGHT) if len(pending) else weight


def best_feasible(z: Tensor, observations: Observations) -> float:
    """The best label (n, or the mean of n x k) of a feasible row; of any row without constraints or feasible rows."""
    z = z.reshape(len(z), -1)
    z = z.squeeze(-1) if z.shape[1] == 1 else z.mean(-1)  # the mean of one column takes 5 ms of a million rows
    if observations.constraints.shape[1]:
        feasible = observations.feasible
        if bool(feasible.any()):
            return float(z[feasible].max())
    return float(z.max())
