"""What the classifier has learned, as sections of the page: importance, slices, pairs, predictions of unseen trials."""

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
import torch

from deepbore.compute.numerics import rank_correlation
from deepbore.data.trial import sign_of
from deepbore.errors import SettingError
from deepbore.loop.metrics import BINS as FORECAST_BINS
from deepbore.plots.calibration_chart import Reliability, calibration_chart
from deepbore.plots.importance_chart import Share, local_chart, local_shares, shares, shares_chart
from deepbore.plots.on_plotly import Chart, diagonal, points, value_axis
from deepbore.plots.page.sections import Section
from deepbore.plots.predictions import (
    FOLDS,
    Translation,
    Units,
    by_definition,
    has_columns,
    held_out,
    is_own,
    mean_labels,
    name_of_pi,
    nothing_learned,
    values_of,
)
from deepbore.plots.slice_charts import PAIRED, SLICES, Pair, Slice, pair_chart, slice_chart
from deepbore.plots.sources import names_of_values, record_of
from deepbore.plots.style import GOOD, ValueAxis

if TYPE_CHECKING:
    from deepbore.study import Study

FINE, COARSE, TRIALS = 101, 25, 400  # of a chart: entries of a grid along a line and along a side, trials
OBJECTIVES = 4  # that have slices
log = logging.getLogger(__name__)


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
        started = time.monotonic()
        try:
            found = held_out(self.study)
        except SettingError as error:
            log.info("no predictions of unseen trials: %s", error)
            return None
        log.info("predictions of unseen trials took %.1f s", time.monotonic() - started)
        return found if np.isfinite(found).any() else None

    @cached_property
    def shown(self) -> ValueAxis | None:
        """The axis of this run's values."""
        return ValueAxis.of(values_of(self.study)[is_own(self.study)], sign_of(self.study.observations.direction))

    @cached_property
    def units(self) -> Units:
        """What the slices and pairs show: predicted values, or pi where it can't be translated."""
        translation = Translation.of(self.study, None) or Translation.of(self.study, self.unseen)
        if translation is None or self.shown is None:
            return Units(name_of_pi(self.study))
        return Units("predicted value", self.shown, translation)

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
        return Section("Importance", says, [shares_chart(found)])
    says += (
        " Beside it the importance near the best configuration: the variance along each parameter alone, within a "
        "tenth of its range to each side; unordered choices take all values."
    )
    return Section("Importance", says, [shares_chart(found), local_chart(near)], grid="grid wide")


def _all_slices(learned: Learned, names: Sequence[str]) -> list[Section]:
    """The slices of the value, or of each of several objectives, if the classifier has scores of its own for it."""
    study = learned.study
    if study.observations.k == 1 or not has_columns(study):
        return [_slices(learned, names, learned.units)]
    named = enumerate(learned.names[:OBJECTIVES])
    return [_slices(learned, names, _units_of(study, j, name), j) for j, name in named]


def _units_of(study: "Study", objective: int, name: str) -> Units:
    """What the slices of an objective show: predicted values, or pi where it can't be translated."""
    values, sign = values_of(study, objective)[is_own(study)], sign_of(study.observations.directions[objective])
    translation, shown = by_definition(study, objective), ValueAxis.of(values, sign)
    if translation is None or shown is None:
        return Units(f"{name_of_pi(study)} of {name}")
    return Units(f"predicted {name}", shown, translation)


def _slices(learned: Learned, names: Sequence[str], units: Units, objective: int | None = None) -> Section:
    study = learned.study
    shown = [Slice.of(study, name, units, FINE, TRIALS, objective) for name in names[:SLICES]]
    charts = [slice_chart(each, units.axis) for each in shown]
    pi = f"The {name_of_pi(study)} as the classifier gives it."
    best = "best configuration" if objective is None else f"configuration with the best {learned.names[0]}"
    says = (
        f"Along each parameter, the most important first, with the others at the {best} (dotted); the band is one "
        "standard deviation of the prediction. Grey points are all trials, whatever their other parameters are. "
        f"{pi if units.translation is None else units.translation.says}"
    )
    return Section(f"Slices: {units.name}", says, charts, grid="grid")


def _pairs(learned: Learned, names: Sequence[str]) -> Section:
    study, units = learned.study, learned.units
    less_is_better = units.translation is not None and study.observations.direction == "minimize"
    shown = [Pair.of(study, *pair, units, COARSE, TRIALS) for pair in combinations(names[:PAIRED], 2)]
    charts = [pair_chart(each, units.axis, less_is_better=less_is_better) for each in shown]
    says = (
        "Over pairs of the most important parameters, the others at the best configuration: the greener the better. "
        "Points are trials, the star is the best."
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
    charts = [*_against_values(learned, unseen), calibration_chart(reliability, name_of_pi(study))]
    return Section(title, says, charts, grid="grid wide")


def _forecasts(study: "Study") -> list[Section]:
    """How good the predictions of proposals were; nothing where none were recorded, as without a Trainer."""
    metrics = study.metrics
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
    return [Section("Forecasts of proposals", says, [calibration_chart(shown, name_of_pi(study))], grid="grid wide")]


def _against_values(learned: Learned, unseen: np.ndarray) -> list[Chart]:
    """Values against their predictions; nothing where there are no predicted values."""
    units, values = learned.units, values_of(learned.study)
    if units.translation is None:
        return []
    rows = np.flatnonzero(np.isfinite(unseen) & np.isfinite(values))
    predicted = units(unseen[rows])
    x, y = (units.axis.clip(each).tolist() for each in (predicted, values[rows]))
    more = [f"predicted unseen: {value:.6g}" for value in predicted]
    marks = points(x, y, GOOD, 6, name="trials", trials=rows.tolist(), more=more, marker={"opacity": 0.75},
                   cliponaxis=False, showlegend=False)  # fmt: skip
    axes = {"xaxis": value_axis(units.axis, "predicted value"), "yaxis": value_axis(units.axis, "value")}
    return [Chart([diagonal(units.axis.low, units.axis.high), marks], axes, 360)]
