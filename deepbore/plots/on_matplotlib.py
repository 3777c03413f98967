"""matplotlib's pen: a `Chart` on axes; and figures, saving, plain text, colour maps, axes of parameters."""

import io
import math
import os
from collections.abc import Callable, Sequence
from textwrap import fill
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from deepbore.data.journal import replace_file
from deepbore.errors import MissingPackage, SettingError
from deepbore.plots.chart import Axis, Band, Bars, Chart, Heat, Level, Line, Points, Rule, Texts
from deepbore.plots.style import (
    GOOD,
    GREENS,
    GREY,
    PALE,
    UNIT,
    ParameterAxis,
    ValueAxis,
    number,
    short_names,
    shortened,
)
from deepbore.validation import as_path

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LONG = 28  # characters of all the ticks' labels from which they are turned
LETTERS = 12  # of a title on an inch

# --- figures ---------------------------------------------------------------------------------------------------------


def new_figure(width: float, height: float) -> "Figure":
    """An empty figure, in inches, which notebooks show.

    Raises:
        MissingPackage: without matplotlib.
    """
    try:
        from deepbore.plots.picture import Picture
    except ImportError:
        raise MissingPackage("plots need matplotlib: pip install 'deepbore[plots]'.") from None
    return Picture(figsize=(width, height), layout="constrained")


def new_axes(width: float, height: float) -> "Axes":
    """The one axes of an empty figure."""
    return new_figure(width, height).subplots()


def figure_of(axes: "Axes") -> "Figure":
    """The whole figure of some axes."""
    figure: Figure = axes.figure.figure  # of a part of a figure, too
    return figure


def save(figure: "Figure", path: str | os.PathLike[str]) -> None:
    """Writes a picture atomically; the suffix says the format. A link at the path is replaced."""
    place = as_path(path, "a picture")
    picture, suffix = io.BytesIO(), place.suffix.lstrip(".") or "png"
    if suffix.lower() not in (known := figure.canvas.get_supported_filetypes()):
        raise SettingError(f"a picture's suffix must be one of {', '.join(sorted(known))}, but got {place.name}.")
    figure.savefig(picture, format=suffix, dpi=150)
    replace_file(place, picture.getvalue())


# --- messages --------------------------------------------------------------------------------------------------------


def message(figure: "Figure | None", text: str) -> "Figure":
    """A figure that says why there is nothing to draw: the given one, or a low one."""
    figure = figure or new_figure(7.0, 1.0)
    figure.text(0.5, 0.5, text, ha="center", va="center", color="#666666", fontsize=10)
    return figure


def note(axes: "Axes", text: str) -> None:
    """Says in the middle of empty axes why they are empty."""
    axes.text(0.5, 0.5, text, ha="center", va="center", color="#666666", fontsize=9, transform=axes.transAxes)


def nothing_on(axes: "Axes | None", text: str) -> "Figure":
    """`message` for a picture with one axes, which may be given."""
    if axes is None:
        return message(None, text)
    axes.set_axis_off()
    note(axes, text)
    return figure_of(axes)


# --- text and colours ------------------------------------------------------------------------------------------------


def plain(text: Any, most: int = 24) -> str:
    """A user's text as one line of at most so many characters, without formulas ($ begins one)."""
    return shortened(text, most).replace("$", r"\$")


def plain_names(names: Sequence[Any], most: int = 24) -> list[str]:
    """Several plain texts, all different."""
    return [name.replace("$", r"\$") for name in short_names(names, most)]


def tick_labels(values: Sequence[Any], most: int = 12) -> list[str]:
    """Native values as the labels of an axis."""
    return plain_names([number(value) for value in values], most)


def thin_spines(axes: "Axes") -> None:
    """Leaves the left and the lower spine."""
    axes.spines[["top", "right"]].set_visible(False)


def legend(axes: "Axes", **settings: Any) -> None:
    """A legend on a pale ground without an edge, if anything has a name."""
    if axes.get_legend_handles_labels()[1]:
        axes.legend(**{"edgecolor": "none", "framealpha": 0.7, "fontsize": 9, **settings})


def _colours(*stops: str) -> Any:
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("deepbore", list(stops))  # a tuple of two is a colour to 3.8


def clear() -> Any:
    """The colour map of cells that show their hatching only."""
    from matplotlib.colors import ListedColormap

    return ListedColormap(["none"])


def root_scale() -> Any:
    """The scale of colours for pi: its square root, as most of a space is near 0 late in a run."""
    from matplotlib.colors import PowerNorm

    return PowerNorm(0.5, vmin=0, vmax=1)


# --- axes of parameters ----------------------------------------------------------------------------------------------


