"""Every trial as a line through its parameters, from their declarations alone. Light to import."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from deepbore.data.ranking import is_feasible
from deepbore.data.replay import Record
from deepbore.data.trial import Trial, sign_of
from deepbore.plots.page.charts import Chart, Section, finished, number, some_of, texts
from deepbore.plots.style import INFEASIBLE
from deepbore.plots.value_axis import ValueAxis

LINES, MOST = 300, 14
COLOURS = ["#d5d9dd", "#c3d3cb", "#a9cdbd", "#7dbb9f", "#4a9e7d", "#1a7f5a"]  # from the worst to the best
RED = "#e0a39b"
ABSENT = -0.1  # where a line passes the axis of a parameter that its trial does not have


@dataclass(frozen=True)
class Scale:
    """Where a parameter's values stand on an upright axis from 0 to 1.

    Attributes:
        low: least number; unused for choices.
        high: greatest number.
        log: whether the scale is logarithmic.
        choices: of an ordinal or a categorical parameter, in order.
        step: from each number that a value can be to the next; 0 for real ones.
    """

    low: float = 0.0
    high: float = 1.0
    log: bool = False
    choices: tuple[Any, ...] = ()
    step: float = 0.0

    @classmethod
    def of(cls, declared: Mapping[str, Any], seen: Sequence[Any]) -> "Scale":
        """From a parameter's declaration; of a type of somebody's own from the values that were seen."""
        low, high = declared.get("low"), declared.get("high")
        if isinstance(low, (int, float)) and isinstance(high, (int, float)) and low < high:
            step = declared.get("step") or (1 if declared.get("type") == "integer" else 0)
            return cls(float(low), float(high), declared.get("log") is True and low > 0, step=float(step))
        given = declared.get("choices")
        if isinstance(given, list) and given:
            return cls(choices=tuple(given))
        return cls(choices=tuple(sorted({str(value) for value in seen})) or ("",))

    def place(self, value: Any) -> float:
        """The height of a value."""
        if self.choices:
            known = [k for k, choice in enumerate(self.choices) if choice == value and type(choice) is type(value)]
            known = known or [k for k, choice in enumerate(self.choices) if str(choice) == str(value)] or [0]
            return known[0] / max(1, len(self.choices) - 1) if len(self.choices) > 1 else 0.5
        if not self.log:
            return (float(value) - self.low) / (self.high - self.low)
        return math.log(float(value) / self.low) / math.log(self.high / self.low)

    @property
    def ticks(self) -> list[tuple[float, str]]:
        """Heights and their labels."""
        if self.choices:
            step = math.ceil(len(self.choices) / 8)
            shown = self.choices[::step]
            labels = texts([number(choice) for choice in shown], 12)
            return [(self.place(choice), label) for choice, label in zip(shown, labels, strict=True)]
        if not self.log:
            half = (self.high - self.low) / 2
            values = [self.low, self.low + (half // self.step * self.step if self.step else half), self.high]
            return [(self.place(value), number(value)) for value in values]
        powers = list(range(math.ceil(math.log10(self.low)), math.floor(math.log10(self.high)) + 1))
        values = [10.0**k for k in powers[:: max(1, math.ceil(len(powers) / 6))]]
        values = values if len(values) > 1 else [self.low, self.high]
        return [(self.place(value), number(value)) for value in values]


def parallel_section(record: Record) -> Section | None:
    """The lines of a run with at least two parameters and a trial that has ended; else None."""
    trials = some_of([t for t in finished(record.trials) if t.task is None], record.direction, LINES)
    if len(record.space) < 2 or not trials:
        return None
    names = list(record.space)[:MOST]
    more = f" The first {MOST} of {len(record.space)} parameters." if len(record.space) > MOST else ""
    several = " Of several values the first one counts." if record.k > 1 else ""
    return Section("Parallel coordinates", _SAYS + several + more, [_chart(record, names, trials)])


_SAYS = (
    "Every trial is a line through its parameters to its value: the greener the better; failed ones are red and end "
    "before it, those that violate a constraint are pink. A line below the axes lacks the parameter."
)


def _chart(record: Record, names: Sequence[str], trials: Sequence[Trial]) -> Chart:
    scales = {
        name: Scale.of(record.space[name], [t.params[name] for t in trials if name in t.params]) for name in names
    }
    good = _good(record, trials)
    apart = np.random.default_rng(0).uniform(-0.015, 0.015, (len(trials), len(names)))
    counted = [is_feasible(trial) for trial in trials]
    ranked = [int(row) for row in np.argsort(good, kind="stable") if counted[row]]  # the worst first
    buckets = {RED: [row for row in range(len(good)) if np.isnan(good[row])]}
    buckets[INFEASIBLE] = [row for row in range(len(good)) if not counted[row] and not np.isnan(good[row])]
    buckets |= {colour: list(rows) for colour, rows in zip(COLOURS, np.array_split(ranked, len(COLOURS)), strict=True)}
    traces = []
    for colour, rows in buckets.items():
        lines = [_line(trials[row], names, scales, apart[row], good[row]) for row in rows]
        if lines:
            traces.append(_trace(colour, lines, [trials[row].id for row in rows], len(names)))
    return Chart(traces, _layout(record, names, scales), 380, 96 * (len(names) + 1))


def _good(record: Record, trials: Sequence[Trial]) -> np.ndarray:
    """How good each value is on its axis, the axis of feasible ones, 0 to 1; NaN for failures (n)."""
    values = np.array([np.nan if t.value is None else t.value for t in trials], dtype=float)
    sign, counted = sign_of(record.direction), np.array([is_feasible(trial) for trial in trials], dtype=bool)
    shown = ValueAxis.of(values[counted], sign) or ValueAxis.of(values, sign)
    if shown is None:
        return values
    values = values.clip(shown.low, shown.high)
    turned = np.log(values) if shown.log else values
    low, high = (math.log(shown.low), math.log(shown.high)) if shown.log else (shown.low, shown.high)
    place = np.clip((turned - low) / (high - low), 0, 1)
    return np.asarray(1 - place if sign > 0 else place)


def _line(
    trial: Trial, names: Sequence[str], scales: Mapping[str, Scale], apart: np.ndarray, good: float
) -> list[float | None]:
    heights: list[float | None] = []
    for name, aside in zip(names, apart, strict=True):
        if name not in trial.params:
            heights.append(ABSENT + float(aside))
        else:
            heights.append(scales[name].place(trial.params[name]) + (float(aside) if scales[name].choices else 0.0))
    return [*heights, None if np.isnan(good) else float(good)]


def _trace(colour: str, lines: Sequence[Sequence[float | None]], ids: Sequence[int], d: int) -> dict[str, Any]:
    """Lines of one colour as one trace, with gaps between them."""
    across = [*range(d + 1), None]
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "x": across * len(lines),
        "y": [None if y is None else round(y, 4) for line in lines for y in (*line, None)],
        "trials": [row for row in ids for _ in across],
        "line": {"color": colour, "width": 1.6 if colour == COLOURS[-1] else 1},
        "marker": {"color": colour, "size": 4},
        "cliponaxis": False,
        "showlegend": False,
    }


def _layout(record: Record, names: Sequence[str], scales: Mapping[str, Scale]) -> dict[str, Any]:
    d = len(names)
    upright = {"type": "line", "y0": 0, "y1": 1, "line": {"color": "#59636e", "width": 1}, "layer": "below"}
    ticks = [(k, height, label) for k, name in enumerate(names) for height, label in scales[name].ticks]
    ground = {"showarrow": False, "xanchor": "right", "xshift": -4, "bgcolor": "rgba(255,255,255,.75)"}
    labels = [{**ground, "x": k, "y": y, "text": label, "font": {"size": 10}} for k, y, label in ticks]
    best, worst = ("best", "worst")
    labels += [{**ground, "x": d, "y": y, "text": label, "font": {"size": 10}} for y, label in ((1, best), (0, worst))]
    heads = [{"x": k, "y": 1.05, "text": f"<b>{name}</b>", "showarrow": False, "yanchor": "bottom",
              "font": {"size": 11}} for k, name in enumerate([*texts(names, 16), "value"])]  # fmt: skip
    absent = any("when" in record.space[name] for name in names)
    hidden = {"visible": False, "fixedrange": True}
    return {
        "shapes": [{**upright, "x0": k, "x1": k} for k in range(d + 1)],
        "annotations": [*labels, *heads],
        "xaxis": {**hidden, "range": [-0.65, d + 0.35]},
        "yaxis": {**hidden, "range": [ABSENT - 0.04 if absent else -0.04, 1.16]},
        "margin": {"l": 10, "r": 10, "t": 4, "b": 10},
    }
