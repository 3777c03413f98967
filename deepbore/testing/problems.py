"""Checks of the contract of a problem."""

import pickle

import torch

from deepbore.data.outcome import as_outcome
from deepbore.data.trial import sign_of
from deepbore.problems.base import Problem
from deepbore.space import SearchSpace
from deepbore.testing.require import require


def check_problem(problem: Problem, trials: int = 5) -> None:
    """Checks space and directions, evaluations of random configurations, and that no feasible value beats the optimum.

    Args:
        problem: the problem.
        trials: number of random configurations to evaluate.

    Raises:
        AssertionError: with the violated rule and the values.

    Example:
        >>> from deepbore.problems import Branin
        >>> check_problem(Branin())
    """
    require(isinstance(problem.space, SearchSpace), f"space must be a SearchSpace, but is {problem.space!r:.100}")
    known = {"minimize", "maximize"}
    directions = tuple(problem.directions)
    require(directions and set(directions) <= known, f"directions must be from {sorted(known)}, but are {directions}")
    check_pickle(problem)
    points = problem.space.points.sample(trials, torch.Generator().manual_seed(10))
    for number, params in enumerate(problem.space.decode(points)):
        given = dict(params)
        outcome = as_outcome(problem(params, **({"trial": number} if problem.numbered else {})))
        require(params == given, f"a call must leave its configuration as it is, but {given} became {params}")
        if outcome.has_failed:
            continue
        count = len(outcome.values)
        require(count == len(directions), f"{len(directions)} directions need as many values, but got {outcome.values}")
        if outcome.is_feasible:
            check_optimum(problem, outcome.values[0])


def check_pickle(problem: Problem) -> None:
    """It can be pickled for a worker process, and has the same space there."""
    try:
        copy = pickle.loads(pickle.dumps(problem))
    except Exception as error:
        raise AssertionError(f"a problem must go through pickle, for worker processes, but: {error}") from error
    require(copy.space == problem.space, "a problem that went through pickle must have its space, but has another")


def check_optimum(problem: Problem, value: float) -> None:
    """A feasible value is not better than a known optimum."""
    if problem.optimum is None:
        return
    sign = sign_of(problem.direction)
    slack = 1e-6 * (1 + abs(problem.optimum))
    require(
        sign * value >= sign * problem.optimum - slack,
        f"no value must be better than the optimum {problem.optimum}, but to {problem.direction}, {value} is",
    )
