"""Labels by thresholds of one objective value: BORE's one threshold, and several at once.

The threshold tau is the smallest value that at least a proportion gamma of the values reach, tau = Phi^-1(gamma)
(BORE, Algorithm 1), so for distinct values and a fixed gamma one new observation flips at most one label of an older
one (BORE section 3.1 and appendix F).
"""

from abc import abstractmethod
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from deepbore.data.observations import Observations, Status
from deepbore.data.repeats import evaluated
from deepbore.data.thresholds import threshold
from deepbore.errors import SettingError
from deepbore.labels.base import Labelling, Labels, lighten_pending, weights_by_worth
from deepbore.labels.constraints import best_feasible, graded_constraints
from deepbore.labels.gamma import DecayingGamma, Gamma, checked_gamma
from deepbore.validation import between, required


class ThresholdFamily(Labelling):
    """What labellings by thresholds of one value share: gamma, tau, and class 0 for what has no value.

    Evaluations of one configuration have one label, that of their mean; where values came with their noise, the less
    of it the more a row weighs (`deepbore.data.repeats.evaluated`).

    With black-box constraints the label is that of the value, feasible or not, and each constraint has a grade of its
    own (`deepbore.labels.constraints`): one label of both has a jump at the border that no head learns as well.

    Args:
        gamma: proportion of good observations: a number in (0, 1) or a schedule.
    """

    def __init__(self, gamma: Gamma):
        self.gamma = checked_gamma(gamma)

    def __call__(self, observations: Observations) -> Labels:
        told = evaluated(observations)
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
        """Labels of values (n, NaN where there is none) that need not be the observations' own.

        Args:
            values: to minimise, n.
            ranked: those of them that tau is found among, ascending, at least one.
            observations: the rows.
            worth: evaluations that each row is worth, as of `Evaluated`.
        """
        tau = threshold(ranked, self.proportion(len(ranked)))
        z, weight = self.label(values, ranked, tau)
        weight = weights_by_worth(weight, worth)
        return Labels(
            z.reshape(len(values), -1).float(),
            lighten_pending(weight, observations).float(),
            best=best_feasible(z, observations),
            separable=bool(ranked[-1] > tau) or bool((observations.status == Status.FAILED).any()),
            metrics={"tau": observations.to_user(tau)},
            constraints=graded_constraints(observations),
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

    The score is of the mean of the columns, and ranks by the mean of P(y <= tau_j): improvement in ranks, in effect, as
    `RankGradedLabels` have it. It is not expected improvement, the integral of P(y <= s) over s, for which each column
    would weigh as much as the gap tau_{j+1} - tau_j to the next. Networks learn the columns with k outputs over a
    shared trunk, other classifiers their mean.

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
