"""What the classifier has learned, as sections of the page: importance, slices, pairs, predictions of unseen trials."""

import logging
import time
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from deepbore.compute.correlation import rank_correlation
from deepbore.data.trial import sign_of
from deepbore.errors import SettingError
from deepbore.plots.held_out import FOLDS, held_out
from deepbore.plots.page.charts import Chart, Section, axis_of, clipped, texts
from deepbore.plots.page.slice_charts import pair_charts, slice_charts
from deepbore.plots.predictions import labels_of, name_of_pi, nothing_learned, values_of
from deepbore.plots.reliability_diagram import reliability
from deepbore.plots.shapley_importance import Share, shares
from deepbore.plots.style import BAD, GOOD
from deepbore.plots.translation import Translation
from deepbore.plots.value_axis import ValueAxis

if TYPE_CHECKING:
    from deepbore.study import Study

BARS, SLICES, PAIRED = 20, 12, 4
BINS = 10
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Learned:
    """What the sections share.

    Attributes:
        study: with a trained classifier.
    """

    study: "Study"

    @cached_property
    def unseen(self) -> np.ndarray | None:
        """pi of each trial by a classifier that has not seen it; None where that can't be had."""
        started = time.monotonic()
        try:
            found = held_out(self.study)
        except SettingError as error:
            log.info("no predictions of unseen trials: %s", error)
            return None
        log.info("predictions of unseen trials took %.1f s", time.monotonic() - started)
        return found if np.isfinite(found).any() else None

    @cached_property
    def translation(self) -> Translation | None:
        """From pi to values."""
        return Translation.of(self.study, None) or Translation.of(self.study, self.unseen)

    @cached_property
    def shown(self) -> ValueAxis | None:
        """The axis of values."""
        own = (self.study.observations.tasks == 0).cpu().numpy()  # others may be on another scale
        return ValueAxis.of(values_of(self.study)[own], sign_of(self.study.observations.direction))

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
    translation = learned.translation
    units = name_of_pi(study) if translation is None else "predicted value"
    means = f"The {name_of_pi(study)} as the classifier gives it." if translation is None else translation.says
    names = list(learned.shares) if len(study.space) > 1 else study.space.names
    slices = slice_charts(study, names[:SLICES], translation, learned.shown)
    found = [
        Section(f"Slices: {units}", f"{_SLICES} {means}", slices, grid="grid"),
    ]
    if len(study.space) > 1:
        pairs = pair_charts(study, names[:PAIRED], translation, learned.shown)
        found = [_importance(learned), *found, Section(f"Pairs: {units}", _PAIRS, pairs, grid="grid wide")]
    return [*found, _unseen_section(learned)]


_SLICES = (
    "Along each parameter, the most important first, with the others at the best configuration (dotted); the band is "
    "one standard deviation of what the classifier says. Grey points are all trials, wherever their others are."
)
_PAIRS = (
    "Over pairs of the most important parameters, the others at the best configuration: the greener the better. Points "
    "are trials, the star is the best."
)


def _importance(learned: Learned) -> Section:
    found = list(learned.shares.items())[:BARS][::-1]
    names = texts([name for name, _ in found], 30)
    rest = max(0.0, 1.0 - sum(share.alone for share in learned.shares.values()))
    if not any(share.whole for share in learned.shares.values()):
        return Section("Importance", "The classifier says the same of all configurations yet.")
    traces = [
        _bars("by itself", names, [s.alone for _, s in found], [s.whole for _, s in found], GOOD),
        _bars("together with others", names, [s.together for _, s in found], [s.whole for _, s in found], "#9fcdb8"),
    ]
    layout = {
        "barmode": "stack",
        "bargap": 0.3,
        "xaxis": {"title": {"text": "share of the variance"}, "tickformat": ".0%", "rangemode": "tozero"},
        "yaxis": {"fixedrange": True, "type": "category"},
    }
    says = (
        f"How much of the variance of the {name_of_pi(learned.study)} over the whole space each parameter explains: "
        f"the shares (Shapley effects) add up to 1. Light: the part that is by interactions alone, {rest:.0%} in all."
    )
    return Section("Importance", says, [Chart(traces, layout, 110 + 26 * len(found))])


