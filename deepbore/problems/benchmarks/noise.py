"""Noise on the values of other problems, seeded and the same whatever the order of the evaluations."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from typing import Literal

import numpy as np

from deepbore.data.outcome import Outcome, as_outcome
from deepbore.errors import SettingError
from deepbore.problems.base import Problem
from deepbore.space import Params, SearchSpace
from deepbore.validation import above, of_kind, one_of, required, whole


class Draws:
    """A generator for each evaluation, seeded by (seed, name, configuration, number of its evaluations so far).

    Each evaluation has noise of its own, also a repeated one, whatever the order of the evaluations: a run in several
    processes has the noise of a run in one. Each process counts evaluations for itself: a configuration that is
    evaluated again by another process, or after the run was resumed, may get the same noise again.

    Args:
        space: of the configurations.
        name: of the problem; problems with other names draw other numbers.
        seed: of the run, >= 0.

    Example:
        >>> from deepbore.space import Real
        >>> draws, again = (Draws(SearchSpace({"x": Real(0, 1)}), "parabola", seed=0) for _ in range(2))
        >>> first, second = (draws({"x": 0.5}).normal() for _ in range(2))
        >>> first == again({"x": 0.5}).normal(), first == second
        (True, False)
    """

    def __init__(self, space: SearchSpace, name: str, seed: int):
        self.space, self.name, self.seed = space, name, seed
        self._times: Counter[int] = Counter()

    def __call__(self, params: Params) -> np.random.Generator:
        """The generator of the next evaluation of a configuration. Raises PointError for one outside the space."""
        point = self.space.encode([params])[0].double().numpy()
        digest = int.from_bytes(sha256(self.name.encode() + point.tobytes()).digest()[:8], "big")
        self._times[digest] += 1
        return np.random.default_rng([self.seed, digest, self._times[digest]])


Kind = Literal["normal", "student", "cauchy"]

FREEDOM = 3  # of Student's t: the least whole number with a finite standard deviation, 3 ** 0.5
NOISE: dict[Kind, Callable[[np.random.Generator], float]] = {
    "normal": lambda generator: generator.standard_normal(),
    "student": lambda generator: generator.standard_t(FREEDOM) / FREEDOM**0.5,
    "cauchy": lambda generator: generator.standard_cauchy(),
}


class Noisy(Problem):
    """A problem of one objective with independent noise added to the value of each evaluation.

    Args:
        problem: the noiseless problem, whose direction and optimum stay; black-box constraints have no noise.
        scale: of the noise, > 0, in units of the value: the standard deviation of normal or Student's noise, half the
            interquartile range of Cauchy's, which has no standard deviation.
        kind: "normal"; "student", heavy tails with three degrees of freedom; or "cauchy", so heavy that no mean exists.
        seed: of the noise, >= 0; see `Draws`.

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
        """The value with new noise, and the constraints, if any. Raises what the noiseless problem raises."""
        noise = self.scale * float(NOISE[self.kind](self._draws(params)))
        outcome = as_outcome(self.problem(params))
        if outcome.has_failed:
            return outcome
        value = outcome.values[0] + noise
        return replace(outcome, values=(value,)) if self.constraints else value

    def true_value(self, params: Params) -> float:
        """The noiseless value."""
        return self.problem.true_value(params)
