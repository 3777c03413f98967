"""MBORE: BORE's classifiers for several objectives, by one score of all of them (re-implemented from the paper).

Before each proposal the objectives of all that was seen become one score, the best third of the scores is good, and a
classifier learns which. A score takes values (n x k, to minimise) and gives n numbers, the greater the better; MBORE is
told the problem's `reference`, what counts as no gain in a hypervolume.

De Ath, Chugh & Rahat, MBORE: multi-objective Bayesian optimisation by density-ratio estimation, GECCO 2022.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from deepbore.data.array_ranking import Array, fronts, hypervolume
from peers.density_ratio import DensityRatio, Network, Trees


def augmented_chebyshev(values: Array, generator: np.random.Generator) -> Array:
    """AT, by weights that are others each time (Knowles, ParEGO, 2006)."""
    lows = values.min(0)
    extent = values.max(0) - lows
    weighted = (values - lows) / np.where(extent > 0, extent, 1) * generator.dirichlet(np.ones(values.shape[1]))
    return -(weighted.max(1) + 0.05 * weighted.sum(1))


def dominance_rank(values: Array) -> Array:
    """DomRank: the share of the others that do not dominate a row."""
    no_worse = (values[None] <= values[:, None]).all(-1)
    dominates = no_worse & (values[None] < values[:, None]).any(-1)  # [i, j]: j dominates i
    return 1 - dominates.sum(1) / max(1, len(values) - 1)


def hypervolume_improvement(values: Array, reference: Array) -> Array:
    """HypI: the hypervolume of a row together with the front behind its own (Rahat et al. 2017)."""
    peeled = fronts(values, len(values))
    score = np.empty(len(values))
    for front, behind in zip(peeled, [*peeled[1:], []], strict=True):
        for row in front:
            score[row] = hypervolume(values[[row, *behind]], reference)
    return score


def hypervolume_contribution(values: Array, reference: Array) -> Array:
    """PHC: what a row adds to the hypervolume of its front, and the most that any row adds to each front behind it."""
    score = np.empty(len(values))
    behind = 0.0
    for front in reversed(fronts(values, len(values))):
        distinct, which, count = np.unique(values[front], axis=0, return_inverse=True, return_counts=True)
        whole = hypervolume(distinct, reference)
        without = [hypervolume(np.delete(distinct, row, 0), reference) for row in range(len(distinct))]
        adds = np.where(count > 1, 0.0, whole - np.array(without))  # of equal rows each is spare
        score[front] = behind + adds[which.reshape(-1)]
        behind += adds.max()
    return score


MODELS: dict[str, Callable[..., DensityRatio]] = {
    "xgb": partial(Trees, classifier="xgb", weighted=False),
    "mlp": Network,
}
SCORES = ("at", "domrank", "hypi", "phc")


def mbore(problem: Any, seed: int, model: str, score: str) -> Iterator[list[float]]:
    """Values of MBORE, one trial after another."""
    reference = np.array(problem.reference)
    scores = {
        "at": partial(augmented_chebyshev, generator=np.random.default_rng(seed)),
        "domrank": dominance_rank,
        "hypi": partial(hypervolume_improvement, reference=reference),
        "phc": partial(hypervolume_contribution, reference=reference),
    }
    peer, values = MODELS[model](problem.space, seed), list[list[float]]()
    while True:
        (params,) = peer.ask(1)
        values.append(list(problem(params).values))
        peer.tell(params, None)
        peer.values[:] = (-scores[score](np.array(values))).tolist()  # of all rows anew; a peer minimises
        yield values[-1]
