"""The Gaussian processes that the papers compare with, on BoTorch: EI, UCB, q-EI and local penalisation.

One model for all, as BoTorch had it up to 0.11: a Matern-5/2 kernel with a length-scale for each feature, Gamma priors,
standardised values, the most probable hyperparameters anew at each step. Categories are one-hot, ordinals and whole
numbers one number of [0, 1]; acquisitions are maximised over configurations, as by `botorch_gp`.
"""

from abc import abstractmethod
from collections.abc import Callable

import numpy as np
import torch
from botorch import fit_gpytorch_mll
from botorch.acquisition import ExpectedImprovement, LogExpectedImprovement, UpperConfidenceBound, qExpectedImprovement
from botorch.acquisition.acquisition import AcquisitionFunction
from botorch.exceptions import ModelFittingError
from botorch.models import SingleTaskGP
from botorch.models.transforms.input import InputTransform
from botorch.models.utils.gpytorch_modules import get_gaussian_likelihood_with_gamma_prior
from botorch.sampling import SobolQMCNormalSampler
from botorch.utils.transforms import t_batch_mode_transform
from gpytorch.kernels import Kernel, MaternKernel, RQKernel, ScaleKernel
from gpytorch.mlls import ExactMarginalLogLikelihood
from gpytorch.priors import GammaPrior
from scipy.optimize import minimize
from torch import Tensor
from torch.nn import Module

from deepbore.space import Params, SearchSpace
from peers.base import one_hot
from peers.botorch_gp import BoTorch

KERNELS: dict[str, Callable[..., Kernel]] = {
    "matern": lambda **settings: MaternKernel(2.5, **settings),
    "rational quadratic": RQKernel,  # batch BORE, D.3
}
FLAT, SLOPE_IF_FLAT = 1e-7, 10.0  # a mean with a smaller slope says nothing; then GPyOpt's stand-in
Rule = Callable[[Tensor], AcquisitionFunction]  # points under evaluation (k x d) -> what the next one maximises


class OneHot(InputTransform):
    """Points of the unit cube -> features, before the kernel sees them."""

    transform_on_train = transform_on_eval = transform_on_fantasize = True

    def __init__(self, space: SearchSpace):
        super().__init__()
        self.space = space

    def transform(self, X: Tensor) -> Tensor:
        return one_hot(self.space, X)


class GaussianProcess(BoTorch):
    """What all have in common: the model, and which points are under evaluation.

    Args:
        kernel: a name of `KERNELS`.
    """

    def __init__(self, *arguments, kernel: str = "matern", **settings):
        super().__init__(*arguments, **settings)
        self.kernel = KERNELS[kernel]
        self.pending = self.points[:0]  # asked for, and not told yet; scaled

    def ask(self, q: int) -> list[Params]:
        asked = super().ask(q)
        self.pending = torch.cat([self.pending, self.space.encode(asked) / self.upper])
        return asked

    def tell(self, params: Params, value: float | None) -> None:
        super().tell(params, value)
        same = (self.pending == self.points[-1]).all(1)
        self.pending = self.pending[~(same & (same.cumsum(0) == 1))]  # once, if it waits twice

    def model(self) -> SingleTaskGP:
        """The Gaussian process of minus the values, standardised."""
        y = -torch.tensor(self.filled(), dtype=torch.float64)[:, None]
        y = (y - y.mean()) / y.std(correction=0).clamp_min(1e-12)
        e = one_hot(self.space, self.points[:1]).shape[-1]
        kernel = self.kernel(ard_num_dims=e, lengthscale_prior=GammaPrior(3.0, 6.0))
        covariance = ScaleKernel(kernel, outputscale_prior=GammaPrior(2.0, 0.15))
        likelihood = get_gaussian_likelihood_with_gamma_prior()
        model = self.knowing(self.points, y, covar_module=covariance, likelihood=likelihood)
        try:
            fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
        except ModelFittingError:  # it keeps the hyperparameters that it began with
            model.eval()
        return model

    def knowing(self, x: Tensor, y: Tensor, **parts: Module) -> SingleTaskGP:
        """A Gaussian process of these parts that knows y (n x 1) at x (n x d in the unit cube)."""
        return SingleTaskGP(x, y, outcome_transform=None, input_transform=OneHot(self.space), **parts)

    def best(self, model: SingleTaskGP) -> float:
        """The incumbent, in the model's units: the best value, or where values are noisy the best posterior mean."""
        if not self.noisy:
            return float(model.train_targets.max())
        with torch.no_grad():
            return float(model.posterior(self.points).mean.max())


class QEI(GaussianProcess):
    """q-EI as in batch BORE, D.2: BoTorch's `qExpectedImprovement` by 256 samples, ten restarts of L-BFGS.

    In a real space a batch is found all at once, else point by point. Points under evaluation are integrated over.
    """

    point_by_point = False
    SAMPLES = 256

    def acquisition(self, model: SingleTaskGP, q: int) -> AcquisitionFunction:
        sampler = SobolQMCNormalSampler(torch.Size([self.SAMPLES]), seed=self.seed)
        waiting = self.pending if len(self.pending) else None
        return qExpectedImprovement(model, self.best(model), sampler, X_pending=waiting)


