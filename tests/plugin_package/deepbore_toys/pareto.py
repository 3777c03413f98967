"""A labelling: two objectives and constraints."""

import torch

from deepbore.data.observations import Observations
from deepbore.labels import Labelling, Labels
from deepbore.labels.base import lighten_pending


class ParetoLabels(Labelling):
    """z = 1 - the share of feasible outcomes that dominate it: 1 on the Pareto front; 0 for what is infeasible."""

    objectives = 2

    def __call__(self, observations: Observations) -> Labels:
        feasible = observations.feasible  # complete, and no constraint above 0
        if not feasible.any():
            return Labels.none(observations, self.outputs)
        values = observations.values  # n x 2, to minimise; NaN where there are none, which dominates nothing
        no_worse = (values[:, None] <= values).all(-1)
        dominates = no_worse & (values[:, None] < values).any(-1) & feasible[:, None]  # row i dominates row j
        z = feasible * (1 - dominates.sum(0) / feasible.sum())
        front = float((z == 1).sum())
        weight = lighten_pending(torch.ones_like(z), observations)
        return Labels(z[:, None].float(), weight.float(), separable=bool((z < 1).any()), metrics={"front": front})
