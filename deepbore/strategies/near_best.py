"""`NearBest`: proposals by a local model of the observations near the best one, in rotated axes."""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Self

import torch
from torch import Tensor, nn

from deepbore.classifiers.kernel.least_squares import ROWS, KernelPLS
from deepbore.compute.numerics import smallest
from deepbore.data.suspicion import TAIL
from deepbore.data.trial import Budget
from deepbore.labels import LabelledBatch, Labelling
from deepbore.labels.grade import graded_by_value
from deepbore.space import SearchSpace
from deepbore.strategies.base import Proposal, Strategy, View

POOL = 5 * ROWS  # candidate rows: the POOL best and the POOL newest
GOOD, GOOD_PER_PARAMETER = 20, 2  # the axes are found from the 20 + 2 d best rows
UNEXPLAINED = 1e-3  # the largest share of the labels' variance unexplained by a model that may propose
CRASHES = 0.1  # the share of failures among the near rows from which they count as a failing region
FLOOR = 0.03  # the least length of an axis in units of the longest


class NearBest(Strategy):
    """Proposals by a kernel that learns only the rows near the best one, in rotated axes.

    An axis-aligned (ARD) kernel cannot represent oblique valleys, and a coreset of all rows has few near the best one.
    So on smooth functions the global model is too coarse to refine the best point, but needed to explore. If the
    function is rugged or noisy, no model explains the labels of the near rows; then this strategy is not ready (`fit`),
    and the global model makes all proposals.

    Several models learn the same rows: one in the axes of the parameters, one in the principal axes of the best rows,
    and one in these axes rotated to the directions of steepest change of the previous local model. The one with the
    largest evidence proposes. Rotated axes depend on the labels, and in many dimensions could fit any labels: each of
    the d (d - 1) / 2 angles must increase the likelihood by a factor of e, as in Akaike's criterion.

    It applies in continuous spaces without fixed parameters, to one objective without budgets, constraints or earlier
    tasks, from 20 + 2 d observations on.

    Args:
        rows: the maximum number of near rows to learn from, >= 1.
        iterations: of L-BFGS on the evidence, per proposal, >= 0.
        prior: whether the hyperparameters have priors.
        crashes: whether single failures may be random; see `KernelPLS`.

    Raises:
        SettingError: for a number outside its range.

    References:
        Akaike, A new look at the statistical model identification, 1974.
    """

    def __init__(self, rows: int = ROWS, iterations: int = 15, prior: bool = True, crashes: bool = True):
        self._settings: dict[str, Any] = {"rows": rows, "iterations": iterations, "prior": prior, "crashes": crashes}
        NearModel(**self._settings)  # checks them
        self.model: NearModel | None = None  # of the latest turn
        self._models: list[NearModel] = []
        self._thetas: Tensor | None = None  # of a state dict, until there are models
        self._steepness: Tensor | None = None

    def at_budgets(self, budget: Budget) -> "NearBest":
        return self

    def check(self, space: SearchSpace, labels: Labelling) -> None:
        """Never raises: where the strategy does not apply, it proposes nothing."""

    def applies(self, view: View) -> bool:
        space, batch = view.space, view.batch
        if batch is None or view.first is None or not view.has_plain_outcomes:
            return False
        if not space.points.is_continuous or space.points.is_fixed:
            return False
        return knows(batch, view.values, n_good(len(space)))

    def fit(self, view: View) -> bool:
        """Trains all models on the near rows; whether the one with the largest evidence explains their labels."""
        assert view.batch is not None
        count = self._settings["rows"]
        best, rows = near_rows(view.batch, view.values, max(count, ROWS))
        rows = rows.coreset(count, view.generator)  # the same for all models
        several = self.axes(best)
        models = [model.to(rows.points.device) for model in self._made(len(several), view.space)]
        losses = [model.learn_in_axes(axes, rows) + cost for model, (axes, cost) in zip(models, several, strict=True)]
        self.model = models[losses.index(min(losses))]
        self._steepness = self.model.steepness(rows.points)
        return self.model.unexplained < UNEXPLAINED

    def propose(self, view: View, q: int) -> Proposal:
        assert view.first is not None
        assert self.model is not None
        axes = self.model.coordinates
        search = replace(view.search(self.model, view.first.acquisition), centre=axes.centre, axes=axes.axes)
        return Proposal(view.first.candidates.propose(search, q), self.model)

    def axes(self, best: Tensor) -> list[tuple["LocalAxes", float]]:
        """The candidate axes, each with the increase of the log likelihood that is needed to select them.

        Args:
            best: points of the k best rows, best first, k x d.
        """
        principal = LocalAxes.principal(best)
        several = [(principal, 0.0), (LocalAxes.of_parameters(best), 0.0)]
        if self._steepness is not None:
            several.append((principal.turned(self._steepness), float(math.comb(best.shape[1], 2))))
        return several

    def _made(self, count: int, space: SearchSpace) -> list["NearModel"]:
        """`count` models; a new one starts from the hyperparameters of the first."""
        kept = [] if self._thetas is None else list(self._thetas)
        while len(self._models) < max(count, len(kept)):
            model = NearModel(**self._settings)
            model.bind(space)
            if len(self._models) < len(kept):
                model.theta.copy_(kept[len(self._models)])
            elif self._models:
                model.theta.copy_(self._models[0].theta)
            self._models.append(model)
        self._thetas = None
        return self._models[:count]

    def state_dict(self) -> dict[str, Any]:
        """The hyperparameters of the models, and the steepness; empty before the first turn."""
        thetas = torch.stack([model.theta for model in self._models]) if self._models else self._thetas
        return {} if thetas is None else {"thetas": thetas, "steepness": self._steepness}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.model, self._models = None, []
        self._thetas, self._steepness = state.get("thetas"), state.get("steepness")


