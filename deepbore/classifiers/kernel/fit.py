"""`KernelFit`: a regularised least-squares fit by one kernel, whose settings the evidence chooses."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from scipy.optimize import OptimizeResult, minimize
from torch import Tensor

from deepbore.classifiers.base import Classifier
from deepbore.classifiers.kernel.kernels import (
    KERNELS,
    LAMBDA,
    LENGTH_SCALE,
    Kernel,
    PartlyAdditiveKernel,
    ScaledKernel,
    correlated,
    penalty,
    prior_of,
)
from deepbore.classifiers.kernel.posterior import (
    JITTER,
    KernelModel,
    KernelPosterior,
    NoiselessRows,
    drawn_without_noise,
)
from deepbore.classifiers.link import Link
from deepbore.labels.datamodule import LabelledBatch
from deepbore.space import SearchSpace
from deepbore.space.features import Coordinates
from deepbore.validation import above, one_of, whole

MOSTLY_CHANCE = 0.5  # the share of the labels' variance that lambda explains where the best label is taken for luck
ROWS = 200  # that a kernel learns from, at most: what that takes grows with their cube
FULL_BUDGET = 100  # rows up to which all iterations are spent; beyond, each costs more and changes less
NOISE_START = -2.5  # log lambda where most of what labels vary by is noise
NOISE_COUNTS = 0.01  # the share of the labels' variance that lambda explains from which on noise counts
# bounds of the logarithms
LENGTH_SCALE_BOUNDS, AMPLITUDE_BOUNDS, LAMBDA_BOUNDS = (-4.6, 4.6), (-6.0, 4.0), (-20.0, 1.0)


class KernelFit(Classifier):
    """What `KernelPLS` says of the labels of a batch by one kernel alone.

    Args:
        kernel, length_scale, regularisation, rows, iterations, prior, noisy, alike: as of `KernelPLS`.

    Raises:
        SettingError: for an unknown kernel, or a number outside its range.
    """

    link = Link.IDENTITY
    capabilities = frozenset({"std", "theorem"})
    distance_aware = True
    closed_form = True
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
    ):
        super().__init__()
        one_of(KERNELS, kernel=kernel)
        above(0, length_scale=length_scale, regularisation=regularisation)
        whole(1, rows=rows)
        whole(0, iterations=iterations)
        self.function = KERNELS[kernel]
        self.length_scale, self.regularisation = length_scale, regularisation
        one_of((True, False), prior=prior, noisy=noisy, alike=alike)
        self.rows, self.iterations, self.prior, self.noisy, self.alike = rows, iterations, prior, noisy, alike
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
        self.coordinates = Coordinates(space)
        self.register_buffer("theta", torch.from_numpy(self._start(space)))
        self._remember(
            torch.zeros(0, self.coordinates.size, dtype=torch.float64), torch.zeros(0, 2, dtype=torch.float64)
        )
        self._keep(_may_be_best=torch.zeros(0, dtype=torch.bool))

    def _start(self, space: SearchSpace) -> np.ndarray:
        """Theta as it begins, the middle of its prior; sets that, and bounds."""
        d = len(space)
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
        return start

    def _precision(self, space: SearchSpace) -> np.ndarray:
        """The precision of theta's prior in units of its deviations, (d + 2) x (d + 2)."""
        d = len(space)
        return correlated(d) if self.alike and space.is_high_dimensional else np.eye(d + 2)

    # --- learning ----------------------------------------------------------------------------------------------------

    def fit(self, batch: LabelledBatch) -> dict[str, Any]:
        measured = self.learn(batch)
        self.count_step()
        return measured

    def keep_best(self, best: float | Tensor) -> None:
        """Keeps what improvement is over: the best label, or the greatest pi_t of a row where luck made that label."""
        best = torch.as_tensor(best)
        lucky = best.ndim == 0 and not self.noisy and self.is_mostly_chance
        super().keep_best(best.to(self.theta).minimum(self._fitted[self._may_be_best].max()) if lucky else best)

    @property
    def is_mostly_chance(self) -> bool:
        """Whether lambda explains more than half of what the labels vary by."""
        return self._share_of_noise > MOSTLY_CHANCE

    @property
    def _share_of_noise(self) -> float:
        """How much of what the labels vary by lambda explains."""
        return float(self.theta[-1].exp() / self._data[:, 0].var()) if len(self._data) > 1 else 0.0

    @property
    def _fitted(self) -> Tensor:
        """pi_t at the rows (n): K_t a = z_t - lambda a, of the coefficients a."""
        return self._data[:, 0] - (self._noise(self.theta) + JITTER) * self._coefficients

    def learn(self, batch: LabelledBatch) -> dict[str, Any]:
        """Fits the batch, as `fit` does, without a trainer."""
        # light rows stay out: to the evidence a row is a row, however little it weighs, and makes lambda smaller
        return self.learn_all(batch.coreset(self.rows, self.generator))

    @torch.no_grad()
    def learn_all(self, batch: LabelledBatch) -> dict[str, Any]:
        """Fits every row of a coreset, in which some may weigh next to nothing."""
        labels = torch.stack([batch.z.double().mean(-1), batch.weight.double()], dim=-1)
        self._keep(_x=self.coordinates(batch.points), _data=labels, _may_be_best=batch.may_be_best)
        starts = [self.theta.cpu().numpy()]
        if self.noisy and len(batch) <= FULL_BUDGET:
            starts.append(np.append(self._prior[:-1, 0], NOISE_START).clip(*np.transpose(self._bounds)))
        found = min(map(self._most_evident, starts), key=lambda one: one.fun)
        self.theta.copy_(torch.tensor(found.x))
        self._remember(self._x, self._data)
        self._think_noise_away()
        return {"loss": float(found.fun) / len(batch), "rows": float(len(batch))}

    def _most_evident(self, start: np.ndarray) -> OptimizeResult:
        """The maximum of the evidence that L-BFGS finds from a start."""
        steps = math.ceil(self.iterations * min(1.0, FULL_BUDGET / len(self._x)) ** 2)
        how = {"jac": True, "method": "L-BFGS-B", "bounds": self._bounds, "options": {"maxiter": steps}}
        return minimize(self._negative_evidence, start, **how)

    def _think_noise_away(self) -> None:
        """Keeps what the labels of the rows may be without their noise, where values are noisy and it shows."""
        self._noiseless = self._drawn() if self.noisy and self._share_of_noise > NOISE_COUNTS else None

    def _drawn(self) -> NoiselessRows:
        """The labels of the rows without their noise."""
        covariance = self._kernel(self.theta)(self._x, self._x)
        return drawn_without_noise(
            covariance, self._root, self._data[:, 0], float(self.theta[-1].exp()), self._may_be_best
        )

    def _negative_evidence(self, theta_array: np.ndarray) -> tuple[float, np.ndarray]:
        """Minus the log marginal likelihood and any log prior, up to a constant, and the gradient in theta.

        The derivative in the Gram matrix is (K^-1 - a a^T) / 2 with a = K^-1 z.
        """
        z = self._data[:, 0]
        covariance, carried = self._differentiable(torch.tensor(theta_array).to(self._x))
        factor, failed = torch.linalg.cholesky_ex(covariance)
        if bool(failed):
            return 1e10, np.zeros_like(theta_array)
        inverse = torch.cholesky_inverse(factor)
        a = inverse @ z
        gradient = carried((inverse - torch.outer(a, a)) / 2)
        value = float(z @ a / 2 + factor.diagonal().log().sum())
        if not self.prior:
            return value, gradient.cpu().numpy()
        paid, pull = penalty(theta_array, self._prior, self._prior_precision)
        return value + paid, gradient.cpu().numpy() + pull

    def _differentiable(self, theta: Tensor) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
        """The covariance of the rows, and what carries a derivative in it (n x n) on to theta (d + 2)."""
        with torch.enable_grad():
            covariance = self._covariance(theta.requires_grad_(True))
        return covariance.detach(), lambda inner: torch.autograd.grad(covariance, theta, inner)[0]

    def _covariance(self, theta: Tensor) -> Tensor:
        """K_t + lambda I for the rows at hand, lambda divided by each row's weight (n x n)."""
        return self._kernel(theta)(self._x, self._x) + torch.diag(self._noise(theta) + JITTER)

    def _kernel(self, theta: Tensor) -> Kernel:
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

    def get_extra_state(self) -> dict[str, Any]:
        """The rows behind the fit, whose number changes."""
        return {"x": self._x, "data": self._data, "may_be_best": self._may_be_best}

    def set_extra_state(self, state: dict[str, Any]) -> None:
        """Takes up the rows of a checkpoint."""
        self._remember(state["x"].to(self.theta), state["data"].to(self.theta))
        all_rows = torch.ones_like(self._x[:, 0], dtype=torch.bool)
        self._keep(_may_be_best=state.get("may_be_best", all_rows).to(self.theta.device))  # older states have none
        self._think_noise_away()


