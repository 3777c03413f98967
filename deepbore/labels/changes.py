"""`EmphasiseChanges`: more weight on what is new or has changed."""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from deepbore.data.observations import Observations, Status
from deepbore.labels.base import Labelling, Labels, WrappedLabels
from deepbore.validation import at_least


class EmphasiseChanges(WrappedLabels):
    """Another labelling, with more weight on rows that were told, or whose class has changed, since the last time.

    The class changes where a label crosses 1/2, or comes to or from 0, as a label of improvement does at tau.

    BORE appendix F, strategy (i): between iterations the data change little, so learn from what did change.

    Args:
        base: the labelling that makes the labels.
        boost: what the weights of new and changed rows are multiplied with, >= 1.

    Raises:
        SettingError: for boost < 1.
    """

    def __init__(self, base: Labelling, boost: float = 2.0):
        super().__init__(base)
        at_least(1, boost=boost)
        self.boost = boost
        self.previous = torch.empty(0, base.outputs)

    def __call__(self, observations: Observations) -> Labels:
        """The base's labels, re-weighted."""
        labels = self.base(observations)
        told = (observations.status != Status.PENDING).to(labels.z.device)
        changed = told & told_or_changed(self.previous.to(labels.z), labels.z)
        self.previous = labels.z.masked_fill(~told[:, None], math.nan)
        return replace(labels, weight=torch.where(changed, labels.weight * self.boost, labels.weight))

    def forget(self) -> None:
        self.previous = self.previous[:0]
        super().forget()

    def state_dict(self) -> dict[str, Any]:
        return {"previous": self.previous.cpu(), "base": self.base.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.previous = state["previous"]
        self.base.load_state_dict(state["base"])


def told_or_changed(before: Tensor, after: Tensor) -> Tensor:
    """Which rows of `after` (n x k) are new, had no label before, or changed their class (n)."""
    known = after[: len(before)]
    changed = changed_rows(before, after)
    changed[: len(before)] |= ((before > 0) != (known > 0)).any(-1) | before.isnan().any(-1)
    return changed


def changed_rows(before: Tensor, after: Tensor) -> Tensor:
    """Which rows of `after` (n x k) are new, or crossed 1/2 in some column, since `before` (m x k, m <= n): n."""
    changed = torch.ones(len(after), dtype=torch.bool, device=after.device)
    changed[: len(before)] = ((before >= 0.5) != (after[: len(before)] >= 0.5)).any(-1)
    return changed
