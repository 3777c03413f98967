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
from deepbore.plots.chart import Axis, Chart, Layer, Line, Texts
from deepbore.plots.on_matplotlib import drawn, new_axes, nothing_on
from deepbore.plots.sources import finished_trials, first_values, names_of_values, record_of, require_study, some_of
from deepbore.plots.style import INFEASIBLE, ValueAxis, number, short_names

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
    good: np.ndarray
    feasible: np.ndarray
    named: str = "value"

    @classmethod
    def of(cls, record: Ledger, names: Sequence[str], most: int) -> "Parallel":
        """The lines of at most so many finished trials of a record, without those of earlier tasks."""
        own = [trial for trial in finished_trials(record.trials) if trial.task is None]
        trials = some_of(own, record.direction, most)
        scales = [DeclaredScale.of(record.space[name], _seen(trials, name)) for name in names]
        heights = np.array([_heights(trial, names, scales) for trial in trials]).reshape(len(trials), len(names))
        moves = np.isnan(heights) | np.array([bool(scale.choices) for scale in scales], dtype=bool)
        apart = np.random.default_rng(0).uniform(-APART, APART, heights.shape)
        heights = np.where(np.isnan(heights), ABSENT, heights) + np.where(moves, apart, 0)
        values, sign = first_values(trials), sign_of(record.direction)
        feasible = np.array([is_feasible(trial) for trial in trials], dtype=bool)
        axis = ValueAxis.of(values[feasible], sign, margin=0) or ValueAxis.of(values, sign, margin=0)
        place = values if axis is None else axis.place(values)
        good = 1 - place if sign > 0 else place
        return cls(names, scales, trials, heights, good, feasible, names_of_values(record)[0])

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


# --- the chart -------------------------------------------------------------------------------------------------------

MOST, LINES = 12, 500
COLOURS = ["#d5d9dd", "#c3d3cb", "#a9cdbd", "#7dbb9f", "#4a9e7d", "#1a7f5a"]  # from the worst to the best
RED = "#e0a39b"


def parallel_chart(shown: Parallel, *, conditional: bool) -> Chart:
    """A line for each trial, of one colour for each sixth of them, the best on top; the best value is above."""
    d, names = len(shown.names), [*short_names(shown.names, 16), *short_names([shown.named], 16)]
    sixths = np.array_split(shown.ranked, len(COLOURS))
    groups = [(RED, shown.failed), (INFEASIBLE, shown.beyond), *zip(COLOURS, sixths, strict=True)]
    low = ABSENT - 0.04 if conditional else -0.04
    layers: list[Layer] = [
        *(Line(np.full(2, float(k)), np.array([0.0, 1.0]), colour="#59636e", width=1.2) for k in range(d + 1)),
        *(_lines(shown, colour, rows) for colour, rows in groups if len(rows)),
        _ticks(shown, conditional),
        Texts(np.arange(d + 1.0), np.full(d + 1, 1.05), names, is_head=True),
    ]
    across, up = (Axis(scale=ValueAxis(*ends), is_hidden=True) for ends in ((-0.65, d + 0.35), (low, 1.16)))
    return Chart(
        "each trial as a line through its parameters, the best value on top", layers, across, up,
        "" if shown.trials else "No trial is finished yet.", height=380, has_legend=False, turns=96 * (d + 1),
    )  # fmt: skip


def _lines(shown: Parallel, colour: str, rows: np.ndarray) -> Line:
    """Lines of one colour as one, with gaps between them."""
    table = np.column_stack([shown.heights[rows], shown.good[rows], np.full(len(rows), np.nan)])
    across = np.tile(np.arange(table.shape[1], dtype=float), len(rows))
    trials = np.repeat([shown.trials[row].id for row in rows], table.shape[1])
    width = 1.8 if colour == COLOURS[-1] else 1.0
    return Line(across, table.ravel().round(4), colour=colour, width=width, trials=trials)


def _ticks(shown: Parallel, conditional: bool) -> Texts:
    """Words to the left of the axes, and where lines of trials without a parameter pass."""
    places: list[tuple[float, float, str]] = []
    for k, scale in enumerate(shown.scales):
        labels = short_names([number(tick) for tick in scale.ticks], 12)
        places += [(k, scale.place(tick), label) for tick, label in zip(scale.ticks, labels, strict=True)]
    places += [(len(shown.scales), 1.0, "best"), (len(shown.scales), 0.0, "worst")]
    if conditional and len(lacking := np.flatnonzero((shown.heights < ABSENT / 2).any(0))):
        places.append((float(lacking[0]), ABSENT, "inactive"))
    x, y, words = zip(*places, strict=True)
    return Texts(np.array(x, dtype=float), np.array(y), words)


def parallel_coordinates_chart(study: "Study", *, parameters: Sequence[str] | None = None) -> Chart:
    """`parallel_coordinates` as a record; see there."""
    require_study(study)
    names = _names(study, parameters)
    conditional = any(study.space.parameters[name].when is not None for name in names)
    return parallel_chart(Parallel.of(record_of(study), names, LINES), conditional=conditional)


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
    chart = parallel_coordinates_chart(study, parameters=parameters)
    if chart.remark:
        return nothing_on(axes, chart.remark)
    width = 1.15 * (chart.x.scale.high if isinstance(chart.x.scale, ValueAxis) else 0)
    return drawn(chart, axes or new_axes(max(width, 5.0) + 0.6, 4.0))


def _names(study: "Study", parameters: Sequence[str] | None) -> list[str]:
    if parameters is None and (len(study.space) <= MOST or not study.classifier.ready):
        return study.space.names[:MOST]
    from deepbore.plots.slice_charts import chosen  # needs torch

    return chosen(study, parameters, MOST)
