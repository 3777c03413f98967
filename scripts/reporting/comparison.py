"""Methods compared at one number of evaluations: ranks, ratios of regrets, wins and targets reached."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from reporting import intervals
from reporting.facts import cluster_of
from reporting.intervals import Estimate, Typical
from reporting.regrets import Scale
from reporting.rows import Run

Array = NDArray[np.float64]
Pair = tuple[str, int]  # problem, seed
MISSING = 0.2  # of the problems: who misses more is compared apart
DROPPED = 4  # of the problems that favour a method most, to see what a mean rests on
FEW_SEEDS = 0.5  # of all pairs (problem, seed); a method with fewer would leave the others with as few


@dataclass(frozen=True)
class Duel:
    """A method against another, on the pairs (problem, seed) that both have.

    Attributes:
        ratio: log of the regret of the first by that of the second: mean over seeds, then over problems.
        ratios: the same of each problem, all instances of a function together.
        won, tied, lost: shares of the pairs; they sum to 1.
        worst: the problem with the largest ratio.
        worst_ratio: its geometric mean over the seeds.
        problems: how many.
    """

    ratio: Estimate
    ratios: dict[str, float]
    won: float
    tied: float
    lost: float
    worst: str
    worst_ratio: float
    problems: int

    @property
    def typical(self) -> Typical:
        """The log ratio that is typical of the problems."""
        return Typical.of([*self.ratios.values()])

    @property
    def without_best(self) -> float | None:
        """The mean log ratio without the `DROPPED` problems that favour the first most; None if fewer would be left."""
        rest = sorted(self.ratios.values())[DROPPED:]
        return float(np.mean(rest)) if len(rest) >= DROPPED else None

    @property
    def signs(self) -> tuple[int, int, int]:
        """Problems won, tied and lost."""
        won, lost = (sum(np.sign(each) == sign for each in self.ratios.values()) for sign in (-1, 1))
        return won, len(self.ratios) - won - lost, lost


class Comparison:
    """The methods at k evaluations.

    Args:
        runs: of one suite, with one number of workers.
        k: number of evaluations, >= 1.
        scales: of each problem.
        recommended: of what methods recommend, not of the best they saw.

    Attributes:
        runs: (problem, seed) -> method -> its run. Of several runs the shortest that is long enough counts.
        regrets: the same, with the regrets.
        methods: all that have a run on a problem on which another has one, too: only these problems count.
        main: the methods that have runs on at least 80 % of the problems, and with half of all seeds on them; they
            are ranked together.
        subset: the others.
    """

    def __init__(self, runs: Iterable[Run], k: int, scales: dict[str, Scale], recommended: bool = False):
        self.k = k
        self.scales = scales
        self.runs: dict[Pair, dict[str, Run]] = defaultdict(dict)
        for run in sorted(runs, key=lambda run: -run.n):
            if run.n >= k and not (recommended and run.at(k, recommended) is None):
                self.runs[run.pair][run.method] = run
        self.regrets = {
            pair: {method: scales[pair[0]].regret(run.at(k, recommended)) for method, run in row.items()}
            for pair, row in self.runs.items()
        }
        ran: dict[str, set[str]] = defaultdict(set)
        for (problem, _), row in self.regrets.items():
            ran[problem].update(row)
        self._pairs: dict[tuple[str, ...], list[Pair]] = {}
        share = _shares(ran.values())
        seeds = _shares(self.regrets.values())
        self.methods = sorted(share)
        self.main = [each for each in self.methods if share[each] >= 1 - MISSING and seeds[each] >= FEW_SEEDS]
        self.subset = [each for each in self.methods if each not in self.main]

    def pairs(self, methods: Sequence[str]) -> list[Pair]:
        """The pairs (problem, seed) on which all of these methods have runs."""
        key = tuple(methods)
        if key not in self._pairs:
            wanted = set(methods)
            self._pairs[key] = sorted(pair for pair, row in self.regrets.items() if wanted <= row.keys())
        return self._pairs[key]

    def problems(self) -> list[str]:
        """The problems on which all main methods have runs with the same seeds."""
        return sorted({problem for problem, _ in self.pairs(self.main)})

    def ranks(self, methods: Sequence[str] | None = None) -> dict[str, Estimate]:
        """Average rank of each method (default: the main ones) among these, 1 the best; ties share their ranks."""
        return self._main_ranks if methods is None else self._ranks(methods)

    @cached_property
    def _main_ranks(self) -> dict[str, Estimate]:
        return self._ranks(self.main)

    def _ranks(self, methods: Sequence[str]) -> dict[str, Estimate]:
        pairs = self.pairs(methods)
        if len(methods) < 2 or not pairs:
            return {}
        table = rankdata([[self.regrets[pair][method] for method in methods] for pair in pairs], axis=1)
        return dict(zip(methods, _over_seeds_and_problems(table, pairs), strict=True))

    def against_best(self, method: str) -> tuple[str, Duel] | None:
        """The main method of others with the best average rank, and the duel with it; None without either.

        A method's own variants, "deepbore:..." and "deepbore, ...", are not others.
        """
        ranks, own = self.ranks(), (f"{method}:", f"{method},")
        others = [name for name in ranks if name != method and not name.startswith(own)]
        peer = min(others, key=lambda name: ranks[name].mean, default=None)
        duel = self.duel(method, peer) if peer else None
        return (peer, duel) if peer and duel else None

    def duel(self, first: str, second: str) -> Duel | None:
        """One method against another; None if they have no pair in common."""
        pairs = self.pairs([first, second])
        if not pairs:
            return None
        ratios = np.log([self.regrets[pair][first] / self.regrets[pair][second] for pair in pairs])
        of_problems, names = _over_seeds(ratios[:, None], pairs)
        clusters = [cluster_of(name) for name in names]
        (ratio,) = intervals.means(of_problems, clusters)
        of_clusters, kept = _over_seeds(of_problems, [(cluster, 0) for cluster in clusters])
        worst = int(of_problems.argmax())
        return Duel(
            ratio=ratio,
            ratios=dict(zip(kept, of_clusters[:, 0].tolist(), strict=True)),
            won=float((ratios < 0).mean()),
            tied=float((ratios == 0).mean()),
            lost=float((ratios > 0).mean()),
            worst=names[worst],
            worst_ratio=float(np.exp(of_problems[worst, 0])),
            problems=len(names),
        )

    def reached(self) -> dict[str, Estimate]:
        """Share of (problem, seed, target) that each main method has reached."""
        pairs = self.pairs(self.main)
        if not pairs:
            return {}
        shares = [self.scales[pair[0]].reached([self.regrets[pair][method] for method in self.main]) for pair in pairs]
        return dict(zip(self.main, _over_seeds_and_problems(np.array(shares), pairs), strict=True))


def _over_seeds(values: Array, pairs: Sequence[Pair]) -> tuple[Array, list[str]]:
    """Means over the seeds of a problem: rows of pairs -> rows of problems, and their names."""
    names, number = np.unique(np.array([problem for problem, _ in pairs]), return_inverse=True)
    sums = np.zeros((len(names), values.shape[1]))
    np.add.at(sums, number, values)
    return sums / np.bincount(number)[:, None], [str(name) for name in names]


def _over_seeds_and_problems(values: Array, pairs: Sequence[Pair]) -> list[Estimate]:
    of_problems, names = _over_seeds(values, pairs)
    return intervals.means(of_problems, [cluster_of(name) for name in names])


def _shares(compared: Iterable[Collection[str]]) -> dict[str, float]:
    """In how many of the rows with at least two methods each of them stands."""
    rows = [row for row in compared if len(row) > 1]
    return {method: float(np.mean([method in row for row in rows])) for method in set().union(*rows)}
