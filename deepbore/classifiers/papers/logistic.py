"""`FourierLogistic`: Bayesian logistic regression on random Fourier features, by expectation maximisation."""

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from deepbore.classifiers.base import Classifier
from deepbore.classifiers.link import Link
from deepbore.classifiers.networks.last_layer import FourierFeatures
from deepbore.classifiers.posterior import LinearPosterior
from deepbore.labels.datamodule import LabelledBatch
from deepbore.space import SearchSpace
from deepbore.validation import above, whole

ALPHA_RANGE = (1e-2, 1e1)  # prior precision: prior standard deviations of logits from 0.3 to 10
TINY = 1e-9
STRIDE = math.log(2) / 2  # of the search for a length scale, in its logarithm
LENGTH_SCALE_RANGE = (0.1, 3.0)  # for one feature; distances grow with the square root of their number
START = 0.5  # initial length scale, for one feature
FULL_BUDGET = 200  # rows up to which all rounds are used; with more, each round costs more and changes less


@dataclass(frozen=True)
class LogisticData:
    """Rows to learn from.

    Attributes:
        phi: features, n x h.
        z: labels in [0, 1], n.
        weight: weights, n: a weight of 2 counts a row twice.
    """

    phi: Tensor
    z: Tensor
    weight: Tensor

    def reduced(self) -> "LogisticData":
        """The same rows with min(n, h) features, in an orthonormal basis in which all others are 0."""
        n, h = self.phi.shape
        if n >= h:
            return self
        triangular = torch.linalg.qr(self.phi.mT, mode="r").R
        return LogisticData(triangular.mT, self.z, self.weight)


@dataclass(frozen=True)
class Moments:
    """The Gaussian q(w) for given xi and alpha, and its bound of the evidence.

    Attributes:
        mean: weights, h.
        factor: L with covariance (L L^T)^-1, h x h.
        variance: variance of each row's logit, n.
        bound: lower bound of the log evidence.
    """

    mean: Tensor
    factor: Tensor
    variance: Tensor
    bound: float


@dataclass(frozen=True)
class Maximum:
    """The maximum of the bound over xi and alpha.

    Attributes:
        xi: the points where the rows' bounds are tight, n.
        alpha: prior precision of the weights.
        bound: lower bound of the log evidence.
    """

    xi: Tensor
    alpha: Tensor
    bound: float


def curvature(xi: Tensor) -> Tensor:
    """tanh(xi / 2) / (2 xi), as in Jaakkola and Jordan's bound; the mean of a Polya-Gamma variable; 1/4 at 0."""
    return torch.tanh(xi / 2) / (2 * xi)


def moments(data: LogisticData, xi: Tensor, alpha: Tensor) -> Moments:
    """The E step: q(w) for z ~ Bernoulli(sigmoid(phi w)), w ~ N(0, 1 / alpha), with bounds that are tight at +-xi.

        log sigmoid(f)^z sigmoid(-f)^(1 - z) >= (z - 1/2) f - log(2 cosh(xi / 2)) - curvature(xi) (f^2 - xi^2) / 2

    (Jaakkola and Jordan, 2000; Bishop 2006, eq. 10.156 to 10.159.) The right side is quadratic in f for graded labels
    as well, and multiplied by the row's weight.

    Args:
        data: the rows.
        xi: the points where the bounds are tight, n, positive.
        alpha: prior precision of the weights.
    """
    phi, weight = data.phi, data.weight
    omega = weight * curvature(xi)
    precision = phi.mT @ (phi * omega[:, None]) + alpha * torch.eye(phi.shape[1]).to(phi)
    factor = torch.linalg.cholesky(precision)
    pull = phi.mT @ (weight * (data.z - 0.5))
    mean = torch.cholesky_solve(pull[:, None], factor).squeeze(-1)
    variance = torch.linalg.solve_triangular(factor, phi.mT, upper=False).square().sum(0)
    touching = (omega * xi.square() - weight * (xi + 2 * torch.log1p((-xi).exp()))).sum() / 2
    volume = len(mean) * alpha.log() / 2 - factor.diagonal().log().sum()
    return Moments(mean, factor, variance, float(mean @ pull / 2 + volume + touching))


