"""Variants for noise: what improvement is over, how far labels reach, and where the search for the evidence starts.

docs/ablation.md has what came of each ("Noise and luck", "Told that values are noisy"). None of these is better than
the default everywhere; `KernelPLS(noisy=True)` is a setting, for who knows that values are noisy.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from scipy.optimize import minimize
from torch import Tensor

import deepbore as db
from deepbore.acquisition.improvement import log_improvement
from deepbore.classifiers.kernel.least_squares import FULL_BUDGET, BaseKernelPLS
from deepbore.classifiers.kernel.posterior import KernelPosterior
from deepbore.classifiers.posterior import Posterior
from deepbore.labels.datamodule import LabelledBatch
from deepbore.labels.graded import graded_by_value

NOISE_START = -2.5  # log lambda: labels lie in [0, 1], so it explains most of what they vary by noise
NOTICED = 0.1  # the share of what labels vary by that lambda explains from which on `Scenarios` counts on noise


class OverTheMean(db.KernelPLS):
    """Improvement over the greatest posterior mean of a row, not over the luckiest label.

    Args:
        deviations: standard deviations that are added to the mean of each row before the greatest is taken.
        by_noise: goes only part of the way, as far as lambda explains the variance of the labels.
    """

    def __init__(self, deviations: float = 0.0, by_noise: bool = False):
        super().__init__()
        self.deviations, self.by_noise = deviations, by_noise

    def keep_best(self, best: float | Tensor) -> None:
        super(BaseKernelPLS, self).keep_best(best)
        self.best_label.add_(self.correction())

    @torch.no_grad()
    def correction(self) -> float:
        """What the best label is lowered by, <= 0."""
        covariance = self._kernel(self.theta)(self._x, self._x)
        explained = (covariance @ self._root.mT).square().sum(-1)
        std = (self.theta[-2].exp() - explained).clamp(min=0).sqrt()
        expected = float((covariance @ self._coefficients + self.deviations * std).max())
        noise = float(self.theta[-1].exp() / self._data[:, 0].var().clamp(min=1e-12))
        way = min(1.0, noise) if self.by_noise else 1.0
        return min(0.0, expected - float(self.best_label)) * way


class OverTheBestLabel(OverTheMean):
    """Improvement over the best label always, however much of it may be luck."""

    def correction(self) -> float:
        return 0.0


class Scenarios(OverTheBestLabel):
    """As `KernelPLS(noisy=True)`, without the second start, where lambda explains a tenth of what labels vary by."""

    @torch.no_grad()
    def learn(self, batch: LabelledBatch) -> dict[str, Any]:
        logged = super().learn(batch)
        self._noiseless = self._noiseless_rows() if self._share_of_noise > NOTICED else None
        return logged


class ImprovementWithNugget(db.LogExpectedImprovement):
    """Of a label as it will be seen, lambda and all, in place of its mean: what a configuration adds may be luck."""

    def __call__(self, posterior: Posterior, best: Tensor | float) -> Tensor:
        assert isinstance(posterior, KernelPosterior)
        variance = posterior.std.double().square() + posterior.model.regularisation
        return log_improvement(posterior.mean, variance.sqrt(), best)


class TwoStarts(OverTheMean):
    """The evidence is also maximised from a start where most is noise: a warm start may be stuck at short scales.

    Args:
        over_mean: as `OverTheMean(by_noise=True)`; else improvement over the best label.
    """

    def __init__(self, over_mean: bool = False):
        super().__init__(by_noise=True)
        self.over_mean = over_mean

    def correction(self) -> float:
        return super().correction() if self.over_mean else 0.0

    @torch.no_grad()
    def fit(self, batch: LabelledBatch) -> dict[str, Any]:
        batch = batch.coreset(self.rows, self.generator)
        noisy = self.theta.clone()
        noisy.copy_(torch.from_numpy(self._prior[:, 0]))
        noisy[-1] = NOISE_START
        self._keep(
            _x=self.coordinates(batch.points),
            _data=torch.stack([batch.z.double().mean(-1), batch.weight.double()], dim=-1),
        )
        found = minimize(
            self.negative_evidence(),
            noisy.numpy(),
            jac=True,
            method="L-BFGS-B",
            bounds=self._bounds,
            options={"maxiter": self.iterations},
        )
        logged = super().fit(batch)
        if len(batch) <= FULL_BUDGET and found.fun < logged["loss"] * len(batch):
            self.theta.copy_(torch.tensor(found.x))
            self._remember(self._x, self._data)
        return logged


class DrawnSettings(db.KernelPLS):
    """Settings drawn, at each fit, from the normal approximation to their posterior, in place of its maximum.

    Args:
        scales_only: draws the length scales alone.
    """

    def __init__(self, scales_only: bool = False):
        super().__init__()
        self.scales_only = scales_only
        self.most_likely: Tensor | None = None

    @torch.no_grad()
    def fit(self, batch: LabelledBatch) -> dict[str, Any]:
        if self.most_likely is not None:
            self.theta.copy_(self.most_likely)
        logged = super().fit(batch)
        self.most_likely = self.theta.clone()
        self.theta.copy_(torch.from_numpy(self.drawn(self.theta.numpy().copy())))
        self._remember(self._x, self._data)
        return logged

    def drawn(self, centre: np.ndarray, step: float = 1e-2, tries: int = 8) -> np.ndarray:
        """A draw by rejection, from a normal with the curvature at the maximum (finite differences of gradients)."""
        free = len(centre) - 2 if self.scales_only else len(centre)
        evidence = self.negative_evidence()
        least, slope = evidence(centre)
        moves = np.eye(len(centre))[:free] * step
        curvature = np.array([evidence(centre + move)[1] - slope for move in moves])[:, :free] / step
        values, vectors = np.linalg.eigh((curvature + curvature.T) / 2)
        values = np.maximum(values, (1 / self._prior[:free, 1] ** 2).min())
        low, high = np.array(self._bounds).T
        for _ in range(tries):
            normal, chance = torch.randn(free, generator=self.generator), torch.rand(1, generator=self.generator)
            point = centre.copy()
            point[:free] += vectors @ (normal.double().numpy() / np.sqrt(values))
            point = point.clip(low, high)
            if math.log(float(chance)) < least + float(normal @ normal) / 2 - evidence(point)[0]:
                return point
        return centre


class ReachingLabels(db.ValueGradedLabels):
    """Thresholds reach from tau to the best value, or `reach` times as far as the median of the good values if nearer.

    A single lucky outlier then does not set the scale of all labels: values beyond have the label 1.
    """

    def __init__(self, reach: float):
        super().__init__()
        self.reach = reach

    def label(self, values: Tensor, ranked: np.ndarray, tau: float) -> tuple[Tensor, Tensor]:
        best = float(ranked[0])
        middle = tau - float(np.median(ranked[ranked <= tau]))
        if middle <= 0:
            return super().label(values, ranked, tau)
        span = min(tau - best, self.reach * middle)
        return graded_by_value(values, tau - span, tau, self.tail), torch.ones_like(values)


VARIANTS: dict[str, Callable[[], dict[str, object]]] = {
    "deepbore:posterior-mean": lambda: {"classifier": OverTheMean()},
    "deepbore:posterior-mean-by-noise": lambda: {"classifier": OverTheMean(by_noise=True)},
    "deepbore:over-the-best-label": lambda: {"classifier": OverTheBestLabel(), "candidates": db.GreedyBatch()},
    "deepbore:posterior-mean+1-deviation": lambda: {"classifier": OverTheMean(deviations=1.0)},
    "deepbore:two-starts": lambda: {"classifier": TwoStarts()},
    "deepbore:two-starts+posterior-mean-by-noise": lambda: {"classifier": TwoStarts(over_mean=True)},
    "deepbore:drawn-settings": lambda: {"classifier": DrawnSettings()},
    "deepbore:drawn-scales": lambda: {"classifier": DrawnSettings(scales_only=True)},
    "deepbore:reach-4": lambda: {"labels": ReachingLabels(4)},
    "deepbore:reach-6": lambda: {"labels": ReachingLabels(6)},
    "deepbore:posterior-mean+reach-4": lambda: {"classifier": OverTheMean(), "labels": ReachingLabels(4)},
}
TOLD: dict[str, Callable[[], dict[str, object]]] = {  # with the head of the near rows, as the default
    "deepbore:noisy": lambda: {"classifier": db.KernelPLS(noisy=True)},
    "deepbore:scenarios": lambda: {"classifier": Scenarios()},
    "deepbore:nugget": lambda: {"classifier": OverTheBestLabel(), "acquisition": ImprovementWithNugget()},
}
