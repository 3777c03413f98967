"""The classification problem over iterations: BORE's figure 9, labels that flip, and 13, epochs of training."""

import math
from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure as Picture

import deepbore
from deepbore.data.observations import Observations
from figures.kinds import Demonstration, Finding, Numbers
from figures.looks import BLUE, GREEN, ORANGE, panels, shown
from figures.statistics import Array
from reporting.tables import table

# --- figure 9 ---------------------------------------------------------------------------------------------------------

GAMMA = 1 / 4


def noise(seed: int, n: int) -> Array:
    """n values of f(x) = 0 with standard normal noise."""
    return np.random.default_rng(seed).normal(size=n)


def labels(values: Array) -> Array:
    """The label of each value after each iteration (n x n); -1 for values that were not there yet."""
    space = deepbore.SearchSpace({"x": deepbore.Real(0, 1)})
    observations, label = Observations(space), deepbore.ThresholdLabels(GAMMA)
    found = np.full((len(values), len(values)), -1.0)
    for row, value in enumerate(values):
        observations.add({"x": [row / len(values)]}, [float(value)])
        found[row, : row + 1] = label(observations).z[:, 0].numpy()
    return found


def compute_flips(seed: int, n: int) -> Numbers:
    """How many labels of earlier values change from one iteration to the next."""
    z = labels(noise(seed, n))
    flips = [int((z[row, :row] != z[row - 1, :row]).sum()) for row in range(1, n)]
    return {"most": max(flips), "mean": float(f"{np.mean(flips):.3g}"), "good": float(f"{np.mean(z[-1] == 1):.3g}")}


def draw_flips(numbers: Mapping[int, Numbers]) -> Picture:
    """Values, their ranks and their labels over the iterations, from top to bottom."""
    values = noise(min(numbers), 40)
    z = labels(values)
    there = z >= 0
    ranks = np.array([[np.mean(values[: row + 1] <= y) for y in values] for row in range(len(values))])
    shown_values = {"values": np.broadcast_to(values, z.shape), "share of lower values": ranks, "labels": z}
    picture, axes = panels(1, 3, 2.6, 2.6)
    for place, (title, of) in zip(axes[0], shown_values.items(), strict=True):
        place.imshow(np.where(there, of, np.nan), cmap="viridis", interpolation="nearest")
        place.set_title(title, fontsize=8)
        place.set_xlabel("evaluation", fontsize=7)
    axes[0, 0].set_ylabel("iteration", fontsize=7)
    return picture


def found_flips(numbers: Mapping[int, Numbers]) -> list[Finding]:
    """What appendix F says."""
    few = {seed: row["most"] <= 1 for seed, row in numbers.items()}
    return [shown("at most one earlier label flips in an iteration", few, "over all iterations")]


def written_flips(numbers: Mapping[int, Numbers]) -> str:
    """Markdown: a line for each seed."""
    head = ["seed", "flips in an iteration, at most", "on average", "share of good labels at the end"]
    return table(head, [[str(s), *(str(row[k]) for k in ("most", "mean", "good"))] for s, row in numbers.items()])


# --- figure 13 --------------------------------------------------------------------------------------------------------

SETTINGS = ((100, 64), (100, 32), (800, 64), (800, 32))  # S, B


def epochs(n: int, steps: int, batch: int) -> int:
    """Effective epochs in iteration n: floor(S / ceil(n / B)) (appendix J.3)."""
    return steps // math.ceil(n / batch)


def compute_epochs(seed: int, n: int) -> Numbers:
    """Epochs over the iterations; nothing is random."""
    del seed
    return {f"S {s}, B {b}": [epochs(row, s, b) for row in range(1, n + 1)] for s, b in SETTINGS}


def draw_epochs(numbers: Mapping[int, Numbers]) -> Picture:
    """A line for each setting."""
    picture, axes = panels(1, 1, 4.5, 2.6)
    looks = zip((BLUE, GREEN, BLUE, GREEN), ("-", "-", "--", "--"), strict=True)
    for (name, of), (colour, line) in zip(next(iter(numbers.values())).items(), looks, strict=True):
        axes[0, 0].step(range(1, len(of) + 1), of, where="post", color=colour, ls=line, label=name)
    axes[0, 0].set(yscale="log", xlabel="iteration", ylabel="effective epochs")
    axes[0, 0].axvline(64, color=ORANGE, lw=0.8)
    axes[0, 0].legend(frameon=False, fontsize=7)
    return picture


def found_epochs(numbers: Mapping[int, Numbers]) -> list[Finding]:
    """What appendix J.3 says."""
    falling = {seed: all(np.all(np.diff(of) <= 0) for of in row.values()) for seed, row in numbers.items()}
    example = {seed: epochs(512, 800, 64) == 100 and epochs(64, 800, 64) == 800 for seed in numbers}
    ours = {seed: deepbore.Training().steps == 100 and deepbore.Training().batch_size == 64 for seed in numbers}
    return [
        shown("epochs never increase with the iterations", falling, "every setting"),
        shown("S 800 and B 64 make 800 epochs up to n = 64, and 100 at n = 512", example, "by the formula"),
        shown("S 100 and B 64 are what deepbore's networks have by default", ours, "`deepbore.Training()`"),
    ]


def written_epochs(numbers: Mapping[int, Numbers]) -> str:
    """Markdown: epochs at some iterations."""
    row = next(iter(numbers.values()))
    at = [n for n in (1, 64, 65, 128, 256, 512) if n <= len(next(iter(row.values())))]
    return table(["epochs at n =", *map(str, at)], [[name, *(str(of[n - 1]) for n in at)] for name, of in row.items()])


FIGURES = (
    Demonstration(
        name="bore-9",
        paper="BORE, figure 9 (appendix F)",
        caption="Values, ranks and labels of a function that is noise only, gamma 1/4, as evaluations come in.",
        reports="Between iterations at most one label of an earlier evaluation flips.",
        compute=compute_flips,
        draw=draw_flips,
        findings=found_flips,
        table=written_flips,
        size=200,
        seeds=20,
        tiny=12,
    ),
    Demonstration(
        name="bore-13",
        paper="BORE, figure 13 (appendix J.3)",
        caption="Effective epochs of training in each iteration, by the number S of steps and the size B of batches.",
        reports="With a fixed number of steps, epochs fall as evaluations come in, and the time of training does not "
        "grow. BORE-MLP has S = 100 and B = 64.",
        departures="It is a formula: one seed says all. deepbore takes S steps in each iteration, on rows drawn from "
        "batches of B.",
        compute=compute_epochs,
        draw=draw_epochs,
        findings=found_epochs,
        table=written_epochs,
        size=512,
        seeds=1,
        tiny=8,
    ),
)
