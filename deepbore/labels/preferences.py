"""`PreferenceLabels`: labels of utilities that are fitted to comparisons."""

import math
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from deepbore.data.comparisons import SCALE, compared_rows, fitted_utilities
from deepbore.data.observations import Observations, Status
from deepbore.labels.base import Labelling, Labels
from deepbore.labels.coreset import TINY_WEIGHT
from deepbore.labels.graded import ValueGradedLabels
from deepbore.labels.threshold import ThresholdFamily
from deepbore.space import SearchSpace
from deepbore.space.features import Coordinates, squared_distances
from deepbore.validation import of_kind

LENGTH_SCALE = math.exp(-1.5)  # times sqrt(d), in units of a parameter's range: half of the first one of `KernelPLS`,
# since smoother utilities leave it no uncertainty, and it makes tiny steps
NUGGET = 1e-6  # relative to the variance, so that utilities of equal configurations may differ
LATEST = 1000  # newest comparisons, which are used


class PreferenceLabels(Labelling):
    """Labels of compared trials: another labelling of their utilities.

        u_hat = argmax  sum_{i preferred to j} log sigmoid(u_i - u_j) + log N(u; 0, s^2 K)

    K is a Matern 5/2 kernel of the configurations, so that neighbours have similar utilities: with one or two
    comparisons of each trial, independent utilities would only separate winners from losers. The value of a trial is
    its utility without the kernel (`deepbore.data.comparisons`). Only the latest 1000 comparisons are used, and trials
    that occur in none of them are not learned.

    Args:
        base: the labelling of minus the utilities, as values to minimise; None for `ValueGradedLabels()`.

    Raises:
        SettingError: for another kind of labelling.
    """

    by_preference = True

    def __init__(self, base: ThresholdFamily | None = None):
        of_kind(ThresholdFamily, base=base)
        self.base = ValueGradedLabels() if base is None else base
        self.outputs = self.base.outputs

    def __call__(self, observations: Observations) -> Labels:
        pairs = observations.preferences[-LATEST:]
        if not pairs:
            return Labels.none(observations, self.outputs)
        rows, numbered = compared_rows(pairs)
        points = observations.points[torch.from_numpy(rows)]
        utilities = fitted_utilities(len(rows), numbered, _covariance(observations.space, points.cpu()))
        values = torch.full_like(observations.values[:, 0], math.nan)
        values[torch.from_numpy(rows)] = values.new_tensor(-utilities)
        labels = self.base.labelled(values, np.sort(-utilities), observations)
        forgotten = values.isnan() & (observations.status == Status.COMPLETE)
        weight = labels.weight.masked_fill(forgotten, TINY_WEIGHT)
        return replace(labels, weight=weight, metrics={})  # tau is of smoothed utilities, which are not displayed


def _covariance(space: SearchSpace, points: Tensor) -> np.ndarray:
    """s^2 K (n x n)."""
    x = Coordinates(space.points)(points) / (LENGTH_SCALE * math.sqrt(len(space)))
    r = (5 * squared_distances(x, x)).sqrt()
    covariance: np.ndarray = (SCALE**2 * (1 + r + r * r / 3) * (-r).exp()).numpy()
    return covariance + NUGGET * SCALE**2 * np.eye(len(x))
