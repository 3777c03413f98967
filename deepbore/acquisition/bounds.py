"""Class probability, and upper bounds on it. All work on scores, where a probability would have no gradient."""

from statistics import NormalDist
from typing import Protocol, runtime_checkable

from torch import Tensor

from deepbore.acquisition.base import Acquisition
from deepbore.checks import above, at_least, between, up_to
from deepbore.classifiers.base import Classifier
from deepbore.classifiers.posterior import Posterior
from deepbore.errors import SettingError
from deepbore.parts import with_settings


class ClassProbability(Acquisition):
    """The mean score. Of one network it ranks points as BORE's class probability does (Tiao et al. 2021, eq. 10).

    Of several members the mean logit is not the logit of the mean probability, and the two can rank differently:
    `ExpectedProbability` ranks by the latter.
    """

    def __call__(self, posterior: Posterior, best: Tensor | float) -> Tensor:
        return posterior.mean


class UpperConfidenceBound(Acquisition):
    """mean + kappa * standard deviation of the score, as in BORE++ (Oliveira et al. 2022, eq. 20, unclipped).

    With a constant kappa it promises no coverage: what Theorem 1 needs for that is said at `TheoremBound`.

    Args:
        kappa: standard deviations above the mean, >= 0; None for what suits the classifier (its `kappa`).

    Raises:
        SettingError: for kappa < 0.
    """

    needs = frozenset({"std"})

    def __init__(self, kappa: float | None = None):
        at_least(0, kappa=kappa)
        self.kappa = kappa

    def __call__(self, posterior: Posterior, best: Tensor | float) -> Tensor:
        if self.kappa is None:
            raise SettingError("kappa is left to the classifier: take `UpperConfidenceBound().resolved(classifier)`.")
        return posterior.mean + self.kappa * posterior.std

    def resolved(self, classifier: Classifier) -> Acquisition:
        """With the classifier's `kappa` in place of None."""
        return self if self.kappa is not None else with_settings(self, kappa=classifier.kappa)


@runtime_checkable
class TheoremPosterior(Protocol):
    """A posterior that knows the beta_t of Theorem 1; `KernelPLS` has it."""

    def beta(self, delta: float, norm: float) -> Tensor | float:
        """beta_t(delta), given the bound on the RKHS norm of pi."""


class TheoremBound(Acquisition):
    """pi_t + beta_t(delta) sigma_t of probabilistic least squares, the bound of BORE++ (Oliveira et al. 2022, eq. 20).

    beta_t grows with the information in the data as Theorem 1 says. The theorem promises that, with probability 1 -
    delta, the true pi lies below the bound at all points and all iterations, if: tau is fixed, so that labels keep
    their meaning; pi is in the RKHS of the kernel with a norm of at most `norm`, which without noise, when pi is a
    step, it is not; k(x, x) <= 1; the labels are pi plus noise that is 1-sub-Gaussian given all before, as of labels in
    [0, 1] it is; and the kernel and lambda are fixed before the data are seen. `KernelPLS` learns both unless
    `length_scale` and `regularisation` are given, and tau moves with the data: then the bound is a rule of thumb. The
    experiments of the paper fix beta_t to 3: `UpperConfidenceBound(3)`.

    Args:
        delta: probability of failure, in (0, 1).
        norm: b > 0, a bound on the RKHS norm of pi. It cannot be learned from the data.

    Raises:
        SettingError: for a number outside its range; when asked of a classifier other than `KernelPLS`.
    """

    needs = frozenset({"std", "theorem"})
    heads = "KernelPLS"
    otherwise = "UpperConfidenceBound"

    def __init__(self, delta: float = 0.1, norm: float = 1.0):
        between(0, 1, delta=delta)
        above(0, norm=norm)
        self.delta, self.norm = delta, norm

    def __call__(self, posterior: Posterior, best: Tensor | float) -> Tensor:
        if not isinstance(posterior, TheoremPosterior):
            raise SettingError("TheoremBound needs the scores of KernelPLS. Use UpperConfidenceBound for other heads.")
        return posterior.mean + posterior.beta(self.delta, self.norm) * posterior.std


class QuantileBound(Acquisition):
    """A quantile of the score: over the members where there are some, else of the Gaussian, mean + Phi^-1(level) std.

    Args:
        level: of the quantile, in (0, 1]; below 1 for heads without members.

    Raises:
        SettingError: for a level outside (0, 1].
    """

    needs = frozenset({"std"})

    def __init__(self, level: float = 0.8):
        up_to(0, 1, level=level)
        self.level = level

    def __call__(self, posterior: Posterior, best: Tensor | float) -> Tensor:
        if posterior.members is not None:
            return posterior.members.quantile(self.level, dim=0)
        self._check_level("a Gaussian score")
        return posterior.mean + NormalDist().inv_cdf(self.level) * posterior.std

    def check(self, classifier: Classifier) -> None:
        super().check(classifier)
        if "members" not in classifier.capabilities:
            self._check_level(f"the Gaussian score of {type(classifier).__name__}")

    def _check_level(self, what: str) -> None:
        if self.level == 1:
            raise SettingError(f"level < 1 must hold for {what}, whose greatest value is infinite, but got level=1.")
