"""From values to labels: what the classifier learns.

A *labelling* turns the observations into `Labels(z, weight, tau)` with z in [0, 1]. Failed trials are class 0, and so
are pending ones, which weigh next to nothing. The threshold tau is the smallest value that at least a proportion gamma
of the values reach, tau = Phi^-1(gamma) (BORE, Algorithm 1), so for distinct values and a fixed gamma one new
observation flips at most one label of an older one (BORE section 3.1 and appendix F).

- `ThresholdLabels`: z = [y <= tau], the labels of BORE.
- `ImprovementLabels`: the same, positives weighted by their improvement, as in LFBO (Song et al., 2022).
- `SeveralThresholds`: one column [y <= tau_j] for each of several proportions.
- `ValueGradedLabels`, `RankGradedLabels`: one number, the share of *all* thresholds up to tau that a value reaches.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from deepbore.errors import SettingError
from deepbore.observations import Observations, Status
from deepbore.thresholds import DecayingGamma, Gamma, checked_gamma, threshold

PENDING_WEIGHT = 1e-6  # of pending trials: batches keep away from them by themselves (`GreedyBatch`)


@dataclass(frozen=True)
class Labels:
    """The labelled observations.

    Attributes:
        z: labels in [0, 1], n x k (k = 1 but for several thresholds).
        weight: weights in the loss, n, positive.
        tau: the (largest) threshold, minimised sign; NaN while there is no value.
        separable: whether there is anything to tell apart; if not, explore.
    """

    z: Tensor
    weight: Tensor
    tau: float
    separable: bool


# --- formulas --------------------------------------------------------------------------------------------------------


def graded_by_value(values: Tensor, best: float, tau: float) -> Tensor:
    """u = clip((tau - y) / (tau - y_min), 0, 1), the mean of the labels [y <= t] over t in (y_min, tau).

    So E[u | x] is the integral of P(y <= t | x) over t, divided by tau - y_min: expected improvement over tau, up to
    scale, with nothing assumed about densities.

    Args:
        values: n; NaN gives 0.
        best: y_min.
        tau: the threshold, > best.
    """
    return torch.nan_to_num((tau - values) / (tau - best), nan=0.0).clamp(0, 1)


def improvement_labels(values: Tensor, tau: float) -> tuple[Tensor, Tensor]:
    """Soft labels and weights that give LFBO's loss for expected improvement (Song et al. 2022, eq. 9).

    That loss counts each observation once as a negative, and once as a positive with weight
    u = (tau - y)_+ / mean of it over the positives. One soft label u / (1 + u) of weight 1 + u is the same.

    Args:
        values: n; NaN counts as no improvement.
        tau: the threshold.

    Returns:
        z and weight, each n.
    """
    gain = torch.nan_to_num(tau - values, nan=0.0).clamp(min=0)
    u = gain / gain[gain > 0].mean() if bool((gain > 0).any()) else (values <= tau).to(values)
    return u / (1 + u), 1 + u


# --- labellings ------------------------------------------------------------------------------------------------------


class Labelling(ABC):
    """Turns observations into labels.

    Args:
        gamma: proportion of good observations: a number in (0, 1) or a schedule.
    """

    outputs: int = 1  # k, the number of columns of z

    def __init__(self, gamma: Gamma):
        self.gamma = checked_gamma(gamma)

    def __call__(self, observations: Observations) -> Labels:
        """Labels of all n rows, on their device."""
        values, ranked = observations.values, observations.sorted_values
        if not len(ranked):
            nothing = torch.zeros(len(values), self.outputs, device=values.device)
            return Labels(nothing, torch.ones_like(nothing[:, 0]), math.nan, separable=False)
        tau = threshold(ranked, self.proportion(len(ranked)))
        z, weight = self.label(values, ranked, tau)
        weight = torch.where(observations.status == Status.PENDING, weight * PENDING_WEIGHT, weight)
        separable = bool(ranked[-1] > tau) or bool((observations.status == Status.FAILED).any())
        return Labels(z.reshape(len(values), -1).float(), weight.float(), tau, separable)

    def proportion(self, n: int) -> float:
        """Gamma for n values."""
        return self.gamma(n) if isinstance(self.gamma, DecayingGamma) else float(self.gamma)

    @abstractmethod
    def label(self, values: Tensor, ranked: np.ndarray, tau: float) -> tuple[Tensor, Tensor]:
        """Values (n, NaN for class 0) -> z (n or n x k) and weight (n).

        Args:
            ranked: the values that are not NaN, ascending, at least one.
            tau: their threshold.
        """


class ThresholdLabels(Labelling):
    """z = [y <= tau] (BORE, Algorithm 1, line 3).

    Args:
        gamma: proportion of good observations, in (0, 1), or a schedule; the papers use 1/4 and 1/3.
    """

    def __init__(self, gamma: Gamma = 1 / 3):
        super().__init__(gamma)

    def label(self, values: Tensor, ranked: np.ndarray, tau: float) -> tuple[Tensor, Tensor]:
        return (values <= tau).to(values), torch.ones_like(values)


class ImprovementLabels(Labelling):
    """Threshold labels with positives weighted by their improvement (LFBO; see `improvement_labels`).

    Args:
        gamma: proportion of good observations, in (0, 1), or a schedule.
    """

    def __init__(self, gamma: Gamma = 1 / 3):
        super().__init__(gamma)

    def label(self, values: Tensor, ranked: np.ndarray, tau: float) -> tuple[Tensor, Tensor]:
        return improvement_labels(values, tau)


class SeveralThresholds(Labelling):
    """One column of labels [y <= tau_j] for each of k proportions.

    E[max(t - y, 0)] is the integral of P(y <= s) over s <= t, so the mean of the columns also estimates expected
    improvement; a classifier learns them with k outputs over a shared network.

    Args:
        gammas: k proportions in (0, 1).
    """

    def __init__(self, gammas: Sequence[float] = (0.05, 0.1, 0.2, 0.35, 0.5, 0.75)):
        if not gammas:
            raise SettingError("at least one proportion is needed, but gammas is empty.")
        self.gammas = [float(checked_gamma(gamma)) for gamma in gammas]  # type: ignore[arg-type]  # no schedules here
        super().__init__(max(self.gammas))
        self.outputs = len(self.gammas)

    def label(self, values: Tensor, ranked: np.ndarray, tau: float) -> tuple[Tensor, Tensor]:
        thresholds = torch.tensor([threshold(ranked, gamma) for gamma in self.gammas]).to(values)
        return (values[:, None] <= thresholds).to(values), torch.ones_like(values)


class ValueGradedLabels(Labelling):
    """z = clip((tau - y) / (tau - y_min), 0, 1): thresholds spread evenly over the values (see `graded_by_value`).

    Args:
        gamma: proportion of values below the largest threshold, in (0, 1), or a schedule.
    """

    def __init__(self, gamma: Gamma = 0.5):
        super().__init__(gamma)

    def label(self, values: Tensor, ranked: np.ndarray, tau: float) -> tuple[Tensor, Tensor]:
        best = float(ranked[0])
        if tau == best:  # the good ones are all tied: one threshold, between them and the rest
            return (values <= tau).to(values), torch.ones_like(values)
        return graded_by_value(values, best, tau), torch.ones_like(values)


class RankGradedLabels(Labelling):
    """z = 1 - rank(y) / k for the k values up to tau, 0 above: thresholds spread evenly over the ranks.

    The rank counts the values that are better, so the best has z = 1 and ties have equal labels. Outliers and
    monotone transformations of the values change nothing.

    Args:
        gamma: proportion of values below the largest threshold, in (0, 1), or a schedule.
    """

    def __init__(self, gamma: Gamma = 0.5):
        super().__init__(gamma)

    def label(self, values: Tensor, ranked: np.ndarray, tau: float) -> tuple[Tensor, Tensor]:
        k = int(np.searchsorted(ranked, tau, side="right"))
        good = torch.from_numpy(ranked[:k]).to(values)
        rank = torch.searchsorted(good, torch.nan_to_num(values, nan=math.inf))
        return 1 - rank / k, torch.ones_like(values)


def suited_labels(estimates_labels: bool, gamma: Gamma | None = None) -> Labelling:
    """The default: graded by value for classifiers that estimate labels, by one threshold for those of cross-entropy.

    To a likelihood of two classes a graded label is one noisy vote, from which it learns less than from a class.

    Args:
        estimates_labels: whether the classifier's scores estimate the label itself.
        gamma: proportion of good observations; None for 1/2 with graded labels, 1/4 with one threshold.
    """
    if estimates_labels:
        return ValueGradedLabels() if gamma is None else ValueGradedLabels(gamma)
    return ThresholdLabels(1 / 4 if gamma is None else gamma)


class EmphasiseChanges(Labelling):
    """Another labelling, with more weight on rows that are new or whose label has changed since the last time.

    BORE appendix F, strategy (i): between iterations the data change little, so learn from what did change.

    Args:
        base: the labelling that makes the labels.
        boost: what the weights of new and changed rows are multiplied with, >= 1.
    """

    def __init__(self, base: Labelling, boost: float = 2.0):
        if boost < 1:
            raise SettingError(f"boost >= 1 must hold, but got boost={boost}.")
        super().__init__(base.gamma)
        self.base, self.boost, self.outputs = base, boost, base.outputs
        self.previous = torch.empty(0, base.outputs)

    def __call__(self, observations: Observations) -> Labels:
        """The base's labels, re-weighted."""
        labels = self.base(observations)
        changed = changed_rows(self.previous.to(labels.z), labels.z)
        self.previous = labels.z
        weight = torch.where(changed, labels.weight * self.boost, labels.weight)
        return Labels(labels.z, weight, labels.tau, labels.separable)

    def label(self, values: Tensor, ranked: np.ndarray, tau: float) -> tuple[Tensor, Tensor]:
        return self.base.label(values, ranked, tau)


def changed_rows(before: Tensor, after: Tensor) -> Tensor:
    """Which rows of `after` (n x k) are new, or crossed 1/2 in some column, since `before` (m x k, m <= n): n."""
    changed = torch.ones(len(after), dtype=torch.bool, device=after.device)
    changed[: len(before)] = ((before >= 0.5) != (after[: len(before)] >= 0.5)).any(-1)
    return changed
