"""`shares`: how much of what the classifier says each parameter explains, adding up to 1."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch

from deepbore.checks import whole
from deepbore.plots.predictions import nothing_learned, probability

if TYPE_CHECKING:
    from deepbore.study import Study

SAMPLES, WORK, LEAST = 4096, 60_000, 128  # walks; so many scores in all; but at least so many walks
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
    n = samples or max(LEAST, min(SAMPLES, WORK // (len(space) + 1)))
    points, pi, order = _walks(study, n, torch.Generator().manual_seed(seed))
    effects = _shapley(pi, order).clip(min=0)
    total = effects.sum()
    if total <= 1e-12:
        return dict.fromkeys(space.names, Share(0.0, 0.0))
    every, alone = effects / total, _first_order(study, points.reshape(-1, len(space)), pi.ravel())
    found = {name: Share(float(every[j]), float(min(alone[j], every[j]))) for j, name in enumerate(space.names)}
    return dict(sorted(found.items(), key=lambda pair: -pair[1].whole))


def _walks(study: "Study", n: int, generator: torch.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """n walks: values of every parameter, active or not (d + 1 x n x d), pi there (d + 1 x n), the steps (n x d)."""
    space, d = study.space.without_fixed, len(study.space)  # what stands still now was learned all the same
    walk, other = space.draw(n, generator), space.draw(n, generator)
    order = torch.rand(n, d, generator=generator, dtype=torch.float64).argsort(-1)
    points = [walk.clone()]
    for step in range(d):
        column = order[:, [step]]
        walk.scatter_(1, column, other.gather(1, column))
        points.append(walk.clone())
    every = torch.stack(points)
    pi = probability(study, space.snap(every.reshape(-1, d)))
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
