"""`Ledger`: what a run has found so far."""

import math
from dataclasses import replace

from deepbore.data.outcome import Outcome, as_outcome
from deepbore.data.trial import sign_of
from deepbore.problems import Problem
from deepbore.space import Params


class Ledger:
    """What a run has found so far, by the true values of feasible configurations, in the sign that is minimised.

    Args:
        problem: what is evaluated.
        round_size: evaluations of a round, of which `rounds` has the sums; 0 to have none.
    """

    def __init__(self, problem: Problem, round_size: int = 0):
        self.problem, self.sign = problem, sign_of(problem.direction)
        self.digits = 6 if problem.optimum == 0 else 12  # elsewhere the regret is a small difference
        self.round_size = round_size
        self.least, self.n, self.failed = math.inf, 0, 0
        self.best = list[tuple[int, float]]()
        self.recommended = list[tuple[int, float]]()
        self.rounds = list[float]()

    def evaluate(self, params: Params) -> Outcome:
        """What the method is told, its value in the sign that is minimised."""
        outcome = evaluated(self.problem, params)
        self.n += 1
        if self.round_size:
            self._count(params)
        if outcome.has_failed:
            self.failed += 1
            return outcome
        value = self.sign * outcome.values[0]
        if outcome.is_feasible and value < self.least:
            self.least = value
            true = self.true_value(params)
            if not self.best or self.best[-1][1] != true:
                self.best.append((self.n, true))
        return replace(outcome, values=value)

    def recommend(self, params: Params) -> None:
        """Notes the true value of a recommended configuration."""
        self.recommended.append((self.n, self.true_value(params)))

    def true_value(self, params: Params) -> float:
        """The value without noise, rounded."""
        return self._rounded(self.sign * self.problem.true_value(params))

    def _count(self, params: Params) -> None:
        """Adds a true value to those of its round."""
        if self.n % self.round_size == 1 or self.round_size == 1:
            self.rounds.append(0.0)
        self.rounds[-1] = self._rounded(self.rounds[-1] + self.true_value(params))

    def _rounded(self, value: float) -> float:
        return float(f"{value:.{self.digits}g}")


def evaluated(problem: Problem, params: Params) -> Outcome:
    """What an evaluation gives: a failure where it raises, or gives no finite number."""
    try:
        return as_outcome(problem(params))
    except Exception as error:
        return Outcome.failure(repr(error))
