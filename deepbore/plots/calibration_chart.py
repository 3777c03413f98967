"""`calibration`: whether pi is the share of good trials (a reliability diagram)."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from deepbore.plots.on_matplotlib import legend, message, new_figure, thin_spines
from deepbore.plots.on_plotly import Drawing, diagonal, line, titled
from deepbore.plots.predictions import judged_rows, mean_labels, name_of_pi, nothing_learned, probability
from deepbore.plots.style import BAD, GOOD
from deepbore.validation import whole

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from deepbore.study import Study

ROWS = 5000


@dataclass(frozen=True)
class Reliability:
    """pi and the labels in equal bins of [0, 1]; NaN in an empty one.

    Attributes:
        mean_pi: in each bin.
        mean_z: mean label in each bin.
        deviation: standard error of the mean label in each bin.
        counts: trials in each bin.
    """

    mean_pi: np.ndarray
    mean_z: np.ndarray
    deviation: np.ndarray
    counts: np.ndarray

    @classmethod
    def of(cls, pi: np.ndarray, z: np.ndarray, bins: int = 10) -> "Reliability":
        """From n pi (outside of [0, 1] at its ends) and labels, in so many bins."""
        pi = pi.clip(0, 1)
        place = np.minimum((pi * bins).astype(int), bins - 1)
        counts = np.bincount(place, minlength=bins)
        known = np.where(counts > 0, counts, np.nan)
        mean_z = np.bincount(place, z, bins) / known
        variance = np.bincount(place, np.square(z - mean_z[place]), bins) / known
        return cls(np.bincount(place, pi, bins) / known, mean_z, np.sqrt(variance / known), counts)

    @property
    def error(self) -> float:
        """The expected calibration error, sum_b n_b / n |mean z_b - mean pi_b|."""
        return float(np.nansum(self.counts / self.counts.sum() * np.abs(self.mean_z - self.mean_pi)))


def calibration(study: "Study", *, bins: int = 10, figure: "Figure | None" = None) -> "Figure":
    """The mean label over pi in bins, on the trials of the run, and how many lie in each.

    On the diagonal pi is calibrated. The expected calibration error is sum_b n_b / n |mean z_b - mean pi_b|.
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
    shown = Reliability.of(pi, mean_labels(study)[rows.numpy()], bins)
    figure = figure or new_figure(4.6, 4.8)
    curve, histogram = figure.subplots(2, 1, sharex=True, height_ratios=[3, 1])
    curve.plot([0, 1], [0, 1], color=BAD, lw=1.0, ls="--", label="perfectly calibrated")
    seen = shown.counts > 0
    label = f"classifier, error {shown.error:.3f}"
    curve.plot(shown.mean_pi[seen], shown.mean_z[seen], color=GOOD, marker="o", ms=4.5, label=label)
    curve.set(ylabel="mean label", xlim=(-0.03, 1.03), ylim=(-0.03, 1.03))
    legend(curve, loc="upper left")
    bars = histogram.bar((np.arange(bins) + 0.5) / bins, shown.counts, width=0.94 / bins, color=GOOD, alpha=0.5)
    histogram.bar_label(bars, [str(n) if n else "" for n in shown.counts], fontsize=7, padding=1)
    histogram.set(xlabel=name_of_pi(study), ylabel="trials", ylim=(0, 1.2 * shown.counts.max()))
    for axes in (curve, histogram):
        thin_spines(axes)
    return figure


def calibration_chart(shown: Reliability, name: str) -> Drawing:
    """The same diagram for the page, with two standard errors; the larger a point, the more trials."""
    seen = np.flatnonzero(shown.counts)
    pi, z, counts = shown.mean_pi[seen], shown.mean_z[seen], shown.counts[seen]
    words = [f"{n} trials<br>said {p:.3f}, was {mean:.3f}" for n, p, mean in zip(counts, pi, z, strict=True)]
    bars = {"type": "data", "array": (2 * shown.deviation[seen]).tolist(), "color": GOOD, "thickness": 1.2}
    marker = {"color": GOOD, "size": np.minimum(16, 4 + np.sqrt(counts)).tolist()}
    means = line(pi.tolist(), z.tolist(), GOOD, 1.4, mode="lines+markers", name="mean label", error_y=bars,
                 hovertext=words, hoverinfo="text", marker=marker, showlegend=False)  # fmt: skip
    square = {"range": [-0.04, 1.04]}
    across, up = titled(f"{name}, said", **square), titled("mean label, with two standard errors", **square)
    return Drawing([diagonal(0.0, 1.0), means], {"xaxis": across, "yaxis": up}, 360)