@dataclass(frozen=True)
class PartlyAdditiveGram:
    """Gram matrices of one set of rows for many settings of `PartlyAdditiveKernel`, its function being "matern".

    With s the share, a the amplitude, l_j the length scale of the j-th of m parameters, rho the ratio, and r_j =
    sqrt(5) d_j / l_j for the distance d_j of two rows in that parameter:

        K = a ((1 - s) f(r) + s / m sum_j f(r_j / rho)),  r^2 = sum_j r_j^2,  f(r) = (1 + r + r^2 / 3) exp(-r)
        df(r) / d log l_j = r_j^2 (1 + r) exp(-r) / 3

    The gradient is what autograd finds, in a fifth of the time: of each pair of rows once, in little new memory.

    Attributes:
        rows: n.
        pairs: the p = n (n - 1) / 2 pairs of different rows, 2 x p.
        squared: 5 d_j^2 of each, m x p.
        apart: its root.
    """

    rows: int
    pairs: Tensor
    squared: Tensor
    apart: Tensor

    @classmethod
    def of(cls, x: Tensor, owner: Tensor) -> "PartlyAdditiveGram":
        """Of rows as coordinates (n x c), and the parameter that each of them belongs to (c)."""
        pairs = torch.triu_indices(len(x), len(x), offset=1, device=x.device)
        each = 5 * (x[pairs[0]] - x[pairs[1]]).square().mT
        squared = each.new_zeros(int(owner.max()) + 1, each.shape[1]).index_add_(0, owner, each)
        return cls(len(x), pairs, squared, squared.sqrt())

    def __call__(self, theta: Tensor) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
        """The matrix (n x n), and what carries a derivative in it (n x n) on to theta.

        Args:
            theta: the logarithms of m length scales, the share's logit, the logarithms of the ratio and the amplitude.
        """
        scale, share, amplitude = (-theta[:-3]).exp(), theta[-3].sigmoid(), theta[-1].exp()
        alone, slopes = matern_and_slope(self.apart * (scale / theta[-2].exp())[:, None])
        added = alone.mean(0)
        r = (scale.square() @ self.squared).sqrt()
        decay = (-r).exp()
        together = (1 + r + r * r / 3) * decay
        kernel = amplitude * together.lerp(added, share)

        def carried(derivative: Tensor) -> Tensor:
            inner = 2 * derivative[*self.pairs]  # the matrix has each pair twice
            by_added = amplitude * share / len(slopes) * (slopes @ inner)
            by_together = amplitude * (1 - share) * scale.square() * (self.squared @ ((1 + r) * decay / 3 * inner))
            by_share = amplitude * share * (1 - share) * (added - together) @ inner
            by_amplitude = kernel @ inner + amplitude * derivative.trace()
            return torch.cat([by_added + by_together, torch.stack([by_share, by_added.sum(), by_amplitude])])

        gram = torch.diag(amplitude.expand(self.rows))
        gram[*self.pairs] = gram[*self.pairs.flip(0)] = kernel
        return gram, carried


