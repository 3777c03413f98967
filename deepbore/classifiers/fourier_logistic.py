"""`FourierLogistic`: Bayesian logistic regression on random Fourier features."""

import math
from typing import Any

import torch
from torch import Tensor

from deepbore.classifiers.base import Classifier
from deepbore.classifiers.fourier import FourierFeatures
from deepbore.classifiers.link import Link
from deepbore.classifiers.logistic import LogisticData, Maximum, maximise_bound, moments
from deepbore.classifiers.posterior import LinearPosterior
from deepbore.labels.datamodule import LabelledBatch
from deepbore.space import SearchSpace
from deepbore.validation import above, whole

STRIDE = math.log(2) / 2  # by which a try changes the logarithm of the length scale
LENGTH_SCALE_RANGE = (0.1, 3.0)  # for one feature; distances grow with the square root of their number
START = 0.5
FULL_BUDGET = 200  # rows up to which all rounds are spent; beyond, each costs more and changes less


class FourierLogistic(Classifier):
    """Bayesian logistic regression on random Fourier features of the squared-exponential kernel, trained by EM.

    The classifier of Oliveira et al. (2022), appendix E. Scores are logits, with a Gaussian posterior in closed form:
    expectation maximisation on Jaakkola and Jordan's bound of the evidence, which also gives the prior's precision and
    picks the length scale, a factor of sqrt(2) up or down at a time, from where the last iteration left it. The cost
    grows with the number of features cubed, and only linearly with that of the observations.

    Made for `ThresholdLabels`: the likelihood takes a graded label as a fraction of one noisy observation, from which
    the evidence concludes little but a very smooth function.

    Departures from the paper, which says no more than "expectation maximisation": the length scale is learned, a
    constant is one more feature, and beyond `rows` observations a coreset is learned from.

    Args:
        features: R, how many random features.
        length_scale: of the kernel on encoded features (see `SearchSpace.features`), fixed; None to learn it.
        rows: how many observations it learns from at most.
        rounds: of expectation maximisation at most, per iteration and length scale; fewer beyond 200 rows.

    Raises:
        SettingError: for a number outside its range.

    Example:
        >>> from deepbore.testing import TOY_SPACES, fit, toy_data
        >>> space = TOY_SPACES["continuous"]
        >>> posterior = fit(FourierLogistic(), toy_data(space)).posterior(space.sobol(4, seed=0))
        >>> posterior.mean.shape, posterior.std.shape
        (torch.Size([4]), torch.Size([4]))

    References:
        Oliveira, Tiao & Ramos, Batch Bayesian optimisation via density-ratio estimation with guarantees, 2022.
        Jaakkola & Jordan, Bayesian parameter estimation via variational methods, 2000.
    """

    link = Link.LOGIT
    capabilities = frozenset({"std"})
    kappa = 3.0  # the beta_t of appendix E

    def __init__(self, features: int = 300, length_scale: float | None = None, rows: int = 1024, rounds: int = 15):
        super().__init__()
        above(0, length_scale=length_scale)
        whole(1, features=features, rows=rows, rounds=rounds)
        self.count, self.length_scale, self.rows, self.rounds = features, length_scale, rows, rounds

    alpha: Tensor  # prior precision of the weights
    mean: Tensor  # of the weights, h
    root: Tensor  # R with covariance R R^T, h x h
    stride: Tensor  # the change of log length scale to try next

    def build(self, space: SearchSpace, outputs: int) -> None:
        self.features = space.features
        self.waves = FourierFeatures(self.features.size, self.count, self.generator, spectrum="rbf").double()
        self.waves.length_scale.fill_(self.length_scale or START * math.sqrt(self.features.size))
        h = self.count + 1
        self.register_buffer("alpha", torch.ones((), dtype=torch.float64))
        self.register_buffer("mean", torch.zeros(h, dtype=torch.float64))
        self.register_buffer("root", torch.eye(h, dtype=torch.float64))
        self.register_buffer("stride", torch.tensor(-STRIDE, dtype=torch.float64))

    # --- learning ----------------------------------------------------------------------------------------------------

    @torch.no_grad()
    def fit(self, batch: LabelledBatch) -> dict[str, Any]:
        batch = batch.coreset(self.rows, self.generator)
        rounds = math.ceil(self.rounds * min(1.0, FULL_BUDGET / len(batch)))
        data = self._data(batch)
        last = self._over(data.phi)  # the last posterior tells where the bounds should touch
        found = maximise_bound(data, (last.mean.square() + last.std.square()).sqrt(), self.alpha, rounds)
        if self.length_scale is None:
            found = self._climb(batch, found, rounds)
        self._remember(self._data(batch), found)
        self.count_step()
        return {"loss": -found.bound / len(batch), "rows": float(len(batch)), "length_scale": self.waves.length_scale}

    def _climb(self, batch: LabelledBatch, found: Maximum, rounds: int) -> Maximum:
        """Changes the length scale while the bound rises; turns round for the next time when it falls."""
        low, high = (limit * math.sqrt(self.features.size) for limit in LENGTH_SCALE_RANGE)
        while True:
            before = self.waves.length_scale.clone()
            self.waves.length_scale.copy_((before * self.stride.exp()).clamp(low, high))
            if bool(self.waves.length_scale == before):  # at an end
                self.stride.neg_()
                return found
            tried = maximise_bound(self._data(batch), found.xi, found.alpha, rounds)
            if not tried.bound > found.bound:
                self.waves.length_scale.copy_(before)
                self.stride.neg_()
                return found
            found = tried

    def _data(self, batch: LabelledBatch) -> LogisticData:
        return LogisticData(self._phi(batch.points), batch.z.double().mean(-1), batch.weight.double())

    def _remember(self, data: LogisticData, found: Maximum) -> None:
        """Takes over the posterior of all weights."""
        q = moments(data, found.xi, found.alpha)
        self.alpha.copy_(found.alpha)
        self.mean.copy_(q.mean)
        self.root.copy_(torch.linalg.solve_triangular(q.factor.mT, torch.eye(len(q.mean)).to(q.factor), upper=True))

    # --- predicting --------------------------------------------------------------------------------------------------

    def posterior(self, points: Tensor) -> LinearPosterior:
        self.check_points(points)
        return self._over(self._phi(points))

    def _over(self, phi: Tensor) -> LinearPosterior:
        return LinearPosterior(phi[None], self.mean[None], self.root[None], self.link)

    def _phi(self, points: Tensor) -> Tensor:
        """Points (n x d) -> waves and a constant (n x h)."""
        x = self.features(points.double())
        return torch.cat([self.waves(x), torch.ones_like(x[:, :1])], dim=-1)
