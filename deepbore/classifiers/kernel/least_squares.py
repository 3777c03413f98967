"""`KernelPLS`: probabilistic least squares (not partial least squares) in a reproducing kernel Hilbert space."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from deepbore.classifiers.base import Classifier
from deepbore.classifiers.kernel.evidence import (
    Evidence,
    Gram,
    LibraryGram,
    PartlyAdditiveGram,
    ScaledGram,
)
from deepbore.classifiers.kernel.kernels import (
    AMPLITUDE,
    KERNELS,
    LAMBDA,
    LENGTH_SCALE,
    Kernel,
    LibraryKernel,
    MinMax,
    PartlyAdditiveKernel,
    ScaledKernel,
    correlated,
    penalty,
    prior_of,
    with_shared,
)
from deepbore.classifiers.kernel.posterior import (
    JITTER,
    KernelModel,
    KernelPosterior,
    NoiselessRows,
    noiseless_scenarios,
)
from deepbore.classifiers.link import Link
from deepbore.classifiers.posterior import MomentFormula
from deepbore.compute.numerics import LinAlgError, minimize
from deepbore.labels import Gamma, LabelledBatch, Labelling, ValueGradedLabels
from deepbore.space import SearchSpace
from deepbore.space.features import Coordinates
from deepbore.validation import above, one_of, whole

if TYPE_CHECKING:
    from scipy.optimize import OptimizeResult

MOSTLY_NOISE = 0.5  # lambda as a share of the labels' variance beyond which the best label counts as luck
ROWS = 200  # the default maximum of rows: the cost is cubic in their number
MANY = 5  # times `rows` are learned at most, where as many trials are evaluated at the same time
FULL_BUDGET = 100  # rows up to which all iterations are made: beyond, each costs more and changes less
TOLERANCE = 1e-4  # relative gain of the evidence at which its ascent ends: it goes on with the next trial
NOISE_START = -2.5  # log lambda of a second start, where most of the labels' variance is noise
NOISE_COUNTS = 0.01  # lambda as a share of the labels' variance from which noise is averaged over
# bounds of the logarithms
LENGTH_SCALE_BOUNDS, AMPLITUDE_BOUNDS, LAMBDA_BOUNDS = (-4.6, 4.6), (-6.0, 4.0), (-20.0, 1.0)


class BaseKernelPLS(Classifier):
    """Base of `KernelPLS`: regularised least squares with one kernel, on all rows of a batch.

    Args:
        kernel, length_scale, regularisation, rows, iterations, prior, noisy, alike: see `KernelPLS`.

    Raises:
        SettingError: for an unknown kernel, or a number outside its range.
    """

    link = Link.IDENTITY
    capabilities = frozenset({"std"})
    has_theorem_bound = True  # for `TheoremBound`
    distance_aware = True
    closed_form = True
    kappa = 2.0
    length_scale_prior: ClassVar[tuple[float, float]] = LENGTH_SCALE  # of real parameters
    length_scale_bounds: ClassVar[tuple[float, float]] = LENGTH_SCALE_BOUNDS
    lambda_prior: ClassVar[tuple[float, float]] = LAMBDA  # in spaces with real parameters
    amplitude_prior: tuple[float, float] = AMPLITUDE

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
        self._known: KernelModel | None = None

    theta: Tensor  # logarithms of the length scale of each block of coordinates, the amplitude and lambda
    _x: Tensor  # rows as coordinates, n x c
    _data: Tensor  # their labels and weights, n x 2
    _may_be_best: Tensor  # which of them may be the incumbent, n booleans
    _root: Tensor
    _coefficients: Tensor
    _information: Tensor

    @property
    def learns_all(self) -> bool:
        """Whether it has the default kernel, with all of length scales, amplitude and lambda learned."""
        return self.function is KERNELS["matern"] and self.length_scale is None and self.regularisation is None

    def build(self, space: SearchSpace, outputs: int) -> None:
        self.coordinates = Coordinates(space.points)
        self.register_buffer("theta", torch.from_numpy(self._start(space)))
        self._remember(
            torch.zeros(0, self.coordinates.size, dtype=torch.float64), torch.zeros(0, 2, dtype=torch.float64)
        )
        self._keep(_may_be_best=torch.zeros(0, dtype=torch.bool))

    def _start(self, space: SearchSpace) -> np.ndarray:
        """The first theta, the prior mean; sets the prior and the bounds."""
        scales = len(self.coordinates.blocks)
        self._prior = prior_of(space, self.length_scale_prior, self.lambda_prior, self.amplitude_prior)
        self._prior_precision = self._precision(space)
        self._bounds = [self.length_scale_bounds] * scales + [AMPLITUDE_BOUNDS, LAMBDA_BOUNDS]
        start = self._prior[:, 0].copy()
        if self.length_scale is not None:
            start[:-1] = [math.log(self.length_scale)] * scales + [0.0]
            self._bounds[:-1] = [(fixed, fixed) for fixed in start[:-1]]
        if self.regularisation is not None:
            start[-1] = math.log(self.regularisation)
            self._bounds[-1] = (start[-1], start[-1])
        return start

    def _precision(self, space: SearchSpace) -> np.ndarray:
        """The prior precision of theta in units of its standard deviations."""
        scales = len(self.coordinates.blocks)
        return correlated(scales) if self.alike and space.points.is_high_dimensional else np.eye(scales + 2)

    # --- learning ----------------------------------------------------------------------------------------------------

    def fit(self, batch: LabelledBatch) -> dict[str, Any]:
        return self.learn(batch)

    def keep_best(self, best: float | Tensor) -> None:
        """Keeps what improvement is over: the best label, or the greatest pi_t of a row where luck made that label."""
        best = torch.as_tensor(best)
        is_luck = best.ndim == 0 and not self.noisy and self.is_mostly_noise
        super().keep_best(best.to(self.theta).minimum(self._fitted[self._may_be_best].max()) if is_luck else best)

    @property
    def is_mostly_noise(self) -> bool:
        """Whether lambda explains more than half of the variance of the labels."""
        return self._share_of_noise > MOSTLY_NOISE

    @property
    def _share_of_noise(self) -> float:
        """Lambda as a share of the variance of the labels."""
        return float(self.theta[-1].exp() / self._data[:, 0].var()) if len(self._data) > 1 else 0.0

    @property
    def explained(self) -> float:
        """The share of the variance of the better half of the labels that the other rows explain, at most 1."""
        if self.space is None:  # it has no rows yet
            return 0.0
        z = self._data[:, 0]
        better = z >= z.median() if len(z) else z > 0
        spread = z[better].var(correction=0) if len(z) else z.sum()
        return 1 - float(self._residuals[better].square().mean() / spread) if spread > 0 else 0.0

    @property
    def _residuals(self) -> Tensor:
        """Labels minus their leave-one-out predictions, a_i / ((K_t + lambda I)^-1)_ii (n).

        Rasmussen & Williams, Gaussian processes for machine learning, 2006, eq. 5.12.
        """
        return self._coefficients / self._root.square().sum(0)

    @property
    def _fitted(self) -> Tensor:
        """pi_t at the rows (n), K_t a = z_t - lambda a with the coefficients a."""
        return self._data[:, 0] - (self._noise(self.theta) + JITTER) * self._coefficients

    def learn(self, batch: LabelledBatch) -> dict[str, Any]:
        """Fits the batch, as `fit` does, without a trainer."""
        # only rows with a weight: the marginal likelihood counts the others fully and would underestimate the noise
        pending = 0 if batch.pending is None else int(batch.pending.sum())
        rows = max(self.rows, min(pending, MANY * self.rows))  # a proposal for many workers may cost more
        return self.learn_all(batch.coreset(rows, self.generator))

    @torch.no_grad()
    def learn_all(self, batch: LabelledBatch) -> dict[str, Any]:
        """Fits all rows of a batch."""
        labels = torch.stack([batch.z.double().mean(-1), batch.weight.double()], dim=-1)
        self._keep(_x=self.coordinates(batch.points), _data=labels, _may_be_best=batch.may_be_best)
        starts = [self.theta.cpu().numpy()]
        if self.noisy and len(batch) <= FULL_BUDGET:
            starts.append(np.append(self._prior[:-1, 0], NOISE_START).clip(*np.transpose(self._bounds)))
        evidence = self._evidence()
        found = min((self._maximise(evidence, start) for start in starts), key=lambda one: one.fun)
        self.theta.copy_(torch.tensor(found.x))
        self._remember(self._x, self._data, evidence)
        self._update_noiseless()
        return {"loss": float(found.fun) / len(batch), "rows": float(len(batch))}

    def _maximise(self, evidence: Evidence, start: np.ndarray) -> "OptimizeResult":
        """A local maximum of the evidence, found by L-BFGS from a start."""
        steps = math.ceil(self.iterations * min(1.0, FULL_BUDGET / len(self._x)) ** 2)
        options = {"maxiter": steps, "ftol": TOLERANCE}
        how = {"jac": True, "method": "L-BFGS-B", "bounds": self._bounds, "options": options}
        return minimize(self.negative_evidence(evidence), start, **how)

    def _update_noiseless(self) -> None:
        """Samples the labels of the rows without noise, if values are noisy and lambda is not negligible."""
        self._known = None
        self._noiseless = self._noiseless_rows() if self.noisy and self._share_of_noise > NOISE_COUNTS else None

    def _noiseless_rows(self) -> NoiselessRows:
        covariance = self._kernel(self.theta)(self._x, self._x)
        return noiseless_scenarios(
            covariance, self._root, self._data[:, 0], float(self.theta[-1].exp()), self._may_be_best
        )

    def _evidence(self) -> Evidence:
        """The evidence of the rows; it keeps what does not depend on theta."""
        return Evidence(self._gram(), self._data[:, 0], self._data[:, 1])

    def negative_evidence(self, evidence: Evidence | None = None) -> Callable[[np.ndarray], tuple[float, np.ndarray]]:
        """Theta -> minus the log marginal likelihood of the rows, and the log prior if any, with the gradient.

        It is up to a constant.
        """
        evidence = self._evidence() if evidence is None else evidence
        if not self.prior:
            return evidence

        def with_prior(theta: np.ndarray) -> tuple[float, np.ndarray]:
            (value, gradient), (more, slope) = evidence(theta), penalty(theta, self._prior, self._prior_precision)
            return value + more, gradient + slope

        return with_prior

    def _gram(self) -> Gram:
        """Gram matrices of the rows by `_kernel`, with derivatives; a subclass with another kernel overrides both."""
        return ScaledGram(self.function, self._x, self.coordinates.block)

    def _covariance(self, theta: Tensor) -> Tensor:
        """K_t + lambda I of the rows, lambda divided by the weight of each row (n x n)."""
        return self._kernel(theta)(self._x, self._x) + torch.diag(self._noise(theta) + JITTER)

    def _kernel(self, theta: Tensor) -> Kernel:
        return ScaledKernel(self.function, (-theta[:-2]).exp()[self.coordinates.block], theta[-2].exp())

    def _noise(self, theta: Tensor) -> Tensor:
        """Lambda divided by the weight of each row (n)."""
        return theta[-1].exp() / self._data[:, 1]

    def _remember(self, x: Tensor, data: Tensor, evidence: Evidence | None = None) -> None:
        """Keeps the rows x (n x c), labels and weights (n x 2), and the matrices that predictions need."""
        self._keep(_x=x, _data=data)
        root = (evidence or self._evidence()).root(self.theta.cpu().numpy()) if len(x) else x.new_zeros(0, 0)
        if root is None:
            raise LinAlgError("the Gram matrix is not positive definite")
        information = -root.diagonal().log().sum() - self._noise(self.theta).log().sum() / 2
        self._keep(_root=root, _coefficients=root.mT @ (root @ data[:, 0]), _information=information)

    def _keep(self, **tensors: Tensor) -> None:
        """Registers tensors that move with the module, but are not in its state dict: the extra state has the rows."""
        self._known = None
        for name, tensor in tensors.items():
            self.register_buffer(name, tensor, persistent=False)

    # --- predicting --------------------------------------------------------------------------------------------------

    def posterior(self, points: Tensor) -> KernelPosterior:
        self.check_points(points)
        return KernelPosterior(self._model, self.coordinates(points), self.coordinates.into)

    def gradient(self, points: Tensor, formula: MomentFormula) -> Tensor | None:
        return self.posterior(points).gradient(formula)

    @property
    def _model(self) -> KernelModel:
        """What posteriors are computed from, made once for each fit and device."""
        if self._known is None or self._known.x is not self._x:
            kernel, regularisation = self._kernel(self.theta), self.theta[-1].exp()
            noiseless = self._noiseless and self._noiseless.to(self._x.device)
            self._known = KernelModel(
                kernel, self._x, self._root, self._coefficients, regularisation, self._information, noiseless
            )
        return self._known

    # --- checkpoints -------------------------------------------------------------------------------------------------

    def get_extra_state(self) -> dict[str, Any]:
        """The fitted rows, whose number changes."""
        return {"x": self._x, "data": self._data, "may_be_best": self._may_be_best}

    def set_extra_state(self, state: dict[str, Any]) -> None:
        """Restores the rows of a checkpoint."""
        self._remember(state["x"].to(self.theta), state["data"].to(self.theta))
        all_rows = torch.ones_like(self._x[:, 0], dtype=torch.bool)
        self._keep(_may_be_best=state.get("may_be_best", all_rows).to(self.theta.device))  # missing in older states
        self._update_noiseless()


# logit of the share of the additive part, and logarithm of the ratio of its length scales to those of the rest
ADDED_PRIOR = [(-1.0, 2.0), (-2.0, 1.0)]  # means and standard deviations
ADDED_BOUNDS = [(-8.0, 6.0), (-5.0, 2.0)]


class PartlyAdditivePLS(BaseKernelPLS):
    """`BaseKernelPLS` with a partly additive kernel, whose share and ratio are learned too.

    They come before the amplitude and lambda in theta.
    """

    def _start(self, space: SearchSpace) -> np.ndarray:
        scales, start = len(self.coordinates.blocks), super()._start(space)
        owner = self.coordinates.owner
        self.groups = tuple((owner == parameter).nonzero().squeeze(-1) for parameter in owner.unique())
        self._prior = np.insert(self._prior, scales, ADDED_PRIOR, axis=0)
        of_scales = self._prior_precision[:scales, :scales]
        self._prior_precision = np.eye(scales + 4)
        self._prior_precision[:scales, :scales] = of_scales
        self._bounds[scales:scales] = ADDED_BOUNDS
        return np.insert(start, scales, self._prior[scales : scales + 2, 0])

    def _gram(self) -> Gram:
        return PartlyAdditiveGram(self.function, self._x, self.coordinates.owner, self.coordinates.block)

    def restart_from(self, theta: Tensor) -> None:
        """Sets theta to that of a kernel without an additive part, with the prior means of share and ratio."""
        self.theta.copy_(torch.cat([theta[:-2], theta.new_tensor(ADDED_PRIOR)[:, 0], theta[-2:]]))

    def _kernel(self, theta: Tensor) -> Kernel:
        together = ScaledKernel(self.function, (-theta[:-4]).exp()[self.coordinates.block], theta[-2].exp())
        groups = tuple(own.to(theta.device) for own in self.groups)
        return PartlyAdditiveKernel(together, theta[-4].sigmoid(), theta[-3].exp(), groups)


def is_costly(space: SearchSpace) -> bool:
    """Whether a partly additive model would cost more than it brings: it has ten real parameters or more."""
    return space.points.is_high_dimensional and space.points.is_continuous


LIKELY = 0.5  # predicted probability of success above which a failure counts as random


def drop_random_failures(batch: LabelledBatch, leave_one_out: Callable[[LabelledBatch], Tensor]) -> LabelledBatch:
    """The batch without failures where the other rows predict success.

    The label is success (1 or 0) minus the share of successes, so far from all data that share is predicted. Two
    failures close to each other count as a failing region, since each predicts the other; a failure among successes is
    dropped.

    Args:
        batch: n rows.
        leave_one_out: the label of each row predicted from all other rows of a batch (n).
    """
    if not bool(batch.failures.any()):
        return batch
    succeeded = (~batch.failures).to(batch.points)
    mean = succeeded.mean()
    expected = mean + leave_one_out(replace(batch, z=(succeeded - mean)[:, None]))
    return batch.take((~batch.failures | (expected <= LIKELY)).nonzero().squeeze(-1))


CRASH_ITERATIONS = 30  # of L-BFGS for the model of failures, which is fitted from scratch each time


class KernelPLS(BaseKernelPLS):
    """The regularised least-squares fit of the labels in an RKHS, and its confidence interval.

        pi_t(x) = k_t(x)^T (K_t + lambda I)^-1 z_t                                   (Oliveira et al. 2022, eq. 13)
        sigma_t(x)^2 = k(x, x) - k_t(x)^T (K_t + lambda I)^-1 k_t(x)                 (ibid., Theorem 1)

    This is also the posterior of a Gaussian process with the labels as noisy values. One length scale for each
    parameter, the amplitude and lambda maximise its marginal likelihood, starting from those of the previous iteration.
    The prior mean is 0, the label of a failure: points far from all data count as bad, but uncertain.

    For labels by one threshold pi_t estimates the class probability, for labels graded by value the improvement over
    many thresholds. With the latter and `LogExpectedImprovement`, the default, this is GP-EI on values that saturate
    beyond the median (see docs/theory.md). The incumbent is the best label. If lambda explains more than half of the
    variance of the labels, the best label is mostly luck, and the incumbent is the largest pi_t of a feasible row.

    **Noise.** With `noisy=True` the marginal likelihood is also maximised from a second start with large lambda: a warm
    start alone may keep explaining noise by short length scales. `LogExpectedImprovement` is averaged over samples of
    the labels without noise (Letham et al. 2019), so the incumbent is not a lucky label. For values that are rough but
    not noisy it is worse.

    **Failures.** A failure has label 0, as if worse than any value. This keeps the search away from failing regions,
    but a random crash next to the best row creates a discontinuity that a smooth kernel cannot fit. A second kernel
    model therefore predicts from all other rows whether a failed row would succeed. If success is more likely, the row
    is dropped, until another failure nearby confirms it.

    **Additive functions.** Many functions are approximately a sum of functions of single parameters. A second model of
    the same rows has a kernel with one term for each parameter added (Duvenaud et al. 2011). Its predictions are used
    if it increases the likelihood by more than its two additional hyperparameters would by chance (Schwarz's criterion
    1978, n^(1/2) for each), if all rows have the same weight, and if its lambda explains at most half of the variance
    of the labels: a larger lambda means that it explains them as noise.

    Departures from the paper: beyond `rows` observations it learns from a coreset, at a constant cost, and the
    hyperparameters have log-normal priors; `prior=False` removes them. With ten ordered parameters or more the
    logarithms of two length scales have a prior correlation of 3/4: few observations determine a common length scale
    before individual ones, and few parameters look irrelevant by chance.

    Args:
        kernel: "matern" (5/2), "rbf" or "rational_quadratic".
        length_scale: fixed for all parameters, with amplitude 1, in units of the range of a parameter; None to learn.
        regularisation: lambda > 0, fixed; None to learn it.
        rows: the maximum number of observations to learn from; as many as trials are pending, if that is more, and at
            most five times `rows`.
        iterations: of L-BFGS on the marginal likelihood, per iteration of the run; fewer beyond 100 rows.
        prior: whether length scales, amplitude and lambda have priors.
        noisy: whether values are known to be noisy.
        alike: whether length scales are correlated a priori in spaces of ten ordered parameters or more.
        crashes: whether single failures may be random; if not, all failures are learned as bad.
        additive: whether a partly additive kernel is compared; never with ten real parameters or more, with `noisy`,
            with another kernel than the default, or with a fixed length scale or regularisation.

    Raises:
        SettingError: for an unknown kernel, or a number outside its range.

    Example:
        >>> from deepbore.testing import TOY_SPACES, fit, toy_data
        >>> space = TOY_SPACES["continuous"]
        >>> posterior = fit(KernelPLS(), toy_data(space)).posterior(space.points.sobol(4, seed=0))
        >>> posterior.mean.shape, posterior.std.shape
        (torch.Size([4]), torch.Size([4]))

    References:
        Oliveira, Tiao & Ramos, Batch Bayesian optimisation via density-ratio estimation with guarantees, 2022.
        Letham, Karrer, Ottoni & Bakshy, Constrained Bayesian optimization with noisy experiments, 2019 (section 4).
        Duvenaud, Nickisch & Rasmussen, Additive Gaussian processes, 2011.
        Schwarz, Estimating the dimension of a model, 1978.
    """

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
        additive: bool = True,
    ):
        super().__init__(kernel, length_scale, regularisation, rows, iterations, prior, noisy, alike)
        one_of((True, False), crashes=crashes, additive=additive)
        self.crashes, self.additive = crashes, additive
        self.additive_model: PartlyAdditivePLS | None = None
        self.prefers_additive = False  # whether the additive model predicts

    def build(self, space: SearchSpace, outputs: int) -> None:
        super().build(space, outputs)
        self.additive_model, self.prefers_additive = None, False
        if self.additive and self.learns_all and not self.noisy and len(space) > 1 and not is_costly(space):
            settings = {name: getattr(self, name) for name in ("rows", "iterations", "prior", "alike")}
            self.additive_model = PartlyAdditivePLS(**settings)
            self.additive_model.amplitude_prior = self.amplitude_prior
            self.additive_model.bind(space)

    def keep_best(self, best: float | Tensor) -> None:
        """Keeps what improvement is over: the best label, or the greatest pi_t of a row where luck made that label."""
        if (preferred := self._preferred) is not None:
            preferred.keep_best(best)
            self.best_label = preferred.best_label
        else:
            super().keep_best(best)

    @torch.no_grad()
    def learn_all(self, batch: LabelledBatch) -> dict[str, Any]:
        """Fits all rows of a batch except random failures, and the additive model too."""
        if self.crashes:
            batch = drop_random_failures(batch, self._leave_one_out)
        learned = super().learn_all(batch)
        # with different weights, additive terms with tiny length scales would act as noise of equal size
        equal = bool(batch.weight.min() == batch.weight.max())
        self.prefers_additive = equal and self._compare_additive(batch, learned["loss"])
        return learned

    def _compare_additive(self, batch: LabelledBatch, loss: float) -> bool:
        """Fits the additive model, if any; whether Schwarz's criterion prefers it to this model with its loss."""
        model = self.additive_model
        if model is None:
            return False
        try:
            gain = (loss - float(model.learn_all(batch)["loss"])) * len(batch)
        except LinAlgError:
            gain = -math.inf
        enough = math.log(len(batch))  # log(n) / 2 for each of its two additional hyperparameters
        if gain < -enough:  # a poor local optimum
            model.restart_from(self.theta)
        return gain > enough and not model.is_mostly_noise

    def _leave_one_out(self, batch: LabelledBatch) -> Tensor:
        """The leave-one-out predictions of the labels of a batch by a new kernel model (n)."""
        assert self.space is not None
        model = BaseKernelPLS(rows=len(batch), iterations=CRASH_ITERATIONS, alike=self.alike)
        model.bind(self.space).to(batch.points.device)
        model.learn_all(batch)
        return model._data[:, 0] - model._residuals

    @property
    def _preferred(self) -> "PartlyAdditivePLS | None":
        """The additive model, if it predicts."""
        return self.additive_model if self.prefers_additive else None

    @property
    def explained(self) -> float:
        return super().explained if self._preferred is None else self._preferred.explained

    def posterior(self, points: Tensor) -> KernelPosterior:
        return super().posterior(points) if self._preferred is None else self._preferred.posterior(points)

    # --- checkpoints -------------------------------------------------------------------------------------------------

    def get_extra_state(self) -> dict[str, Any]:
        """The fitted rows, and whether the additive model predicts."""
        return super().get_extra_state() | {"prefers_additive": self.prefers_additive}

    def set_extra_state(self, state: dict[str, Any]) -> None:
        """Restores the rows of a checkpoint."""
        super().set_extra_state(state)
        former = state.get("is_beaten", False)  # the key of version 0.2
        self.prefers_additive = bool(state.get("prefers_additive", former))

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *args: Any) -> None:
        for key in [key for key in state_dict if key.startswith(f"{prefix}rival.")]:  # the name of version 0.2
            state_dict[f"{prefix}additive_model.{key.removeprefix(f'{prefix}rival.')}"] = state_dict.pop(key)
        super()._load_from_state_dict(state_dict, prefix, *args)


