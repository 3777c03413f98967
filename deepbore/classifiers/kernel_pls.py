"""`KernelPLS`: probabilistic least squares in a reproducing kernel Hilbert space."""

import math
from typing import Any

import numpy as np
import torch
from scipy.optimize import minimize
from torch import Tensor

from deepbore.classifiers.base import Classifier
from deepbore.classifiers.kernels import KERNELS
from deepbore.errors import SettingError
from deepbore.labels.datamodule import LabelledBatch
from deepbore.space import Real, SearchSpace
from deepbore.space.coordinates import Coordinates, squared_distances

JITTER = 1e-8
NEGLIGIBLE = 1e-3  # the weight of rows that are left out
SAMPLE_JITTER = 1e-6  # of the amplitude: among many points close together the covariance has no full rank
FULL_BUDGET = 100  # rows up to which all iterations are spent; beyond, each costs more and changes less
# log-normal priors (mean and standard deviation of the logarithm) and bounds of the logarithm
LENGTH_SCALE, LEVEL_LENGTH_SCALE, AMPLITUDE = (-0.8, 1.0), (-0.1, 1.0), (0.0, 2.0)
LAMBDA, LEVEL_LAMBDA = (-7.0, 2.0), (-6.0, 3.0)  # between levels a smooth kernel leaves more unexplained
BOUNDS = {"length_scale": (-4.6, 4.6), "amplitude": (-4.0, 4.0), "lambda": (-13.0, 1.0)}


