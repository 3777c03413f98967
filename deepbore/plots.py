"""Pictures of a run."""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from deepbore.errors import MissingPackage
from deepbore.thresholds import checked_gamma, threshold

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

GOOD, BAD, BEST, TAU = "#1a7f5a", "#b8bcc2", "#1f3b73", "#d9822b"


def history(
    values: Sequence[float] | np.ndarray,
    *,
    direction: str = "minimize",
    gamma: float = 0.5,
    optimum: float | None = None,
    title: str = "",
    path: str | os.PathLike[str] | None = None,
) -> "Figure":
    """The values in the order of evaluation, coloured by their label, with the best so far and the threshold tau.

    Args:
        values: n values in the user's sign; NaN for failures, which are marked at the edge.
        direction: "minimize" or "maximize".
        gamma: proportion of good observations, in (0, 1).
        optimum: the best possible value, drawn if known.
        title: of the picture.
        path: where to save it (the suffix says the format); None for nowhere.

    Returns:
        the matplotlib figure.

    Raises:
        SettingError: for gamma outside (0, 1).
        MissingPackage: without matplotlib.
    """
    checked_gamma(gamma)
    try:
        from matplotlib.figure import Figure  # noqa: PLC0415
    except ImportError:
        raise MissingPackage("plots need matplotlib: pip install 'deepbore[plots]'.") from None
    sign = 1.0 if direction == "minimize" else -1.0
    shown = np.asarray(values, dtype=float)
    best, taus = best_and_tau(sign * shown, gamma)
    figure = Figure(figsize=(7.5, 4.2), layout="constrained")
    axes = figure.subplots()
    trials = np.arange(1, len(shown) + 1)
    if len(taus):
        good = sign * shown <= taus[-1]
        axes.scatter(trials[good], shown[good], s=16, color=GOOD, label="value, class 1", zorder=3)
        bad = ~good & ~np.isnan(shown)
        axes.scatter(trials[bad], shown[bad], s=16, color=BAD, label="value, class 0", zorder=2)
        axes.step(trials, sign * best, where="post", color=BEST, lw=1.8, label="best so far", zorder=4)
        axes.step(trials, sign * taus, where="post", color=TAU, lw=1.2, ls="--", label=f"tau (gamma = {gamma:.3g})")
    for failure in trials[np.isnan(shown)]:
        axes.axvline(failure, ymax=0.03, color="#c0392b", lw=1.5)
    if optimum is not None:
        axes.axhline(optimum, color="black", lw=0.8, ls=":", label="optimum")
    axes.set(xlabel="evaluation", ylabel="value", title=title)
    _hide_outliers(axes, sign * shown, sign)
    axes.spines[["top", "right"]].set_visible(False)
    if axes.get_legend_handles_labels()[1]:
        axes.legend(frameon=False, fontsize=9)
    if path is not None:
        figure.savefig(path, dpi=150)
    return figure


def _hide_outliers(axes: "Axes", values: np.ndarray, sign: float) -> None:
    """Ends the axis where nine in ten values (to minimise) end, if the others would squeeze these together."""
    finite = values[np.isfinite(values)]
    if not len(finite):
        return
    best, most, worst = np.quantile(finite, [0.0, 0.9, 1.0])
    if worst - best > 3 * (most - best) > 0:
        ends = sign * np.array([best - 0.05 * (most - best), most + 0.3 * (most - best)])
        axes.set_ylim(ends.min(), ends.max())
        axes.set_ylabel("value (outliers are outside)")


def best_and_tau(values: np.ndarray, gamma: float) -> tuple[np.ndarray, np.ndarray]:
    """The best value and the threshold after each evaluation (n and n), of values to minimise; NaN before the first."""
    finite = np.isfinite(values)
    best = np.fmin.accumulate(np.where(finite, values, np.nan)) if len(values) else values
    taus = np.full(len(values), np.nan)
    for n in range(1, len(values) + 1):
        seen = np.sort(values[:n][finite[:n]])
        taus[n - 1] = threshold(seen, gamma) if len(seen) else np.nan
    return best, taus
