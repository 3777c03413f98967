"""What the classifier has learned, as sections of the page: importance, slices, pairs, predictions of unseen trials."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import torch

from deepbore.compute.numerics import rank_correlation
from deepbore.loop.metrics import BINS as FORECAST_BINS
from deepbore.plots.calibration_chart import Reliability, reliability_chart
from deepbore.plots.chart import Axis, Chart, Line, Points
from deepbore.plots.importance_chart import Share, importance_chart, local_chart, local_shares, shares
from deepbore.plots.on_plotly import Drawing, drawing
from deepbore.plots.page.sections import Section
from deepbore.plots.predictions import (
    FOLDS,
    Units,
    has_columns,
    mean_labels,
    name_of_pi,
    nothing_learned,
    predicted_unseen,
    units_of,
    values_of,
)
from deepbore.plots.slice_charts import PAIRED, SLICES, pair_charts, slice_charts
from deepbore.plots.sources import names_of_values, record_of
from deepbore.plots.style import BAD, GOOD

if TYPE_CHECKING:
    from deepbore.study import Study

FINE, COARSE, TRIALS = 101, 25, 400  # of a chart: entries of a grid along a line and along a side, trials
OBJECTIVES = 4  # that have slices


@dataclass(frozen=True)
class Learned:
    """What the sections share.

    Attributes:
        study: with a trained classifier.
    """

    study: "Study"

    @cached_property
    def names(self) -> list[str]:
        """The names of the values."""
        return names_of_values(record_of(self.study))

    @cached_property
    def unseen(self) -> np.ndarray | None:
        """pi of each trial by a classifier that has not seen it; None where no trial can be held out."""
        return predicted_unseen(self.study)

    @cached_property
    def units(self) -> Units:
        """What the slices and pairs show: predicted values, or pi where it can't be translated."""
        return units_of(self.study, unseen=lambda: self.unseen)

    @cached_property
    def shares(self) -> dict[str, Share]:
        """Of the parameters, the greatest first."""
        return shares(self.study)


def learned_sections(study: "Study") -> list[Section]:
    """The sections that a trained classifier fills; one that says why there are none, where it has learned nothing.

    Raises:
        SettingError: if it has never been trained, though there is something to learn.
    """
    if reason := nothing_learned(study):
        return [Section("The classifier", reason)]
    learned = Learned(study)
    if len(study.space) == 1:
        return [*_all_slices(learned, study.space.names), _unseen(learned), *_forecasts(study)]
    names = list(learned.shares)
    parts = [_importance(learned), *_all_slices(learned, names), _pairs(learned, names), _unseen(learned)]
    return [*parts, *_forecasts(study)]


def _importance(learned: Learned) -> Section:
    found = learned.shares
    if not any(share.whole for share in found.values()):
        return Section("Importance", "The classifier says the same of all configurations yet.")
    rest = max(0.0, 1.0 - sum(share.alone for share in found.values()))
    says = (
        f"How much of the variance of the {name_of_pi(learned.study)} over the whole space each parameter explains: "
        f"the shares (Shapley effects) add up to 1. Light: the part that is by interactions alone, {rest:.0%} in all."
    )
    near = local_shares(learned.study)
    if not any(near.values()):
        return Section("Importance", says, [drawing(importance_chart(learned.study, found))])
    says += (
        " Beside it the importance near the best configuration: the variance along each parameter alone, within a "
        "tenth of its range to each side; unordered choices take all values."
    )
    charts = [importance_chart(learned.study, found), local_chart(learned.study, near)]
    return Section("Importance", says, [drawing(each) for each in charts], grid="grid wide")


def _all_slices(learned: Learned, names: Sequence[str]) -> list[Section]:
    """The slices of the value, or of each of several objectives, if the classifier has scores of its own for it."""
    study = learned.study
    if study.observations.k == 1 or not has_columns(study):
        return [_slices(learned, names, learned.units)]
    return [_slices(learned, names, units_of(study, j), j) for j in range(min(OBJECTIVES, study.observations.k))]