class KernelPLS(Classifier):
    """The regularised least-squares fit of the labels in an RKHS, and its confidence interval.

        pi_t(x) = k_t(x)^T (K_t + lambda I)^-1 z_t                                   (Oliveira et al. 2022, eq. 13)
        sigma_t(x)^2 = k(x, x) - k_t(x)^T (K_t + lambda I)^-1 k_t(x)                 (ibid., Theorem 1)

    It is also the posterior of a Gaussian process with the labels as noisy values, whose marginal likelihood chooses
    one length scale for each parameter, the amplitude and lambda, warm from one iteration to the next. Labels graded by
    value make pi_t an estimate of expected improvement (see `deepbore.labels.graded_by_value`). The prior mean is 0:
    what is far from all data counts as bad, but uncertain.

    A departure from the paper: beyond `rows` observations it learns from a coreset, so that its cost stays flat.

    Args:
        kernel: "matern" (5/2), "rbf" or "rational_quadratic".
        length_scale: fixed for all parameters, with amplitude 1, in units of a parameter's whole range; None to learn.
        regularisation: lambda > 0, fixed; None to learn it.
        rows: how many observations it learns from at most.
        iterations: of L-BFGS on the marginal likelihood, per iteration of the run; fewer beyond 100 rows.

    Raises:
        SettingError: for an unknown kernel, or a number outside its range.

    Example:
        >>> from deepbore.testing import TOY_SPACES, fit, toy_data
        >>> space = TOY_SPACES["continuous"]
        >>> mean, std = fit(KernelPLS(), toy_data(space)).gaussian(space.sobol(4, seed=0))
        >>> mean.shape, std.shape
        (torch.Size([4]), torch.Size([4]))

    References:
        Oliveira, Tiao & Ramos, Batch Bayesian optimisation via density-ratio estimation with guarantees, 2022.
    """

    estimates_labels = True
    distance_aware = True
    kappa = 2.0

    def __init__(
        self,
        kernel: str = "matern",
        length_scale: float | None = None,
        regularisation: float | None = None,
        rows: int = 200,
        iterations: int = 15,
    ):
        super().__init__()
        if kernel not in KERNELS:
            raise SettingError(f"kernel must be one of {sorted(KERNELS)}, but got {kernel!r}.")
        for name, value in {"length_scale": length_scale, "regularisation": regularisation, "rows": rows}.items():
            if value is not None and not value > 0:
                raise SettingError(f"{name} > 0 must hold, but got {name}={value}.")
        self.kernel = KERNELS[kernel]
        self.length_scale, self.regularisation = length_scale, regularisation
        self.rows, self.iterations = rows, iterations

    theta: Tensor  # logarithms of d length scales, the amplitude and lambda

    def build(self, space: SearchSpace, outputs: int) -> None:
        d = len(space)
        self.coordinates = Coordinates(space)
        real = [isinstance(p, Real) for p in space.parameters.values()]
        scales = [LENGTH_SCALE if r else LEVEL_LENGTH_SCALE for r in real]
        self._prior = np.array([*scales, AMPLITUDE, LAMBDA if any(real) else LEVEL_LAMBDA])
        self._prior[:d, 0] += 0.5 * math.log(d)  # distances grow with the square root of d
        self._bounds = [BOUNDS["length_scale"]] * d + [BOUNDS["amplitude"], BOUNDS["lambda"]]
        start = self._prior[:, 0].copy()
        if self.length_scale is not None:
            start[:-1] = [math.log(self.length_scale)] * d + [0.0]
            self._bounds[:-1] = [(fixed, fixed) for fixed in start[:-1]]
        if self.regularisation is not None:
            start[-1] = math.log(self.regularisation)
            self._bounds[-1] = (start[-1], start[-1])
        self.register_buffer("theta", torch.from_numpy(start))
        self._remember(
            torch.zeros(0, self.coordinates.size, dtype=torch.float64), torch.zeros(0, 2, dtype=torch.float64)
        )

    # --- learning ----------------------------------------------------------------------------------------------------

    @torch.no_grad()
    def learn(self, batch: LabelledBatch) -> dict[str, Any]:
        # to the evidence a row is a row, however little it weighs: it would make lambda smaller
        batch = batch.coreset(self.rows, self.generator, above=NEGLIGIBLE)
        self._x = self.coordinates(batch.points)
        self._data = torch.stack([batch.z.double().mean(-1), batch.weight.double()], dim=-1)
        found = minimize(
            self._negative_evidence,
            self.theta.cpu().numpy(),
            jac=True,
            method="L-BFGS-B",
            bounds=self._bounds,
            options={"maxiter": math.ceil(self.iterations * min(1.0, FULL_BUDGET / len(batch)) ** 2)},
        )
        self.theta.copy_(torch.tensor(found.x))
        self._remember(self._x, self._data)
        self.lightning_optimizer().step()  # Lightning counts it, and so writes checkpoints
        return {"loss": float(found.fun) / len(batch), "rows": float(len(batch))}

    def _negative_evidence(self, theta_array: np.ndarray) -> tuple[float, np.ndarray]:
        """Minus the log marginal likelihood and log prior, up to a constant, and the gradient in theta.

        The derivative in the Gram matrix is (K^-1 - a a^T) / 2 with a = K^-1 z; autograd only carries it on to theta.
        """
        z = self._data[:, 0]
        with torch.enable_grad():
            theta = torch.tensor(theta_array).to(self._x).requires_grad_(True)
            covariance = self._covariance(theta)
        factor, failed = torch.linalg.cholesky_ex(covariance.detach())
        if bool(failed):
            return 1e10, np.zeros_like(theta_array)
        inverse = torch.cholesky_inverse(factor)
        a = inverse @ z
        (gradient,) = torch.autograd.grad(covariance, theta, (inverse - torch.outer(a, a)) / 2)
        value = float(z @ a / 2 + factor.diagonal().log().sum())
        score = (theta_array - self._prior[:, 0]) / self._prior[:, 1]
        return value + float(score @ score / 2), gradient.cpu().numpy() + score / self._prior[:, 1]

    def _gram(self, x: Tensor, y: Tensor, theta: Tensor) -> Tensor:
        scale = (-theta[:-2]).exp()[self.coordinates.owner]
        return theta[-2].exp() * self.kernel(squared_distances(x * scale, y * scale))

    def _covariance(self, theta: Tensor) -> Tensor:
        """K_t + lambda I for the rows at hand, lambda divided by each row's weight (n x n)."""
        return self._gram(self._x, self._x, theta) + torch.diag(theta[-1].exp() / self._data[:, 1] + JITTER)

    def _remember(self, x: Tensor, data: Tensor) -> None:
        """Keeps the rows x (n x c) with labels and weights (n x 2), and what predictions need of them."""
        self._x, self._data = x, data
        self._factor = torch.linalg.cholesky(self._covariance(self.theta))
        identity = torch.eye(len(x), dtype=x.dtype, device=x.device)
        self._root = torch.linalg.solve_triangular(self._factor, identity, upper=False)  # root^T root = K^-1
        self._coefficients = self._root.mT @ (self._root @ data[:, 0])

    # --- predicting --------------------------------------------------------------------------------------------------

    def gaussian(self, points: Tensor) -> tuple[Tensor, Tensor]:
        """pi_t (n), not clipped, so that it has gradients everywhere, and sigma_t (n)."""
        self.check_points(points)
        k = self._gram(self.coordinates(points), self._x, self.theta)
        variance = self.theta[-2].exp() - (k @ self._root.mT).square().sum(-1)
        return k @ self._coefficients, variance.clamp(min=1e-12).sqrt()

    def covariance(self, points: Tensor) -> Tensor:
        """k(x, x') - k_t(x)^T (K_t + lambda I)^-1 k_t(x'), the joint form of Theorem 1's sigma_t^2 (n x n)."""
        self.check_points(points)
        x = self.coordinates(points)
        explained = self._gram(x, self._x, self.theta) @ self._root.mT
        covariance: Tensor = self._gram(x, x, self.theta) - explained @ explained.mT
        return covariance

    def scores(self, points: Tensor) -> Tensor:
        """pi_t alone, as the one member (1 x n)."""
        self.check_points(points)
        k = self._gram(self.coordinates(points), self._x, self.theta)
        score: Tensor = k @ self._coefficients
        return score.expand(1, -1)

    def sample(self, points: Tensor, count: int, generator: torch.Generator) -> Tensor:
        """Draws of the Gaussian process at the points jointly (count x n); the cost grows with n^3."""
        covariance = self.covariance(points)
        covariance.diagonal().add_(SAMPLE_JITTER * self.theta[-2].exp())
        noise = torch.randn(count, len(points), dtype=covariance.dtype, generator=generator).to(covariance)
        samples: Tensor = self.gaussian(points)[0] + noise @ torch.linalg.cholesky(covariance).mT
        return samples

    def beta(self, delta: float, norm: float) -> float:
        """beta_t(delta) of Theorem 1: with probability 1 - delta, |pi - pi_t| <= beta_t sigma_t everywhere.

        Args:
            delta: in (0, 1).
            norm: b, a bound on the RKHS norm of pi.
        """
        lambda_ = float(self.theta[-1].exp())
        noise = float((lambda_ / self._data[:, 1]).log().sum())
        log_determinant = 2 * float(self._factor.diagonal().log().sum()) - noise
        return norm + math.sqrt(2 / lambda_ * (log_determinant / 2 - math.log(delta)))

    # --- checkpoints -------------------------------------------------------------------------------------------------

    def get_extra_state(self) -> dict[str, Tensor]:
        """The rows behind the fit, whose number changes."""
        return {"x": self._x, "data": self._data}

    def set_extra_state(self, state: dict[str, Tensor]) -> None:
        """Takes up the rows of a checkpoint."""
        self._remember(state["x"].to(self.theta), state["data"].to(self.theta))
