#!/usr/bin/env python
"""Estimates a known relative density ratio with every classifier, and with kernel density estimates.

    python scripts/density_ratio.py docs/density_ratio.png

The toy example of BORE, appendix H: 1000 numbers, a quarter from l = 0.3 N(2, 1) + 0.7 N(-3, 0.5^2) and the others from
g = N(0, 2^2); r_gamma = l / (gamma l + (1 - gamma) g). Prints, over five seeds, the root mean squared error on [-6, 6]
and how far the estimate's maximum is from the true one, and draws the first seed.
"""

import os
import sys
from collections.abc import Callable

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import torch
from matplotlib.figure import Figure
from scipy import stats

import deepbore
from deepbore.testing import fit, toy_data

N, GAMMA, SEEDS = 1000, 1 / 4, 5
SPACE = deepbore.SearchSpace({"x": deepbore.Real(-8, 8)})
GRID = np.linspace(-6, 6, 601)
Estimate = Callable[[np.ndarray], np.ndarray]

NETWORK = (32, 32, 32), "elu"  # as in the appendix
HEADS: dict[str, Callable[[], deepbore.classifiers.Classifier]] = {
    "MLPClassifier": lambda: deepbore.MLPClassifier(*NETWORK),
    "DeepEnsemble": lambda: deepbore.DeepEnsemble(*NETWORK),
    "HyperDeepEnsemble": lambda: deepbore.HyperDeepEnsemble(width=(32, 64)),
    "MCDropout": lambda: deepbore.MCDropout(*NETWORK),
    "LaplaceGGN": lambda: deepbore.LaplaceGGN(*NETWORK),
    "DeepPLS": deepbore.DeepPLS,
    "KernelPLS": lambda: deepbore.KernelPLS(rows=N),
    "FourierLogistic": deepbore.FourierLogistic,
    "GPClassifier": deepbore.GPClassifier,
    "RelativeRatio": lambda: deepbore.RelativeRatio(rows=N),
    "RandomForest": lambda: deepbore.RandomForest(rows=N),
    "XGBoost": lambda: deepbore.XGBoost(rows=N),
    "Calibrated(RandomForest)": lambda: deepbore.Calibrated(deepbore.RandomForest(rows=N), "isotonic"),
}


def good(x: np.ndarray) -> np.ndarray:
    """l, the density of class 1."""
    return 0.3 * stats.norm.pdf(x, 2, 1) + 0.7 * stats.norm.pdf(x, -3, 0.5)


def other(x: np.ndarray) -> np.ndarray:
    """g, the density of class 0."""
    return stats.norm.pdf(x, 0, 2)


def ratio(l: np.ndarray, g: np.ndarray) -> np.ndarray:  # noqa: E741  # the paper's names
    """r_gamma (BORE eq. 4)."""
    return l / (GAMMA * l + (1 - GAMMA) * g)


def draw(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Samples of l and of g, within the space."""
    rng = np.random.default_rng(seed)
    k = int(GAMMA * N)
    centre, spread = np.where(rng.random(k)[:, None] < 0.3, [2.0, 1.0], [-3.0, 0.5]).T
    return rng.normal(centre, spread).clip(-8, 8), rng.normal(0, 2, N - k).clip(-8, 8)


def by_kde(positives: np.ndarray, negatives: np.ndarray) -> Estimate:
    """The ratio of two kernel density estimates, bandwidths by the normal reference rule."""
    l, g = (stats.gaussian_kde(x, bw_method=1.06 * len(x) ** -0.2) for x in (positives, negatives))  # noqa: E741
    return lambda x: ratio(l(x), g(x))


def by_classifier(
    make: Callable[[], deepbore.classifiers.Classifier], positives: np.ndarray, negatives: np.ndarray
) -> Estimate:
    """pi / gamma (BORE eq. 8), the classifier trained for forty iterations."""
    data = toy_data(SPACE, 0, deepbore.ThresholdLabels(GAMMA))
    values = np.r_[np.zeros(len(positives)), np.ones(len(negatives))]
    order = np.random.default_rng(0).permutation(N)
    data.observations.add({"x": np.r_[positives, negatives][order]}, values[order])
    classifier = fit(make(), data, epochs=40)

    @torch.no_grad()
    def estimate(x: np.ndarray) -> np.ndarray:
        return classifier.density_ratio(SPACE.encode_columns({"x": x}), GAMMA).numpy()

    return estimate


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    exact = ratio(good(GRID), other(GRID))
    columns = 4
    rows = -(-(len(HEADS) + 1) // columns)
    figure = Figure(figsize=(3 * columns, 2.2 * rows), layout="constrained")
    panels = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True).flat
    print(f"| estimate | error (mean of {SEEDS}) | every seed | the maximum is off by |\n|---|---|---|---|")
    for axes, name in zip(panels, ["KDE", *HEADS], strict=False):
        curves = []
        for seed in range(SEEDS):
            samples = draw(seed)
            estimate = by_kde(*samples) if name == "KDE" else by_classifier(HEADS[name], *samples)
            curves.append(estimate(GRID))
        errors = [float(np.sqrt(np.mean((curve - exact) ** 2))) for curve in curves]
        off = np.mean([abs(GRID[curve.argmax()] - GRID[exact.argmax()]) for curve in curves])
        print(f"| {name} | {np.mean(errors):.2f} | {' '.join(f'{e:.2f}' for e in errors)} | {off:.2f} |", flush=True)
        axes.plot(GRID, exact, color="#9aa0a6", lw=3, label="exact")
        axes.plot(GRID, curves[0], color="#1a7f5a", lw=1.4, label="estimate")
        axes.set_title(f"{name}: {np.mean(errors):.2f}", fontsize=9)
        axes.tick_params(labelsize=7)
        axes.spines[["top", "right"]].set_visible(False)
    for axes in list(figure.axes)[len(HEADS) + 1 :]:
        axes.set_axis_off()
    figure.axes[0].legend(frameon=False, fontsize=8)
    figure.supylabel("relative density ratio", fontsize=9)
    figure.savefig(sys.argv[1], dpi=110)


if __name__ == "__main__":
    main()
