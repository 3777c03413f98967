"""A sparse variational Gaussian process in GPyTorch; imported on first use, as GPyTorch takes seconds to import."""

import math

import torch
from gpytorch.distributions import MultivariateNormal
from gpytorch.kernels import MaternKernel
from gpytorch.models import ApproximateGP
from gpytorch.optim import NGD
from gpytorch.utils.memoize import clear_cache_hook
from gpytorch.utils.quadrature import GaussHermiteQuadrature1D
from gpytorch.variational import NaturalVariationalDistribution, VariationalStrategy
from torch import Tensor, nn

# normal priors (mean and standard deviation) of the log length scales, of the log amplitude, and of the constant mean
LENGTH_SCALE, AMPLITUDE, MEAN = (-0.8, 1.0), (1.5, 1.0), (0.0, 1.0)


class VariationalGP(ApproximateGP):
    """f ~ GP(c, a Matern-5/2 of scaled coordinates), with q(u) Gaussian at M inducing points, whitened.

    (Hensman, Matthews & Ghahramani, Scalable variational Gaussian process classification, 2015.)

    Args:
        block: the block of each of the c coordinates: all coordinates of a block share a length scale.
        inducing: M points as coordinates, M x c.
    """

    def __init__(self, block: Tensor, inducing: Tensor):
        distribution = NaturalVariationalDistribution(len(inducing))
        super().__init__(VariationalStrategy(self, inducing, distribution, learn_inducing_locations=False))
        self.variational_strategy.variational_params_initialized.fill_(1)  # at the prior; GPyTorch would add noise
        d = int(block.max()) + 1
        prior = torch.tensor([LENGTH_SCALE] * d + [AMPLITUDE, MEAN])
        prior[:d, 0] += 0.5 * math.log(d)  # distances grow with the square root of d
        self.theta = nn.Parameter(prior[:, 0].clone())
        self.register_buffer("prior", prior, persistent=False)
        self.register_buffer("block", block, persistent=False)
        self.kernel = MaternKernel(nu=2.5)
        self.kernel.initialize(lengthscale=1.0).requires_grad_(False)
        self.quadrature = GaussHermiteQuadrature1D()
        self.double()

    def forward(self, x: Tensor) -> MultivariateNormal:
        """The prior at coordinates n x c."""
        scaled = x * (-self.theta[:-2]).exp()[self.block]
        return MultivariateNormal(self.theta[-1].expand(len(x)), self.kernel(scaled) * self.theta[-2].exp())

    def marginals(self, x: Tensor) -> MultivariateNormal:
        """q(f) at coordinates n x c, without GPyTorch's cache: it keeps results of older parameters.

        In training mode, with more points than inducing points, GPyTorch gives the diagonal only: see `covariance`.
        """
        clear_cache_hook(self.variational_strategy)
        try:
            return self(x)
        finally:
            clear_cache_hook(self.variational_strategy)  # cached tensors with gradients could not be copied

    def covariance(self, x: Tensor) -> Tensor:
        """Covariance of f under q between coordinates (n x c -> n x n).

        K_xx + A^T (S - I) A with A = L^-1 K_ux, L L^T = K_uu and the whitened covariance S. In training mode, as in a
        run, GPyTorch itself gives only the diagonal.
        """
        strategy, m = self.variational_strategy, len(self.variational_strategy.inducing_points)
        kernel = self(torch.cat([strategy.inducing_points, x]), prior=True).covariance_matrix
        identity = torch.eye(m, dtype=kernel.dtype, device=kernel.device)
        factor = torch.linalg.cholesky(kernel[:m, :m] + strategy.jitter_val * identity)
        a = torch.linalg.solve_triangular(factor, kernel[:m, m:], upper=False)
        whitened = strategy.variational_distribution.covariance_matrix - identity
        covariance: Tensor = kernel[m:, m:] + a.mT @ whitened @ a
        return covariance

    def elbo(self, x: Tensor, z: Tensor, weight: Tensor) -> Tensor:
        """The evidence lower bound: sum of w E_q[z log Phi(f) + (1 - z) log Phi(-f)], minus KL(q, prior).

        Args:
            x: coordinates, n x c.
            z: labels in [0, 1], n.
            weight: weights, n: a weight of 2 counts a row twice.
        """
        expected: Tensor = self.quadrature(
            lambda f: z * torch.special.log_ndtr(f) + (1 - z) * torch.special.log_ndtr(-f), self.marginals(x)
        )
        divergence: Tensor = self.variational_strategy.kl_divergence()
        return (weight * expected).sum() - divergence

    def log_prior(self) -> Tensor:
        """Log density of the hyperparameters, up to a constant."""
        prior: Tensor = self.prior
        return -((self.theta - prior[:, 0]) / prior[:, 1]).square().sum() / 2

    @torch.no_grad()
    def restart(self, inducing: Tensor) -> NGD:
        """Sets the inducing points (M x c) and q to the prior, and returns the optimizer of q.

        A natural gradient step of rate 1 solves for q as if the likelihood were Gaussian, like a Newton step. As the
        likelihood is log-concave, the precision stays positive definite.
        """
        self.variational_strategy.inducing_points.copy_(inducing)
        vector, matrix = self.variational_parameters()
        vector.zero_()
        matrix.copy_(-0.5 * torch.eye(len(inducing)))
        return NGD([vector, matrix], num_data=1, lr=1.0)