def maximise_bound(data: LogisticData, xi: Tensor, alpha: Tensor, rounds: int, tolerance: float = 1e-2) -> Maximum:
    """Maximises the bound over xi and alpha, from given starting values.

    The M step is xi^2 = E[f^2] and alpha = sqrt(alpha alpha'), with MacKay's alpha' = effective weights / |mean|^2
    (Bishop 2006, eq. 3.92): half of his step, in the logarithm. It maximises a minorant of the bound in 1 / alpha (Wipf
    and Nagarajan, 2007), so that it never lowers the bound, and unlike EM's alpha = h / E|w|^2 it is not slowed down by
    weights that the data do not determine.

    Args:
        data: the rows.
        xi: starting values, n.
        alpha: starting value.
        rounds: maximal number of E and M steps.
        tolerance: stop when the bound rises by less.
    """
    data, reached = data.reduced(), -math.inf
    for _ in range(rounds):
        q = moments(data, xi, alpha)
        risen, reached = q.bound - reached, q.bound
        if risen < tolerance:
            break
        effective = (data.weight * curvature(xi) * q.variance).sum()
        alpha = (alpha * effective / (q.mean.square().sum() + TINY)).sqrt().clamp(*ALPHA_RANGE)
        xi = ((data.phi @ q.mean).square() + q.variance).sqrt().clamp(min=TINY)
    return Maximum(xi, alpha, reached)


class FourierLogistic(Classifier):
    """Bayesian logistic regression on random Fourier features of the squared-exponential kernel, trained by EM.

    The classifier of Oliveira et al. (2022), appendix E. Scores are logits, with a Gaussian posterior in closed form,
    by expectation maximisation on Jaakkola and Jordan's bound of the evidence. The bound also determines the prior's
    precision and the length scale, which changes by factors of sqrt(2) from its value in the last iteration. The cost
    is cubic in the number of features, and linear in the number of observations.

    Made for `ThresholdLabels`: the likelihood treats a graded label as a fraction of one noisy observation, so that the
    evidence favours a very smooth function.

    Departures from the paper, which only says "expectation maximisation": the length scale is learned, a constant is
    one more feature, and beyond `rows` observations it learns from a coreset.

    Args:
        features: R, number of random features.
        length_scale: of the kernel on encoded features (see `Points.features`), fixed; None to learn it.
        rows: maximal number of observations to learn from.
        rounds: maximal rounds of expectation maximisation per iteration and length scale; fewer beyond 200 rows.

    Raises:
        SettingError: for a number outside its range.

    Example:
        >>> from deepbore.testing import TOY_SPACES, fit, toy_data
        >>> space = TOY_SPACES["continuous"]
        >>> posterior = fit(FourierLogistic(), toy_data(space)).posterior(space.points.sobol(4, seed=0))
        >>> posterior.mean.shape, posterior.std.shape
        (torch.Size([4]), torch.Size([4]))

    References:
        Oliveira, Tiao & Ramos, Batch Bayesian optimisation via density-ratio estimation with guarantees, 2022.
        Jaakkola & Jordan, Bayesian parameter estimation via variational methods, 2000.
    """

    link = Link.LOGIT
    closed_form = True
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
    stride: Tensor  # the next change of the log length scale

    def build(self, space: SearchSpace, outputs: int) -> None:
        self.features = space.points.features
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
        last = self._over(data.phi)  # the last posterior gives the starting values of xi
        found = maximise_bound(data, (last.mean.square() + last.std.square()).sqrt(), self.alpha, rounds)
        if self.length_scale is None:
            found = self._climb(batch, found, rounds)
        self._remember(self._data(batch), found)
        return {"loss": -found.bound / len(batch), "rows": float(len(batch)), "length_scale": self.waves.length_scale}

    def _climb(self, batch: LabelledBatch, found: Maximum, rounds: int) -> Maximum:
        """Changes the length scale while the bound rises, then reverses the direction for the next iteration."""
        low, high = (limit * math.sqrt(self.features.size) for limit in LENGTH_SCALE_RANGE)
        while True:
            before = self.waves.length_scale.clone()
            self.waves.length_scale.copy_((before * self.stride.exp()).clamp(low, high))
            if bool(self.waves.length_scale == before):  # at a limit
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
        """Stores the posterior of all weights."""
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
        """Points (n x d) -> Fourier features and a constant (n x h)."""
        x = self.features(points.double())
        return torch.cat([self.waves(x), torch.ones_like(x[:, :1])], dim=-1)