def _bars(name: str, names: list[str], shares: list[float], wholes: list[float], colour: str) -> dict[str, Any]:
    lines = [
        f"<b>{who}: {whole:.1%}</b><br>{share:.1%} {name}"
        for who, share, whole in zip(names, shares, wholes, strict=True)
    ]
    return {
        "type": "bar",
        "orientation": "h",
        "name": name,
        "x": [round(share, 5) for share in shares],
        "y": names,
        "hovertext": lines,
        "hoverinfo": "text",
        "textposition": "none",
        "marker": {"color": colour},
    }


# --- predictions of unseen trials ------------------------------------------------------------------------------------


def _unseen_section(learned: Learned) -> Section:
    title = "Predictions of unseen trials"
    unseen = learned.unseen
    if unseen is None:
        return Section(title, "There are too few trials, or the classifier can't be made again, so none is held out.")
    study = learned.study
    label = labels_of(study).z.mean(-1).cpu().double().numpy()
    known = np.isfinite(unseen)
    error, diagram = _reliability(unseen[known], label[known], name_of_pi(study))
    order = float(rank_correlation(torch.from_numpy(unseen[known]), torch.from_numpy(label[known])))
    charts = [*_against_values(learned, unseen), diagram]
    says = (
        f"Each of {int(known.sum())} trials is predicted by a classifier that has learned the others ({FOLDS}-fold "
        f"cross-validation). Rank correlation with the labels {order:.2f}; calibration error {error:.3f}: on the "
        "diagonal the classifier means what it says."
    )
    return Section(title, says, charts, grid="grid wide")


def _against_values(learned: Learned, unseen: np.ndarray) -> list[Chart]:
    """Values against their predictions; nothing where there are no predicted values."""
    shown, values = learned.shown, values_of(learned.study)
    if learned.translation is None or shown is None:
        return []
    rows = np.flatnonzero(np.isfinite(unseen) & np.isfinite(values))
    predicted = learned.translation(unseen[rows])
    marks = {
        "type": "scatter",
        "mode": "markers",
        "name": "trials",
        "x": clipped(predicted.tolist(), shown),
        "y": clipped(values[rows].tolist(), shown),
        "trials": rows.tolist(),
        "more": [f"predicted unseen: {value:.6g}" for value in predicted],
        "marker": {"color": GOOD, "size": 6, "opacity": 0.75},
        "cliponaxis": False,
        "showlegend": False,
    }
    axes = {"xaxis": axis_of(shown, "predicted value"), "yaxis": axis_of(shown, "value")}
    return [Chart([_diagonal(shown.low, shown.high), marks], axes, 360)]


def _reliability(pi: np.ndarray, label: np.ndarray, name: str) -> tuple[float, Chart]:
    """The expected calibration error, and the mean label over pi in bins with two standard errors."""
    mean_pi, mean_z, counts = reliability(pi.clip(0, 1), label, BINS)
    place = np.minimum((pi.clip(0, 1) * BINS).astype(int), BINS - 1)
    error = float(np.nansum(counts / counts.sum() * np.abs(mean_z - mean_pi)))
    seen = [b for b in range(BINS) if counts[b]]
    spread = {b: float(np.std(label[place == b]) / np.sqrt(counts[b])) for b in seen}
    means = {
        "type": "scatter",
        "mode": "lines+markers",
        "name": "mean label",
        "x": [float(mean_pi[b]) for b in seen],
        "y": [float(mean_z[b]) for b in seen],
        "error_y": {"type": "data", "array": [2 * spread[b] for b in seen], "color": GOOD, "thickness": 1.2},
        "hovertext": [f"{int(counts[b])} trials<br>said {mean_pi[b]:.3f}, was {mean_z[b]:.3f}" for b in seen],
        "hoverinfo": "text",
        "line": {"color": GOOD, "width": 1.4},
        "marker": {"color": GOOD, "size": [min(16.0, 4 + np.sqrt(float(counts[b]))) for b in seen]},
        "showlegend": False,
    }
    square = {"range": [-0.04, 1.04]}
    axes = {
        "xaxis": {**square, "title": {"text": f"{name}, said"}},
        "yaxis": {**square, "title": {"text": "mean label, with two standard errors"}},
    }
    return error, Chart([_diagonal(0.0, 1.0), means], axes, 360)


def _diagonal(low: float, high: float) -> dict[str, Any]:
    line = {"color": BAD, "dash": "dash", "width": 1.2}
    both = [low, high]
    return {
        "type": "scatter",
        "mode": "lines",
        "x": both,
        "y": both,
        "line": line,
        "hoverinfo": "skip",
        "showlegend": False,
    }
