"""What all pictures share: colours, new figures, plain text, a message where there is nothing to draw."""

import io
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deepbore.data.journal import replace_file
from deepbore.errors import MissingPackage, SettingError
from deepbore.plots.names import short_names, shortened

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

GOOD, BAD, BEST, TAU, FAILED = "#1a7f5a", "#b8bcc2", "#1f3b73", "#d9822b", "#c0392b"
GREY = "#8a9099"  # what is not good, on white
INFEASIBLE = "#d08a9a"  # values that violate a constraint
EARLIER = "#9ab0c9"  # values of an earlier task
PALE, STAR = "#f3f5f6", "#f2b705"  # where parameters are inactive; the best configuration


def new_figure(width: float, height: float) -> "Figure":
    """An empty figure of so many inches, outside of pyplot's state.

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


def require_study(study: Any) -> None:
    """Raises SettingError unless it is a study, or looks like one."""
    if not (hasattr(study, "observations") and hasattr(study, "recipe")):
        raise SettingError(f"what is drawn is a study, but got {study!r:.100}. Give `study`, or `result.study`.")


def save(figure: "Figure", path: str | os.PathLike[str]) -> None:
    """Writes a picture, whole or not at all; the suffix says the format. A link in its place is replaced."""
    picture, suffix = io.BytesIO(), Path(path).suffix.lstrip(".") or "png"
    if suffix.lower() not in (known := figure.canvas.get_supported_filetypes()):
        raise SettingError(f"a picture's suffix must be one of {', '.join(sorted(known))}, but got {Path(path).name}.")
    figure.savefig(picture, format=suffix, dpi=150)
    replace_file(Path(path), picture.getvalue())


def figure_of(axes: "Axes") -> "Figure":
    """The whole figure that axes stand in."""
    figure: Figure = axes.figure.figure  # of a part of a figure, too
    return figure


def message(figure: "Figure | None", text: str) -> "Figure":
    """A figure that says why there is nothing to draw: the given one, or a low one."""
    figure = figure or new_figure(7.0, 1.0)
    figure.text(0.5, 0.5, text, ha="center", va="center", color="#666666", fontsize=10)
    return figure


def note(axes: "Axes", text: str) -> None:
    """Says in the middle of empty axes why they are empty."""
    axes.text(0.5, 0.5, text, ha="center", va="center", color="#666666", fontsize=9, transform=axes.transAxes)


def nothing_on(axes: "Axes | None", text: str) -> "Figure":
    """`message` where a picture has one axes, which may be given."""
    if axes is None:
        return message(None, text)
    axes.set_axis_off()
    note(axes, text)
    return figure_of(axes)


def plain(text: Any, most: int = 24) -> str:
    """Text from a user as one line of at most so many characters, with no formula in it ($ begins one)."""
    return shortened(text, most).replace("$", r"\$")


def plain_names(names: Sequence[Any], most: int = 24) -> list[str]:
    """Several of them, which differ."""
    return [name.replace("$", r"\$") for name in short_names(names, most)]


def thin_spines(axes: "Axes") -> None:
    """Leaves the left and the lower spine."""
    axes.spines[["top", "right"]].set_visible(False)


def greens() -> Any:
    """The colour map of pi, from white to the colour of class 1."""
    return _colours("#ffffff", "#b9dccd", GOOD)


def greys() -> Any:
    """The colour map of a standard deviation, from white to a light violet grey."""
    return _colours("#ffffff", "#c9c6dc", "#9a95bd")


def clear() -> Any:
    """The colour map of what only its hatching shows."""
    from matplotlib.colors import ListedColormap

    return ListedColormap(["none"])


def good_to_bad() -> Any:
    """The colour map of values, from grey for the worst to the colour of class 1 for the best."""
    return _colours("#d5d9dd", "#a9cdbd", GOOD)


def _colours(*stops: str) -> Any:
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("deepbore", stops)


def root_scale() -> Any:
    """The scale of colours for pi: its square root, as most of a space is near 0 late in a run."""
    from matplotlib.colors import PowerNorm

    return PowerNorm(0.5, vmin=0, vmax=1)


def legend(axes: "Axes", **settings: Any) -> None:
    """A legend on a pale ground without an edge, if anything has a name."""
    if axes.get_legend_handles_labels()[1]:
        axes.legend(**{"edgecolor": "none", "framealpha": 0.7, "fontsize": 9, **settings})
