"""`comparison`: the best value so far of several runs, with bands where some are repetitions of others."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, get_args

import numpy as np

from deepbore.checks import one_of
from deepbore.data.trial import Direction, sign_of
from deepbore.errors import SettingError
from deepbore.plots.style import figure_of, legend, new_axes, note, plain, save, thin_spines
from deepbore.plots.value_axis import ValueAxis

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = ["#1f3b73", "#d9822b", "#1a7f5a", "#8e44ad", "#c0392b", "#2f8fb3", "#7a5c2e", "#5f6b76"]
FEW = 4  # runs from which the band holds the middle half of them, and not all


@dataclass(frozen=True)
class Curves:
    """Runs that differ in their seeds only.

    Attributes:
        name: of them all.
        bests: of each run the best value after each finished trial, in the user's sign; NaN before the first value.
    """

    name: str
    bests: Sequence[np.ndarray]

    @property
    def begun(self) -> list[np.ndarray]:
        """Those of the runs in which a trial is finished."""
        return [best for best in self.bests if len(best)]

    @property
    def length(self) -> int:
        """How many trials each of these has at least."""
        return min(map(len, self.begun), default=0)

    def after(self, n: int) -> np.ndarray:
        """The best values of these after n >= 1 trials."""
        return np.array([best[n - 1] for best in self.begun])

    @property
    def band(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Lower edge, median and upper edge after each trial that all of these have (up to `length`)."""
        together = np.array([best[: self.length] for best in self.begun])
        share = 25.0 if len(together) >= FEW else 0.0
        edges: np.ndarray = np.nanpercentile(together, [share, 50.0, 100 - share], axis=0)
        return edges[0], edges[1], edges[2]


def comparison(
    groups: Sequence[Curves],
    *,
    direction: Direction = "minimize",
    title: str = "",
    path: str | os.PathLike[str] | None = None,
    axes: "Axes | None" = None,
) -> "Figure":
    """A line for each group: the median of its runs, in a band from the worst to the best run, or, of four runs and
    more, of the middle half of them.

    Args:
        groups: what is compared.
        direction: of the values.
        title: of the picture.
        path: where to save it; None for nowhere.
        axes: where to draw; None for a new figure.

    Raises:
        MissingPackage: without matplotlib.
    """
    if not isinstance(groups, Sequence) or not all(isinstance(group, Curves) for group in groups):
        raise SettingError(f"groups must be a list of Curves, but got {groups!r:.100}. Give Curves(name, [values]).")
    one_of(get_args(Direction), direction=direction)
    axes = axes or new_axes(7.5, 4.4)
    axes.set(xlabel="trials", ylabel="best value so far", title=plain(title, 80))
    drawn = [_draw(axes, group, COLOURS[i % len(COLOURS)]) for i, group in enumerate(groups) if _has_value(group)]
    shown = ValueAxis.of(np.concatenate(drawn), sign_of(direction)) if drawn else None
    if shown is None:
        note(axes, "no value yet")
    else:
        axes.set(yscale="log" if shown.log else "linear", ylim=(shown.low, shown.high))
    axes.locator_params(axis="x", integer=True, min_n_ticks=1)
    thin_spines(axes)
    legend(axes)
    if path is not None:
        save(figure_of(axes), path)
    return figure_of(axes)


def _has_value(group: Curves) -> bool:
    return bool(group.length) and bool(np.isfinite(group.after(group.length)).any())


def _draw(axes: "Axes", group: Curves, colour: str) -> np.ndarray:
    """Draws one group; returns the values that are drawn."""
    low, middle, high = _from_first_value(group)
    trials = np.arange(group.length - len(middle) + 1, group.length + 1)
    n = len(group.begun)
    name = plain(group.name, 40) + (f" ({n} runs)" if n > 1 else "")
    axes.step(trials, middle, where="post", color=colour, lw=1.8, label=name, zorder=3)
    if n > 1:
        axes.fill_between(trials, low, high, step="post", color=colour, alpha=0.18, lw=0)
    return np.concatenate([low, middle, high])


def _from_first_value(group: Curves) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The band from the trial on after which some run has a value."""
    first = int(np.isfinite([best[: group.length] for best in group.begun]).any(0).argmax())
    cut = Curves(group.name, [best[first : group.length] for best in group.begun])
    return cut.band
