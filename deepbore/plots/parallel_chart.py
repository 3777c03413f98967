"""`parallel_coordinates`: every trial as a line through its parameters. The chart is made of the declarations of the
parameters alone, so that the page of a journal needs no torch."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from deepbore.component import is_number
from deepbore.data.ledger import Ledger
from deepbore.data.ranking import is_feasible
from deepbore.data.trial import Trial, sign_of
from deepbore.plots.on_matplotlib import figure_of, good_to_bad, new_axes, nothing_on, plain_names, tick_labels
from deepbore.plots.on_plotly import Drawing, line, texts
from deepbore.plots.sources import finished_trials, first_values, names_of_values, record_of, require_study, some_of
from deepbore.plots.style import FAILED, INFEASIBLE, ValueAxis, number

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from deepbore.study import Study

ABSENT = -0.12  # where a line passes the axis of a parameter that its trial does not have
APART = 0.018  # lines through the same choice lie up to so far apart


# --- what is drawn ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class DeclaredScale:
    """Where a parameter's values stand on an upright axis from 0 to 1.

    Attributes:
        low: least number; unused for choices.
        high: greatest number.
        log: whether the scale is logarithmic.
        choices: of an ordinal or a categorical parameter, in order.
        step: between numbers that are values; 0 for real parameters.
    """

    low: float = 0.0
    high: float = 1.0
    log: bool = False
    choices: tuple[Any, ...] = ()
    step: float = 0.0

    @classmethod
    def of(cls, declared: Mapping[str, Any], seen: Sequence[Any]) -> "DeclaredScale":
        """From a parameter's declaration; of a user's own type from the values that were seen."""
        low: Any = declared.get("low")
        high: Any = declared.get("high")
        if all(map(is_number, (low, high, *seen))) and low < high:
            step = declared.get("step") or (1 if declared.get("type") == "integer" else 0)
            return cls(float(low), float(high), declared.get("log") is True and low > 0, step=float(step))
        given = declared.get("choices")
        if isinstance(given, list | dict) and given:
            return cls(choices=tuple(given))
        return cls(choices=tuple(sorted({str(value) for value in seen})) or ("",))

    def place(self, value: Any) -> float:
        """The height of a value."""
        if self.choices:
            known = [k for k, choice in enumerate(self.choices) if choice == value and type(choice) is type(value)]
            known = known or [k for k, choice in enumerate(self.choices) if str(choice) == str(value)] or [0]
            return known[0] / (len(self.choices) - 1) if len(self.choices) > 1 else 0.5
        within = min(max(float(value), self.low), self.high)
        if not self.log:
            return (within - self.low) / (self.high - self.low)
        return math.log(within / self.low) / math.log(self.high / self.low)

    @property
    def ticks(self) -> list[Any]:
        """Values to name: some choices, powers of ten, or the ends and the middle."""
        if self.choices:
            return list(self.choices[:: math.ceil(len(self.choices) / 8)])
        if not self.log:
            half = (self.high - self.low) / 2
            return [self.low, self.low + (half // self.step * self.step if self.step else half), self.high]
        powers = list(range(math.ceil(math.log10(self.low)), math.floor(math.log10(self.high)) + 1))
        values = [10.0**k for k in powers[:: max(1, math.ceil(len(powers) / 6))]]
        return values if len(values) > 1 else [self.low, self.high]


@dataclass(frozen=True)
class Parallel:
    """Finished trials as lines over parameters' upright axes from 0 to 1, and over an axis of their values.

    Attributes:
        names: of the parameters (k).
        scales: theirs.
        trials: n.
        heights: where each trial crosses each axis, with a little chance at choices; ABSENT without the parameter
            (n x k).
        axis: of the feasible values, or of all, if none is feasible; None without values.
        good: how good the value of each trial is on that axis, 1 for the best; NaN for failures (n).
        feasible: whether each trial violates no constraint (n).
        is_minimised: whether less is better.
        named: the name of the values.
    """

    names: Sequence[str]
    scales: Sequence[DeclaredScale]
    trials: Sequence[Trial]
    heights: np.ndarray
    axis: ValueAxis | None
    good: np.ndarray
    feasible: np.ndarray
    is_minimised: bool
    named: str = "value"

    @classmethod
    def of(cls, record: Ledger, names: Sequence[str], most: int) -> "Parallel":
        """The lines of at most so many finished trials of a record, without those of earlier tasks."""
        own = [trial for trial in finished_trials(record.trials) if trial.task is None]
        trials = some_of(own, record.direction, most)
        scales = [DeclaredScale.of(record.space[name], _seen(trials, name)) for name in names]
        heights = np.array([_heights(trial, names, scales) for trial in trials]).reshape(len(trials), len(names))
        moves = np.isnan(heights) | [bool(scale.choices) for scale in scales]
        apart = np.random.default_rng(0).uniform(-APART, APART, heights.shape)
        heights = np.where(np.isnan(heights), ABSENT, heights) + np.where(moves, apart, 0)
        values, sign = first_values(trials), sign_of(record.direction)
        feasible = np.array([is_feasible(trial) for trial in trials], dtype=bool)
        axis = ValueAxis.of(values[feasible], sign, margin=0) or ValueAxis.of(values, sign, margin=0)
        place = values if axis is None else axis.place(values)
        good = 1 - place if sign > 0 else place
        return cls(names, scales, trials, heights, axis, good, feasible, sign > 0, names_of_values(record)[0])

    @property
    def failed(self) -> np.ndarray:
        """The indices of the trials without a value."""
        return np.flatnonzero(np.isnan(self.good))

    @property
    def beyond(self) -> np.ndarray:
        """The indices of the infeasible trials with a value."""
        return np.flatnonzero(~self.feasible & ~np.isnan(self.good))

    @property
    def ranked(self) -> np.ndarray:
        """The indices of the feasible trials, the worst first."""
        counted = np.flatnonzero(self.feasible & ~np.isnan(self.good))
        order: np.ndarray = counted[np.argsort(self.good[counted], kind="stable")]
        return order


def _seen(trials: Sequence[Trial], name: str) -> list[Any]:
    return [trial.params[name] for trial in trials if name in trial.params]


def _heights(trial: Trial, names: Sequence[str], scales: Sequence[DeclaredScale]) -> list[float]:
    both = zip(names, scales, strict=True)
    return [scale.place(trial.params[name]) if name in trial.params else math.nan for name, scale in both]


# --- as a picture ----------------------------------------------------------------------------------------------------

MOST, LINES = 12, 500
GROUND = {"facecolor": "white", "alpha": 0.75, "edgecolor": "none", "pad": 0.6}  # of text that lines pass


def parallel_coordinates(
    study: "Study", *, parameters: Sequence[str] | None = None, axes: "Axes | None" = None
) -> "Figure":
    """Each trial as a line through its parameters and its (first) value, coloured by the value, the best on top.

    Numbers stand on their own (log) scale. Lines of a trial that does not have a parameter pass below its axis, failed
    trials are red and end before the value, those that violate a constraint are pink, below all others. Beyond 500
    trials the best of them, the newest and others evenly are shown.

    Args:
        study: with trials.
        parameters: names, in order; None for all of them, or the 12 most important of more.
        axes: where to draw; None for a new figure.

    Raises:
        SettingError: for an unknown parameter.
        MissingPackage: without matplotlib.
    """
    require_study(study)
    names = _names(study, parameters)
    shown = Parallel.of(record_of(study), names, LINES)
    if not shown.trials:
        return nothing_on(axes, "No trial is finished yet.")
    axes = axes or new_axes(max(1.15 * (len(names) + 1), 5.0) + 0.6, 4.0)
    axes.plot(np.arange(len(names)), shown.heights[shown.failed].T, color=FAILED, lw=0.8, ls=":", alpha=0.6)
    if shown.axis is not None:
        _draw_lines(axes, shown)
        _draw_value_axis(axes, shown.axis, len(names), plain_names([shown.named], 16)[0])
    _draw_axes(axes, study, shown)
    return figure_of(axes)


def _names(study: "Study", parameters: Sequence[str] | None) -> list[str]:
    if parameters is None and (len(study.space) <= MOST or not study.classifier.ready):
        return study.space.names[:MOST]
    from deepbore.plots.slice_charts import chosen  # needs torch

    return chosen(study, parameters, MOST)


def _draw_lines(axes: "Axes", shown: Parallel) -> None:
    """Lines through the parameters to the value's axis, infeasible ones first, then the worst."""
    from matplotlib.collections import LineCollection
    from matplotlib.colors import to_rgba

    order = np.concatenate([shown.beyond, shown.ranked])
    good, feasible = shown.good[order], shown.feasible[order]
    ends = 1 - good if shown.is_minimised else good
    across = np.arange(len(shown.names) + 1)
    lines = [np.column_stack([across, line]) for line in np.column_stack([shown.heights[order], ends])]
    colours = np.where(feasible[:, None], good_to_bad()(good), to_rgba(INFEASIBLE))
    alpha = float(np.clip(40 / len(order), 0.25, 0.8))
    axes.add_collection(LineCollection(lines, colors=colours, linewidths=0.6 + 1.2 * good * feasible, alpha=alpha))


