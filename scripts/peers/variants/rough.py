"""Rougher kernels for values of which neighbours differ by luck: always, or where the rows say so.

docs/ablation.md has what came of them ("Rough ground").
"""

import math
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

import deepbore as db
from deepbore.classifiers.kernel.kernels import KERNELS, TINY, WITH_SLOPE
from deepbore.classifiers.kernel.least_squares import BaseKernelPLS, drop_random_failures
from deepbore.classifiers.kernel.posterior import KernelPosterior
from deepbore.compute.arrays import Array
from deepbore.compute.numerics import LinAlgError
from deepbore.labels.datamodule import LabelledBatch
from peers.variants.settings import Settings


def matern32(squared: Tensor) -> Tensor:
    """(1 + r) exp(-r) with r^2 = 3 s."""
    r = (3 * squared).clamp(min=TINY).sqrt()
    return (1 + r) * (-r).exp()


def matern32_with_slope(squared: Array, xp: ModuleType, slopes: bool = True) -> tuple[Array, Array]:
    """(1 + r) exp(-r), and -3/2 exp(-r)."""
    r = xp.sqrt(3 * squared)
    decay = xp.exp(-r)
    return (1 + r) * decay, -1.5 * decay if slopes else None


def matern12(squared: Tensor) -> Tensor:
    """exp(-r) with r^2 = s."""
    return (-squared.clamp(min=TINY).sqrt()).exp()


def matern12_with_slope(squared: Array, xp: ModuleType, slopes: bool = True) -> tuple[Array, Array]:
    """exp(-r), and -1 / (2 r) exp(-r), finite at 0."""
    r = xp.sqrt(squared)
    decay = xp.exp(-r)
    return decay, -0.5 * decay / (r + 1e-9) if slopes else None


KERNELS.update(matern32=matern32, matern12=matern12)
WITH_SLOPE.update({matern32: matern32_with_slope, matern12: matern12_with_slope})


class Rougher(db.KernelPLS):
    """The default with a rougher kernel, always."""

    learns_all = True  # type: ignore[assignment]  # so that the same strategies take turns with it


class RoughWhereLikely(db.KernelPLS):
    """The default, and models of the same rows with rougher kernels: the likeliest predicts.

    Args:
        kernels: of the others.
        by_forecasts: the likeliest by the log density of each label predicted from all others (Rasmussen & Williams
            2006, eq. 5.10 to 5.12); else by the evidence.
    """

    def __init__(self, kernels: Sequence[str] = ("matern32", "matern12"), by_forecasts: bool = False):
        super().__init__()
        self.kernels, self.by_forecasts = list(kernels), by_forecasts
        self.rougher = torch.nn.ModuleList()
        self.chosen: BaseKernelPLS | None = None  # of the rougher ones

    def build(self, space: db.SearchSpace, outputs: int) -> None:
        super().build(space, outputs)
        self.rougher = torch.nn.ModuleList(BaseKernelPLS(kernel) for kernel in self.kernels)
        for model in self.rougher:
            model.bind(space)

    @torch.no_grad()
    def learn_all(self, batch: LabelledBatch) -> dict[str, Any]:
        learned = super().learn_all(batch)
        if self.crashes:
            batch = drop_random_failures(batch, self._leave_one_out)
        own = self.additive_model if self.prefers_additive else self
        scores = [(self.score(own, learned["loss"] * len(batch)), None)]
        for model in self.rougher:
            try:
                scores.append((self.score(model, model.learn_all(batch)["loss"] * len(batch)), model))
            except LinAlgError:
                scores.append((-math.inf, model))
        self.chosen = max(scores, key=lambda each: each[0])[1]
        return learned

    def score(self, model: BaseKernelPLS, loss: float) -> float:
        if not self.by_forecasts:
            return -loss
        precision = model._root.square().sum(0)
        return float((precision.log() - model._coefficients.square() / precision).sum() / 2)

    def keep_best(self, best: float | Tensor) -> None:
        super().keep_best(best)
        if self.chosen is not None:
            self.chosen.keep_best(best)
            self.best_label = self.chosen.best_label

    def posterior(self, points: Tensor) -> KernelPosterior:
        return super().posterior(points) if self.chosen is None else self.chosen.posterior(points)


VARIANTS: dict[str, Callable[[], Settings]] = {
    "deepbore:matern32": lambda: {"classifier": Rougher("matern32")},
    "deepbore:matern12": lambda: {"classifier": Rougher("matern12")},
    "deepbore:rough-by-evidence": lambda: {"classifier": RoughWhereLikely()},
    "deepbore:matern32-by-forecasts": lambda: {"classifier": RoughWhereLikely(["matern32"], by_forecasts=True)},
    "deepbore:rough-by-forecasts": lambda: {"classifier": RoughWhereLikely(by_forecasts=True)},
}
