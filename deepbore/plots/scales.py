"""From a parameter to an axis: where its values stand, their ticks and scale."""

import math
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from torch import Tensor

from deepbore.plots.style import plain
from deepbore.space.parameters import Integer, Parameter, Real

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LONG = 28  # characters of all the ticks' labels from which they are turned


def is_number(parameter: Parameter) -> bool:
    """Whether its values stand on an axis as they are."""
    return isinstance(parameter, Real | Integer)


def on_axis(parameter: Parameter, column: Tensor) -> np.ndarray:
    """Where a column of points stands on the parameter's axis (n): numbers as they are, choices at their index."""
    where = parameter.decode(column) if is_number(parameter) else parameter.to_level(column).tolist()
    return np.array(where, dtype=float)


def ticks(parameter: Parameter, most: int) -> list[Any]:
    """Up to about `most` native values to name on an axis: all choices, round numbers, powers of ten."""
    if isinstance(parameter, Integer) and parameter.levels <= most:
        return list(range(int(parameter.low), int(parameter.high) + 1))
    if isinstance(parameter, Real | Integer):
        low, high = float(parameter.low), float(parameter.high)
        values = log_ticks(low, high, most) if parameter.log else []
        values = values if len(values) > 1 else linear_ticks(low, high, most, isinstance(parameter, Integer))
        return [int(v) for v in values] if isinstance(parameter, Integer) else values
    choices: list[Any] = parameter.settings()["choices"]
    return choices[:: math.ceil(len(choices) / most)]


def log_ticks(low: float, high: float, most: int) -> list[float]:
    """1, 2 and 5 times powers of ten between the bounds, or only the powers, or every other, ... of them."""
    exponents = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for factors in ((1, 2, 5), (1, 3), (1,)):
        found = [float(f"{f}e{k}") for k in exponents for f in factors if low <= float(f"{f}e{k}") <= high]
        if len(found) <= most:
            return found
    return found[:: math.ceil(len(found) / most)]


def linear_ticks(low: float, high: float, most: int, whole: bool) -> list[float]:
    """Round numbers between the bounds."""
    from matplotlib.ticker import MaxNLocator  # noqa: PLC0415

    values = MaxNLocator(max(most - 1, 1), integer=whole).tick_values(low, high)
    found = [float(v) for v in values if low <= v <= high and (not whole or v == round(v))]
    return found if len(found) > 1 else [low, high]


def short(value: Any, most: int = 12) -> str:
    """A native value as a tick's label."""
    if not isinstance(value, float):
        return plain(value, most)
    digits, _, exponent = f"{value:.5e}".partition("e")
    if value and not -4 < int(exponent) < 6:
        return f"{float(digits):g}e{int(exponent)}"
    return f"{value:.6g}"


def dress(axes: "Axes", which: Literal["x", "y"], name: str, parameter: Parameter, most: int = 5) -> None:
    """Gives an axis the parameter's name, scale, limits and ticks."""
    axis = axes.xaxis if which == "x" else axes.yaxis
    most = most if is_number(parameter) else 2 * most
    shown = ticks(parameter, most)
    labels = [short(value) for value in shown]
    if isinstance(parameter, Real | Integer):
        scale = "log" if parameter.log else "linear"
        limits = _widened(float(parameter.low), float(parameter.high), parameter.log)
    else:
        scale, limits = "linear", (-0.5, parameter.levels - 0.5)  # type: ignore[operator]  # choices have levels
    axes.set(**{f"{which}scale": scale, f"{which}lim": limits, f"{which}label": plain(name)})
    axis.set_ticks(on_axis(parameter, parameter.encode(shown)), labels)
    axis.set_ticks([], minor=True)
    axes.tick_params(axis=which, labelsize=8)
    if which == "x" and sum(len(label) + 1 for label in labels) > LONG:
        axes.tick_params(axis="x", labelrotation=35)
        for label in axis.get_ticklabels():
            label.set(ha="right", rotation_mode="anchor")


def _widened(low: float, high: float, log: bool) -> tuple[float, float]:
    """The bounds with a margin of one in fifty, on the parameter's scale."""
    if log:
        margin = (high / low) ** 0.02
        return low / margin, high * margin
    return low - 0.02 * (high - low), high + 0.02 * (high - low)
