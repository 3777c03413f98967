"""`Posterior`: the joint distribution of a classifier's scores at n points."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from deepbore.classifiers.link import Link
from deepbore.compute.arrays import Array, as_tensor, native
from deepbore.compute.numerics import LinAlgError
from deepbore.errors import SettingError

# means and standard deviations (n each) -> values of n points, and their derivatives in the means and in the deviations
MomentFormula: TypeAlias = Callable[[Array, Array], tuple[Array, Array, Array]]

UNCERTAIN = (
    "DeepEnsemble, HyperDeepEnsemble, MCDropout, LaplaceGGN, KernelPLS, LibraryPLS, DeepPLS, GPClassifier, "
    "FourierLogistic or RandomForest"
)
JITTERS = (1e-10, 1e-8, 1e-6)  # relative to the variance: the covariance of many close points is rank-deficient


@dataclass(frozen=True)
class Noiseless:
    """The scores at n points in s scenarios, each a draw of the rows' labels without their noise.

    Attributes:
        mean: n x s.
        std: the same in all scenarios, n.
        shift: the best label of each scenario minus the best observed one, s.
    """

    mean: Tensor
    std: Tensor
    shift: Tensor


class Posterior(ABC):
    """The joint distribution of the scores at n points, with gradients in the points if the classifier has them.

    A moment that a classifier does not have raises `SettingError`, with the classifiers that have it. Acquisitions and
    searches are checked against `Classifier.capabilities` before a run begins.

    Attributes:
        link: the meaning of the scores.
        members: scores of m members, or of m samples that are the same functions for all points (m x n); None for
            models without members.
        has_exact_moments: whether samples have exactly the stated mean and covariance.
    """

    link: Link
    members: Tensor | None = None
    has_exact_moments: bool = True

    @property
    def noiseless(self) -> Noiseless | None:
        """Scenarios without the noise of the labels; None for models without them."""
        return None

    @property
    @abstractmethod
    def mean(self) -> Tensor:
        """Means, n."""

    @property
    @abstractmethod
    def std(self) -> Tensor:
        """Standard deviations, n. Raises SettingError for a point estimate."""

    @abstractmethod
    def covariance(self) -> Tensor:
        """Between all points, n x n. Raises SettingError for a point estimate."""

    @abstractmethod
    def sample(self, count: int, generator: torch.Generator) -> Tensor:
        """Joint samples, count x n. Raises SettingError for a point estimate."""

    def of_moments(self, formula: MomentFormula) -> Tensor:
        """A formula of means and standard deviations, with gradients by its own derivatives, in double precision: n.

        A subclass may override it to compute value and gradient at once.
        """
        value: Tensor = OfMoments.apply(self.mean.double(), self.std.double(), formula)
        return value

    @property
    def probability(self) -> Tensor:
        """Expected probability of class 1, or expected label, n."""
        if self.link is Link.IDENTITY:  # independent of the deviation, which may be costly
            return self.link.probability(self.mean)
        return self.link.probability(self.link.expected_score(self.mean, self.std))


class OfMoments(torch.autograd.Function):
    """A formula of means and deviations as a function of torch."""

    @staticmethod
    def forward(ctx: Any, mean: Tensor, std: Tensor, formula: MomentFormula) -> Tensor:
        value, ctx.by_mean, ctx.by_std = formula(native(mean), native(std))
        return as_tensor(value)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, derivative: Tensor) -> tuple[Tensor, Tensor, None]:
        by = native(derivative)
        return as_tensor(by * ctx.by_mean), as_tensor(by * ctx.by_std), None


class MeanOnlyPosterior(Posterior):
    """A posterior without deviations. A subclass implements `unavailable`, the error that says what to use instead."""

    @property
    def std(self) -> Tensor:
        raise self.unavailable("standard deviation")

    def covariance(self) -> Tensor:
        raise self.unavailable("covariance")

    def sample(self, count: int, generator: torch.Generator) -> Tensor:
        raise self.unavailable("posterior samples")

    @abstractmethod
    def unavailable(self, what: str) -> SettingError:
        """The error for a request of what this posterior does not have."""


class PointEstimate(MeanOnlyPosterior):
    """One score per point, without uncertainty.

    Args:
        score: n.
        link: the meaning of the score.
        model: name of the classifier, for messages.
        rows: that it has learned, for `supported`; None for probabilities as the scores have them.
    """

    def __init__(self, score: Tensor, link: Link, model: str, rows: Tensor | None = None):
        self.score, self.link, self.model, self.rows = score, link, model, rows

    @property
    def mean(self) -> Tensor:
        return self.score

    @property
    def probability(self) -> Tensor:
        return supported(self.link.probability(self.score), self.rows)

    def unavailable(self, what: str) -> SettingError:
        return SettingError(f"{self.model} gives one score a point, so it has no {what}. Use {UNCERTAIN}.")


class MembersPosterior(Posterior):
    """The scores of m equally weighted members or posterior samples.

    Args:
        members: m x n.
        link: the meaning of the scores.
        rows: that they have learned, for `supported`; None for probabilities as the scores have them.
    """

    members: Tensor

    def __init__(self, members: Tensor, link: Link, rows: Tensor | None = None):
        self.members, self.link, self.rows = members, link, rows

    @cached_property
    def mean(self) -> Tensor:  # computed once
        return self.members.mean(0)

    @cached_property
    def std(self) -> Tensor:  # computed once
        return self.members.std(0, correction=0)

    def covariance(self) -> Tensor:
        return covariance_over_members(self.members)

    def sample(self, count: int, generator: torch.Generator) -> Tensor:
        """Members drawn at random, with replacement."""
        drawn = torch.randint(len(self.members), (count,), generator=generator, device=generator.device)
        return self.members[drawn.to(self.members.device)]

    @property
    def probability(self) -> Tensor:
        return supported(self.link.probability(self.members).mean(0), self.rows)


class GaussianPosterior(Posterior):
    """A Gaussian posterior, its covariance computed on request. A subclass implements `covariance`.

    Args:
        mean: n.
        std: n; None if the subclass overrides `std`.
        link: the meaning of the scores.
    """

    def __init__(self, mean: Tensor, std: Tensor | None, link: Link):
        self._mean, self._std, self.link = mean, std, link

    @property
    def mean(self) -> Tensor:
        return self._mean

    @property
    def std(self) -> Tensor:
        assert self._std is not None, f"{type(self).__name__} must implement std, or be given it"
        return self._std

    @property
    def scale(self) -> Tensor:
        """A variance of the size of the covariance's entries, such as that of the prior (a scalar)."""
        return self.std.max().square()

    def sample(self, count: int, generator: torch.Generator) -> Tensor:
        """Samples by a Cholesky factor of the covariance; the cost grows with n^3."""
        root = _root(self.covariance().double(), self.scale.double().clamp(min=1e-12))
        noise = torch.randn(count, len(root), dtype=root.dtype, generator=generator, device=generator.device)
        samples: Tensor = self.mean + noise.to(root) @ root.mT
        return samples.to(self.mean)


