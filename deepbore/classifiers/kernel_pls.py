"""`KernelPLS`: probabilistic least squares in a reproducing kernel Hilbert space."""

import math
from typing import Any, ClassVar

import numpy as np
import torch
from scipy.optimize import OptimizeResult, minimize
from torch import Tensor

from deepbore.checks import above, one_of, whole
from deepbore.classifiers.base import Classifier
from deepbore.classifiers.crashes import without_crashes
from deepbore.classifiers.kernel_posterior import (
    JITTER,
    KernelModel,
    KernelPosterior,
    NoiselessRows,
    drawn_without_noise,
)
from deepbore.classifiers.kernel_prior import LAMBDA, LENGTH_SCALE, correlated, penalty, prior_of
from deepbore.classifiers.kernels import KERNELS, ScaledKernel
from deepbore.classifiers.link import Link
from deepbore.labels.datamodule import LabelledBatch
from deepbore.space import SearchSpace
from deepbore.space.coordinates import Coordinates

MOSTLY_CHANCE = 0.5  # the share of the labels' variance that lambda explains where the best label is taken for luck
ROWS = 200  # that a kernel learns from, at most: what that takes grows with their cube
FULL_BUDGET = 100  # rows up to which all iterations are spent; beyond, each costs more and changes less
CRASH_ITERATIONS = 30  # of the kernel of failures, which is fitted anew each time
NOISE_START = -2.5  # log lambda where most of what labels vary by is noise
NOISE_COUNTS = 0.01  # the share of the labels' variance that lambda explains from which on noise counts
# bounds of the logarithms
LENGTH_SCALE_BOUNDS, AMPLITUDE_BOUNDS, LAMBDA_BOUNDS = (-4.6, 4.6), (-6.0, 4.0), (-20.0, 1.0)