def matern_and_slope(r: Tensor) -> tuple[Tensor, Tensor]:
    """f(r), and r^2 (1 + r) exp(-r) / 3; r is used up, since new memory would take most of the time."""
    decay, squared = (-r).exp_(), r * r
    value = (squared / 3).add_(r).add_(1).mul_(decay)
    return value, squared.mul_(r.add_(1)).mul_(decay.div_(3))


# the logit of the share of what is added, and the logarithm of the ratio of its length scales to those of the rest
ADDED_PRIOR = [(-1.0, 2.0), (-2.0, 1.0)]  # means and standard deviations
ADDED_BOUNDS = [(-8.0, 6.0), (-5.0, 2.0)]


class PartlyAdditiveFit(KernelFit):
    """`KernelFit` by a partly additive kernel, whose share and ratio the evidence chooses with all else.

    Its theta has them before the amplitude and lambda.
    """

    def _start(self, space: SearchSpace) -> np.ndarray:
        d, start = len(space), super()._start(space)
        owner = self.coordinates.owner
        self.groups = tuple((owner == parameter).nonzero().squeeze(-1) for parameter in owner.unique())
        self._prior = np.insert(self._prior, d, ADDED_PRIOR, axis=0)
        self._prior_precision = np.eye(d + 4)
        self._bounds[d:d] = ADDED_BOUNDS
        return np.insert(start, d, self._prior[d : d + 2, 0])

    def _most_evident(self, start: np.ndarray) -> OptimizeResult:
        self._gram = PartlyAdditiveGram.of(self._x, self.coordinates.owner)
        return super()._most_evident(start)

    def _differentiable(self, theta: Tensor) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
        gram, carried_by_gram = self._gram(theta[:-1])
        noise = self._noise(theta)

        def carried(derivative: Tensor) -> Tensor:
            return torch.cat([carried_by_gram(derivative), (derivative.diagonal() @ noise)[None]])

        return gram + torch.diag(noise + JITTER), carried

    def begin_from(self, theta: Tensor) -> None:
        """Takes up the settings of a kernel of all parameters, with the likeliest share and ratio."""
        self.theta.copy_(torch.cat([theta[:-2], theta.new_tensor(ADDED_PRIOR)[:, 0], theta[-2:]]))

    def _kernel(self, theta: Tensor) -> Kernel:
        together = ScaledKernel(self.function, (-theta[:-4]).exp()[self.coordinates.owner], theta[-2].exp())
        return PartlyAdditiveKernel(together, theta[-4].sigmoid(), theta[-3].exp(), self.groups)
