"""A variant that keeps away from where the best value comes again and again.

docs/ablation.md has what came of it ("Ties").
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

import deepbore as db
from deepbore.data.observations import Observations
from deepbore.labels import Labels


class TiesAvoided(db.ValueGradedLabels):
    """A tie with the best value is an outcome of its own: a constraint that it violates.

    A Gaussian on the labels expects a little improvement wherever it is a little uncertain, so on a plateau it goes
    from corner to corner. With two configurations or more that have the best value, a head learns where they are, and
    expected improvement is weighed by the probability of not being one of them.
    """

    def labelled(
        self, values: Tensor, ranked: np.ndarray, observations: Observations, worth: Tensor | None = None
    ) -> Labels:
        labels = super().labelled(values, ranked, observations, worth)
        ties = values == ranked[0]
        if len(torch.unique(observations.points[ties], dim=0)) < 2:
            return labels
        untold = torch.zeros(len(values), dtype=torch.bool)
        untold[observations.columns.pending_rows] = True
        grades = torch.where(ties, 0.0, 1.0).masked_fill(untold, torch.nan)
        return replace(labels, constraints=grades[:, None])


VARIANTS: dict[str, Callable[[], dict[str, object]]] = {"deepbore:ties-avoided": lambda: {"labels": TiesAvoided()}}
