"""`Bits`: binary parameters whose effects depend on each other."""

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from deepbore.problems.base import Array, Problem
from deepbore.space import Integer, Params, SearchSpace
from deepbore.validation import one_of, whole

COUNT = 18  # binary parameters: few enough that all configurations are compared to find the best one
REACH = 10.0  # squared distance of numbers over which effects of two parameters fall by e
BESIDE = 3  # other parameters that what one adds depends on
CLAUSES = 90  # five for each parameter: not all of them can be satisfied
LITERALS = 3
Stream = np.random.Generator
Whole = NDArray[np.int64]
Function = Callable[[Array], Array]  # bits (n x d) -> values to minimise (n)


def quadratic(stream: Stream) -> Function:
    """-x^T Q x, where effects of pairs fall with the distance of their numbers (Baptista & Poloczek, section 4.1)."""
    at = np.arange(COUNT)
    effects = stream.standard_normal((COUNT, COUNT)) * np.exp(-np.square(at[:, None] - at) / REACH)
    return partial(_quadratic, effects)


def _quadratic(effects: Array, bits: Array) -> Array:
    values: Array = -((bits @ effects) * bits).sum(-1)
    return values


def landscape(stream: Stream) -> Function:
    """Minus the mean of what each bit adds, a random number for each combination with three others (NK landscape)."""
    others = [stream.choice(np.delete(np.arange(COUNT), one), BESIDE, replace=False) for one in range(COUNT)]
    together = np.column_stack([np.arange(COUNT), np.stack(others)])
    return partial(_landscape, stream.random((COUNT, 2 ** (BESIDE + 1))), together)


def _landscape(added: Array, together: Whole, bits: Array) -> Array:
    place = 2 ** np.arange(BESIDE + 1)
    found = [added[one, (bits[:, own] @ place).astype(int)] for one, own in enumerate(together)]
    values: Array = -np.mean(found, axis=0)
    return values


def clauses(stream: Stream) -> Function:
    """The total weight of clauses that are not satisfied: each says what one of three bits should be."""
    named = np.stack([stream.choice(COUNT, LITERALS, replace=False) for _ in range(CLAUSES)])
    wanted, weight = stream.integers(0, 2, named.shape), stream.random(CLAUSES)
    return partial(_clauses, named, wanted, weight)


def _clauses(named: Whole, wanted: Whole, weight: Array, bits: Array) -> Array:
    total = np.zeros(len(bits))
    for own, want, heavy in zip(named, wanted, weight, strict=True):
        total += heavy * (bits[:, own] != want).all(-1)
    return total


BIT_FAMILIES: dict[str, Callable[[Stream], Function]] = {
    "quadratic": quadratic,
    "landscape": landscape,
    "clauses": clauses,
}


class Bits(Problem):
    """Eighteen binary parameters whose effects depend on each other; the least value is 0.

    Args:
        family: "quadratic" (random effects of pairs), "landscape" (Kauffman's NK landscape with k = 3), or "clauses"
            (weighted 3-SAT with 90 clauses).
        seed: of effects, tables or clauses, >= 0.

    Raises:
        SettingError: for another family, or a seed below 0.

    Example:
        >>> problem = Bits("landscape")
        >>> problem(problem.best)
        0.0

    References:
        Baptista & Poloczek, Bayesian optimization of combinatorial structures, ICML 2018. Kauffman & Weinberger, The NK
        model of rugged fitness landscapes, 1989. Oh, Tomczak, Gavves & Welling, Combinatorial Bayesian optimization
        using the graph Cartesian product, NeurIPS 2019 (weighted maximum satisfiability).
    """

    optimum = 0.0

    def __init__(self, family: str = "quadratic", seed: int = 0):
        one_of(BIT_FAMILIES, family=family)
        whole(0, seed=seed)
        self._function = BIT_FAMILIES[family](np.random.default_rng([list(BIT_FAMILIES).index(family), seed]))
        self.space = SearchSpace({f"x{i}": Integer(0, 1) for i in range(COUNT)})
        every = (np.arange(2**COUNT)[:, None] >> np.arange(COUNT)) % 2
        values = self._function(every.astype(np.float64))
        self._best = every[values.argmin()]
        self._lowest = float(self._function(self._best[None].astype(np.float64))[0])

    @property
    def best(self) -> Params:
        """The best configuration."""
        return dict(zip(self.space.names, self._best.tolist(), strict=True))

    def __call__(self, params: Params) -> float:
        """The value of a configuration."""
        bits = np.array([[float(params[name]) for name in self.space.names]])
        return float(self._function(bits)[0]) - self._lowest