def _draw_value_axis(axes: "Axes", axis: ValueAxis, place: int, name: str) -> None:
    from deepbore.space.parameters import Scale  # a study's picture: torch is there

    shown = Scale(axis.low, axis.high, axis.log).ticks(5)
    _draw_axis(axes, place, name, axis.place(np.array(shown)).tolist(), [number(tick) for tick in shown])


def _draw_axes(axes: "Axes", study: "Study", shown: Parallel) -> None:
    """The parameters' own axes, in place of the rectangular ones."""
    names = shown.names
    for place, (name, label) in enumerate(zip(names, plain_names(names, 16), strict=True)):
        parameter = study.space.parameters[name]
        ticks = parameter.ticks(6)
        heights = (parameter.encode(ticks) / parameter.upper).tolist()
        _draw_axis(axes, place, label, heights, tick_labels(ticks))
    conditional = [place for place, name in enumerate(names) if study.space.parameters[name].when is not None]
    if conditional:
        axes.text(conditional[0] - 0.05, ABSENT, "inactive", ha="right", va="center", fontsize=7.5, bbox=GROUND)
    axes.set(xlim=(-0.4, len(names) + 0.2), ylim=(ABSENT - 0.05 if conditional else -0.03, 1.05))
    axes.set_axis_off()


def _draw_axis(axes: "Axes", x: float, name: str, heights: Sequence[float], labels: Sequence[str]) -> None:
    """One upright axis: a line, its name above, ticks to the left on a white ground, so that lines may pass."""
    axes.vlines(x, 0, 1, color="#444444", lw=0.9, zorder=3)
    axes.text(x, 1.06, name, ha="center", va="bottom", fontsize=9)
    for height, label in zip(heights, labels, strict=True):
        axes.plot([x - 0.03, x], [height, height], color="#444444", lw=0.9, zorder=3)
        axes.text(x - 0.05, height, label, ha="right", va="center", fontsize=7.5, bbox=GROUND, zorder=4)


