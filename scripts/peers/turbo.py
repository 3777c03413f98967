"""TuRBO-1 (Eriksson et al., NeurIPS 2019), re-implemented as BoTorch's tutorial describes it."""

import math
import warnings

import gpytorch
import torch
from botorch import fit_gpytorch_mll
from botorch.exceptions import ModelFittingError
from botorch.generation import MaxPosteriorSampling
from botorch.models import SingleTaskGP
from botorch.models.gpytorch import GPyTorchModel
from gpytorch.constraints import Interval
from gpytorch.kernels import MaternKernel, ScaleKernel
from gpytorch.likelihoods import GaussianLikelihood
from gpytorch.mlls import ExactMarginalLogLikelihood
from torch import Tensor
from torch.quasirandom import SobolEngine

from deepbore.space import Params
from peers.base import PointPeer

FIRST, SHORTEST, LONGEST = 0.8, 0.5**7, 1.6  # lengths of the trust region
SUCCESSES = 10  # in a row, after which it doubles


class TuRBO(PointPeer):
    """One trust region around the best point, Thompson sampling in it, and a new start when it has shrunk away.

    The region is a box with sides in proportion to the length-scales. It doubles after ten improvements by a thousandth
    in a row and halves after max(4, d) / q rounds without one. Candidates are Sobol points in it that differ from the
    centre in about 20 columns. The model learns only what was seen since the last start, which begins with a new
    design. Levels are rounded; failures are as bad as the worst value.
    """

    packages = ("botorch", "gpytorch", "torch")

    def __init__(self, *arguments, **settings):
        super().__init__(*arguments, **settings)
        warnings.simplefilter("ignore")
        self.patience = math.ceil(max(4.0, len(self.space)) / self.workers)
        self.candidates = min(5000, max(2000, 200 * len(self.space)))
        self.length, self.wins, self.losses, self.best = FIRST, 0, 0, math.inf
        self.begun, self.counted = 0, 0  # rows at which the region began, and up to which improvements are counted
        self.design = self.n_initial  # evaluations that a region begins with

    def ask(self, q: int) -> list[Params]:
        self.count()
        if self.length < SHORTEST:
            self.length, self.wins, self.losses, self.best = FIRST, 0, 0, math.inf
            self.begun = self.counted = len(self.values)
            self.n_initial = self.designed + self.design
        return super().ask(q)

    def count(self) -> None:
        """Counts the latest batch as a success or a failure, and resizes the region."""
        latest = self.filled()[self.counted :]
        if not latest:
            return
        in_design, self.counted = self.counted - self.begun < self.design, len(self.values)
        best, self.best = self.best, min(self.best, *latest)
        if in_design:
            return
        improved = self.best < best - 1e-3 * abs(best)
        self.wins, self.losses = (self.wins + 1, 0) if improved else (0, self.losses + 1)
        if self.wins == SUCCESSES:
            self.length, self.wins = min(2 * self.length, LONGEST), 0
        elif self.losses == self.patience:
            self.length, self.losses = self.length / 2, 0

    def propose(self, q: int) -> Tensor:
        torch.manual_seed(self.seed + 1000 * len(self.values))
        x, y = self.points[self.begun :], -torch.tensor(self.filled()[self.begun :], dtype=torch.float64)
        if len(x) < 2:
            return self.random(q)
        y = (y - y.mean()) / y.std().clamp_min(1e-12)
        with gpytorch.settings.max_cholesky_size(math.inf):
            model = self.model(x, y[:, None])
            weights = model.covar_module.base_kernel.lengthscale.detach().view(-1)
            with torch.no_grad():
                chosen = MaxPosteriorSampling(model, replacement=False)(self.pool(x[y.argmax()], weights), q)
        return self.fresh(chosen)

    def model(self, x: Tensor, y: Tensor) -> GPyTorchModel:
        """A Gaussian process with a Matern-5/2 kernel and a length-scale for each column."""
        likelihood = GaussianLikelihood(noise_constraint=Interval(1e-8, 1e-3))
        kernel = ScaleKernel(MaternKernel(2.5, ard_num_dims=x.shape[1], lengthscale_constraint=Interval(0.005, 4.0)))
        model = SingleTaskGP(x, y, covar_module=kernel, likelihood=likelihood, outcome_transform=None)
        try:
            fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
        except ModelFittingError:  # it keeps the settings that it began with
            model.eval()
        return model

    def pool(self, centre: Tensor, weights: Tensor) -> Tensor:
        """Candidates in the trust region (m x d)."""
        d = len(centre)
        weights = weights / weights.mean()
        weights = weights / weights.prod().pow(1 / d)
        low, high = (centre - weights * self.length / 2).clamp(0, 1), (centre + weights * self.length / 2).clamp(0, 1)
        seed = int(torch.randint(2**31, (), generator=self.generator))
        points = low + (high - low) * SobolEngine(d, scramble=True, seed=seed).draw(self.candidates, dtype=centre.dtype)
        moved = torch.rand(self.candidates, d, generator=self.generator) <= min(20 / d, 1)
        still = ~moved.any(1)
        moved[still, torch.randint(d, (int(still.sum()),), generator=self.generator)] = True
        return torch.where(moved, points, centre)
