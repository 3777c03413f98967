"""`NearbyHead`: a head of the rows near the best one, in axes of its own; `Nearby` has the likeliest take its turns."""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from deepbore.classifiers.kernel_fit import ROWS
from deepbore.classifiers.kernel_pls import KernelPLS
from deepbore.classifiers.local_axes import LocalAxes
from deepbore.compute.large import smallest
from deepbore.labels.datamodule import LabelledBatch
from deepbore.labels.grade import graded_by_value

POOL = 5 * ROWS  # as many of the best rows, and of the newest, are those that near ones are looked for among
GOOD, GOOD_PER_PARAMETER = 20, 2  # the rows that axes are found from: 20 + 2 d
UNKNOWN = 1e-3  # the share of the labels' variance that a head which takes its turn leaves unexplained, at most
CRASHES = 0.1  # the share of the near rows from which on failures may be a wall, and no crashes
TAIL = 0.5  # thresholds beyond the median of the near rows, as `ValueGradedLabels` have them


class NearbyHead(KernelPLS):
    """`KernelPLS` on the rows near the best one, in axes of their own."""

    coordinates: LocalAxes  # type: ignore[assignment]  # all that a kernel needs of `Coordinates`

    length_scale_prior = (math.log(2.0), 1.0)  # in deviations of the good rows along each axis
    length_scale_bounds = (-2.0, 5.0)

    def learn_along(self, axes: LocalAxes, rows: LabelledBatch) -> float:
        """Fits rows in these axes; minus the log evidence of their labels, and of the prior of what is learned."""
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
        """Lambda by the amplitude: what varies among the labels as chance does, by what varies with the points."""
        return float((self.theta[-1] - self.theta[-2]).exp())


def n_good(d: int) -> int:
    """How many of the best rows the axes of d parameters are found from."""
    return GOOD + GOOD_PER_PARAMETER * d


def near_rows(batch: LabelledBatch, values: Tensor) -> tuple[Tensor, LabelledBatch]:
    """Points of the good rows, best first, and the rows near the best one, graded anew among themselves.

    Failures that are less than a tenth of the near rows are taken for crashes, and say nothing. More may be a wall:
    then the heads ask of each of them whether chance explains it (`deepbore.classifiers.crashes`).

    Args:
        batch: n rows; their labels are not looked at, which are single precision and all alike near the best one.
        values: of the rows, to minimise, NaN where there is none (n); at least one is there.
    """
    merit = values.nan_to_num(nan=torch.finfo(values.dtype).max).index_fill_(0, batch.light, math.inf)
    best = smallest(merit, min(POOL, batch.n_told))
    known = best[~values[best].isnan()]  # what has failed is nowhere among the best
    good = batch.points[known[: n_good(batch.points.shape[1])]]
    newest = batch.learned[-POOL:].nonzero().squeeze(-1) + max(0, len(batch) - POOL)
    pool = torch.cat([best, newest]).unique()
    distance = LocalAxes.principal(good)(batch.points[pool]).square().sum(-1)
    near = pool[distance.topk(min(ROWS, len(pool)), largest=False).indices.sort().values]
    failed = values[near].isnan()
    if int(failed.sum()) < CRASHES * len(near):
        near = near[~failed]
    return good, graded_anew(batch.take(near), values[near])


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

    Several heads learn the same rows: one along the parameters, one in the principal axes of the good rows, and one in
    these axes turned by what the head of the turn before says of how steep it is. The turn is that head's by which the
    labels are likeliest; but turned axes are found from these labels, and of many dimensions fit any. So each of the
    d (d - 1) / 2 angles of a turn must make them likelier by a factor of e, as by Akaike's criterion (A new look at the
    statistical model identification, 1974).
    """

    def __init__(self) -> None:
        self.head: NearbyHead | None = None  # of the latest turn
        self._heads: list[NearbyHead] = []
        self._steepness: Tensor | None = None
        self._had_turn = False  # whether the latest turn was a head's

    def take_turn(self, batch: LabelledBatch, values: Tensor, q: int) -> bool:
        """Whether the next proposal, or half of the next q, is the head's if it knows the rows; counts the turns.

        Args:
            batch: n rows.
            values: as of `knows`.
            q: how many points are proposed next.
        """
        in_turn = q > 1 or not self._had_turn
        self._had_turn = in_turn and n_known(batch, values) >= n_good(batch.points.shape[1])
        return self._had_turn

    def knows(self, batch: LabelledBatch, values: Tensor, like: KernelPLS) -> bool:
        """Lets the heads learn the rows near the best one; whether the likeliest then knows them.

        Args:
            batch: n rows.
            values: that their labels are grades of, to minimise, NaN where there is none (n).
            like: the classifier of the run, whose settings the heads have; all parameters of its space are continuous.

        Raises:
            torch.linalg.LinAlgError: where a matrix has no factor.
        """
        good, rows = near_rows(batch, values)
        rows = rows.coreset(like.rows, like.generator)  # the same for all heads, by the run's own stream
        several = self.axes(good)
        self._make(len(several), like)
        heads = [head.to(batch.points.device) for head in self._heads]
        losses = [head.learn_along(axes, rows) + cost for head, (axes, cost) in zip(heads, several, strict=True)]
        self.head = heads[losses.index(min(losses))]
        self._steepness = self.head.steepness(rows.points)
        return self.head.unexplained < UNKNOWN

    def axes(self, good: Tensor) -> list[tuple[LocalAxes, float]]:
        """The axes to choose among, and by how much the log likelihood of labels must be greater to choose them.

        Args:
            good: points of the k best rows, best first, k x d.
        """
        principal = LocalAxes.principal(good)
        several = [(principal, 0.0), (LocalAxes.of_parameters(good), 0.0)]
        if self._steepness is not None:
            several.append((principal.turned(self._steepness), float(math.comb(good.shape[1], 2))))
        return several

    def _make(self, count: int, like: KernelPLS) -> None:
        """Has so many heads; each begins with the kernel of the first."""
        assert like.space is not None
        while len(self._heads) < count:
            head = NearbyHead(**like.how_it_learns | {"alike": False, "additive": False})
            head.bind(like.space)
            if self._heads:
                head.theta.copy_(self._heads[0].theta)
            self._heads.append(head)

    # --- plain data --------------------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """What the next turn goes on from; empty while there was none."""
        if not self._heads:
            return {}
        thetas = torch.stack([head.theta for head in self._heads])
        return {"thetas": thetas, "steepness": self._steepness, "is_due": self._had_turn}

    def load_state_dict(self, state: Mapping[str, Any], like: KernelPLS) -> None:
        """Takes up what `state_dict` gave."""
        self.head, self._heads, self._steepness = None, [], state.get("steepness")
        self._had_turn = bool(state.get("is_due", False))
        if state:
            self._make(len(state["thetas"]), like)
            for head, theta in zip(self._heads, state["thetas"], strict=True):
                head.theta.copy_(theta)