class KernelPLS(Classifier):
    """The regularised least-squares fit of the labels in an RKHS, and its confidence interval.

        pi_t(x) = k_t(x)^T (K_t + lambda I)^-1 z_t                                   (Oliveira et al. 2022, eq. 13)
        sigma_t(x)^2 = k(x, x) - k_t(x)^T (K_t + lambda I)^-1 k_t(x)                 (ibid., Theorem 1)

    It is also the posterior of a Gaussian process with the labels as noisy values, whose marginal likelihood chooses
    one length scale for each parameter, the amplitude and lambda, warm from one iteration to the next. The prior mean
    is 0, the label of a failure: what is far from all data counts as bad, but uncertain.

    Of labels by one threshold pi_t estimates the class probability, of labels graded by value improvement over many
    thresholds. With the latter and `LogExpectedImprovement`, the default, this is GP-EI on values that saturate beyond
    the median; docs/theory.md says how, and why it is still BORE's idea. Improvement is over the best label; but where
    lambda explains more than half of what the labels vary by that one is mostly luck, and the greatest pi_t of a row
    takes its place: of a feasible row of this run, as the best label is.

    `noisy=True` says that values are known to be noisy. Then the marginal likelihood is maximised from a second start,
    too, where all is noise: going on from one iteration to the next alone, it may keep explaining noise by short length
    scales. And `LogExpectedImprovement` is averaged over what the labels of the rows may be without their noise (Letham
    et al. 2019), so that no lucky label is what must be beaten. Where values are rough but not noisy it is worse.

    A failure has label 0, as if it were worse than any value. That holds a search off a region which fails; but a crash
    beside the best row, which has nothing to do with where it happened, is a hole that no smooth kernel explains. So of
    each failure it is asked what a second kernel, of which rows have failed, expects there by all other rows. Where a
    success is likelier nothing is learned of it: it counts as a crash by chance, until another one nearby confirms it.

    Departures from the paper: beyond `rows` observations it learns from a coreset, so that its cost stays flat, and
    log-normal priors keep what is learned within reason; `prior=False` leaves them out. Of ten real parameters or more
    the logarithms of any two length scales have a correlation of 3/4: a few observations tell how far all of them reach
    before they tell one from another, and few pass for idle by chance.

    Args:
        kernel: "matern" (5/2), "rbf" or "rational_quadratic".
        length_scale: fixed for all parameters, with amplitude 1, in units of a parameter's whole range; None to learn.
        regularisation: lambda > 0, fixed; None to learn it.
        rows: how many observations it learns from at most.
        iterations: of L-BFGS on the marginal likelihood, per iteration of the run; fewer beyond 100 rows.
        prior: whether length scales, amplitude and lambda have priors, or the marginal likelihood alone decides.
        noisy: whether values are known to be noisy.
        alike: whether length scales are expected to be alike, in spaces of ten real parameters or more; if not, their
            priors are independent there, too.
        crashes: whether failures may be crashes by chance; if not, nothing is learned but that they are bad.

    Raises:
        SettingError: for an unknown kernel, or a number outside its range.

    Example:
        >>> from deepbore.testing import TOY_SPACES, fit, toy_data
        >>> space = TOY_SPACES["continuous"]
        >>> posterior = fit(KernelPLS(), toy_data(space)).posterior(space.sobol(4, seed=0))
        >>> posterior.mean.shape, posterior.std.shape
        (torch.Size([4]), torch.Size([4]))

    References:
        Oliveira, Tiao & Ramos, Batch Bayesian optimisation via density-ratio estimation with guarantees, 2022.
        Letham, Karrer, Ottoni & Bakshy, Constrained Bayesian optimization with noisy experiments, 2019 (section 4).
    """

    link = Link.IDENTITY
    capabilities = frozenset({"std", "theorem"})
    distance_aware = True
    kappa = 2.0
    length_scale_prior: ClassVar[tuple[float, float]] = LENGTH_SCALE  # of real parameters
    length_scale_bounds: ClassVar[tuple[float, float]] = LENGTH_SCALE_BOUNDS
    lambda_prior: ClassVar[tuple[float, float]] = LAMBDA  # where there are real parameters

    def __init__(
        self,
        kernel: str = "matern",
        length_scale: float | None = None,
        regularisation: float | None = None,
        rows: int = ROWS,
        iterations: int = 15,
        prior: bool = True,
        noisy: bool = False,
        alike: bool = True,
        crashes: bool = True,
    ):
        super().__init__()
        one_of(KERNELS, kernel=kernel)
        above(0, length_scale=length_scale, regularisation=regularisation)
        whole(1, rows=rows)
        whole(0, iterations=iterations)
        self.function = KERNELS[kernel]
        self.length_scale, self.regularisation = length_scale, regularisation
        one_of((True, False), prior=prior, noisy=noisy, alike=alike, crashes=crashes)
        self.rows, self.iterations, self.prior, self.noisy, self.alike = rows, iterations, prior, noisy, alike
        self.crashes = crashes
        self._noiseless: NoiselessRows | None = None

    theta: Tensor  # logarithms of d length scales, the amplitude and lambda
    _x: Tensor  # rows as coordinates, n x c
    _data: Tensor  # their labels and weights, n x 2
    _may_be_best: Tensor  # which of them improvement may be over, n booleans
    _root: Tensor
    _coefficients: Tensor
    _information: Tensor

    @property
    def learns_all(self) -> bool:
        """Whether length scales, amplitude and lambda are all learned, those of the default kernel."""
        return self.function is KERNELS["matern"] and self.length_scale is None and self.regularisation is None

    def build(self, space: SearchSpace, outputs: int) -> None:
        d = len(space)
        self.coordinates = Coordinates(space)
        self._prior = prior_of(space, self.length_scale_prior, self.lambda_prior)
        self._prior_precision = self._precision(space)
        self._bounds = [self.length_scale_bounds] * d + [AMPLITUDE_BOUNDS, LAMBDA_BOUNDS]
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

    def _precision(self, space: SearchSpace) -> np.ndarray:
        """The precision of theta's prior in units of its deviations, (d + 2) x (d + 2)."""
        d = len(space)
        return correlated(d) if self.alike and space.is_wide else np.eye(d + 2)

    # --- learning ----------------------------------------------------------------------------------------------------

    def fit(self, batch: LabelledBatch) -> dict[str, Any]:
        measured = self.learn(batch)
        self.count_step()
        return measured

    def keep_best(self, best: float | Tensor) -> None:
        """Keeps what improvement is over: the best label, or the greatest pi_t of a row where luck made that label."""
        best = torch.as_tensor(best)
        lucky = best.ndim == 0 and not self.noisy and self._share_of_noise > MOSTLY_CHANCE
        super().keep_best(best.to(self.theta).minimum(self._fitted[self._may_be_best].max()) if lucky else best)

    @property
    def _share_of_noise(self) -> float:
        """How much of what the labels vary by lambda explains."""
        return float(self.theta[-1].exp() / self._data[:, 0].var()) if len(self._data) > 1 else 0.0

    @property
    def _fitted(self) -> Tensor:
        """pi_t at the rows (n): K_t a = z_t - lambda a, of the coefficients a."""
        return self._data[:, 0] - (self._noise(self.theta) + JITTER) * self._coefficients

    @torch.no_grad()
    def learn(self, batch: LabelledBatch) -> dict[str, Any]:
        """Fits the batch, as `fit` does, without a trainer."""
        # light rows stay out: to the evidence a row is a row, however little it weighs, and makes lambda smaller
        batch = batch.coreset(self.rows, self.generator)
        if self.crashes:
            batch = without_crashes(batch, self._expected_by_others)
        labels = torch.stack([batch.z.double().mean(-1), batch.weight.double()], dim=-1)
        self._keep(_x=self.coordinates(batch.points), _data=labels, _may_be_best=batch.may_be_best)
        starts = [self.theta.cpu().numpy()]
        if self.noisy and len(batch) <= FULL_BUDGET:
            starts.append(np.append(self._prior[:-1, 0], NOISE_START).clip(*np.transpose(self._bounds)))
        found = min(map(self._most_evident, starts), key=lambda one: one.fun)
        self.theta.copy_(torch.tensor(found.x))
        self._remember(self._x, self._data)
        if self.noisy:
            self._noiseless = self._drawn() if self._share_of_noise > NOISE_COUNTS else None
        return {"loss": float(found.fun) / len(batch), "rows": float(len(batch))}

    def _expected_by_others(self, batch: LabelledBatch) -> Tensor:
        """What a kernel that learns a batch expects of each of its labels by all other rows (n).

        z_i - a_i / (K^-1)_ii, of the coefficients a (Rasmussen & Williams, Gaussian processes for machine learning,
        2006, eq. 5.12).
        """
        assert self.space is not None
        head = KernelPLS(rows=len(batch), iterations=CRASH_ITERATIONS, alike=self.alike, crashes=False)
        head.bind(self.space).to(batch.points.device)
        head.learn(batch)
        return head._data[:, 0] - head._coefficients / head._root.square().sum(0)

    def _most_evident(self, start: np.ndarray) -> OptimizeResult:
        """The maximum of the evidence that L-BFGS finds from a start."""
        steps = math.ceil(self.iterations * min(1.0, FULL_BUDGET / len(self._x)) ** 2)
        how = {"jac": True, "method": "L-BFGS-B", "bounds": self._bounds, "options": {"maxiter": steps}}
        return minimize(self._negative_evidence, start, **how)

    def _drawn(self) -> NoiselessRows:
        """The labels of the rows without their noise."""
        covariance = self._kernel(self.theta)(self._x, self._x)
        return drawn_without_noise(
            covariance, self._root, self._data[:, 0], float(self.theta[-1].exp()), self._may_be_best
        )

    def _negative_evidence(self, theta_array: np.ndarray) -> tuple[float, np.ndarray]:
        """Minus the log marginal likelihood and any log prior, up to a constant, and the gradient in theta.

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
        if not self.prior:
            return value, gradient.cpu().numpy()
        paid, pull = penalty(theta_array, self._prior, self._prior_precision)
        return value + paid, gradient.cpu().numpy() + pull

    def _covariance(self, theta: Tensor) -> Tensor:
        """K_t + lambda I for the rows at hand, lambda divided by each row's weight (n x n)."""
        return self._kernel(theta)(self._x, self._x) + torch.diag(self._noise(theta) + JITTER)

    def _kernel(self, theta: Tensor) -> ScaledKernel:
        return ScaledKernel(self.function, (-theta[:-2]).exp()[self.coordinates.owner], theta[-2].exp())

    def _noise(self, theta: Tensor) -> Tensor:
        """Lambda divided by each row's weight (n)."""
        return theta[-1].exp() / self._data[:, 1]

    def _remember(self, x: Tensor, data: Tensor) -> None:
        """Keeps the rows x (n x c) with labels and weights (n x 2), and what predictions need of them."""
        self._keep(_x=x, _data=data)
        factor = torch.linalg.cholesky(self._covariance(self.theta))
        identity = torch.eye(len(x), dtype=x.dtype, device=x.device)
        root = torch.linalg.solve_triangular(factor, identity, upper=False)  # root^T root = (K_t + lambda I)^-1
        information = factor.diagonal().log().sum() - self._noise(self.theta).log().sum() / 2
        self._keep(_root=root, _coefficients=root.mT @ (root @ data[:, 0]), _information=information)

    def _keep(self, **tensors: Tensor) -> None:
        """Tensors that move with the module, and are no part of its state dict: rows are, and the rest follows."""
        for name, tensor in tensors.items():
            self.register_buffer(name, tensor, persistent=False)

    # --- predicting --------------------------------------------------------------------------------------------------

    def posterior(self, points: Tensor) -> KernelPosterior:
        self.check_points(points)
        kernel, regularisation = self._kernel(self.theta), self.theta[-1].exp()
        model = KernelModel(
            kernel, self._x, self._root, self._coefficients, regularisation, self._information, self._noiseless
        )
        return KernelPosterior(model, self.coordinates(points))

    # --- checkpoints -------------------------------------------------------------------------------------------------

    def get_extra_state(self) -> dict[str, Tensor]:
        """The rows behind the fit, whose number changes."""
        return {"x": self._x, "data": self._data}

    def set_extra_state(self, state: dict[str, Tensor]) -> None:
        """Takes up the rows of a checkpoint."""
        self._remember(state["x"].to(self.theta), state["data"].to(self.theta))
        # both until it learns again, as it does before it is told a best label
        self._keep(_may_be_best=torch.ones_like(self._x[:, 0], dtype=torch.bool))
        self._noiseless = None
