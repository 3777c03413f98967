"""`calibration`: whether pi is the share of good trials (a reliability diagram)."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from deepbore.plots.chart import Axis, Chart, Line, Points
from deepbore.plots.on_matplotlib import drawn, message, new_figure
from deepbore.plots.predictions import judged_rows, mean_labels, name_of_pi, nothing_learned, probability
from deepbore.plots.style import BAD, GOOD, ValueAxis
from deepbore.validation import whole

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from deepbore.study import Study

ROWS = 5000
SQUARE = ValueAxis(-0.04, 1.04)  # of both axes


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


def reliability_chart(shown: Reliability, name: str) -> Chart:
    """The diagram of labels over what was said of them (its name), with two standard errors; the larger a point, the
    more trials."""
    seen = np.flatnonzero(shown.counts)
    pi, z, spread, counts = (each[seen] for each in (shown.mean_pi, shown.mean_z, 2 * shown.deviation, shown.counts))
    said = [f"{n} trials\nsaid {p:.3f}, was {mean:.3f}" for n, p, mean in zip(counts, pi, z, strict=True)]
    ends = np.array([0.0, 1.0])
    layers = [
        Line(ends, ends, colour=BAD, width=1.2, dash="dash", name="perfectly calibrated"),
        Line(pi, z, colour=GOOD, width=1.4, name=f"classifier, error {shown.error:.3f}"),
        Points(pi, z, np.minimum(16.0, 4 + np.sqrt(counts)), arms=(z - spread, z + spread), colour=GOOD, said=said),
    ]
    across, up = Axis(f"{name}, said", SQUARE), Axis("mean label, with two standard errors", SQUARE)
    return Chart("labels over what was predicted", layers, across, up, height=360)


def calibration_chart(study: "Study", *, bins: int = 10) -> Chart:
    """`calibration` as a record; see there."""
    whole(1, bins=bins)
    if reason := nothing_learned(study):
        return Chart("labels over what was predicted", [], remark=reason)
    rows = judged_rows(study.observations, ROWS)
    pi = probability(study, study.observations.points[rows])
    return reliability_chart(Reliability.of(pi, mean_labels(study)[rows.numpy()], bins), name_of_pi(study))


def calibration(study: "Study", *, bins: int = 10, figure: "Figure | None" = None) -> "Figure":
    """The mean label over pi in bins, on the trials of the run; the larger a point, the more trials are in its bin.

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
    chart = calibration_chart(study, bins=bins)
    if chart.remark:
        return message(figure, chart.remark)
    return drawn(chart, (figure or new_figure(4.8, 4.4)).subplots())
