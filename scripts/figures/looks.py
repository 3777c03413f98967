"""What the pictures and findings of demonstrations have in common."""

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Picture

from figures.kinds import Claim, Finding
from figures.scores import evidence, verdict
from figures.statistics import Array, paired
from reporting import intervals

GREEN, ORANGE, BLUE, GREY = "#1a7f5a", "#d9822b", "#1f3b73", "#9aa0a6"


def panels(rows: int, columns: int, width: float = 2.6, height: float = 2.1, **sharing: bool) -> tuple[Picture, Array]:
    """A picture, and its axes (rows x columns) in the house's look."""
    picture = Picture(figsize=(width * columns, height * rows), layout="constrained")
    axes = picture.subplots(rows, columns, squeeze=False, **sharing)
    for each in axes.flat:
        each.tick_params(labelsize=7)
        each.spines[["top", "right"]].set_visible(False)
    return picture, axes


def band(axes: Axes, x: Array, curves: Array, colour: str, label: str = "") -> None:
    """The mean of the curves (seeds x n), with the band of its intervals where there are enough seeds."""
    of = [intervals.mean(column) for column in curves.T]
    low, high = np.transpose([each.interval for each in of])
    if np.isfinite(low).all():
        axes.fill_between(x, low, high, color=colour, alpha=0.15, lw=0)
    axes.plot(x, [each.mean for each in of], color=colour, lw=1.4, label=label)


def lower(claim: str, first: Mapping[int, float], second: Mapping[int, float]) -> Finding:
    """The finding that the first of two numbers of each seed is the lower."""
    compared = paired(first, second)
    return Finding(claim, verdict(Claim("", "", ""), compared), evidence(compared))


def shown(claim: str, holds: Mapping[int, bool], says: str) -> Finding:
    """The finding on something that holds or does not on each seed: reproduced if it does on at least 95 % of them."""
    if not holds:
        return Finding(claim, "no runs", "")
    share = float(np.mean(list(holds.values())))
    found = "reproduced" if share >= 0.95 else "refuted" if share <= 0.5 else "undecided"
    return Finding(claim, found, f"on {sum(holds.values())} of {len(holds)} seeds; {says}")


def rounded(values: Array, digits: int = 4) -> list[float]:
    """As rows keep numbers."""
    return [float(f"{value:.{digits}g}") for value in np.asarray(values, dtype=float).ravel()]
