"""Other problems with noise on their values."""

from collections.abc import Callable
from dataclasses import replace
from typing import Literal

import numpy as np

from deepbore.checks import above, of_kind, one_of, required, whole
from deepbore.data.outcome import Outcome, as_outcome
from deepbore.errors import SettingError
from deepbore.problems.base import Problem
from deepbore.problems.draws import Draws
from deepbore.space import Params

Kind = Literal["normal", "student", "cauchy"]

FREEDOM = 3  # degrees of freedom of Student's t: the fewest whole ones with a standard deviation, which is 3 ** 0.5
NOISE: dict[Kind, Callable[[np.random.Generator], float]] = {
    "normal": lambda generator: generator.standard_normal(),
    "student": lambda generator: generator.standard_t(FREEDOM) / FREEDOM**0.5,
    "cauchy": lambda generator: generator.standard_cauchy(),
}


class Noisy(Problem):
    """Another problem, of one objective, whose every evaluation has noise of its own added to the value.

    Args:
        problem: the problem beneath; its direction and optimum are kept, and what else its outcomes say: black-box
            constraints have no noise.
        scale: of the noise, > 0, in units of the value: the standard deviation where it is normal or Student's, half
            the distance of the quartiles where it is Cauchy's, which has no standard deviation.
        kind: "normal"; "student", heavy tails with three degrees of freedom; or "cauchy", so heavy that no mean exists.
        seed: of the noise, >= 0. `Draws` says what else it depends on.

    Raises:
        SettingError: for settings outside these ranges, or a problem of several objectives.

    Example:
        >>> from deepbore.problems import Branin
        >>> problem = Noisy(Branin(), scale=5.0)
        >>> params = {"x0": 3.0, "x1": 2.0}
        >>> problem(params) == problem(params), problem.true_value(params) == Branin()(params)
        (False, True)
    """

    def __init__(self, problem: Problem, scale: float, kind: Kind = "normal", seed: int = 0):
        required(problem=problem, scale=scale)
        of_kind(Problem, problem=problem)
        if len(problem.directions) > 1:
            raise SettingError(
                f"noise is added to the value of one objective, but {type(problem).__name__} has "
                f"{len(problem.directions)}. Give a problem of one."
            )
        above(0, scale=scale)
        one_of(NOISE, kind=kind)
        whole(0, seed=seed)
        self.problem, self.scale, self.kind, self.seed = problem, float(scale), kind, seed
        self.space, self.directions, self.optimum = problem.space, problem.directions, problem.optimum
        self.constraints = problem.constraints
        self._draws = Draws(self.space, f"{type(problem).__name__} {kind}", seed)

    def __call__(self, params: Params) -> float | Outcome:
        """The value of the problem beneath with new noise, and its constraints. Raises what that problem raises."""
        noise = self.scale * float(NOISE[self.kind](self._draws(params)))
        outcome = as_outcome(self.problem(params))
        if outcome.has_failed:
            return outcome
        value = outcome.values[0] + noise
        return replace(outcome, values=(value,)) if self.constraints else value

    def true_value(self, params: Params) -> float:
        """The value of the problem beneath."""
        return self.problem.true_value(params)