def dress(axes: "Axes", which: Literal["x", "y"], shown: ParameterAxis) -> None:
    """Gives one of the axes the name, scale, limits and ticks of a parameter."""
    axis = axes.xaxis if which == "x" else axes.yaxis
    labels = tick_labels(shown.ticks)
    kind, limits = "log" if shown.log else "linear", (shown.low, shown.high)
    axes.set(**{f"{which}scale": kind, f"{which}lim": limits, f"{which}label": plain(shown.name, 40)})
    axis.set_ticks(shown.places, labels)
    axis.set_ticks([], minor=True)
    axes.tick_params(axis=which, labelsize=8)
    if which == "x" and sum(len(label) + 1 for label in labels) > LONG:
        axes.tick_params(axis="x", labelrotation=35)
        for label in axis.get_ticklabels():
            label.set(ha="right", rotation_mode="anchor")


# --- a chart ---------------------------------------------------------------------------------------------------------

MARKS = {
    "circle": "o", "ring": "o", "x": "x", "thin x": "x", "dash": "_", "star": "*", "diamond": "D",
    "up": "^", "down": "v",
}  # fmt: skip
GROUND = {  # of words to the left of a place: white, so that lines may pass
    "ha": "right", "va": "center", "fontsize": 7.5,
    "bbox": {"facecolor": "white", "alpha": 0.75, "edgecolor": "none", "pad": 0.6},
}  # fmt: skip
DASHES = {"": "-", "dash": "--", "dot": ":"}
WIDE, PIXELS = 7.5, 95  # inches of a picture; pixels of the page for one of them


def drawn(chart: Chart, axes: "Axes | None" = None, path: str | os.PathLike[str] | None = None) -> "Figure":
    """A chart on given axes, or those of a new figure; saved, if there is a path."""
    axes = axes or new_axes(WIDE, max(1.6, chart.height / PIXELS))
    draw(chart, axes)
    axes.set_title(plain(chart.title, 90), fontsize=10)
    if chart.has_legend:
        legend(axes, loc="best" if _count(chart) < 1000 else "upper right", fontsize=8)
    if path is not None:
        save(figure_of(axes), path)
    return figure_of(axes)


def panels(
    charts: Sequence[Chart], figure: "Figure | None" = None, columns: int = 4, size: tuple[float, float] = (2.9, 2.5)
) -> "Figure":
    """Several charts beside each other, and below each other where there are more than so many columns."""
    columns = min(columns, len(charts))
    rows = math.ceil(len(charts) / columns)
    figure = figure or new_figure(max(size[0] * columns, 4.5), size[1] * rows + 0.2)
    grid = figure.subplots(rows, columns, squeeze=False).ravel()
    for k, (axes, chart) in enumerate(zip(grid, charts, strict=False)):
        draw(chart, axes)
        if k % columns and len({chart.y.title for chart in charts}) == 1:
            axes.set_ylabel("")
    for axes in grid[len(charts) :]:
        axes.set_axis_off()
    if titles := list(dict.fromkeys(chart.title for chart in charts)):
        figure.suptitle(fill(plain(titles[0], 110), int(LETTERS * figure.get_figwidth())), fontsize=10)
    return figure


def draw(chart: Chart, axes: "Axes") -> None:
    """The layers of a chart and its axes, without its title and its legend."""
    _dress(axes, "x", chart.x)
    _dress(axes, "y", chart.y)
    for order, layer in enumerate(chart.layers, 2):
        PENS[type(layer)](axes, layer, order)
    for which, shown in (("x", chart.x), ("y", chart.y)):
        if shown.from_zero:  # after the layers, whose highest value is the other end
            axes.set(**{f"{which}lim": (0, None)})
    thin_spines(axes)
    if chart.remark:
        note(axes, chart.remark)
        axes.set_yticks([])


def _count(chart: Chart) -> int:
    return sum(len(layer.x) for layer in chart.layers if isinstance(layer, Points))


def _dress(axes: "Axes", which: Literal["x", "y"], shown: Axis) -> None:
    """Gives one of the axes its title, scale and ticks."""
    if isinstance(shown.scale, ParameterAxis):
        dress(axes, which, shown.scale)
        return
    axis = axes.xaxis if which == "x" else axes.yaxis
    axis.set_visible(not shown.is_hidden)
    if shown.is_hidden:
        axes.spines[["bottom", "top"] if which == "x" else ["left", "right"]].set_visible(False)
    cut = isinstance(shown.scale, ValueAxis) and shown.scale.cut and shown.title
    axes.set(**{f"{which}label": plain(shown.title, 60) + (" (outliers at the edge)" if cut else "")})
    if isinstance(shown.scale, ValueAxis):
        limits = (shown.scale.low, shown.scale.high)
        axes.set(**{f"{which}scale": "log" if shown.scale.log else "linear", f"{which}lim": limits})
    if shown.form == "whole":
        axes.locator_params(axis=which, integer=True, min_n_ticks=1)
    if shown.form == "percent":
        axis.set_major_formatter(lambda share, _place: f"{share:.0%}")
    if shown.ticks:
        axis.set_ticks(range(len(shown.ticks)), plain_names(shown.ticks))
        ends = (-0.5, len(shown.ticks) - 0.5)
        axes.set(**{f"{which}lim": ends[::-1] if shown.is_reversed else ends})


