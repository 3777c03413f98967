"""Labels by thresholds: one threshold (BORE), several, or weighted by improvement (LFBO); and gamma.

The threshold tau is the smallest value that at least a proportion gamma of the values reach, tau = Phi^-1(gamma)
(BORE, Algorithm 1), so for distinct values and a fixed gamma one new observation flips at most one label of an older
one (BORE section 3.1 and appendix F).
"""

import math
import numbers
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from deepbore.data.array_ranking import threshold
from deepbore.data.observations import Observations, Status
from deepbore.errors import SettingError
from deepbore.labels.base import Labelling, Labels, best_feasible, lighten_pending, weights_by_worth
from deepbore.labels.constraints import graded_constraints
from deepbore.validation import above, between, required


@dataclass(frozen=True)
class DecayingGamma:
    """A proportion that falls from `start` towards `floor`: floor + (start - floor) * 2^(-n / half_life).

    BORE section 3.1 suggests balanced classes at first, and a smaller proportion later.

    Args:
        start: gamma at n = 0, in (0, 1).
        floor: gamma in the limit, in (0, start].
        half_life: number of observations after which the difference to `floor` is halved, > 0.

    Example:
        >>> round(DecayingGamma(start=0.5, floor=0.1, half_life=50)(50), 6)
        0.3
    """

    start: float = 0.5
    floor: float = 0.1
    half_life: float = 50.0

    def __post_init__(self) -> None:
        required(start=self.start, floor=self.floor, half_life=self.half_life)
        between(0, 1, start=self.start, floor=self.floor)
        above(0, half_life=self.half_life)
        if self.floor > self.start:
            raise SettingError(f"0 < floor <= start < 1 and half_life > 0 must hold, but got {self}.")

    def __call__(self, n: int) -> float:
        """Gamma for n observations."""
        return self.floor + (self.start - self.floor) * math.exp2(-n / self.half_life)


Gamma = float | DecayingGamma


def checked_gamma(gamma: Gamma) -> Gamma:
    """The proportion itself, if it is in (0, 1) or a schedule.

    Raises:
        SettingError: otherwise.
    """
    if isinstance(gamma, DecayingGamma) or (isinstance(gamma, numbers.Real) and 0 < gamma < 1):
        return gamma
    raise SettingError(f"0 < gamma < 1 must hold, but got gamma={gamma!r:.100}. Typical values are 0.1 to 0.5.")


class ThresholdFamily(Labelling):
    """Base of labellings by thresholds of one value: gamma, tau, and class 0 for rows without a value.

    Replicates of a configuration have the label of their mean; rows with less noise have a larger weight, if the noise
    is given (`deepbore.data.replicates.Replicates`).

    With black-box constraints the label is that of the value, feasible or not, and each constraint has its own grade
    (`deepbore.labels.constraints`): a joint label would have a jump at the border, which is harder to learn.

    Args:
        gamma: proportion of good observations: a number in (0, 1) or a schedule.
    """

    def __init__(self, gamma: Gamma):
        self.gamma = checked_gamma(gamma)

    def __call__(self, observations: Observations) -> Labels:
        told = observations.averaged
        if not len(told.ranked):
            return Labels.none(observations, self.outputs)
        return self.labelled(told.values, told.ranked, observations, told.worth)

    def labelled(
        self,
        values: Tensor,
        ranked: np.ndarray,
        observations: Observations,
        worth: Tensor | None = None,
    ) -> Labels:
        """Labels of given values (n, NaN for none), which may differ from those of the observations.

        Args:
            values: to minimise, n.
            ranked: the values that tau is a quantile of, ascending, at least one.
            observations: the rows.
            worth: the number of evaluations that each row represents; see `AveragedValues`.
        """
        tau = threshold(ranked, self.proportion(len(ranked)))
        z, weight = self.label(values, ranked, tau)
        weight = weights_by_worth(weight, worth)
        return Labels(
            z.reshape(len(values), -1).float(),
            lighten_pending(weight, observations).float(),
            best=best_feasible(z, observations),
            separable=bool(ranked[-1] > tau) or bool((observations.status == Status.FAILED).any()),
            metrics={"tau": observations.columns.to_user(tau)},
            constraints=graded_constraints(observations) if observations.constraints.shape[1] else None,
            pending=observations.pending,
        )

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


