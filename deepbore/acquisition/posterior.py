"""Acquisitions of a classifier's posterior: expected probability, and single samples."""

from torch import Tensor

from deepbore.acquisition.base import Acquisition
from deepbore.checks import one_of, whole
from deepbore.classifiers.base import Classifier
from deepbore.classifiers.link import Link
from deepbore.classifiers.posterior import UNCERTAIN, Posterior
from deepbore.errors import SettingError

WITH_MEMBERS = "DeepEnsemble, HyperDeepEnsemble, MCDropout, LaplaceGGN or RandomForest"


class ExpectedProbability(Acquisition):
    """E[pi(x)] under the posterior of the score, as a score, where it keeps gradients (BOGGN eq. 3.1).

    Of an estimated label it is the mean. Of logits and probits it is the score whose probability is the expected one,
    from mean and deviation (`Link.expected_score`: exact for probits, the probit approximation for logits). From the
    members (BOGGN eq. 7.6) it is the logit of the mean probability.

    Args:
        by: "probit", for heads with a deviation, or "samples", for heads with members.

    Raises:
        SettingError: for another way.
    """

    def __init__(self, by: str = "probit"):
        one_of(("probit", "samples"), by=by)
        self.by = by
        self.needs = frozenset({"members"} if by == "samples" else {"std"})
        self.heads = f'{WITH_MEMBERS}, by="probit"' if by == "samples" else UNCERTAIN

    def __call__(self, posterior: Posterior, best: Tensor | float) -> Tensor:
        if self.by == "samples":
            return posterior.link.score_of_mean(self._members(posterior), 0)
        if posterior.link is Link.IDENTITY:  # the deviation does not matter
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
    """The score of one member or posterior sample: maximised, it is Thompson sampling.

    For heads whose samples are the same functions at all points. `ThompsonBatch` draws from any posterior.

    Args:
        member: which one, counted from 0, modulo their number.

    Raises:
        SettingError: for a member that is no whole number >= 0.
    """

    needs = frozenset({"members"})
    heads = f"{WITH_MEMBERS}, or the search ThompsonBatch"

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