class PointByPoint(GaussianProcess):
    """One point after the other, given those that are under evaluation."""

    def propose(self, q: int) -> Tensor:
        torch.manual_seed(self.seed + 1000 * len(self.values))
        rule, chosen = self.rule(self.model()), self.pending[:0]
        for _ in range(q):
            waiting = torch.cat([self.pending, chosen])
            point = self.space.points.snap(self.fresh(self.maximised(rule(waiting), 1)) * self.upper)
            self.seen.update(self.space.points.identify(point))
            chosen = torch.cat([chosen, point / self.upper])
        return chosen

    @abstractmethod
    def rule(self, model: SingleTaskGP) -> Rule:
        """How a model says what is next."""

    def believing(self, model: SingleTaskGP, waiting: Tensor) -> SingleTaskGP:
        """The model as if its mean had been observed at the points that are waiting (k x d)."""
        if not len(waiting):
            return model
        with torch.no_grad():
            believed = model.posterior(waiting).mean
        x, y = torch.cat([self.points, waiting]), torch.cat([model.train_targets[:, None], believed])
        parts = {"covar_module": model.covar_module, "likelihood": model.likelihood, "mean_module": model.mean_module}
        return self.knowing(x, y, **parts).eval()


class EI(PointByPoint):
    """Expected improvement over the best value, as GP-BO of the BORE paper, which is AutoGluon's searcher.

    In batches the kriging believer (Ginsbourger et al. 2010): what is under evaluation will come as expected.
    """

    def rule(self, model: SingleTaskGP) -> Rule:
        best = self.best(model)
        return lambda waiting: ExpectedImprovement(self.believing(model, waiting), best)


class UCB(PointByPoint):
    """mean + 3 standard deviations; in batches GP-BUCB (Desautels et al. 2014), which believes the mean, too."""

    DEVIATIONS = 3.0  # batch BORE, D.3 gives this for BORE++, and nothing for GP-UCB

    def rule(self, model: SingleTaskGP) -> Rule:
        return lambda waiting: UpperConfidenceBound(self.believing(model, waiting), self.DEVIATIONS**2)


class LocalPenalisation(PointByPoint):
    """LP-EI (Gonzalez et al., AISTATS 2016), in logarithms: see `Penalised`. L is the steepest slope of the mean."""

    def rule(self, model: SingleTaskGP) -> Rule:
        best = self.best(model)
        improvement = LogExpectedImprovement(model, best)
        starts = one_hot(self.space, self.random(500))
        slope = steepest(model, starts)
        return lambda waiting: Penalised(improvement, self.space, waiting, slope, best) if len(waiting) else improvement


class Penalised(AcquisitionFunction):
    """log EI(x) + sum_j log phi(x; x_j) over the points x_j under evaluation.

    phi(x; x_j) = 1/2 erfc(-z), z = (L |x_j - x| - M + mu(x_j)) / sqrt(2 sigma^2(x_j)): the probability that x lies
    outside of the ball around x_j in which a function of slope L at most can't reach its maximum M, for which the best
    value stands (proposition 1). Distances are those of features.

    Args:
        improvement: log EI of a model.
        space: the search space.
        waiting: x_j, k x d in the unit cube, k >= 1.
        slope: L.
        best: M.
    """

    def __init__(self, improvement: LogExpectedImprovement, space: SearchSpace, waiting: Tensor, slope, best):
        super().__init__(improvement.model)
        self.improvement, self.space, self.slope = improvement, space, slope
        self.centres = one_hot(space, waiting)
        with torch.no_grad():
            posterior = self.model.posterior(waiting)
        self.gap, self.deviation = best - posterior.mean[:, 0], posterior.variance[:, 0].sqrt()

    @t_batch_mode_transform(expected_q=1)
    def forward(self, X: Tensor) -> Tensor:
        distance = torch.cdist(one_hot(self.space, X), self.centres)[..., 0, :]
        outside = torch.special.log_ndtr((self.slope * distance - self.gap) / self.deviation)
        return self.improvement(X) + outside.sum(-1)


def steepest(model: SingleTaskGP, starts: Tensor) -> float:
    """max |gradient of the mean| over the features' cube, by L-BFGS from the steepest of the starts (m x e)."""

    def slopes(features: Tensor) -> Tensor:
        features = features.requires_grad_()
        (slope,) = torch.autograd.grad(model(features).mean.sum(), features, create_graph=True)
        return slope.norm(dim=-1)

    def descent(features: np.ndarray) -> tuple[float, np.ndarray]:
        at = torch.tensor(features[None], requires_grad=True)
        loss = -slopes(at).sum()
        (direction,) = torch.autograd.grad(loss, at)
        return loss.item(), direction[0].numpy()

    start = starts[slopes(starts).argmax()].detach().numpy()
    slope = -float(minimize(descent, start, jac=True, method="L-BFGS-B", bounds=[(0, 1)] * len(start)).fun)
    return slope if slope > FLAT else SLOPE_IF_FLAT