def _points(axes: "Axes", layer: Points, order: int) -> None:
    symbols = np.full(len(layer.x), layer.symbols) if isinstance(layer.symbols, str) else np.array(layer.symbols)
    size = np.broadcast_to(layer.size, len(layer.x))
    name = plain(layer.name, 40) or None
    if layer.arms is not None:
        axes.vlines(layer.x, *layer.arms, color=layer.colour, alpha=0.5, lw=1.5, zorder=order)
    for symbol in dict.fromkeys(symbols.tolist()):
        which = symbols == symbol
        filled = {"facecolors": "none", "edgecolors": layer.colour} if symbol == "ring" else {"color": layer.colour}
        look = {"edgecolors": "black", "linewidths": 0.5, "facecolors": layer.colour} if symbol == "star" else filled
        axes.scatter(layer.x[which], layer.y[which], s=size[which] ** 2 * 0.5, marker=MARKS[symbol], label=name,
                     alpha=layer.opacity, zorder=order, clip_on=False, **look)  # fmt: skip
        name = None


def _line(axes: "Axes", layer: Line, order: int) -> None:
    look: dict[str, Any] = {
        "color": layer.colour,
        "lw": 0.8 * layer.width,
        "ls": DASHES[layer.dash],
        "alpha": layer.opacity,
    }
    look |= {"marker": "o", "ms": 3} if layer.is_marked else {}
    name = plain(layer.name, 40) or None
    kind = "steps-post" if layer.steps else "default"
    axes.plot(layer.x, layer.y, label=name, drawstyle=kind, zorder=order, **look)


def _band(axes: "Axes", layer: Band, order: int) -> None:
    axes.fill_between(layer.x, layer.low, layer.high, color=layer.colour, alpha=layer.opacity, lw=0, zorder=order)


def _bars(axes: "Axes", layer: Bars, order: int) -> None:
    name = plain(layer.name, 40) or None
    bars = axes.barh(layer.y, layer.length, left=layer.base, color=layer.colour, alpha=layer.opacity, height=0.7,
                     label=name, edgecolor=layer.colour, lw=0.5, zorder=order)  # fmt: skip
    if layer.ends:
        axes.bar_label(bars, list(layer.ends), padding=3, fontsize=8)
        axes.set_xlim(right=1.12 * float((layer.base + layer.length).max()) or 1.0)


def _heat(axes: "Axes", layer: Heat, _order: int) -> None:
    from matplotlib.colors import LogNorm, Normalize

    values = layer.values
    norm = root_scale() if values == UNIT else (LogNorm if values.log else Normalize)(values.low, values.high)
    colours = _colours(*GREENS) if layer.colour == GOOD else _colours("#ffffff", layer.colour)
    look = {"cmap": colours.reversed() if layer.less_is_better else colours, "norm": norm, "shading": "nearest"}
    axes.set_facecolor(PALE)
    mesh = axes.pcolormesh(layer.x, layer.y, np.ma.masked_invalid(layer.table), zorder=1, **look)
    if layer.partly is not None and layer.partly.any():
        lacking = np.ma.masked_array(layer.table, ~layer.partly)
        axes.pcolor(
            layer.x, layer.y, lacking, shading="nearest", hatch="///", cmap=clear(), edgecolors=GREY, linewidth=0
        )
    bar = figure_of(axes).colorbar(mesh, ax=axes, aspect=30)
    bar.ax.tick_params(labelsize=7)
    bar.set_label(plain(layer.name, 40), fontsize=8)
    if values == UNIT:
        bar.set_ticks([0, 0.05, 0.2, 0.5, 1.0], labels=["0", "0.05", "0.2", "0.5", "1"])


def _level(axes: "Axes", layer: Level, order: int) -> None:
    look: dict[str, Any] = {"levels": [layer.value], "colors": layer.colour, "linewidths": 1.3, "linestyles": "--"}
    border = axes.contour(layer.x, layer.y, layer.table, zorder=order, **look)
    if np.size(border.get_paths()[0].vertices):  # the region may be smaller than the table's step
        axes.plot([], [], color=layer.colour, lw=1.3, ls="--", label=plain(layer.name, 40) or None)


def _texts(axes: "Axes", layer: Texts, order: int) -> None:
    at: dict[str, Any] = {"ha": "center", "va": "bottom", "fontsize": 9} if layer.is_head else GROUND
    for x, y, words in zip(layer.x, layer.y, layer.words, strict=True):
        axes.text(x if layer.is_head else x - 0.05, y, plain(words, 40), zorder=order, **at)


def _rule(axes: "Axes", layer: Rule, order: int) -> None:
    look: dict[str, Any] = {"color": layer.colour, "lw": 1.0, "ls": DASHES[layer.dash], "zorder": order}
    name = plain(layer.name, 40) or None
    if layer.x is not None:
        axes.axvline(layer.x, label=name, **look)
    elif layer.y is not None:
        axes.axhline(layer.y, label=name, **look)


PENS: dict[type, Callable[[Any, Any, int], None]] = {
    Points: _points, Line: _line, Band: _band, Bars: _bars, Heat: _heat, Level: _level, Texts: _texts, Rule: _rule,
}  # fmt: skip