class ThresholdLabels(ThresholdFamily):
    """z = [y <= tau] (BORE, Algorithm 1, line 3).

    Args:
        gamma: proportion of good observations, in (0, 1), or a schedule; the papers use 1/4 and 1/3.
    """

    def __init__(self, gamma: Gamma = 1 / 3):
        super().__init__(gamma)

    def label(self, values: Tensor, ranked: np.ndarray, tau: float) -> tuple[Tensor, Tensor]:
        return (values <= tau).to(values), torch.ones_like(values, dtype=torch.float)


class SeveralThresholds(ThresholdFamily):
    """One column of labels [y <= tau_j] for each of k proportions.

    The score is that of the mean of P(y <= tau_j), an improvement in ranks as with `RankGradedLabels`. It is not
    expected improvement, the integral of P(y <= s) over s, where column j would have the weight tau_{j+1} - tau_j.
    Networks learn the columns with k outputs on shared layers, other classifiers their mean.

    Args:
        gammas: k proportions in (0, 1).
    """

    def __init__(self, gammas: Sequence[float] = (0.05, 0.1, 0.2, 0.35, 0.5, 0.75)):
        if isinstance(gammas, str) or not isinstance(gammas, Sequence):
            raise SettingError(f"gammas must be a list of proportions, as in [0.1, 0.5], but got {gammas!r:.100}.")
        if not gammas:
            raise SettingError("at least one proportion is needed, but gammas is empty.")
        for gamma in gammas:
            required(gammas=gamma)
            between(0, 1, gammas=gamma)  # no schedules here
        self.gammas = [float(gamma) for gamma in gammas]
        super().__init__(max(self.gammas))
        self.outputs = len(self.gammas)

    def label(self, values: Tensor, ranked: np.ndarray, tau: float) -> tuple[Tensor, Tensor]:
        thresholds = values.new_tensor([threshold(ranked, gamma) for gamma in self.gammas])
        return (values[:, None] <= thresholds).to(values), torch.ones_like(values, dtype=torch.float)


def improvement_labels(values: Tensor, tau: float, ranked: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Soft labels and weights that give LFBO's loss for expected improvement (Song et al. 2022, eq. 9).

    That loss counts each observation once as a negative, and once as a positive with weight
    u = (tau - y)_+ / mean of it over the positives. One soft label u / (1 + u) of weight 1 + u is the same. The loss is
    least at E[u | x] / (1 + E[u | x]), which ranks points exactly by expected improvement over tau.

    Args:
        values: n; NaN counts as no improvement.
        tau: the threshold.
        ranked: the values that determine the scale, ascending; None for all. Gains are clipped to that of the first.

    Returns:
        z and weight, each n.
    """
    gain = torch.nan_to_num(tau - values, nan=0.0).clamp(min=0)
    trusted = gain if ranked is None else (tau - ranked).clamp(min=0)
    if not bool((trusted > 0).any()):
        u = (values <= tau).to(values)
    else:
        greatest = trusted.max()  # in these units no sum overflows
        u = gain.clamp(max=greatest) / greatest / (trusted[trusted > 0] / greatest).mean()
    return u / (1 + u), 1 + u


class ImprovementLabels(ThresholdFamily):
    """Threshold labels with positives weighted by their improvement (LFBO; see `improvement_labels`).

    Args:
        gamma: proportion of good observations, in (0, 1), or a schedule.
    """

    def __init__(self, gamma: Gamma = 1 / 3):
        super().__init__(gamma)

    def label(self, values: Tensor, ranked: np.ndarray, tau: float) -> tuple[Tensor, Tensor]:
        return improvement_labels(values, tau, torch.from_numpy(ranked).to(values))