def _root(covariance: Tensor, scale: Tensor) -> Tensor:
    """The Cholesky factor with the least jitter that gives one: more would drown a small posterior variance.

    Raises:
        LinAlgError: if the largest jitter gives none.
    """
    root: Tensor
    for jitter in JITTERS:
        root, info = torch.linalg.cholesky_ex(covariance + (jitter * scale).expand(len(covariance)).diag())
        if not int(info):
            return root
    raise LinAlgError(
        f"the covariance of the scores is not positive semidefinite: jitter {JITTERS[-1]:g} is too little."
    )


class LinearPosterior(GaussianPosterior):
    """An equal mixture of m linear functions of features with Gaussian weights w_i ~ N(mean_i, root_i root_i^T).

    The covariance is the mean of the members' covariances plus the covariance of their means.

    Args:
        phi: features of the points in each member, m x n x h.
        mean: of the weights, m x h.
        root: m x h x h.
        link: the meaning of the scores.
    """

    def __init__(self, phi: Tensor, mean: Tensor, root: Tensor, link: Link):
        self.phi, self.weights, self.root = phi, mean, root
        self._means = (phi @ mean[..., None]).squeeze(-1)  # m x n
        super().__init__(self._means.mean(0), None, link)

    @cached_property
    def std(self) -> Tensor:  # computed once, on request
        variance = (self.phi @ self.root).square().sum(-1)  # m x n
        return (variance.mean(0) + self._means.var(0, correction=0)).sqrt()

    def covariance(self) -> Tensor:
        roots = self.phi @ self.root  # m x n x h
        return (roots @ roots.mT).mean(0) + covariance_over_members(self._means)

    def sample(self, count: int, generator: torch.Generator) -> Tensor:
        """Samples by weights of members drawn at random; the cost is linear in n."""
        m, h = self.weights.shape
        member = torch.randint(m, (count,), generator=generator, device=generator.device)
        noise = torch.randn(count, h, dtype=self.phi.dtype, generator=generator, device=generator.device)
        samples = self.phi.new_empty(count, self.phi.shape[1])
        for number, (phi, mean, root) in enumerate(zip(self.phi, self.weights, self.root, strict=True)):
            mine = (member == number).nonzero().squeeze(-1)
            samples[mine.to(phi.device)] = (mean + noise[mine].to(phi) @ root.mT) @ phi.mT
        return samples


def of_members(scores: Tensor, link: Link, name: str, rows: Tensor | None = None) -> Posterior:
    """The posterior of m >= 1 equally weighted members; of a single one, a point estimate.

    Args:
        scores: m x n.
        link: the meaning of the scores.
        name: of the classifier, for messages.
        rows: that they have learned, for `supported`; None for probabilities as the scores have them.
    """
    return MembersPosterior(scores, link, rows) if len(scores) > 1 else PointEstimate(scores[0], link, name, rows)


def supported(probability: Tensor, rows: Tensor | None) -> Tensor:
    """Probabilities of any shape as far as n rows support them: (n p + 1) / (n + 2).

    By Laplace's rule of succession, as if one good and one bad row more had been seen: after n rows that are all bad
    the next one is good with probability 1 / (n + 2). The order of probabilities stays as it is.

    Args:
        probability: in [0, 1].
        rows: n, a scalar; None, or 0 as before the first training, for no change.
    """
    if rows is None:
        return probability
    return torch.where(rows > 0, (rows * probability + 1) / (rows + 2), probability)


def covariance_over_members(scores: Tensor) -> Tensor:
    """Scores of m equally weighted members (m x n) -> their covariance between points (n x n)."""
    deviations = scores - scores.mean(0)
    return deviations.mT @ deviations / len(scores)
