"""`RungLabels`: labels within each rung of budgets."""

import torch
from torch import Tensor

from deepbore.data.observations import Observations, Status
from deepbore.errors import SettingError
from deepbore.labels.base import Labelling, Labels, WrappedLabels, best_feasible
from deepbore.labels.constraints import graded_constraints


class RungLabels(WrappedLabels):
    """Another labelling, applied to the trials of each budget separately.

    Values at different budgets are not comparable: after one epoch the best network is worse than a poor one after
    eighty. So each trial is graded among those with the same budget. The classifier learns how grades depend on the
    budget (see `deepbore.classifiers.AtBudgets`). Black-box constraints are graded over all budgets together.

    A higher rung contains only promoted trials, the best of the lower ones. Among themselves half of them would be
    labelled bad, and worse than trials that were never promoted. So for the threshold tau of a rung all trials of the
    lowest rung count: those without a result in this rung are treated as equal to its worst result.

    Without budgets the labels are those of the base; trials without a budget are graded among themselves.

    Args:
        base: the labelling of one rung, without state.

    Raises:
        SettingError: for a base that has a state, or grades a front.

    Example:
        >>> from deepbore import Budget, Real, SearchSpace, ValueGradedLabels
        >>> observations = Observations(SearchSpace({"x": Real(0, 1)}), budget=Budget("epochs", 1, 3))
        >>> observations.add({"x": [0.1, 0.5, 0.9] * 2}, [0.9, 0.7, 0.8, 0.6, 0.4, 0.5], budgets=[1, 1, 1, 3, 3, 3])
        >>> RungLabels(ValueGradedLabels(gamma=0.7))(observations).z[:, 0].double().numpy().round(2).tolist()
        [0.11, 1.0, 0.33, 0.11, 1.0, 0.33]
    """

    def __init__(self, base: Labelling):
        super().__init__(base)
        if type(base).state_dict is not Labelling.state_dict:
            raise SettingError(
                f"labels of each rung must have no state, but {type(base).__name__} has one. Give its base."
            )
        if base.grades_front:
            raise SettingError(f"labels of each rung are of one value, but {type(base).__name__} grades a front.")

    def __call__(self, observations: Observations) -> Labels:
        """The base's labels of each rung."""
        budgets = observations.budgets
        rungs = budgets[~budgets.isnan()].unique().tolist()  # ascending
        if not rungs:
            return self.base(observations)
        rows = [(budgets == rung).nonzero().squeeze(-1) for rung in rungs]
        ended = (observations.status == Status.COMPLETE) | (observations.status == Status.PRUNED)
        n = [int(ended[each].sum()) for each in rows]
        beaten = [max(0, n[0] - k) for k in n]
        if len(others := budgets.isnan().nonzero().squeeze(-1)):
            rows, beaten = [others, *rows], [0, *beaten]
        parts = [self.base(observations.part(r, n_beaten=k)) for r, k in zip(rows, beaten, strict=True)]
        told, z = [part for part in parts if part.metrics], _together([part.z for part in parts], rows)
        return Labels(
            z,
            _together([part.weight for part in parts], rows),
            best=best_feasible(z, observations),
            separable=any(part.separable for part in parts),
            metrics=told[-1].metrics if told else {},  # those of the largest budget that has values
            constraints=graded_constraints(observations) if any(p.constraints is not None for p in parts) else None,
            pending=observations.pending if all(p.pending is not None for p in parts) else None,
        )


def _together(parts: list[Tensor], rows: list[Tensor]) -> Tensor:
    """Tensors of the rows of each rung, joined in the order of all rows."""
    order = torch.cat(rows)
    whole = torch.cat(parts)
    return torch.empty_like(whole).index_copy_(0, order, whole)
