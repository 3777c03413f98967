"""A known relative density ratio, estimated by classifiers: BORE's figure 12 (appendix H) and BOGGN's figure 1.

1000 numbers, a quarter from l = 0.3 N(2, 1) + 0.7 N(-3, 0.5^2) and the others from g = N(0, 2^2);
r_gamma = l / (gamma l + (1 - gamma) g).
"""

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np
import torch
from matplotlib.figure import Figure as Picture
from scipy import stats
from sklearn.svm import SVC

import deepbore
from deepbore.testing import fit, toy_data
from figures.kinds import Demonstration, Finding, Numbers
from figures.looks import GREEN, GREY, band, lower, panels, rounded
from figures.statistics import Array
from reporting.tables import table

N, GAMMA, EPOCHS = 1000, 1 / 4, 40
GRID = np.linspace(-6, 6, 601)
KEPT = slice(None, None, 10)  # of the grid, in the rows
Estimate = Callable[[Array], Array]
Maker = Callable[[], deepbore.classifiers.Classifier]

NETWORK = (32, 32, 32), "elu"  # as in the appendix
HEADS: dict[str, Maker] = {
    "MLPClassifier": lambda: deepbore.MLPClassifier(*NETWORK),
    "DeepEnsemble": lambda: deepbore.DeepEnsemble(*NETWORK),
    "HyperDeepEnsemble": lambda: deepbore.HyperDeepEnsemble(width=(32, 64)),
    "MCDropout": lambda: deepbore.MCDropout(*NETWORK),
    "LaplaceGGN": lambda: deepbore.LaplaceGGN(*NETWORK),
    "DeepPLS": deepbore.DeepPLS,
    "KernelPLS": lambda: deepbore.KernelPLS(rows=N),
    "FourierLogistic": deepbore.FourierLogistic,
    "GPClassifier": deepbore.GPClassifier,
    "RelativeRatio": lambda: deepbore.RelativeRatio(rows=N),
    "RandomForest": lambda: deepbore.RandomForest(rows=N),
    "Forest of larger leaves": lambda: deepbore.RandomForest(rows=N, min_samples_split=20),
    "XGBoost": lambda: deepbore.XGBoost(rows=N),
    "Calibrated(RandomForest)": lambda: deepbore.Calibrated(deepbore.RandomForest(rows=N), "isotonic"),
}
BOGGN = ("MLPClassifier", "RandomForest", "Forest of larger leaves", "XGBoost", "LaplaceGGN")  # and an SVM


def good(x: Array) -> Array:
    """l, the density of class 1."""
    return np.asarray(0.3 * stats.norm.pdf(x, 2, 1) + 0.7 * stats.norm.pdf(x, -3, 0.5))


def other(x: Array) -> Array:
    """g, the density of class 0."""
    return np.asarray(stats.norm.pdf(x, 0, 2))


def ratio(l: Array, g: Array) -> Array:  # noqa: E741  # the paper's names
    """r_gamma (BORE eq. 4)."""
    return l / (GAMMA * l + (1 - GAMMA) * g)


EXACT = ratio(good(GRID), other(GRID))


def drawn(seed: int, n: int) -> tuple[Array, Array]:
    """Samples of l and of g, n together, within the space."""
    rng = np.random.default_rng(seed)
    k = int(GAMMA * n)
    centre, spread = np.where(rng.random(k)[:, None] < 0.3, [2.0, 1.0], [-3.0, 0.5]).T
    return rng.normal(centre, spread).clip(-8, 8), rng.normal(0, 2, n - k).clip(-8, 8)


def by_kde(positives: Array, negatives: Array) -> Estimate:
    """The ratio of two kernel density estimates, bandwidths by the normal reference rule."""
    l, g = (stats.gaussian_kde(x, bw_method=1.06 * len(x) ** -0.2) for x in (positives, negatives))  # noqa: E741  # as above
    return lambda x: ratio(l(x), g(x))


def by_head(make: Maker, positives: Array, negatives: Array) -> Estimate:
    """pi / gamma (BORE eq. 8), the classifier trained for forty iterations."""
    space = deepbore.SearchSpace({"x": deepbore.Real(-8, 8)})
    data = toy_data(space, 0, deepbore.ThresholdLabels(GAMMA))
    values = np.r_[np.zeros(len(positives)), np.ones(len(negatives))]
    order = np.random.default_rng(0).permutation(len(values))
    data.observations.add({"x": np.r_[positives, negatives][order]}, values[order])
    classifier = fit(make(), data, epochs=EPOCHS)

    @torch.no_grad()
    def estimate(x: Array) -> Array:
        return classifier.density_ratio(space.points.encode_columns({"x": x}), GAMMA).numpy()

    return estimate