# --- on the page -----------------------------------------------------------------------------------------------------

COLOURS = ["#d5d9dd", "#c3d3cb", "#a9cdbd", "#7dbb9f", "#4a9e7d", "#1a7f5a"]  # from the worst to the best
RED = "#e0a39b"


def parallel_chart(shown: Parallel, *, conditional: bool) -> Drawing:
    """The same chart for the page, with the best value on top; a trace for each colour."""
    sixths = np.array_split(shown.ranked, len(COLOURS))
    groups = [(RED, shown.failed), (INFEASIBLE, shown.beyond), *zip(COLOURS, sixths, strict=True)]
    traces = [_trace(shown, colour, rows) for colour, rows in groups if len(rows)]
    return Drawing(traces, _layout(shown, conditional=conditional), 380, turns=96 * (len(shown.names) + 1))


def _trace(shown: Parallel, colour: str, rows: np.ndarray) -> dict[str, Any]:
    """Lines of one colour as one trace, with gaps between them."""
    across = [*range(len(shown.names) + 1), None]
    table = np.column_stack([shown.heights[rows], shown.good[rows], np.full(len(rows), np.nan)])
    y = [None if math.isnan(height) else round(height, 4) for height in table.ravel().tolist()]
    ids = [shown.trials[row].id for row in rows for _ in across]
    look = {"mode": "lines+markers", "trials": ids, "marker": {"color": colour, "size": 4}}
    width = 1.6 if colour == COLOURS[-1] else 1.0
    return line(across * len(rows), y, colour, width, cliponaxis=False, showlegend=False, **look)


def _layout(shown: Parallel, *, conditional: bool) -> dict[str, Any]:
    d = len(shown.names)
    upright = {"type": "line", "y0": 0, "y1": 1, "line": {"color": "#59636e", "width": 1}, "layer": "below"}
    names = [*texts(shown.names, 16), *texts([shown.named], 16)]
    heads = [{"x": k, "y": 1.05, "text": f"<b>{name}</b>", "showarrow": False, "yanchor": "bottom",
              "font": {"size": 11}} for k, name in enumerate(names)]  # fmt: skip
    hidden = {"visible": False, "fixedrange": True}
    return {
        "shapes": [{**upright, "x0": k, "x1": k} for k in range(d + 1)],
        "annotations": [*_labels(shown), *heads],
        "xaxis": {**hidden, "range": [-0.65, d + 0.35]},
        "yaxis": {**hidden, "range": [ABSENT - 0.04 if conditional else -0.04, 1.16]},
        "margin": {"l": 10, "r": 10, "t": 4, "b": 10},
    }


def _labels(shown: Parallel) -> list[dict[str, Any]]:
    """The ticks of the axes, as annotations."""
    ground = {"showarrow": False, "xanchor": "right", "xshift": -4, "bgcolor": "rgba(255,255,255,.75)"}
    ticks: list[tuple[int, float, str]] = []
    for k, scale in enumerate(shown.scales):
        labels = texts([number(tick) for tick in scale.ticks], 12)
        ticks += [(k, scale.place(tick), label) for tick, label in zip(scale.ticks, labels, strict=True)]
    ticks += [(len(shown.scales), 1.0, "best"), (len(shown.scales), 0.0, "worst")]
    return [{**ground, "x": k, "y": y, "text": label, "font": {"size": 10}} for k, y, label in ticks]