def _slices(learned: Learned, names: Sequence[str], units: Units, objective: int | None = None) -> Section:
    study = learned.study
    charts = [drawing(each) for each in slice_charts(study, names[:SLICES], objective, units, FINE, TRIALS)]
    pi = f"The {name_of_pi(study)} as the classifier gives it."
    best = "best configuration" if objective is None else f"configuration with the best {learned.names[0]}"
    says = (
        f"Along each parameter, the most important first, with the others at the {best} (dotted); the band is one "
        "standard deviation of the prediction. Grey points are all trials, whatever their other parameters are. "
        f"{pi if units.translation is None else units.translation.says}"
    )
    return Section(f"Slices: {units.name}", says, charts, grid="grid")


def _pairs(learned: Learned, names: Sequence[str]) -> Section:
    units = learned.units
    charts = [drawing(each) for each in pair_charts(learned.study, names[:PAIRED], units, COARSE, TRIALS)]
    says = (
        "Over pairs of the most important parameters, the others at the best configuration: the greener the better. "
        "Points are trials, the good ones filled; the star is the best, a large ring is a pending one. Trials with one "
        "of the two parameters only are on the frame."
    )
    return Section(f"Pairs: {units.name}", says, charts, grid="grid wide")


def _unseen(learned: Learned) -> Section:
    title, study, unseen = "Predictions of unseen trials", learned.study, learned.unseen
    if unseen is None:
        return Section(title, "There are too few trials, or the classifier can't be made again, so none is held out.")
    known, label = np.isfinite(unseen), mean_labels(study)
    reliability = Reliability.of(unseen[known], label[known])
    order = float(rank_correlation(torch.from_numpy(unseen[known]), torch.from_numpy(label[known])))
    says = (
        f"Each of {int(known.sum())} trials is predicted by a classifier that has learned the others ({FOLDS}-fold "
        f"cross-validation). Rank correlation with the labels {order:.2f}; calibration error {reliability.error:.3f}: "
        "on the diagonal predictions and labels agree."
    )
    charts = [*_against_values(learned, unseen), drawing(reliability_chart(reliability, name_of_pi(study)))]
    return Section(title, says, charts, grid="grid wide")


def _forecasts(study: "Study") -> list[Section]:
    """How good the predictions of proposals were; nothing where none were recorded, as without a Trainer."""
    from deepbore.study.study import metrics_of  # a study is there

    metrics = metrics_of(study)
    if metrics is None or not metrics.of_forecasts:
        return []
    said, label = (each.numpy() for each in metrics.forecasts)
    figures = {"Brier score": metrics.brier_score, **metrics.of_forecasts}
    named = {"forecast_calibration_error": "calibration error", "forecast_auroc": "AUROC"}
    numbers = "; ".join(f"{named.get(name, name)} {value:.3f}" for name, value in figures.items())
    says = (
        f"What was predicted for each of the latest {len(label)} proposals before it was evaluated, and its label "
        f"after. {numbers}. 1/4 is the Brier score of always saying 1/2. Proposals are points that look good, so "
        "predictions of them are too high more often than elsewhere."
    )
    shown = Reliability.of(said, label, FORECAST_BINS)
    return [
        Section(
            "Forecasts of proposals", says, [drawing(reliability_chart(shown, name_of_pi(study)))], grid="grid wide"
        )
    ]


def _against_values(learned: Learned, unseen: np.ndarray) -> list[Drawing]:
    """Values against their predictions; nothing where there are no predicted values."""
    units, values = learned.units, values_of(learned.study)
    if units.translation is None:
        return []
    rows = np.flatnonzero(np.isfinite(unseen) & np.isfinite(values))
    predicted = units(unseen[rows])
    x, y = (units.axis.clip(each) for each in (predicted, values[rows]))
    said = [f"predicted unseen: {value:.6g}" for value in predicted]
    ends = np.array([units.axis.low, units.axis.high])
    layers = [
        Line(ends, ends, colour=BAD, width=1.2, dash="dash"),
        Points(x, y, colour=GOOD, opacity=0.75, trials=rows, said=said),
    ]
    across, up = Axis("predicted value", units.axis), Axis("value", units.axis)
    return [drawing(Chart("values over their predictions", layers, across, up, height=360))]