def by_svm(positives: Array, negatives: Array) -> Estimate:
    """A support vector machine with Platt's probabilities, as scikit-learn sets it."""
    x = np.r_[positives, negatives][:, None]
    labels = np.r_[np.ones(len(positives)), np.zeros(len(negatives))]
    machine = SVC(probability=True, random_state=0).fit(x, labels)
    return lambda grid: machine.predict_proba(grid[:, None])[:, 1] / GAMMA


def compute(names: tuple[str, ...], seed: int, n: int) -> Numbers:
    """Error, distance of the maximum from the true one, and curve of each estimate."""
    found = {}
    for name in names:
        makers = {"KDE": by_kde, "SVM": by_svm}
        estimate = makers[name](*drawn(seed, n)) if name in makers else by_head(HEADS[name], *drawn(seed, n))
        curve = estimate(GRID)
        found[name] = {
            "error": float(f"{np.sqrt(np.mean((curve - EXACT) ** 2)):.4g}"),
            "off": float(f"{abs(GRID[curve.argmax()] - GRID[EXACT.argmax()]):.4g}"),
            "curve": rounded(curve[KEPT], 3),
        }
    return found


def of(numbers: Mapping[int, Numbers], name: str, what: str) -> dict[int, float]:
    """One number of an estimate, by seed."""
    return {seed: row[name][what] for seed, row in numbers.items() if name in row}


def draw(names: tuple[str, ...], numbers: Mapping[int, Numbers]) -> Picture:
    """A panel for each estimate: the exact ratio, and mean and band of the estimates."""
    columns = 4
    picture, axes = panels(-(-len(names) // columns), columns, 2.5, 1.8, sharex=True, sharey=True)
    for place, name in zip(axes.flat, names, strict=False):
        place.plot(GRID, EXACT, color=GREY, lw=3, label="exact")
        band(place, GRID[KEPT], np.array([row[name]["curve"] for row in numbers.values()]), GREEN, "estimate")
        place.set_title(name, fontsize=8)
    for place in axes.flat[len(names) :]:
        place.set_axis_off()
    axes[0, 0].set_ylim(-0.2, 1.2 / GAMMA)
    axes[0, 0].legend(frameon=False, fontsize=7)
    picture.supylabel("relative density ratio", fontsize=8)
    return picture


def findings(names: tuple[str, ...], numbers: Mapping[int, Numbers]) -> list[Finding]:
    """Each classifier's error, and distance from the maximum, below that of the two density estimates."""
    kinds = {"error": "has the lower error", "off": "has its maximum nearer the true one"}
    return [
        lower(f"{name} {words} than KDE", of(numbers, name, what), of(numbers, "KDE", what))
        for name in names
        for what, words in kinds.items()
    ]


def written(names: tuple[str, ...], numbers: Mapping[int, Numbers]) -> str:
    """Markdown: error and distance of the maximum."""
    lines = []
    for name in names:
        errors, off = of(numbers, name, "error"), of(numbers, name, "off")
        every = " ".join(f"{error:.2f}" for error in errors.values())
        lines.append([name, f"{np.mean(list(errors.values())):.2f}", every, f"{np.mean(list(off.values())):.2f}"])
    return table(["estimate", "error (mean)", "every seed", "the maximum is off by"], lines)


def demonstration(names: tuple[str, ...], claimed: tuple[str, ...], **words: str) -> Demonstration:
    """A figure of some estimates, of which some are claimed to be better than KDE."""
    return Demonstration(
        compute=partial(compute, names),
        draw=partial(draw, names),
        findings=partial(findings, claimed),
        table=partial(written, names),
        size=N,
        tiny=100,
        departures="Classifiers learn for forty iterations of deepbore's loop. Error: root mean square on [-6, 6].",
        explanation="A forest whose trees grow until their leaves are pure, the default of scikit-learn that the paper "
        "names, votes by single points: its mean over trees is too rough to be a density ratio. The same forest with "
        "nodes of at least 20 rows to split ('larger leaves') has half the error.",
        **words,
    )


FIGURES = (
    demonstration(
        ("KDE", *HEADS),
        ("MLPClassifier", "RandomForest", "XGBoost"),
        name="bore-12",
        paper="BORE, figure 12 (appendix H)",
        caption="A known relative density ratio, gamma 1/4, by two kernel density estimates (KDE) and by classifiers.",
        reports="A network of 3 x 32 ELU units, a random forest and XGBoost recover the ratio well. KDE does poorly: "
        "its maximum is far from the true one. All other heads of deepbore are in no paper.",
    ),
    demonstration(
        ("KDE", "SVM", *BOGGN),
        ("MLPClassifier", "RandomForest", "XGBoost", "SVM"),
        name="boggn-1",
        paper="BOGGN, figure 1",
        caption="The example of BORE's appendix H by a network, trees and a support vector machine (scikit-learn's SVC "
        "with probabilities).",
        reports="All classifiers recover the ratio accurately, KDE does poorly and shifts the maximum. LaplaceGGN, "
        "BOGGN's head, is here as well.",
    ),
)
