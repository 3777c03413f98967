"""`calibration`: whether pi means what it says."""

from typing import TYPE_CHECKING

import numpy as np

from deepbore.plots.predictions import judged_rows, labels_of, name_of_pi, nothing_learned, probability
from deepbore.plots.style import BAD, GOOD, legend, message, new_figure, thin_spines
from deepbore.validation import whole

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from deepbore.study import Study

ROWS = 5000


def reliability(pi: np.ndarray, z: np.ndarray, bins: int = 10) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean pi, mean label and count of each of so many equal bins of [0, 1]; NaN means in an empty bin.

    Args:
        pi: n numbers in [0, 1].
        z: labels, n.
        bins: how many, >= 1.

    Returns:
        three arrays of the length `bins`.
    """
    place = np.minimum((pi * bins).astype(int), bins - 1)
    counts = np.bincount(place, minlength=bins)
    known = np.where(counts > 0, counts, np.nan)
    return np.bincount(place, pi, bins) / known, np.bincount(place, z, bins) / known, counts


def calibration(study: "Study", *, bins: int = 10, figure: "Figure | None" = None) -> "Figure":
    """The mean label over pi in bins, on the trials of the run, and how many lie in each.

    On the diagonal pi means what it says. The expected calibration error is sum_b n_b / n |mean z_b - mean pi_b|.
    The classifier has learned from these trials, and most were chosen for a high pi: read it as a check of the fit.
    Beyond 5000 trials an even share is used.

    Args:
        study: with a trained classifier; see `Study.fit`.
        bins: how many, >= 1.
        figure: where to draw; None for a new one.

    Raises:
        SettingError: for bins < 1, or if the classifier is not trained.
        MissingPackage: without matplotlib.
    """
    whole(1, bins=bins)
    if reason := nothing_learned(study):
        return message(figure, reason)
    rows = judged_rows(study.observations, ROWS)
    pi = probability(study, study.observations.points[rows])
    mean_pi, mean_z, counts = reliability(pi, labels_of(study).z.mean(-1).cpu().double()[rows].numpy(), bins)
    error = float(np.nansum(counts / counts.sum() * np.abs(mean_z - mean_pi)))
    figure = figure or new_figure(4.6, 4.8)
    curve, histogram = figure.subplots(2, 1, sharex=True, height_ratios=[3, 1])
    curve.plot([0, 1], [0, 1], color=BAD, lw=1.0, ls="--", label="perfectly calibrated")
    seen = counts > 0
    curve.plot(mean_pi[seen], mean_z[seen], color=GOOD, marker="o", ms=4.5, label=f"classifier, error {error:.3f}")
    curve.set(ylabel="mean label", xlim=(-0.03, 1.03), ylim=(-0.03, 1.03))
    legend(curve, loc="upper left")
    edges = (np.arange(bins) + 0.5) / bins
    bars = histogram.bar(edges, counts, width=0.94 / bins, color=GOOD, alpha=0.5)
    histogram.bar_label(bars, [str(n) if n else "" for n in counts], fontsize=7, padding=1)
    histogram.set(xlabel=name_of_pi(study), ylabel="trials", ylim=(0, 1.2 * counts.max()))
    for axes in (curve, histogram):
        thin_spines(axes)
    return figure
