"""What the pictures share: matplotlib figures, saving, plain text, colour maps, and axes of parameters."""

import io
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from deepbore.data.journal import replace_file
from deepbore.errors import MissingPackage, SettingError
from deepbore.plots.style import GOOD, GREENS, ParameterAxis, number, short_names, shortened
from deepbore.validation import as_path

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LONG = 28  # characters of all the ticks' labels from which they are turned

# --- figures ---------------------------------------------------------------------------------------------------------


def new_figure(width: float, height: float) -> "Figure":
    """An empty figure, in inches, outside of pyplot's state.

    Raises:
        MissingPackage: without matplotlib.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingPackage("plots need matplotlib: pip install 'deepbore[plots]'.") from None
    return Figure(figsize=(width, height), layout="constrained")


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


def finished(axes: "Axes", path: str | os.PathLike[str] | None = None, **settings: Any) -> "Figure":
    """The figure of axes over trials, with whole numbers, a legend and no frame; saved, if there is a path."""
    axes.locator_params(axis="x", integer=True, min_n_ticks=1)
    thin_spines(axes)
    legend(axes, **settings)
    if path is not None:
        save(figure_of(axes), path)
    return figure_of(axes)


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


def greens() -> Any:
    """The colour map of pi, from white to the colour of class 1."""
    return _colours(*GREENS)


def greys() -> Any:
    """The colour map of a standard deviation, from white to a light violet grey."""
    return _colours("#ffffff", "#c9c6dc", "#9a95bd")


def good_to_bad() -> Any:
    """The colour map of values, from grey for the worst to the colour of class 1 for the best."""
    return _colours("#d5d9dd", "#a9cdbd", GOOD)


def _colours(*stops: str) -> Any:
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("deepbore", stops)


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
