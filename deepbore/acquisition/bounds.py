"""Class probability, its upper bounds and expectation, and single samples of the posterior.

All work on scores, because a probability that saturates has no gradient.
"""

from statistics import NormalDist
from typing import Protocol, runtime_checkable

from torch import Tensor

from deepbore.acquisition.base import Acquisition
from deepbore.classifiers.base import Classifier
from deepbore.classifiers.link import Link
from deepbore.classifiers.posterior import UNCERTAIN, Posterior
from deepbore.component import with_settings
from deepbore.errors import SettingError
from deepbore.validation import above, at_least, between, one_of, up_to, whole


class ClassProbability(Acquisition):
    """The mean score: for one network the ranking by BORE's class probability (Tiao et al. 2021, eq. 10).

    For several members the mean logit is not the logit of the mean probability, and the two can rank differently:
    `ExpectedProbability` ranks by the latter.
    """

    def __call__(self, posterior: Posterior, best: Tensor | float) -> Tensor:
        return posterior.mean


class UpperConfidenceBound(Acquisition):
    """mean + kappa * standard deviation of the score, as in BORE++ (Oliveira et al. 2022, eq. 20, unclipped).

    A constant kappa guarantees no coverage: `TheoremBound` has the conditions of Theorem 1.

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
    """A posterior with the beta_t of Theorem 1, such as that of `KernelPLS`."""

    def beta(self, delta: float, norm: float) -> Tensor | float:
        """beta_t(delta), given the bound on the RKHS norm of pi."""


class TheoremBound(Acquisition):
    """pi_t + beta_t(delta) sigma_t of probabilistic least squares, the bound of BORE++ (Oliveira et al. 2022, eq. 20).

    beta_t grows with the information in the data. By Theorem 1 the true pi lies below the bound at all points and all
    iterations, with probability 1 - delta, if

    - tau is fixed, so that labels keep their meaning;
    - pi is in the RKHS of the kernel with a norm of at most `norm` (without noise pi is a step, and is not);
    - k(x, x) <= 1;
    - labels are pi plus noise that is 1-sub-Gaussian given the past (as it is for labels in [0, 1]);
    - the kernel and lambda are fixed before the data are seen.

    `KernelPLS` learns the last two unless `length_scale` and `regularisation` are given, and tau moves with the data:
    then the bound is a heuristic. The paper's experiments fix beta_t to 3: `UpperConfidenceBound(3)`.

    Args:
        delta: probability of failure, in (0, 1).
        norm: b > 0, a bound on the RKHS norm of pi. It cannot be learned from the data.

    Raises:
        SettingError: for a number outside its range; for a classifier other than `KernelPLS`, unless its class sets
            `has_theorem_bound = True`, and its posterior is a `TheoremPosterior`.
    """

    needs = frozenset({"std"})
    suited = "KernelPLS"
    otherwise = "UpperConfidenceBound"
    by_moments = False

    def __init__(self, delta: float = 0.1, norm: float = 1.0):
        between(0, 1, delta=delta)
        above(0, norm=norm)
        self.delta, self.norm = delta, norm

    def check(self, classifier: Classifier) -> None:
        super().check(classifier)
        if not getattr(classifier, "has_theorem_bound", False):
            raise SettingError(
                f"TheoremBound needs the beta_t of Theorem 1, which {type(classifier).__name__} does not have. "
                f"Use {self.suited}, or {self.otherwise}."
            )

    def __call__(self, posterior: Posterior, best: Tensor | float) -> Tensor:
        if not isinstance(posterior, TheoremPosterior):
            raise SettingError("TheoremBound needs the scores of KernelPLS. Use UpperConfidenceBound for other models.")
        return posterior.mean + posterior.beta(self.delta, self.norm) * posterior.std


class QuantileBound(Acquisition):
    """A quantile of the score: over the members if there are any, else of the Gaussian, mean + Phi^-1(level) std.

    Args:
        level: of the quantile, in (0, 1]; below 1 for classifiers without members.

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


WITH_MEMBERS = "DeepEnsemble, HyperDeepEnsemble, MCDropout, LaplaceGGN or RandomForest"


class ExpectedProbability(Acquisition):
    """E[pi(x)] under the posterior of the score, as a score, where it keeps gradients (BOGGN eq. 3.1).

    For estimated labels it is the mean. For logits and probits it is the score whose probability is the expected one,
    from mean and standard deviation (`Link.expected_score`: exact for probits, the probit approximation for logits).
    With `by="samples"` it is the logit of the members' mean probability (BOGGN eq. 7.6).

    Args:
        by: "probit", for classifiers with a standard deviation, or "samples", for classifiers with members.

    Raises:
        SettingError: for another value.
    """

    def __init__(self, by: str = "probit"):
        one_of(("probit", "samples"), by=by)
        self.by = by
        self.needs = frozenset({"members"} if by == "samples" else {"std"})
        self.suited = f'{WITH_MEMBERS}, by="probit"' if by == "samples" else UNCERTAIN

    def __call__(self, posterior: Posterior, best: Tensor | float) -> Tensor:
        if self.by == "samples":
            return posterior.link.score_of_mean(self._members(posterior), 0)
        if posterior.link is Link.IDENTITY:  # the mean does not depend on the deviation
            return posterior.mean
        return posterior.link.expected_score(posterior.mean, posterior.std)

    def log_density(self, posterior: Posterior, best: Tensor | float) -> Tensor:
        if self.by == "samples" and posterior.link is not Link.IDENTITY:
            return posterior.link.log_probability(self._members(posterior)).logsumexp(0)
        return super().log_density(posterior, best)

    def check(self, classifier: Classifier) -> None:
        if self.by == "samples" or classifier.link is not Link.IDENTITY:
            super().check(classifier)

    def _members(self, posterior: Posterior) -> Tensor:
        return members_of(posterior, 'ExpectedProbability(by="samples")')


class PosteriorSample(Acquisition):
    """The score of one member or posterior sample; maximising it is Thompson sampling.

    For classifiers whose samples are the same functions at all points. `ThompsonBatch` draws from any posterior.

    Args:
        member: its index from 0, modulo the number of members.

    Raises:
        SettingError: unless member is a whole number >= 0.
    """

    needs = frozenset({"members"})
    suited = f"{WITH_MEMBERS}, or the search ThompsonBatch"

    def __init__(self, member: int = 0):
        whole(0, member=member)
        self.member = member

    def __call__(self, posterior: Posterior, best: Tensor | float) -> Tensor:
        members = members_of(posterior, "PosteriorSample")
        return members[self.member % len(members)]


def members_of(posterior: Posterior, who: str) -> Tensor:
    """The members' scores (m x n). Raises SettingError for a posterior without members."""
    if posterior.members is None:
        raise SettingError(f"{who} needs members of the scores, but the classifier has none. Use {WITH_MEMBERS}.")
    return posterior.members
