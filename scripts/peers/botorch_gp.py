"""BoTorch's Gaussian process with its default priors, and log expected improvement."""

import warnings

import torch
from botorch import fit_gpytorch_mll
from botorch.acquisition import LogExpectedImprovement, qLogExpectedImprovement, qLogNoisyExpectedImprovement
from botorch.acquisition.acquisition import AcquisitionFunction
from botorch.acquisition.analytic import LogConstrainedExpectedImprovement, LogProbabilityOfFeasibility
from botorch.models import MixedSingleTaskGP, SingleTaskGP
from botorch.models.gpytorch import GPyTorchModel
from botorch.optim import optimize_acqf, optimize_acqf_discrete, optimize_acqf_mixed_alternating
from gpytorch.mlls import ExactMarginalLogLikelihood
from torch import Tensor

from deepbore.data.outcome import Outcome
from deepbore.space import Params
from peers.base import PointPeer

MOST_STEPS = 200  # of a mixed kernel's fit, whose amplitudes creep on for a thousand without getting likelier
RESTARTS, RAW_SAMPLES = 10, 512
NOISELESS = 1e-6  # variance of no noise, by that of the values, as in BoTorch's example for values without
MOST_LEVELS = 1000  # of a parameter; one with more is searched as if it were real, and rounded
LARGEST_LIST = 100_000  # configurations up to which a finite space is searched one by one


class BoTorch(PointPeer):
    """`SingleTaskGP`, with a mixed kernel where there are categories; LogEI, and qLogNEI under noise.

    Batches without noise are by qLogEI, point after point. Real spaces are searched by `optimize_acqf`, small finite
    ones configuration by configuration, others by `optimize_acqf_mixed_alternating`. Failures are as bad as the worst
    value, inactive parameters at their first value. Under constraints it is constrained LogEI with a Gaussian process
    for each, point by point and without noise, or the probability that a point is feasible while none is known.

    Args:
        told: whether it is told that values have no noise where they have none, and so infers none.
        arguments, settings: as every peer's.
    """

    packages = ("botorch", "gpytorch", "torch")
    point_by_point = True  # whether a batch in a real space is found so, or all at once

    def __init__(self, *arguments, told: bool = False, **settings):
        super().__init__(*arguments, **settings)
        warnings.simplefilter("ignore")
        self.knows_noise = told and not self.noisy
        self.bounds = list[tuple[float, ...] | None]()  # constraints of each outcome; None for a failure
        columns = list(enumerate(self.space.parameters.values()))
        self.grids = {
            i: (p.encode(p.decode(p.from_level(torch.arange(p.levels, dtype=torch.float64)))) / p.upper).tolist()
            for i, p in columns
            if p.levels is not None and p.levels <= MOST_LEVELS
        }
        self.categories = [i for i, p in columns if p.kind == "categorical"]
        few = self.space.cardinality <= LARGEST_LIST
        self.everything = self.space.points.enumerate() / self.upper if few else None
        self.names = self.space.points.identify(self.space.points.enumerate()) if few else []

    def propose(self, q: int) -> Tensor:
        torch.manual_seed(self.seed + 1000 * len(self.values))
        model = self.model()
        return self.fresh(self.maximised(self.acquisition(model, q), q))

    def model(self) -> GPyTorchModel:
        """The Gaussian process of minus the values, and of each constraint."""
        y = -torch.tensor(self.filled(), dtype=torch.float64)[:, None]
        if self.constrained:
            y = torch.cat([y, self.filled_constraints()], -1)
        noise = (NOISELESS * y.var(0)).clamp_min(1e-12).expand_as(y) if self.knows_noise and len(y) > 1 else None
        if not self.categories:
            model = SingleTaskGP(self.points, y, noise)
            fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
            return model
        model = MixedSingleTaskGP(self.points, y, self.categories, noise)
        most = {"options": {"maxiter": MOST_STEPS}}
        fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model), optimizer_kwargs=most)
        return model

    def acquisition(self, model: GPyTorchModel, q: int) -> AcquisitionFunction:
        """What is maximised."""
        if self.constrained:
            return self.constrained_acquisition(model)
        best = -min(self.filled())
        if self.noisy:
            return qLogNoisyExpectedImprovement(model, self.points, prune_baseline=True)
        return LogExpectedImprovement(model, best) if q == 1 else qLogExpectedImprovement(model, best)

    def tell_outcome(self, params: Params, outcome: Outcome) -> None:
        if not self.constrained:
            super().tell_outcome(params, outcome)
            return
        self.bounds.append(None if outcome.has_failed else outcome.constraints)
        self.tell(params, None if outcome.has_failed else outcome.values[0])

    def filled_constraints(self) -> Tensor:
        """The constraints told (n x c), failures as bad as the worst of each."""
        c = len(next(each for each in self.bounds if each is not None))
        missing = (float("nan"),) * c
        told = torch.tensor([missing if each is None else each for each in self.bounds], dtype=torch.float64)
        return torch.where(told.isnan(), told.nan_to_num(nan=-float("inf")).max(0).values, told)

    def constrained_acquisition(self, model: GPyTorchModel) -> AcquisitionFunction:
        """Constrained LogEI over the best feasible value, or the probability of feasibility where there is none."""
        kept = {1 + j: (None, 0.0) for j in range(model.num_outputs - 1)}
        pairs = zip(self.values, self.bounds, strict=True)
        feasible = [value for value, bounds in pairs if value is not None and all(c <= 0 for c in bounds)]
        if not feasible:
            return LogProbabilityOfFeasibility(model, kept)
        return LogConstrainedExpectedImprovement(model, -min(feasible), 0, kept)

    def maximised(self, acquisition: AcquisitionFunction, q: int) -> Tensor:
        """The best q points (q x d in the unit cube)."""
        if self.everything is not None:
            left = self.everything[[name not in self.seen for name in self.names]]
            return optimize_acqf_discrete(acquisition, q, left if len(left) >= q else self.everything)[0]
        bounds = torch.stack([torch.zeros_like(self.upper), torch.ones_like(self.upper)])
        effort = {"num_restarts": RESTARTS, "raw_samples": RAW_SAMPLES, "sequential": True}
        if not self.grids:
            return optimize_acqf(acquisition, bounds, q, **effort | {"sequential": self.point_by_point})[0]
        discrete = {i: grid for i, grid in self.grids.items() if i not in self.categories}
        categorical = {i: self.grids[i] for i in self.categories}
        return optimize_acqf_mixed_alternating(acquisition, bounds, discrete, categorical, q=q, **effort)[0]

    def recommend(self) -> Params:
        """The evaluated configuration with the best posterior mean where values are noisy."""
        if not self.noisy or len(self.values) < 2:
            return super().recommend()
        model = self.model()  # its fit needs gradients
        with torch.no_grad():
            mean = model.posterior(self.points).mean
        return self.params[int(mean.argmax())]