class NearModel(KernelPLS):
    """`KernelPLS` of the rows near the best one, in rotated axes."""

    coordinates: "LocalAxes"  # type: ignore[assignment]  # in place of `Coordinates`

    length_scale_prior = (math.log(2.0), 1.0)  # in standard deviations of the best rows along each axis
    length_scale_bounds = (-2.0, 5.0)

    def __init__(self, rows: int, iterations: int, prior: bool, crashes: bool):
        super().__init__(rows=rows, iterations=iterations, prior=prior, crashes=crashes, alike=False, additive=False)

    def learn_in_axes(self, axes: "LocalAxes", rows: LabelledBatch) -> float:
        """Fits rows in these axes; returns minus the log evidence plus log prior."""
        self.coordinates = axes
        learned = self.learn(rows)
        return float(learned["loss"] * learned["rows"])

    def steepness(self, points: Tensor) -> Tensor:
        """The sum of g g^T over the gradients g of the mean at points (n x d): d x d."""
        with torch.enable_grad():
            at = points.detach().clone().requires_grad_(True)
            (gradients,) = torch.autograd.grad(self.posterior(at).mean.sum(), at)
        return gradients.mT @ gradients

    @property
    def unexplained(self) -> float:
        """Lambda in units of the amplitude: the variance of the labels that the points do not explain."""
        return float((self.theta[-1] - self.theta[-2]).exp())


def n_good(d: int) -> int:
    """The number of best rows that the axes of d parameters are computed from."""
    return GOOD + GOOD_PER_PARAMETER * d


def knows(batch: LabelledBatch, values: Tensor, least: int) -> bool:
    """Whether so many rows to learn from have a value (n, NaN for failures). The first of many rows mostly tell."""
    for part in (slice(2 * least), slice(None)):
        known = values[part].isnan().logical_not_()
        ignored = batch.ignored if part.stop is None else batch.ignored[batch.ignored < part.stop]
        if int(known.index_fill_(0, ignored[ignored < len(known)], False).sum()) >= least:
            return True
    return False


def near_rows(batch: LabelledBatch, values: Tensor, count: int = ROWS) -> tuple[Tensor, LabelledBatch]:
    """Points of the best rows, best first, and the rows near the best one, graded among themselves.

    Failures are dropped as random if they are less than a tenth of the near rows. Otherwise each model decides
    (`deepbore.classifiers.kernel.least_squares.drop_random_failures`).

    Args:
        batch: n rows. Their labels are not used: in single precision they are all equal near the best row.
        values: of the rows, to minimise, NaN for failures (n, at least one value).
        count: how many of the near rows, >= 1.
    """
    merit = values.nan_to_num(nan=torch.finfo(values.dtype).max).index_fill_(0, batch.ignored, math.inf)
    reach = max(POOL, count)
    ranked = smallest(merit, min(reach, batch.n_learned))
    known = ranked[~values[ranked].isnan()]
    best = batch.points[known[: n_good(batch.points.shape[1])]]
    newest = batch.learned[-reach:].nonzero().squeeze(-1) + max(0, len(batch) - reach)
    pool = torch.cat([ranked, newest]).unique()
    distance = LocalAxes.principal(best)(batch.points[pool]).square().sum(-1)
    near = pool[distance.topk(min(count, len(pool)), largest=False).indices.sort().values]
    failed = values[near].isnan()
    if int(failed.sum()) < CRASHES * len(near):
        near = near[~failed]
    return best, regraded(batch.take(near), values[near])


