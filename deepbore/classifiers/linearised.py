"""Networks linearised in their weights: what of a Gaussian over the weights their outputs see.

The derivative of the output in layer l's weights is the outer product of two short vectors, a_l(x) and g_l(x) (see
`StackedMLP.jacobian_factors`), so that inner products of whole Jacobians cost no more than a forward pass. A Jacobian
that is known as a whole, n x P, is the product of itself and a column of ones.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property

import torch
from torch import Tensor

from deepbore.classifiers.link import Link
from deepbore.classifiers.posterior import GaussianPosterior

Factors = Sequence[tuple[Tensor, Tensor]]  # for each layer a (n x i) and g (n x o)
Weights = list[Tensor]  # for each layer i x o, after any leading dimensions
LEAST_VARIANCE = 1e-12


class WeightPosterior(ABC):
    """The Gaussian posterior of the weights' deviation from the MAP estimate, N(0, Sigma).

    Attributes:
        log_determinant: log det(Sigma^-1 / delta), with the prior N(0, I / delta).
        effective: number of parameters that the data determine (MacKay, 1992): tr(I - delta Sigma).
    """

    log_determinant: Tensor
    effective: Tensor

    @abstractmethod
    def variance(self, factors: Factors) -> Tensor:
        """J(x) Sigma J(x)^T for n points (n), with gradients in their factors."""

    @abstractmethod
    def covariance(self, factors: Factors) -> Tensor:
        """J(x) Sigma J(x')^T for all pairs of n points (n x n), with gradients in their factors."""

    @abstractmethod
    def sample(self, count: int, generator: torch.Generator) -> Weights:
        """Deviations from the MAP estimate, for each layer count x i x o."""


class LinearisedPosterior(GaussianPosterior):
    """The logit of a linearised network, f(x) ~ N(f(x; theta_MAP), J(x) Sigma J(x)^T), in closed form.

    Its members are samples of the weights: the same functions for all points, for the whole of an iteration. Deviations
    and members are worked out only when they are asked for.

    Args:
        mean: the network's logit, n.
        factors: of its Jacobian.
        weights: the posterior of the weights.
        samples: of the weights' deviation.
        link: what the scores are.
    """

    def __init__(self, mean: Tensor, factors: Factors, weights: WeightPosterior, samples: Weights, link: Link):
        super().__init__(mean, None, link)
        self.factors = [(a.double(), g.double()) for a, g in factors]
        self.weights, self.samples = weights, samples

    @cached_property
    def std(self) -> Tensor:
        return self.weights.variance(self.factors).clamp(min=LEAST_VARIANCE).sqrt().to(self.mean)

    @cached_property
    def members(self) -> Tensor:  # type: ignore[override]  # computed once
        return self._outputs(self.samples)

    def covariance(self) -> Tensor:
        return self.weights.covariance(self.factors).to(self.mean)

    def sample(self, count: int, generator: torch.Generator) -> Tensor:
        """Whole functions, from new samples of the weights: exact, and the cost grows with n only."""
        return self._outputs(self.weights.sample(count, generator))

    def _outputs(self, deviations: Weights) -> Tensor:
        return self.mean + linear_outputs(self.factors, deviations).to(self.mean)


def inner_products(left: Factors, right: Factors) -> Tensor:
    """J(x) J(x')^T for all pairs of points (n x m): the sum over layers of (a(x) . a(x')) (g(x) . g(x'))."""
    return torch.stack([(a @ b.mT) * (g @ h.mT) for (a, g), (b, h) in zip(left, right, strict=True)]).sum(0)


def flat_jacobian(factors: Factors) -> Tensor:
    """The derivative of the output in all P weights, n x P."""
    return torch.cat([(a[:, :, None] * g[:, None, :]).flatten(1) for a, g in factors], dim=-1)


def linear_outputs(factors: Factors, weights: Weights) -> Tensor:
    """J(x) theta for several theta: factors of n points, weights s x i x o -> s x n."""
    return torch.stack([((a @ w) * g).sum(-1) for (a, g), w in zip(factors, weights, strict=True)]).sum(0)
