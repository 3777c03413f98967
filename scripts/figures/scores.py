"""What the runs of a race say: curves of every seed, and what becomes of the race's claims."""

import math
from collections.abc import Iterable, Mapping
from functools import cached_property

import numpy as np

from figures.kinds import Claim, Finding, Panel, Race
from figures.optima import Optima
from figures.statistics import Array, Paired, best_so_far, cumulative_regret_of, paired, regret_of
from reporting.intervals import Estimate
from reporting.rows import Run
from reporting.tables import short

Pair = tuple[str, str]  # problem, method
MANY = 1000  # seeds; nobody makes more
HARD = 100  # seeds beyond which it is said what is excluded as it is


class Scores:
    """The runs of a race.

    Args:
        race: the figure.
        runs: of all figures.
        optima: of the race's problems at least.

    Attributes:
        runs: problem and method -> seed -> its longest run.
    """

    def __init__(self, race: Race, runs: Iterable[Run], optima: Optima):
        self.race, self.optima = race, optima
        self.runs: dict[Pair, dict[int, Run]] = {}
        for run in sorted(runs, key=lambda run: (run.n, run.seed)):
            pair = run.problem, run.method
            if pair in race.pairs and run.workers == race.workers and (run.rounds or not self.cumulative):
                self.runs.setdefault(pair, {})[run.seed] = run

    @property
    def cumulative(self) -> bool:
        return self.race.metric == "cumulative regret"

    def metric(self, problem: str) -> str:
        """The race's, but "value" where no optimum is known."""
        return "value" if self.optima.get(problem) is None else self.race.metric

    def curves(self, problem: str, method: str, k: int = 1) -> dict[int, Array]:
        """Seed -> the metric after each evaluation, of the runs with at least k evaluations."""
        of = self.runs.get((problem, method), {})
        return {seed: self._curve(run) for seed, run in sorted(of.items()) if run.n >= k}

    def at(self, problem: str, method: str, k: int) -> dict[int, float]:
        """Seed -> the metric after k evaluations."""
        found = {seed: float(curve[k - 1]) for seed, curve in self.curves(problem, method, k).items()}
        return {seed: value for seed, value in found.items() if np.isfinite(value)}

    def length(self, problem: str, method: str) -> int:
        """Evaluations of the longest runs; 0 if there are none."""
        return max((run.n for run in self.runs.get((problem, method), {}).values()), default=0)

    def columns(self, panel: Panel) -> list[int]:
        """Evaluations for a table: checkpoints and ends that at least two methods have."""
        lengths = [self.length(panel.problem, method) for method in panel.methods]
        wanted = {*self.race.checkpoints, *lengths, panel.trials or self.race.trials}
        return sorted(k for k in wanted if k and sum(length >= k for length in lengths) > 1)

    @cached_property
    def findings(self) -> list[Finding]:
        """Every claim with its verdict."""
        return [self.found(claim) for claim in self.race.claims]

    def found(self, claim: Claim) -> Finding:
        """One claim, tested on the seeds that both methods have."""
        compared, n = self.compared(claim), self.shared(claim)
        return Finding(described(claim, n), verdict(claim, compared), evidence(compared))

    def shared(self, claim: Claim) -> int:
        """How many evaluations both methods of a claim have made."""
        return min(self.length(claim.problem, method) for method in (claim.first, claim.second))

    def compared(self, claim: Claim) -> Paired | None:
        """The two methods at the claim's evaluations or, if that is earlier, where one of them ends.

        A claim of all evaluations is of their means over those that both have.
        """
        n = self.shared(claim)
        if claim.at is not None:
            n = max(min(claim.at, n), 1)
            return paired(*(self.at(claim.problem, method, n) for method in (claim.first, claim.second)))
        return paired(*(self._means(claim.problem, method, n) for method in (claim.first, claim.second)))

    def _means(self, problem: str, method: str, n: int) -> Mapping[int, float]:
        return {seed: float(np.nanmean(curve[:n])) for seed, curve in self.curves(problem, method, max(n, 1)).items()}

    def _curve(self, run: Run) -> Array:
        optimum = self.optima.get(run.problem)
        if optimum is None:
            return best_so_far(run, run.n)
        if self.cumulative:
            return cumulative_regret_of(run, run.n, optimum)
        return regret_of(run, run.n, optimum) if self.race.metric == "regret" else best_so_far(run, run.n)


def described(claim: Claim, n: int) -> str:
    """A claim in words, tested on runs of n evaluations."""
    when = f"after {claim.at}" if claim.at else f"over {n} evaluations"
    when += f" (here {n})" if claim.at and 0 < n < claim.at else ""
    if claim.level:
        return f"{claim.problem}, {when}: {claim.first} about level with {claim.second}"
    return f"{claim.problem}, {when}: {claim.first} ahead of {claim.second}"


def verdict(claim: Claim, compared: Paired | None) -> str:
    """What the 95 % interval of the difference says."""
    if compared is None:
        return "no runs"
    sign = compared.difference.sign
    if claim.level and math.isfinite(compared.difference.low):
        return "refuted" if sign else "not contradicted"
    return {-1: "reproduced", 0: "undecided", 1: "refuted"}[sign]


def evidence(compared: Paired | None) -> str:
    """The numbers behind a verdict; how many seeds it needs where they don't tell."""
    if compared is None:
        return ""
    of = compared.difference
    shown = f"{short(of.middle)} [{short(of.low)}, {short(of.high)}]" if math.isfinite(of.low) else short(of.middle)
    score = f"{compared.won}/{compared.tied}/{compared.lost}"
    many = "" if of.sign else f"; {_needed(compared)}"
    return f"{shown}; {score}; p {short(compared.p)}{many}"


def _needed(compared: Paired) -> str:
    """How many seeds would tell; where nobody will run as many, which lead the interval excludes."""
    lead, needed = -compared.difference.low, compared.needed
    seeds = f"needs {needed:.0f} seeds" if needed <= MANY else f"needs more than {MANY} seeds"
    return f"{seeds}, a lead above {short(lead)} is excluded" if needed > HARD and math.isfinite(lead) else seeds


def interval(of: Estimate, digits: int = 2) -> str:
    """A mean and its interval, where it has one."""
    low, high = of.interval
    shown = f" [{_number(low, digits)}, {_number(high, digits)}]" if math.isfinite(low) else ""
    return _number(of.mean, digits) + shown


def _number(value: float, digits: int) -> str:
    """Two digits as elsewhere, or more where values are large beside their differences."""
    return short(value) if digits == 2 else f"{value:.{digits}g}"