def regraded(batch: LabelledBatch, values: Tensor) -> LabelledBatch:
    """The batch with labels graded among its own values (n, NaN for failures), with their median as tau."""
    known = values[~values.isnan()]
    if not len(known) or (best := known.min()) == (median := known.median()):
        return batch
    return replace(batch, z=graded_by_value(values, best, median, TAIL)[:, None], best=1.0)


class LocalAxes(nn.Module):
    """Coordinates u around the best row: x = x_best + A u.

    Args:
        centre: the best row, d.
        axes: A, d x d, a column for each axis.
        into: the transpose of its inverse, d x d.
    """

    block: Tensor
    centre: Tensor
    axes: Tensor
    into: Tensor

    def __init__(self, centre: Tensor, axes: Tensor, into: Tensor):
        super().__init__()
        self.register_buffer("block", torch.arange(len(centre), device=centre.device))
        self.register_buffer("centre", centre)
        self.register_buffer("axes", axes)
        self.register_buffer("into", into)

    def forward(self, points: Tensor) -> Tensor:
        """Points (n x d) -> u (n x d)."""
        u: Tensor = (points - self.centre) @ self.into
        return u

    @classmethod
    def of_parameters(cls, good: Tensor) -> Self:
        """The axes of the parameters, scaled by the standard deviation of the good rows.

        Args:
            good: points of the k best rows, best first, k x d.
        """
        variance = weighted_covariance(good).diagonal()
        return cls._scaled(good[0], variance, torch.eye(len(variance), dtype=good.dtype, device=good.device))

    @classmethod
    def principal(cls, good: Tensor) -> Self:
        """The principal axes of the good rows, scaled so that these have unit variance in all directions.

            A = V diag(s),    V diag(s)^2 V^T = (1 - a) C + a diag(C)

        Their covariance C is shrunk towards its diagonal by a = (d + 1) / (k + d + 1). In these axes a kernel with one
        length scale for each coordinate can represent functions of a sum of parameters, or of very different scales.

        Args:
            good: points of the k best rows, best first, k x d.
        """
        k, d = good.shape
        covariance = weighted_covariance(good)
        shrunk = torch.lerp(covariance, covariance.diagonal().diag(), (d + 1) / (k + d + 1))
        return cls._scaled(good[0], *torch.linalg.eigh(shrunk))

    def turned(self, steepness: Tensor) -> Self:
        """The same coordinates, rotated to the eigenvectors of the steepness, the steepest first.

        If one direction is a thousand times as steep as another, few good rows determine the length of a valley, but
        not its direction to a thousandth; gradients do. The eigenvectors are an active subspace of all d directions
        (Constantine, Dow & Wang, Active subspace methods in theory and practice, 2014, section 2).

        Args:
            steepness: the sum of g g^T over gradients g at points, d x d.
        """
        turn = torch.linalg.eigh(self.axes.mT @ steepness.to(self.axes) @ self.axes).eigenvectors.flip(-1)
        return type(self)(self.centre, self.axes @ turn, self.into @ turn)

    @classmethod
    def _scaled(cls, centre: Tensor, variance: Tensor, directions: Tensor) -> Self:
        """Axes in orthonormal directions (one column each), scaled by the standard deviation, at least a `FLOOR`."""
        deviation = variance.clamp(min=0).sqrt()
        deviation = deviation.clamp(min=max(FLOOR * float(deviation.max()), torch.finfo(deviation.dtype).tiny))
        return cls(centre, directions * deviation, directions / deviation)


def weighted_covariance(good: Tensor) -> Tensor:
    """The covariance (d x d) of the k best rows (k x d, best first), weighted by log(k + 1/2) - log i.

    These are the weights of CMA-ES (Hansen, The CMA evolution strategy: a tutorial, 2016, eq. 49).
    """
    k = len(good)
    weight = math.log(k + 0.5) - torch.arange(1, k + 1, dtype=good.dtype, device=good.device).log()
    weight = weight / weight.sum()
    off = good - weight @ good
    return (weight[:, None] * off).mT @ off
