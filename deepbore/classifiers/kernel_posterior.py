"""What probabilistic least squares knows of the scores at n points, with one setting of its kernel or with several."""

import math
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from deepbore.classifiers.kernels import ScaledKernel
from deepbore.classifiers.link import Link
from deepbore.classifiers.posterior import Posterior, covariance_over_members, gaussian_samples


@dataclass(frozen=True)
class KernelModel:
    """What the posterior of probabilistic least squares is computed from, with s >= 1 settings that count equally.

    Attributes:
        kernel: k, with s length scales for each parameter and s amplitudes; the most likely setting is the first.
        x: rows as coordinates, n x c.
        root: R with R^T R = (K_t + lambda I)^-1, s x n x n.
        coefficients: (K_t + lambda I)^-1 z_t, s x n.
        regularisation: lambda, s.
        information: log det(I + K_t / lambda) / 2, s.
    """

    kernel: ScaledKernel
    x: Tensor
    root: Tensor
    coefficients: Tensor
    regularisation: Tensor
    information: Tensor

    def alone(self, number: int) -> "KernelModel":
        """The model with one of the settings."""
        one = slice(number, number + 1)
        kernel = replace(self.kernel, scale=self.kernel.scale[one], amplitude=self.kernel.amplitude[one])
        solved = self.root[one], self.coefficients[one], self.regularisation[one], self.information[one]
        return KernelModel(kernel, self.x, *solved)


class KernelPosterior(Posterior):
    """pi_t and sigma_t of probabilistic least squares at n points; the mean alone costs no variance.

    With several settings it is a mixture of as many Gaussians.

    Args:
        model: what was fitted.
        x: the points as coordinates, n x c.
    """

    link = Link.IDENTITY

    def __init__(self, model: KernelModel, x: Tensor):
        self.model, self.x = model, x
        self._k = model.kernel(x, model.x)
        self._means = (self._k @ model.coefficients[..., None]).squeeze(-1)

    @cached_property
    def mean(self) -> Tensor:  # computed once
        return self._means.mean(0)

    @cached_property
    def std(self) -> Tensor:  # computed once, and only if it is asked for
        """sigma_t of Theorem 1, or of the mixture (n)."""
        if len(self._means) == 1:
            return self._stds[0]
        return (self._stds.square().mean(0) + self._means.var(0, correction=0)).sqrt()

    @property
    def components(self) -> tuple[Tensor, Tensor]:
        return self._means, self._stds

    def covariance(self) -> Tensor:
        """k(x, x') - k_t(x)^T (K_t + lambda I)^-1 k_t(x'), the joint form of Theorem 1's sigma_t^2 (n x n).

        Of a mixture the mean of that over the settings, and what the means differ by.
        """
        prior = self.model.kernel(self.x, self.x)
        covariance: Tensor = (prior - self._explained @ self._explained.mT).mean(0)
        return covariance if len(self._means) == 1 else covariance + covariance_over_members(self._means)

    def sample(self, count: int, generator: torch.Generator) -> Tensor:
        """Joint samples with settings drawn at random; the cost grows with n^3."""
        if len(self._means) == 1:
            return gaussian_samples(self.mean, self.covariance(), self._amplitude[0], count, generator)
        drawn = torch.randint(len(self._means), (count,), generator=generator, device=generator.device)
        samples = self.mean.new_empty(count, len(self.mean))
        for number in drawn.unique().tolist():
            mine = (drawn == number).nonzero().squeeze(-1)
            alone = KernelPosterior(self.model.alone(number), self.x)
            samples[mine.to(samples.device)] = alone.sample(len(mine), generator)
        return samples

    def beta(self, delta: float, norm: float) -> Tensor:
        """beta_t(delta) of Theorem 1: with probability 1 - delta, |pi - pi_t| <= beta_t sigma_t everywhere.

        beta_t = b + (sqrt(2 (log det(I + K_t / lambda) / 2 - log delta) / lambda)), under the theorem's assumptions:
        pi lies in the RKHS of a kernel that was fixed beforehand, as were lambda and what the labels mean. A learned
        kernel, and thresholds that move with the data, keep none of that promise. Of several settings the first counts.

        Args:
            delta: in (0, 1).
            norm: b, a bound on the RKHS norm of pi.

        Returns:
            A scalar.
        """
        return norm + (2 / self.model.regularisation[0] * (self.model.information[0] - math.log(delta))).sqrt()

    @cached_property
    def _stds(self) -> Tensor:
        """s x n."""
        variance = self._amplitude[:, None] - self._explained.square().sum(-1)
        return variance.clamp(min=1e-12).sqrt()

    @cached_property
    def _explained(self) -> Tensor:
        return self._k @ self.model.root.mT

    @property
    def _amplitude(self) -> Tensor:
        return self.model.kernel.amplitude.flatten()
