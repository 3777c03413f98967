"""`shares`: how much each parameter matters to the classifier, by Shapley effects; bars of these and of nearby ones."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import torch

from deepbore.plots.chart import Axis, Bars, Chart
from deepbore.plots.on_matplotlib import drawn, nothing_on
from deepbore.plots.predictions import centre, grid, name_of_pi, nothing_learned, probability
from deepbore.plots.style import BEST, GOOD
from deepbore.validation import whole

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from deepbore.study import Study

WORK, LEAST = 60_000, 128  # scores in all; but at least so many samples
SHOWN = 20  # bars
ALONE, TOGETHER, SHARED = "by itself", "together with others", "#9fcdb8"  # the parts of a bar; colour of the second


# --- by Shapley effects ----------------------------------------------------------------------------------------------

WALKS = 4096
CELLS = 16  # into which the values of a parameter are put


@dataclass(frozen=True)
class Share:
    """What a parameter explains of the variance of pi over the space.

    Attributes:
        whole: its Shapley effect; those of all parameters add up to 1.
        alone: its first-order index, what it explains without the others; at most `whole`.
    """

    whole: float
    alone: float

    @property
    def together(self) -> float:
        """Its part of the interactions."""
        return self.whole - self.alone


def shares(study: "Study", samples: int | None = None, seed: int = 0) -> dict[str, Share]:
    """The share of each parameter in the variance of the classifier's pi over the search space.

    With x and x' independent and uniform over the space, and x^0 = x, x^1, ..., x^d = x' a walk that takes over the
    parameters of x' in random order, the Shapley effect of the parameter j that step l takes over is (Goda 2021)

        phi_j = E[(f(x) - (f(x^{l-1}) + f(x^l)) / 2) (f(x^{l-1}) - f(x^l))] / Var f

    The sum over a walk is (f(x) - f(x'))^2 / 2, so the effects add up to 1 exactly, however few the walks.
    The first-order index S_j = Var E[f | x_j] / Var f (Sobol' 1993) is the variance of the means of f within each
    level, or each sixteenth, of x_j, at all points of all walks, less what chance adds to it. 1 - sum_j S_j is what
    only several parameters together explain: the interactions, of which phi_j - S_j is the part of parameter j.

    A conditional parameter has a value, and is drawn, in all of space; where it is inactive it changes nothing.

    Args:
        study: with a trained classifier; see `Study.fit`.
        samples: walks, >= 2; None for 4096, or fewer in wide spaces.
        seed: of the drawing.

    Returns:
        name -> share, the greatest first; all 0 if pi is constant, or nothing is learned yet. Of estimates below 0,
        which are 0 up to noise, nothing is left.

    Raises:
        SettingError: if the classifier is not trained.

    References:
        Goda, A simple algorithm for global sensitivity analysis with Shapley effects, Reliability Engineering & System
        Safety 213 (2021). Owen, Sobol' indices and Shapley value, SIAM/ASA J. Uncertainty Quantification 2 (2014).
    """
    whole(2, samples=samples)
    has_nothing = nothing_learned(study) is not None  # first, as it asks for a study
    space = study.space
    if has_nothing:
        return dict.fromkeys(space.names, Share(0.0, 0.0))
    n = samples or max(LEAST, min(WALKS, WORK // (len(space) + 1)))
    points, pi, order = _walks(study, n, torch.Generator().manual_seed(seed))
    effects = _shapley(pi, order).clip(min=0)
    total = effects.sum()
    if total <= 1e-12:
        return dict.fromkeys(space.names, Share(0.0, 0.0))
    every, alone = effects / total, _first_order(study, points.reshape(-1, len(space)), pi.ravel())
    found = {name: Share(float(every[j]), float(min(alone[j], every[j]))) for j, name in enumerate(space.names)}
    return dict(sorted(found.items(), key=lambda pair: -pair[1].whole))


def importances(study: "Study", samples: int | None = None, seed: int = 0) -> dict[str, float]:
    """The `shares` of all parameters in the variance of the classifier's pi, as numbers: those that all pictures show.

    Args:
        study: with a trained classifier; see `Study.fit`.
        samples: walks, >= 2; see `shares`.
        seed: of the drawing.

    Returns:
        name -> share, the greatest first; they add up to 1, or are all 0 if pi is constant, or nothing is learned yet.

    Raises:
        SettingError: for less than two samples, or if the classifier is not trained.
    """
    return {name: share.whole for name, share in shares(study, samples, seed).items()}


def importance_chart(study: "Study", found: Mapping[str, Share] | None = None) -> Chart:
    """Bars of the `shares`, the greatest above: by itself, and together with others; of 20 at most.

    Args:
        study: with a trained classifier.
        found: its shares, where they are known already.
    """
    shown = dict(list((shares(study) if found is None else found).items())[:SHOWN])
    alone, together = (np.array([getattr(each, part) for each in shown.values()]) for part in ("alone", "together"))
    measure = f"share of the variance of the {name_of_pi(study)}"
    wholes = {name: each.whole for name, each in shown.items()}
    layers = [
        _bars(np.zeros(len(shown)), alone, wholes, ALONE, GOOD),
        replace(_bars(alone, together, wholes, TOGETHER, SHARED), ends=[f"{each:.1%}" for each in wholes.values()]),
    ]
    return _ranked(f"Importance over the whole space: {measure}", measure, layers, list(shown))


def local_chart(study: "Study", found: Mapping[str, float] | None = None) -> Chart:
    """Bars of the `local_shares`, the greatest above; of 20 at most. The arguments are as in `importance_chart`."""
    shown = dict(list((local_shares(study) if found is None else found).items())[:SHOWN])
    measure = f"share of the variance of the {name_of_pi(study)} near the best"
    lengths = np.array(list(shown.values()))
    bars = _bars(np.zeros(len(shown)), lengths, shown, "near the best", BEST)
    bars = replace(bars, name="", ends=[f"{each:.1%}" for each in shown.values()])
    return _ranked("Importance near the best configuration: share of the variance there", measure, [bars], list(shown))


def _bars(base: np.ndarray, length: np.ndarray, wholes: Mapping[str, float], name: str, colour: str) -> Bars:
    said = [f"{who}: {whole:.1%}\n{share:.1%} {name}"
            for (who, whole), share in zip(wholes.items(), length, strict=True)]  # fmt: skip
    return Bars(base, length, np.arange(len(base)), name=name, colour=colour, said=said)


def _ranked(title: str, measure: str, layers: Sequence[Bars], names: list[str]) -> Chart:
    return Chart(title, layers, Axis(measure, form="percent", from_zero=True), Axis(ticks=names, is_reversed=True),
                 height=110 + 26 * len(names))  # fmt: skip


def importance(study: "Study", *, axes: "Axes | None" = None) -> "Figure":
    """Bars of the `shares`, the greatest above: by itself, and together with others; of 20 parameters at most.

    Args:
        study: with a trained classifier; see `Study.fit`.
        axes: where to draw; None for a new figure.

    Raises:
        SettingError: if the classifier is not trained.
        MissingPackage: without matplotlib.
    """
    reason = nothing_learned(study)
    return nothing_on(axes, reason) if reason else drawn(importance_chart(study), axes)


def local_importance(study: "Study", *, axes: "Axes | None" = None) -> "Figure":
    """Bars of the `local_shares`: what matters near the best configuration. The arguments are those of `importance`."""
    reason = nothing_learned(study)
    return nothing_on(axes, reason) if reason else drawn(local_chart(study), axes)


def _walks(study: "Study", n: int, generator: torch.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """n walks: values of every parameter, active or not (d + 1 x n x d), pi there (d + 1 x n), the steps (n x d)."""
    space, d = study.space.points.without_fixed, len(study.space)  # fixed parameters were learned, too
    walk, other = space.points.draw(n, generator), space.points.draw(n, generator)
    order = torch.rand(n, d, generator=generator, dtype=torch.float64).argsort(-1)
    points = [walk.clone()]
    for step in range(d):
        column = order[:, [step]]
        walk.scatter_(1, column, other.gather(1, column))
        points.append(walk.clone())
    every = torch.stack(points)
    pi = probability(study, space.points.snap(every.reshape(-1, d)))
    return every.numpy(), pi.reshape(d + 1, n), order.numpy()


def _shapley(pi: np.ndarray, order: np.ndarray) -> np.ndarray:
    """Shapley effects times the variance (d), of pi along walks (d + 1 x n) and their steps (n x d)."""
    n, d = order.shape
    effects = np.zeros(d)
    for step in range(d):
        before, after = pi[step], pi[step + 1]
        np.add.at(effects, order[:, step], (pi[0] - (before + after) / 2) * (before - after) / n)
    return effects


def _first_order(study: "Study", points: np.ndarray, pi: np.ndarray) -> np.ndarray:
    """First-order indices, at least 0 (d), of pi (m) at uniform values of the parameters (m x d)."""
    found = np.zeros(points.shape[1])
    for column, parameter in enumerate(study.space.parameters.values()):
        few = parameter.levels is not None and parameter.levels <= CELLS
        values = parameter.to_level(torch.from_numpy(points[:, column])).numpy() if few else points[:, column]
        cells = values.astype(int) if few else (values / parameter.upper * CELLS).astype(int).clip(0, CELLS - 1)
        found[column] = _explained(cells, pi)
    return found


def _explained(cells: np.ndarray, pi: np.ndarray) -> float:
    """The share of the variance of pi that lies between cells, less what chance adds to it; at least 0."""
    counts = np.bincount(cells)
    sums, squares = np.bincount(cells, pi), np.bincount(cells, np.square(pi))
    counts, sums, squares = (each[counts > 0] for each in (counts, sums, squares))
    means = sums / counts
    within = (squares - counts * np.square(means)).sum() / max(1, len(pi) - len(counts))
    between = float((counts * np.square(means - pi.mean())).sum() - (len(counts) - 1) * within)
    return max(0.0, between / (len(pi) * max(float(pi.var()), 1e-12)))


# --- near the best ---------------------------------------------------------------------------------------------------

NEAR, ALONG = 0.1, 201  # of the range to each side, but at least the neighbours; points along a parameter


def local_shares(study: "Study") -> dict[str, float]:
    """How much each parameter alone changes the classifier's pi near the best configuration.

        I_j = Var pi(x_j; x*_-j) / sum_i Var pi(x_i; x*_-i)

    with x* the best configuration and x_j uniform over a tenth of its range to each side of x*_j, along its scale; an
    unordered choice takes all of its values. It is the local parameter importance of Biedenkapp et al. 2018, over a
    part of the range. Parameters that x* does not have count 0.

    Args:
        study: with a trained classifier; see `Study.fit`.

    Returns:
        name -> share, the greatest first; all 0 if pi is constant there, or nothing is learned yet.

    Raises:
        SettingError: if the classifier is not trained.

    References:
        Biedenkapp, Marben, Lindauer and Hutter, CAVE: Configuration Assessment, Visualization and Evaluation, LION
        2018.
    """
    has_nothing = nothing_learned(study) is not None  # first, as it asks for a study
    space, best = study.space.points.without_fixed, None if has_nothing else centre(study)
    if best is None:
        return dict.fromkeys(study.space.names, 0.0)
    variances = {}
    for column, (name, parameter) in enumerate(space.parameters.items()):
        entries = grid(parameter, ALONG)
        if parameter.is_ordered:
            away = (entries - best[column]).abs()
            entries = entries[away <= max(NEAR * parameter.upper, float(away.sort().values[:3][-1]))]
        points = best.repeat(len(entries), 1)
        points[:, column] = entries
        is_there = bool(space.points.active(best[None])[0, column])
        variances[name] = float(probability(study, space.points.snap(points)).var()) if is_there else 0.0
    total = sum(variances.values())
    found = {name: variance / total if total > 1e-12 else 0.0 for name, variance in variances.items()}
    return dict(sorted(found.items(), key=lambda pair: -pair[1]))
