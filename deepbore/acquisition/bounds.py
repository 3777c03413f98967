"""Class probability, and upper bounds on it. All work on scores (logits), where a sigmoid would have no gradient."""

from torch import Tensor

from deepbore.acquisition.base import Acquisition
from deepbore.classifiers.base import Classifier
from deepbore.classifiers.kernel_pls import KernelPLS
from deepbore.errors import SettingError


class ClassProbability(Acquisition):
    """The mean score, which ranks points as BORE's class probability does (Tiao et al. 2021, eq. 10)."""

    def __call__(self, classifier: Classifier, points: Tensor) -> Tensor:
        return classifier.gaussian(points)[0]


class UpperConfidenceBound(Acquisition):
    """mean + kappa * standard deviation of the score, as in BORE++ (Oliveira et al. 2022, eq. 20, unclipped).

    Args:
        kappa: standard deviations above the mean, >= 0; None for what suits the classifier (its `kappa`).

    Raises:
        SettingError: for kappa < 0.
    """

    def __init__(self, kappa: float | None = None):
        if kappa is not None and not kappa >= 0:
            raise SettingError(f"kappa >= 0 must hold, but got kappa={kappa}.")
        self.kappa = kappa

    def __call__(self, classifier: Classifier, points: Tensor) -> Tensor:
        mean, std = classifier.gaussian(points)
        return mean + (classifier.kappa if self.kappa is None else self.kappa) * std


class TheoremBound(Acquisition):
    """pi_t + beta_t(delta) sigma_t of probabilistic least squares, the bound of BORE++ (Oliveira et al. 2022, eq. 20).

    beta_t grows with the information in the data as Theorem 1 says, so with probability 1 - delta the true pi is below
    the bound everywhere, at all iterations. The experiments of the paper fix beta_t to 3: `UpperConfidenceBound(3)`.

    Args:
        delta: probability of failure, in (0, 1).
        norm: b > 0, a bound on the RKHS norm of pi.

    Raises:
        SettingError: for a number outside its range; when asked of a classifier other than `KernelPLS`.
    """

    def __init__(self, delta: float = 0.1, norm: float = 1.0):
        if not 0 < delta < 1:
            raise SettingError(f"0 < delta < 1 must hold, but got delta={delta}.")
        if not norm > 0:
            raise SettingError(f"norm > 0 must hold, but got norm={norm}.")
        self.delta, self.norm = delta, norm

    def __call__(self, classifier: Classifier, points: Tensor) -> Tensor:
        if not isinstance(classifier, KernelPLS):
            what = type(classifier).__name__
            raise SettingError(f"TheoremBound needs KernelPLS, but got {what}. Use UpperConfidenceBound.")
        mean, std = classifier.gaussian(points)
        return mean + classifier.beta(self.delta, self.norm) * std


class QuantileBound(Acquisition):
    """An empirical quantile of the members' scores, for classifiers with members or samples.

    Args:
        level: of the quantile, in (0, 1].

    Raises:
        SettingError: for a level outside (0, 1].
    """

    def __init__(self, level: float = 0.8):
        if not 0 < level <= 1:
            raise SettingError(f"0 < level <= 1 must hold, but got level={level}.")
        self.level = level

    def __call__(self, classifier: Classifier, points: Tensor) -> Tensor:
        return classifier.scores(points).quantile(self.level, dim=0)