LIBRARY_ROWS = 5000  # the default maximum of rows of a library
TUNED = 500  # rows by which its hyperparameters are learned
ALL_VALUES = 0.97  # of the values of a library are graded; the worst may be far off


class LibraryPLS(BaseKernelPLS):
    """`KernelPLS` for a library (`deepbore.Library`): levels are compared by their features.

    Bits and counts have the kernel `MinMax`, which for bits is the Tanimoto similarity, and a constant share for the
    mean of the labels; numbers have the Matern kernel with one length scale for all. Other parameters beside the
    library have a kernel of their own, which multiplies it.

    Its default labels are linear in the value but for the worst 3 %: most of a library is poor, and how poor tells
    which features are.

    Amplitude, lambda and length scales maximise the marginal likelihood of up to 500 rows. Then all rows are learned,
    by one Cholesky factor: a second for 3000 rows. Beyond `rows` it learns from a coreset.

    Args:
        rows: the maximum number of rows to learn from.
        iterations: of L-BFGS on the marginal likelihood, for each iteration of the run.
        prior: whether amplitude, lambda and length scales have priors.

    Raises:
        SettingError: for a number outside its range.

    Example:
        >>> import deepbore
        >>> bits = np.random.default_rng(0).random((200, 64)) < 0.2
        >>> study = deepbore.Study({"molecule": deepbore.Library(bits)}, classifier=LibraryPLS(rows=1000))
        >>> study.add({"molecule": [3, 5, 7]}, [0.2, 0.1, 0.3])
        >>> len(study.ask(20))
        20

    References:
        Tripp, Bacallado, Singh & Hernandez-Lobato, Tanimoto random features for scalable molecular machine learning,
        NeurIPS 2023 (both kernels).
    """

    _features: Tensor  # which coordinates are bits or counts of the library, c booleans

    def __init__(self, rows: int = LIBRARY_ROWS, iterations: int = 30, prior: bool = True):
        super().__init__(rows=rows, iterations=iterations, prior=prior)
        whole(1, rows=rows)

    def default_labels(self, gamma: Gamma | None = None, objectives: int = 1) -> Labelling:
        if gamma is None and objectives == 1:
            return ValueGradedLabels(ALL_VALUES, tail=0)
        return super().default_labels(gamma, objectives)

    def build(self, space: SearchSpace, outputs: int) -> None:
        super().build(space, outputs)
        self._keep(_points=torch.zeros(0, len(space), dtype=torch.float64))

    def _start(self, space: SearchSpace) -> np.ndarray:
        start = super()._start(space)
        features = torch.zeros(self.coordinates.size, dtype=torch.bool)
        for number, block in enumerate(self.coordinates.blocks):
            if block.descriptors is not None and block.descriptors.is_tanimoto:
                features[list(block.inputs)] = True
                start[number], self._bounds[number] = 0.0, (0.0, 0.0)  # its length scale changes nothing
        self.is_tanimoto = bool(features.any())
        self._keep(_features=features)
        return start

    @torch.no_grad()
    def learn_all(self, batch: LabelledBatch) -> dict[str, Any]:
        """Fits all rows of a batch."""
        labels = torch.stack([batch.z.double().mean(-1), batch.weight.double()], dim=-1)
        x = self.coordinates(batch.points)
        some = torch.linspace(0, len(batch) - 1, min(TUNED, len(batch)), device=x.device).round().long()
        self._keep(_x=x[some], _data=labels[some])
        how = {"jac": True, "method": "L-BFGS-B", "bounds": self._bounds, "options": {"maxiter": self.iterations}}
        found = minimize(self.negative_evidence(self._evidence()), self.theta.cpu().numpy(), **how)
        self.theta.copy_(torch.tensor(found.x))
        self._keep(_points=batch.points, _may_be_best=batch.may_be_best)
        self._remember(x, labels)
        return {"loss": float(found.fun) / len(some), "rows": float(len(batch))}

    def _gram(self) -> Gram:
        if not self.is_tanimoto:
            return super()._gram()
        features = self._x[:, self._features].float()
        others = None
        if not bool(self._features.all()):
            others = ScaledGram(self.function, self._x[:, ~self._features], self.coordinates.block[~self._features])
        return LibraryGram(with_shared(MinMax(features)(features)).double(), others, len(self.theta) - 2)

    def _kernel(self, theta: Tensor) -> Kernel:
        if not self.is_tanimoto:
            return super()._kernel(theta)
        scale = (-theta[:-2]).exp()[self.coordinates.block[~self._features]]
        return LibraryKernel(self._features, ScaledKernel(self.function, scale, theta[-2].exp()))

    # --- checkpoints -------------------------------------------------------------------------------------------------

    def get_extra_state(self) -> dict[str, Any]:
        """The fitted rows, as points: their features would be large."""
        return {"points": self._points, "data": self._data, "may_be_best": self._may_be_best}

    def set_extra_state(self, state: dict[str, Any]) -> None:
        """Restores the rows of a checkpoint."""
        points = state["points"].to(self.theta)
        self._keep(_points=points, _may_be_best=state["may_be_best"].to(self.theta.device))
        self._remember(self.coordinates(points), state["data"].to(self.theta))
