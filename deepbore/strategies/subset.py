"""`SubsetStrategy`: proposals by a kernel of some rows of a run, graded among themselves."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import torch
from torch import Tensor

from deepbore.classifiers.kernel.least_squares import KernelPLS
from deepbore.data.array_ranking import threshold
from deepbore.data.observations import Observations
from deepbore.data.trial import Budget
from deepbore.errors import SettingError
from deepbore.labels import LabelledBatch, Labelling
from deepbore.labels.threshold import ThresholdFamily
from deepbore.space import SearchSpace
from deepbore.strategies.base import Proposal, Strategy, View

CONSIDERED = 1000  # best rows, and newest rows, that are considered


@dataclass(frozen=True)
class Subset:
    """Some rows, graded among themselves.

    Attributes:
        batch: the rows.
        ranked: their numbers, best first, failures last.
    """

    batch: LabelledBatch
    ranked: Tensor


def considered_rows(batch: LabelledBatch, observations: Observations) -> Tensor:
    """The best and the newest rows that are learned, by number: so many that their cost does not grow with n.

    Args:
        batch: n rows.
        observations: the same rows, and trials asked for since then.
    """
    newest = torch.arange(max(0, len(batch) - CONSIDERED), len(batch), device=batch.points.device)
    best = observations.centres.best_rows(CONSIDERED).to(newest)
    rows: Tensor = torch.cat([best[best < len(batch)], newest]).unique()  # newer rows have no label yet
    return rows[batch.learned[rows]]


def graded_alone(batch: LabelledBatch, rows: Tensor, values: Tensor, labels: ThresholdFamily) -> Subset:
    """Some rows, graded among themselves.

    Args:
        batch: n rows; their labels are not used.
        rows: k numbers.
        values: their values, k, at least one of them not NaN.
        labels: the labelling of the run.
    """
    ranked = values[~values.isnan()].sort().values.cpu().numpy()
    z, _ = labels.label(values, ranked, threshold(ranked, labels.proportion(len(ranked))))
    order = values.nan_to_num(nan=math.inf).argsort(stable=True)
    return Subset(replace(batch.take(rows), z=z[:, None], best=1.0), rows[order])


def graded_beside(
    batch: LabelledBatch, rows: Tensor, values: Tensor, is_own: Tensor, labels: ThresholdFamily, most: int
) -> Subset:
    """Some rows, graded among themselves, and others beside them, on the same scale.

    The values of the others are shifted, so that the best of either part is equal. So the model learns what parameters
    that both parts have do in the other part, in the same units, but not which part is better.

    Args:
        batch: n rows; their labels are not used.
        rows: k numbers.
        values: their values, k.
        is_own: which of them are graded, k booleans; at least one of these has a value that is not NaN.
        labels: the labelling of the run.
        most: the number of rows up to which others are taken, at equal distances in their order.
    """
    merit = values.nan_to_num(nan=math.inf)
    order = merit.argsort(stable=True)
    own, others = order[is_own[order]], order[~is_own[order]]
    room = min(max(most - len(own), 0), len(others))
    others = others[torch.linspace(0, len(others) - 1, room, device=rows.device).round().long()]
    shifted = values.clone()
    shifted[others] += merit[own[0]] - (merit[others[0]] if room else 0)
    ranked = values[own[~values[own].isnan()]].cpu().numpy()
    z, _ = labels.label(shifted, ranked, threshold(ranked, labels.proportion(len(ranked))))
    taken = torch.cat([own, others]).sort().values
    return Subset(replace(batch.take(rows[taken]), z=z[taken, None], best=1.0), rows[own])


class SubsetStrategy(Strategy):
    """Proposals by a kernel of some rows, which are graded among themselves.

    A subclass implements `applies` and `fit`, which calls `learn`.

    Args:
        model: the kernel.
    """

    def __init__(self, model: KernelPLS):
        self.model = model
        self._subset: Subset | None = None  # what the model has learned; None for all trials
        self._kept: Mapping[str, Any] = {}  # a state dict, until the model is bound

    def at_budgets(self, budget: Budget) -> Self:
        return self

    def check(self, space: SearchSpace, labels: Labelling) -> None:
        if not isinstance(labels, ThresholdFamily):
            name = type(self).__name__
            raise SettingError(
                f"{name} grades values again by the thresholds of the labels, but {type(labels).__name__} has none. "
                f"Give ValueGradedLabels() or ThresholdLabels(), or leave {name} out."
            )

    def prepare(self, view: View) -> None:
        """Binds the model, and puts it on the device of the rows."""
        assert view.batch is not None
        self._bind(view.space.points.without_fixed)
        self.model.generator = view.generator
        self.model.to(view.batch.points.device)

    def learn(self, view: View, subset: Subset | None) -> None:
        """Trains the prepared model on some rows, or on all."""
        assert view.batch is not None
        batch = view.batch if subset is None else subset.batch
        self.model.learn(batch)
        self.model.keep_best(batch.best)
        self._subset = subset

    def _bind(self, space: SearchSpace) -> None:
        self.model.bind(space)
        if "theta" in self._kept:
            self.model.theta.copy_(self._kept["theta"])
        if self.model.additive_model is not None and "additive_theta" in self._kept:
            self.model.additive_model.theta.copy_(self._kept["additive_theta"])
        self._kept = {}

    def propose(self, view: View, q: int) -> Proposal:
        assert view.first is not None
        centres = None if self._subset is None else self._subset.ranked
        search = replace(view.search(self.model, view.first.acquisition), centre_rows=centres)
        return Proposal(view.first.candidates.propose(search, q), self.model)

    def state_dict(self) -> dict[str, Any]:
        """The hyperparameters of the kernels; empty before the first turn."""
        if self.model.space is None:
            return dict(self._kept)
        additive = self.model.additive_model
        return {"theta": self.model.theta} | ({} if additive is None else {"additive_theta": additive.theta})

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._kept = dict(state)
        if self.model.space is not None:
            self.model.build(self.model.space, 1)
