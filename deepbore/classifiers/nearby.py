"""`NearbyHead`: a head of the rows near the best one, in the principal axes of the good ones; `Nearby` keeps it."""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from deepbore.classifiers.kernel_pls import ROWS, KernelPLS
from deepbore.compute.large import smallest
from deepbore.labels.coreset import NEGLIGIBLE
from deepbore.labels.datamodule import LabelledBatch
from deepbore.labels.grade import graded_by_value
from deepbore.space import SearchSpace

POOL = 5 * ROWS  # as many of the best rows, and of the newest, are those that near ones are looked for among
GOOD, GOOD_PER_PARAMETER = 20, 2  # the rows that axes are found from: 20 + 2 d
FLOOR = 0.03  # the least deviation along an axis by the greatest
UNKNOWN = 1e-3  # the share of the labels' variance that a head which takes its turn leaves unexplained, at most
TAIL = 0.5  # thresholds beyond the median of the near rows, as `ValueGradedLabels` have them


class PrincipalAxes(nn.Module):
    """Coordinates around the best row in which the good rows spread alike in all directions.

        u = diag(s)^-1 V^T (x - x_best),    V diag(s)^2 V^T = (1 - a) C + a diag(C)

    C is the covariance of the k best rows, weighed by log(k + 1/2) - log i as CMA-ES weighs them (Hansen, The CMA
    evolution strategy: a tutorial, 2016, eq. 49), and shrunk towards its diagonal by a = (d + 1) / (k + d + 1). What
    depends on a sum of parameters, or on one a thousand times as much as on another, is so brought into a form that a
    kernel with one length scale for each coordinate knows.

    Args:
        good: points of the k best rows, best first, k x d.
    """

    owner: Tensor
    centre: Tensor
    axes: Tensor  # d x d, a column for each, a deviation long
    _into: Tensor

    def __init__(self, good: Tensor):
        super().__init__()
        k, d = good.shape
        weight = math.log(k + 0.5) - torch.arange(1, k + 1, dtype=good.dtype, device=good.device).log()
        weight = weight / weight.sum()
        off = good - weight @ good
        covariance = (weight[:, None] * off).mT @ off
        shrunk = torch.lerp(covariance, covariance.diagonal().diag(), (d + 1) / (k + d + 1))
        squared, directions = torch.linalg.eigh(shrunk)
        deviation = squared.clamp(min=0).sqrt()
        deviation = deviation.clamp(min=max(FLOOR * float(deviation.max()), torch.finfo(good.dtype).tiny))
        self.register_buffer("owner", torch.arange(d, device=good.device))
        self.register_buffer("centre", good[0])
        self.register_buffer("axes", directions * deviation)
        self.register_buffer("_into", directions / deviation)

    def forward(self, points: Tensor) -> Tensor:
        """Points (n x d) -> u (n x d)."""
        u: Tensor = (points - self.centre) @ self._into
        return u

    def points(self, u: Tensor) -> Tensor:
        """u (n x d) -> points (n x d), which may lie outside the space."""
        return self.centre + u @ self.axes.mT


class NearbyHead(KernelPLS):
    """`KernelPLS` on the rows near the best one, in their principal axes, with their values graded anew."""

    coordinates: PrincipalAxes  # type: ignore[assignment]  # all that a kernel needs of `Coordinates`

    length_scale_prior = (math.log(2.0), 1.0)  # in deviations of the good rows along each axis
    length_scale_bounds = (-2.0, 5.0)

    def learn_near(self, batch: LabelledBatch, values: Tensor) -> dict[str, Any]:
        """Fits the rows near the best one.

        Args:
            batch: n rows; their labels are not looked at, which are single precision and all alike near the best one.
            values: of the rows, to minimise, NaN where there is none (n); at least one is there.
        """
        merit = values.nan_to_num(nan=torch.finfo(values.dtype).max).index_fill_(0, batch.light, math.inf)
        best = smallest(merit, min(POOL, batch.n_told))
        known = best[~values[best].isnan()]  # what has failed is nowhere among the best
        self.coordinates = PrincipalAxes(batch.points[known[: n_good(batch.points.shape[1])]])
        newest = (batch.weight[-POOL:] > NEGLIGIBLE).nonzero().squeeze(-1) + max(0, len(batch) - POOL)
        pool = torch.cat([best, newest]).unique()
        distance = self.coordinates(batch.points[pool]).square().sum(-1)
        near = pool[distance.topk(min(self.rows, len(pool)), largest=False).indices.sort().values]
        return self.learn(graded_anew(batch.take(near), values[near]))

    @property
    def unexplained(self) -> float:
        """Lambda by the amplitude: what varies among the labels as chance does, by what varies with the points."""
        return float((self.theta[-1] - self.theta[-2]).exp())


def n_good(d: int) -> int:
    """How many of the best rows the axes of d parameters are found from."""
    return GOOD + GOOD_PER_PARAMETER * d


def n_known(batch: LabelledBatch, values: Tensor) -> int:
    """How many of the rows that there is something to learn from have a value (n, NaN for failures)."""
    return int(values.isnan().logical_not_().index_fill_(0, batch.light, False).sum())


def graded_anew(batch: LabelledBatch, values: Tensor) -> LabelledBatch:
    """The batch with values (n, NaN for failures) graded from their own median on."""
    known = values[~values.isnan()]
    if not len(known) or (best := known.min()) == (median := known.median()):
        return batch
    return replace(batch, z=graded_by_value(values, best, median, TAIL)[:, None], best=1.0)


class Nearby:
    """Takes turns with the classifier: every other proposal is by a head of the rows near the best, if it knows them.

    A kernel with a length scale for each parameter knows no valley across them, and of a coreset of all rows only few
    are near the best. So where a function is smooth the classifier is too coarse to go on by, and still it alone knows
    where else to look. Where the head can't tell the labels of the near rows by their points - rugged ground, noise -
    there is no valley to go down, and the classifier goes on alone.
    """

    def __init__(self) -> None:
        self.head: NearbyHead | None = None
        self._is_due = False

    def take_turn(self, batch: LabelledBatch, values: Tensor, q: int) -> bool:
        """Whether the next proposal, or half of the next q, is the head's if it knows the rows; counts the turns.

        Args:
            batch: n rows.
            values: as of `knows`.
            q: how many points are proposed next.
        """
        in_turn = q > 1 or not self._is_due
        self._is_due = in_turn and n_known(batch, values) >= 2 * n_good(batch.points.shape[1])
        return self._is_due

    def knows(self, batch: LabelledBatch, values: Tensor, space: SearchSpace) -> bool:
        """Lets the head learn the rows near the best one; whether it then knows them.

        Args:
            batch: n rows.
            values: that their labels are grades of, to minimise, NaN where there is none (n).
            space: that their points are of; all parameters are continuous.

        Raises:
            torch.linalg.LinAlgError: where a matrix has no factor.
        """
        head = self._made(space).to(batch.points.device)
        head.learn_near(batch, values)
        return head.unexplained < UNKNOWN

    def _made(self, space: SearchSpace) -> NearbyHead:
        if self.head is None:
            self.head = NearbyHead(alike=False)
            self.head.bind(space)
        return self.head

    # --- plain data --------------------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """What the next turn goes on from; empty while there was none."""
        return {} if self.head is None else {"theta": self.head.theta, "is_due": self._is_due}

    def load_state_dict(self, state: Mapping[str, Any], space: SearchSpace) -> None:
        """Takes up what `state_dict` gave."""
        self.head, self._is_due = None, bool(state.get("is_due", False))
        if state:
            self._made(space).theta.copy_(state["theta"])
