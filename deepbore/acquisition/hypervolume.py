"""Expected hypervolume improvement, for several objectives."""

import math
from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor

from deepbore.acquisition.base import Acquisition
from deepbore.acquisition.improvement import CERTAIN, log_h, log_improvement
from deepbore.classifiers.link import Link
from deepbore.classifiers.posterior import Posterior
from deepbore.compute.torch_state import import_quietly
from deepbore.errors import SettingError

EXACT = 3  # columns up to which the improvement is exact: the boxes around a front are few
DRAWN, KEPT = 2**14, 1024  # vectors of thresholds for more columns
BEYOND = 0.25  # share of the thresholds, in each column, that represents labels above the best one
TINY = 1e-12
Gain = Callable[[Tensor, Tensor], Tensor]  # means and deviations (n x k each) -> log of the expected gain (n)


@runtime_checkable
class SeveralColumns(Protocol):
    """A posterior of independent Gaussian columns; that of `PerColumn` is one."""

    @property
    def means(self) -> Tensor:
        """n x k."""

    @property
    def stds(self) -> Tensor:
        """n x k."""


class LogHypervolumeImprovement(Acquisition):
    """log E[the hypervolume that a point's labels add to those of the front], the labels Gaussian and independent.

    The hypervolume is the volume of the vectors above a reference that some label of the front exceeds in every column.
    If these vectors are thresholds, one for each objective, it is the share of them that some trial reaches, and the
    improvement is the average, over the vectors that no trial reaches yet, of the probability that the point does:
    BORE's class probability for many thresholds of several objectives. With one column it is `LogExpectedImprovement`.

    For up to three columns it is exact: the region above the reference and below no label of the front is a union of
    boxes (l, u), and

        EHVI(x) = sum over boxes of prod_j (E[max(z_j - l_j, 0)] - E[max(z_j - u_j, 0)])

    The number of boxes grows fast with the columns. For more than three it is the average over some 1024 vectors of
    thresholds of a quasi-random sequence; labels above the best one of a column count by their expected improvement.
    Both are computed in logarithms, which have gradients where the improvement is 0 in floating point.

    References:
        Emmerich, Giannakoglou & Naujoks, Single- and multiobjective evolutionary optimization assisted by Gaussian
        random field metamodels, 2006; Yang et al., Efficient computation of expected hypervolume improvement using
        box decomposition algorithms, 2019.
    """

    links = frozenset({Link.IDENTITY})
    needs = frozenset({"columns"})
    suited = "PerColumn(KernelPLS(), columns=k)"
    otherwise = "labels of one column, such as ChebyshevLabels"
    takes_front = True
    is_logarithm = True

    def __init__(self) -> None:
        self._latest: tuple[Tensor, Gain] | None = None  # a search calls many times with the same front

    def __call__(self, posterior: Posterior, best: Tensor | float) -> Tensor:
        """The values of n points.

        Args:
            posterior: of the scores at the points, with k columns.
            best: the labels of the reference, then those of the front: (1 + f) x k.
        """
        if not isinstance(posterior, SeveralColumns):
            raise SettingError("LogHypervolumeImprovement needs the scores of PerColumn, one for each objective.")
        mean, std = posterior.means.double(), posterior.stds.double().clamp(min=CERTAIN)
        known = torch.as_tensor(best, dtype=mean.dtype, device=mean.device).reshape(-1, mean.shape[1])
        if self._latest is None or self._latest[0].device != known.device or not torch.equal(self._latest[0], known):
            gain = over_boxes if mean.shape[1] <= EXACT else over_thresholds
            self._latest = known, gain(known[0], known[1:])
        return self._latest[1](mean, std)

    def __getstate__(self) -> dict[str, Any]:  # closures cannot be pickled
        return {**vars(self), "_latest": None}


def over_boxes(reference: Tensor, front: Tensor) -> Gain:
    """The exact gain over a front (f x k) and a reference (k)."""
    lower, upper = boxes(reference, front)

    def gain(mean: Tensor, std: Tensor) -> Tensor:
        total = mean.new_zeros(len(mean), len(lower))
        for m, s, low, high in zip(mean.mT[..., None], std.mT[..., None], lower.mT, upper.mT, strict=True):
            above_low = log_h((m - low) / s)  # log E[max(z - l, 0)] - log s
            bounded = high.isfinite()
            above_high = log_h((m - torch.where(bounded, high, low)) / s)
            lost = torch.where(bounded, (above_high - above_low).clamp(max=-TINY), -torch.inf)
            total = total + s.log() + above_low + torch.log1p(-lost.exp())
        return total.logsumexp(-1)

    return gain


def boxes(reference: Tensor, front: Tensor) -> tuple[Tensor, Tensor]:
    """Lower and upper corners (b x k each) of boxes that cover the region above the reference and below no row (f x k).

    Computed by BoTorch, except for one column; infinite where a box is unbounded.
    """
    if len(reference) == 1:
        best = torch.cat([reference[None], front]).max(0, keepdim=True).values
        return best, torch.full_like(best, torch.inf)
    import_quietly("gpytorch")
    from botorch.utils.multi_objective.box_decompositions.non_dominated import (  # takes a second
        FastNondominatedPartitioning,
    )

    lower, upper = FastNondominatedPartitioning(reference, front).get_hypercell_bounds()
    return lower, upper


def over_thresholds(reference: Tensor, front: Tensor) -> Gain:
    """The gain over a front (f x k) and a reference (k), averaged over vectors of thresholds that no row reaches.

    A coordinate u of a vector is the threshold r + u (b - r) for u < 1, with b the best label of the column. Larger u,
    up to 1 + BEYOND, represent all thresholds above b, whose total share is E[max(z - b, 0)]. If no row exceeds the
    reference, all thresholds are above b = r.
    """
    best = torch.cat([reference[None] + TINY, front]).max(0).values
    extent = best - reference
    least = 1.0 - (front > reference).any(0).to(front)
    sobol = torch.quasirandom.SobolEngine(len(reference), scramble=True, seed=0)
    u = torch.lerp(least, torch.full_like(least, 1 + BEYOND), sobol.draw(DRAWN, dtype=front.dtype).to(front.device))
    vectors = torch.where(u < 1, reference + u * extent, torch.inf)
    kept: list[Tensor] = []
    for some in vectors.split(KEPT):
        kept.append(some[~(front[:, None] >= some).all(-1).any(0)])
        if sum(map(len, kept)) >= KEPT:
            break
    thresholds = torch.cat(kept)
    scale = float((1 + BEYOND - least).log().sum()) - math.log(len(kept) * KEPT)

    def gain(mean: Tensor, std: Tensor) -> Tensor:
        total = mean.new_zeros(len(mean), len(thresholds)) + scale
        columns = zip(mean.mT[..., None], std.mT[..., None], thresholds.mT, best, extent, strict=True)
        for m, s, t, b, width in columns:
            reached = torch.special.log_ndtr((m - t.clamp(max=b)) / s) + width.log()
            total = total + torch.where(t.isfinite(), reached, log_improvement(m, s, b) - torch.tensor(BEYOND).log())
        return total.logsumexp(-1)

    return gain
