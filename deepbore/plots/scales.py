"""From a parameter to an axis: where its values stand, its ticks and limits."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from torch import Tensor

from deepbore.plots.style import plain, plain_names
from deepbore.space import SearchSpace
from deepbore.space.parameters import Parameter, Scale

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FURTHEST = 307.0  # power of ten that float64 still has
LONG = 28  # characters of all the ticks' labels from which they are turned


def on_axis(parameter: Parameter, column: Tensor) -> np.ndarray:
    """Where a column of points stands on the parameter's axis (n): numbers as they are, choices at their index."""
    where = parameter.decode(column) if parameter.is_numeric else parameter.to_level(column).tolist()
    return np.array(where, dtype=float)


def tick_labels(values: Sequence[Any], most: int = 12) -> list[str]:
    """Native values as the labels of an axis."""
    return plain_names([short(value) if isinstance(value, float) else value for value in values], most)


def short(value: Any, most: int = 12) -> str:
    """A native value as a tick's label."""
    if not isinstance(value, float):
        return plain(value, most)
    digits, _, exponent = f"{value:.5e}".partition("e")
    if value and not -4 < int(exponent) < 6:
        return f"{float(digits):g}e{int(exponent)}"
    return f"{value:.6g}"


def dress(axes: "Axes", which: Literal["x", "y"], name: str, space: SearchSpace, most: int = 5) -> None:
    """Gives an axis the name, scale, limits and ticks of a parameter of the space."""
    parameter, place = space.parameters[name], space.names.index(name)
    axis = axes.xaxis if which == "x" else axes.yaxis
    shown = parameter.ticks(most if parameter.is_numeric else 2 * most)
    labels = tick_labels(shown)
    scale = parameter.scale
    limits = (-0.5, parameter.upper + 0.5) if scale is None else _widened(scale)
    kind = "log" if scale is not None and scale.log else "linear"
    axes.set(**{f"{which}scale": kind, f"{which}lim": limits, f"{which}label": plain_names(space.names)[place]})
    axis.set_ticks(on_axis(parameter, parameter.encode(shown)), labels)
    axis.set_ticks([], minor=True)
    axes.tick_params(axis=which, labelsize=8)
    if which == "x" and sum(len(label) + 1 for label in labels) > LONG:
        axes.tick_params(axis="x", labelrotation=35)
        for label in axis.get_ticklabels():
            label.set(ha="right", rotation_mode="anchor")


def _widened(scale: Scale) -> tuple[float, float]:
    """The bounds with a margin of one in fifty, along the scale."""
    low, high = scale.low, scale.high
    if scale.log:
        start, end = math.log10(low), math.log10(high)
        margin = 0.02 * (end - start)
        return 10 ** max(start - margin, -FURTHEST), 10 ** min(end + margin, FURTHEST)
    return low - 0.02 * (high - low), high + 0.02 * (high - low)
