"""Densities of good and of other points, and their ratio: BORE's figures 1 and 2."""

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure as Picture
from scipy import stats

from deepbore.problems import SineParabola
from figures.kinds import Demonstration, Finding, Numbers
from figures.looks import BLUE, GREEN, GREY, ORANGE, panels, shown
from figures.statistics import Array
from reporting.tables import table

# --- figure 1 ---------------------------------------------------------------------------------------------------------

GAMMA, NOISE = 1 / 3, 0.2
X = np.linspace(-1, 2, 601)
F = np.array([SineParabola()({"x0": float(x)}) for x in X])


def observed(seed: int, n: int) -> tuple[Array, Array]:
    """n uniform points with noisy values."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 2, n)
    return x, np.interp(x, X, F) + rng.normal(0, NOISE, n)


def densities(x: Array, y: Array) -> tuple[Array, Array]:
    """l and g on the grid, by kernel density estimates."""
    good = y <= np.quantile(y, GAMMA)
    l, g = (stats.gaussian_kde(part)(X) for part in (x[good], x[~good]))  # noqa: E741  # the paper's names
    return l, g


def expected_improvement(tau: float) -> Array:
    """Of y = f(x) + noise over tau, exactly (BORE eq. 3)."""
    nu = (tau - F) / NOISE
    return NOISE * (nu * stats.norm.cdf(nu) + stats.norm.pdf(nu))


def compute_observed(seed: int, n: int) -> Numbers:
    """How the exact ratio, and its estimate by densities, compare with expected improvement."""
    x, y = observed(seed, n)
    tau = float(np.quantile(y, GAMMA))
    pi = stats.norm.cdf((tau - F) / NOISE)  # the exact class probability: x is uniform
    improvement, (l, g) = expected_improvement(tau), densities(x, y)  # noqa: E741  # as above
    found = {
        "exact": stats.spearmanr(pi, improvement).statistic,
        "estimated": stats.spearmanr(l / g, improvement).statistic,
        "off": abs(X[(l / g).argmax()] - X[F.argmin()]),
    }
    return {name: float(f"{value:.4g}") for name, value in found.items()}


def draw_observed(numbers: Mapping[int, Numbers]) -> Picture:
    """The function with the observations of the first seed; above it the two densities."""
    x, y = observed(min(numbers), 27)
    good, (l, g) = y <= np.quantile(y, GAMMA), densities(x, y)  # noqa: E741  # as above
    picture, axes = panels(2, 1, 5, 1.8, sharex=True)
    axes[0, 0].plot(X, l, color=ORANGE, label="l, of the good")
    axes[0, 0].plot(X, g, color=BLUE, label="g, of the others")
    axes[0, 0].plot(X, l / g / (l / g).max(), color=GREEN, ls=":", label="l / g, scaled")
    axes[1, 0].plot(X, F, color=GREY)
    axes[1, 0].plot(x[good], y[good], "x", color=ORANGE)
    axes[1, 0].plot(x[~good], y[~good], "x", color=BLUE)
    axes[0, 0].legend(frameon=False, fontsize=7)
    return picture


def found_observed(numbers: Mapping[int, Numbers]) -> list[Finding]:
    """What the caption says: expected improvement corresponds to the ratio."""
    exact = {seed: row["exact"] > 0.999 for seed, row in numbers.items()}
    return [shown("the exact ratio ranks points as expected improvement does", exact, "rank correlation above .999")]


def written_observed(numbers: Mapping[int, Numbers]) -> str:
    """Markdown: a line for each seed."""
    head = ["seed", "exact ratio and EI: rank correlation", "estimated ratio and EI", "its maximum is off by"]
    return table(head, [[str(s), *(str(row[k]) for k in ("exact", "estimated", "off"))] for s, row in numbers.items()])


# --- figure 2 ---------------------------------------------------------------------------------------------------------

LINE = np.linspace(-4, 8, 601)
PLACES = (2.0, 4.0, 8.0)


def ratios(x: Array, gamma: float) -> Array:
    """r_gamma of l = N(1, 1) and g = N(0, 1)."""
    inverse = np.exp(0.5 - x)  # g / l
    return 1 / (gamma + (1 - gamma) * inverse)


def compute_ratios(seed: int, n: int) -> Numbers:
    """Ordinary and relative ratio at some places; nothing is random."""
    del seed, n
    at = np.array(PLACES)
    return {str(gamma): [float(f"{r:.4g}") for r in ratios(at, gamma)] for gamma in (0.0, 0.25)}


def draw_ratios(numbers: Mapping[int, Numbers]) -> Picture:
    """Two densities, and their ratios."""
    del numbers
    picture, axes = panels(1, 2, 3, 2.2)
    axes[0, 0].plot(LINE, stats.norm.pdf(LINE, 1, 1), color=ORANGE, label="l")
    axes[0, 0].plot(LINE, stats.norm.pdf(LINE, 0, 1), color=BLUE, label="g")
    for gamma, colour in ((0.0, GREY), (0.25, GREEN)):
        axes[0, 1].plot(LINE, ratios(LINE, gamma), color=colour, label=f"gamma {gamma:g}")
    axes[0, 1].set_ylim(0, 10)
    for place in axes.flat:
        place.legend(frameon=False, fontsize=7)
    return picture


def found_ratios(numbers: Mapping[int, Numbers]) -> list[Finding]:
    """What the caption says."""
    diverges = {seed: row["0.0"][-1] > 1000 for seed, row in numbers.items()}
    bounded = {seed: abs(row["0.25"][-1] - 4) < 0.01 for seed, row in numbers.items()}
    return [
        shown("the ordinary ratio diverges", diverges, f"more than 1000 at x = {PLACES[-1]:g}"),
        shown("the relative ratio goes to 4 = 1 / gamma", bounded, f"within .01 at x = {PLACES[-1]:g}"),
    ]


def written_ratios(numbers: Mapping[int, Numbers]) -> str:
    """Markdown: the ratios at some places."""
    row = next(iter(numbers.values()))
    return table(["gamma", *(f"x = {x:g}" for x in PLACES)], [[gamma, *map(str, row[gamma])] for gamma in row])


FIGURES = (
    Demonstration(
        name="bore-1",
        paper="BORE, figure 1",
        caption="f(x) = sin(3x) + x^2 - 0.7x with noise of deviation .2: 27 observations, and the densities of the "
        "best third and of the others.",
        reports="Expected improvement corresponds to the ratio of the two densities.",
        departures="The domain is [-1, 2], which the text does not give; densities by SciPy's gaussian_kde, Scott's "
        "rule. Expected improvement is that of the true conditional distribution of y, whose noise is the same "
        "everywhere: where it varies, the ratio ranks by the probability of improvement (docs/theory.md).",
        compute=compute_observed,
        draw=draw_observed,
        findings=found_observed,
        table=written_observed,
        size=27,
        seeds=20,
        tiny=27,
    ),
    Demonstration(
        name="bore-2",
        paper="BORE, figure 2",
        caption="Two Gaussian densities, and their ratio for gamma 0 and 1/4.",
        reports="The ratio diverges for gamma 0, and goes to 4 for gamma 1/4.",
        departures="l = N(1, 1) and g = N(0, 1) are our choice. It is a formula: one seed says all.",
        compute=compute_ratios,
        draw=draw_ratios,
        findings=found_ratios,
        table=written_ratios,
        seeds=1,
    ),
)
